//! Grids in the terminal: cells with ticks outside, and lines where leaves restart.

use crate::axis::{Axis, visible};
use crate::grid::{Cell, Grid};
use crate::terminal::{Ink, Line, Picture, Window, width_of};

/// The text of a cell with its look.
type Piece = (String, Ink);

fn piece(cell: Cell) -> Piece {
    let ink = if cell.faint { Ink::Faint } else { Ink::On(cell.fill) };
    let text = if cell.second.is_empty() { cell.label } else { format!("{}:{}", cell.label, cell.second) };
    (text, ink)
}

/// The grid, with the part omitted that does not fit the window.
pub(crate) fn picture(grid: &Grid<'_>, window: Window) -> Picture {
    let (rows, columns) = (&grid.rows, &grid.columns);
    let mut cell = |row: i64, column: i64| piece(grid.cell(row, column));
    let row_ticks = TickColumns::new(rows);
    let shown_rows = visible(rows.len(), window.rows.max(4));
    let room = window.columns.saturating_sub(row_ticks.width() + 4);

    // The widths of the cells determine how many columns fit, and the columns determine which cells
    // there are. So this starts with narrow cells, and widens them once.
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

    let frame = GridFrame { columns, shown: &shown_columns, width, indent: row_ticks.width() };
    let mut picture = Picture::default();
    for level in (0..columns.levels()).rev() {
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
    cell: &mut impl FnMut(i64, i64) -> Piece,
) -> Vec<Vec<Option<Piece>>> {
    let mut line = |row: &Option<i64>| -> Vec<Option<Piece>> {
        columns.iter().map(|column| Some(cell((*row)?, (*column)?))).collect()
    };
    rows.iter().map(&mut line).collect()
}

/// The number of columns of cells of this width that fit in `room` characters, including the rules
/// between them.
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
        let widest = |level: usize| {
            axis.widest(level).into_iter().map(|at| width_of(&axis.tick_text(at, level))).max().unwrap_or(1)
        };
        let widths = (0..axis.levels()).map(widest).collect();
        TickColumns { axis, widths }
    }

    fn width(&self) -> usize {
        self.widths.iter().map(|width| width + 1).sum()
    }

    /// The ticks of a row; a slow tick appears only if it changes.
    fn text(&self, row: Option<i64>, before: Option<i64>) -> String {
        let Some(row) = row else { return " ".repeat(self.width()) };
        let ticks = self.axis.ticks(row);
        let old = before.map(|before| self.axis.ticks(before));
        let mut text = String::new();
        for level in (0..ticks.len()).rev() {
            let width = self.widths.get(level).copied().unwrap_or(1);
            let same = level > 0 && old.as_ref().is_some_and(|old| old.get(level..) == ticks.get(level..));
            let shown = if same { String::new() } else { self.axis.tick_text(row, level) };
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

/// The parameters that all lines of a grid share.
struct GridFrame<'a> {
    columns: &'a Axis,
    shown: &'a [Option<i64>],
    width: usize,
    indent: usize,
}

impl GridFrame<'_> {
    /// Calls `visit` for each rule, with its weight, and for each shown column.
    fn walk(&self, mut visit: impl FnMut(GridPart)) {
        let mut before = None;
        for column in self.shown {
            if let (Some(column), Some(_)) = (column, before) {
                let weight = self.columns.weight(*column);
                if weight > 0 {
                    visit(GridPart::Rule(weight));
                }
            }
            visit(GridPart::Column(*column));
            before = *column;
        }
    }

    fn tick_line(&self, level: usize) -> Line {
        let mut text = " ".repeat(self.indent + 1);
        let mut before: Option<Vec<i64>> = None;
        self.walk(|part| match part {
            GridPart::Rule(_) => text.push_str("  "),
            GridPart::Column(None) => {
                text.push_str(" …");
                before = None;
            }
            GridPart::Column(Some(column)) => {
                let ticks = self.columns.ticks(column);
                let same = level > 0 && before.as_ref().is_some_and(|old| old.get(level..) == ticks.get(level..));
                let tick =
                    if same { String::new() } else { ticks.get(level).map(ToString::to_string).unwrap_or_default() };
                text.push_str(&format!(" {tick:>width$}", width = self.width));
                before = Some(ticks);
            }
        });
        let mut line = Line::default();
        line.push(text, Ink::Faint);
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
            GridPart::Rule(weight) => {
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
            GridPart::Column(None) => text.push_str(&dash.repeat(2)),
            GridPart::Column(Some(_)) => text.push_str(&dash.repeat(self.width + 1)),
        });
        text.push_str(dash);
        text.push(right);
        let mut line = Line::default();
        line.push(" ".repeat(self.indent), Ink::Plain);
        line.push(text, Ink::Faint);
        line
    }

    fn cell_line(&self, ticks: String, row: Option<i64>, cells: &[Option<Piece>]) -> Line {
        let mut line = Line::default();
        line.push(ticks, Ink::Faint);
        line.push("│", Ink::Faint);
        let mut cells = cells.iter();
        self.walk(|part| match part {
            GridPart::Rule(weight) => {
                line.push(" ", Ink::Plain);
                line.push(if weight > 1 { "┃" } else { "│" }, Ink::Faint);
            }
            GridPart::Column(column) => match (cells.next().cloned().flatten(), column) {
                (Some((text, ink)), _) => line.push(format!(" {text:>width$}", width = self.width), ink),
                (None, None) => line.push(if row.is_some() { " …" } else { "  " }, Ink::Faint),
                (None, Some(_)) => line.push(format!(" {:>width$}", "⋮", width = self.width), Ink::Faint),
            },
        });
        line.push(" ", Ink::Plain);
        line.push("│", Ink::Faint);
        line
    }
}

enum GridPart {
    Rule(usize),
    Column(Option<i64>),
}
