//! Doing what a plan says.
//!
//! # Invariant
//!
//! The caller gives two pointers such that every place of the source of the plan is an element that may be read, and every place of the destination one that may be
//! written and that nobody else uses meanwhile; and no place of one is a place of the other. A plan visits each place of its sides and no other, for its loops and its
//! tile are a rearrangement of the axes of both; threads get disjoint parts of the loops, and no two iterations write one place.
//!
//! Extra memory: one buffer of a tile for each thread, [`Loops::buffer`] bytes.
#![allow(unsafe_code)]

use rayon::prelude::*;

use super::addressing::Addressing;
use super::kernel::{self, Block, Instructions, Rectangle};
use super::plan::{Body, Loops, Move, Part, STAGED_ROW};
use super::walk;

/// A pointer that threads share. What they do with it is disjoint, by the invariant of this module.
#[derive(Clone, Copy)]
struct Shared<P>(P);
// SAFETY: by the invariant of this module, threads write disjoint places, and read what nobody writes.
unsafe impl<P> Send for Shared<P> {}
// SAFETY: as above.
unsafe impl<P> Sync for Shared<P> {}

/// The bytes that make it worth while to wake another thread.
const SHARE: usize = 1 << 19;
/// A run of so many bytes is copied as the system does, which then goes past the caches too.
const PLAIN: usize = 1 << 22;
/// How many rows before it is written a row is fetched.
const AHEAD: usize = 8;
/// Parts a thread, so that a thread that is held up does not hold up the rest.
const PARTS: usize = 4;

/// What is moved, and by how many.
pub(super) struct Work<'a> {
    pub(super) src: &'a Addressing,
    pub(super) dst: &'a Addressing,
    pub(super) body: &'a Body,
    /// Bytes an element.
    pub(super) element: usize,
    /// The number of elements.
    pub(super) size: i64,
    pub(super) threads: usize,
    pub(super) instructions: Instructions,
}

impl Work<'_> {
    /// Copies.
    ///
    /// # Safety
    /// The invariant of this module.
    pub(super) unsafe fn run(&self, src: *const u8, dst: *mut u8) {
        if self.element == 0 {
            return;
        }
        let count = match self.body {
            Body::Loops(loops) => loops.outer.iter().fold(1, |count, each| count * each.count as i64),
            Body::Walk(_) => self.size,
        };
        let bytes = (self.size as usize).saturating_mul(self.element);
        let threads = self.threads.min(bytes / SHARE).max(1);
        let parts = if threads == 1 { 1 } else { (threads * PARTS) as i64 }.min(count).max(1);
        let pointers = (Shared(src), Shared(dst));
        let part = |number: usize| {
            let (first, end) = (share(count, parts, number), share(count, parts, number + 1));
            let (src, dst) = pointers;
            // SAFETY: the invariant; parts are disjoint.
            unsafe { self.part(src, dst, first, end) };
        };
        if parts == 1 { part(0) } else { (0..parts as usize).into_par_iter().with_max_len(1).for_each(part) }
    }

    /// # Safety
    /// The invariant of this module.
    unsafe fn part(&self, src: Shared<*const u8>, dst: Shared<*mut u8>, first: i64, end: i64) {
        let (src, dst) = (src.0, dst.0);
        match self.body {
            // SAFETY: the invariant.
            Body::Loops(loops) => unsafe { self.loops(loops, src, dst, first as usize, end as usize) },
            Body::Walk(_) => {
                let bytes = self.element as isize;
                let at = |place: i64| (place as isize).wrapping_mul(bytes);
                let walked = walk::runs(self.src, self.dst, first, end, |from, to, count| {
                    // SAFETY: places of both sides.
                    unsafe {
                        let (src, dst) = (src.wrapping_offset(at(from)), dst.wrapping_offset(at(to)));
                        kernel::copy_run(src, dst, count * self.element);
                    }
                });
                debug_assert!(walked.is_some());
            }
        }
    }

    /// The iterations from `first` to before `end`, of all loops counted as one.
    ///
    /// # Safety
    /// The invariant of this module.
    unsafe fn loops(&self, loops: &Loops, src: *const u8, dst: *mut u8, first: usize, end: usize) {
        let outer = &loops.outer;
        let mut digits = vec![0; outer.len()];
        let mut rest = first;
        let (mut src, mut dst) = (src.wrapping_offset(loops.src), dst.wrapping_offset(loops.dst));
        for (each, digit) in outer.iter().zip(&mut digits).rev() {
            *digit = rest % each.count;
            rest /= each.count;
            src = src.wrapping_offset((*digit as isize).wrapping_mul(each.src));
            dst = dst.wrapping_offset((*digit as isize).wrapping_mul(each.dst));
        }
        let mut buffer = vec![Line { _bytes: [0; 64] }; loops.buffer().div_ceil(64)];
        let tile = &loops.tile;
        for _ in first..end {
            let (mut across, mut along, mut unit) = (tile.across.len(), tile.along.len(), tile.unit);
            for (each, digit) in outer.iter().zip(&digits) {
                if *digit + 1 == each.count {
                    match each.part {
                        Part::Whole => {}
                        Part::Across(last) => across = last,
                        Part::Along(last) => along = last,
                        Part::Run(last) => unit = last,
                    }
                }
            }
            let (from, to) = (src, dst);
            for (each, digit) in outer.iter().zip(&mut digits).rev() {
                *digit += 1;
                if *digit < each.count {
                    src = src.wrapping_offset(each.src);
                    dst = dst.wrapping_offset(each.dst);
                    break;
                }
                *digit = 0;
                let back = -(each.count as isize - 1);
                src = src.wrapping_offset(each.src.wrapping_mul(back));
                dst = dst.wrapping_offset(each.dst.wrapping_mul(back));
            }
            // SAFETY: an iteration of the loops; the tables are as long as the parts say at the most.
            unsafe { self.tile(loops, from, to, across, along, unit, buffer.as_mut_ptr().cast(), src) };
        }
        if loops.streaming {
            kernel::fence();
        }
    }

    /// One tile: the first places across and along, and `unit` bytes a run. The tile after it begins at `next` in the source.
    ///
    /// # Safety
    /// The invariant of this module; `buffer` has [`Loops::buffer`] bytes.
    #[allow(clippy::too_many_arguments)]
    unsafe fn tile(
        &self,
        loops: &Loops,
        src: *const u8,
        dst: *mut u8,
        across: usize,
        along: usize,
        unit: usize,
        buffer: *mut u8,
        next: *const u8,
    ) {
        let tile = &loops.tile;
        let (Some(across_src), Some(across_dst)) = (tile.across.src.get(..across), tile.across.dst.get(..across))
        else {
            return;
        };
        let (Some(along_src), Some(along_dst)) = (tile.along.src.get(..along), tile.along.dst.get(..along)) else {
            return;
        };
        let align = loops.aligned.min(1 << (dst as usize | 64).trailing_zeros());
        let staged = loops.streaming && loops.staged();
        let units = align >= 16 && unit.is_multiple_of(16);
        // SAFETY: the invariant.
        unsafe {
            match tile.how {
                Move::Pairs => {
                    let stream = loops.streaming && tile.rows && units;
                    kernel::copy_pairs(src, dst, (along_src, along_dst), unit, stream);
                }
                Move::Splat => kernel::splat(src, dst, unit, along),
                Move::Runs => {
                    let single = across == 1 && along == 1;
                    let along = (along_src, along_dst);
                    let rectangle = Rectangle { src, dst, across: (across_src, across_dst), along };
                    if single && unit >= PLAIN {
                        rectangle.copy(unit);
                    } else if loops.streaming && single && unit >= STAGED_ROW {
                        kernel::stream_run(src, dst, unit);
                    } else if loops.streaming && units && (tile.rows || unit.is_multiple_of(64)) {
                        rectangle.stream(unit);
                    } else if staged {
                        for (from, to) in across_src.iter().zip(across_dst) {
                            // The places along are contiguous, here as there.
                            let src = src.wrapping_offset(*from);
                            Rectangle { src, dst: buffer, across: (&[0], &[0]), along }.copy(unit);
                            kernel::stream_run(buffer, dst.wrapping_offset(*to), along_src.len() * unit);
                        }
                    } else {
                        rectangle.copy(unit);
                    }
                }
                Move::Transpose => {
                    let direct = loops.streaming && align >= self.instructions.line();
                    let block = Block { src, rows: along_src, dst, columns: across_dst };
                    if staged && !direct {
                        let columns = loops.staging.get(..across).unwrap_or_default();
                        self.transpose(loops, &Block { dst: buffer, columns, ..block }, buffer, false);
                        for (i, (from, to)) in columns.iter().zip(across_dst).enumerate() {
                            // The ends of a row are parts of lines, which must be fetched: better before they are written than then.
                            if let Some(ahead) = across_dst.get(i + AHEAD) {
                                let ahead = dst.wrapping_offset(*ahead);
                                kernel::prefetch(ahead, 1);
                                kernel::prefetch(ahead.wrapping_add(along * unit - 1), 1);
                            }
                            // While this tile is written, the next one is read.
                            if let Some(row) = along_src.get(i) {
                                kernel::prefetch(next.wrapping_offset(*row), across * unit);
                            }
                            kernel::stream_run(buffer.wrapping_offset(*from), dst.wrapping_offset(*to), along * unit);
                        }
                    } else {
                        self.transpose(loops, &block, buffer, direct);
                    }
                }
            }
        }
    }

    /// One block; where the tile says so, the rows that are read at once are first brought together.
    ///
    /// # Safety
    /// As for [`Work::tile`].
    unsafe fn transpose(&self, loops: &Loops, block: &Block<'_>, buffer: *mut u8, stream: bool) {
        let (tile, instructions) = (&loops.tile, self.instructions);
        // SAFETY: the invariant; the gathered rows have the end of the buffer.
        unsafe {
            if !tile.gathered {
                return kernel::transpose(block, tile.unit, instructions, stream);
            }
            let near = buffer.wrapping_add(loops.staging_bytes());
            let together = instructions.line() / tile.unit;
            for (number, rows) in block.rows.chunks(together).enumerate() {
                let places = loops.gathering.get(..rows.len()).unwrap_or_default();
                for (k, (from, to)) in rows.iter().zip(places).enumerate() {
                    let src = block.src.wrapping_offset(*from);
                    if let Some(ahead) = block.rows.get(number * together + k + 2) {
                        kernel::prefetch(block.src.wrapping_offset(*ahead), block.columns.len() * tile.unit);
                    }
                    kernel::copy_run(src, near.wrapping_offset(*to), block.columns.len() * tile.unit);
                }
                let dst = block.dst.wrapping_add(number * together * tile.unit);
                let block = Block { src: near, rows: places, dst, columns: block.columns };
                kernel::transpose(&block, tile.unit, instructions, stream);
            }
        }
    }
}

/// A line of memory, for the buffers.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// The beginning of part `number` of `parts`.
fn share(count: i64, parts: i64, number: usize) -> i64 {
    (i128::from(count) * number as i128 / i128::from(parts)) as i64
}
