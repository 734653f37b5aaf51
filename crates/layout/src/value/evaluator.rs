//! Evaluation of a layout at many indices.
//!
//! Let `P_k` be the product of the extents before leaf `k`, so that digit `k` of an index `i >= 0`
//! is `floor(i / P_k) - e_k * floor(i / P_(k+1))`, and the last digit is its first term alone.
//! Summing by parts,
//!
//! ```text
//! L(i) = s_0 * i + sum over k >= 1 of floor(i / P_k) * j_k,   j_k = s_k - e_(k-1) * s_(k-1):
//! ```
//!
//! the value grows by the first stride at each index, and additionally jumps by `j_k` each time
//! that leaf `k` steps. Leaves that coalesce have no jump, and leaves with the same `P` share one.
//! Two facts make this fast.
//!
//! * *Reciprocals.* With `m = ceil(2^64 / P)` and `r = m * P - 2^64`, `m * i / 2^64` exceeds
//!   `i / P` by `r * i / (P * 2^64)`. The fraction of `i / P` is at most `(P - 1) / P`, so both
//!   have the same floor while `r * i < 2^64`: always for powers of two, and at least while
//!   `P * i < 2^64`.
//! * *One bound.* If the contributions of the front leaves and of the last leaf are each below
//!   `2^62` in magnitude, the value and every partial sum are below `2^63`. Then the sum can be
//!   computed modulo `2^64` without overflow checks.
//!
//! So one comparison of the index with the least of these bounds is enough; for an index above it,
//! or below zero, [`Layout::eval`] is used.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::{Layout, Leaf, eval_leaves};
use crate::value::tree::Leaves;

/// A layout prepared for evaluation at many indices: see [`Layout::evaluator`].
#[derive(Debug, Clone)]
pub struct Evaluator {
    /// The first stride, plus the jumps of leaves that step at every index.
    step: i64,
    /// The first jumps; unused ones are zero.
    jumps: [Jump; FEW],
    /// The other jumps.
    more: Vec<Jump>,
    /// The exclusive upper bound of the indices that are evaluated by jumps.
    limit: u64,
    leaves: Leaves<Leaf>,
}

/// The number of jumps that are always evaluated: multiplying by zero costs less than a loop.
const FEW: usize = 4;

/// A jump of the value each time that the index passes a multiple of a period.
#[derive(Debug, Clone, Copy, Default)]
struct Jump {
    /// `2^64` divided by the period, rounded up.
    reciprocal: u64,
    /// The jump modulo `2^64`.
    by: i64,
}

impl Jump {
    /// The sum of the jumps up to an index, modulo `2^64`.
    #[inline(always)]
    fn passed(self, index: u64) -> i64 {
        let times = (u128::from(self.reciprocal) * u128::from(index)) >> 64;
        (times as i64).wrapping_mul(self.by)
    }
}

/// The bound of the contribution of the front leaves, and of that of the last leaf.
const REACH: u64 = (1 << 62) - 1;

impl Evaluator {
    fn new(leaves: &[Leaf]) -> Evaluator {
        let (step, jumps, exact) = jumps_of(leaves);
        let mut few = [Jump::default(); FEW];
        for (place, jump) in few.iter_mut().zip(&jumps) {
            *place = *jump;
        }
        let more = jumps.get(FEW..).unwrap_or_default().to_vec();
        let limit = exact.min(bounded(leaves));
        Evaluator { step, jumps: few, more, limit, leaves: leaves.iter().copied().collect() }
    }

    /// The value of the layout at an index: `layout.evaluator().eval(i) == layout.eval(&i)` for
    /// every `i`, also past the end and below zero.
    ///
    /// Errors: as [`Layout::eval`].
    #[inline]
    pub fn eval(&self, index: i64) -> Result<i64, LayoutError> {
        if index as u64 >= self.limit {
            return self.eval_far(index).fits("eval");
        }
        let mut value = self.step.wrapping_mul(index);
        for jump in &self.jumps {
            value = value.wrapping_add(jump.passed(index as u64));
        }
        for jump in &self.more {
            value = value.wrapping_add(jump.passed(index as u64));
        }
        Ok(value)
    }

    #[cold]
    fn eval_far(&self, index: i64) -> Option<i64> {
        eval_leaves(&self.leaves, &index)
    }
}

/// The step from each index to the next, the jumps at multiples of periods, and the index up to
/// which all reciprocals are exact.
fn jumps_of(leaves: &[Leaf]) -> (i64, SmallVec<[Jump; 8]>, u64) {
    let mut jumps: SmallVec<[Jump; 8]> = SmallVec::new();
    // The step with which the previous leaf would continue: `e_(k-1) * s_(k-1)`.
    let (mut step, mut expected) = (0_i64, 0_i64);
    // No period exceeds the size, which is below 2^63.
    let (mut exact, mut period) = (u64::MAX, 1_u64);
    for leaf in leaves {
        let by = leaf.stride.wrapping_sub(expected);
        expected = leaf.stride.wrapping_mul(leaf.extent);
        if period == 1 {
            step = step.wrapping_add(by);
        } else {
            let reciprocal = u64::MAX / period + 1;
            match jumps.last_mut() {
                // Equal periods have equal reciprocals. Different long periods may have equal
                // reciprocals, too; below the bounds of both, their floors agree.
                Some(last) if last.reciprocal == reciprocal => last.by = last.by.wrapping_add(by),
                _ if by == 0 => {}
                _ => jumps.push(Jump { reciprocal, by }),
            }
            // The remainder `r`, which is below the period. For a mode that coalesces with the one
            // before it is not used.
            let excess = reciprocal.wrapping_mul(period);
            if by != 0 && excess != 0 {
                exact = exact.min((u64::MAX / excess).saturating_add(1));
            }
        }
        period = period.saturating_mul(leaf.extent.unsigned_abs());
    }
    (step, jumps, exact)
}

/// The index up to which no partial sum needs an overflow check; 0 if the contribution of the front
/// leaves is too large.
fn bounded(leaves: &[Leaf]) -> u64 {
    // All nonnegative indices are below 2^63.
    const ALL: u64 = 1 << 63;
    let Some((last, front)) = leaves.split_last() else { return 0 };
    let (mut period, mut reach) = (1_u64, 0_u64);
    for leaf in front {
        let extent = leaf.extent.unsigned_abs();
        period = period.saturating_mul(extent);
        reach = reach.saturating_add((extent - 1).saturating_mul(leaf.stride.unsigned_abs()));
    }
    if reach > REACH {
        return 0;
    }
    // The last leaf may take `REACH / |stride|` steps, each of one period of the front leaves.
    REACH.checked_div(last.stride.unsigned_abs()).map_or(ALL, |steps| period.saturating_mul(steps + 1).min(ALL))
}

impl Layout {
    /// The layout prepared for evaluation at many indices: divisions become multiplications, and a
    /// single comparison replaces the overflow checks.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "((2,2),3):((24,2),8)".parse().unwrap();
    /// let evaluator = layout.evaluator();
    /// let offsets: Vec<i64> = (0..12).map(|i| evaluator.eval(i).unwrap()).collect();
    /// assert_eq!(offsets, [0, 24, 2, 26, 8, 32, 10, 34, 16, 40, 18, 42]);
    /// assert_eq!(evaluator.eval(-5), layout.eval(&-5));
    /// ```
    pub fn evaluator(&self) -> Evaluator {
        Evaluator::new(self.leaves())
    }
}
