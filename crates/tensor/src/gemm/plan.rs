//! How a GEMM is divided, packed and laid out in memory.
//!
//! **Law.** The tasks are tiles that cover C. Each part of a thread's workspace is large enough for
//! every task of the plan.

use super::blocking::{Blocking, balanced, shared_bytes};
use super::element::SumElement;
use super::product::{Backend, MatrixPlaces, Product};
use super::tasks::task_extents;
use super::workspace::Room;
use crate::memory::{LINE, PAGE};

/// The plan of a GEMM.
pub struct ProductPlan {
    pub blocking: Blocking,
    /// The rows and columns of a task.
    pub task: [usize; 2],
    /// The strides along the rows and along K of A if it is read in place; None if it is packed.
    pub a: Option<[isize; 2]>,
    /// The strides along the rows and along K of B if it is read in place; None if it is packed.
    pub b: Option<[isize; 2]>,
    /// Whether each packed slice of B overwrites the one before.
    pub single_slice: bool,
    /// The byte offsets, in a thread's workspace, of the panel of B, the block of A, gathered
    /// numbers, and offsets.
    pub parts: [usize; 4],
    /// The number of offsets in the workspace.
    pub offsets: usize,
    /// The bytes of the workspace of a thread.
    pub bytes: usize,
    /// If the threads share the packed blocks of A: the number of blocks over all of K, and the
    /// bytes of each. None if they do not.
    pub shared: Option<[usize; 2]>,
    /// The numbers in a word.
    pub group: usize,
    /// The number of rows of correction words below a packed slice of B.
    pub extra: usize,
}

/// The largest number of lines of a slice that may map to one set of the L1 cache. Somewhat more
/// than its ways do no harm: they are read sequentially, and the L2 cache holds them.
const MAX_SET_CONFLICTS: usize = 40;

/// The largest number of passes over an operand that is read in place. There is one pass for each
/// slice of the other operand.
const MAX_PASSES_IN_PLACE: usize = 20;

impl ProductPlan {
    /// The plan of a GEMM with these micro-kernels.
    pub(super) fn new<S, W, C: SumElement>(backend: &Backend<S, W, C>, product: &Product<'_, S, C>) -> ProductPlan {
        let kernels = backend.kernels;
        let blocking = Blocking::new(kernels, product.extents);
        let [m, n, k] = product.extents;
        let packed = m.saturating_mul(k.div_ceil(kernels.group)).saturating_mul(size_of::<W>());
        let shares = packed <= shared_bytes(product.threads) && matches!(product.a.places, MatrixPlaces::Lines(..));
        let [rows, columns] = task_extents(product.extents, &blocking, product.threads, shares);
        let Blocking { mr, nr, mc, nc, kc } = blocking;
        let depth = kc.min(k);
        let in_place = |places: &MatrixPlaces<'_>, slice: [usize; 2], passes: usize| match places {
            _ if !backend.in_place => None,
            places => strides_in_place::<S>(places, slice, passes),
        };
        let a = in_place(&product.a.places, [mr, depth], columns.div_ceil(nr)).filter(|[row, _]| *row == 1);
        let b = in_place(&product.b.places, [nr, depth], rows.div_ceil(mr));
        let tasks = n.div_ceil(columns);
        let shares = shares && a.is_none() && rows == m && tasks > 1;
        // There are at least as many shared blocks as tasks, so that each task begins with a block
        // of its own.
        let mc = if shares { mc.min(balanced(m, m.div_ceil(tasks), mr)) } else { mc };
        let blocking =
            Blocking { mc: mc.min(rows.next_multiple_of(mr)), nc: nc.min(columns.next_multiple_of(nr)), ..blocking };
        let Blocking { mc, nc, .. } = blocking;
        let words = depth.div_ceil(kernels.group);
        let gathers =
            [&product.a.places, &product.b.places].iter().any(|places| matches!(places, MatrixPlaces::Each(_)));
        let mut room = Room::default();
        let single_slice = rows <= mc;
        let held = if single_slice { nr } else { nc };
        let b_at = room.of::<W>(if b.is_some() { 0 } else { held * (words + kernels.extra) });
        let a_at = room.of::<W>(if a.is_some() || shares { 0 } else { mc * words });
        let gathered_at = room.of::<S>(if gathers { mr.max(nr) * depth } else { 0 });
        let offsets = mc + nc + nr + 2 * depth;
        let offsets_at = room.of::<isize>(offsets);
        ProductPlan {
            blocking,
            task: [rows, columns],
            a,
            b,
            single_slice,
            parts: [b_at, a_at, gathered_at, offsets_at],
            offsets,
            bytes: room.bytes,
            shared: shares
                .then(|| [m.div_ceil(mc) * k.div_ceil(kc), (mc * words * size_of::<W>()).next_multiple_of(LINE)]),
            group: kernels.group,
            extra: kernels.extra,
        }
    }
}

/// The strides along the rows and along K of an operand of `S` if it is read in place. That
/// requires one stride in each direction, few passes, and that a slice of these rows and steps
/// stays in the L1 cache meanwhile. None otherwise.
fn strides_in_place<S>(places: &MatrixPlaces<'_>, slice: [usize; 2], passes: usize) -> Option<[isize; 2]> {
    match places {
        MatrixPlaces::Lines(rows, steps) if passes <= MAX_PASSES_IN_PLACE => {
            let strides = [rows.stride(1)?, steps.stride(0)?];
            (set_conflicts(slice, strides, size_of::<S>()) <= MAX_SET_CONFLICTS).then_some(strides)
        }
        _ => None,
    }
}

/// The number of lines of a slice of these rows and steps that map to the fullest set of the L1
/// cache.
///
/// Lines a page apart map to the same set. The slice is a number of runs, each of several adjacent
/// lines.
fn set_conflicts([rows, steps]: [usize; 2], [row, step]: [isize; 2], bytes: usize) -> usize {
    let stride = |stride: isize| stride.unsigned_abs().saturating_mul(bytes);
    let (run, runs, apart) = if row.unsigned_abs() <= step.unsigned_abs() {
        (stride(row).saturating_mul(rows), steps, stride(step))
    } else {
        (stride(step).saturating_mul(steps), rows, stride(row))
    };
    let lines = run.div_ceil(LINE).clamp(1, PAGE / LINE);
    let runs = if apart == 0 { 1 } else { runs };
    // The number of sets at which runs begin.
    let places = PAGE >> apart.trailing_zeros().min(PAGE.trailing_zeros());
    let reached = (places.min(runs).saturating_mul(lines)).min(PAGE / LINE);
    runs.saturating_mul(lines).div_ceil(reached.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of lines that map to the fullest of the 64 sets, found by counting.
    fn counted([rows, steps]: [usize; 2], [row, step]: [usize; 2], bytes: usize) -> usize {
        let mut lines: Vec<usize> =
            (0..rows).flat_map(|i| (0..steps).map(move |t| (i * row + t * step) * bytes / LINE)).collect();
        lines.sort_unstable();
        lines.dedup();
        let mut sets = [0; PAGE / LINE];
        lines.into_iter().for_each(|line| sets[line % (PAGE / LINE)] += 1);
        sets.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn conflicts_of_columns_a_power_of_two_apart_are_counted_exactly() {
        for apart in [512, 1024, 2048, 4096] {
            let (slice, strides) = ([16, 256], [1, apart]);
            let found = set_conflicts(slice, [1, apart as isize], 4);
            assert_eq!(found, counted(slice, strides, 4), "{apart}");
        }
    }
}
