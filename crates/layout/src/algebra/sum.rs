//! Sums: the layout that adds the values of two others (whitepaper `layout_add`).
//!
//! Law: `R(i) = A(i) + B(i)` at every index below the common size, `R` flat and coalesced. It is
//! returned exactly when it exists.
//!
//! A coalesced layout of `n` indices changes step after every `p` indices, for `p` in its chain of
//! running products below `n` (see (1) in [`crate::algebra::compose`]); so their sum changes step
//! at the union of both chains, except at a common `p` where the two changes cancel. Let
//! `p_1 < .. < p_m` be the remaining ones. A layout with these changes exists if and only if each
//! divides the next and the last divides `n`: the first mode must end at `p_1`, and if `p` is the
//! least one that `p_1` does not divide, the change at `p` falls inside a block of `p_1` indices
//! and is the only one there, so that this block differs from the first; then repeat above `p_1`.

use smallvec::SmallVec;

use crate::algebra::coalesce::{coalesced, push_merged};
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::evidence::Condition;
use crate::value::layout::{Layout, Leaf, eval_given};
use crate::value::number::{Extent, Stride, Truth};
use crate::value::tree::Leaves;

const OP: &str = "layout_add";

impl<D: Stride> Layout<D> {
    /// The layout whose value at every index is the sum of the values of the two.
    ///
    /// Errors: the sizes differ; the sum is not the function of a layout
    /// ([`LayoutError::NotALayout`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (a, b): (Layout, Layout) = ("(4,3):(1,4)".parse().unwrap(), "(4,3):(3,1)".parse().unwrap());
    /// assert_eq!(a.add(&b).unwrap().to_string(), "(4,3):(4,5)");
    /// ```
    pub fn add(&self, other: &Layout<D>) -> Result<Layout<D>, LayoutError> {
        D::add_layouts(self, other)
    }
}

/// The sum, for strides that are multiplied and compared as integers are.
pub(crate) fn add_integers<D: Stride>(x: &Layout<D>, y: &Layout<D>) -> Result<Layout<D>, LayoutError> {
    let size = x.size();
    if !size.same(&y.size()).proved() {
        return Err(match (size.known(), y.size().known()) {
            (Some(left), Some(right)) => LayoutError::Size { op: OP, left, right },
            _ => LayoutError::open(OP, Condition::Equal, &size, &y.size()),
        });
    }
    let a = coalesced(x.leaves()).fits_as::<D::Extent>(OP)?;
    let b = coalesced(y.leaves()).fits_as::<D::Extent>(OP)?;
    let mut begins = common_changes(&a, &b)?;
    begins.push(size);
    let mut leaves: Leaves<Leaf<D>> = Leaves::new();
    let mut begin = D::Extent::one();
    for end in begins {
        let (extent, rest) = end.divide(&begin).fits_as::<D::Extent>(OP)?;
        if !rest.is_zero().proved() {
            return Err(match (begin.known(), end.known()) {
                (Some(inner), Some(outer)) => LayoutError::NotALayout { op: OP, runs: (inner, outer) },
                _ => LayoutError::open(OP, Condition::Divides, &begin, &end),
            });
        }
        if !extent.is_one().proved() {
            let value = |modes: &[Leaf<D>]| {
                if modes.is_empty() { Some(D::zero()) } else { eval_given(modes, &begin, &extent) }
            };
            let stride = value(&a).and_then(|left| left.plus(&value(&b)?)).fits_as::<D::Extent>(OP)?;
            push_merged(&mut leaves, &Leaf { extent, stride }).fits_as::<D::Extent>(OP)?;
        }
        begin = end;
    }
    let sum = Layout::flat(leaves)?;
    match D::clash(sum.leaves()) {
        // The strides are in different modes and coalesce only now.
        Some(_) => Layout::from_tree(sum.tree().clone()),
        None => Ok(sum),
    }
}

/// The increasing list of indices after which the sum changes its step.
fn common_changes<D: Stride>(a: &[Leaf<D>], b: &[Leaf<D>]) -> Result<SmallVec<[D::Extent; 8]>, LayoutError> {
    let (mut changes, mut x, mut y) = (SmallVec::new(), Changes::new(a), Changes::new(b));
    loop {
        match (x.end().fits_as::<D::Extent>(OP)?, y.end().fits_as::<D::Extent>(OP)?) {
            (None, None) => return Ok(changes),
            (Some(end), None) => {
                changes.push(end.clone());
                x.advance(end);
            }
            (None, Some(end)) => {
                changes.push(end.clone());
                y.advance(end);
            }
            (Some(left), Some(right)) => match (left.less(&right), right.less(&left)) {
                (Truth::Proved, _) => {
                    changes.push(left.clone());
                    x.advance(left);
                }
                (_, Truth::Proved) => {
                    changes.push(right.clone());
                    y.advance(right);
                }
                (Truth::Refuted, Truth::Refuted) => {
                    let next = x.next().and_then(|next| next.plus(&y.next()?)).fits_as::<D::Extent>(OP)?;
                    let straight = x.straight().and_then(|on| on.plus(&y.straight()?)).fits_as::<D::Extent>(OP)?;
                    if !next.same(&straight).proved() {
                        changes.push(left.clone());
                    }
                    x.advance(left);
                    y.advance(right);
                }
                _ => return Err(LayoutError::open(OP, Condition::Ordered, &left, &right)),
            },
        }
    }
}

/// An iterator over the changes of step of one layout.
struct Changes<'a, D: Stride> {
    modes: &'a [Leaf<D>],
    /// The index at which the first of `modes` begins.
    begin: D::Extent,
}

impl<'a, D: Stride> Changes<'a, D> {
    fn new(modes: &'a [Leaf<D>]) -> Changes<'a, D> {
        Changes { modes, begin: D::Extent::one() }
    }

    /// The index of the next change; `Some(None)` in the last mode.
    fn end(&self) -> Option<Option<D::Extent>> {
        match self.modes {
            [first, _, ..] => Some(Some(self.begin.times(&first.extent)?)),
            _ => Some(None),
        }
    }

    /// The step after the next change.
    fn next(&self) -> Option<D> {
        self.modes.get(1).map(|mode| mode.stride.clone())
    }

    /// The step if there were no change.
    fn straight(&self) -> Option<D> {
        self.modes.first().and_then(|mode| mode.stride.times(&mode.extent))
    }

    fn advance(&mut self, end: D::Extent) {
        self.modes = self.modes.get(1..).unwrap_or_default();
        self.begin = end;
    }
}
