//! Composed layouts: a layout followed by an offset and an outer map, `A o offset o B`.
//!
//! Law: `R(c) = A(offset + B(c))`, for a layout `B`, an offset, and an outer map `A`: a swizzle, a
//! layout read on all integers, a linear map over bits, or a chain of those. The domain is that of
//! `B`, so an operation that only rearranges the domain is applied to `B`, and `A` and the offset
//! stay: for `op(B) = B o f`, `op(R) = R o f` ([`modes`]). Fixing a coordinate adds its
//! contribution to the offset. Operations that depend on the values also use `A`; the files of this
//! directory describe how.

mod arrangement;
mod beside;
mod equal;
mod index;
mod inverse;
pub(crate) mod largest;
mod launch;
pub(crate) mod linear;
mod modes;
mod outer;
mod parity;
mod place;
mod plain;
mod predicate;
mod recast;
mod sum;
mod swizzled;
mod text;
mod tiling;
mod vector;
mod xor;

pub use outer::{MapChain, OuterMap};
pub(crate) use parity::{Affine, Parities};
pub use place::InnerValue;

use crate::composed::largest::largest;
use crate::limits::MAX_BOXES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt;
use crate::value::layout::Layout;
use crate::value::number::Extent;
use crate::value::profile::Profile;
use crate::value::tree::Tree;

/// The map `c -> A(offset + B(c))` of an outer map `A`, an offset and an inner layout `B` (CuTe
/// `ComposedLayout`).
///
/// The values of `B`, and the offset, have type `D`, which defaults to integers.
///
/// ```
/// use tilewright_layout::Composed;
///
/// // Rows of 64 f16, swizzled so that a column of eight rows is in different banks.
/// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
/// assert_eq!(tile.size(), 512);
/// assert_eq!(tile.eval_at(&"(1,0)".parse().unwrap()).unwrap(), 72); // row 1
/// assert_eq!(tile.to_string(), "S<3,3,3> o 0 o (8,64):(64,1)");
/// ```
#[derive(PartialEq, Eq, Hash)]
pub struct Composed<D: InnerValue = i64> {
    outer: OuterMap<D::Extent>,
    offset: D,
    inner: Layout<D>,
}

impl<D: InnerValue> Clone for Composed<D> {
    fn clone(&self) -> Composed<D> {
        Composed { outer: self.outer.clone(), offset: self.offset.clone(), inner: self.inner.clone() }
    }
}

impl<D: InnerValue> Composed<D> {
    /// The map `outer o offset o inner`.
    ///
    /// Errors: an offset `offset + inner(c)` is not representable, or is not an argument of the
    /// outer map.
    pub fn new(outer: impl Into<OuterMap<D::Extent>>, offset: D, inner: Layout<D>) -> Result<Composed<D>, LayoutError> {
        let outer = outer.into();
        D::check(&outer, &offset, &inner)?;
        Ok(Composed { outer, offset, inner })
    }

    /// The same outer map and offset with another inner layout.
    fn with(&self, inner: Layout<D>) -> Result<Composed<D>, LayoutError> {
        Composed::new(self.outer.clone(), self.offset.clone(), inner)
    }

    /// The same outer map with another inner layout; `by` is added to the offset.
    fn shift(&self, inner: Layout<D>, by: &D) -> Result<Composed<D>, LayoutError> {
        let offset = self.offset.plus(by).fits_as::<D::Extent>("composed layout")?;
        Composed::new(self.outer.clone(), offset, inner)
    }

    /// The outer map `A`, which is applied last.
    pub fn outer(&self) -> &OuterMap<D::Extent> {
        &self.outer
    }

    /// The offset, which is added to the values of the inner layout.
    pub fn offset(&self) -> &D {
        &self.offset
    }

    /// The inner layout `B`, which is applied first and has the domain.
    pub fn inner(&self) -> &Layout<D> {
        &self.inner
    }

    /// The extents, which are those of the inner layout.
    pub fn shape(&self) -> Tree<D::Extent> {
        self.inner.shape()
    }

    /// The nesting of the domain.
    pub fn profile(&self) -> &Profile {
        self.inner.profile()
    }

    /// The number of top-level modes.
    pub fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// The nesting depth.
    pub fn depth(&self) -> usize {
        self.inner.depth()
    }

    /// The number of coordinates.
    pub fn size(&self) -> D::Extent {
        self.inner.size()
    }

    /// The value at an index. Errors: it is not representable.
    #[inline]
    pub fn eval(&self, index: &D::Extent) -> Result<D::Extent, LayoutError> {
        self.through(self.inner.eval(index)?)
    }

    /// The value at a coordinate. Errors: the coordinate does not fit the shape; the value is not
    /// representable.
    pub fn eval_at(&self, coord: &Tree<D::Extent>) -> Result<D::Extent, LayoutError> {
        self.through(self.inner.eval_at(coord)?)
    }

    #[inline]
    fn through(&self, value: D) -> Result<D::Extent, LayoutError> {
        self.offset.plus(&value).fits_as::<D::Extent>("eval")?.seen_through(&self.outer)
    }
}

impl<N: Extent> Composed<N> {
    /// The composed layout as an outer map, a function on all integers: `x -> A(offset + B(x))`.
    ///
    /// Errors: it is a chain of more than [`MAX_CHAIN`](crate::limits::MAX_CHAIN) maps.
    pub fn map(&self) -> Result<OuterMap<N>, LayoutError> {
        self.outer.after(&self.offset, &OuterMap::Layout(self.inner.clone()))
    }

    /// A map after this one: `c -> outer(R(c))`, over the same domain. This is the composition of a
    /// layout or a swizzle with this composed layout; for a composed layout as the outer map, use
    /// its [`Composed::map`]. It always exists.
    ///
    /// Errors: it is a chain of more than [`MAX_CHAIN`](crate::limits::MAX_CHAIN) maps.
    ///
    /// ```
    /// use tilewright_layout::{Composed, Layout, Swizzle};
    ///
    /// let tile: Composed = "S<3,3,3> o 64 o (8,64):(64,1)".parse().unwrap();
    /// let twice: Layout = "1024:2".parse().unwrap();
    /// assert_eq!(tile.then(twice).unwrap().to_string(), "1024:2 o 0 o S<3,3,3> o 64 o (8,64):(64,1)");
    /// let swizzle = Swizzle::new(3, 3, 3).unwrap();
    /// assert_eq!(tile.then(swizzle).unwrap().to_string(), "S<0,0,0> o 64 o (8,64):(64,1)");
    /// ```
    pub fn then(&self, outer: impl Into<OuterMap<N>>) -> Result<Composed<N>, LayoutError> {
        let outer = outer.into().after(&N::zero(), &self.outer)?;
        Composed::new(outer, self.offset.clone(), self.inner.clone())
    }
}

impl Composed {
    /// As [`Composed::new`] where every offset is known to be representable.
    pub(crate) fn from_valid(outer: impl Into<OuterMap>, offset: i64, inner: Layout) -> Composed {
        Composed { outer: outer.into(), offset, inner }
    }

    /// The largest value plus one: the size of the memory from offset 0.
    ///
    /// Errors: the value is not representable; the search examined [`MAX_BOXES`] parts of the
    /// domain without finding the largest ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let cosize = |text: &str| text.parse::<Composed>().unwrap().cosize().unwrap();
    /// assert_eq!(cosize("S<3,4,6> o 0 o (3,4):(4,1)"), 12); // bits read are 0
    /// assert_eq!(cosize("S<1,0,3> o 0 o 9:1"), 10); // 8 becomes 9
    /// ```
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        const OP: &str = "cosize";
        let largest = largest(&self.outer, self.offset, self.inner.leaves());
        interrupt::check(OP)?;
        let largest = largest.ok_or(LayoutError::Undecided { op: OP, limit: MAX_BOXES })?;
        i64::try_from(largest.saturating_add(1)).map_err(|_| LayoutError::overflow(OP))
    }

    /// The shape of the codomain, which is [`Composed::cosize`], because the values are integers
    /// (CuTe `coshape`).
    ///
    /// Errors: as [`Composed::cosize`].
    pub fn coshape(&self) -> Result<Tree<i64>, LayoutError> {
        Ok(Tree::leaf(self.cosize()?))
    }
}
