//! The problem of a reduction: a layout with kept and reduced modes, as two lists of axes.
//!
//! Law: the result at the coordinate `c` of the kept axes is reduced from the elements at
//! `sum c_j * kept_j + sum r_j * reduced_j` for all coordinates `r` of the reduced axes. The
//! results are contiguous, the first kept axis fastest; the index of an element is
//! `sum r_j * place_j`.

use tilewright_layout::Layout;

use crate::error::PlanError;

/// An axis: its extent, its stride, and the stride of its indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReducedAxis {
    pub(super) extent: i64,
    pub(super) stride: i64,
    pub(super) place: i64,
}

/// A reduction of some modes of a layout.
#[derive(Debug, Clone)]
pub(super) struct ReductionProblem {
    /// The kept axes, sorted by stride.
    pub(super) kept: Vec<ReducedAxis>,
    /// The reduced axes, sorted by stride.
    pub(super) reduced: Vec<ReducedAxis>,
    /// The kept modes of the layout, their layout in the result, and the reduced modes.
    pub(super) from: Layout,
    pub(super) to: Layout,
    pub(super) along: Layout,
}

/// Modes with an extent greater than 1, sorted by stride and merged where contiguous.
fn sorted(mut axes: Vec<ReducedAxis>, places: bool) -> Vec<ReducedAxis> {
    axes.retain(|axis| axis.extent > 1);
    axes.sort_by_key(|axis| (axis.stride, axis.place));
    let mut joined: Vec<ReducedAxis> = Vec::new();
    for axis in axes {
        match joined.last_mut() {
            Some(last)
                if last.stride * last.extent == axis.stride && (!places || last.place * last.extent == axis.place) =>
            {
                last.extent *= axis.extent;
            }
            _ => joined.push(axis),
        }
    }
    joined
}

/// The extents and strides of some modes, leaf by leaf, with the strides of indices in their order.
fn leaves(layout: &Layout) -> Vec<ReducedAxis> {
    let mut place = 1;
    let axis = |leaf: &tilewright_layout::Leaf<i64>| {
        let axis = ReducedAxis { extent: leaf.extent, stride: leaf.stride, place };
        place *= leaf.extent;
        axis
    };
    layout.leaves().iter().map(axis).collect()
}

impl ReductionProblem {
    /// The reduction of a layout along some of its modes. With `places`, indices are tracked: axes
    /// are merged only if their indices are contiguous, too.
    ///
    /// Errors: there is no such mode, or it is named twice; an element is before the beginning of
    /// the tensor.
    pub(super) fn new(layout: &Layout, modes: &[usize], places: bool) -> Result<ReductionProblem, PlanError> {
        let rank = layout.rank();
        let twice = |(at, mode): (usize, &usize)| modes[..at].contains(mode);
        if let Some(at) = modes.iter().enumerate().position(|(at, mode)| *mode >= rank || twice((at, mode))) {
            let known = format!("0 to {}, each once: {layout} has {rank}", rank.saturating_sub(1));
            return Err(PlanError::Unknown { what: "mode", given: modes[at].to_string(), known });
        }
        let (least, _) = layout.range()?;
        if least < 0 || layout.leaves().iter().any(|leaf| leaf.stride < 0) {
            return Err(PlanError::Before { layout: layout.to_string(), least: least.min(-1) });
        }
        let mut modes = modes.to_vec();
        modes.sort_unstable();
        let others: Vec<usize> = (0..rank).filter(|mode| !modes.contains(mode)).collect();
        let part = |modes: &[usize]| if modes.is_empty() { Ok(Layout::unit()) } else { layout.select(modes) };
        let (from, along) = (part(&others)?, part(&modes)?);
        let kept = leaves(&from);
        // Results are numbered in the order of their elements.
        let mut order: Vec<usize> = (0..kept.len()).collect();
        order.sort_by_key(|at| (kept[*at].stride, *at));
        let mut strides = vec![0; kept.len()];
        let mut step = 1;
        for at in order {
            strides[at] = step;
            step *= kept[at].extent;
        }
        let mut strides = strides.into_iter();
        let to = Layout::new(&from.shape(), &from.shape().map(|_| strides.next().unwrap_or(0)))?;
        Ok(ReductionProblem { kept: sorted(kept, false), reduced: sorted(leaves(&along), places), from, to, along })
    }

    /// The number of elements of a result, and the number of results.
    pub(super) fn sizes(&self) -> (i64, i64) {
        (self.along.size(), self.from.size())
    }

    /// Whether indices increase along the elements of the reduced axes, the first axis fastest.
    pub(super) fn ascends(&self) -> bool {
        let mut below = 1;
        self.reduced.iter().all(|axis| {
            let goes_on = axis.place == below;
            below *= axis.extent;
            goes_on
        })
    }

    /// The length of the row of each result, if rows are contiguous and adjacent.
    pub(super) fn as_rows(&self) -> Option<i64> {
        let row = match self.reduced[..] {
            [] => 1,
            [ReducedAxis { extent, stride: 1, .. }] => extent,
            _ => return None,
        };
        match self.kept[..] {
            [] => Some(row),
            [ReducedAxis { stride, .. }] if stride == row => Some(row),
            _ => None,
        }
    }
}
