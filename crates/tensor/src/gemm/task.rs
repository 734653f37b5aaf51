//! One task of a GEMM: a part of C, on one thread.
//!
//! **Law.** A task writes its part of C and nothing else. K is divided into ranges: the product
//! over the first range is added to `beta * C`, and the others to the result so far.
#![allow(unsafe_code)]

use std::ops::Range;

use super::blocking::{Blocking, prefetches_blocks};
use super::element::SumElement;
use super::plan::ProductPlan;
use super::prefetch::Prefetch;
use super::product::{Backend, MatrixPlaces, Product};
use super::shared::SharedBlocks;
use super::source::Source;
use super::tile::{ProductPart, each_tile};
use super::workspace::ProductWorkspace;

/// The blocks of A that a task shares with others.
pub(super) struct Share<'a> {
    /// The blocks of A, ordered by their range of K.
    pub blocks: &'a SharedBlocks,
    /// The number of this task.
    pub task: usize,
    /// The number of tasks.
    pub tasks: usize,
}

/// Computes a part of C.
///
/// A slice of B is packed just before it is multiplied by the first block of A, so that it is then
/// in the L1 cache. If there is no other block, the next slice overwrites it. Each task begins with
/// a different shared block of A, so that threads do not all ask for the same one.
pub(super) fn run<S: Copy + Default, W: Copy, C: SumElement>(
    backend: &Backend<S, W, C>,
    product: &Product<'_, S, C>,
    plan: &ProductPlan,
    [rows, columns]: [Range<usize>; 2],
    share: Option<Share<'_>>,
) {
    let kernels = backend.kernels;
    let Blocking { mr, nr, mc, nc, kc } = plan.blocking;
    let [_, n, k] = product.extents;
    let direct = match &product.c.places {
        MatrixPlaces::Lines(down, across) => (down.stride(1) == Some(1)).then(|| across.stride(0)).flatten(),
        MatrixPlaces::Each(_) => None,
    };
    let workspace = ProductWorkspace::take(plan.bytes);
    let [b_at, a_at, gathered_at, offsets_at] = plan.parts.map(|at| workspace.start().wrapping_add(at));
    let a_source = Source {
        operand: &product.a,
        kernels,
        strides: plan.a,
        width: mr,
        extra: 0,
        single_slice: false,
        pack: backend.pack_a,
        to: a_at.cast::<W>(),
        gathered: gathered_at.cast::<S>(),
    };
    let b_source = Source {
        operand: &product.b,
        strides: plan.b,
        width: nr,
        extra: kernels.extra,
        single_slice: plan.single_slice,
        pack: backend.pack_b,
        to: b_at.cast::<W>(),
        ..a_source
    };
    // SAFETY: the plan has room for this many offsets at this place, aligned to a line, which are
    // initialised here and used by this task alone.
    let offsets = unsafe {
        offsets_at.cast::<isize>().write_bytes(0, plan.offsets);
        std::slice::from_raw_parts_mut(offsets_at.cast::<isize>(), plan.offsets)
    };
    let (down, offsets) = offsets.split_at_mut(mc);
    let (across, offsets) = offsets.split_at_mut(nc);
    let (slice, offsets) = offsets.split_at_mut(nr);
    let (a_steps, b_steps) = offsets.split_at_mut(offsets.len() / 2);

    let blocks = rows.len().div_ceil(mc);
    let begin = share.as_ref().map_or(0, |share| share.task * blocks / share.tasks);
    let block = |number: usize| {
        let first = rows.start + (begin + number) % blocks * mc;
        first..(first + mc).min(rows.end)
    };

    for columns in parts(columns, nc) {
        if let (MatrixPlaces::Lines(_, line), None, Some(across)) =
            (&product.c.places, direct, across.get_mut(..columns.len()))
        {
            line.fill(columns.start, across);
        }
        for (level, depth) in parts(0..k, kc).enumerate() {
            let beta = if depth.start == 0 { product.beta } else { C::ONE };
            let words = depth.len().div_ceil(kernels.group);
            let (Some(a_steps), Some(b_steps)) = (a_steps.get_mut(..depth.len()), b_steps.get_mut(..depth.len()))
            else {
                continue;
            };
            a_source.steps(&depth, a_steps);
            b_source.steps(&depth, b_steps);
            let b = b_source.slices(columns.start, &depth);
            for number in 0..blocks {
                let rows = block(number);
                let mut a_source = a_source;
                // SAFETY: the workspace, or the shared block, has room for MC by KC.
                let mut fill = |source: &Source<'_, S, W, C>| unsafe {
                    source.fill(0, rows.clone(), &depth, down, a_steps);
                };
                if let Some(share) = &share {
                    let packed = share.blocks.get(level * blocks + rows.start / mc, |to| {
                        fill(&Source { to: to.cast::<W>(), ..a_source });
                    });
                    let Some(packed) = packed else { continue };
                    a_source.to = packed.cast::<W>();
                } else {
                    fill(&a_source);
                }
                if let (MatrixPlaces::Lines(line, _), None, Some(down)) =
                    (&product.c.places, direct, down.get_mut(..rows.len()))
                {
                    line.fill(rows.start, down);
                }
                let part =
                    ProductPart { tile: [mr, nr], extents: [rows.len(), columns.len()], words, edge: plan.a.is_some() };
                let ready = |j: usize| {
                    let first = columns.start + j;
                    if number == 0 {
                        let some = first..(first + nr).min(columns.end);
                        // SAFETY: the workspace has room for NC by KC, or for the single slice of
                        // the plan.
                        unsafe { b_source.fill(j / nr, some, &depth, slice, b_steps) };
                    }
                    if number == 0 || plan.b.is_some() {
                        let next = first + nr..(first + 2 * nr).min(columns.end.max(first + nr));
                        b_source.lines_of_rows(&next, &depth).share(0, 1, nr)
                    } else {
                        Prefetch::NONE
                    }
                };
                // The next block, if it is to be packed, is prefetched while this one is
                // multiplied: the block below, or the first block of the next range of K.
                let (following, deeper, level) = if number + 1 < blocks {
                    (block(number + 1), depth.clone(), level)
                } else {
                    (block(0), depth.end..(depth.end + kc).min(k), level + 1)
                };
                let taken = |share: &Share<'_>| share.blocks.is_taken(level * blocks + following.start / mc);
                let prefetches = plan.a.is_none() && prefetches_blocks(n) && !share.as_ref().is_some_and(taken);
                let upcoming = if prefetches { a_source.lines(&following, &deeper) } else { Prefetch::NONE };
                let slices = [a_source.slices(rows.start, &depth), b];
                each_tile(kernels, part, slices, [product.alpha, beta], upcoming, ready, |i, j, run, width, tile| {
                    match (&product.c.places, direct) {
                        (_, Some(stride)) => {
                            let offset = (rows.start + i) as isize + stride * (columns.start + j) as isize;
                            // SAFETY: the tile is a part of C, and its slices were packed or lie in
                            // the operands.
                            unsafe { tile.write(run, product.c.to.wrapping_offset(offset), stride) }
                        }
                        (MatrixPlaces::Lines(..), None) => {
                            let (Some(down), Some(across)) = (down.get(i..i + tile.rows), across.get(j..j + width))
                            else {
                                return;
                            };
                            // SAFETY: the offsets are those of rows and columns of C; the slices
                            // were packed or lie in the operands.
                            unsafe { tile.write_along(run, product.c.to, down, across) }
                        }
                        (MatrixPlaces::Each(at), None) => {
                            let place = |r: usize, c: usize| at(rows.start + i + r, columns.start + j + c);
                            // SAFETY: the function gives the places of C; the slices were packed or
                            // lie in the operands.
                            unsafe { tile.scatter(run, product.c.to, width, place) }
                        }
                    }
                });
            }
        }
    }
    workspace.keep();
}

/// Splits a range into parts; all but the last have this length.
fn parts(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length.max(1)).map(move |first| first..(first + length).min(end))
}
