//! Two layouts as one list of axes.
//!
//! Law: for every element `i` there is exactly one coordinate `c` of the axes such that the source
//! puts `i` at `sum c_j * source_j` and the destination puts it at `sum c_j * destination_j`. Two
//! axes that are contiguous with each other in both layouts are merged.

use tilewright_layout::{CommonDigits, Digit, Layout};

use crate::error::PlanError;

/// An axis that two layouts share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Axis {
    /// The extent.
    pub extent: i64,
    /// The stride in the source, in elements.
    pub source: i64,
    /// The stride in the destination, in elements.
    pub destination: i64,
}

/// The common axes of two layouts, sorted by their stride in the destination, smallest first.
///
/// None if the two shapes have no common refinement: then a coordinate of one is no coordinate of
/// the other.
///
/// Errors: the sizes differ.
pub(crate) fn common(source: &Layout, destination: &Layout) -> Result<Option<Vec<Axis>>, PlanError> {
    let sizes = (source.size(), destination.size());
    if sizes.0 != sizes.1 {
        return Err(PlanError::Sizes { source: sizes.0, destination: sizes.1 });
    }
    let moving = |layout: &Layout| -> (Vec<i64>, Vec<i64>) {
        layout.leaves().iter().filter(|leaf| leaf.extent > 1).map(|leaf| (leaf.extent, leaf.stride)).unzip()
    };
    let (from, to) = (moving(source), moving(destination));
    let mut digits = CommonDigits::new([&from.0, &to.0]);
    let step = |strides: &[i64], (mode, below): (usize, i64)| strides[mode] * below;
    let mut axes: Vec<Axis> = digits
        .by_ref()
        .map(|Digit { extent, parts: [a, b] }| Axis { extent, source: step(&from.1, a), destination: step(&to.1, b) })
        .collect();
    if !digits.is_complete() {
        return Ok(None);
    }
    axes.sort_by_key(|axis| (axis.destination, axis.source));
    let mut merged: Vec<Axis> = Vec::new();
    for axis in axes {
        match merged.last_mut() {
            Some(last)
                if last.source * last.extent == axis.source && last.destination * last.extent == axis.destination =>
            {
                last.extent *= axis.extent;
            }
            _ => merged.push(axis),
        }
    }
    if merged.is_empty() {
        merged.push(Axis { extent: 1, source: 1, destination: 1 });
    }
    Ok(Some(merged))
}

#[cfg(test)]
mod tests {
    use super::common;
    use tilewright_layout::Layout;

    /// All pairs of offsets, in order.
    fn pairs(source: &Layout, destination: &Layout) -> Vec<(i64, i64)> {
        let mut pairs: Vec<(i64, i64)> =
            (0..source.size()).map(|at| (source.eval(&at).unwrap(), destination.eval(&at).unwrap())).collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn axes_have_the_pairs_of_both_layouts() {
        let cases = [
            ("(4,6):(6,1)", "(4,6):(1,4)"),
            ("(4,6):(1,4)", "24:1"),
            ("(2,3,4):(12,4,1)", "(2,3,4):(1,8,2)"),
            ("((2,4),6):((1,12),2)", "(8,6):(6,1)"),
            ("(8,8):(0,1)", "(8,8):(8,1)"),
            ("1:0", "1:0"),
            ("(4,1,6):(6,9,1)", "(2,2,6):(1,2,5)"),
        ];
        for (source, destination) in cases {
            let (source, destination): (Layout, Layout) = (source.parse().unwrap(), destination.parse().unwrap());
            let axes = common(&source, &destination).unwrap().unwrap();
            let mut found = vec![(0, 0)];
            for axis in &axes {
                found = (0..axis.extent)
                    .flat_map(|at| found.iter().map(move |(s, d)| (s + at * axis.source, d + at * axis.destination)))
                    .collect();
            }
            found.sort_unstable();
            assert_eq!(found, pairs(&source, &destination), "{source} to {destination}: {axes:?}");
        }
    }

    #[test]
    fn shapes_that_are_cut_elsewhere_have_no_axes() {
        let (a, b): (Layout, Layout) = ("(4,6)".parse().unwrap(), "(6,4)".parse().unwrap());
        assert_eq!(common(&a, &b).unwrap(), None);
    }
}
