//! Layouts of indices as inner layouts of compositions, and as tiles.
//!
//! Law: a layout whose values are indices of `A` follows the rules of compositions and divisions
//! with integers.

use crate::algebra::compose::{compose_integers, compose_parts, stays_within};
use crate::algebra::inner::InnerKind;
use crate::refusal::error::LayoutError;
use crate::tile::divide::divide_by_indices;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::pairs::Pairs;
use crate::value::tree::{Gatherer, TreeRef};

impl<N: Extent, D: Stride<Extent = N>> InnerKind<D> for N {
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
