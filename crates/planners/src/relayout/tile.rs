//! The tile of a block.
//!
//! Law: a tile is a box of axes. Its elements are runs in the source, of whole axes except for the
//! last one, and runs in the destination; an axis that is contiguous in both may be in both runs.
//! Both kinds of runs are as long as memory needs, if the layouts have such runs.

use crate::axes::Axis;
use crate::units::{div_up, gcd};

/// A box of axes.
#[derive(Debug, Clone)]
pub(super) struct AxisBox {
    /// The extent of the box along each axis; 1 along axes that it does not use.
    pub(super) extents: Vec<i64>,
    /// The axes along which a run of the source goes, the fastest first.
    pub(super) source: Vec<usize>,
    /// The axes along which a run of the destination goes, the fastest first.
    pub(super) destination: Vec<usize>,
    /// Axes that are in no run, which the box includes to reach its required size.
    pub(super) beside: Vec<usize>,
}

/// The axes of a run of at most `wanted` elements, and the extent along the last one.
fn run(axes: &[Axis], step: impl Fn(&Axis) -> i64, wanted: i64) -> (Vec<usize>, i64) {
    let (mut found, mut length, mut last): (Vec<usize>, i64, i64) = (Vec::new(), 1, 1);
    while length < wanted {
        let next = (0..axes.len())
            .find(|axis| axes[*axis].extent > 1 && step(&axes[*axis]) == length && !found.contains(axis));
        let Some(next) = next else { break };
        let most = axes[next].extent.min((wanted / length).max(1));
        if most == 1 && !found.is_empty() {
            break;
        }
        found.push(next);
        // Boxes of equal size, rather than a small one at the end.
        last = div_up(axes[next].extent, div_up(axes[next].extent, most));
        length = length.saturating_mul(axes[next].extent);
        if last < axes[next].extent {
            break;
        }
    }
    (found, last)
}

impl AxisBox {
    /// The box with runs of about `wanted` elements, and of at least `least` elements, if there are
    /// as many. Runs that are cut are cut at multiples of `units` elements, if they are longer than
    /// that.
    pub(super) fn new(axes: &[Axis], wanted: (i64, i64), units: (i64, i64), least: i64) -> AxisBox {
        let (source, source_last) = run(axes, |axis| axis.source, wanted.0);
        let (destination, last) = run(axes, |axis| axis.destination, wanted.1);
        let mut extents = vec![1; axes.len()];
        for (list, last, unit) in [(&source, source_last, units.0), (&destination, last, units.1)] {
            let Some((outer, inner)) = list.split_last() else { continue };
            let length: i64 = inner.iter().map(|axis| axes[*axis].extent).product();
            inner.iter().for_each(|axis| extents[*axis] = axes[*axis].extent);
            let step = unit / gcd(length, unit);
            let last = if last >= step { div_up(last, step) * step } else { last };
            extents[*outer] = extents[*outer].max(last.min(axes[*outer].extent));
        }
        // Small boxes are enlarged in the order of the destination.
        let mut beside = Vec::new();
        for (axis, Axis { extent, .. }) in axes.iter().enumerate() {
            let size: i64 = extents.iter().product();
            if size * 2 > least || extents[axis] == *extent || source.contains(&axis) || destination.contains(&axis) {
                continue;
            }
            let most = (*extent).min(extents[axis] * (least / size));
            extents[axis] = div_up(*extent, div_up(*extent, most));
            if extents[axis] > 1 {
                beside.push(axis);
            }
            if extents[axis] < *extent {
                break;
            }
        }
        AxisBox { extents, source, destination, beside }
    }

    /// The axes of the box that are not in a run of the source, in the order of the destination:
    /// one run of the source for each coordinate.
    pub(super) fn rows(&self) -> Vec<usize> {
        let rows = self.destination.iter().filter(|axis| !self.source.contains(axis));
        rows.chain(&self.beside).copied().collect()
    }

    /// The axes of the box that are not in a run of the destination, in the order of the source.
    pub(super) fn columns(&self) -> Vec<usize> {
        let columns = self.source.iter().filter(|axis| !self.destination.contains(axis));
        columns.chain(&self.beside).copied().collect()
    }

    /// The number of boxes along each axis; the last ones may be partial.
    pub(super) fn counts(&self, axes: &[Axis]) -> Vec<i64> {
        axes.iter().zip(&self.extents).map(|(axis, extent)| div_up(axis.extent, *extent)).collect()
    }
}

/// The average number of adjacent elements of a box: the first number over the second one. If the
/// box cuts an axis, its last part is smaller.
pub(super) fn side_by_side(axes: &[Axis], step: impl Fn(&Axis) -> i64, extents: &[i64]) -> (i64, i64) {
    let mut length = 1;
    while let Some(next) = (0..axes.len()).find(|axis| axes[*axis].extent > 1 && step(&axes[*axis]) == length) {
        length *= axes[next].extent;
        if extents[next] < axes[next].extent {
            return (length, div_up(axes[next].extent, extents[next]));
        }
    }
    (length, 1)
}
