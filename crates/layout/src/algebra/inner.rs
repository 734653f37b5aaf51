//! What a layout may be composed after, and tiled by.
//!
//! Law: `R(c) = A(B(c))`, where the values of `B` are places of `A`: indices, if its strides are
//! integers, or coordinates, if they are steps in the modes of `A` ([`Coordinate`]). The operations
//! that take such a `B` ask this trait for the three things that depend on which it is: the
//! composite, whether `B` stays within `A`, and the division of `A` by `B`.
//!
//! [`Coordinate`]: crate::Coordinate

use crate::algebra::compose::{compose_integers, compose_parts, stays_within};
use crate::refusal::error::LayoutError;
use crate::tile::divide::divide_by_indices;
use crate::tile::tiler::Pairs;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::tree::{Gatherer, TreeRef};

/// A kind of stride whose values are places of a layout with strides `D`: what [`Layout::compose`]
/// and the divisions take.
///
/// Implemented for the extents of the layout, whose values are indices, and for coordinates.
pub trait Inner<D: Stride>: Stride<Extent = D::Extent> {
    /// Whether the values are indices, which the compact layout of a shape keeps, also past its
    /// end.
    #[doc(hidden)]
    const INDICES: bool;

    /// `A o B`.
    #[doc(hidden)]
    fn compose(a: &Layout<D>, b: &Layout<Self>) -> Result<Layout<D>, LayoutError>;

    /// Appends `A o B` to a tree that is being written.
    #[doc(hidden)]
    fn compose_into(a: TreeRef<'_, Leaf<D>>, b: &Layout<Self>, out: &mut Gatherer<Leaf<D>>) -> Result<(), LayoutError>;

    /// Refuses a `B` that leaves the domain of `A`.
    #[doc(hidden)]
    fn within(a: &Layout<D>, b: &Layout<Self>) -> Result<(), LayoutError>;

    /// Writes `A o T` and what runs over the tiles.
    #[doc(hidden)]
    fn divide(a: TreeRef<'_, Leaf<D>>, tile: &Layout<Self>, pairs: &mut Pairs<D>) -> Result<(), LayoutError>;
}

impl<N: Extent, D: Stride<Extent = N>> Inner<D> for N {
    const INDICES: bool = true;

    #[inline(always)]
    fn compose(a: &Layout<D>, b: &Layout<N>) -> Result<Layout<D>, LayoutError> {
        if !D::DISTRIBUTES {
            return D::compose_layouts(a, b);
        }
        compose_integers(a, b)
    }

    #[inline]
    fn compose_into(a: TreeRef<'_, Leaf<D>>, b: &Layout<N>, out: &mut Gatherer<Leaf<D>>) -> Result<(), LayoutError> {
        let (nodes, leaves) = out.parts_mut();
        compose_parts(a, b.as_ref(), nodes, leaves)
    }

    fn within(a: &Layout<D>, b: &Layout<N>) -> Result<(), LayoutError> {
        stays_within(b.range()?, a.size(), &[])
    }

    #[inline]
    fn divide(a: TreeRef<'_, Leaf<D>>, tile: &Layout<N>, pairs: &mut Pairs<D>) -> Result<(), LayoutError> {
        divide_by_indices(a, tile, pairs)
    }
}
