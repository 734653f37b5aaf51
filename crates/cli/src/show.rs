//! `tilewright show`: a layout as a picture, and what can be said about it.

use std::collections::HashSet;
use std::io::Write;

use tilewright::layout::Swizzle;
use tilewright::{Environment, Layout, Tree, Value, evaluate};

use crate::map::{self, Map, Point};
use crate::picture::{self, Axis, Cell, Paint, Window, grid, painted};
use crate::terminal::{Failure, Terminal};

/// How many grids of a layout of rank 3 or 4 are drawn where not all are asked for.
const MOST_SLABS: i64 = 8;

pub fn run(expression: &str, table: bool, all: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let value = match evaluate(expression, &mut Environment::new()) {
        Ok(value) => value,
        Err(diagnostic) => return Err(terminal.report(&diagnostic, expression)),
    };
    let window = if all { Window::ALL } else { terminal.window() };
    write_value(&drawable(value), table, window, terminal)
}

/// A shape alone means its compact layout; other values are drawn as they are.
pub fn drawable(value: Value) -> Value {
    match &value {
        Value::Tree(shape) => Layout::compact(shape).map_or(value, Value::Layout),
        _ => value,
    }
}

/// Draws a value if it can be drawn, else prints it.
pub fn write_value(value: &Value, table: bool, window: Window, terminal: &mut Terminal) -> Result<(), Failure> {
    let colour = terminal.colour;
    writeln!(terminal.out, "{}", painted(&value.to_string(), Paint::Strong, colour))?;
    let map = match (value, map::of(value)) {
        (_, Some(map)) => map,
        (Value::Swizzle(swizzle), None) => {
            return Ok(terminal.out.write_all(permutation(*swizzle, colour).as_bytes())?);
        }
        (Value::List(items), None) => {
            for item in items {
                writeln!(terminal.out)?;
                write_value(item, table, window, terminal)?;
            }
            return Ok(());
        }
        _ if !value.parameters().is_empty() => {
            let names: Vec<String> = value.parameters().iter().map(ToString::to_string).collect();
            let line = format!(
                "drawn once {} known: substitute(A, {}, 8)",
                are(&names),
                names.first().map_or("M", |name| name)
            );
            return Ok(writeln!(terminal.out, "\n{line}")?);
        }
        _ => return Ok(()),
    };
    writeln!(terminal.out)?;
    let text = if table || map.shape().rank() > 4 { listing(&map, window) } else { grids(&map, window, colour) };
    terminal.out.write_all(text.as_bytes())?;
    writeln!(terminal.out)?;
    for line in facts(value, &map) {
        writeln!(terminal.out, "{line}")?;
    }
    Ok(())
}

/// `M is`, `M and K are`.
fn are(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => format!("{last} is"),
        Some((last, front)) => format!("{} and {last} are", front.join(", ")),
        None => String::new(),
    }
}

/// What a swizzle does: rows are the values of the bits that it reads, columns those of the bits that it flips, and the cells
/// what becomes of the latter.
fn permutation(swizzle: Swizzle, colour: bool) -> String {
    let (bits, base, shift) = (swizzle.bits(), swizzle.base(), swizzle.shift());
    if swizzle.is_identity() {
        return "\nit changes nothing\n".to_owned();
    }
    let (read, flipped) = if shift >= 0 { (base + shift, base) } else { (base, base - shift) };
    let field = |at: i64| if bits == 1 { format!("bit {at}") } else { format!("bits {at} to {}", at + bits - 1) };
    let mut text = format!("\nflips {} of an offset by {}\n", field(flipped), field(read));
    // Larger tables say no more.
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

/// The grid of a layout of rank at most 2, or one grid for each index of modes 2 and 3.
fn grids(map: &Map, window: Window, colour: bool) -> String {
    let modes: Vec<Tree<i64>> = map.shape().modes().collect();
    let sizes: Vec<i64> = modes.iter().map(map::size).collect();
    let one = Axis::flat(1);
    match (modes.as_slice(), sizes.as_slice()) {
        ([only], _) => picture::text(&grid(&one, &Axis::of(only), window, |_, column| cell(map, column)), 0, colour),
        ([rows, columns, slow @ ..], [height, width, counts @ ..]) => {
            let (height, area) = (*height, height * width);
            let (rows, columns) = (Axis::of(rows), Axis::of(columns));
            let slabs: i64 = counts.iter().product();
            let shown = if window.rows == usize::MAX { slabs } else { slabs.min(MOST_SLABS) };
            let mut text = String::new();
            for slab in 0..shown {
                text.push_str(&heading(slow, counts, slab, colour));
                let at = |row, column| cell(map, row + height * column + area * slab);
                text.push_str(&picture::text(&grid(&rows, &columns, window, at), 0, colour));
            }
            if shown < slabs {
                text.push_str(&format!("… and {} more of {slabs} grids; --all draws them\n", slabs - shown));
            }
            text
        }
        _ => picture::text(&grid(&one, &one, window, |_, _| cell(map, 0)), 0, colour),
    }
}

/// The line above one grid of several: which indices of modes 2 and 3 it shows.
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

/// Index, coordinate and offset, one to a line.
fn listing(map: &Map, window: Window) -> String {
    let size = map.size();
    let limit = i64::try_from(window.rows).unwrap_or(i64::MAX);
    let shown: Vec<Option<i64>> = if size <= limit {
        (0..size).map(Some).collect()
    } else {
        (0..(limit - 2).max(1)).map(Some).chain([None, Some(size - 1)]).collect()
    };
    let rows: Vec<[String; 3]> = shown
        .into_iter()
        .map(|index| match index {
            Some(index) => {
                let offset = map.value(index).map_or("?".to_owned(), |offset| offset.to_string());
                [index.to_string(), map.coordinate(index).to_string(), offset]
            }
            None => ["⋮".to_owned(), "⋮".to_owned(), "⋮".to_owned()],
        })
        .collect();
    let head = ["index", "coordinate", "offset"];
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|name| name.len())).max().unwrap_or(0)
    };
    let (a, b, c) = (width(0), width(1), width(2));
    let mut text = format!("{:>a$}  {:>b$}  {:>c$}\n", "index", "coordinate", "offset");
    for [index, coordinate, offset] in &rows {
        text.push_str(&format!("{index:>a$}  {coordinate:>b$}  {offset:>c$}\n"));
    }
    text
}

/// What can be said about a layout, a line for each group of facts.
fn facts(value: &Value, map: &Map) -> Vec<String> {
    let shape = map.shape();
    let cosize = match value {
        Value::Layout(layout) => layout.cosize().ok(),
        Value::Composed(map) => map.cosize().ok(),
        Value::XorLayout(layout) => layout.cosize().ok(),
        _ => None,
    };
    let mut numbers = vec![format!("size {}", map.size())];
    numbers.extend(cosize.map(|cosize| format!("cosize {cosize}")));
    numbers.extend([format!("rank {}", shape.rank()), format!("depth {}", shape.depth())]);
    let mut lines = vec![numbers.join(", ")];
    match value {
        Value::Layout(layout) => lines.extend(predicates(layout)),
        _ => lines.extend(counted(map, cosize)),
    }
    lines
}

/// What counting the offsets of a map tells, if there are not too many.
fn counted(map: &Map, cosize: Option<i64>) -> Option<String> {
    const MOST: i64 = 1 << 20;
    if map.size() > MOST {
        return None;
    }
    if map.has_coordinates() {
        let points: HashSet<Point> = (0..map.size()).map(|index| map.value(index)).collect::<Result<_, _>>().ok()?;
        let injective = i64::try_from(points.len()) == Ok(map.size());
        return Some(if injective { "injective" } else { "not injective" }.to_owned());
    }
    let offsets: Option<Vec<i64>> = (0..map.size()).map(|index| map.at(index).ok()).collect();
    let mut offsets = offsets?;
    offsets.sort_unstable();
    let (least, greatest) = (offsets.first().copied()?, offsets.last().copied()?);
    offsets.dedup();
    let different = i64::try_from(offsets.len()).ok()?;
    let facts = [
        ("injective", different == map.size()),
        ("surjective", least >= 0 && Some(different) == cosize),
        ("contiguous", greatest - least + 1 == different),
    ];
    let named = |holds: bool| facts.iter().filter(move |fact| fact.1 == holds).map(|fact| fact.0);
    let yes = named(true).map(str::to_owned);
    let no = named(false).map(|name| format!("not {name}"));
    Some(yes.chain(no).collect::<Vec<_>>().join(", "))
}

/// The questions with the answer yes, those with the answer no, a witness, and the least form of the layout. Compact is the
/// same as bijective.
fn predicates(layout: &Layout) -> Vec<String> {
    let asked = [
        ("injective", layout.is_injective().ok()),
        ("surjective", Some(layout.is_surjective())),
        ("compact", Some(layout.is_compact())),
        ("contiguous", Some(layout.is_contiguous())),
        ("ordered", Some(layout.is_ordered())),
        ("tractable", Some(layout.is_tractable())),
    ];
    let mut lines = Vec::new();
    for (label, answer) in [("", Some(true)), ("not ", Some(false)), ("perhaps ", None)] {
        let answered = asked.iter().filter(|(_, given)| *given == answer);
        let names: Vec<String> = answered.map(|(name, _)| format!("{label}{name}")).collect();
        if !names.is_empty() {
            lines.push(names.join(", "));
        }
    }
    if let Ok(Some((first, second))) = layout.collision() {
        lines.push(format!("indices {first} and {second} share an offset"));
    }
    if let Ok(least) = layout.coalesce()
        && least != *layout
    {
        lines.push(format!("the same function as {least}"));
    }
    lines
}
