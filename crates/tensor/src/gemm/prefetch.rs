//! Cache lines that are prefetched because they will be needed soon.
//!
//! Law: the shares of a [`Prefetch`] cover its lines, and contain each line once. A prefetch does
//! not read, so an invalid address is harmless.

use crate::memory::LINE;

/// Cache lines to prefetch: some lines of each of several rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefetch {
    /// The first line of the first row.
    pub from: *const u8,
    /// The distance from one row to the next, in bytes.
    pub row: isize,
    /// The number of rows. In a tile, this is the number for each of its columns.
    pub rows: usize,
    /// The number of lines of each row.
    pub lines: usize,
}

impl Prefetch {
    /// No lines.
    pub const NONE: Prefetch = Prefetch { from: std::ptr::null(), row: 0, rows: 0, lines: 0 };

    /// The rows for each column of tile `number`, if `of` tiles of this many columns share the
    /// rows.
    #[inline]
    pub fn share(self, number: usize, of: usize, columns: usize) -> Prefetch {
        let rows = self.rows.div_ceil((of * columns).max(1));
        let first = rows * columns * number;
        if first >= self.rows {
            return Prefetch::NONE;
        }
        Prefetch { from: self.from.wrapping_offset(self.row.wrapping_mul(first as isize)), rows, ..self }
    }

    /// The lines of each row for tile `number`, if `of` tiles share the lines.
    #[inline]
    pub fn part(self, number: usize, of: usize) -> Prefetch {
        let lines = self.lines.div_ceil(of);
        let first = (lines * number).min(self.lines);
        Prefetch { from: self.from.wrapping_add(first * LINE), lines: lines.min(self.lines - first), ..self }
    }
}
