//! `tilewright show`: a layout as a picture, and facts about it.

use serde_json::json;
use tilewright::draw::DrawError;
use tilewright::layout::{AnyTree, Swizzle};
use tilewright::{Layout, Tree, Value};

use crate::json::{self, extend};
use crate::output::Failure;
use crate::picture::{self, Axis, Cell, Paint, Window, grid, painted};
use crate::reader::{Reader, unknown};
use crate::terminal::Terminal;
use tilewright::explain::facts;
use tilewright::explain::map::{self, Map, Point};

/// The number of grids that are drawn of a layout of rank 3 or 4, unless all are requested.
const MOST_SLABS: i64 = 8;

/// The largest number of cells that are drawn if all are requested, because a picture is completed
/// in memory before it is written.
const MOST_CELLS: i64 = 1 << 20;

/// The largest number of lines of a table if all are requested.
const MOST_LINES: i64 = 1 << 22;

pub fn run(expression: &str, table: bool, all: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let value = drawable(Reader::default().value(expression)?);
    let window = if all { Window::ALL } else { terminal.window() };
    if terminal.json {
        return object(&value, table, window, terminal);
    }
    write_value(expression, &value, table, window, terminal)
}

/// Prints the object of a value, with its picture and its facts if it has some.
fn object(value: &Value, table: bool, window: Window, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut object = json::value(value);
    if let Some(map) = map::of(value) {
        check_size(&map, table, window)?;
        let mut picture = Vec::new();
        draw(&map, table, window, false, &mut picture)?;
        let picture = String::from_utf8_lossy(&picture).into_owned();
        extend(&mut object, json!({ "picture": picture, "facts": facts::of(value, &map) }));
    }
    Ok(terminal.object(&object)?)
}

/// A shape alone means its compact layout; other values are drawn as they are.
pub fn drawable(value: Value) -> Value {
    match &value {
        Value::Tree(AnyTree::Integer(shape)) => Layout::compact(shape).map_or(value, Value::from),
        _ => value,
    }
}

/// Draws a value if it can be drawn, else prints it.
pub fn write_value(
    source: &str,
    value: &Value,
    table: bool,
    window: Window,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let colour = terminal.colour;
    let heading = painted(&value.to_string(), Paint::Strong, colour);
    let map = match (value, map::of(value)) {
        (_, Some(map)) => map,
        (Value::Swizzle(swizzle), None) => {
            return Ok(terminal.text(&format!("{heading}\n{}", permutation(*swizzle, colour)))?);
        }
        (Value::List(items), None) => {
            terminal.text(&format!("{heading}\n"))?;
            for item in items {
                terminal.text("\n")?;
                write_value(source, item, table, window, terminal)?;
            }
            return Ok(());
        }
        _ => {
            let advice = unknown(source, value).map_or(String::new(), |advice| format!("\ndrawn {advice}\n"));
            return Ok(terminal.text(&format!("{heading}\n{advice}"))?);
        }
    };
    check_size(&map, table, window)?;
    terminal.text(&format!("{heading}\n\n"))?;
    draw(&map, table, window, colour, &mut terminal.out)?;
    let facts: String = facts::of(value, &map).iter().map(|line| format!("{line}\n")).collect();
    Ok(terminal.text(&format!("\n{facts}"))?)
}

/// Whether a map is shown as a table: because that is requested, or because it has too many modes
/// for grids.
fn is_table(map: &Map, asked: bool) -> bool {
    asked || map.shape().rank() > 4
}

/// An error if a map is too large to be shown whole.
fn check_size(map: &Map, table: bool, window: Window) -> Result<(), DrawError> {
    let (what, limit) = match is_table(map, table) {
        true => ("the number of lines", MOST_LINES),
        false => ("the number of cells", MOST_CELLS),
    };
    match window == Window::ALL && map.size() > limit {
        true => Err(DrawError::TooLarge { what, value: map.size(), limit }),
        false => Ok(()),
    }
}

/// Prints a table of a map if that is requested or if it has too many modes for grids; otherwise
/// grids.
fn draw(map: &Map, table: bool, window: Window, colour: bool, out: &mut impl std::io::Write) -> Result<(), Failure> {
    if is_table(map, table) { listing(map, window, out) } else { grids(map, window, colour, out) }.map_err(Failure::Io)
}

/// The effect of a swizzle: rows are the values of the bits that it reads, columns those of the
/// bits that it flips, and cells the results for the latter.
fn permutation(swizzle: Swizzle, colour: bool) -> String {
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    if swizzle.is_identity() {
        return "\nit changes nothing\n".to_owned();
    }
    let (read, flipped) = if shift >= 0 { (base + shift, base) } else { (base, base - shift) };
    let field = |at: i64| if bits == 1 { format!("bit {at}") } else { format!("bits {at} to {}", at + bits - 1) };
    let mut text = format!("\nflips {} of an offset by {}\n", field(flipped), field(read));
    // Larger tables show nothing more.
    if bits <= 4 {
        let axis = Axis::flat(1 << bits);
        let picture = grid(&axis, &axis, Window::ALL, |row, column| {
            let image = swizzle.apply((row << read) | (column << flipped));
            let cell = (image >> flipped) & ((1 << bits) - 1);
            (cell.to_string(), Paint::Hue(cell))
        });
        text.push_str(&format!("rows: {}; columns: {}; cells: the same after\n\n", field(read), field(flipped)));
        text.push_str(&picture::text(&picture, 0, colour));
    }
    text
}

/// The offset at an index as a cell, shaded by its value.
fn cell(map: &Map, index: i64) -> Cell {
    match map.value(index) {
        Ok(Point::Offset(offset)) => (offset.to_string(), Paint::Grey(offset)),
        Ok(point) => (point.to_string(), Paint::Plain),
        Err(_) => ("?".to_owned(), Paint::Bad),
    }
}

/// Prints the grid of a layout of rank at most 2, or one grid for each index of modes 2 and 3.
fn grids(map: &Map, window: Window, colour: bool, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let modes: Vec<Tree<i64>> = map.shape().modes().collect();
    let sizes: Vec<i64> = modes.iter().map(map::size).collect();
    let one = Axis::flat(1);
    let mut write = |text: String| out.write_all(text.as_bytes());
    match (modes.as_slice(), sizes.as_slice()) {
        ([only], _) => {
            let picture = grid(&one, &Axis::of(only), window, |_, column| cell(map, column));
            write(picture::text(&picture, 0, colour))
        }
        ([rows, columns, slow @ ..], [height, width, counts @ ..]) => {
            let (height, area) = (*height, height * width);
            let (rows, columns) = (Axis::of(rows), Axis::of(columns));
            let slabs: i64 = counts.iter().product();
            let shown = if window == Window::ALL { slabs } else { slabs.min(MOST_SLABS) };
            for slab in 0..shown {
                write(heading(slow, counts, slab, colour))?;
                let at = |row, column| cell(map, row + height * column + area * slab);
                write(picture::text(&grid(&rows, &columns, window, at), 0, colour))?;
            }
            match slabs - shown {
                0 => Ok(()),
                more => write(format!("… and {more} more of {slabs} grids; --all draws them\n")),
            }
        }
        _ => write(picture::text(&grid(&one, &one, window, |_, _| cell(map, 0)), 0, colour)),
    }
}

/// The line above one of several grids, with its indices of modes 2 and 3.
fn heading(slow: &[Tree<i64>], counts: &[i64], slab: i64, colour: bool) -> String {
    let mut rest = slab;
    let mut names = Vec::new();
    for (position, count) in counts.iter().enumerate() {
        names.push(format!("mode {} = {}", position + 2, rest % count));
        rest /= count;
    }
    let mark = if slow.len() > 1 && slab % counts.first().copied().unwrap_or(1) == 0 { "══" } else { "──" };
    if names.is_empty() {
        return String::new();
    }
    painted(&format!("{mark} {} {mark}\n", names.join(", ")), Paint::Strong, colour)
}

/// Prints index, coordinate and offset, one index for each line.
fn listing(map: &Map, window: Window, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let size = map.size();
    let limit = i64::try_from(window.rows).unwrap_or(i64::MAX);
    // All indices, or the first ones and the last.
    let head = if size <= limit { size } else { (limit - 2).max(1) };
    let last = (size > head).then(|| size - 1);
    let offset = |index: i64| map.value(index).map_or("?".to_owned(), |offset| offset.to_string());
    let shown = || (0..head).chain(last);
    let width = |texts: &mut dyn Iterator<Item = String>, name: &str| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0).max(name.len())
    };
    // The last index has the longest text, and so does its coordinate, because no part of another
    // coordinate is larger.
    let a = width(&mut [(size - 1).to_string()].into_iter(), "index");
    let b = width(&mut [map.coordinate(size - 1).to_string()].into_iter(), "coordinate");
    let c = width(&mut shown().map(offset), "offset");
    writeln!(out, "{:>a$}  {:>b$}  {:>c$}", "index", "coordinate", "offset")?;
    for index in 0..head {
        writeln!(out, "{index:>a$}  {:>b$}  {:>c$}", map.coordinate(index).to_string(), offset(index))?;
    }
    if let Some(last) = last {
        writeln!(out, "{0:>a$}  {0:>b$}  {0:>c$}", "⋮")?;
        writeln!(out, "{last:>a$}  {:>b$}  {:>c$}", map.coordinate(last).to_string(), offset(last))?;
    }
    Ok(())
}
