//! Layouts seen through another map: `A o offset o B`.
//!
//! Law: `R(c) = A(offset + B(c))`, for a layout `B`, an offset, and for `A` a swizzle, a layout read on all integers, a linear map over bits, or a chain of
//! those. The domain is that of `B`, so whatever rearranges the domain is done to `B`, and `A` and the offset stay: for `op(B) = B o f`, `op(R) = R o f`
//! ([`modes`]). Fixing a coordinate adds what it contributes to the offset. Where the values matter, the operation looks through `A`: the files of
//! this directory say how.

mod inverse;
mod modes;
mod outer;
mod parity;
mod plain;
mod recast;
mod tiling;
mod vector;

use core::fmt;
use core::str::FromStr;

pub use outer::{MAX_CHAIN, MapChain, OuterMap};
pub(crate) use parity::{Affine, Parities};
pub use plain::MAX_INDICES;

use crate::error::LayoutError;
use crate::largest::{MAX_BOXES, largest};
use crate::layout::Layout;
use crate::number::{Extent, Stride};
use crate::profile::Profile;
use crate::tree::Tree;

/// What an outer map of a [`Composed`] takes: the values of its inner layout.
pub trait Place: Stride {
    /// The value of an outer map here.
    ///
    /// Errors: as [`OuterMap::eval`].
    fn seen_through(&self, outer: &OuterMap<Self::Extent>) -> Result<Self::Extent, LayoutError>;

    /// Refuses an inner layout that leaves the range of numbers, or the numbers at which the outer map has values.
    fn check(outer: &OuterMap<Self::Extent>, offset: &Self, inner: &Layout<Self>) -> Result<(), LayoutError>;

    /// The map `x -> outer(offset + inner(x))` of an index over another domain `b`; none where places are not indices.
    fn over(composed: &Composed<Self>, b: &Layout<Self::Extent>) -> Option<Result<Composed<Self>, LayoutError>>;
}

impl<N: Extent> Place for N {
    #[inline]
    fn seen_through(&self, outer: &OuterMap<N>) -> Result<N, LayoutError> {
        outer.eval(self)
    }

    fn check(outer: &OuterMap<N>, offset: &N, inner: &Layout<N>) -> Result<(), LayoutError> {
        let known = |number: &N| number.known().is_some();
        let Ok((least, greatest)) = inner.range() else {
            // Where the strides are known, so is that their sum does not fit.
            let open = inner.leaves().iter().any(|leaf| !known(&leaf.extent) || !known(&leaf.stride));
            return if open { Ok(()) } else { Err(LayoutError::overflow("composed layout")) };
        };
        let first = match outer {
            OuterMap::Chain(chain) => &chain.inner,
            other => other,
        };
        for reach in [least, greatest] {
            let end = offset.plus(&reach).ok_or_else(|| LayoutError::overflow("composed layout"))?;
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

/// The map `c -> A(offset + B(c))` of an outer map `A`, an offset and an inner layout `B` (CuTe `ComposedLayout`).
///
/// The values of `B`, and the offset, are of kind `D`: integers, unless another kind is named.
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
#[derive(PartialEq, Eq, Hash)]
pub struct Composed<D: Place = i64> {
    outer: OuterMap<D::Extent>,
    offset: D,
    inner: Layout<D>,
}

impl<D: Place> Clone for Composed<D> {
    fn clone(&self) -> Composed<D> {
        Composed { outer: self.outer.clone(), offset: self.offset.clone(), inner: self.inner.clone() }
    }
}

impl<D: Place> Composed<D> {
    /// The map `outer o offset o inner`.
    ///
    /// Errors: an offset `offset + inner(c)` is not representable, or is no number that the outer map takes.
    pub fn new(outer: impl Into<OuterMap<D::Extent>>, offset: D, inner: Layout<D>) -> Result<Composed<D>, LayoutError> {
        let outer = outer.into();
        D::check(&outer, &offset, &inner)?;
        Ok(Composed { outer, offset, inner })
    }

    /// The same outer map and offset over another inner layout.
    fn with(&self, inner: Layout<D>) -> Result<Composed<D>, LayoutError> {
        Composed::new(self.outer.clone(), self.offset.clone(), inner)
    }

    /// The same outer map and inner layout, `by` further on.
    fn moved(&self, inner: Layout<D>, by: &D) -> Result<Composed<D>, LayoutError> {
        let offset = self.offset.plus(by).ok_or_else(|| LayoutError::overflow("composed layout"))?;
        Composed::new(self.outer.clone(), offset, inner)
    }

    /// `A`, which is applied last.
    pub fn outer(&self) -> &OuterMap<D::Extent> {
        &self.outer
    }

    /// What is added between the two.
    pub fn offset(&self) -> &D {
        &self.offset
    }

    /// `B`, which is applied first and gives the domain.
    pub fn inner(&self) -> &Layout<D> {
        &self.inner
    }

    /// The extents, those of the inner layout.
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

    /// The value at a coordinate. Errors: the coordinate does not fit the shape; the value is not representable.
    pub fn eval_at(&self, coord: &Tree<D::Extent>) -> Result<D::Extent, LayoutError> {
        self.through(self.inner.eval_at(coord)?)
    }

    #[inline]
    fn through(&self, value: D) -> Result<D::Extent, LayoutError> {
        self.offset.plus(&value).ok_or_else(|| LayoutError::overflow("eval"))?.seen_through(&self.outer)
    }
}

impl<N: Extent> Composed<N> {
    /// The map of an index, read on all integers as the inner layout is: `x -> A(offset + B(x))`.
    ///
    /// Errors: it is a chain of more than [`MAX_CHAIN`] maps.
    pub fn map(&self) -> Result<OuterMap<N>, LayoutError> {
        self.outer.after(&self.offset, &OuterMap::Layout(self.inner.clone()))
    }

    /// A map after this one: `c -> outer(R(c))`, over the same domain; so this is the composition of a layout, a swizzle or, by way of
    /// [`Composed::map`], a composed layout with this one. It always exists.
    ///
    /// Errors: it is a chain of more than [`MAX_CHAIN`] maps.
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
        i64::try_from(largest.saturating_add(1)).map_err(|_| LayoutError::overflow(OP))
    }

    /// The shape of a box of values that holds all of them, from offset 0 on: [`Composed::cosize`], as the values are integers (CuTe `coshape`).
    ///
    /// Errors: as [`Composed::cosize`].
    pub fn coshape(&self) -> Result<Tree<i64>, LayoutError> {
        Ok(Tree::leaf(self.cosize()?))
    }
}

impl<D: Place> fmt::Display for Composed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.outer, self.offset, self.inner)
    }
}

impl<D: Place> fmt::Debug for Composed<D> {
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

impl FromStr for OuterMap {
    type Err = LayoutError;

    /// Reads a swizzle, a bit matrix or a layout, or a chain `outer o offset o map`, with `o` or `∘`.
    fn from_str(text: &str) -> Result<OuterMap, LayoutError> {
        let parts = Parts::of(text)?;
        let Some((offset, last)) = parts.last else { return parts.outer.ok_or(MISSING) };
        let last = Parts::map(last).map_err(|error| placed(error, parts.start))?;
        Parts::extended(parts.outer, offset, last)
    }
}

const MISSING: LayoutError =
    LayoutError::Syntax { at: 0, expected: "'o': a composed layout is outer o offset o layout" };

/// A text `A o offset o .. o B`, read up to the last offset.
struct Parts<'a> {
    outer: Option<OuterMap>,
    last: Option<(i64, &'a str)>,
    /// Where the last part begins.
    start: usize,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Parts<'a>, LayoutError> {
        let mut parts = Parts { outer: None, last: None, start: 0 };
        let (mut rest, mut maps) = (text, 1);
        loop {
            let Some((map, after)) = rest.split_once(['o', '∘']) else {
                // The last part, which is a map of its own when it is the only one.
                match &mut parts.last {
                    Some((_, last)) => *last = rest,
                    None => parts.outer = Some(Parts::map(rest)?),
                }
                return Ok(parts);
            };
            let map = Parts::map(map).map_err(|error| placed(error, parts.start))?;
            parts.outer = Some(match parts.last.take() {
                Some((offset, _)) => Parts::extended(parts.outer, offset, map)?,
                None => map,
            });
            let begin = text.len() - after.len();
            let Some((offset, after)) = after.split_once(['o', '∘']) else {
                return Err(placed(MISSING, text.len()));
            };
            let tree: Tree<i64> = offset.parse().map_err(|error| placed(error, begin))?;
            let ([offset], true) = (tree.leaves(), tree.is_leaf()) else {
                return Err(LayoutError::Syntax { at: begin, expected: "an offset, one integer" });
            };
            maps += 1;
            if maps > MAX_CHAIN + 1 {
                return Err(LayoutError::TooLarge { limit: crate::Limit::Chain, value: maps });
            }
            parts.start = text.len() - after.len();
            parts.last = Some((*offset, after));
            rest = after;
        }
    }

    fn map(text: &str) -> Result<OuterMap, LayoutError> {
        Ok(match text.trim_start().as_bytes().first() {
            Some(b'S') => OuterMap::Swizzle(text.parse()?),
            Some(b'F') => OuterMap::Bits(text.parse()?),
            _ => OuterMap::Layout(text.parse()?),
        })
    }

    fn extended(outer: Option<OuterMap>, offset: i64, map: OuterMap) -> Result<OuterMap, LayoutError> {
        Ok(OuterMap::chain(outer.ok_or(MISSING)?, offset, map))
    }
}

impl FromStr for Composed {
    type Err = LayoutError;

    /// Reads `A o offset o B`, with `o` or `∘`, `A` a swizzle, a bit matrix, a layout, or a chain of those with offsets between.
    fn from_str(text: &str) -> Result<Composed, LayoutError> {
        let parts = Parts::of(text)?;
        let (Some(outer), Some((offset, inner))) = (parts.outer, parts.last) else {
            return Err(placed(MISSING, text.len()));
        };
        Composed::new(outer, offset, inner.parse().map_err(|error| placed(error, parts.start))?)
    }
}
