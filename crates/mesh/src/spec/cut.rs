//! How placements cut a mode, one placement after another.
//!
//! Law: initially each device has all positions of a mode. `Shard` cuts the positions of each
//! device into as many parts as the axis has devices, rounded up, so that the last parts are
//! smaller or empty. `_StridedShard` with a split factor `f` cuts them into `f` blocks first, and
//! each block into as many parts as the axis has devices; a device has one part of every block.
//! (`torch.chunk`, and `torch.distributed.tensor.placement_types`.)

use crate::uneven::rounded_up;

/// A leaf of a mode, along offsets or along an axis of the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutLeaf {
    pub extent: i64,
    /// The index of the axis and the step along it; None if the leaf steps along offsets.
    pub along: Option<(usize, i64)>,
}

/// A mode that is cut.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// The leaves, the fastest first.
    pub leaves: Vec<CutLeaf>,
    /// The number of positions.
    pub size: i64,
}

impl Cut {
    pub fn whole(size: i64) -> Cut {
        Cut { leaves: vec![CutLeaf { extent: size, along: None }], size }
    }

    /// Whether all parts have equal sizes.
    fn is_even(&self) -> bool {
        self.leaves.iter().fold(1, |all, leaf| leaf.extent.saturating_mul(all)) == self.size
    }

    /// The number of positions of a device, if it is the same for all.
    fn local(&self) -> i64 {
        self.leaves.iter().filter(|leaf| leaf.along.is_none()).map(|leaf| leaf.extent).product()
    }

    /// Cuts by `Shard` along an axis. False if the result is no layout.
    #[must_use]
    pub fn shard(&mut self, axis: usize, parts: i64) -> bool {
        let block = self.leaves.split_first_mut().filter(|(_, rest)| rest.iter().all(|leaf| leaf.along.is_some()));
        let Some((local, _)) = block.filter(|(local, _)| local.along.is_none()) else {
            return self.take(1, axis, parts);
        };
        local.extent = rounded_up(local.extent, parts);
        self.leaves.insert(1, CutLeaf { extent: parts, along: Some((axis, 1)) });
        true
    }

    /// Cuts by `_StridedShard` along an axis. False if the blocks or their parts have unequal
    /// sizes, or the result is no layout.
    #[must_use]
    pub fn strided(&mut self, axis: usize, parts: i64, blocks: i64) -> bool {
        blocks >= 1 && self.take(blocks, axis, parts)
    }

    /// Divides the positions of a device into `blocks` blocks, the slowest digit, and cuts each
    /// block into parts.
    fn take(&mut self, blocks: i64, axis: usize, parts: i64) -> bool {
        let whole = blocks.checked_mul(parts).is_some_and(|whole| self.local() % whole == 0);
        if !whole || !self.is_even() {
            return false;
        }
        let mut leaves = self.leaves.clone();
        let (mut skipped, mut left) = (blocks, parts);
        let mut at = leaves.len();
        while left > 1 {
            // Leaves are taken from the slowest on.
            let Some(next) = leaves.iter().take(at).rposition(|leaf| leaf.along.is_none() && leaf.extent > 1) else {
                return false;
            };
            at = next;
            let extent = leaves.get(at).map_or(1, |leaf| leaf.extent);
            let wanted = if skipped > 1 { skipped } else { left };
            let taken = extent.min(wanted);
            if extent % taken != 0 || wanted % taken != 0 {
                return false;
            }
            let mut own = CutLeaf { extent: taken, along: None };
            if skipped > 1 {
                skipped /= taken;
            } else {
                left /= taken;
                own.along = Some((axis, left));
            }
            let rest = CutLeaf { extent: extent / taken, along: None };
            leaves.splice(at..=at, if rest.extent == 1 { vec![own] } else { vec![rest, own] });
            at += usize::from(rest.extent > 1);
        }
        self.leaves = leaves;
        true
    }
}
