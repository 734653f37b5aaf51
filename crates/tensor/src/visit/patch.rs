//! Runs the loops around patches.
//!
//! Law: `run` is called with patches that together have every index once.
//!
//! # Invariant
//!
//! For each operand the caller gives a pointer and an addressing. Every offset of the addressing
//! leads to an element that may be read, and, in the last operand, written. Indices that have the
//! same offset in the last operand differ only in coordinates along which its layout has stride 0.
//! Nobody else uses these elements meanwhile.
//!
//! So patches of one thread may write an element again, but those of different threads do not:
//! threads divide the loops along which the written operand moves.
//!
//! Reason for unsafe code: operands of several types and any layout are visited by pointer, without
//! a check for each element.
#![allow(unsafe_code)]

use tilewright_layout::Leaf;

use super::nest::{Nest, PatchLoop, ShortPart, moved, times};
use crate::domain::{Addressing, runs_of};
use crate::memory::LINE;
use crate::simd::{Instructions, prefetch};
use crate::threads::Threads;

/// An operand: its first element, the size of its elements in bytes, and its addressing.
#[derive(Clone, Copy)]
pub(crate) struct VisitOperand<'a> {
    pub(crate) base: *mut u8,
    pub(crate) element: usize,
    pub(crate) side: &'a Addressing,
    /// Whether its elements are numbers without uninitialised bytes, which may be read from a copy.
    pub(crate) plain: bool,
}

/// A pointer for each operand, shared by threads.
#[derive(Clone, Copy)]
struct Bases<const N: usize>([*mut u8; N]);
// SAFETY: by the invariant of this module, threads write disjoint elements, and read only elements
// that nobody writes.
unsafe impl<const N: usize> Send for Bases<N> {}
// SAFETY: by the invariant of this module, threads write disjoint elements, and read only elements
// that nobody writes.
unsafe impl<const N: usize> Sync for Bases<N> {}

impl Bases<1> {
    fn base(&self) -> *mut u8 {
        let Bases([base]) = self;
        *base
    }
}

/// Rows of elements of `N` operands, one row at each line of the table.
pub(crate) struct Patch<'a, const N: usize> {
    bases: [*mut u8; N],
    table: &'a [[isize; N]],
    count: usize,
    steps: [isize; N],
    distinct: bool,
    /// The bytes of a row of each operand that are prefetched some rows ahead.
    prefetched: [usize; N],
}

/// How many rows ahead are prefetched.
const AHEAD: usize = 12;

/// The smallest number of elements that is worth another thread.
const SHARE: usize = 1 << 16;
/// The number of parts for each thread, so that a delayed thread leaves work to the others.
const PARTS: usize = 4;
/// The largest number of parts of a domain that is reduced to one element.
const MOST: i64 = 64;

/// Calls `run` for patches that cover the domain of operands of one size. The last operand is
/// written. `run` is called once for many elements, so it is no parameter of the type: the loops
/// around patches are compiled once for each number of operands, and not for each use.
///
/// # Safety
/// The invariant of this module.
pub(crate) unsafe fn visit<const N: usize>(
    operands: [VisitOperand<'_>; N],
    size: i64,
    run: &(dyn Fn(&Patch<'_, N>) + Sync),
) {
    let (sides, elements) = (operands.map(|operand| operand.side), operands.map(|operand| operand.element));
    let (bases, plain) = (Bases(operands.map(|operand| operand.base)), operands.map(|operand| operand.plain));
    let threads = if usize::try_from(size).is_ok_and(|size| size < SHARE) { Threads::One } else { Threads::here() };
    let shared = |count: i64, part: &(dyn Fn(i64, i64) + Sync)| {
        let parts = if threads.count() == 1 { 1 } else { count.min((threads.count() * PARTS) as i64) } as usize;
        let some = |number: usize| part(part_start(count, parts, number), part_start(count, parts, number + 1));
        if parts <= 1 {
            part(0, count);
        } else {
            threads.each(parts, &some);
        }
    };
    match Nest::new(sides, elements, plain) {
        Ok(nest) => {
            let (moving, staying) = nest.loops.split_at(nest.moving);
            let inner = iterations(staying);
            shared(iterations(moving), &|first, end| nest.run(bases, first * inner, end * inner, run));
        }
        // Without common axes, an element may be written again, so one thread writes all of them.
        Err(_) => {
            let stays = |leaf: &Leaf| leaf.stride == 0 && leaf.extent > 1;
            let again = sides.last().is_some_and(|to| to.leaves().iter().any(stays));
            let part = |first, end| walk_indices(sides, elements, bases, first..end, run);
            if again { part(0, size) } else { shared(size, &part) }
        }
    }
}

/// Calls `run` for patches that cover the domain of an operand that is read, and of one element for
/// each part of the domain, which is `initial` at first. The parts are the same on any number of
/// threads. Returns these elements.
///
/// # Safety
/// The invariant of this module; the addressing has the size of the operand and stride 0.
pub(crate) unsafe fn visit_parts<T: Copy + Send + Sync>(
    src: VisitOperand<'_>,
    broadcast: &Addressing,
    size: i64,
    initial: T,
    run: &(dyn Fn(&Patch<'_, 2>) + Sync),
) -> Vec<T> {
    let (sides, elements) = ([src.side, broadcast], [src.element, size_of::<T>()]);
    let nest = Nest::new(sides, elements, [src.plain, false]);
    let count = nest.as_ref().map_or(size, |nest| iterations(&nest.loops));
    let parts = (size / SHARE as i64).min(MOST).min(count).max(1) as usize;
    let mut values = vec![initial; parts];
    let (src, values_of_parts) = (Bases([src.base]), Bases([values.as_mut_ptr().cast()]));
    let part = |number: usize| {
        let mut own = initial;
        let (first, end) = (part_start(count, parts, number), part_start(count, parts, number + 1));
        let bases = Bases([src.base(), (&raw mut own).cast()]);
        match &nest {
            Ok(nest) => nest.run(bases, first, end, run),
            Err(_) => walk_indices(sides, elements, bases, first..end, run),
        }
        // SAFETY: there are as many values as parts, and each part writes its own.
        unsafe { values_of_parts.base().cast::<T>().add(number).write(own) };
    };
    let threads = if parts == 1 { Threads::One } else { Threads::here() };
    threads.each(parts, &part);
    values
}

/// Places a step further.
#[inline(always)]
fn stepped<const N: usize>(places: [*mut u8; N], steps: [isize; N]) -> [*mut u8; N] {
    std::array::from_fn(|operand| places[operand].wrapping_offset(steps[operand]))
}

/// The number of iterations of some loops.
fn iterations<const N: usize>(loops: &[PatchLoop<N>]) -> i64 {
    loops.iter().fold(1, |count, each| count * each.step.extent as i64)
}

/// The beginning of part `number` of `parts`.
fn part_start(count: i64, parts: usize, number: usize) -> i64 {
    (i128::from(count) * number as i128 / parts as i128) as i64
}

/// Visits some of the indices in runs.
fn walk_indices<const N: usize>(
    sides: [&Addressing; N],
    elements: [usize; N],
    bases: Bases<N>,
    indices: std::ops::Range<i64>,
    run: &dyn Fn(&Patch<'_, N>),
) {
    let steps = elements.map(|element| element as isize);
    let found = runs_of(sides, indices.start, indices.end, |places, count| {
        let line = std::array::from_fn(|operand| (places[operand] as isize).wrapping_mul(steps[operand]));
        run(&Patch { bases: bases.0, table: &[line], count, steps, distinct: true, prefetched: [0; N] });
    });
    debug_assert!(found.is_some());
}

impl<const N: usize> Nest<N> {
    /// The iterations from `first` to before `end`, of all loops counted as one.
    fn run(&self, bases: Bases<N>, first: i64, end: i64, run: &dyn Fn(&Patch<'_, N>)) {
        let mut digits = vec![0; self.loops.len()];
        let (mut rest, mut place) = (first as usize, self.origin);
        for (each, digit) in self.loops.iter().zip(&mut digits).rev() {
            *digit = rest % each.step.extent;
            rest /= each.step.extent;
            place = moved(&place, &times(&each.step.by, *digit));
        }
        let mut workspace = self.staged.as_ref().map(|staged| (staged, staged.workspace()));
        let at = |place: &[isize; N]| stepped(bases.0, *place);
        for _ in first..end {
            let (mut table, mut count) = (self.table.as_slice(), self.row.extent);
            for (each, digit) in self.loops.iter().zip(&digits) {
                match each.part {
                    ShortPart::Table(last) if digit + 1 == each.step.extent => {
                        table = table.get(..last).unwrap_or_default()
                    }
                    ShortPart::Row(last) if digit + 1 == each.step.extent => count = last,
                    _ => {}
                }
            }
            let here = at(&place);
            for (each, digit) in self.loops.iter().zip(&mut digits).rev() {
                *digit += 1;
                if *digit < each.step.extent {
                    place = moved(&place, &each.step.by);
                    break;
                }
                *digit = 0;
                place = moved(&place, &times(&each.step.by, each.step.extent - 1).map(isize::wrapping_neg));
            }
            let mut patch =
                Patch { bases: here, table, count, steps: self.row.by, distinct: self.distinct, prefetched: [0; N] };
            if let Some((staged, workspace)) = &mut workspace {
                let sizes = [count, table.len()];
                // SAFETY: by the invariant of this module these rows are elements of the operands;
                // the workspace is that of the nest.
                patch.bases = unsafe { staged.stage(here, at(&place), self.row.by, sizes, workspace) };
                patch.table = staged.table.get(..table.len()).unwrap_or_default();
                patch.steps = staged.steps;
                patch.prefetched = staged.prefetched;
            }
            run(&patch);
        }
    }
}

impl<const N: usize> Patch<'_, N> {
    /// The offsets of the rows from the first row ([`Patch::start`]).
    pub(crate) fn table(&self) -> &[[isize; N]] {
        self.table
    }

    /// Whether the rows have different offsets in the written operand.
    pub(crate) fn distinct(&self) -> bool {
        self.distinct
    }

    /// The number of elements of a row.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The distance between neighbouring elements of a row, in bytes, in every operand.
    pub(crate) fn steps(&self) -> [isize; N] {
        self.steps
    }

    /// The first element of a row.
    #[inline(always)]
    pub(crate) fn start(&self, line: &[isize; N]) -> [*mut u8; N] {
        stepped(self.bases, *line)
    }

    /// The set, as bits, of the operands that are constant along a row while all others are
    /// contiguous, with elements of these sizes in bytes. None if rows are different, or have one
    /// element.
    #[inline(always)]
    pub(crate) fn contiguous(&self, elements: [usize; N]) -> Option<usize> {
        let mut stay = 0;
        for (operand, (step, element)) in self.steps.into_iter().zip(elements).enumerate() {
            match step {
                0 if element != 0 => stay |= 1 << operand,
                step if step == element as isize => {}
                _ => return None,
            }
        }
        (self.count > 1).then_some(stay)
    }

    /// Calls `f` with the first element of every row.
    #[inline(always)]
    pub(crate) fn rows(&self, mut f: impl FnMut([*mut u8; N])) {
        if self.prefetched == [0; N] {
            return self.table.iter().for_each(|line| f(self.start(line)));
        }
        for (number, line) in self.table.iter().enumerate() {
            self.prefetch(number + AHEAD);
            f(self.start(line));
        }
    }

    /// Prefetches a row, if there is one: hardware prefetchers do not follow short rows that are
    /// far apart.
    fn prefetch(&self, number: usize) {
        let Some(later) = self.table.get(number) else { return };
        for (start, bytes) in self.start(later).into_iter().zip(self.prefetched) {
            (0..bytes).step_by(LINE).for_each(|at| prefetch::<LINE>(Instructions::Portable, start.wrapping_add(at)));
        }
    }

    /// Calls `f` with the place of every element.
    #[inline(always)]
    pub(crate) fn each(&self, mut f: impl FnMut([*mut u8; N])) {
        if self.count == 1 {
            return self.rows(f);
        }
        let (count, steps) = (self.count, self.steps);
        self.rows(|mut places| {
            for _ in 0..count {
                f(places);
                places = stepped(places, steps);
            }
        });
    }
}
