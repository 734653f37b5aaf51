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
use super::kernel::{self, Block, Gathered, Instructions, PITCH, Rectangle};
use super::plan::{Body, Loops, Move, Part, STAGED_ROW, STAGED_STRIP, STRIP};
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
/// How many rows before it is read a row is fetched.
const AHEAD: usize = 4;
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
        let bytes = loops.buffer();
        let mut memory = vec![0_u8; if bytes == 0 { 0 } else { bytes + 64 }];
        let buffer = memory.as_mut_ptr();
        // It begins with a line, as rows in it do.
        let buffer = buffer.wrapping_add(if bytes == 0 { 0 } else { (buffer as usize).wrapping_neg() % 64 });
        let halves = [0, loops.gathering_bytes()].map(|half| buffer.wrapping_add(loops.staging_bytes() + half));
        let tile = &loops.tile;
        // One iteration after another.
        let mut place = || {
            let (mut across, mut along, mut unit) = (tile.across.len(), tile.along.len(), tile.unit);
            let (mut begins, mut ends) = (true, true);
            for (each, digit) in outer.iter().zip(&digits) {
                let last = *digit + 1 == each.count;
                match each.part {
                    Part::Across(few) if last => across = few,
                    Part::Run(few) if last => unit = few,
                    Part::Along(few) => {
                        (begins, ends) = (*digit == 0, last);
                        along = if last { few } else { along };
                    }
                    _ => {}
                }
            }
            let place = Place { src, dst, across, along, unit, begins, ends };
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
            place
        };
        let mut current = place();
        if tile.gathered {
            let all = 0..tile.sources.len();
            // SAFETY: an iteration of the loops, and a buffer for its rows.
            unsafe { self.gather(loops, &current, halves[0], all) };
        }
        for number in first..end {
            let next = (number + 1 < end).then(&mut place);
            let [near, other] = [halves[(number - first) % 2], halves[(number - first + 1) % 2]];
            // SAFETY: an iteration of the loops; the tables are as long as the parts say at the most.
            unsafe {
                match tile.how {
                    Move::Transpose => self.transpose(loops, &current, next.as_ref(), [buffer, near, other]),
                    _ => self.tile(loops, &current, buffer),
                }
            }
            match next {
                Some(next) => current = next,
                None => break,
            }
        }
        if loops.streaming {
            kernel::fence();
        }
    }

    /// One tile that is not transposed.
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
                        kernel::stream_run(src, dst, unit, self.instructions);
                    } else if loops.streaming && units && (tile.rows || unit.is_multiple_of(64)) {
                        rectangle.stream(unit);
                    } else if staged {
                        for (from, to) in across_src.iter().zip(across_dst) {
                            // The places along are contiguous, here as there.
                            let src = src.wrapping_offset(*from);
                            Rectangle { src, dst: buffer, across: (&[0], &[0]), along }.copy(unit);
                            kernel::stream_run(
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
                Move::Transpose => {}
            }
        }
    }

    /// Whether the rows of a transposed tile are written past the caches as they are, because they begin with lines, and whether by way of a buffer.
    fn stores(&self, loops: &Loops, place: &Place) -> (bool, bool) {
        let whole =
            self.instructions.line() == 64 && loops.aligned.min(1 << (place.dst as usize | 64).trailing_zeros()) == 64;
        let direct = loops.streaming && whole;
        (direct, loops.streaming && !direct && loops.staged())
    }

    /// One tile that is transposed. Where rows are brought together, its own are `near`, and those of the next tile are brought to `other` meanwhile.
    ///
    /// Rows of the destination that do not begin with lines are written a strip of columns at a time, by way of a buffer: the lines that begin before the tile whole, and those
    /// that end behind it not at all, for the next tile does.
    ///
    /// # Safety
    /// The invariant of this module; the buffers have the lengths that [`Loops`] says.
    unsafe fn transpose(&self, loops: &Loops, place: &Place, next: Option<&Place>, [strip, near, other]: [*mut u8; 3]) {
        let (tile, unit) = (&loops.tile, loops.tile.unit);
        let (direct, staged) = self.stores(loops, place);
        let rows = place.rows(loops, staged);
        let Some(columns) = tile.across.dst.get(..place.across) else { return };
        if !tile.gathered && !staged {
            let block = Block { src: place.src, rows, dst: place.dst, columns };
            // SAFETY: the invariant.
            return unsafe { kernel::transpose(&block, unit, self.instructions, direct) };
        }
        let (bytes, lead) = (place.along * unit, (rows.len() - place.along) * unit);
        let width = if staged { STAGED_STRIP } else { STRIP } / unit;
        let strips = place.across.div_ceil(width);
        // Of rows that follow one another, where in the buffer the next one begins, and what is to be written: as many bytes behind the beginning of a line as in memory.
        let mut rest = if loops.joined && staged { place.dst as usize % 64 } else { 0 };
        let mut begun = rest;
        let upcoming = next.filter(|_| tile.gathered);
        let upcoming = upcoming.map(|next| (next, next.rows(loops, self.stores(loops, next).1).len()));
        for number in 0..strips {
            // A last strip that is too narrow for a vector begins earlier, and writes some rows again.
            let narrow = !loops.joined && place.across - number * width < 16 / unit;
            let first = if narrow { place.across.saturating_sub(16 / unit) } else { number * width };
            let columns = columns.get(first..place.across.min((number + 1) * width)).unwrap_or_default();
            let (dst, places) = match loops.staging.get(..columns.len()) {
                Some(places) if staged => (strip, places),
                _ => (place.dst, columns),
            };
            let dst = dst.wrapping_add(rest);
            // SAFETY: the invariant.
            unsafe {
                if tile.gathered {
                    let (src, rows) = (near.wrapping_add(first * unit), Gathered(rows.len()));
                    kernel::transpose(&Block { src, rows, dst, columns: places }, unit, self.instructions, direct);
                } else {
                    let src = place.src.wrapping_add(first * unit);
                    kernel::transpose(&Block { src, rows, dst, columns: places }, unit, self.instructions, direct);
                }
                if let Some((next, all)) = upcoming {
                    self.gather(loops, next, other, number * all / strips..(number + 1) * all / strips);
                }
                if loops.joined && staged {
                    let to = place.dst.wrapping_offset(columns.first().copied().unwrap_or(0)).wrapping_sub(rest);
                    rest += columns.len() * bytes;
                    let whole = if number + 1 == strips { rest } else { rest / 64 * 64 };
                    if whole > begun {
                        let (from, to) = (strip.wrapping_add(begun), to.wrapping_add(begun));
                        kernel::stream_run(from, to, whole - begun, self.instructions);
                        rest -= whole;
                        kernel::copy_run(strip.wrapping_add(whole), strip, rest);
                        begun = 0;
                    }
                    continue;
                }
                for (from, to) in places.iter().zip(columns).filter(|_| staged) {
                    let to = place.dst.wrapping_offset(*to);
                    let before = if lead == 0 { 0 } else { to as usize % 64 };
                    let after = if place.ends || tile.before == 0 { 0 } else { to.wrapping_add(bytes) as usize % 64 };
                    let from = strip.wrapping_offset(*from).wrapping_add(lead - before);
                    kernel::stream_run(from, to.wrapping_sub(before), before + bytes - after, self.instructions);
                }
            }
        }
    }

    /// Brings rows of a tile together, some of them at a time.
    ///
    /// # Safety
    /// The invariant of this module; `near` has [`Loops::gathering_bytes`] bytes.
    unsafe fn gather(&self, loops: &Loops, place: &Place, near: *mut u8, numbers: std::ops::Range<usize>) {
        let rows = place.rows(loops, self.stores(loops, place).1);
        let bytes = place.across * loops.tile.unit;
        for number in numbers {
            // The processor fetches a row ahead once it was told where it begins.
            if let Some(ahead) = rows.get(number + AHEAD) {
                kernel::prefetch(place.src.wrapping_offset(*ahead), bytes);
            }
            if let Some(row) = rows.get(number) {
                // SAFETY: the invariant.
                unsafe { kernel::copy_run(place.src.wrapping_offset(*row), near.wrapping_add(number * PITCH), bytes) };
            }
        }
    }
}

/// An iteration of the loops: where its tile begins, and how much of the tables there is of it.
#[derive(Clone, Copy)]
struct Place {
    src: *const u8,
    dst: *mut u8,
    across: usize,
    along: usize,
    unit: usize,
    /// Whether no tile comes before it along, and none after it.
    begins: bool,
    ends: bool,
}

impl Place {
    /// The source offsets of the rows that are transposed: of those of the tile, and where rows are written whole lines at a time, of those before it that share lines with them.
    fn rows<'a>(&self, loops: &'a Loops, staged: bool) -> &'a [isize] {
        let all = loops.tile.before;
        let before = if staged && !self.begins { all } else { 0 };
        loops.tile.sources.get(all - before..all + self.along).unwrap_or_default()
    }
}

/// The beginning of part `number` of `parts`.
fn share(count: i64, parts: i64, number: usize) -> i64 {
    (i128::from(count) * number as i128 / i128::from(parts)) as i64
}
