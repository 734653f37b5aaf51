//! Inner layouts of compositions, and tilers.
//!
//! Law: `R(c) = A(B(c))`, where the values of `B` are indices of `A`, if the strides of `B` are
//! integers, or coordinates of `A`, if they are steps in the modes of `A` ([`Coordinate`]).
//! [`InnerKind`] has the three operations that depend on which it is: the composite, whether `B`
//! stays within `A`, and the division of `A` by `B`. The answers for indices are in
//! `tile/index.rs`, those for coordinates in `coordinate/composition.rs`.
//!
//! [`Coordinate`]: crate::Coordinate

use crate::refusal::error::LayoutError;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::pairs::Pairs;
use crate::value::tree::{Gatherer, TreeRef};

/// A kind of stride whose values are indices or coordinates of a layout with strides `D`: the
/// operands of [`Layout::compose`] and of divisions.
///
/// Implemented for the extents of the layout, whose values are indices, and for coordinates. The
/// trait is sealed, so there are no other implementations.
pub trait Inner<D: Stride>: Stride<Extent = D::Extent> + InnerKind<D> {}

impl<N: Extent, D: Stride<Extent = N>> Inner<D> for N {}

/// The properties of an inner layout that the algebra needs.
pub trait InnerKind<D: Stride>: Stride<Extent = D::Extent> {
    /// Whether the values are indices. The compact layout of a shape maps indices to themselves,
    /// also past its end.
    const INDICES: bool;

    /// `A o B`.
    fn compose(a: &Layout<D>, b: &Layout<Self>) -> Result<Layout<D>, LayoutError>;

    /// Appends `A o B` to a tree that is being written.
    fn compose_into(a: TreeRef<'_, Leaf<D>>, b: &Layout<Self>, out: &mut Gatherer<Leaf<D>>) -> Result<(), LayoutError>;

    /// Refuses a `B` with values outside the domain of `A`.
    fn within(a: &Layout<D>, b: &Layout<Self>) -> Result<(), LayoutError>;

    /// Writes `A o T` and the layout over the tiles.
    fn divide(a: TreeRef<'_, Leaf<D>>, tile: &Layout<Self>, pairs: &mut Pairs<D>) -> Result<(), LayoutError>;
}
