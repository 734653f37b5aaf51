//! One tile of C: its product, and the ways to where its elements lie.
//!
//! A micro-kernel writes columns whose rows are side by side. A tile that lies otherwise is computed apart and then put where it belongs.
#![allow(unsafe_code)]

use super::element::Element;
use super::kernel::{Run, Tile};
use super::workspace::LINE;

/// A factor as micro-kernels read it: slices of a certain width, each with a step along K.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slices<W> {
    /// The first word.
    pub from: *const W,
    /// From slice to slice, in words.
    pub slice: isize,
    /// From step to step along K, in words.
    pub step: isize,
    /// From row to row, in words.
    pub row: isize,
}

/// Lines of memory that will be needed soon: some of each of several rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    /// The first line of the first row. Nothing is read, so that it may be no memory at all.
    pub from: *const u8,
    /// From row to row, in bytes.
    pub row: isize,
    /// The number of rows; of those of a tile, for each of its columns.
    pub rows: usize,
    /// The lines of each row.
    pub lines: usize,
}

impl Ahead {
    /// Nothing.
    pub const NOTHING: Ahead = Ahead { from: std::ptr::null(), row: 0, rows: 0, lines: 0 };

    /// The rows that fall to each column of one of several tiles of so many columns.
    #[inline]
    pub fn share(self, number: usize, of: usize, columns: usize) -> Ahead {
        let rows = self.rows.div_ceil((of * columns).max(1));
        let first = rows * columns * number;
        if first >= self.rows {
            return Ahead::NOTHING;
        }
        Ahead { from: self.from.wrapping_offset(self.row.wrapping_mul(first as isize)), rows, ..self }
    }

    /// The lines of each row that fall to one of several tiles.
    #[inline]
    pub fn part(self, number: usize, of: usize) -> Ahead {
        let lines = self.lines.div_ceil(of);
        let first = (lines * number).min(self.lines);
        Ahead { from: self.from.wrapping_add(first * LINE), lines: lines.min(self.lines - first), ..self }
    }
}

/// The most rows and columns of a tile.
const ROWS: usize = 64;
const COLUMNS: usize = 12;

/// A tile that lies apart, column after column.
#[repr(align(64))]
struct Apart<C>([C; ROWS * COLUMNS]);

/// The product of a slice of A and one of B.
///
/// *Invariant*: the kernel may read the slices, `words` steps deep ([`Tile`]).
pub(super) struct TileProduct<W, C> {
    /// The micro-kernel for these rows and columns.
    pub run: Run<W, C>,
    /// The slice of A.
    pub a: Slices<W>,
    /// The slice of B.
    pub b: Slices<W>,
    /// The rows.
    pub rows: usize,
    /// The columns.
    pub columns: usize,
    /// The steps along K.
    pub words: usize,
    /// What is fetched meanwhile.
    pub ahead: Ahead,
}

impl<W: Copy, C: Element> TileProduct<W, C> {
    /// Adds the product to a tile whose columns lie `column` apart.
    ///
    /// # Safety
    ///
    /// The tile is memory that may be written.
    #[inline(always)]
    pub unsafe fn write(&self, c: *mut C, column: isize, alpha: C, beta: C) {
        let tile = Tile {
            k: self.words,
            a: self.a.from,
            a_step: self.a.step,
            b: self.b.from,
            b_step: self.b.step,
            b_column: self.b.row,
            c,
            c_column: column,
            rows: self.rows,
            ahead: self.ahead,
            alpha,
            beta,
        };
        // SAFETY: the invariant, and the caller's.
        unsafe { (self.run)(&tile) }
    }

    /// Adds the product to a tile given by the offsets of its rows and columns.
    ///
    /// # Safety
    ///
    /// As [`TileProduct::write`], for every sum of an offset of a row and one of a column.
    #[inline]
    pub unsafe fn write_along(&self, to: *mut C, rows: &[isize], columns: &[isize], alpha: C, beta: C) {
        let step = |offsets: &[isize], by: isize| offsets.windows(2).all(|pair| matches!(pair, [a, b] if b - a == by));
        let stride = match columns {
            [first, second, ..] => second - first,
            _ => 0,
        };
        if let ([row, ..], [column, ..]) = (rows, columns)
            && step(rows, 1)
            && step(columns, stride)
        {
            // SAFETY: the caller's.
            return unsafe { self.write(to.wrapping_offset(row + column), stride, alpha, beta) };
        }
        let offset = |r: usize, c: usize| rows.get(r).zip(columns.get(c)).map_or(0, |(row, column)| row + column);
        // SAFETY: the caller's.
        unsafe { self.scatter(to, offset, alpha, beta) }
    }

    /// Adds the product to elements that lie anywhere.
    ///
    /// # Safety
    ///
    /// As [`TileProduct::write`], for every offset of a row and column of the tile.
    #[inline]
    pub unsafe fn scatter(&self, to: *mut C, offset: impl Fn(usize, usize) -> isize, alpha: C, beta: C) {
        let mut apart = Apart([C::default(); ROWS * COLUMNS]);
        // SAFETY: no kernel has a larger tile; its columns lie side by side.
        unsafe { self.write(apart.0.as_mut_ptr(), ROWS as isize, alpha, C::default()) };
        for (j, column) in apart.0.chunks(ROWS).take(self.columns).enumerate() {
            for (i, value) in column.iter().take(self.rows).enumerate() {
                let place = to.wrapping_offset(offset(i, j));
                // SAFETY: the caller's.
                unsafe {
                    let old = if beta == C::default() { C::default() } else { *place };
                    *place = value.plus(beta, old);
                }
            }
        }
    }
}
