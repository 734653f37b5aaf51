//! Offsets along one dimension of an operand.
//!
//! **Law.** An integer layout of `(rows, columns)` is additive over its modes: `offset(i, j) =
//! rows(i) + columns(j)`. A [`DimensionOffsets`] is one of the two functions, coalesced. A map that
//! is not additive, such as a swizzled layout, is evaluated at every place instead.

use tilewright_layout::Leaf;

use crate::offsets::Offsets;

/// The offsets along one dimension: those of a coalesced layout.
#[derive(Debug, Clone)]
pub struct DimensionOffsets {
    extent: usize,
    /// The extent and the stride of the first leaf.
    inner: usize,
    stride: isize,
    /// The extents and strides of the other leaves.
    outer: Vec<(usize, isize)>,
}

impl DimensionOffsets {
    /// The offsets of one leaf.
    #[inline]
    fn leaf(leaf: &Leaf) -> Option<DimensionOffsets> {
        let (extent, stride) = (usize::try_from(leaf.extent).ok()?, isize::try_from(leaf.stride).ok()?);
        Some(DimensionOffsets { extent, inner: extent, stride, outer: Vec::new() })
    }

    /// The offsets of the leaves of a mode; None if an extent or a stride does not fit into a
    /// `usize`.
    fn new(mode: &[Leaf]) -> Option<DimensionOffsets> {
        let mut line = DimensionOffsets { extent: 1, inner: 1, stride: 0, outer: Vec::new() };
        for leaf in mode.iter().filter(|leaf| leaf.extent > 1) {
            let (extent, stride) = (usize::try_from(leaf.extent).ok()?, isize::try_from(leaf.stride).ok()?);
            let (last, step) =
                line.outer.last_mut().map_or((&mut line.inner, line.stride), |(last, step)| (last, *step));
            if line.extent == 1 {
                (line.inner, line.stride) = (extent, stride);
            } else if isize::try_from(*last).ok()?.checked_mul(step) == Some(stride) {
                *last = last.checked_mul(extent)?;
            } else {
                line.outer.push((extent, stride));
            }
            line.extent = line.extent.checked_mul(extent)?;
        }
        Some(line)
    }

    /// The offsets along the two modes of a layout; None if its offsets are not sums of one for
    /// each mode.
    #[inline]
    pub fn pair(layout: &impl Offsets) -> Option<(DimensionOffsets, DimensionOffsets)> {
        if let Some([row, column]) = layout.flat_leaves() {
            return Some((DimensionOffsets::leaf(row)?, DimensionOffsets::leaf(column)?));
        }
        // In preorder, a leaf is 0, and a tuple is the number of nodes under it, including itself.
        let (leaves, profile) = (layout.leaves()?, layout.profile());
        let first = profile.nodes().get(1..)?;
        let nodes = first.get(..usize::from(*first.first()?).max(1))?;
        let (rows, columns) = leaves.split_at_checked(nodes.iter().filter(|node| **node == 0).count())?;
        Some((DimensionOffsets::new(rows)?, DimensionOffsets::new(columns)?))
    }

    /// The number of positions.
    #[inline]
    pub fn extent(&self) -> usize {
        self.extent
    }

    /// The stride between neighbouring positions, if it is the same for all; `default` for a
    /// dimension with one position.
    #[inline]
    pub fn stride(&self, default: isize) -> Option<isize> {
        if self.extent == 1 {
            return Some(default);
        }
        self.outer.is_empty().then_some(self.stride)
    }

    /// Writes the offsets of the positions from `first` on, all of which must exist.
    pub fn fill(&self, first: usize, offsets: &mut [isize]) {
        let (mut at, mut rest) = (first, offsets);
        while !rest.is_empty() {
            // A run within the first leaf. The digits above it are computed once for each run.
            let (digit, mut above) = (at % self.inner, at / self.inner);
            let mut offset = self.stride * digit as isize;
            for (extent, stride) in &self.outer {
                offset += stride * (above % extent) as isize;
                above /= extent;
            }
            let (run, others) = rest.split_at_mut((self.inner - digit).min(rest.len()));
            for place in run.iter_mut() {
                *place = offset;
                offset = offset.wrapping_add(self.stride);
            }
            at += run.len();
            rest = others;
        }
    }
}
