//! One layout at many indices.
//!
//! Let `P_k` be the product of the extents before leaf `k`, so that digit `k` of an index `i >= 0` is
//! `floor(i / P_k) - e_k * floor(i / P_(k+1))`, and the last digit is its first term alone. Summing by parts,
//!
//! ```text
//! L(i) = s_0 * i + sum over k >= 1 of floor(i / P_k) * j_k,   j_k = s_k - e_(k-1) * s_(k-1):
//! ```
//!
//! the layout walks with its first stride and jumps by `j_k` each time that leaf `k` steps. Leaves that merge have no jump, and
//! leaves with one `P` share one. Two facts make this quick.
//!
//! * *Reciprocals.* With `m = ceil(2^64 / P)` and `r = m * P - 2^64`, `m * i / 2^64` exceeds `i / P` by `r * i / (P * 2^64)`. The
//!   fraction of `i / P` is at most `(P - 1) / P`, so both have the same floor while `r * i < 2^64`: always for powers of two,
//!   and at least while `P * i < 2^64`.
//! * *One bound.* Where the front leaves reach less than `2^62` and the last one goes on to less than `2^62`, in magnitude, the value
//!   and every partial sum are below `2^63`. There the sum may be taken modulo `2^64`, and no step needs a check.
//!
//! So one comparison of the index with the least of these bounds decides; an index beyond it, or below zero, goes the way of
//! [`Layout::eval`].

use smallvec::SmallVec;

use crate::error::LayoutError;
use crate::layout::{Layout, Leaf, eval_leaves};
use crate::tree::Leaves;

/// A layout prepared for evaluation at many indices: see [`Layout::evaluator`].
#[derive(Debug, Clone)]
pub struct Evaluator {
    /// The first stride, and the jumps of leaves that step with it.
    step: i64,
    jumps: SmallVec<[Jump; 8]>,
    /// Indices from 0 up to here, exclusive, are evaluated by the jumps.
    limit: u64,
    leaves: Leaves<Leaf>,
}

/// So much more each time that the index passes a multiple of a period.
#[derive(Debug, Clone, Copy)]
struct Jump {
    /// `2^64` divided by the period, rounded up.
    reciprocal: u64,
    /// The jump modulo `2^64`.
    by: i64,
}

/// The most that the front leaves may reach, and the last one.
const REACH: u128 = (1 << 62) - 1;

impl Evaluator {
    fn new(leaves: &[Leaf]) -> Evaluator {
        let mut evaluator =
            Evaluator { step: 0, jumps: SmallVec::new(), limit: 0, leaves: leaves.iter().copied().collect() };
        let Some((last, front)) = leaves.split_last() else { return evaluator };
        // Indices below 2^63 are those that are not negative.
        let (mut limit, mut period, mut reach) = (1_u128 << 63, 1_u128, 0_u128);
        // What the leaf before this one would do next: `e_(k-1) * s_(k-1)`.
        let mut expected = 0_i64;
        for leaf in leaves {
            let bound = evaluator.jump(period, leaf.stride.wrapping_sub(expected));
            limit = limit.min(bound);
            expected = leaf.stride.wrapping_mul(leaf.extent);
            period *= u128::from(leaf.extent.unsigned_abs());
        }
        for leaf in front {
            let steps = u128::from(leaf.extent.unsigned_abs()) - 1;
            reach = reach.saturating_add(steps * u128::from(leaf.stride.unsigned_abs()));
        }
        if reach > REACH {
            return evaluator;
        }
        // The last leaf may take `REACH / |stride|` steps, of one period of the front leaves each.
        if let Some(steps) = REACH.checked_div(u128::from(last.stride.unsigned_abs())) {
            let period = period / u128::from(last.extent.unsigned_abs());
            limit = limit.min(period * (steps + 1));
        }
        evaluator.limit = limit as u64;
        evaluator
    }

    /// Adds a jump at every multiple of a period, and gives the index up to which its reciprocal is exact.
    fn jump(&mut self, period: u128, by: i64) -> u128 {
        const EXACT: u128 = u128::MAX;
        if period == 1 {
            self.step = self.step.wrapping_add(by);
            return EXACT;
        }
        let reciprocal = (1_u128 << 64).div_ceil(period);
        match self.jumps.last_mut() {
            // Equal periods have equal reciprocals. So may long periods that differ; below the bounds of both their floors agree.
            Some(last) if u128::from(last.reciprocal) == reciprocal => last.by = last.by.wrapping_add(by),
            _ if by == 0 => return EXACT,
            _ => self.jumps.push(Jump { reciprocal: reciprocal as u64, by }),
        }
        let excess = reciprocal * period - (1 << 64);
        u128::from(u64::MAX).checked_div(excess).map_or(EXACT, |last| last + 1)
    }

    /// The value of the layout at an index: `layout.evaluator().eval(i) == layout.eval(&i)` for every `i`, past the end and
    /// below zero too.
    ///
    /// Errors: as [`Layout::eval`].
    #[inline]
    pub fn eval(&self, index: i64) -> Result<i64, LayoutError> {
        if index as u64 >= self.limit {
            return self.eval_far(index);
        }
        let mut value = self.step.wrapping_mul(index);
        for jump in &self.jumps {
            let passed = (u128::from(jump.reciprocal) * u128::from(index as u64)) >> 64;
            value = value.wrapping_add((passed as i64).wrapping_mul(jump.by));
        }
        Ok(value)
    }

    #[cold]
    fn eval_far(&self, index: i64) -> Result<i64, LayoutError> {
        eval_leaves(&self.leaves, &index).ok_or_else(|| LayoutError::overflow("eval"))
    }
}

impl Layout {
    /// The layout prepared for evaluation at many indices: divisions become multiplications, and checks one comparison.
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
