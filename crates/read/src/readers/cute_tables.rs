//! CuTe's tables: drawn by `print_layout` with `+---+`, and by `print_latex` as TikZ nodes.
//!
//! Law: the cell in row `i` and column `j` shows the index to which the layout sends `(i,j)`, or
//! the thread and the value that hold this element of the tile. A table of indices is the layout of
//! rank 2 with these values; a table of threads and values is read the other way round, as the
//! layout from (thread, value) to elements, numbered first dimension fastest. A table below a line
//! with a layout shows that layout again. The two are one reading, which is refused if they differ.

use std::ops::Range;

use tilewright_layout::AnyLayout;
use tilewright_notation::Value;

use crate::cursor::Cursor;
use crate::fit::{fit, fit_held};
use crate::reader::{Context, Found, Reader};
use crate::reading::{Part, Reading, Unit};
use crate::refused::Refused;
use crate::system::System;

/// The reader.
pub const READER: Reader = Reader { system: System::CutePrint, signs: &["+--", TIKZ], read };

const TIKZ: &str = "\\begin{tikzpicture}";

/// The largest number of cells that are read.
const MAX_CELLS: usize = 1 << 18;

/// The number of lines behind a table that are searched for a further row: a log has few between.
const LINES_BETWEEN: usize = 4;

/// The distance in bytes above a picture that is searched for its comments.
const HEAD: usize = 1 << 10;

/// The content of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    Index(i64),
    Held { thread: i64, value: i64 },
}

/// The cells, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    rows: usize,
    columns: usize,
    cells: Vec<Cell>,
}

/// A table with the end of its text, or the position and the reason of damage.
type Drawn = Result<(Table, usize), (usize, &'static str)>;

fn read(context: &Context<'_>, at: usize) -> Option<Found> {
    if context.source.get(at..)?.starts_with(TIKZ) {
        return pictures(context, at);
    }
    let found = framed(context.source, at)?;
    let header = columns_above(context.source, at);
    Some(match found {
        Ok((table, end)) => {
            let span = at..end;
            let answer = match header.filter(|columns| *columns != table.columns) {
                Some(columns) => Err(Refused::damaged(
                    span.clone(),
                    format!("the line above the table numbers {columns} columns, and the table has {}", table.columns),
                )),
                None => table.reading(span.clone()),
            };
            Found { span, answer }
        }
        Err((end, why)) => {
            let refused = Refused::damaged(end..end, why).with_help("paste the whole table");
            Found { span: at..end.max(at + 1), answer: Err(refused) }
        }
    })
}

/// A table of indices directly below a position, and its end; None if there is another table, or
/// none.
pub(super) fn below(source: &str, at: usize) -> Option<(Table, usize)> {
    let mut cursor = Cursor::new(source, at);
    end_of_line(&mut cursor)?;
    if cursor.rest().starts_with("\\documentclass") {
        let window = source.get(cursor.at..source.len().min(cursor.at + HEAD)).unwrap_or(cursor.rest());
        let (mut tables, end) = tikz(source, cursor.at + window.find(TIKZ)?);
        let table = tables.pop().filter(|_| tables.is_empty())?;
        let mut cursor = Cursor::new(source, end);
        if cursor.eat_spaced("\\end{document}") {
            return table.is_of_indices().then_some((table, cursor.at));
        }
        return table.is_of_indices().then_some((table, end));
    }
    // The numbers of the columns, and the first rule.
    let header = cursor.rest().split('\n').next()?;
    let numbers = numbered(header)?;
    cursor.at += header.len() + 1;
    cursor.blanks(false);
    let (table, end) = framed(source, cursor.at)?.ok()?;
    (table.is_of_indices() && table.columns == numbers).then_some((table, end))
}

fn end_of_line(cursor: &mut Cursor<'_>) -> Option<()> {
    let _ = cursor.blanks(false).eat("\r");
    cursor.eat("\n").then_some(())
}

/// The count of numbers in a line if they are 0, 1, 2 and so on.
fn numbered(line: &str) -> Option<usize> {
    let mut count = 0_usize;
    for word in line.split_whitespace() {
        if word.parse() != Ok(count) {
            return None;
        }
        count += 1;
    }
    (count > 0).then_some(count)
}

/// The number of columns in the line above a position.
fn columns_above(source: &str, at: usize) -> Option<usize> {
    let before = source.get(..at)?.trim_end_matches([' ', '\t']);
    let line = before.strip_suffix('\n')?;
    let start = line.bytes().rev().take(MAX_CELLS).position(|byte| byte == b'\n');
    numbered(line.get(line.len() - start.unwrap_or(line.len().min(MAX_CELLS))..)?)
}

/// The table whose first rule begins at a position; None if it is not a table of CuTe.
fn framed(source: &str, at: usize) -> Option<Drawn> {
    // A rule is alone on its line.
    let bytes = source.as_bytes();
    let mut start = at;
    while start > 0 && matches!(bytes.get(start - 1), Some(b' ' | b'\t')) {
        start -= 1;
    }
    if start > 0 && bytes.get(start - 1) != Some(&b'\n') {
        return None;
    }
    let mut cursor = Cursor::new(source, at);
    let rule = cursor.take_while(|byte| matches!(byte, b'+' | b'-'));
    let columns = rule.bytes().filter(|byte| *byte == b'+').count().checked_sub(1).filter(|columns| *columns > 0)?;
    if !rule.ends_with('+') {
        return None;
    }
    end_of_line(&mut cursor)?;
    let mut table = Table { rows: 0, columns, cells: Vec::new() };
    loop {
        let row = table.row(&mut cursor);
        if table.rows == 0 {
            // The first row shows whether it is a table of CuTe.
            row?;
        } else if row.is_none() {
            return Some(Err((cursor.at, "a row of the table is damaged or cut off")));
        }
        table.rows += 1;
        if table.cells.len() > MAX_CELLS {
            return Some(Err((cursor.at, "the table has more cells than are read")));
        }
        if !cursor.blanks(false).eat(rule) {
            return Some(Err((cursor.at, "the table is damaged or cut off: a rule is wanted here")));
        }
        // The next row begins with its number.
        let end = cursor.at;
        if end_of_line(&mut cursor).is_none() {
            return Some(Ok((table, end)));
        }
        if !table.continues(cursor) {
            return Some(match table.goes_on(cursor) {
                true => Err((cursor.at, "the next row of the table is missing, and one behind it follows")),
                false => Ok((table, end)),
            });
        }
    }
}

/// The number with which a row begins: ` 3  |`.
fn row_number(mut cursor: Cursor<'_>) -> Option<i64> {
    let number = cursor.blanks(false).integer();
    if cursor.blanks(false).eat("|") { number } else { None }
}

impl Table {
    fn is_of_indices(&self) -> bool {
        self.cells.iter().all(|cell| matches!(cell, Cell::Index(_)))
    }

    /// Whether a line begins like the next row.
    fn continues(&self, cursor: Cursor<'_>) -> bool {
        row_number(cursor) == i64::try_from(self.rows).ok()
    }

    /// Whether one of the next lines is a further row of this table: lines of a log may stand
    /// before it.
    fn goes_on(&self, cursor: Cursor<'_>) -> bool {
        let next = cursor.rest().split('\n').take(LINES_BETWEEN).find_map(|line| row_number(Cursor::new(line, 0)));
        next.is_some_and(|number| usize::try_from(number).is_ok_and(|row| row >= self.rows))
    }

    /// Reads a line such as ` 0  |  0 |  8 |`, or with `T 3 V 1` instead of an index.
    fn row(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        if !self.continues(*cursor) {
            return None;
        }
        cursor.blanks(false).integer()?;
        cursor.blanks(false);
        for _ in 0..self.columns {
            if !cursor.eat("|") {
                return None;
            }
            cursor.blanks(false);
            self.cells.push(cell(cursor)?);
            cursor.blanks(false);
        }
        if !cursor.eat("|") {
            return None;
        }
        end_of_line(cursor)
    }

    /// The cell in a row and a column.
    fn at(&self, row: usize, column: usize) -> Option<Cell> {
        self.cells.get(row * self.columns + column).copied()
    }

    /// The cells, first dimension fastest.
    fn columnwise(&self) -> impl Iterator<Item = Cell> {
        (0..self.columns).flat_map(move |column| (0..self.rows).filter_map(move |row| self.at(row, column)))
    }

    /// Whether a layout has the values of the table.
    pub(super) fn agrees(&self, layout: &AnyLayout) -> bool {
        let mut cells = self.columnwise().zip(0_i64..);
        layout.known_shape().and_then(|shape| shape.product().ok()) == i64::try_from(self.cells.len()).ok()
            && cells.all(|(cell, index)| match (cell, index_of(layout, index)) {
                (Cell::Index(shown), Some(own)) => shown == own,
                _ => false,
            })
    }

    /// The layout that the table shows.
    fn layout(&self, span: Range<usize>) -> Result<(AnyLayout, Unit), Refused> {
        let mut indices = Vec::new();
        let mut held = Vec::new();
        for (cell, element) in self.columnwise().zip(0_i64..) {
            match cell {
                Cell::Index(index) => indices.push(index),
                Cell::Held { thread, value } => held.push(((thread, value), element)),
            }
        }
        if held.is_empty() {
            let extents = [self.rows, self.columns].map(|extent| i64::try_from(extent).unwrap_or(i64::MAX));
            let help = "a table is read where rows and columns are made of digits with strides, or of XORs of bits";
            return match fit(&extents, &indices) {
                Some(layout) => Ok((layout, Unit::Elements { bits: None })),
                None => Err(Refused::unsupported(span, "no layout has the indices of this table", help)),
            };
        }
        if !indices.is_empty() {
            return Err(Refused::damaged(span, "some cells show an index, and others a thread and a value"));
        }
        match fit_held(held) {
            Ok(held) => Ok((held.layout, Unit::Indices)),
            Err(because) => Err(Refused::unsupported(
                span,
                format!("the table is no layout of threads and values: {because}"),
                "CuTe shows each element once; where several threads hold it, read the layout that is printed above",
            )),
        }
    }

    fn reading(&self, span: Range<usize>) -> Result<Reading, Refused> {
        let (layout, unit) = self.layout(span)?;
        let reading = Reading::new(System::CutePrint, "table of a layout", Value::Layout(layout), unit);
        Ok(match unit {
            Unit::Indices => reading.note(format!(
                "(thread, value) to elements of the {}x{} tile, numbered first dimension fastest",
                self.rows, self.columns
            )),
            _ => reading,
        })
    }
}

/// The value of a layout at an index, if it is a known integer.
fn index_of(layout: &AnyLayout, index: i64) -> Option<i64> {
    match layout {
        AnyLayout::Integer(layout) => layout.eval(&index).ok(),
        AnyLayout::Composed(layout) => layout.eval(&index).ok(),
        _ => None,
    }
}

/// An index, or `T3 V1` with blanks before the numbers.
fn cell(cursor: &mut Cursor<'_>) -> Option<Cell> {
    if let Some(index) = cursor.integer() {
        return Some(Cell::Index(index));
    }
    let mut number = |letter: &str| {
        if !cursor.blanks(false).eat(letter) {
            return None;
        }
        cursor.blanks(false).integer().filter(|number| *number >= 0)
    };
    Some(Cell::Held { thread: number("T")?, value: number("V")? })
}

/// Reads the output of `print_latex`, without the lines above it.
fn pictures(context: &Context<'_>, at: usize) -> Option<Found> {
    let (tables, end) = tikz(context.source, at);
    if tables.is_empty() {
        return None;
    }
    // The layouts are in comments above.
    let mut from = at.saturating_sub(HEAD);
    while !context.source.is_char_boundary(from) {
        from += 1;
    }
    let before = context.source.get(from..at)?;
    let head = before.rfind("\\documentclass");
    let commented = head.and_then(|head| before.get(..head)?.trim_end().rsplit('\n').next());
    if commented.is_some_and(|line| line.starts_with("% Layout") && line.contains(':')) {
        context.pass(end);
        return None;
    }
    let span = at..end;
    let names: &[&str] = match tables.len() {
        1 => &["Layout"],
        2 => &["LayoutS_TV", "LayoutD_TV"],
        3 => &["LayoutC_TV", "LayoutA_TV", "LayoutB_TV"],
        _ => &[],
    };
    if let [table] = tables.as_slice() {
        return Some(Found { span: span.clone(), answer: table.reading(span) });
    }
    if names.is_empty() {
        let refused = Refused::damaged(span.clone(), "the cells of the picture form no one, two or three rectangles");
        return Some(Found { span, answer: Err(refused) });
    }
    let parts: Result<Vec<Part>, Refused> = tables
        .iter()
        .zip(names)
        .map(|(table, name)| {
            let (layout, unit) = table.layout(span.clone())?;
            Ok(Part::new(*name, Value::Layout(layout), unit))
        })
        .collect();
    let answer = parts.map(|parts| {
        let values = parts.iter().map(|part| part.value.clone()).collect();
        let what = if names.len() == 2 { "picture of a tiled copy" } else { "picture of a tiled product" };
        let mut reading = Reading::new(System::CutePrint, what, Value::List(values), Unit::Indices)
            .note("(thread, value) to elements of each tile, numbered first dimension fastest");
        reading.parts = parts;
        reading
    });
    Some(Found { span, answer })
}

/// The rectangles of cells in a TikZ picture, and its end. C is at the origin, A to its left, and B
/// above it with its K downwards. The second tile of a copy is to the right of the first.
fn tikz(source: &str, at: usize) -> (Vec<Table>, usize) {
    let mut nodes: Vec<([i64; 2], Cell)> = Vec::new();
    let mut cursor = Cursor::new(source, at + TIKZ.len());
    while let Some(next) = cursor.rest().find('\\') {
        cursor.at += next;
        if cursor.rest().starts_with(TIKZ) {
            break;
        }
        if cursor.eat("\\end{tikzpicture}") {
            break;
        }
        let start = cursor.at;
        if let Some(node) = node(&mut cursor) {
            nodes.push(node);
            if nodes.len() > MAX_CELLS {
                break;
            }
        } else {
            cursor.at = start + 1;
        }
    }
    (rectangles(&nodes), cursor.at)
}

/// `\node[fill=..] at (0,1) {8};`, also with a thread and a value. Labels have no options.
fn node(cursor: &mut Cursor<'_>) -> Option<([i64; 2], Cell)> {
    if !cursor.eat("\\node[") {
        return None;
    }
    let options = cursor.rest().get(..cursor.rest().len().min(160)).unwrap_or(cursor.rest());
    cursor.at += options.find("] at (")? + "] at (".len();
    let row = cursor.integer()?;
    let column = cursor.eat(",").then(|| cursor.integer()).flatten()?;
    if !cursor.eat(") {") {
        return None;
    }
    let shown = if cursor.eat("\\shortstack{T") {
        let thread = cursor.integer()?;
        let _ = cursor.eat_spaced("\\\\");
        let value = cursor.eat_spaced("V").then(|| cursor.integer()).flatten()?;
        cursor.eat("}").then_some(Cell::Held { thread, value })?
    } else {
        Cell::Index(cursor.integer()?)
    };
    cursor.eat("}").then_some(([row, column], shown))
}

/// The cells as tables: those at the origin, to the left of it, above it, and beyond a gap.
fn rectangles(nodes: &[([i64; 2], Cell)]) -> Vec<Table> {
    let mut columns: Vec<i64> = nodes
        .iter()
        .map(|(place, _)| *place)
        .filter(|[row, column]| *row >= 0 && *column >= 0)
        .map(|[_, c]| c)
        .collect();
    columns.sort_unstable();
    columns.dedup();
    let gap = columns.windows(2).find(|pair| pair[1] - pair[0] > 1).map_or(i64::MAX, |pair| pair[1]);
    let group = |[row, column]: [i64; 2]| match (row < 0, column < 0, column >= gap) {
        (true, ..) => 3,
        (_, true, _) => 2,
        (_, _, true) => 1,
        _ => 0,
    };
    let mut tables = Vec::new();
    for wanted in 0..4 {
        let own = nodes.iter().filter(|(place, _)| group(*place) == wanted);
        // Rows of B are columns of the picture.
        let own: Vec<([i64; 2], Cell)> = own
            .map(|([row, column], cell)| (if wanted == 3 { [*column, *row] } else { [*row, *column] }, *cell))
            .collect();
        if own.is_empty() {
            continue;
        }
        match table_of(&own) {
            Some(table) => tables.push(table),
            None => return Vec::new(),
        }
    }
    tables
}

/// The table in which every cell occurs once.
fn table_of(nodes: &[([i64; 2], Cell)]) -> Option<Table> {
    let range = |axis: usize| {
        let all = nodes.iter().filter_map(|(place, _)| place.get(axis).copied());
        Some((all.clone().min()?, all.max()?))
    };
    let ((top, bottom), (left, right)) = (range(0)?, range(1)?);
    let extent = |from: i64, to: i64| usize::try_from(to.checked_sub(from)?.checked_add(1)?).ok();
    let (rows, columns) = (extent(top, bottom)?, extent(left, right)?);
    if rows.checked_mul(columns) != Some(nodes.len()) {
        return None;
    }
    let mut cells = vec![None; nodes.len()];
    for ([row, column], cell) in nodes {
        let place = usize::try_from(row - top).ok()? * columns + usize::try_from(column - left).ok()?;
        *cells.get_mut(place)? = Some(*cell);
    }
    Some(Table { rows, columns, cells: cells.into_iter().collect::<Option<_>>()? })
}
