//! Pictures of layouts as grids of offsets.
//!
//! Law: the cell in row `i` and column `j` shows the value of the layout at `(i, j)`. Rank 1 is one
//! row; modes 2 and 3 give a grid for each of their indices, mode 2 to the right (in several lines
//! if these are many) and mode 3 downward; further modes join mode 3. A grid with more cells than
//! fit on a page becomes an image with a pixel for each cell, or for the first cell of a block.
//! Such an image is too coarse for details like a swizzle. So an image of its first corner is
//! beside it, with a pixel for each cell, coloured by the offset modulo [`CORNER_STEP`].

use std::fmt::Write as _;
use std::rc::Rc;

use tilewright_layout::{Layout, Tree};

use crate::arrange::{MAX_CELLS, fits};
use crate::axis::Axis;
use crate::figure::{Body, Figure, Legend, Panel};
use crate::grid::{Cell, Grid};
use crate::image::Image;
use crate::map::{Map, Target};
use crate::number::push_integer;
use crate::pictures::{Label, Medium, Shade, Style};
use crate::theme::Paint;

/// The largest number of grids that are drawn of a layout of rank 3 or more.
const MAX_SLABS: i64 = 64;
/// The largest number of pixels on a side of an image. Both sides of a layout that becomes an image
/// have at least `LEAST_IMAGE` cells.
const MAX_PIXELS: i64 = 512;
const LEAST_IMAGE: i64 = 32;
/// The number of rows and columns of the corner of an image that is shown, and the modulus by which
/// its offsets are coloured.
const CORNER: i64 = 64;
const CORNER_STEP: i64 = 128;

/// A layout as one or several grids, whose cells show the text that `style` selects.
///
/// ```
/// use tilewright_draw::{Map, Style, Theme, offsets};
/// use tilewright_layout::Layout;
///
/// let layout: Layout = "((2,2),(2,4)):((1,4),(2,8))".parse().unwrap();
/// let figure = offsets("L", &Map::from(&layout), Style::default());
/// assert!(figure.svg(Theme::Auto).contains(">31</text>"));
/// ```
///
/// An index that the layout refuses shows `?`, and its tooltip the reason.
pub fn offsets<'a>(heading: &str, map: &Map, style: Style) -> Figure<'a> {
    slabs(heading, map, style, None, true)
}

/// The highlighting of the cell of an index.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// Its fill, in place of that of its offset.
    pub fill: Paint,
    /// The region that it is part of; 0 is none.
    pub region: u32,
    /// Whether it is less important.
    pub faint: bool,
}

/// The mark of each index.
pub(crate) type Tint = Rc<dyn Fn(i64) -> Mark>;

/// As [`offsets`], with cells filled and outlined by `tint`.
pub(crate) fn tinted<'a>(heading: &str, map: &Map, style: Style, tint: Tint) -> Figure<'a> {
    slabs(heading, map, style, Some(tint), false)
}

/// As [`tinted`]; the corner of a large grid is shown cell by cell.
pub(crate) fn tinted_with_corner<'a>(heading: &str, map: &Map, style: Style, tint: Tint) -> Figure<'a> {
    slabs(heading, map, style, Some(tint), true)
}

/// The grids of a layout; `cornered` says whether an image has its corner beside it.
fn slabs<'a>(heading: &str, map: &Map, style: Style, tint: Option<Tint>, cornered: bool) -> Figure<'a> {
    let slabs = Slabs::of(map, style, tint);
    let mut table = Vec::new();
    for slab_row in 0..slabs.shown[1] {
        let mut row = Vec::new();
        for slab_column in 0..slabs.shown[0] {
            row.push(Some(slabs.panel(heading, slab_column, slab_row)));
            if (slab_column + 1) % slabs.line == 0 && slab_column + 1 < slabs.shown[0] {
                table.push(std::mem::take(&mut row));
            }
        }
        table.push(row);
    }
    if slabs.are_images() && cornered {
        let corner = Some(corner(map, slabs.sides(), slabs.tint.as_deref()));
        match table.last_mut() {
            Some(row) if slabs.slow.is_empty() => row.push(corner),
            _ => table.push(vec![corner]),
        }
    }
    let mut figure = Figure { table, ..Figure::default() };
    let drawn = slabs.shown[0] * slabs.shown[1];
    if drawn < slabs.count {
        figure.caption = format!("The first {drawn} of {} grids", slabs.count);
    }
    if slabs.are_heated() {
        let (least, greatest) = slabs.bounds.unwrap_or_else(|| bounds(map));
        figure.legend = Some(Legend::Ramp(least.to_string(), greatest.to_string()));
    }
    figure
}

/// The grids of a layout: rows and columns are its first two modes, and there is a grid for each
/// index of the others.
struct Slabs<'m> {
    map: &'m Map,
    style: Style,
    tint: Option<Tint>,
    modes: Vec<Tree<i64>>,
    rows: Axis,
    columns: Axis,
    slow: Vec<Tree<i64>>,
    /// The number of grids, and the number of grids side by side in the order of the layout.
    count: i64,
    across: i64,
    /// The number of grids that are drawn, to the right and downward, and the number in each line.
    shown: [i64; 2],
    line: i64,
    /// The smallest and the largest offset, if cells are coloured by them.
    bounds: Option<(i64, i64)>,
}

impl<'m> Slabs<'m> {
    fn of(map: &'m Map, style: Style, tint: Option<Tint>) -> Slabs<'m> {
        let modes: Vec<Tree<i64>> = map.shape().modes().collect();
        let size = |mode: &Tree<i64>| mode.leaves().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
        let (rows, columns, slow) = match modes.as_slice() {
            [] => (Axis::flat(1), Axis::flat(1), &[][..]),
            [only] => (Axis::flat(1).unticked(), Axis::of(only), &[][..]),
            [rows, columns, slow @ ..] => (Axis::of(rows), Axis::of(columns), slow),
        };
        let slow = slow.to_vec();
        let area = rows.len().saturating_mul(columns.len()).max(1);
        let across = slow.first().map_or(1, size);
        let count = map.size().checked_div(area).unwrap_or(1).max(1);
        let down = count.checked_div(across).unwrap_or(1).max(1);
        // Whole rows of grids, as many as there is space for.
        let room = (2 * MAX_CELLS / area).clamp(1, MAX_SLABS);
        let shown_across = across.min(room);
        let shown = [shown_across, down.min((room / shown_across).max(1))];
        let line = match slow.len() == 1 && style.medium == Medium::Page {
            true => in_line(shown_across, rows.len(), columns.len()),
            false => shown_across,
        };
        let bounds = (style.shade == Shade::Heat).then(|| bounds(map));
        Slabs { map, style, tint, modes, rows, columns, slow, count, across, shown, line, bounds }
    }

    /// Rows and columns of a grid.
    fn sides(&self) -> (i64, i64) {
        (self.rows.len(), self.columns.len())
    }

    /// Whether grids have too many cells, and become images.
    fn are_images(&self) -> bool {
        let (height, width) = self.sides();
        !fits(height, width) && height.min(width) >= LEAST_IMAGE && self.style.medium == Medium::Page
    }

    /// Whether the fill shows the magnitude of an offset.
    fn are_heated(&self) -> bool {
        self.bounds.is_some() || self.are_images() && self.tint.is_none()
    }

    fn panel<'a>(&self, heading: &str, slab_column: i64, slab_row: i64) -> Panel<'a> {
        let body = self.body(slab_column, slab_row);
        let (height, width) = self.sides();
        let note = match &body {
            Body::Image { block: (1, 1), .. } => format!("{height} × {width}, a pixel for each offset"),
            Body::Image { block: (down, right), .. } => {
                format!("{height} × {width}, a pixel for the first offset of {down} × {right}")
            }
            _ => String::new(),
        };
        let first = slab_row == 0 && slab_column < self.line;
        let mut name = slab_name(&self.slow, slab_column, slab_row);
        if self.slow.is_empty() {
            name = heading.to_owned();
        } else if !heading.is_empty() && first {
            name = format!("{}\n{name}", if slab_column == 0 { heading } else { "" });
        }
        Panel { minor: !first, ..Panel::new(name, body).noted(note) }
    }

    fn body<'a>(&self, slab_column: i64, slab_row: i64) -> Body<'a> {
        let (height, width) = self.sides();
        let area = height.saturating_mul(width).max(1);
        let start = (slab_column + self.across * slab_row).saturating_mul(area);
        if self.are_images() {
            return image(self.map, start, (height, width), self.tint.as_deref());
        }
        let map = self.map.clone();
        let names = Names::of(&self.modes, self.style, [slab_column, slab_row]);
        let fill = Filling { style: self.style, bounds: self.bounds, tint: self.tint.clone() };
        let grid = Grid::new(self.rows.clone(), self.columns.clone(), move |i, j, cell| {
            fill.cell(&map, start + i + height * j, cell, &|out| names.push(out, i, j));
        });
        Body::Grid(if self.tint.is_some() { grid.outlined(Paint::Border) } else { grid })
    }
}

/// How many of `count` grids are side by side: all if there is space, otherwise so that the whole
/// is about as wide as high.
fn in_line(count: i64, height: i64, width: i64) -> i64 {
    const ROOM: i64 = 48;
    let square = |line: i64| line.saturating_mul(width) >= ((count + line - 1) / line).saturating_mul(height);
    let least = (1..=count).find(|line| square(*line)).unwrap_or(count);
    least.max(ROOM / width.max(1)).clamp(1, count.max(1))
}

/// Several layouts as grids side by side, each with its heading, in lines of at most
/// [`crate::MAX_LINE`].
pub fn side_by_side<'a>(maps: &[(String, Map)], style: Style) -> Figure<'a> {
    let all = Figure::default();
    maps.iter().fold(all, |all, (heading, map)| all.beside(offsets(heading, map, style)))
}

/// The indices of modes 2 and later of one of several grids.
fn slab_name(slow: &[Tree<i64>], slab_column: i64, slab_row: i64) -> String {
    match slow {
        [] => String::new(),
        [_] => format!("k = {slab_column}"),
        [_, _] => format!("k = {slab_column}, l = {slab_row}"),
        _ => format!("k = {slab_column}, rest = {slab_row}"),
    }
}

/// The smallest and the largest offset: exact for an integer layout; otherwise over all indices, or
/// over a sample if there are very many.
fn bounds(map: &Map) -> (i64, i64) {
    match map.layout() {
        Some(layout) => reach(layout),
        None => {
            // An odd step visits all residues modulo powers of two. A sample of a very large map
            // gives its range approximately.
            let step = (map.size() / (1 << 20)).max(1) | 1;
            let indices = (0..map.size()).step_by(usize::try_from(step).unwrap_or(1));
            let offsets = indices.chain([map.size() - 1]).filter_map(|index| map.at(index).ok());
            offsets.fold(None, |range: Option<(i64, i64)>, offset| {
                Some(range.map_or((offset, offset), |(least, most)| (least.min(offset), most.max(offset))))
            })
        }
        .unwrap_or((0, 0)),
    }
}

/// The smallest and the largest offset of an integer layout: the sums of those that each leaf alone
/// reaches.
pub(crate) fn reach(layout: &Layout) -> (i64, i64) {
    layout.leaves().iter().fold((0, 0), |(least, greatest): (i64, i64), leaf| {
        let reach = leaf.stride.saturating_mul(leaf.extent - 1);
        (least.saturating_add(reach.min(0)), greatest.saturating_add(reach.max(0)))
    })
}

/// The image of a slab: a pixel for each cell, or for the first of each block of cells.
fn image<'a>(map: &Map, start: i64, (height, width): (i64, i64), tint: Option<&dyn Fn(i64) -> Mark>) -> Body<'a> {
    let (least, greatest) = bounds(map);
    let block = |side: i64| (side + MAX_PIXELS - 1) / MAX_PIXELS;
    let (down, right) = (block(height), block(width));
    let (rows, columns) = ((height + down - 1) / down, (width + right - 1) / right);
    let pixel = |row: i64, column: i64| {
        let index = start + row * down + height * column * right;
        match (tint, map.at(index)) {
            (Some(tint), _) => tint(index).fill,
            (None, Ok(offset)) => Paint::heat(offset, least, greatest),
            (None, Err(_)) => Paint::Void,
        }
    };
    Body::Image { image: pixels((rows, columns), pixel), block: (down, right) }
}

/// The first rows and columns of the first slab, a pixel for each cell.
fn corner<'a>(map: &Map, (height, width): (i64, i64), tint: Option<&dyn Fn(i64) -> Mark>) -> Panel<'a> {
    let (rows, columns) = (height.min(CORNER), width.min(CORNER));
    let pixel = |row: i64, column: i64| {
        let index = row + height * column;
        match (tint, map.at(index)) {
            (Some(tint), _) => tint(index).fill,
            (None, Ok(offset)) => Paint::heat(offset.rem_euclid(CORNER_STEP), 0, CORNER_STEP - 1),
            (None, Err(_)) => Paint::Void,
        }
    };
    let body = Body::Image { image: pixels((rows, columns), pixel), block: (1, 1) };
    let note = match tint {
        Some(_) => "a pixel for each offset".to_owned(),
        None => format!("a pixel for each offset, modulo {CORNER_STEP}"),
    };
    Panel { minor: true, ..Panel::new(format!("the first {rows} × {columns}"), body).noted(note) }
}

/// The image of `rows` by `columns` pixels.
fn pixels((rows, columns): (i64, i64), pixel: impl Fn(i64, i64) -> Paint) -> Image {
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    Image::new(usize::try_from(columns).unwrap_or(1), places.map(|(row, column)| pixel(row, column)).collect())
}

/// The coordinates of cells as text, prepared in parts: `(`, the row, `,`, the column, and the rest
/// with `)`.
struct Names {
    rows: Vec<String>,
    columns: Vec<String>,
}

impl Names {
    fn of(modes: &[Tree<i64>], style: Style, slab: [i64; 2]) -> Names {
        let none = Names { rows: Vec::new(), columns: Vec::new() };
        let length = |mode: &Tree<i64>| Axis::of(mode).len();
        if style.medium == Medium::Terminal && style.label != Label::Coordinate {
            return none;
        }
        let named = |mode: &Tree<i64>| -> Vec<String> {
            (0..length(mode)).map(|at| coordinate_in(mode, at).to_string()).collect()
        };
        let rest = |names: &mut Vec<String>| {
            // For modes 2 and later only the index of the grid is known.
            for name in names {
                for (mode, at) in modes.iter().skip(2).zip(slab) {
                    let _ = write!(name, ",{}", coordinate_in(mode, at));
                }
                name.push(')');
            }
        };
        match modes {
            [only] if length(only) <= MAX_CELLS => {
                let bare = only.is_leaf() || only.rank() == 1;
                let columns =
                    named(only).into_iter().map(|name| if bare { format!("({name})") } else { name }).collect();
                Names { rows: vec![String::new()], columns }
            }
            [rows, columns, ..] if length(rows) <= MAX_CELLS && length(columns) <= MAX_CELLS => {
                let mut columns = named(columns);
                rest(&mut columns);
                Names { rows: named(rows).into_iter().map(|name| format!("({name},")).collect(), columns }
            }
            _ => none,
        }
    }

    fn push(&self, out: &mut String, row: i64, column: i64) {
        for (names, at) in [(&self.rows, row), (&self.columns, column)] {
            if let Some(name) = usize::try_from(at).ok().and_then(|at| names.get(at)) {
                out.push_str(name);
            }
        }
    }
}

/// The coordinate of an index of a mode, nested as the mode is.
fn coordinate_in(mode: &Tree<i64>, index: i64) -> Tree<i64> {
    let mut rest = index;
    mode.map(|extent| {
        let here = rest.checked_rem(*extent).unwrap_or(0);
        rest = rest.checked_div(*extent).unwrap_or(0);
        here
    })
}

/// Converts cells to text and colour.
#[derive(Clone)]
struct Filling {
    style: Style,
    bounds: Option<(i64, i64)>,
    tint: Option<Tint>,
}

impl Filling {
    fn cell(&self, map: &Map, index: i64, cell: &mut Cell, name: &dyn Fn(&mut String)) {
        let value = match map.value(index) {
            Ok(value) => value,
            Err(error) => {
                cell.label.push('?');
                let _ = write!(cell.title, "{error}");
                cell.fill = Paint::Warn;
                return;
            }
        };
        match (&self.tint, &value) {
            (Some(tint), _) => {
                let mark = tint(index);
                (cell.fill, cell.region, cell.faint) = (mark.fill, mark.region, mark.faint);
            }
            (None, Target::Offset(offset)) => {
                cell.fill = match (self.style.shade, self.bounds) {
                    (Shade::Heat, Some((least, greatest))) => Paint::heat(*offset, least, greatest),
                    (Shade::Grey, _) => Paint::grey(*offset),
                    (Shade::Palette, _) => self.style.palette.paint(*offset, 32),
                    _ => Paint::Paper,
                };
            }
            (None, Target::Coordinate(_)) => {}
        }
        if self.style.medium == Medium::Page {
            name(&mut cell.title);
            cell.title.push_str(" → ");
            push_target(&mut cell.title, &value);
        }
        // Without fills, cells that are not highlighted are left blank.
        if cell.faint && self.style.medium == Medium::Terminal {
            cell.label.push('·');
            return;
        }
        match self.style.label {
            Label::Offset => push_target(&mut cell.label, &value),
            Label::Coordinate => name(&mut cell.label),
            Label::Index => push_integer(&mut cell.label, index),
            Label::Nothing => {}
        }
    }
}

fn push_target(out: &mut String, value: &Target) {
    match value {
        Target::Offset(offset) => push_integer(out, *offset),
        Target::Coordinate(tree) => {
            let _ = write!(out, "{tree}");
        }
    }
}
