//! Pictures made of text: grids of cells with ticks, and pictures side by side.
//!
//! A picture is data until it is printed, and its text alone says everything: colour repeats what the cells say. So it
//! reads the same in a pipe. Rows are mode 0, downward; columns are mode 1, rightward; ticks stand outside.

use tilewright::Tree;

/// How a piece of text is coloured, where colour is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Faint,
    Strong,
    Good,
    Bad,
    /// One of eight greys, far apart for neighbouring numbers.
    Grey(i64),
    /// One of eight pale colours, for threads, warps and banks.
    Hue(i64),
}

impl Paint {
    /// The escape sequence that switches it on; nothing for plain text.
    fn start(self) -> String {
        // Xterm's 256 colours: black!00,40,20,60,10,50,30,70 and the pastels of CuTe's thread pictures.
        const GREYS: [(u8, u8); 8] =
            [(231, 16), (246, 16), (252, 16), (241, 231), (254, 16), (244, 16), (249, 16), (239, 231)];
        const HUES: [u8; 8] = [147, 157, 229, 217, 189, 194, 230, 224];
        let wheel = |n: i64| usize::try_from(n.rem_euclid(8)).unwrap_or(0);
        match self {
            Paint::Plain => String::new(),
            Paint::Faint => "\x1b[2m".to_owned(),
            Paint::Strong => "\x1b[1m".to_owned(),
            Paint::Good => "\x1b[32m".to_owned(),
            Paint::Bad => "\x1b[1;31m".to_owned(),
            Paint::Grey(n) => {
                GREYS.get(wheel(n)).map_or(String::new(), |(bg, fg)| format!("\x1b[48;5;{bg};38;5;{fg}m"))
            }
            Paint::Hue(n) => HUES.get(wheel(n)).map_or(String::new(), |bg| format!("\x1b[48;5;{bg};38;5;16m")),
        }
    }
}

/// Text in one colour, coloured only if `colour` is set.
pub fn painted(text: &str, paint: Paint, colour: bool) -> String {
    if !colour || paint == Paint::Plain { text.to_owned() } else { format!("{}{text}\x1b[0m", paint.start()) }
}

fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// One line: pieces of text, each in one colour.
#[derive(Debug, Clone, Default)]
struct Line(Vec<(String, Paint)>);

impl Line {
    fn push(&mut self, text: impl Into<String>, paint: Paint) {
        self.0.push((text.into(), paint));
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| width_of(text)).sum()
    }
}

/// Lines of text with colours.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    lines: Vec<Line>,
}

impl Picture {
    /// The picture with one line of text above it.
    #[must_use]
    pub fn captioned(mut self, caption: &str) -> Picture {
        let mut line = Line::default();
        line.push(caption, Paint::Strong);
        self.lines.insert(0, line);
        self
    }

    /// This picture and another to its right, top lines level.
    #[must_use]
    pub fn beside(mut self, gap: usize, right: Picture) -> Picture {
        let width = self.width() + gap;
        let height = self.lines.len().max(right.lines.len());
        self.lines.resize_with(height, Line::default);
        for (line, more) in self.lines.iter_mut().zip(right.lines) {
            let pad = width.saturating_sub(line.width());
            line.push(" ".repeat(pad), Paint::Plain);
            line.0.extend(more.0);
        }
        self
    }

    /// The widest line, in characters.
    pub fn width(&self) -> usize {
        self.lines.iter().map(Line::width).max().unwrap_or(0)
    }

    /// The picture as text, each line after `indent` spaces.
    pub fn text(&self, indent: usize, colour: bool) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let mut row = " ".repeat(indent);
            for (text, paint) in &line.0 {
                row.push_str(&painted(text, *paint, colour));
            }
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }
}

/// One side of a grid: a mode, with the extents of its leaves, fastest first.
#[derive(Debug, Clone)]
pub struct Axis {
    extents: Vec<i64>,
}

impl Axis {
    /// The axis of a mode of a shape. Leaves of extent 1 carry no tick of their own.
    pub fn of(mode: &Tree<i64>) -> Axis {
        let extents: Vec<i64> = mode.leaves().iter().copied().filter(|extent| *extent > 1).collect();
        if extents.is_empty() { Axis::flat(1) } else { Axis { extents } }
    }

    /// An axis without hierarchy.
    pub fn flat(extent: i64) -> Axis {
        Axis { extents: vec![extent] }
    }

    fn len(&self) -> i64 {
        self.extents.iter().product()
    }

    /// The tick of a position in each leaf, fastest first.
    fn ticks(&self, position: i64) -> Vec<i64> {
        let mut rest = position;
        let split = |extent: &i64| {
            let tick = rest % extent;
            rest /= extent;
            tick
        };
        self.extents.iter().map(split).collect()
    }

    /// How many leaves are complete after `position` places: the weight of the rule drawn there.
    fn weight(&self, position: i64) -> usize {
        let mut run = 1;
        let complete = |extent: &&i64| {
            run *= **extent;
            position % run == 0
        };
        self.extents.iter().take(self.extents.len() - 1).take_while(complete).count()
    }
}

/// How much room there is: characters across, and rows of cells.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub columns: usize,
    pub rows: usize,
}

impl Window {
    /// No limit.
    pub const ALL: Window = Window { columns: usize::MAX, rows: usize::MAX };
}

/// Which positions are drawn: all, or the first ones, a gap (`None`) and the last one.
fn visible(len: i64, limit: usize) -> Vec<Option<i64>> {
    match i64::try_from(limit) {
        Ok(limit) if len > limit => {
            let head = (limit - 2).max(1);
            (0..head).map(Some).chain([None, Some(len - 1)]).collect()
        }
        _ => (0..len).map(Some).collect(),
    }
}

/// A cell: its text and its colour.
pub type Cell = (String, Paint);

/// The grid of `cell(row, column)`, with what does not fit the window left out.
pub fn grid(rows: &Axis, columns: &Axis, window: Window, mut cell: impl FnMut(i64, i64) -> Cell) -> Picture {
    let row_ticks = TickColumns::new(rows);
    let shown_rows = visible(rows.len(), window.rows.max(4));
    let room = window.columns.saturating_sub(row_ticks.width() + 4);

    // Cells decide how many columns fit, and columns decide which cells there are: start narrow, then widen once.
    let mut width = columns.ticks(columns.len() - 1).iter().map(|tick| width_of(&tick.to_string())).max().unwrap_or(1);
    let mut shown_columns = visible(columns.len(), fitting(columns, room, width));
    let mut cells = cells_of(&shown_rows, &shown_columns, &mut cell);
    let widest = cells.iter().flatten().flatten().map(|(text, _)| width_of(text)).max().unwrap_or(1);
    if widest > width {
        width = widest;
        let fewer = visible(columns.len(), fitting(columns, room, width));
        if fewer.len() < shown_columns.len() {
            shown_columns = fewer;
            cells = cells_of(&shown_rows, &shown_columns, &mut cell);
        }
    }

    let frame = Frame { columns, shown: &shown_columns, width, indent: row_ticks.width() };
    let mut picture = Picture::default();
    for level in (0..columns.extents.len()).rev() {
        picture.lines.push(frame.tick_line(level));
    }
    picture.lines.push(frame.rule_line(Edge::Top));
    let mut before: Option<i64> = None;
    for (row, line_cells) in shown_rows.iter().zip(&cells) {
        if let (Some(row), Some(_)) = (row, before)
            && rows.weight(*row) > 0
        {
            picture.lines.push(frame.rule_line(Edge::Inside(rows.weight(*row))));
        }
        picture.lines.push(frame.cell_line(row_ticks.text(*row, before), *row, line_cells));
        before = *row;
    }
    picture.lines.push(frame.rule_line(Edge::Bottom));
    picture
}

fn cells_of(
    rows: &[Option<i64>],
    columns: &[Option<i64>],
    cell: &mut impl FnMut(i64, i64) -> Cell,
) -> Vec<Vec<Option<Cell>>> {
    let mut line = |row: &Option<i64>| -> Vec<Option<Cell>> {
        columns.iter().map(|column| Some(cell((*row)?, (*column)?))).collect()
    };
    rows.iter().map(&mut line).collect()
}

/// How many columns of cells of this width fit in `room` characters, counting the rules between them.
fn fitting(columns: &Axis, room: usize, width: usize) -> usize {
    let mut used = 2usize;
    let mut count = 0;
    while count < columns.len() {
        let rule = if count > 0 && columns.weight(count) > 0 { 2 } else { 0 };
        used = used.saturating_add(width + 1 + rule);
        if used > room {
            break;
        }
        count += 1;
    }
    usize::try_from(count).unwrap_or(usize::MAX).max(3)
}

/// The ticks to the left of the rows: a column for each leaf, the slowest on the left.
struct TickColumns<'a> {
    axis: &'a Axis,
    widths: Vec<usize>,
}

impl<'a> TickColumns<'a> {
    fn new(axis: &'a Axis) -> TickColumns<'a> {
        let widths = axis.extents.iter().map(|extent| width_of(&(extent - 1).to_string())).collect();
        TickColumns { axis, widths }
    }

    fn width(&self) -> usize {
        self.widths.iter().map(|width| width + 1).sum()
    }

    /// The ticks of a row; a slow tick appears only where it changes.
    fn text(&self, row: Option<i64>, before: Option<i64>) -> String {
        let Some(row) = row else { return " ".repeat(self.width()) };
        let ticks = self.axis.ticks(row);
        let old = before.map(|before| self.axis.ticks(before));
        let mut text = String::new();
        for level in (0..ticks.len()).rev() {
            let (tick, width) = (ticks.get(level), self.widths.get(level).copied().unwrap_or(1));
            let same = level > 0 && old.as_ref().is_some_and(|old| old.get(level..) == ticks.get(level..));
            let shown = if same { String::new() } else { tick.map(ToString::to_string).unwrap_or_default() };
            text.push_str(&format!("{shown:>width$} "));
        }
        text
    }
}

enum Edge {
    Top,
    Inside(usize),
    Bottom,
}

/// What the lines of one grid share.
struct Frame<'a> {
    columns: &'a Axis,
    shown: &'a [Option<i64>],
    width: usize,
    indent: usize,
}

impl Frame<'_> {
    /// Calls `between(weight)` where a rule stands and `at(column)` for each shown column.
    fn walk(&self, mut visit: impl FnMut(Part)) {
        let mut before = None;
        for column in self.shown {
            if let (Some(column), Some(_)) = (column, before) {
                let weight = self.columns.weight(*column);
                if weight > 0 {
                    visit(Part::Rule(weight));
                }
            }
            visit(Part::Column(*column));
            before = *column;
        }
    }

    fn tick_line(&self, level: usize) -> Line {
        let mut text = " ".repeat(self.indent + 1);
        let mut before: Option<Vec<i64>> = None;
        self.walk(|part| match part {
            Part::Rule(_) => text.push_str("  "),
            Part::Column(None) => {
                text.push_str(" …");
                before = None;
            }
            Part::Column(Some(column)) => {
                let ticks = self.columns.ticks(column);
                let same = level > 0 && before.as_ref().is_some_and(|old| old.get(level..) == ticks.get(level..));
                let tick =
                    if same { String::new() } else { ticks.get(level).map(ToString::to_string).unwrap_or_default() };
                text.push_str(&format!(" {tick:>width$}", width = self.width));
                before = Some(ticks);
            }
        });
        let mut line = Line::default();
        line.push(text, Paint::Faint);
        line
    }

    fn rule_line(&self, edge: Edge) -> Line {
        let heavy_line = matches!(edge, Edge::Inside(weight) if weight > 1);
        let (left, right) = match (&edge, heavy_line) {
            (Edge::Top, _) => ('┌', '┐'),
            (Edge::Bottom, _) => ('└', '┘'),
            (_, true) => ('┝', '┥'),
            (_, false) => ('├', '┤'),
        };
        let dash = if heavy_line { "━" } else { "─" };
        let mut text = String::from(left);
        self.walk(|part| match part {
            Part::Rule(weight) => {
                text.push_str(dash);
                text.push(match (&edge, weight > 1, heavy_line) {
                    (Edge::Top, false, _) => '┬',
                    (Edge::Top, true, _) => '┰',
                    (Edge::Bottom, false, _) => '┴',
                    (Edge::Bottom, true, _) => '┸',
                    (Edge::Inside(_), false, false) => '┼',
                    (Edge::Inside(_), true, false) => '╂',
                    (Edge::Inside(_), false, true) => '┿',
                    (Edge::Inside(_), true, true) => '╋',
                });
            }
            Part::Column(None) => text.push_str(&dash.repeat(2)),
            Part::Column(Some(_)) => text.push_str(&dash.repeat(self.width + 1)),
        });
        text.push_str(dash);
        text.push(right);
        let mut line = Line::default();
        line.push(" ".repeat(self.indent), Paint::Plain);
        line.push(text, Paint::Faint);
        line
    }

    fn cell_line(&self, ticks: String, row: Option<i64>, cells: &[Option<Cell>]) -> Line {
        let mut line = Line::default();
        line.push(ticks, Paint::Faint);
        line.push("│", Paint::Faint);
        let mut cells = cells.iter();
        self.walk(|part| match part {
            Part::Rule(weight) => {
                line.push(" ", Paint::Plain);
                line.push(if weight > 1 { "┃" } else { "│" }, Paint::Faint);
            }
            Part::Column(column) => match (cells.next().cloned().flatten(), column) {
                (Some((text, paint)), _) => line.push(format!(" {text:>width$}", width = self.width), paint),
                (None, None) => line.push(if row.is_some() { " …" } else { "  " }, Paint::Faint),
                (None, Some(_)) => line.push(format!(" {:>width$}", "⋮", width = self.width), Paint::Faint),
            },
        });
        line.push(" ", Paint::Plain);
        line.push("│", Paint::Faint);
        line
    }
}

enum Part {
    Rule(usize),
    Column(Option<i64>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rows: &str, columns: &str, window: Window) -> String {
        let rows = Axis::of(&rows.parse().unwrap());
        let columns = Axis::of(&columns.parse().unwrap());
        let count = rows.len();
        grid(&rows, &columns, window, |row, column| ((row + count * column).to_string(), Paint::Plain)).text(0, false)
    }

    #[test]
    fn a_flat_grid_has_no_rules_inside() {
        let expected = "    0 1 2
  ┌───────┐
0 │ 0 2 4 │
1 │ 1 3 5 │
  └───────┘
";
        assert_eq!(drawn("2", "3", Window::ALL), expected);
    }

    #[test]
    fn leaves_have_ticks_and_rules_of_their_own() {
        let expected = "       0       1
       0  1    0  1
    ┌───────┬───────┐
0 0 │  0  4 │  8 12 │
  1 │  1  5 │  9 13 │
    ├───────┼───────┤
1 0 │  2  6 │ 10 14 │
  1 │  3  7 │ 11 15 │
    └───────┴───────┘
";
        assert_eq!(drawn("(2,2)", "(2,2)", Window::ALL), expected);
    }

    #[test]
    fn what_does_not_fit_is_left_out_in_the_middle() {
        let text = drawn("100", "100", Window { columns: 40, rows: 6 });
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains('⋮') && text.contains('…'), "{text}");
        assert!(text.contains("9999"), "the last cell is shown\n{text}");
        assert_eq!(text.lines().filter(|line| line.contains('│')).count(), 6);
    }

    #[test]
    fn colour_changes_no_text() {
        let axis = Axis::flat(4);
        let picture = grid(&axis, &axis, Window::ALL, |row, column| ((row * column).to_string(), Paint::Grey(row)));
        let coloured = picture.text(2, true);
        let mut plain = String::new();
        let mut escape = false;
        for c in coloured.chars() {
            match (escape, c) {
                (false, '\x1b') => escape = true,
                (false, c) => plain.push(c),
                (true, 'm') => escape = false,
                (true, _) => {}
            }
        }
        assert_ne!(plain, coloured);
        assert_eq!(plain, picture.text(2, false));
    }
}
