//! Runs a plan.
//!
//! Law: `dst(i) = src(i)` for every index `i`, and nothing else is written.
//!
//! # Invariant
//!
//! The caller gives two pointers. Every offset of the plan's source leads to an element that may be
//! read. Every offset of its destination leads to an element that may be written, and that nobody
//! else uses meanwhile. The two do not overlap. A plan visits exactly these offsets, because its
//! loops and its tile are a rearrangement of the axes of both layouts. Threads get disjoint parts
//! of the loops, and no two iterations write the same element.
//!
//! Extra memory: one buffer for each thread, [`Loops::buffer`] bytes.
//!
//! Reason for unsafe code: bytes are moved between places that tables of offsets name, without a
//! check for each.
#![allow(unsafe_code)]

use super::joined::Batch;
use super::plan::{Body, DividedSide, Loops, Masks, Move, STAGED_ROW};
use crate::domain::{self, Addressing};
use crate::memory::LINE;
use crate::simd::{self, CacheLine, Edge, Instructions, Pieces, Rectangle, Scratch, Stores, Stripe, StripeRows};
use crate::threads::Threads;

/// A pointer that threads share. They use it for disjoint elements, by the invariant of this
/// module.
#[derive(Clone, Copy)]
struct SharedPointer<P>(P);
// SAFETY: by the invariant of this module, threads write disjoint elements, and read only elements
// that nobody writes.
unsafe impl<P> Send for SharedPointer<P> {}
// SAFETY: by the invariant of this module, threads write disjoint elements, and read only elements
// that nobody writes.
unsafe impl<P> Sync for SharedPointer<P> {}

/// The smallest number of bytes for which another thread is woken.
const SHARE: usize = 1 << 19;
/// Runs of at least this many bytes are copied by the system's `memcpy`, which uses non-temporal
/// stores itself.
const PLAIN: usize = 1 << 22;
/// The number of parts for each thread, so that a delayed thread leaves work to the others.
const PARTS: usize = 4;

/// The work of a copy and its parameters.
pub(super) struct Work<'a> {
    pub(super) src: &'a Addressing,
    pub(super) dst: &'a Addressing,
    pub(super) body: &'a Body,
    /// The bytes of an element.
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
        let most = self.threads.min(bytes / SHARE).max(1);
        let threads = if most == 1 { Threads::One } else { Threads::here() };
        let parts = match threads {
            Threads::One => 1,
            _ => ((most * PARTS) as i64).min(count).max(1),
        };
        let pointers = (SharedPointer(src), SharedPointer(dst));
        let part = |number: usize| {
            let (first, end) = (part_start(count, parts, number), part_start(count, parts, number + 1));
            let (src, dst) = pointers;
            // SAFETY: the caller vouches for all elements of the plan; parts are disjoint.
            unsafe { self.part(src, dst, first, end) };
        };
        if parts == 1 {
            part(0);
        } else {
            threads.each(parts as usize, &part);
        }
    }

    /// Copies a range of the iterations, or of the indices.
    ///
    /// # Safety
    /// The invariant of this module.
    unsafe fn part(&self, src: SharedPointer<*const u8>, dst: SharedPointer<*mut u8>, first: i64, end: i64) {
        let (src, dst) = (src.0, dst.0);
        match self.body {
            // SAFETY: the caller vouches for all elements of the plan, of which these iterations
            // visit some.
            Body::Loops(loops) => unsafe { self.loops(loops, src, dst, first as usize, end as usize) },
            Body::Walk(_) => {
                let bytes = self.element as isize;
                let at = |place: i64| (place as isize).wrapping_mul(bytes);
                let visited = domain::runs(self.src, self.dst, first, end, |from, to, count| {
                    // SAFETY: runs of elements of the source and the destination, which the caller
                    // vouches for.
                    unsafe {
                        let (src, dst) = (src.wrapping_offset(at(from)), dst.wrapping_offset(at(to)));
                        simd::copy_run(src, dst, count * self.element);
                    }
                });
                debug_assert!(visited.is_some());
            }
        }
    }

    /// Runs the iterations from `first` to before `end`, with all loops counted as one.
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
        let bytes = loops.buffer();
        let mut memory = vec![0_u8; if bytes == 0 { 0 } else { bytes + 64 }];
        let buffer = memory.as_mut_ptr();
        // Aligned to a line, as its rows are.
        let buffer = buffer.wrapping_add(if bytes == 0 { 0 } else { (buffer as usize).wrapping_neg() % 64 });
        let mut scratch = Scratch::new();
        let tile = &loops.tile;
        // The offsets of the next iteration.
        let mut place = || {
            let (mut across, mut along, mut unit) = (tile.across.len(), tile.along.len(), tile.unit);
            let (mut begins, mut ends, mut flips) = (true, true, [0; 2]);
            for (each, digit) in outer.iter().zip(&digits) {
                let last = *digit + 1 == each.count;
                match each.part {
                    DividedSide::Across(few) if last => across = few,
                    DividedSide::Run(few) if last => unit = few,
                    DividedSide::Flip(masks) if last => flips = [flips[0] ^ masks[0], flips[1] ^ masks[1]],
                    DividedSide::Along(few) => {
                        (begins, ends) = (*digit == 0, last);
                        along = if last { few } else { along };
                    }
                    _ => {}
                }
            }
            let mut place = Place { src, dst, across, along, unit, begins, ends, flips, onward: src };
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
            place.onward = src;
            place
        };
        for _ in first..end {
            let place = place();
            // SAFETY: an iteration of the loops, whose elements the caller vouches for; parts are
            // at most as long as the tables, and the buffer has the bytes of the plan.
            unsafe {
                match tile.how {
                    Move::Transpose => self.transpose(loops, &place, buffer, &mut scratch),
                    Move::Permuted => self.transpose_permuted(loops, &place, (&mut scratch, buffer)),
                    _ => self.tile(loops, &place, buffer),
                }
            }
        }
        if loops.streaming {
            simd::fence();
        }
    }

    /// Moves one tile that is not transposed.
    ///
    /// # Safety
    /// The invariant of this module; `buffer` has [`Loops::buffer`] bytes.
    unsafe fn tile(&self, loops: &Loops, place: &Place, buffer: *mut u8) {
        let (tile, Place { src, dst, across, along, unit, .. }) = (&loops.tile, *place);
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
        // SAFETY: the offsets are those of the tile, at an iteration of the loops that the caller
        // vouches for; the buffer has room for a row.
        unsafe {
            match tile.how {
                Move::Pairs => {
                    let stream = loops.streaming && tile.rows && units;
                    simd::copy_pairs(src, dst, (along_src, along_dst), unit, stream);
                }
                Move::Splat => simd::splat(src, dst, unit, along),
                Move::Runs => {
                    let single = across == 1 && along == 1;
                    let along = (along_src, along_dst);
                    let rectangle = Rectangle { src, dst, across: (across_src, across_dst), along };
                    if single && unit >= PLAIN {
                        rectangle.copy(unit);
                    } else if loops.streaming && single && unit >= STAGED_ROW {
                        simd::stream_run(src, dst, unit, self.instructions);
                    } else if loops.streaming && units && (tile.rows || unit.is_multiple_of(64)) {
                        rectangle.stream(unit);
                    } else if staged {
                        for (from, to) in across_src.iter().zip(across_dst) {
                            // The elements along are contiguous in the destination, and so in the
                            // buffer.
                            let src = src.wrapping_offset(*from);
                            Rectangle { src, dst: buffer, across: (&[0], &[0]), along }.copy(unit);
                            simd::stream_run(
                                buffer,
                                dst.wrapping_offset(*to),
                                along_src.len() * unit,
                                self.instructions,
                            );
                        }
                    } else {
                        rectangle.copy(unit);
                    }
                }
                Move::Transpose | Move::Permuted => {}
            }
        }
    }

    /// Transposes one tile, stripe by stripe.
    ///
    /// # Safety
    /// The invariant of this module; `buffer` has [`Loops::buffer`] bytes.
    unsafe fn transpose(&self, loops: &Loops, place: &Place, buffer: *mut u8, scratch: &mut Scratch) {
        let (tile, unit) = (&loops.tile, loops.tile.unit);
        let Some(columns) = tile.across.dst.get(..place.across) else { return };
        let whole = loops.aligned.min(1 << (place.dst as usize | LINE).trailing_zeros()) == LINE;
        if loops.joins() {
            // SAFETY: the caller vouches for the place and the buffer, which is that of joined
            // rows.
            return unsafe { self.transpose_joined(loops, place, buffer, scratch) };
        }
        let kept = buffer.cast::<CacheLine>();
        // Lines are joined between elements.
        let keeps =
            loops.streaming && !whole && loops.kept() && (place.dst as usize | loops.aligned).is_multiple_of(unit);
        let before = if keeps && !place.begins { tile.before } else { 0 };
        let rows = tile.sources.get(tile.before - before..tile.before + place.along).unwrap_or_default();
        let stores = |number: usize, bytes: usize, last: bool| {
            let edge = Edge {
                only_kept: before > 0 && number == 0,
                begins: before == 0 && number == 0,
                ends: last && (place.ends || tile.before == 0),
            };
            if keeps && (edge.only_kept || edge.begins || last) {
                Stores::Edge(kept, edge)
            } else if keeps {
                Stores::Kept(kept)
            } else if loops.streaming && whole && bytes == LINE {
                Stores::Streaming
            } else {
                Stores::Ordinary
            }
        };
        let dst = place.dst.wrapping_sub(before * unit);
        // SAFETY: the rows and columns are those of the tile, which the caller vouches for; if
        // lines are kept, the buffer has one for each column.
        unsafe {
            self.stripes(
                &TransposedBlock { src: place.src, rows, dst, columns, unit, beyond: tile.across.len() * unit },
                stores,
                scratch,
            )
        };
    }

    /// Transposes one tile through a map.
    ///
    /// # Safety
    /// The invariant of this module; `buffer` has [`Loops::buffer`] bytes.
    unsafe fn transpose_permuted(&self, loops: &Loops, place: &Place, (scratch, buffer): (&mut Scratch, *mut u8)) {
        let (tile, unit) = (&loops.tile, loops.tile.unit);
        let Masks { across, along, parts: sizes } = &tile.masks;
        let (Some(columns), Some(column_masks)) = (tile.across.dst.get(..place.across), across.get(..place.across))
        else {
            return;
        };
        let (Some(rows), Some(row_masks)) = (tile.along.src.get(..place.along), along.get(..place.along)) else {
            return;
        };
        let first = place.dst.wrapping_offset(columns.first().copied().unwrap_or(0));
        let whole = loops.aligned.min(1 << (first as usize | LINE).trailing_zeros()) == LINE;
        let group = LINE / unit;
        let far = simd::stripes_ahead(self.instructions, unit, columns.len());
        let count = rows.len().div_ceil(group);
        for (number, (some, masks)) in rows.chunks(group).zip(row_masks.chunks(group)).enumerate() {
            // The prefetched rows are in this tile, or in the next one.
            let (later, from) = match number + far {
                later if later < count => (later, place.src),
                later => ((later - count).min(count - 1), place.onward),
            };
            let next = rows.get(later * group..rows.len().min((later + 1) * group)).unwrap_or(some);
            let pieces = Pieces {
                src: place.src,
                rows: (some, masks),
                next: (from, next),
                first: 0,
                dst: place.dst,
                columns: (columns, column_masks),
                at: number * LINE,
                flips: place.flips,
                parts: *sizes,
                streams: loops.streaming && whole && some.len() == group,
            };
            // SAFETY: the rows and columns are those of the tile, which the caller vouches for; the
            // buffer is that of a permuted tile.
            unsafe { simd::transpose_permuted(&pieces, unit, self.instructions, (scratch, buffer)) };
        }
    }

    /// Transposes all stripes of a block. `stores` gets the number of a stripe, the bytes of its
    /// lines, and whether it is the last.
    ///
    /// # Safety
    /// The law of stripes, for each of them.
    unsafe fn stripes(
        &self,
        block: &TransposedBlock<'_>,
        stores: impl Fn(usize, usize, bool) -> Stores,
        scratch: &mut Scratch,
    ) {
        let TransposedBlock { src, rows, dst, columns, unit, beyond } = *block;
        let group = LINE / unit;
        let stripe = |number: usize| rows.chunks(group).nth(number);
        let (count, far) = (rows.len().div_ceil(group), simd::stripes_ahead(self.instructions, unit, columns.len()));
        let [mut here, mut next] = [StripeRows::NONE; 2];
        for number in 0..count {
            let Some(some) = stripe(number) else { break };
            here.set(src, some, unit);
            match stripe(number + far) {
                Some(rows) => next.set(src, rows, unit),
                None => next.set(src.wrapping_add(beyond), stripe((number + far) % count).unwrap_or(some), unit),
            }
            let bytes = some.len() * unit;
            let stores = stores(number, bytes, number + 1 == count);
            let dst = dst.wrapping_add(number * LINE);
            // SAFETY: the caller vouches for the law of this stripe.
            unsafe {
                let stripe = Stripe { rows: &here, next: &next, dst, columns, bytes, stores };
                simd::transpose(&stripe, unit, self.instructions, scratch);
            }
        }
    }

    /// Transposes a tile whose rows are adjacent in the destination. A batch of rows at a time is
    /// joined in a buffer and written at once.
    ///
    /// # Safety
    /// As [`Work::transpose`].
    unsafe fn transpose_joined(&self, loops: &Loops, place: &Place, buffer: *mut u8, scratch: &mut Scratch) {
        let (tile, unit) = (&loops.tile, loops.tile.unit);
        let rows = tile.along.src.get(..place.along).unwrap_or_default();
        let [whole, part] = &loops.joined;
        let mut src = place.src;
        for Batch { places, runs } in if place.across == tile.across.len() { whole } else { part } {
            let beyond = places.len() * unit;
            // SAFETY: the caller vouches for the tile; the buffer has room for all rows of a batch,
            // and its runs are the elements of its columns.
            unsafe {
                let block = TransposedBlock { src, rows, dst: buffer, columns: places, unit, beyond };
                self.stripes(&block, |_, _, _| Stores::Ordinary, scratch);
                for run in runs {
                    let (from, to) = (buffer.wrapping_add(run.at), place.dst.wrapping_offset(run.to));
                    simd::stream_run(from, to, run.bytes, self.instructions);
                }
            }
            src = src.wrapping_add(beyond);
        }
    }
}

/// Rows to transpose: element `i` of row `j` goes to `dst + columns[i] + j * unit`.
#[derive(Clone, Copy)]
struct TransposedBlock<'a> {
    src: *const u8,
    rows: &'a [isize],
    dst: *mut u8,
    columns: &'a [isize],
    unit: usize,
    /// The bytes of its rows. The rows of the next block are expected after them.
    beyond: usize,
}

/// The position of an iteration of the loops: where its tile begins, and how much of the tables it
/// uses.
#[derive(Clone, Copy)]
struct Place {
    src: *const u8,
    dst: *mut u8,
    across: usize,
    along: usize,
    unit: usize,
    /// Whether no tile precedes it along, and whether none follows.
    begins: bool,
    ends: bool,
    /// The bits that are flipped in the offsets of all rows, in the source and in the destination.
    flips: [usize; 2],
    /// The beginning of the next tile in the source.
    onward: *const u8,
}

/// The beginning of part `number` of `parts`.
fn part_start(count: i64, parts: i64, number: usize) -> i64 {
    (i128::from(count) * number as i128 / i128::from(parts)) as i64
}
