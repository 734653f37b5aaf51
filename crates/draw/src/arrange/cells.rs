//! The cells of a grid on a page: which are shown, how wide they are, and the lines, outlines and
//! ticks around them.

use crate::arrange::{BAND, BAND_ROWS, CUT_SIDE, TICK_LINE, border, limits, line_of};
use crate::axis::{Axis, visible};
use crate::grid::{Cell, Grid};
use crate::measure::text_width;
use crate::scene::{Anchor, Frame, Point, Scene, Step, Stroke, TextStyle, Tile};
use crate::theme::{self, Paint};

/// One side of a grid on the page: the positions that are shown, and where each begins.
pub(super) struct ShownAxis {
    axis: Axis,
    shown: Vec<Option<i64>>,
    starts: Vec<f64>,
    cell: f64,
}

impl ShownAxis {
    fn new(axis: &Axis, shown: Vec<Option<i64>>, cell: f64) -> ShownAxis {
        let mut at = 0.0;
        let mut starts: Vec<f64> = Vec::with_capacity(shown.len() + 1);
        for position in &shown {
            starts.push(at);
            at += if position.is_some() { cell } else { theme::GAP };
        }
        starts.push(at);
        ShownAxis { axis: axis.clone(), shown, starts, cell }
    }

    /// The number of positions, and the length of each.
    pub(super) fn step(&self) -> (i64, f64) {
        (self.axis.len(), self.cell)
    }

    /// Sets the length of each position.
    pub(super) fn stretch(&mut self, cell: f64) {
        *self = ShownAxis::new(&self.axis, std::mem::take(&mut self.shown), cell);
    }

    fn start(&self, at: usize) -> f64 {
        self.starts.get(at).copied().unwrap_or_default()
    }

    pub(super) fn end(&self) -> f64 {
        self.starts.last().copied().unwrap_or_default()
    }

    /// The positions and weights of lines between visible cells; none beside a gap.
    fn lines(&self) -> impl Iterator<Item = (f64, usize)> {
        let pairs = self.shown.iter().zip(self.shown.iter().skip(1)).enumerate();
        pairs.filter_map(|(at, pair)| match pair {
            (Some(_), Some(position)) => Some((self.start(at + 1), self.axis.weight(*position))),
            (Some(_), None) | (None, Some(_)) => Some((self.start(at + 1), 0)),
            (None, None) => None,
        })
    }

    /// The ticks of a level: the middle of each run of positions with one tick, and the tick.
    fn ticks(&self, level: usize) -> Vec<(f64, String)> {
        let run = self.axis.run(level);
        let mut ticks: Vec<(f64, f64, i64, String)> = Vec::new();
        for (at, position) in self.shown.iter().enumerate() {
            let Some(position) = position else { continue };
            let group = position.checked_div(run).unwrap_or(0);
            let (start, end) = (self.start(at), self.start(at + 1));
            match ticks.last_mut() {
                Some((_, last, known, _)) if *known == group && *last == start => *last = end,
                _ => ticks.push((start, end, group, self.axis.tick_text(*position, level))),
            }
        }
        ticks.into_iter().map(|(start, end, _, tick)| ((start + end) / 2.0, tick)).collect()
    }

    fn levels(&self) -> usize {
        if self.axis.is_ticked() { self.axis.levels() } else { 0 }
    }
}

/// The cells of a grid that are shown, in one band or several. Bands are below one another if the
/// grid has few rows, and side by side if it has few columns.
pub(super) struct Cells {
    bands: Vec<Band>,
    beside: bool,
}

/// Columns of a grid that are side by side, with their cells.
struct Band {
    rows: ShownAxis,
    columns: ShownAxis,
    tiles: Vec<(Paint, bool, Option<u32>, u32)>,
    /// The ends of each cell's label, second line and title in the texts of the scene, and the
    /// beginning of the first.
    ends: Vec<[u32; 3]>,
    begin: u32,
    outline: Option<Paint>,
    level_widths: Vec<f64>,
}

/// The columns (or rows) that are shown, in bands if there are few rows (or columns) `across`. If
/// possible, a band ends with a whole run of a mode.
fn bands(axis: &Axis, across: i64, shown: Vec<Option<i64>>) -> Vec<Vec<Option<i64>>> {
    if across > BAND_ROWS || shown.len() <= CUT_SIDE {
        return vec![shown];
    }
    let mut runs = (0..axis.levels()).map(|level| axis.run(level)).filter(|run| *run <= BAND);
    let run = runs.next_back().unwrap_or(1).max(1);
    let len = usize::try_from(BAND / run * run).unwrap_or(1).max(1);
    shown.chunks(len).map(<[Option<i64>]>::to_vec).collect()
}

impl Cells {
    /// The cells of a grid. Their texts are written directly into the scene in which they are
    /// drawn, because there are many.
    pub(super) fn of(grid: &Grid<'_>, scene: &mut Scene) -> Cells {
        let (height, width) = (grid.rows.len(), grid.columns.len());
        let [down, across] = limits(height, width);
        let (rows, columns) = (visible(height, down), visible(width, across));
        let beside = height > width;
        let bands: Vec<Band> = if beside {
            let parts = bands(&grid.rows, width, rows).into_iter();
            parts.map(|rows| Band::of(grid, rows, columns.clone(), scene)).collect()
        } else {
            let parts = bands(&grid.columns, height, columns).into_iter();
            parts.map(|columns| Band::of(grid, rows.clone(), columns, scene)).collect()
        };
        let mut cells = Cells { bands, beside };
        // The cells of all bands have the same size.
        let [columns, rows] = cells.steps();
        cells.stretch(columns.1, rows.1);
        cells
    }

    /// For columns and for rows: how many there are, and the length of the longest.
    pub(super) fn steps(&self) -> [(i64, f64); 2] {
        let longest = |side: fn(&Band) -> &ShownAxis| {
            let steps = self.bands.iter().map(|band| side(band).step());
            steps.fold((0, 0.0), |(_, longest), (len, cell)| (len, f64::max(longest, cell)))
        };
        [longest(|band| &band.columns), longest(|band| &band.rows)]
    }

    /// Sets the width of each column and the height of each row.
    pub(super) fn stretch(&mut self, across: f64, down: f64) {
        for band in &mut self.bands {
            band.columns.stretch(across);
            band.rows.stretch(down);
        }
    }

    pub(super) fn gutter(&self) -> f64 {
        self.bands.iter().map(Band::gutter).fold(0.0, f64::max)
    }

    pub(super) fn header(&self) -> f64 {
        self.bands.first().map_or(0.0, Band::header)
    }

    /// The width and the height, without the ticks to the left of the first band and above it.
    pub(super) fn size(&self) -> (f64, f64) {
        if self.beside {
            let widths = self.bands.iter().map(|band| self.gutter() + band.columns.end() + theme::SPACE);
            let height = self.bands.iter().map(|band| band.rows.end()).fold(0.0, f64::max);
            return (widths.sum::<f64>() - theme::SPACE - self.gutter(), height);
        }
        let width = self.bands.iter().map(|band| band.columns.end()).fold(0.0, f64::max);
        let heights = self.bands.iter().map(|band| band.header() + band.rows.end() + theme::SPACE);
        (width, heights.sum::<f64>() - theme::SPACE - self.header())
    }

    pub(super) fn draw(&self, scene: &mut Scene, at: Point) {
        if self.beside {
            let mut x = at.x;
            for band in &self.bands {
                band.draw(scene, Point::new(x, at.y));
                x += band.columns.end() + theme::SPACE + self.gutter();
            }
            return;
        }
        let mut y = at.y - self.header();
        for band in &self.bands {
            y += band.header();
            band.draw(scene, Point::new(at.x, y));
            y += band.rows.end() + theme::SPACE;
        }
    }
}

impl Band {
    fn of(grid: &Grid<'_>, rows: Vec<Option<i64>>, columns: Vec<Option<i64>>, scene: &mut Scene) -> Band {
        let count = rows.len() * columns.len();
        let (mut tiles, mut ends) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let begin = scene.text_end();
        scene.expect(count);
        let mut cell = Cell::default();
        let (mut widest, mut lines) = (0.0_f64, 1);
        let mut long = 0;
        for row in rows.iter().flatten() {
            for column in columns.iter().flatten() {
                grid.fill(*row, *column, &mut cell);
                tiles.push((cell.fill, cell.faint, cell.link, cell.region));
                // Most labels are short numbers of equal width; only longer ones need to be
                // measured.
                if cell.label.len() >= long || cell.second.len() > long {
                    long = long.max(cell.label.len());
                    let second = text_width(&cell.second, theme::SMALL_TEXT, false);
                    widest = widest.max(text_width(&cell.label, theme::CELL_TEXT, false)).max(second);
                }
                if !cell.second.is_empty() && !cell.label.is_empty() {
                    lines = 2;
                }
                ends.push(scene.texts([&cell.label, &cell.second, &cell.title]));
            }
        }
        let height = if lines == 2 { theme::TALL_CELL } else { theme::CELL };
        let width = (widest + 2.0 * theme::CELL_PADDING).ceil().max(height);
        let rows = ShownAxis::new(&grid.rows, rows, height);
        let columns = ShownAxis::new(&grid.columns, columns, width);
        let level_widths = (0..rows.levels()).map(|level| {
            let texts = rows.ticks(level).into_iter().map(|(_, tick)| tick);
            texts.map(|text| text_width(&text, theme::SMALL_TEXT, false)).fold(0.0, f64::max) + theme::STEP + 2.0
        });
        let level_widths = level_widths.collect();
        Band { rows, columns, tiles, ends, begin, outline: grid.outline(), level_widths }
    }

    fn header(&self) -> f64 {
        let titles = [&self.rows, &self.columns].iter().any(|side| side.axis.title().is_some());
        (self.columns.levels() + usize::from(titles)) as f64 * TICK_LINE
    }

    /// The space for the ticks of rows, and for their title above them.
    fn gutter(&self) -> f64 {
        let title = self.rows.axis.title().map_or(0.0, |title| text_width(title, theme::SMALL_TEXT, false));
        let ticks = self.level_widths.iter().sum::<f64>();
        ticks.max(if title > 0.0 { title + theme::STEP + 2.0 } else { 0.0 })
    }

    fn draw(&self, scene: &mut Scene, at: Point) {
        let (rows, columns) = (places(&self.rows), places(&self.columns));
        let (width, height) = (self.columns.cell, self.rows.cell);
        let count = columns.len().max(1);
        let tiles = self.tiles.iter().zip(&self.ends).enumerate().map(|(number, ((fill, faint, link, _), ends))| {
            let start = |places: &[(f64, f64)], number: usize| places.get(number).map_or(0.0, |place| place.0);
            let (x, y) = (at.x + start(&columns, number % count), at.y + start(&rows, number / count));
            (Tile { faint: *faint, link: *link, ..Tile::at(x, y, width, height) }.filled(*fill), *ends)
        });
        scene.grid(Frame::new(at.x, at.y, self.columns.end(), self.rows.end()), self.begin, tiles);
        self.gaps(scene, at);
        self.lines(scene, at);
        self.regions(scene, at);
        self.ticks(scene, at);
    }

    /// Draws dots where rows or columns are omitted.
    fn gaps(&self, scene: &mut Scene, at: Point) {
        let style = TextStyle { size: theme::TEXT, ..TextStyle::small() }.anchored(Anchor::Middle);
        for (row, down) in self.rows.shown.iter().enumerate() {
            for (column, right) in self.columns.shown.iter().enumerate() {
                let dots = match (down, right) {
                    (Some(_), Some(_)) | (None, None) => continue,
                    (Some(_), None) => "…",
                    (None, Some(_)) => "⋮",
                };
                let x = (self.columns.start(column) + self.columns.start(column + 1)) / 2.0;
                let y = (self.rows.start(row) + self.rows.start(row + 1)) / 2.0;
                scene.text(Point::new(at.x + x, at.y + y), dots, style);
            }
        }
    }

    /// Draws the lines between cells: thin ones as one path, and heavier ones where leaves restart.
    fn lines(&self, scene: &mut Scene, at: Point) {
        let (right, bottom) = (at.x + self.columns.end(), at.y + self.rows.end());
        let mut all: Vec<(usize, Point, Point)> = Vec::new();
        all.extend(
            self.columns.lines().map(|(x, weight)| (weight, Point::new(at.x + x, at.y), Point::new(at.x + x, bottom))),
        );
        all.extend(
            self.rows.lines().map(|(y, weight)| (weight, Point::new(at.x, at.y + y), Point::new(right, at.y + y))),
        );
        let heaviest = all.iter().map(|line| line.0).max().unwrap_or(0);
        for weight in 0..=heaviest {
            let chosen = all.iter().filter(|line| line.0 == weight);
            let steps: Vec<Step> = chosen.flat_map(|(_, from, to)| [Step::Move(*from), Step::Line(*to)]).collect();
            if !steps.is_empty() {
                scene.path(&steps, None, Some(line_of(weight)));
            }
        }
        border(scene, Frame::new(at.x, at.y, right - at.x, bottom - at.y), line_of(heaviest + 1));
    }

    /// Draws the outlines of regions: lines between cells of different regions.
    fn regions(&self, scene: &mut Scene, at: Point) {
        let Some(paint) = self.outline else { return };
        let (rows, columns) = (places(&self.rows), places(&self.columns));
        let width = columns.len();
        let region = |row: usize, column: usize| {
            let inside = row < rows.len() && column < width;
            if inside { self.tiles.get(row * width + column).map_or(0, |tile| tile.3) } else { 0 }
        };
        let mut steps: Vec<Step> = Vec::new();
        let mut edge = |from: Point, to: Point| {
            // A line that continues the previous one extends it.
            match steps.last_mut() {
                Some(Step::Line(end)) if *end == from => *end = to,
                _ => steps.extend([Step::Move(from), Step::Line(to)]),
            }
        };
        // Cells outside the grid belong to no region.
        for row in 0..=rows.len() {
            for (column, (left, right)) in columns.iter().enumerate() {
                let above = row.checked_sub(1).map_or(0, |above| region(above, column));
                let y = rows.get(row).map_or_else(|| self.rows.end(), |(top, _)| *top);
                if above != region(row, column) {
                    edge(Point::new(at.x + left, at.y + y), Point::new(at.x + right, at.y + y));
                }
            }
        }
        for column in 0..=width {
            for (row, (top, bottom)) in rows.iter().enumerate() {
                let before = column.checked_sub(1).map_or(0, |before| region(row, before));
                let x = columns.get(column).map_or_else(|| self.columns.end(), |(left, _)| *left);
                if before != region(row, column) {
                    edge(Point::new(at.x + x, at.y + top), Point::new(at.x + x, at.y + bottom));
                }
            }
        }
        if !steps.is_empty() {
            scene.path(&steps, None, Some(Stroke::new(paint, theme::OUTLINE)));
        }
    }

    fn ticks(&self, scene: &mut Scene, at: Point) {
        let y = at.y - (self.columns.levels() as f64 + 0.5) * TICK_LINE;
        if let Some(title) = self.columns.axis.title() {
            let style = TextStyle::small().anchored(Anchor::Middle);
            scene.text(Point::new(at.x + self.columns.end() / 2.0, y), title, style);
        }
        if let Some(title) = self.rows.axis.title() {
            scene.text(Point::new(at.x - theme::STEP, y), title, TextStyle::small().anchored(Anchor::End));
        }
        let column_style = TextStyle::small().anchored(Anchor::Middle);
        for level in 0..self.columns.levels() {
            let y = at.y - (level as f64 + 0.5) * TICK_LINE;
            for (x, tick) in self.columns.ticks(level) {
                scene.text(Point::new(at.x + x, y), &tick, column_style);
            }
        }
        let row_style = TextStyle::small().anchored(Anchor::End);
        let mut x = at.x;
        for (level, width) in self.level_widths.iter().enumerate() {
            for (y, tick) in self.rows.ticks(level) {
                scene.text(Point::new(x - theme::STEP, at.y + y), &tick, row_style);
            }
            x -= width;
        }
    }
}

/// The beginning and the end of each cell along a side, without gaps.
fn places(side: &ShownAxis) -> Vec<(f64, f64)> {
    let shown = side.shown.iter().enumerate().filter(|(_, position)| position.is_some());
    shown.map(|(at, _)| (side.start(at), side.start(at + 1))).collect()
}
