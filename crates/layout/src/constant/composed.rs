//! Swizzled layouts that are known at compile time.
//!
//! Law: a [`StaticComposed`] is the [`Composed`] `S o offset o B` of the same swizzle, offset and
//! layout. It has the same value at every index and every coordinate, and returns None exactly if
//! that returns an error. The swizzle costs an AND, a shift and an XOR with constants.

use core::fmt;

use crate::bits::swizzle::Swizzle;
use crate::composed::Composed;
use crate::constant::layout::StaticLayout;
use crate::ground::words::debug_as_text;
use crate::value::layout::Layout;
use crate::value::tree::Tree;

/// A swizzled layout known at compile time: the value of `layout!` for `S<3,4,3> o 0 o
/// (8,64):(64,1)`.
///
/// ```
/// use tilewright_layout::{Leaf, StaticComposed, StaticLayout, Swizzle};
///
/// const ROWS: StaticLayout = StaticLayout::new(
///     &[Leaf { extent: 8, stride: 64 }, Leaf { extent: 64, stride: 1 }],
///     &[0, 1],
///     &[3, 0, 0],
/// )
/// .unwrap();
/// const TILE: StaticComposed = StaticComposed::new(Swizzle::checked(3, 3, 3).unwrap(), 0, ROWS).unwrap();
/// const SECOND: i64 = TILE.eval_at([1, 0]).unwrap();
///
/// assert_eq!(SECOND, 72); // row 1 starts in the second group of eight
/// assert_eq!(TILE.to_string(), "S<3,3,3> o 0 o (8,64):(64,1)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StaticComposed {
    swizzle: Swizzle,
    offset: i64,
    inner: StaticLayout,
}

impl StaticComposed {
    /// The map `swizzle o offset o inner`; None if an offset `offset + inner(c)` is not
    /// representable.
    pub const fn new(swizzle: Swizzle, offset: i64, inner: StaticLayout) -> Option<StaticComposed> {
        let (least, greatest) = inner.range();
        if offset.checked_add(least).is_none() || offset.checked_add(greatest).is_none() {
            return None;
        }
        Some(StaticComposed { swizzle, offset, inner })
    }

    /// The value at an index, as [`Composed::eval`]; None if it is not representable.
    #[inline(always)]
    pub const fn eval(&self, index: i64) -> Option<i64> {
        self.through(self.inner.eval(index))
    }

    /// The value at a coordinate of one index for each top-level mode, as
    /// [`StaticLayout::eval_at`].
    #[inline(always)]
    pub const fn eval_at<const RANK: usize>(&self, coord: [i64; RANK]) -> Option<i64> {
        self.through(self.inner.eval_at(coord))
    }

    #[inline(always)]
    const fn through(&self, value: Option<i64>) -> Option<i64> {
        let Some(value) = value else { return None };
        let Some(value) = self.offset.checked_add(value) else { return None };
        Some(self.swizzle.apply(value))
    }

    /// The outer map.
    #[inline]
    pub const fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// The offset, which is added to the values of the inner layout.
    #[inline]
    pub const fn offset(&self) -> i64 {
        self.offset
    }

    /// The inner layout, which has the domain.
    #[inline]
    pub const fn inner(&self) -> StaticLayout {
        self.inner
    }

    /// The number of coordinates.
    #[inline]
    pub const fn size(&self) -> i64 {
        self.inner.size()
    }

    /// The number of top-level modes.
    #[inline]
    pub const fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// The extents, which are those of the inner layout.
    pub fn shape(&self) -> Tree<i64> {
        self.inner.shape()
    }

    /// The same map as a run-time value, for operations of the algebra. Up to eight leaves need no
    /// heap.
    pub fn to_composed(&self) -> Composed {
        Composed::from(self)
    }
}

impl From<&StaticComposed> for Composed {
    fn from(composed: &StaticComposed) -> Composed {
        Composed::from_valid(composed.swizzle, composed.offset, Layout::from(&composed.inner))
    }
}

impl From<StaticComposed> for Composed {
    fn from(composed: StaticComposed) -> Composed {
        Composed::from(&composed)
    }
}

impl fmt::Display for StaticComposed {
    /// Prints as the [`Composed`] does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.swizzle, self.offset, self.inner)
    }
}

debug_as_text!(StaticComposed);
