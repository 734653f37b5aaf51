//! Loops over the elements of several operands at once.
//!
//! Law: every index of the common domain is visited once, with the place of its element in each operand.
//!
//! As for copies, the domain is cut into axes that have one step in every operand, and these may come in any order: the longest steps are outermost. The last two make
//! blocks, so that an operand whose steps are short where those of another are long is read line by line too. Where there are no axes, or an operand has a map
//! that an axis does not pass through evenly, the index is walked.
//!
//! # Invariant
//!
//! The caller gives for each operand a pointer and an addressing such that each of its places is an element that may be read, and written where the caller's function
//! does. An operand that is written has different places for different indices, or the same ones only for indices that differ in axes in which its step
//! is 0; those are never shared between threads.
#![allow(unsafe_code)]

use rayon::prelude::*;

use super::addressing::Addressing;
use super::walk::Counter;

/// An operand: its first element, the size of its elements, and where they lie.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) base: *mut u8,
    pub(crate) element: usize,
    pub(crate) side: &'a Addressing,
}

// SAFETY: what is done through the pointers is disjoint, by the invariant of this module.
unsafe impl Send for Operand<'_> {}
// SAFETY: as above.
unsafe impl Sync for Operand<'_> {}

/// A row of elements: the place of the first in each operand, how many there are, and the byte steps.
pub(crate) struct Row<const N: usize> {
    pub(crate) places: [*mut u8; N],
    pub(crate) count: usize,
    pub(crate) steps: [isize; N],
}

/// An axis: its extent and the byte step in each operand.
#[derive(Debug, Clone, Copy)]
struct Axis<const N: usize> {
    extent: usize,
    steps: [isize; N],
}

/// The side of a block.
const BLOCK: usize = 64;
/// Fewer elements are not worth another thread.
const SHARE: usize = 1 << 16;

/// Calls `row` for rows that cover the domain; the last operand is the one that is written.
///
/// # Safety
/// The invariant of this module.
pub(crate) unsafe fn visit<const N: usize>(operands: [Operand<'_>; N], size: i64, row: impl Fn(&Row<N>) + Sync) {
    let axes = if operands.iter().any(|operand| operand.side.is_mapped()) { None } else { axes(&operands) };
    let Some(mut axes) = axes else {
        // SAFETY: the invariant.
        return unsafe { walk(operands, size, row) };
    };
    let mut places = [core::ptr::null_mut(); N];
    for (place, operand) in places.iter_mut().zip(&operands) {
        *place = operand.base.wrapping_offset((operand.side.offset() as isize).wrapping_mul(operand.element as isize));
    }
    let written = |axis: &Axis<N>| axis.steps.last().copied().unwrap_or(0);
    let longest = |axis: &Axis<N>| axis.steps.iter().map(|step| step.unsigned_abs()).max().unwrap_or(0);
    axes.sort_by_key(|axis| core::cmp::Reverse((longest(axis), written(axis).unsigned_abs())));
    // The outermost axis along which what is written moves is shared by threads.
    let shared = axes.iter().position(|axis| written(axis) != 0);
    let many = usize::try_from(size).unwrap_or(usize::MAX) >= SHARE && rayon::current_num_threads() > 1;
    match shared.filter(|_| many && axes.len() > 1) {
        Some(at) => {
            let axis = axes.remove(at);
            let start = Start(places);
            (0..axis.extent).into_par_iter().for_each(|index| {
                let start = &start;
                nest(moved(start.0, &axis, index), &axes, &row);
            });
        }
        None => nest(places, &axes, &row),
    }
}

/// Places that threads share.
struct Start<const N: usize>([*mut u8; N]);
// SAFETY: as for operands.
unsafe impl<const N: usize> Sync for Start<N> {}

fn moved<const N: usize>(places: [*mut u8; N], axis: &Axis<N>, index: usize) -> [*mut u8; N] {
    let mut moved = places;
    for (place, step) in moved.iter_mut().zip(axis.steps) {
        *place = place.wrapping_offset(step.wrapping_mul(index as isize));
    }
    moved
}

/// All axes, the first outermost.
fn nest<const N: usize>(places: [*mut u8; N], axes: &[Axis<N>], row: &impl Fn(&Row<N>)) {
    match axes {
        [] => row(&Row { places, count: 1, steps: [0; N] }),
        [only] => row(&Row { places, count: only.extent, steps: only.steps }),
        [outer, inner] => {
            for first in (0..inner.extent).step_by(BLOCK * BLOCK) {
                block(moved(places, inner, first), outer, inner, (inner.extent - first).min(BLOCK * BLOCK), row);
            }
        }
        [outer, rest @ ..] => (0..outer.extent).for_each(|index| nest(moved(places, outer, index), rest, row)),
    }
}

/// `outer` times `count` of `inner`; in blocks, where the steps of an operand are shorter in the outer axis.
fn block<const N: usize>(places: [*mut u8; N], outer: &Axis<N>, inner: &Axis<N>, count: usize, row: &impl Fn(&Row<N>)) {
    let crossed = outer.steps.iter().zip(inner.steps).any(|(a, b)| *a != 0 && a.unsigned_abs() < b.unsigned_abs());
    let (height, width) = if crossed { (BLOCK, BLOCK) } else { (outer.extent, count) };
    for above in (0..outer.extent).step_by(height) {
        for before in (0..count).step_by(width) {
            let corner = moved(moved(places, outer, above), inner, before);
            for index in 0..height.min(outer.extent - above) {
                let places = moved(corner, outer, index);
                row(&Row { places, count: width.min(count - before), steps: inner.steps });
            }
        }
    }
}

/// The axes of several operands of one size, merged; none where they have no common digits.
fn axes<const N: usize>(operands: &[Operand<'_>; N]) -> Option<Vec<Axis<N>>> {
    let mut modes: Vec<Vec<(i64, i64)>> = Vec::new();
    for operand in operands {
        let leaves = operand.side.leaves().iter().rev().filter(|leaf| leaf.extent > 1);
        let bytes = i64::try_from(operand.element).ok()?;
        modes.push(leaves.map(|leaf| Some((leaf.extent, leaf.stride.checked_mul(bytes)?))).collect::<Option<_>>()?);
    }
    let mut axes: Vec<Axis<N>> = Vec::new();
    loop {
        let heads: Vec<(i64, i64)> = modes.iter_mut().filter_map(Vec::pop).collect();
        if heads.is_empty() {
            return Some(axes);
        }
        let extent = heads.iter().map(|head| head.0).min()?;
        if heads.len() != N || heads.iter().any(|head| head.0 % extent != 0) {
            return None;
        }
        let mut steps = [0; N];
        for ((step, rest), head) in steps.iter_mut().zip(&mut modes).zip(&heads) {
            *step = head.1 as isize;
            if head.0 > extent {
                rest.push((head.0 / extent, head.1.checked_mul(extent)?));
            }
        }
        let next = Axis { extent: extent as usize, steps };
        let onward = |last: &&mut Axis<N>| {
            last.steps
                .iter()
                .zip(steps)
                .all(|(last_step, step)| last_step.checked_mul(last.extent as isize) == Some(step))
        };
        match axes.last_mut().filter(onward) {
            Some(last) => last.extent *= next.extent,
            None => axes.push(next),
        }
    }
}

/// Index by index.
///
/// # Safety
/// The invariant of this module.
unsafe fn walk<const N: usize>(operands: [Operand<'_>; N], size: i64, row: impl Fn(&Row<N>)) {
    let mut counters = operands.map(|operand| Counter::new(operand.side, 0));
    for _ in 0..size {
        let mut places = [core::ptr::null_mut(); N];
        for ((place, counter), operand) in places.iter_mut().zip(&mut counters).zip(&operands) {
            // A side of a view has a place for every index.
            let Some(at) = counter.place() else { return };
            *place = operand.base.wrapping_offset((at as isize).wrapping_mul(operand.element as isize));
            counter.step();
        }
        row(&Row { places, count: 1, steps: [0; N] });
    }
}
