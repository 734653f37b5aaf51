//! The values that an inner layout passes to the outer map of a composed layout: indices, or
//! coordinates.
//!
//! Law: an index is passed unchanged. The outer layout evaluates a coordinate mode by mode: the
//! scale at the path of a mode is the index in that mode, 0 if there is none. So
//! `(4,5):(1,4) o (0,0) o (2,3):(1@0,1@1)` is a window of 2 by 3 of `(4,5):(1,4)`.

use alloc::boxed::Box;

use super::{Composed, OuterMap};
use crate::coordinate::{Coordinate, ModePath};
use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::Layout;
use crate::value::number::{Extent, Stride};
use crate::value::profile::{Profile, ProfileRef};
use crate::value::tree::{Gatherer, Tree};

/// The type of the values that the inner layout of a [`Composed`] passes to the outer map:
/// integers, known or not, or coordinates.
pub trait InnerValue: Stride {
    /// The offset in the form in which it is printed: a number, or a nested coordinate of the outer
    /// layout.
    ///
    /// Errors: a coordinate does not fit the outer layout.
    fn offset_tree(&self, outer: &OuterMap<Self::Extent>) -> Result<Tree<Self::Extent>, LayoutError>;

    /// The offset that is printed as `tree`; None if that is not of this type.
    fn of_offset_tree(tree: &Tree<Self::Extent>) -> Option<Self>;

    /// The value of an outer map at this argument.
    ///
    /// Errors: as [`OuterMap::eval`].
    fn seen_through(&self, outer: &OuterMap<Self::Extent>) -> Result<Self::Extent, LayoutError>;

    /// Refuses an inner layout with values that are not representable, or at which the outer map
    /// has no value.
    fn check(outer: &OuterMap<Self::Extent>, offset: &Self, inner: &Layout<Self>) -> Result<(), LayoutError>;

    /// The map `x -> outer(offset + inner(x))` of an index, after another layout `b`; None for
    /// coordinates.
    fn over(composed: &Composed<Self>, b: &Layout<Self::Extent>) -> Option<Result<Composed<Self>, LayoutError>>;
}

impl<N: Extent> InnerValue for N {
    fn offset_tree(&self, _outer: &OuterMap<N>) -> Result<Tree<N>, LayoutError> {
        Ok(Tree::leaf(self.clone()))
    }

    fn of_offset_tree(tree: &Tree<N>) -> Option<N> {
        tree.leaves().first().filter(|_| tree.is_leaf()).cloned()
    }

    #[inline]
    fn seen_through(&self, outer: &OuterMap<N>) -> Result<N, LayoutError> {
        outer.eval(self)
    }

    fn check(outer: &OuterMap<N>, offset: &N, inner: &Layout<N>) -> Result<(), LayoutError> {
        let known = |number: &N| number.known().is_some();
        let Ok((least, greatest)) = inner.range() else {
            // If the strides are known, the overflow of their sum is certain.
            let open = inner.leaves().iter().any(|leaf| !known(&leaf.extent) || !known(&leaf.stride));
            return if open { Ok(()) } else { Err(N::overflow("composed layout")) };
        };
        let first = outer.first();
        for reach in [least, greatest] {
            let end = offset.plus(&reach).fits_as::<N>("composed layout")?;
            if let (OuterMap::Bits(matrix), Some(end)) = (first, end.known()) {
                matrix.extended(end)?;
            }
        }
        Ok(())
    }

    fn over(composed: &Composed<N>, b: &Layout<N>) -> Option<Result<Composed<N>, LayoutError>> {
        Some(composed.map().and_then(|map| Composed::new(map, N::zero(), b.clone())))
    }
}

impl<N: Extent> InnerValue for Coordinate<N> {
    fn offset_tree(&self, outer: &OuterMap<N>) -> Result<Tree<N>, LayoutError> {
        let profile = match outer.first() {
            OuterMap::Layout(layout) => layout.profile().clone(),
            _ => Profile::leaf(),
        };
        let mut terms = 0;
        let mut out = Gatherer::new();
        place(self, profile.as_ref(), ModePath::ROOT, &mut terms, &mut out)?;
        if terms != self.terms().count() {
            return Err(LayoutError::NoPath {
                op: "composed layout",
                path: Default::default(),
                step: alloc::format!("{self}").into(),
                profile: Box::new(profile),
            });
        }
        out.finish()
    }

    fn of_offset_tree(tree: &Tree<N>) -> Option<Coordinate<N>> {
        Coordinate::of_tree(tree).ok()
    }

    fn seen_through(&self, outer: &OuterMap<N>) -> Result<N, LayoutError> {
        outer.eval_at(&self.offset_tree(outer)?)
    }

    fn check(outer: &OuterMap<N>, offset: &Coordinate<N>, inner: &Layout<Coordinate<N>>) -> Result<(), LayoutError> {
        offset.offset_tree(outer)?;
        for (position, leaf) in inner.leaves().iter().enumerate() {
            leaf.stride.offset_tree(outer).map_err(|error| match error {
                LayoutError::NoPath { op, step, profile, .. } => {
                    LayoutError::NoPath { op, path: inner.profile().path(position), step, profile }
                }
                other => other,
            })?;
        }
        Ok(())
    }

    fn over(_: &Composed<Coordinate<N>>, _: &Layout<N>) -> Option<Result<Composed<Coordinate<N>>, LayoutError>> {
        None
    }
}

/// Writes a coordinate in the nesting of a profile, down to the modes at which its paths end, and
/// counts the terms used.
fn place<N: Extent>(
    value: &Coordinate<N>,
    profile: ProfileRef<'_>,
    path: ModePath,
    terms: &mut usize,
    out: &mut Gatherer<N>,
) -> Result<(), LayoutError> {
    let ends = value.terms().any(|(at, _)| at == path);
    if ends || profile.is_leaf() {
        *terms += usize::from(ends);
        out.leaf(value.scale_at(path));
        return Ok(());
    }
    out.open();
    for (position, mode) in profile.modes().enumerate() {
        place(value, mode, path.then(position)?, terms, out)?;
    }
    out.close();
    Ok(())
}

impl<N: Extent> OuterMap<N> {
    /// The map of a chain that is applied first.
    pub(super) fn first(&self) -> &OuterMap<N> {
        match self {
            OuterMap::Chain(chain) => &chain.inner,
            other => other,
        }
    }

    /// The value at a coordinate of the layout that is applied first.
    fn eval_at(&self, coord: &Tree<N>) -> Result<N, LayoutError> {
        match self {
            OuterMap::Layout(layout) => layout.eval_at(coord),
            OuterMap::Chain(chain) => {
                let value = chain.offset.plus(&chain.inner.eval_at(coord)?);
                chain.outer.eval(&value.fits_as::<N>("eval")?)
            }
            _ => match coord.leaves() {
                [index] => self.eval(index),
                _ => self.eval(&N::zero()),
            },
        }
    }
}
