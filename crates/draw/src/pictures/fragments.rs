//! Pictures of thread-value layouts: which thread holds which element.
//!
//! Law: a thread-value layout maps (thread, value) to a position in a tile, counted first mode
//! fastest. Its picture is the tile; the cell of a position shows the thread and the index of its
//! value. If several threads or values hold a position, the first one in the order of indices is
//! shown, with the number of the others. Positions without a holder are empty.

use std::fmt::Write as _;

use tilewright_layout::{Tree, crd2idx};

use crate::arrange::fits;
use crate::axis::Axis;
use crate::error::DrawError;
use crate::figure::{Body, Figure, Panel};
use crate::grid::Grid;
use crate::image::Image;
use crate::map::{Map, Target};
use crate::number::push_integer;
use crate::pictures::{MAX_INDICES, Medium, Style};
use crate::theme::{Paint, Palette};

/// The lanes of a warp (PTX ISA, "Thread Hierarchy").
const WARP: i64 = 32;

/// The thread and value that hold a position.
#[derive(Debug, Clone, Copy)]
struct Owner {
    thread: i64,
    value: i64,
    /// The number of other holders.
    others: u32,
}

/// The holders of the positions of a tile.
struct Owners {
    places: Vec<Option<Owner>>,
    threads: i64,
    values: i64,
}

fn extent(mode: &Tree<i64>) -> i64 {
    mode.leaves().iter().fold(1, |size: i64, extent| size.saturating_mul(*extent))
}

impl Owners {
    fn of(tv: &Map, tile: &Tree<i64>) -> Result<Owners, DrawError> {
        let modes: Vec<Tree<i64>> = tv.shape().modes().collect();
        let (threads, values) = match modes.as_slice() {
            [threads] => (extent(threads), 1),
            [threads, values] => (extent(threads), extent(values)),
            _ => {
                let what = "a thread-value layout";
                return Err(DrawError::Rank { what, rank: modes.len(), wanted: "two, threads and values," });
            }
        };
        let size = extent(tile);
        for (what, value) in [("the number of places in the tile", size), ("the size of the layout", tv.size())] {
            if value > MAX_INDICES {
                return Err(DrawError::TooLarge { what, value, limit: MAX_INDICES });
            }
        }
        let mut places: Vec<Option<Owner>> = vec![None; usize::try_from(size).unwrap_or(0)];
        for index in 0..tv.size() {
            let offset = match tv.value(index)? {
                Target::Offset(offset) => offset,
                Target::Coordinate(coordinate) => crd2idx(&coordinate, tile)?,
            };
            let (thread, value) = (index % threads, index / threads);
            let place = usize::try_from(offset).ok().and_then(|offset| places.get_mut(offset));
            match place {
                Some(Some(owner)) => owner.others = owner.others.saturating_add(1),
                Some(place) => *place = Some(Owner { thread, value, others: 0 }),
                None => return Err(DrawError::Outside { thread, value, offset, size }),
            }
        }
        Ok(Owners { places, threads, values })
    }

    fn at(&self, place: i64) -> Option<Owner> {
        usize::try_from(place).ok().and_then(|place| self.places.get(place).copied().flatten())
    }

    fn paint(&self, owner: Owner, palette: Palette) -> Paint {
        match palette {
            Palette::Value => palette.paint(owner.value, self.values),
            _ => palette.paint(owner.thread, self.threads),
        }
    }
}

impl Owners {
    /// A note, if positions have several holders, of which a cell shows only one.
    fn shared(&self) -> Option<String> {
        let mut holders = self.places.iter().flatten().map(|owner| owner.others.saturating_add(1));
        let first = holders.next()?;
        let (fewest, most) = holders.fold((first, first), |(fewest, most), count| (fewest.min(count), most.max(count)));
        match (fewest, most) {
            (_, 1) => None,
            (all, most) if all == most => Some(format!("{all} holders each: the first is shown")),
            (_, most) => Some(format!("up to {most} holders: the first is shown")),
        }
    }
}

/// How a tile is drawn.
#[derive(Debug, Clone, Copy, Default)]
struct TileStyle {
    /// Whether rows are the tile's mode 1 instead of its mode 0.
    transposed: bool,
    /// The largest numbers of rows and columns; of a larger tile, the first ones are drawn.
    most: Option<[i64; 2]>,
    /// Whether each position is a pixel, even if there is space for text.
    coarse: bool,
}

/// The panel of one of several operands, named in the tooltips of its cells.
fn operand<'a>(
    side: &'static str,
    tv: &Map,
    tile: &Tree<i64>,
    shown: TileStyle,
    style: Style,
) -> Result<Panel<'a>, DrawError> {
    panel(side, side, tv, tile, shown, style)
}

/// The panel of a tile.
fn panel<'a>(
    heading: &str,
    side: &'static str,
    tv: &Map,
    tile: &Tree<i64>,
    TileStyle { transposed, most, coarse }: TileStyle,
    style: Style,
) -> Result<Panel<'a>, DrawError> {
    let owners = Owners::of(tv, tile)?;
    let modes: Vec<Tree<i64>> = tile.modes().collect();
    let (first, second) = match modes.as_slice() {
        [] => (Axis::flat(1), Axis::flat(1)),
        // A tile of one mode is drawn as a row.
        [only] => (Axis::flat(1).unticked(), Axis::of(only)),
        [first, second @ ..] => (Axis::of(first), Axis::of_modes(second)),
    };
    let height = first.len();
    let place = move |row: i64, column: i64| if transposed { column + height * row } else { row + height * column };
    let (rows, columns) = if transposed { (second, first) } else { (first, second) };
    let sized = format!("{heading}  {} × {}", rows.len(), columns.len());
    let heading = if heading.is_empty() { String::new() } else { sized };
    let counts = format!("{} threads with {} values each", owners.threads, owners.values);
    let whole = [rows.len(), columns.len()];
    let (rows, columns) = match most {
        Some([down, right]) => (cut(rows, down), cut(columns, right)),
        None => (rows, columns),
    };
    let part = [rows.len(), columns.len()];
    let shown = (part != whole)
        .then(|| format!("the first {} × {} of {} × {}; {counts}", part[0], part[1], whole[0], whole[1]));
    if (coarse || !fits(rows.len(), columns.len())) && style.medium == Medium::Page {
        // With this many threads, one colour for each thread would be noise.
        let by_warp = style.palette == Palette::Distinct && owners.threads > WARP;
        let style = if by_warp { Style { palette: Palette::Warp, ..style } } else { style };
        let colours = "; too many places to name: each warp has a hue, each eight of its lanes a tone";
        let note = if by_warp { format!("{counts}{colours}") } else { counts };
        return Ok(Panel::new(heading, image(&owners, &rows, &columns, &place, style)).noted(note));
    }
    let notes: Vec<String> = shown.into_iter().chain(owners.shared()).collect();
    let fill = move |row: i64, column: i64, cell: &mut crate::grid::Cell| {
        let Some(owner) = owners.at(place(row, column)) else {
            cell.fill = Paint::Void;
            return;
        };
        let Owner { thread, value, others } = owner;
        cell.fill = owners.paint(owner, style.palette);
        cell.link = u32::try_from(thread).ok();
        if style.medium == Medium::Terminal {
            push_integer(&mut cell.label, thread);
            cell.label.push(':');
            push_integer(&mut cell.label, value);
            return;
        }
        cell.label.push('T');
        push_integer(&mut cell.label, thread);
        cell.second.push('V');
        push_integer(&mut cell.second, value);
        if !side.is_empty() {
            cell.title.push_str(side);
            cell.title.push_str(": ");
        }
        for (text, number) in [("thread ", thread), (", value ", value), (" at (", row), (",", column)] {
            cell.title.push_str(text);
            push_integer(&mut cell.title, number);
        }
        cell.title.push(')');
        if others > 0 {
            let _ = write!(cell.title, ", and {others} more");
        }
    };
    let panel = Panel::new(heading, Body::Grid(Grid::new(rows, columns, fill)));
    Ok(if notes.is_empty() { panel } else { panel.noted(notes.join("; ")) })
}

/// A side, cut to at most this many positions.
fn cut(side: Axis, most: i64) -> Axis {
    if side.len() > most { side.cut_to(most) } else { side }
}

/// The image of a tile: a pixel for each position, or for the first of a block.
fn image<'a>(owners: &Owners, rows: &Axis, columns: &Axis, place: &dyn Fn(i64, i64) -> i64, style: Style) -> Body<'a> {
    const MOST: i64 = 1024;
    let block = |len: i64| (len + MOST - 1) / MOST;
    let (down, right) = (block(rows.len()), block(columns.len()));
    let pixel = |row: i64, column: i64| {
        let owner = owners.at(place(row * down, column * right));
        owner.map_or(Paint::Void, |owner| owners.paint(owner, style.palette))
    };
    let (height, width) = ((rows.len() + down - 1) / down, (columns.len() + right - 1) / right);
    let pixels = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    let pixels = pixels.map(|(row, column)| pixel(row, column)).collect();
    Body::Image { image: Image::new(usize::try_from(width).unwrap_or(1), pixels), block: (down, right) }
}

/// A thread-value layout over its tile: each cell says which thread holds it as which value.
///
/// The modes of `tv` are threads and values. `tile` is the shape in which its offsets are counted,
/// or of its coordinates.
///
/// Errors: the layout has values outside the tile, does not have one or two modes, or a mode has
/// more than [`crate::MAX_INDICES`] positions.
///
/// ```
/// use tilewright_draw::{Map, Style, Theme, thread_value};
/// use tilewright_layout::Layout;
///
/// // The accumulator of mma.m16n8: 32 threads, four values each.
/// let c: Layout = "((4,8),(2,2)):((32,1),(16,8))".parse().unwrap();
/// let tile = "(16,8)".parse().unwrap();
/// let figure = thread_value("C", &Map::from(&c), &tile, Style::default()).unwrap();
/// let svg = figure.svg(Theme::Auto);
/// assert!(svg.contains("thread 31, value 3 at (15,7)"));
/// ```
pub fn thread_value<'a>(heading: &str, tv: &Map, tile: &Tree<i64>, style: Style) -> Result<Figure<'a>, DrawError> {
    Ok(Figure::row([panel(heading, "", tv, tile, TileStyle::default(), style)?]))
}

/// As [`thread_value`], but a tile with more rows or columns than `most` shows only the first of
/// them, with a note below: so a page of many large tiles stays small.
///
/// Errors: as [`thread_value`].
///
/// ```
/// use tilewright_draw::{Map, Style, Theme, thread_value_corner};
/// use tilewright_layout::Layout;
///
/// // 128 threads hold a tile of 64 x 64, rows of 32 values each.
/// let rows: Layout = "((2,64),32):((2048,1),64)".parse().unwrap();
/// let tile = "(64,64)".parse().unwrap();
/// let figure = thread_value_corner("", &Map::from(&rows), &tile, [8, 16], Style::default()).unwrap();
/// let svg = figure.svg(Theme::Auto);
/// assert!(svg.contains("the first 8 × 16 of 64 × 64") && svg.contains("at (7,15)"));
/// assert!(!svg.contains("at (8,0)") && !svg.contains("at (0,16)"));
/// ```
pub fn thread_value_corner<'a>(
    heading: &str,
    tv: &Map,
    tile: &Tree<i64>,
    most: [i64; 2],
    style: Style,
) -> Result<Figure<'a>, DrawError> {
    let most = most.map(|side| side.max(1));
    Ok(Figure::row([panel(heading, "", tv, tile, TileStyle { most: Some(most), ..TileStyle::default() }, style)?]))
}

/// The two ends of a copy: the threads that read the positions of the source, and the threads that
/// write those of the target, in the same colours.
///
/// Errors: as [`thread_value`].
pub fn copy<'a>(source: &Map, target: &Map, tile: &Tree<i64>, style: Style) -> Result<Figure<'a>, DrawError> {
    let from = Figure::row([operand("source", source, tile, TileStyle::default(), style)?]);
    Ok(from.followed_by(Figure::row([operand("target", target, tile, TileStyle::default(), style)?])))
}

/// The operands of a matrix instruction in the usual arrangement: B (k by n) at the top right, A (m
/// by k) at the bottom left, C (m by n) at the bottom right, so that shared axes are aligned.
///
/// `operands` are the thread-value layouts of A over `(m,k)`, B over `(n,k)` and C over `(m,n)`, as
/// in CuTe; `extents` are m, n and k. If one tile has too many positions for text, all three are
/// images at one scale.
///
/// Errors: as [`thread_value`]; an extent is not positive.
pub fn mma<'a>(operands: [&Map; 3], extents: [i64; 3], style: Style) -> Result<Figure<'a>, DrawError> {
    let [a, b, c] = operands;
    let [m, n, k] = extents;
    let tile = |rows: i64, columns: i64| {
        let shape = Tree::flat([rows, columns])?;
        tilewright_layout::Layout::compact(&shape).map(|layout| layout.shape())
    };
    // If one tile has too many positions for text, all are images at one scale, so that the axes
    // are aligned.
    let coarse = ![(k, n), (m, k), (m, n)].into_iter().all(|(rows, columns)| fits(rows, columns));
    let shown = TileStyle { coarse, ..TileStyle::default() };
    let top = operand("B", b, &tile(n, k)?, TileStyle { transposed: true, ..shown }, style)?;
    let left = operand("A", a, &tile(m, k)?, shown, style)?;
    let right = operand("C", c, &tile(m, n)?, shown, style)?;
    Ok(Figure { table: vec![vec![None, Some(top)], vec![Some(left), Some(right)]], ..Figure::default() })
}
