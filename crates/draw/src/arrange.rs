//! Page layout of figures: from panels to a scene.
//!
//! Law: a cell is as wide as the widest text of its grid needs. Borders are nested: a thin line
//! between cells, a heavier one where a leaf of a mode wraps, the heaviest around everything. Grids
//! below one another with equally many columns have cells of one width, and those side by side with
//! equally many rows have cells of one height, so that shared axes are aligned. A grid of more than
//! [`MAX_CELLS`] cells, or more than [`MAX_SIDE`] rows or [`MAX_COLUMNS`] columns, shows the first
//! rows and columns and the last ones. A grid of few rows is broken into bands below one another
//! instead, and figures side by side into lines of at most [`MAX_LINE`].

mod cells;

use std::collections::HashMap;
use std::ops::Range;

use cells::Cells;

use crate::figure::{Body, Figure, Legend, Panel};
use crate::image::Image;
use crate::measure::{fitted, text_width, wrapped};
use crate::scene::{Anchor, Frame, Point, Scene, Step, Stroke, TextStyle, Tile};
use crate::theme::{self, Paint};

/// The largest number of cells of one grid that are drawn on a page.
pub const MAX_CELLS: i64 = 20_000;
/// The largest number of rows of one grid, or of columns of a grid with few rows, that are drawn on
/// a page.
pub const MAX_SIDE: i64 = 256;
/// The number of rows or columns that are drawn of a grid that is not shown in full.
const CUT_SIDE: usize = 64;
/// The largest number of columns of one grid that are side by side on a page.
pub const MAX_COLUMNS: i64 = 128;
/// The largest number of columns of a band, and of rows of a grid that is broken into bands.
const BAND: i64 = 32;
const BAND_ROWS: i64 = 4;
/// The width, in CSS pixels, beyond which figures side by side are broken into lines.
pub const MAX_LINE: f64 = 1600.0;
/// The largest number of lines of a heading.
const HEADING_LINES: usize = 4;
/// The longest side of an image, in CSS pixels.
const IMAGE_SIDE: f64 = 512.0;
/// The number of ticks on a side of an image, and the smallest distance between the ticks of
/// columns. A side that is too short for this distance has only the first tick.
const IMAGE_TICKS: usize = 4;
const TICK_ROOM: f64 = 24.0;
/// The smallest width to which captions are wrapped.
const CAPTION_WIDTH: f64 = 360.0;
/// The height of a line of ticks, and of a line of text.
const TICK_LINE: f64 = 14.0;
const TEXT_LINE: f64 = 18.0;

/// Whether a grid of this size is drawn cell by cell, in full.
pub(crate) fn fits(rows: i64, columns: i64) -> bool {
    rows.max(columns) <= MAX_SIDE && rows.saturating_mul(columns) <= MAX_CELLS
}

/// The number of rows and columns of a grid that are drawn on a page.
fn limits(rows: i64, columns: i64) -> [usize; 2] {
    if !fits(rows, columns) {
        return [CUT_SIDE; 2];
    }
    let wide = rows > BAND_ROWS && columns > MAX_COLUMNS;
    let all = |len: i64| usize::try_from(len).unwrap_or(usize::MAX);
    [all(rows), if wide { CUT_SIDE } else { all(columns) }]
}

impl Figure<'_> {
    /// The side of a pixel of the images. All images have the same scale, so that images that share
    /// an axis are aligned.
    fn pixel(&self) -> f64 {
        let sides = self.panels().filter_map(|panel| match &panel.body {
            Body::Image { image, .. } => Some(image.width().max(image.height()) as f64),
            _ => None,
        });
        (IMAGE_SIDE / sides.fold(1.0, f64::max)).floor().max(1.0)
    }

    /// The figure as a scene.
    pub fn scene(&self) -> Scene {
        let mut scene = Scene::new();
        let mut panels: Vec<Vec<Option<Drawn<'_>>>> = Vec::with_capacity(self.table.len());
        let pixel = self.pixel();
        for row in &self.table {
            let row = row.iter().map(|panel| panel.as_ref().map(|panel| Drawn::new(panel, pixel, &mut scene)));
            panels.push(row.collect());
        }
        align(&mut panels);
        let most = |parts: &mut dyn Iterator<Item = f64>| parts.fold(0.0, f64::max);
        let gap = theme::SPACE * 1.25;
        let lines = self.lines(&panels, gap);
        let width = lines.iter().map(|line| line.width).fold(0.0, f64::max);
        let mut top = 0.0;
        for line in wrapped(&self.title, theme::TITLE_TEXT, true, width.max(CAPTION_WIDTH) / theme::OTHER_FONTS) {
            scene.text(Point::new(0.0, top + theme::TITLE_TEXT / 2.0), &line, TextStyle::title());
            top += theme::TITLE_TEXT + theme::STEP;
        }
        if !self.title.is_empty() {
            top += theme::SPACE * 0.75 - theme::STEP;
        }
        for ColumnGroup { columns, lefts, .. } in &lines {
            for row in &panels {
                let row = row.get(columns.start..columns.end.min(row.len())).unwrap_or_default();
                let parts = || row.iter().flatten();
                if parts().next().is_none() && lines.len() > 1 {
                    continue;
                }
                let above = most(&mut parts().map(|part| part.above));
                let height = most(&mut parts().map(|part| part.height + part.below));
                let mut before = f64::INFINITY;
                for (part, left) in row.iter().zip(lefts) {
                    if let Some(part) = part {
                        let at = Point::new(*left, top + above);
                        part.draw(&mut scene, at, above);
                        if part.follows {
                            part.arrow(&mut scene, at, gap, before.min(part.height));
                        }
                        before = part.height;
                    }
                }
                top += above + height + theme::SPACE;
            }
        }
        top -= theme::SPACE;
        let width = width.max(scene.bounds().width);
        if let Some(legend) = &self.legend {
            top = draw_legend(&mut scene, legend, top + theme::SPACE * 0.75, width.max(CAPTION_WIDTH));
        }
        if !self.caption.is_empty() {
            top += theme::SPACE * 0.75;
            for line in wrapped(&self.caption, theme::TEXT, false, width.max(CAPTION_WIDTH) / theme::OTHER_FONTS) {
                scene.text(Point::new(0.0, top + TEXT_LINE / 2.0), &line, TextStyle::caption());
                top += TEXT_LINE;
            }
        }
        scene
    }

    /// The columns of the table in lines: all in one, or in several if one would be wider than
    /// [`MAX_LINE`] and the figure may be broken.
    fn lines(&self, panels: &[Vec<Option<Drawn<'_>>>], gap: f64) -> Vec<ColumnGroup> {
        let count = panels.iter().map(Vec::len).max().unwrap_or(0);
        let sizes: Vec<(f64, f64)> = (0..count).map(|column| sides(panels, column)).collect();
        let length = |columns: &Range<usize>| {
            let sizes = sizes.get(columns.clone()).unwrap_or_default();
            sizes.iter().map(|(gutter, width)| gutter + width + gap).sum::<f64>() - gap
        };
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut begin = 0;
        let ends = self.breaks.iter().copied().filter(|column| (1..count).contains(column)).chain([count]);
        for end in ends {
            match parts.last_mut() {
                Some(line) if length(&(line.start..end)) <= MAX_LINE => line.end = end,
                _ => parts.push(begin..end),
            }
            begin = end;
        }
        let line = |columns: Range<usize>| {
            let mut right = 0.0;
            let place = |(gutter, width): &(f64, f64)| {
                let left = right + gutter;
                right = left + width + gap;
                left
            };
            let lefts = sizes.get(columns.clone()).unwrap_or_default().iter().map(place).collect();
            ColumnGroup { width: length(&columns), lefts, columns }
        };
        parts.into_iter().map(line).collect()
    }
}

/// Columns of a figure's table that are side by side.
struct ColumnGroup {
    columns: Range<usize>,
    /// The left edge of the body of each.
    lefts: Vec<f64>,
    width: f64,
}

/// The width of the ticks to the left of a column of the table, and the width of the rest.
fn sides(panels: &[Vec<Option<Drawn<'_>>>], column: usize) -> (f64, f64) {
    let parts = || panels.iter().filter_map(|row| Some((row, row.get(column)?.as_ref()?)));
    let gutter = parts().map(|(_, part)| part.left).fold(0.0, f64::max);
    let widths = parts().map(|(row, part)| {
        // A heading's first line may extend above a neighbour without a first line.
        let free = row.get(column + 1).and_then(Option::as_ref).is_some_and(Drawn::leaves_first_line);
        part.width.max(if free { part.rest } else { part.words })
    });
    (gutter, widths.fold(0.0, f64::max))
}

/// Gives grids in one column of the table that have equally many columns the same cell width, and
/// grids in one row that have equally many rows the same cell height.
fn align(panels: &mut [Vec<Option<Drawn<'_>>>]) {
    let mut longest: HashMap<(bool, usize, i64), f64> = HashMap::new();
    // The alignment keys of a panel: its columns align with panels below, its rows with panels
    // beside it.
    let keys = |row: usize, column: usize, cells: &Cells| {
        let [columns, rows] = cells.steps();
        [((true, column, columns.0), columns.1), ((false, row, rows.0), rows.1)]
    };
    for (row, parts) in panels.iter().enumerate() {
        for (column, part) in parts.iter().enumerate() {
            if let Some(Drawn { body: ArrangedPart::Cells(cells), .. }) = part {
                for (key, step) in keys(row, column, cells) {
                    let longest = longest.entry(key).or_insert(step);
                    *longest = longest.max(step);
                }
            }
        }
    }
    for (row, parts) in panels.iter_mut().enumerate() {
        for (column, part) in parts.iter_mut().enumerate() {
            if let Some(Drawn { body: ArrangedPart::Cells(cells), width, height, .. }) = part {
                let [across, down] =
                    keys(row, column, cells).map(|(key, step)| longest.get(&key).copied().unwrap_or(step));
                cells.stretch(across, down);
                (*width, *height) = cells.size();
            }
        }
    }
}

fn draw_legend(scene: &mut Scene, legend: &Legend, top: f64, width: f64) -> f64 {
    const SWATCH: f64 = 12.0;
    let style = TextStyle { size: 10.5, ..TextStyle::caption() };
    match legend {
        Legend::Names(names) => {
            let (mut x, mut y) = (0.0, top);
            for (paint, name) in names {
                let needed = SWATCH + theme::STEP + text_width(name, style.size, false) + 14.0;
                if x > 0.0 && x + needed > width {
                    (x, y) = (0.0, y + TEXT_LINE);
                }
                let tile = Tile::at(x, y, SWATCH, SWATCH).filled(*paint).rounded(2.0);
                scene.tile(tile.bordered(Stroke::new(Paint::Rule, theme::HAIRLINE)), "", "", "");
                scene.text(Point::new(x + SWATCH + theme::STEP, y + SWATCH / 2.0), name, style);
                x += needed;
            }
            y + SWATCH
        }
        Legend::Ramp(least, greatest) => {
            let steps = Image::new(64, (0..64).map(|step| Paint::Heat(step * 4)).collect());
            let left = text_width(least, style.size, false) + theme::STEP;
            scene.text(Point::new(0.0, top + SWATCH / 2.0), least, style);
            scene.image(Frame::new(left, top, 160.0, SWATCH), steps);
            scene.text(Point::new(left + 160.0 + theme::STEP, top + SWATCH / 2.0), greatest, style);
            top + SWATCH
        }
    }
}

/// A panel with the space that it needs around its body.
struct Drawn<'a> {
    heading: Vec<String>,
    note: Vec<String>,
    follows: bool,
    minor: bool,
    body: ArrangedPart<'a>,
    left: f64,
    above: f64,
    width: f64,
    height: f64,
    below: f64,
    /// The width of the heading and the note.
    words: f64,
    /// The lines of the heading after the first.
    rest: f64,
}

enum ArrangedPart<'a> {
    Cells(Box<Cells>),
    Image(&'a Image, (i64, i64)),
    Scene(&'a Scene),
}

impl<'a> Drawn<'a> {
    fn new(panel: &'a Panel<'_>, pixel: f64, scene: &mut Scene) -> Drawn<'a> {
        let (body, left, above, width, height) = match &panel.body {
            Body::Grid(grid) => {
                let cells = Cells::of(grid, scene);
                let (left, above, (width, height)) = (cells.gutter(), cells.header(), cells.size());
                (ArrangedPart::Cells(Box::new(cells)), left, above, width, height)
            }
            Body::Image { image, block } => {
                let (columns, rows) = (image.width() as f64, image.height() as f64);
                let widest = image_ticks(image.height(), block.0).map(|(_, tick)| tick).last().unwrap_or_default();
                let left = text_width(&widest, theme::SMALL_TEXT, false) + theme::STEP + 2.0;
                (ArrangedPart::Image(image, *block), left, TICK_LINE, columns * pixel, rows * pixel)
            }
            Body::Scene(scene) => (ArrangedPart::Scene(scene), 0.0, 0.0, scene.bounds().width, scene.bounds().height),
        };
        let room = (left + width).max(CAPTION_WIDTH);
        let heading = headed(&panel.heading, room / theme::OTHER_FONTS);
        let note = wrapped(&panel.note, 10.5, false, room / theme::OTHER_FONTS);
        let named = if heading.is_empty() { 0.0 } else { heading.len() as f64 * TEXT_LINE + theme::STEP / 2.0 };
        // A diagram has no ticks between itself and the heading, so the heading gets extra space.
        let named = if named > 0.0 && matches!(body, ArrangedPart::Scene(_)) { named + theme::STEP } else { named };
        let noted = if panel.note.is_empty() { 0.0 } else { note.len() as f64 * TEXT_LINE + theme::STEP };
        let widest = note.iter().map(|line| text_width(line, 10.5, false)).fold(0.0, f64::max);
        // The heading is above the body, and the note below it.
        let longest = heading.iter().map(|line| text_width(line, theme::TEXT, true)).fold(0.0, f64::max);
        let words = longest.max(widest) * theme::OTHER_FONTS;
        let later = heading.iter().skip(1).map(|line| text_width(line, theme::TEXT, true)).fold(widest, f64::max);
        let (above, rest) = (above + named, later * theme::OTHER_FONTS);
        Drawn {
            heading,
            note,
            follows: panel.follows,
            minor: panel.minor,
            body,
            left,
            above,
            width,
            height,
            below: noted,
            words,
            rest,
        }
    }

    /// Whether the first line of its heading is empty.
    fn leaves_first_line(&self) -> bool {
        self.heading.first().is_some_and(String::is_empty)
    }

    /// Draws the panel with the top left corner of its body at a point, and its heading `above` the
    /// body, aligned with those of its neighbours.
    fn draw(&self, scene: &mut Scene, at: Point, above: f64) {
        for (line, text) in self.heading.iter().enumerate() {
            let style = if line == 0 && !self.minor { TextStyle::heading() } else { TextStyle::plain() };
            let y = at.y - above + (line as f64 + 0.5) * TEXT_LINE;
            if !text.is_empty() {
                scene.text(Point::new(at.x, y), text, style);
            }
        }
        match &self.body {
            ArrangedPart::Cells(cells) => cells.draw(scene, at),
            ArrangedPart::Image(image, (down, right)) => {
                let frame = Frame::new(at.x, at.y, self.width, self.height);
                scene.image(frame, (*image).clone());
                border(scene, frame, line_of(1));
                let room = |side: f64, least: f64| if side < least * IMAGE_TICKS as f64 { 1 } else { IMAGE_TICKS };
                for (place, tick) in image_ticks(image.width(), *right).take(room(self.width, TICK_ROOM)) {
                    let x = at.x + place * self.width;
                    let style = TextStyle::small().anchored(Anchor::Middle);
                    scene.text(Point::new(x, at.y - TICK_LINE / 2.0), &tick, style);
                }
                for (place, tick) in image_ticks(image.height(), *down).take(room(self.height, TICK_LINE)) {
                    let y = at.y + place * self.height;
                    scene.text(Point::new(at.x - theme::STEP, y), &tick, TextStyle::small().anchored(Anchor::End));
                }
            }
            ArrangedPart::Scene(other) => {
                let bounds = other.bounds();
                scene.insert(other, Point::new(at.x - bounds.x, at.y - bounds.y));
            }
        }
        for (line, text) in self.note.iter().enumerate() {
            let y = at.y + self.height + theme::STEP + (line as f64 + 0.5) * TEXT_LINE;
            scene.text(Point::new(at.x, y), text, TextStyle { size: 10.5, ..TextStyle::caption() });
        }
    }

    /// Draws the arrow that leads to this panel, at the middle height of the panels on both sides.
    fn arrow(&self, scene: &mut Scene, at: Point, gap: f64, height: f64) {
        let y = at.y + height / 2.0;
        let tip = at.x - self.left - theme::STEP;
        let stroke = Stroke::new(Paint::Faint, 1.5);
        scene.arrow(&[Point::new(tip - gap + 2.0 * theme::STEP, y), Point::new(tip, y)], stroke);
    }
}

/// The lines of a heading: a single line that is too long is broken; of several lines each is
/// shortened.
fn headed(heading: &str, room: f64) -> Vec<String> {
    if heading.lines().count() > 1 {
        return heading.lines().map(|line| fitted(line, theme::TEXT, true, room)).collect();
    }
    if text_width(heading, theme::TEXT, true) <= room {
        return heading.lines().map(str::to_owned).collect();
    }
    let mut lines = wrapped(heading, theme::TEXT, true, room);
    if lines.len() > HEADING_LINES {
        let rest = lines.split_off(HEADING_LINES - 1).concat();
        lines.push(fitted(&rest, theme::TEXT, true, room));
    }
    lines
}

/// Ticks at the quarters of a side of an image: the position, as a fraction of the side, and the
/// number of the cell that begins there.
fn image_ticks(pixels: usize, block: i64) -> impl Iterator<Item = (f64, String)> {
    (0..IMAGE_TICKS).map(move |number| {
        let pixel = pixels * number / IMAGE_TICKS;
        let cell = i64::try_from(pixel).unwrap_or(0).saturating_mul(block);
        (pixel as f64 / pixels.max(1) as f64, cell.to_string())
    })
}

fn border(scene: &mut Scene, frame: Frame, stroke: Stroke) {
    let (right, bottom) = (frame.x + frame.width, frame.y + frame.height);
    let corners = [Point::new(right, frame.y), Point::new(right, bottom), Point::new(frame.x, bottom)];
    let mut steps = vec![Step::Move(Point::new(frame.x, frame.y))];
    steps.extend(corners.map(Step::Line));
    steps.push(Step::Close);
    scene.path(&steps, None, Some(stroke));
}

/// The line for a weight: 0 is a line between cells; more is the number of leaves that restart.
fn line_of(weight: usize) -> Stroke {
    match u32::try_from(weight).unwrap_or(u32::MAX).min(4) {
        0 => Stroke::new(Paint::Rule, theme::HAIRLINE),
        level => Stroke::new(Paint::Border, theme::BORDER + 0.75 * f64::from(level - 1)),
    }
}
