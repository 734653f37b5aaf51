//! Lines of memory that will be needed soon.
//!
//! Law: the shares of a [`Prefetch`] cover its lines, and name none twice. A prefetch reads
//! nothing, so an address may be no memory at all.

use crate::memory::LINE;

/// Some lines of each of several rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefetch {
    /// The first line of the first row.
    pub from: *const u8,
    /// From row to row, in bytes.
    pub row: isize,
    /// The number of rows; in a tile, for each of its columns.
    pub rows: usize,
    /// The lines of each row.
    pub lines: usize,
}

impl Prefetch {
    /// No lines.
    pub const NONE: Prefetch = Prefetch { from: std::ptr::null(), row: 0, rows: 0, lines: 0 };

    /// The rows for each column of tile `number` of `of` tiles of this many columns.
    #[inline]
    pub fn share(self, number: usize, of: usize, columns: usize) -> Prefetch {
        let rows = self.rows.div_ceil((of * columns).max(1));
        let first = rows * columns * number;
        if first >= self.rows {
            return Prefetch::NONE;
        }
        Prefetch { from: self.from.wrapping_offset(self.row.wrapping_mul(first as isize)), rows, ..self }
    }

    /// The lines of each row for tile `number` of `of` tiles.
    #[inline]
    pub fn part(self, number: usize, of: usize) -> Prefetch {
        let lines = self.lines.div_ceil(of);
        let first = (lines * number).min(self.lines);
        Prefetch { from: self.from.wrapping_add(first * LINE), lines: lines.min(self.lines - first), ..self }
    }
}
