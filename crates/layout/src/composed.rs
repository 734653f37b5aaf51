//! Layouts seen through another map: `A o offset o B`.
//!
//! Law: `R(c) = A(offset + B(c))`, for a layout `B`, an offset, and for `A` a swizzle or a layout read on all integers. The domain is that of `B`, so
//! whatever rearranges the domain is done to `B`, and `A` and the offset stay: for `op(B) = B o f`, `op(R) = R o f`. Fixing a coordinate adds
//! what it contributes to the offset.
//!
//! What looks at values is not of this kind. The products ask of `B` that copies do not overlap, which `A` preserves where it is
//! injective; [`Composed::cosize`] looks through `A`.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use crate::coord::Coord;
use crate::error::LayoutError;
use crate::largest::{MAX_BOXES, largest};
use crate::layout::Layout;
use crate::profile::Profile;
use crate::swizzle::Swizzle;
use crate::tiler::Tiler;
use crate::tree::Tree;

/// What is applied last in a [`Composed`]: a layout or a swizzle.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum OuterMap {
    /// A layout, read on all integers.
    Layout(Layout),
    /// A swizzle.
    Swizzle(Swizzle),
}

impl OuterMap {
    /// The value at an offset.
    ///
    /// Errors: it is not representable; the empty layout has a value only at 0.
    #[inline]
    pub fn eval(&self, offset: i64) -> Result<i64, LayoutError> {
        match self {
            OuterMap::Layout(layout) => layout.eval(&offset),
            OuterMap::Swizzle(swizzle) => Ok(swizzle.apply(offset)),
        }
    }
}

impl From<Layout> for OuterMap {
    fn from(layout: Layout) -> OuterMap {
        OuterMap::Layout(layout)
    }
}

impl From<Swizzle> for OuterMap {
    fn from(swizzle: Swizzle) -> OuterMap {
        OuterMap::Swizzle(swizzle)
    }
}

/// The map `c -> A(offset + B(c))` of an outer map `A`, an offset and an inner layout `B` (CuTe `ComposedLayout`).
///
/// ```
/// use tilewright_layout::Composed;
///
/// // Rows of 64 halves, swizzled so that equal columns of eight rows lie in different banks.
/// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
/// assert_eq!(tile.size(), 512);
/// assert_eq!(tile.eval_at(&"(1,0)".parse().unwrap()).unwrap(), 72); // row 1 begins in the second group of eight
/// assert_eq!(tile.to_string(), "S<3,3,3> o 0 o (8,64):(64,1)");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Composed {
    outer: OuterMap,
    offset: i64,
    inner: Layout,
}

impl Composed {
    /// The map `outer o offset o inner`.
    ///
    /// Errors: an offset `offset + inner(c)` is not representable.
    pub fn new(outer: impl Into<OuterMap>, offset: i64, inner: Layout) -> Result<Composed, LayoutError> {
        let (least, greatest) = inner.range()?;
        for reach in [least, greatest] {
            offset.checked_add(reach).ok_or_else(|| LayoutError::overflow("composed layout"))?;
        }
        Ok(Composed { outer: outer.into(), offset, inner })
    }

    /// As [`Composed::new`] where every offset is known to be representable.
    pub(crate) fn from_valid(outer: impl Into<OuterMap>, offset: i64, inner: Layout) -> Composed {
        Composed { outer: outer.into(), offset, inner }
    }

    /// The same outer map and offset over another inner layout.
    fn with(&self, inner: Layout) -> Result<Composed, LayoutError> {
        Composed::new(self.outer.clone(), self.offset, inner)
    }

    /// The same outer map and inner layout, `by` further on.
    fn moved(&self, inner: Layout, by: i64) -> Result<Composed, LayoutError> {
        let offset = self.offset.checked_add(by).ok_or_else(|| LayoutError::overflow("composed layout"))?;
        Composed::new(self.outer.clone(), offset, inner)
    }

    /// `A`, which is applied last.
    pub fn outer(&self) -> &OuterMap {
        &self.outer
    }

    /// What is added between the two.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// `B`, which is applied first and gives the domain.
    pub fn inner(&self) -> &Layout {
        &self.inner
    }

    /// The extents, those of the inner layout.
    pub fn shape(&self) -> Tree<i64> {
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
    pub fn size(&self) -> i64 {
        self.inner.size()
    }

    /// The value at an index. Errors: it is not representable.
    #[inline]
    pub fn eval(&self, index: &i64) -> Result<i64, LayoutError> {
        self.through(self.inner.eval(index)?)
    }

    /// The value at a coordinate. Errors: the coordinate does not fit the shape; the value is not representable.
    pub fn eval_at(&self, coord: &Tree<i64>) -> Result<i64, LayoutError> {
        self.through(self.inner.eval_at(coord)?)
    }

    #[inline]
    fn through(&self, value: i64) -> Result<i64, LayoutError> {
        self.outer.eval(self.offset.checked_add(value).ok_or_else(|| LayoutError::overflow("eval"))?)
    }

    /// The largest value plus one: how much memory, counted from offset 0, is needed.
    ///
    /// Errors: the value is not representable; the largest was not found among the first [`MAX_BOXES`] parts of the domain that
    /// were looked at ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let cosize = |text: &str| text.parse::<Composed>().unwrap().cosize().unwrap();
    /// assert_eq!(cosize("S<3,4,6> o 0 o (3,4):(4,1)"), 12); // no bit that is read is ever set
    /// assert_eq!(cosize("S<1,0,3> o 0 o 9:1"), 10); // 8 becomes 9
    /// ```
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        const OP: &str = "cosize";
        let largest = largest(&self.outer, self.offset, self.inner.leaves())
            .ok_or(LayoutError::Undecided { op: OP, limit: MAX_BOXES })?;
        i64::try_from(largest + 1).map_err(|_| LayoutError::overflow(OP))
    }

    /// The map over `B` after `b`: `c -> A(offset + B(b(c)))`. Errors: as [`Layout::compose`].
    pub fn compose(&self, b: &Layout) -> Result<Composed, LayoutError> {
        self.with(self.inner.compose(b)?)
    }

    /// [`Layout::compose_tiler`] of the inner layout.
    pub fn compose_tiler(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.compose_tiler(tiler)?)
    }

    /// The sub-map at which `coord` is fixed; what it contributes is added to the offset. Errors: as
    /// [`Layout::slice_and_offset`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    /// let row = tile.slice(&"(2,_)".parse().unwrap()).unwrap();
    /// assert_eq!(row.to_string(), "S<3,3,3> o 128 o (64):(1)");
    /// ```
    pub fn slice(&self, coord: &Coord) -> Result<Composed, LayoutError> {
        let (inner, offset) = self.inner.slice_and_offset(coord)?;
        self.moved(inner, offset)
    }

    /// The map seen from `coord` on. Errors: as [`Layout::domain_offset`].
    pub fn domain_offset(&self, coord: &Tree<i64>) -> Result<Composed, LayoutError> {
        let (inner, offset) = self.inner.domain_offset(coord)?;
        self.moved(inner, offset)
    }

    /// [`Layout::coalesce`] of the inner layout.
    pub fn coalesce(&self) -> Result<Composed, LayoutError> {
        self.with(self.inner.coalesce()?)
    }

    /// [`Layout::coalesce_by`] of the inner layout.
    pub fn coalesce_by(&self, profile: &Profile) -> Result<Composed, LayoutError> {
        self.with(self.inner.coalesce_by(profile)?)
    }

    /// [`Layout::flatten`] of the inner layout.
    pub fn flatten(&self) -> Result<Composed, LayoutError> {
        self.with(self.inner.flatten()?)
    }

    /// [`Layout::group`] of the inner layout.
    pub fn group(&self, range: Range<usize>) -> Result<Composed, LayoutError> {
        self.with(self.inner.group(range)?)
    }

    /// [`Layout::take`] of the inner layout: the other modes at 0.
    pub fn take(&self, range: Range<usize>) -> Result<Composed, LayoutError> {
        self.with(self.inner.take(range)?)
    }

    /// [`Layout::select`] of the inner layout: the other modes at 0.
    pub fn select(&self, modes: &[usize]) -> Result<Composed, LayoutError> {
        self.with(self.inner.select(modes)?)
    }

    /// [`Layout::append`] to the inner layout.
    pub fn append(&self, mode: &Layout) -> Result<Composed, LayoutError> {
        self.with(self.inner.append(mode)?)
    }

    /// Mode number `mode`, the others at 0; a single mode is its own mode 0.
    pub fn mode(&self, mode: usize) -> Option<Composed> {
        // A part of the range of the inner layout, so that it is representable too.
        Some(Composed { outer: self.outer.clone(), offset: self.offset, inner: self.inner.mode(mode)? })
    }

    /// [`Layout::logical_divide`] of the inner layout.
    pub fn logical_divide(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.logical_divide(tiler)?)
    }

    /// [`Layout::zipped_divide`] of the inner layout.
    pub fn zipped_divide(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.zipped_divide(tiler)?)
    }

    /// [`Layout::tiled_divide`] of the inner layout.
    pub fn tiled_divide(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.tiled_divide(tiler)?)
    }

    /// [`Layout::flat_divide`] of the inner layout.
    pub fn flat_divide(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.flat_divide(tiler)?)
    }

    /// [`Layout::logical_product`] of the inner layout: copies of it, all seen through the same outer map.
    pub fn logical_product(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.logical_product(tiler)?)
    }

    /// [`Layout::zipped_product`] of the inner layout.
    pub fn zipped_product(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.zipped_product(tiler)?)
    }

    /// [`Layout::tiled_product`] of the inner layout.
    pub fn tiled_product(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.tiled_product(tiler)?)
    }

    /// [`Layout::flat_product`] of the inner layout.
    pub fn flat_product(&self, tiler: &Tiler) -> Result<Composed, LayoutError> {
        self.with(self.inner.flat_product(tiler)?)
    }

    /// [`Layout::blocked_product`] of the inner layout.
    pub fn blocked_product(&self, tiler: &Layout) -> Result<Composed, LayoutError> {
        self.with(self.inner.blocked_product(tiler)?)
    }

    /// [`Layout::raked_product`] of the inner layout.
    pub fn raked_product(&self, tiler: &Layout) -> Result<Composed, LayoutError> {
        self.with(self.inner.raked_product(tiler)?)
    }

    /// [`Layout::tile_to_shape`] of the inner layout.
    pub fn tile_to_shape(&self, target: &Tree<i64>, order: Option<&Tree<i64>>) -> Result<Composed, LayoutError> {
        self.with(self.inner.tile_to_shape(target, order)?)
    }
}

impl fmt::Display for OuterMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OuterMap::Layout(layout) => layout.fmt(f),
            OuterMap::Swizzle(swizzle) => swizzle.fmt(f),
        }
    }
}

impl fmt::Debug for OuterMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OuterMap({self})")
    }
}

impl fmt::Display for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.outer, self.offset, self.inner)
    }
}

impl fmt::Debug for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Composed({self})")
    }
}

/// An error in a part of a text, placed in the whole.
fn placed(error: LayoutError, start: usize) -> LayoutError {
    match error {
        LayoutError::Syntax { at, expected } => LayoutError::Syntax { at: at + start, expected },
        other => other,
    }
}

impl FromStr for Composed {
    type Err = LayoutError;

    /// Reads `A o offset o B`, with `o` or `∘`, `A` a swizzle or a layout.
    fn from_str(text: &str) -> Result<Composed, LayoutError> {
        let expected = "'o': a composed layout is outer o offset o layout";
        let missing = || LayoutError::Syntax { at: text.len(), expected };
        let (outer, rest) = text.split_once(['o', '∘']).ok_or_else(missing)?;
        let (middle, inner) = rest.split_once(['o', '∘']).ok_or_else(missing)?;
        let (after_outer, after_middle) = (text.len() - rest.len(), text.len() - inner.len());
        let map = if outer.trim_start().starts_with('S') {
            OuterMap::Swizzle(outer.parse()?)
        } else {
            OuterMap::Layout(outer.parse()?)
        };
        let middle: Tree<i64> = middle.parse().map_err(|error| placed(error, after_outer))?;
        let ([offset], true) = (middle.leaves(), middle.is_leaf()) else {
            return Err(LayoutError::Syntax { at: after_outer, expected: "an offset, one integer" });
        };
        Composed::new(map, *offset, inner.parse().map_err(|error| placed(error, after_middle))?)
    }
}
