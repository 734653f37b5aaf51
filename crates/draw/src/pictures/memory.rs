//! Pictures of a layout over a line of memory.
//!
//! Law: the cell of an address shows its index. Addresses without an index are gaps; those with
//! several are overlaps, and show how many. The line is broken into rows; it begins at the smallest
//! offset, or at 0 if that is greater.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::axis::Axis;
use crate::error::DrawError;
use crate::figure::{Figure, Legend, Panel};
use crate::grid::Cell;
use crate::map::Map;
use crate::number::push_integer;
use crate::pictures::{MAX_INDICES, Medium, Style};
use crate::theme::{Paint, Palette};

/// The largest number of addresses that are drawn; a note says how many are omitted.
const MAX_ADDRESSES: i64 = 4096;

/// The largest number of addresses in a row.
const MAX_WIDTH: i64 = 1024;

/// A layout over memory: each address with its index, gaps and overlaps, in rows of `width`
/// addresses.
///
/// Errors: the layout refuses an index; its values are coordinates; the width is not positive or
/// more than 1024.
///
/// ```
/// use tilewright_draw::{Map, Style, Theme, memory};
/// use tilewright_layout::Layout;
///
/// // Two columns of four, two apart: addresses 4 and 5 are a gap.
/// let padded: Layout = "(4,2):(1,6)".parse().unwrap();
/// let figure = memory("padded", &Map::from(&padded), 16, Style::default()).unwrap();
/// assert!(figure.caption.starts_with("8 indices at 8 of 10 addresses: 2 in gaps, none shared"));
/// ```
pub fn memory<'a>(heading: &str, map: &Map, width: i64, style: Style) -> Result<Figure<'a>, DrawError> {
    if !(1..=MAX_WIDTH).contains(&width) {
        return Err(DrawError::Row { width, most: MAX_WIDTH });
    }
    let size = map.size();
    if size > MAX_INDICES {
        return Err(DrawError::TooLarge { what: "the size of the layout", value: size, limit: MAX_INDICES });
    }
    let line = MemoryLine::of(map, width)?;
    let limit = if style.medium == Medium::Terminal { MAX_ADDRESSES / 4 } else { MAX_ADDRESSES };
    let needed = i64::try_from(i128::from(line.most) - i128::from(line.begin) + 1).unwrap_or(i64::MAX);
    let drawn = needed.min(limit);
    let mut caption = line.caption();
    if drawn < needed {
        let _ = write!(caption, " The first {drawn} are drawn.");
    }
    let colour = move |index: i64| match style.palette {
        Palette::Distinct => Paint::heat(index, 0, size.saturating_mul(2)),
        palette => palette.paint(index, size),
    };
    let mut names = vec![(colour(size / 2), "the index at an address".to_owned())];
    if line.gaps() > 0 {
        names.push((Paint::Void, "gap".to_owned()));
    }
    if line.shared() > 0 {
        names.push((Paint::Warn, "an address of several indices".to_owned()));
    }
    let (rows, columns) = ((drawn + width - 1) / width, width.min(needed));
    let row_axis = Axis::flat(rows).counted_by(width).shifted_by(line.begin);
    let panel = Panel::grid(heading, row_axis, Axis::flat(columns), move |row, column, cell| {
        let address = line.begin.saturating_add(row.saturating_mul(width)).saturating_add(column);
        line.draw(address, style.medium == Medium::Page, colour, cell);
    });
    Ok(Figure::row([panel]).captioned(caption).explained(Legend::Names(names)))
}

/// A line of memory: the indices at each address.
struct MemoryLine {
    size: i64,
    /// The first index at each address, and the number of indices.
    held: HashMap<i64, (i64, u32)>,
    /// The first and the last address of the picture: the smallest address or 0, whichever is
    /// smaller, and the largest address with an index.
    least: i64,
    most: i64,
    /// The first address of the first row.
    begin: i64,
}

impl MemoryLine {
    fn of(map: &Map, width: i64) -> Result<MemoryLine, DrawError> {
        let mut held: HashMap<i64, (i64, u32)> = HashMap::new();
        for index in 0..map.size() {
            let (_, count) = held.entry(map.at(index)?).or_insert((index, 0));
            *count = count.saturating_add(1);
        }
        let least = held.keys().copied().min().unwrap_or(0).min(0);
        let most = held.keys().copied().max().unwrap_or(0);
        let begin = least.checked_sub(least.rem_euclid(width)).unwrap_or(least);
        Ok(MemoryLine { size: map.size(), held, least, most, begin })
    }

    /// The number of addresses, including gaps.
    fn span(&self) -> i128 {
        i128::from(self.most) - i128::from(self.least) + 1
    }

    fn gaps(&self) -> i128 {
        self.span() - self.held.len() as i128
    }

    /// The number of addresses with several indices.
    fn shared(&self) -> usize {
        self.held.values().filter(|(_, count)| *count > 1).count()
    }

    fn caption(&self) -> String {
        let count = |number: i128| if number == 0 { "none".to_owned() } else { number.to_string() };
        format!(
            "{} indices at {} of {} addresses: {} in gaps, {} shared by several.",
            self.size,
            self.held.len(),
            self.span(),
            count(self.gaps()),
            count(self.shared() as i128)
        )
    }

    /// Fills the cell of an address. With `titled` there is space for tooltips, so text is used
    /// instead of dots.
    fn draw(&self, address: i64, titled: bool, colour: impl Fn(i64) -> Paint, cell: &mut Cell) {
        if titled {
            cell.title.push_str("address ");
            push_integer(&mut cell.title, address);
        }
        match self.held.get(&address) {
            // Outside the first and the last address the cell is empty.
            None if address > self.most || address < self.least => {}
            None => {
                cell.fill = Paint::Void;
                if !titled {
                    cell.label.push('·');
                }
            }
            Some((index, 1)) => {
                cell.fill = colour(*index);
                push_integer(&mut cell.label, *index);
                if titled {
                    let _ = write!(cell.title, ": index {index}");
                }
            }
            Some((index, count)) => {
                cell.fill = Paint::Warn;
                let _ = write!(cell.label, "×{count}");
                if titled {
                    let _ = write!(cell.title, ": index {index} and {} more", count - 1);
                }
            }
        }
    }
}
