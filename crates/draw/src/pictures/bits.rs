//! Pictures of linear maps over bits.
//!
//! Law: the cell in row `i` and column `j` is 1 if bit `i` of the image of bit `j` is set. So a
//! column is the image of one bit, and a bit of an image is the XOR of the input bits that have a 1
//! in its row.

use std::fmt::Write as _;

use tilewright_layout::BitMatrix;

use crate::axis::Axis;
use crate::figure::{Figure, Panel};
use crate::grid::Cell;
use crate::pictures::{Medium, Style};
use crate::theme::Paint;

/// A linear map over bits as its matrix: bits of the input to the right, bits of the output
/// downward, the lowest first.
///
/// ```
/// use tilewright_draw::{Style, Theme, bits};
/// use tilewright_layout::BitMatrix;
///
/// let swizzle = BitMatrix::of_columns([1, 2, 5, 10]).unwrap();
/// let svg = bits("S<2,0,2>", &swizzle, Style::default()).svg(Theme::Auto);
/// assert!(svg.contains("bit 0 of the image has bit 2"));
/// ```
pub fn bits<'a>(heading: &str, map: &BitMatrix, style: Style) -> Figure<'a> {
    let side = |bits: usize| Axis::flat(i64::try_from(bits).unwrap_or(1));
    let columns = map.columns().to_vec();
    let panel = Panel::grid(heading, side(map.outputs()), side(map.inputs()), move |row, column, cell: &mut Cell| {
        let image = usize::try_from(column).ok().and_then(|column| columns.get(column)).copied().unwrap_or(0);
        let set = image.checked_shr(u32::try_from(row).unwrap_or(u32::MAX)).unwrap_or(0) & 1 == 1;
        cell.faint = !set;
        match (set, style.medium) {
            (true, _) => cell.label.push('1'),
            (false, Medium::Page) => cell.label.push('0'),
            (false, Medium::Terminal) => cell.label.push('·'),
        }
        if set {
            cell.fill = if row == column { Paint::Grey(2) } else { style.palette.paint(row, 8) };
        }
        if style.medium == Medium::Page {
            let _ = write!(cell.title, "bit {row} of the image has {}bit {column}", if set { "" } else { "not " });
        }
    });
    Figure::row([panel])
        .captioned("A column is the image of a bit, the lowest bit first; bits of the image go downward.")
}
