//! The coordinate of a thread from its number.
//!
//! # Law
//!
//! A thread layout maps coordinates to thread indices. Sorted by stride, its modes do not overlap:
//! all steps of the shorter ones together stay below the next stride. So the digits of a thread
//! index are found from the longest stride down, each a quotient, and the remainder is 0 exactly if
//! the index is a value of the layout.

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::atoms::error::AtomError;
use crate::{Condition, Extent, Layout, LayoutError, Leaf, Question, Tree};

/// The indices of the leaves with nonzero strides, the largest stride first; None if they overlap,
/// or if a stride is negative or repeats.
pub(crate) fn descending(layout: &Layout) -> Option<Vec<usize>> {
    let leaves = layout.leaves();
    let mut order: Vec<usize> = (0..leaves.len()).filter(|at| leaves.get(*at).is_some_and(|l| l.extent > 1)).collect();
    order.sort_by_key(|at| leaves.get(*at).map(|leaf| leaf.stride));
    let mut reach = 0_i64;
    for leaf in order.iter().filter_map(|at| leaves.get(*at)) {
        if leaf.stride <= reach {
            return None;
        }
        reach = leaf.stride.checked_mul(leaf.extent - 1).and_then(|steps| reach.checked_add(steps))?;
    }
    order.reverse();
    Some(order)
}

/// Whether the coordinates of this layout can be computed from thread numbers.
pub(crate) fn is_separable(layout: &Layout) -> bool {
    descending(layout).is_some()
}

/// The coordinate of a thread: for each top-level mode, the index in it.
///
/// Errors: no thread of the layout has this number ([`AtomError::NoThread`]); for a number that is
/// not known, it is not known whether a thread has it ([`LayoutError::Open`]).
pub(crate) fn coordinate<N: Extent>(layout: &Layout, number: &N) -> Result<Tree<N>, AtomError> {
    const OP: &str = "thread_coordinate";
    let overflow = || LayoutError::Overflow { op: OP };
    let refuse = || AtomError::NoThread { number: number.to_string().into(), layout: layout.to_string().into() };
    let mut digits: Vec<N> = layout.leaves().iter().map(|_| N::zero()).collect();
    let mut rest = number.clone();
    let within = |value: &N, end: &N| match (value.less(&N::zero()), value.less(end)) {
        (below, past) if below.proved() || past.refuted() => Err(refuse()),
        (below, past) if below.refuted() && past.proved() => Ok(()),
        (below, _) => {
            let question = match below.refuted() {
                true => Question::new(Condition::Less, value, end),
                false => Question::new(Condition::AtMost, &N::zero(), value),
            };
            Err(AtomError::Layout(LayoutError::Open { op: OP, question: question.into() }))
        }
    };
    for at in descending(layout).ok_or_else(refuse)? {
        let Some(Leaf { extent, stride }) = layout.leaves().get(at) else { continue };
        let (extent, stride) = (N::from(*extent), N::from(*stride));
        within(&rest, &extent.times(&stride).ok_or_else(overflow)?)?;
        let (digit, remainder) = rest.divide(&stride).ok_or_else(overflow)?;
        if let Some(place) = digits.get_mut(at) {
            *place = digit;
        }
        rest = remainder;
    }
    within(&rest, &N::one())?;
    // The digits of each mode are combined into one index, first leaf fastest.
    let mut digits = digits.into_iter();
    let mut indices = Vec::new();
    for mode in layout.modes() {
        let (mut index, mut step) = (N::zero(), N::one());
        for (leaf, digit) in mode.leaves().iter().zip(&mut digits) {
            index = step.times(&digit).and_then(|steps| index.plus(&steps)).ok_or_else(overflow)?;
            step = step.times(&N::from(leaf.extent)).ok_or_else(overflow)?;
        }
        indices.push(index);
    }
    Ok(Tree::flat(indices)?)
}
