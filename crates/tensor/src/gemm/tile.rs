//! The tiles of a part of C: one micro-kernel each, and the ways to write a tile to C.
//!
//! **Law.** [`each_tile`] gives every element of the part to exactly one tile. A micro-kernel
//! writes columns with contiguous rows. A tile with another layout in C is computed in a buffer,
//! and then added to its elements one by one.
#![allow(unsafe_code)]

use super::element::SumElement;
use super::kernel::{KernelFunction, KernelSet, KernelTile};
use super::prefetch::Prefetch;

/// An operand as micro-kernels read it: slices of MR rows of A, or of NR columns of B.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slices<W> {
    /// The first word.
    pub from: *const W,
    /// The distance from one slice to the next, in words.
    pub slice: isize,
    /// The distance from one step along K to the next, in words.
    pub step: isize,
    /// The distance from one row to the next, in words.
    pub row: isize,
}

/// A part of C, and its division into tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProductPart {
    /// MR and NR.
    pub tile: [usize; 2],
    /// The rows and columns of the part.
    pub extents: [usize; 2],
    /// The number of steps of each tile along K, in words.
    pub words: usize,
    /// Whether no rows of A beyond the part's may be read.
    pub edge: bool,
}

/// The largest numbers of rows and columns of a register tile.
const MAX_ROWS: usize = 64;
const MAX_COLUMNS: usize = 12;

/// A tile that is computed outside C, column after column.
#[repr(align(64))]
struct Buffer<C>([C; MAX_ROWS * MAX_COLUMNS]);

/// Passes each tile of a part of C to `write`, with its first row and column and its micro-kernel.
/// The tile's pointer into C is not set yet.
///
/// Before a slice of B is read for the first time, `ready` is called with its first column and
/// returns the lines to prefetch meanwhile. If it returns none, a share of `upcoming` is
/// prefetched.
#[inline]
pub(super) fn each_tile<W: Copy, C: SumElement>(
    kernels: &KernelSet<W, C>,
    part: ProductPart,
    [a, b]: [Slices<W>; 2],
    [alpha, beta]: [C; 2],
    upcoming: Prefetch,
    mut ready: impl FnMut(usize) -> Prefetch,
    mut write: impl FnMut(usize, usize, KernelFunction<W, C>, usize, KernelTile<W, C>),
) {
    let lanes = kernels.lanes;
    let ProductPart { tile: [mr, nr], extents: [rows, columns], words, edge } = part;
    let (total, mut count) = (rows.div_ceil(mr) * columns.div_ceil(nr), 0);
    let mut one = |i: usize, j: usize, a_from: *const W, b_from: *const W, prefetch: Prefetch| {
        let prefetch = if prefetch.lines == 0 { upcoming.share(count, total, nr) } else { prefetch };
        count += 1;
        let (rows, columns) = (mr.min(rows - i), nr.min(columns - j));
        let table = if edge && rows & (lanes - 1) != 0 {
            kernels.edge
        } else if b.row == 1 {
            kernels.packed
        } else {
            kernels.strided
        };
        let run = table.get((rows - 1) / lanes).and_then(|table| table.get(columns - 1));
        debug_assert!(run.is_some(), "the invariant of the kernels");
        if let Some(run) = run {
            let tile = KernelTile {
                k: words,
                a: a_from,
                a_step: a.step,
                b: b_from,
                b_step: b.step,
                b_column: b.row,
                c: std::ptr::null_mut(),
                c_column: 0,
                rows,
                prefetch,
                alpha,
                beta,
            };
            write(i, j, *run, columns, tile);
        }
    };
    let mut b_from = b.from;
    for j in (0..columns).step_by(nr) {
        let prefetch = ready(j);
        let mut a_from = a.from;
        for i in (0..rows).step_by(mr) {
            one(i, j, a_from, b_from, prefetch.part(i / mr, rows.div_ceil(mr)));
            a_from = a_from.wrapping_offset(a.slice);
        }
        b_from = b_from.wrapping_offset(b.slice);
    }
}

impl<W: Copy, C: SumElement> KernelTile<W, C> {
    /// Adds the product to elements whose rows are contiguous and whose columns are `column`
    /// elements apart.
    ///
    /// # Safety
    ///
    /// The invariant of the tile at this place, and a processor with the instructions of `run`.
    #[inline(always)]
    pub unsafe fn write(mut self, run: KernelFunction<W, C>, c: *mut C, column: isize) {
        (self.c, self.c_column) = (c, column);
        // SAFETY: the caller vouches for the place, the operands and the instructions.
        unsafe { run(&self) }
    }

    /// Adds the product to a tile given by the offsets of its rows and columns.
    ///
    /// # Safety
    ///
    /// As [`KernelTile::write`], for every sum of an offset of a row and one of a column.
    #[inline]
    pub unsafe fn write_along(self, run: KernelFunction<W, C>, to: *mut C, rows: &[isize], columns: &[isize]) {
        let step = |offsets: &[isize], by: isize| offsets.windows(2).all(|pair| matches!(pair, [a, b] if b - a == by));
        let stride = match columns {
            [first, second, ..] => second - first,
            _ => 0,
        };
        if let ([row, ..], [column, ..]) = (rows, columns)
            && step(rows, 1)
            && step(columns, stride)
        {
            // SAFETY: rows are contiguous and columns have one stride, so these are the caller's
            // elements.
            return unsafe { self.write(run, to.wrapping_offset(row + column), stride) };
        }
        let offset = |r: usize, c: usize| rows.get(r).zip(columns.get(c)).map_or(0, |(row, column)| row + column);
        // SAFETY: each offset is the sum of one of a row and one of a column, which the caller
        // vouches for.
        unsafe { self.scatter(run, to, columns.len(), offset) }
    }

    /// Adds the product to elements at arbitrary offsets.
    ///
    /// # Safety
    ///
    /// As [`KernelTile::write`], for every offset of a row and a column of the tile.
    #[inline]
    pub unsafe fn scatter(
        self,
        run: KernelFunction<W, C>,
        to: *mut C,
        columns: usize,
        offset: impl Fn(usize, usize) -> isize,
    ) {
        let (mut buffer, beta) = (Buffer([C::default(); MAX_ROWS * MAX_COLUMNS]), self.beta);
        // SAFETY: no kernel has a larger tile than the buffer, in which columns lie side by side.
        unsafe { KernelTile { beta: C::default(), ..self }.write(run, buffer.0.as_mut_ptr(), MAX_ROWS as isize) };
        for (j, column) in buffer.0.chunks(MAX_ROWS).take(columns).enumerate() {
            for (i, value) in column.iter().take(self.rows).enumerate() {
                let place = to.wrapping_offset(offset(i, j));
                // SAFETY: the caller vouches for the offset of every row and column of the tile.
                unsafe {
                    let old = if beta == C::default() { C::default() } else { *place };
                    *place = value.plus(beta, old);
                }
            }
        }
    }
}
