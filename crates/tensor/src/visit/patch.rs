//! Running loops around patches.
//!
//! # Invariant
//!
//! The caller gives for each operand a pointer and an addressing such that each of its places is an element that may be read, and, in the last operand, written. Indices that
//! have one place in the last operand differ in coordinates along which its layout has stride 0 only, and nobody else uses these places meanwhile.
//!
//! So patches of one thread may write an element again, and those of different threads do not: threads divide loops along which what is written moves.
#![allow(unsafe_code)]

use rayon::prelude::*;
use tilewright_layout::Leaf;

use super::nest::{Loop, Nest, Part, moved, times};
use crate::domain::{Addressing, runs_of};
use crate::memory::LINE;
use crate::simd::{Instructions, fetch};

/// An operand: its first element, the size of its elements, and where they lie.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) base: *mut u8,
    pub(crate) element: usize,
    pub(crate) side: &'a Addressing,
    /// Whether its elements are numbers, all of whose bytes are written, which may be read from a copy.
    pub(crate) plain: bool,
}

/// A pointer for each operand, that threads share.
#[derive(Clone, Copy)]
struct Bases<const N: usize>([*mut u8; N]);
// SAFETY: by the invariant of this module, threads write disjoint places, and read what nobody writes.
unsafe impl<const N: usize> Send for Bases<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Bases<N> {}

impl Bases<1> {
    fn base(&self) -> *mut u8 {
        let Bases([base]) = self;
        *base
    }
}

/// Rows of elements of `N` operands, one at each line of the table.
pub(crate) struct Patch<'a, const N: usize> {
    bases: [*mut u8; N],
    table: &'a [[isize; N]],
    count: usize,
    steps: [isize; N],
    distinct: bool,
    /// The bytes of a row of each operand that are asked for some rows ahead.
    fetched: [usize; N],
}

/// How many rows ahead.
const AHEAD: usize = 12;

/// Fewer elements are not worth another thread.
const SHARE: usize = 1 << 16;
/// Parts a thread, so that a thread that is held up does not hold up the rest.
const PARTS: usize = 4;
/// The most parts of a domain that make a value each.
const MOST: i64 = 64;

/// Calls `run` for patches that cover the domain of operands of one size; the last operand is the one that is written.
///
/// # Safety
/// The invariant of this module.
pub(crate) unsafe fn visit<const N: usize>(operands: [Operand<'_>; N], size: i64, run: impl Fn(&Patch<'_, N>) + Sync) {
    let (sides, elements) = (operands.map(|operand| operand.side), operands.map(|operand| operand.element));
    let (bases, plain) = (Bases(operands.map(|operand| operand.base)), operands.map(|operand| operand.plain));
    let threads = if usize::try_from(size).is_ok_and(|size| size < SHARE) { 1 } else { rayon::current_num_threads() };
    let shared = |count: i64, part: &(dyn Fn(i64, i64) + Sync)| {
        let parts = if threads == 1 { 1 } else { count.min((threads * PARTS) as i64) } as usize;
        let some = |number: usize| part(share(count, parts, number), share(count, parts, number + 1));
        if parts <= 1 { part(0, count) } else { (0..parts).into_par_iter().with_max_len(1).for_each(some) }
    };
    match Nest::new(sides, elements, plain) {
        Ok(nest) => {
            let (moving, staying) = nest.loops.split_at(nest.moving);
            let inner = iterations(staying);
            shared(iterations(moving), &|first, end| nest.run(bases, first * inner, end * inner, &run));
        }
        // Index by index: an element that is written again is written by this thread.
        Err(_) => {
            let stays = |leaf: &Leaf| leaf.stride == 0 && leaf.extent > 1;
            let again = sides.last().is_some_and(|to| to.leaves().iter().any(stays));
            let part = |first, end| walked(sides, elements, bases, first..end, &run);
            if again { part(0, size) } else { shared(size, &part) }
        }
    }
}

/// Calls `run` for patches that cover the domain of an operand that is read, and one element, which is `initial` at first: an element for each part of the domain, that is.
/// The parts are the same on any number of threads. Returns the elements.
///
/// # Safety
/// The invariant of this module; the addressing has the size of the operand and stays where it is.
pub(crate) unsafe fn visit_alone<T: Copy + Send + Sync>(
    src: Operand<'_>,
    everywhere: &Addressing,
    size: i64,
    initial: T,
    run: impl Fn(&Patch<'_, 2>) + Sync,
) -> Vec<T> {
    let (sides, elements) = ([src.side, everywhere], [src.element, size_of::<T>()]);
    let nest = Nest::new(sides, elements, [src.plain, false]);
    let count = nest.as_ref().map_or(size, |nest| iterations(&nest.loops));
    let parts = (size / SHARE as i64).min(MOST).min(count).max(1) as usize;
    let src = Bases([src.base]);
    let part = |number: usize| {
        let mut own = initial;
        let (first, end) = (share(count, parts, number), share(count, parts, number + 1));
        let bases = Bases([src.base(), (&raw mut own).cast()]);
        match &nest {
            Ok(nest) => nest.run(bases, first, end, &run),
            Err(_) => walked(sides, elements, bases, first..end, &run),
        }
        own
    };
    if parts == 1 { vec![part(0)] } else { (0..parts).into_par_iter().map(part).collect() }
}

/// How often what is in loops is done.
fn iterations<const N: usize>(loops: &[Loop<N>]) -> i64 {
    loops.iter().fold(1, |count, each| count * each.step.extent as i64)
}

/// The beginning of part `number` of `parts`.
fn share(count: i64, parts: usize, number: usize) -> i64 {
    (i128::from(count) * number as i128 / parts as i128) as i64
}

/// The runs of some of the indices.
fn walked<const N: usize>(
    sides: [&Addressing; N],
    elements: [usize; N],
    bases: Bases<N>,
    indices: std::ops::Range<i64>,
    run: &impl Fn(&Patch<'_, N>),
) {
    let steps = elements.map(|element| element as isize);
    let found = runs_of(sides, indices.start, indices.end, |places, count| {
        let line = std::array::from_fn(|operand| (places[operand] as isize).wrapping_mul(steps[operand]));
        run(&Patch { bases: bases.0, table: &[line], count, steps, distinct: true, fetched: [0; N] });
    });
    debug_assert!(found.is_some());
}

impl<const N: usize> Nest<N> {
    /// The iterations from `first` to before `end`, of all loops counted as one.
    fn run(&self, bases: Bases<N>, first: i64, end: i64, run: &impl Fn(&Patch<'_, N>)) {
        let mut digits = vec![0; self.loops.len()];
        let (mut rest, mut place) = (first as usize, self.origin);
        for (each, digit) in self.loops.iter().zip(&mut digits).rev() {
            *digit = rest % each.step.extent;
            rest /= each.step.extent;
            place = moved(&place, &times(&each.step.by, *digit));
        }
        let mut workspace = self.near.as_ref().map(|near| (near, near.workspace()));
        let at = |place: &[isize; N]| std::array::from_fn(|operand| bases.0[operand].wrapping_offset(place[operand]));
        for _ in first..end {
            let (mut table, mut count) = (self.table.as_slice(), self.row.extent);
            for (each, digit) in self.loops.iter().zip(&digits) {
                match each.part {
                    Part::Table(last) if digit + 1 == each.step.extent => table = table.get(..last).unwrap_or_default(),
                    Part::Row(last) if digit + 1 == each.step.extent => count = last,
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
                Patch { bases: here, table, count, steps: self.row.by, distinct: self.distinct, fetched: [0; N] };
            if let Some((near, workspace)) = &mut workspace {
                let sizes = [count, table.len()];
                // SAFETY: these are elements of the operands.
                patch.bases = unsafe { near.bring(here, at(&place), self.row.by, sizes, workspace) };
                patch.table = near.table.get(..table.len()).unwrap_or_default();
                patch.steps = near.steps;
                patch.fetched = near.fetched;
            }
            run(&patch);
        }
    }
}

impl<const N: usize> Patch<'_, N> {
    /// Where the rows begin, beside one another ([`Patch::start`]).
    pub(crate) fn table(&self) -> &[[isize; N]] {
        self.table
    }

    /// Whether they begin at different places of the written operand.
    pub(crate) fn distinct(&self) -> bool {
        self.distinct
    }

    /// The elements of a row.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The bytes from each element of a row to the next, in every operand.
    pub(crate) fn steps(&self) -> [isize; N] {
        self.steps
    }

    /// The first element of a row.
    #[inline(always)]
    pub(crate) fn start(&self, line: &[isize; N]) -> [*mut u8; N] {
        std::array::from_fn(|operand| self.bases[operand].wrapping_offset(line[operand]))
    }

    /// Which operands stay where they are along a row while all others are contiguous, with elements of so many bytes: a bit for each. None where rows are something else,
    /// or of one element.
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

    /// Calls `f` with the place of the first element of every row.
    #[inline(always)]
    pub(crate) fn rows(&self, mut f: impl FnMut([*mut u8; N])) {
        if self.fetched == [0; N] {
            return self.table.iter().for_each(|line| f(self.start(line)));
        }
        // Rows that are short, and far from each other, the processor does not fetch ahead by itself.
        for (number, line) in self.table.iter().enumerate() {
            if let Some(later) = self.table.get(number + AHEAD) {
                for (start, bytes) in self.start(later).into_iter().zip(self.fetched) {
                    (0..bytes)
                        .step_by(LINE)
                        .for_each(|at| fetch::<LINE>(Instructions::Portable, start.wrapping_add(at)));
                }
            }
            f(self.start(line));
        }
    }

    /// Calls `f` with the places of every element.
    #[inline(always)]
    pub(crate) fn each(&self, mut f: impl FnMut([*mut u8; N])) {
        if self.count == 1 {
            return self.rows(f);
        }
        let (count, steps) = (self.count, self.steps);
        self.rows(|mut places| {
            for _ in 0..count {
                f(places);
                places = std::array::from_fn(|k| places[k].wrapping_offset(steps[k]));
            }
        });
    }
}
