//! The best padding.
//!
//! Law: padding by `p` at a stride `d` sends offset `x` to `x + p * floor(x / d)`. The result is a
//! layout if every stride is a multiple of `d` or belongs to modes whose offsets stay below `d`:
//! then each stride `k*d` becomes `k*(d+p)`.

use alloc::vec::Vec;

use crate::{Composed, Layout, Tree};

use super::{Problem, Proof, Remedy, Suggestion, counted};
use crate::analysis::error::AnalysisError;

impl Problem<'_> {
    /// The best padding, if it is better than none.
    pub(super) fn padding(&self) -> Result<Option<Suggestion>, AnalysisError> {
        let Some(layout) = &self.plain else { return Ok(None) };
        let leaves = layout.leaves();
        let mut strides: Vec<i64> = leaves.iter().filter(|leaf| leaf.extent > 1).map(|leaf| leaf.stride).collect();
        strides.sort_unstable();
        strides.dedup();
        let most = 1_i64 << self.line();
        let phases = counted(self.phases.clone());
        let mut best: Option<(i64, i64, i64, i64, Layout)> = None;
        for stride in strides.into_iter().filter(|stride| *stride > 1) {
            let below = leaves.iter().filter(|leaf| leaf.stride % stride != 0);
            let reach: i128 = below.map(|leaf| i128::from(leaf.extent - 1) * i128::from(leaf.stride)).sum();
            // Padding must not split vectors.
            if reach >= i128::from(stride) || stride % self.vector != 0 {
                continue;
            }
            // Every padded offset must be representable.
            let greatest = layout.range()?.1;
            let furthest = (greatest / stride).checked_mul(most).and_then(|more| more.checked_add(greatest));
            if furthest.is_none_or(|furthest| furthest == i64::MAX) {
                continue;
            }
            for elements in (self.vector..most).step_by(usize::try_from(self.vector).unwrap_or(1)) {
                let limit = best.as_ref().map_or(self.before - 1, |best| best.0);
                let Some(cost) = self.wavefronts(&phases, limit, |x| x + x / stride * elements) else { continue };
                let Some(padded) = padded(layout, stride, elements) else { continue };
                let rank = (cost, padded.cosize()?, elements, stride);
                if best.as_ref().is_none_or(|best| rank < (best.0, best.1, best.2, best.3)) {
                    best = Some((rank.0, rank.1, rank.2, rank.3, padded));
                }
            }
        }
        let Some((cost, _, elements, stride, layout)) = best else { return Ok(None) };
        let proof = if cost <= self.bound { Proof::Bound } else { Proof::Exhausted };
        self.suggestion(Remedy::Padding { stride, elements }, Composed::from(&layout), proof).map(Some)
    }
}

/// The layout with each stride `k * stride` increased by `k * elements`.
fn padded(layout: &Layout, stride: i64, elements: i64) -> Option<Layout> {
    let steps = layout.leaves().iter().map(|leaf| match leaf.stride % stride {
        0 => leaf.stride.checked_add((leaf.stride / stride).checked_mul(elements)?),
        _ => Some(leaf.stride),
    });
    let steps = steps.collect::<Option<Vec<_>>>()?;
    Layout::new(&layout.shape(), &Tree::new(layout.profile().clone(), steps).ok()?).ok()
}
