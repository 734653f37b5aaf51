//! One instruction: its facts, and its thread-value table.
//!
//! Law: the cell at (row, column) of a tile shows the thread and the index of its value there, `T5
//! V1`; if several threads hold it, the first of them is shown. Rows are M (or N) and columns K (or
//! N): the first mode of a tile is downward.

use tilewright::Layout;
use tilewright::atoms::{BulkCopy, CopyAtom, CopyEnd, MmaAtom, ThreadValue};

use crate::picture::{self, Axis, Cell, Paint, Window, grid, painted};

pub fn product(atom: &MmaAtom, window: Window, colour: bool) -> String {
    let ([m, n, k], types) = (atom.shape(), atom.types());
    let mut text = painted(atom.name(), Paint::Strong, colour);
    text.push_str(&format!("\n{}: {m}x{n} {} = {m}x{k} {}", atom.arch(), types.d, types.a));
    text.push_str(&format!(" * {k}x{n} {} + {m}x{n} {}, by {}\n", types.b, types.c, threads(atom.threads())));
    for (operand, held) in atom.operands() {
        let [rows, columns] = atom.tile(operand);
        let axes = operand.modes().map(|mode| ["M", "N", "K"].get(mode).copied().unwrap_or("")).join(",");
        text.push_str(&format!("\n{operand} ({axes})  {}\n", held.layout()));
        text.push_str(&owners(held, [rows, columns], atom.threads().size(), window, colour));
    }
    text
}

pub fn copy(atom: &CopyAtom, window: Window, colour: bool) -> String {
    let mut text = painted(atom.name(), Paint::Strong, colour);
    let what = match atom.bits() {
        1 => "a value of any width".to_owned(),
        bits => format!("{bits} bits"),
    };
    text.push_str(&format!("\n{}: {what}, by {}; ", atom.arch(), threads(atom.threads())));
    text.push_str(match atom.reference() {
        CopyEnd::Source => "each thread owns the values that it reads\n",
        CopyEnd::Destination => "each thread owns the values that it writes\n",
    });
    // The widest values that are whole at both ends, at most as wide as a register; in rows of 128
    // bits if there are any.
    let fits = |bits: &&i64| atom.ends().iter().all(|(end, _)| atom.values(*end, **bits).is_ok());
    let bits = [32, 16, 8].iter().find(fits).copied().filter(|_| atom.bits() > 1);
    for (end, held) in atom.ends() {
        text.push_str(&format!("\n{end}  {} bits\n", held.layout()));
        let Some(bits) = bits else { continue };
        let Ok(values) = atom.values(end, bits) else { continue };
        let places = atom.bits() / bits;
        let row = (128 / bits).min(places);
        text.push_str(&format!("as values of {bits} bits, {row} a row:\n"));
        let shown = match held.copies() {
            1 => ThreadValue::shared(values, held.holders()),
            copies => ThreadValue::multiplied(values, copies),
        };
        text.push_str(&owners_by_row(&shown, [places / row, row], atom.threads().size(), window, colour));
    }
    text
}

/// The facts about a bulk copy, and its requirements.
pub fn bulk_copy(copy: &BulkCopy, colour: bool) -> String {
    let mut text = painted(copy.name(), Paint::Strong, colour);
    text.push_str(&format!("\n{}: {}, {}, by 1 thread", copy.arch(), copy.mode(), copy.direction()));
    if copy.is_multicast() {
        text.push_str(", to several CTAs");
    }
    if copy.ctas() > 1 {
        text.push_str(&format!(", of {} CTAs", copy.ctas()));
    }
    text.push('\n');
    let (fewest, most) = copy.dimensions();
    if most > 0 {
        let each = |of: &dyn Fn(usize) -> usize| {
            (fewest..=most).map(|dimensions| of(dimensions).to_string()).collect::<Vec<_>>().join(", ")
        };
        text.push_str(&format!("\ndimensions   {}\n", each(&|dimensions| dimensions)));
        text.push_str(&format!("coordinates  {}\n", each(&|dimensions| copy.coordinates(dimensions))));
    }
    text.push_str("\nneeds\n");
    copy.needs().iter().for_each(|need| text.push_str(&format!("* {need}\n")));
    text
}

/// `32 threads`, `8 threads (4,2):(1,16)`, `1 thread`.
fn threads(layout: &Layout) -> String {
    match layout.size() {
        1 => "1 thread".to_owned(),
        count if layout.equivalent(&Layout::mode_of(count, 1).unwrap_or(Layout::unit())) => format!("{count} threads"),
        count => format!("{count} threads, {layout}"),
    }
}

/// The table of a tile whose first mode is fastest.
fn owners(held: &ThreadValue, [rows, columns]: [i64; 2], threads: i64, window: Window, colour: bool) -> String {
    table(held, [rows, columns], threads, window, colour, |row, column| row + rows * column)
}

/// The table of a block, row by row.
fn owners_by_row(held: &ThreadValue, [rows, columns]: [i64; 2], threads: i64, window: Window, colour: bool) -> String {
    table(held, [rows, columns], threads, window, colour, |row, column| column + columns * row)
}

fn table(
    held: &ThreadValue,
    [rows, columns]: [i64; 2],
    threads: i64,
    window: Window,
    colour: bool,
    place: impl Fn(i64, i64) -> i64,
) -> String {
    if held.holders() == threads && threads > 1 {
        return format!("all {threads} threads see all of it\n");
    }
    let mut text = match held.holders() {
        1 if held.copies() > 1 => {
            format!("each is read {} times, the rest not at all; the first time is shown\n", held.copies())
        }
        1 => String::new(),
        holders => format!("each position is held by {holders} threads; the first one is shown\n"),
    };
    // The lowest thread is written last, with its lowest value, and overwrites others.
    let mut owner = vec![None; usize::try_from(rows * columns).unwrap_or(0)];
    let values = held.values();
    for thread in (0..threads).rev() {
        for value in (0..values).rev() {
            let at = held.layout().eval(&(thread + threads * value)).ok().and_then(|at| usize::try_from(at).ok());
            if let Some(cell) = at.and_then(|at| owner.get_mut(at)) {
                *cell = Some((thread, value));
            }
        }
    }
    let cell = |row, column| -> Cell {
        let owner = usize::try_from(place(row, column)).ok().and_then(|at| owner.get(at).copied().flatten());
        match owner {
            Some((thread, _)) if values == 1 => (format!("T{thread}"), Paint::Hue(thread)),
            Some((thread, value)) if threads > 1 => (format!("T{thread} V{value}"), Paint::Hue(thread)),
            Some((_, value)) => (format!("V{value}"), Paint::Hue(value)),
            None if held.copies() > 1 => ("-".to_owned(), Paint::Plain),
            None => ("?".to_owned(), Paint::Bad),
        }
    };
    let picture = grid(&Axis::flat(rows), &Axis::flat(columns), window, cell);
    text.push_str(&picture::text(&picture, 0, colour));
    text
}
