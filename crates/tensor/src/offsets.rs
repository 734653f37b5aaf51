//! Maps from coordinates to the offsets of elements.
//!
//! Law: an [`Offsets`] maps the coordinates of a shape to offsets, counted in elements. Its
//! [range](Offsets::range) is exactly that of its offsets. Memory safety depends on this, so the
//! trait is sealed: it is implemented for layouts of integer and of XOR strides, composed layouts,
//! their constant forms, and [`AnyOffsets`], which is one of the first three.
//!
//! Slices, tiles and compositions of these maps are maps of two kinds,
//! [`Layout`](tilewright_layout::Layout) and [`Composed`] ([`Offsets::Derived`]). A layout with XOR
//! strides is a composed one: its inner layout, whose strides are powers of two, gives every mode
//! bits of its own, and the outer map is linear over those bits.

mod any;
mod mapped;
mod plain;

use std::fmt;

use tilewright_layout::{Composed, Layout, Leaf, Profile, Slot, Tree};

use crate::error::TensorError;
use crate::rearrange::{Rearrange, Rearrangement, rearranged};
use crate::walk::{Walk, sealed};
pub use any::AnyOffsets;

/// The largest number of coordinates of a composed layout that are visited one by one if bounds do
/// not give its range.
pub const MAX_WALK: i64 = 1 << 24;

/// A map from the coordinates of a shape to the offsets of elements.
///
/// ```
/// use tilewright_layout::{Composed, Layout};
/// use tilewright_tensor::Offsets;
///
/// let mirrored: Layout = "(4,2):(-1,8)".parse().unwrap();
/// assert_eq!(mirrored.range().unwrap(), (-3, 8));
/// let swizzled: Composed = "S<2,0,2> o 0 o (4,4):(4,1)".parse().unwrap();
/// assert_eq!((Offsets::range(&swizzled).unwrap(), swizzled.injective().unwrap()), ((0, 15), true));
/// ```
pub trait Offsets: sealed::Sealed + Clone + PartialEq + fmt::Display + fmt::Debug + Send + Sync {
    /// The type of this map's slices, tiles and compositions.
    type Derived: Offsets<Derived = Self::Derived> + Rearrange<Start = i64>;

    /// The same map, in a form that can be sliced and tiled.
    ///
    /// Errors: the modes of an XOR layout take more bits than a number has.
    fn derived(&self) -> Result<Self::Derived, TensorError>;

    /// The same map as a composed layout, whose outer map is the identity if there is none.
    ///
    /// Errors: as [`Offsets::derived`].
    fn composed(&self) -> Result<Composed, TensorError> {
        Offsets::composed(&self.derived()?)
    }

    /// The extents.
    fn shape(&self) -> Tree<i64>;

    /// The nesting of the shape.
    fn profile(&self) -> Profile;

    /// The number of top-level modes.
    fn rank(&self) -> usize;

    /// The number of coordinates.
    fn size(&self) -> i64;

    /// The offset at an index, counted colexicographically.
    ///
    /// Errors: the index is outside the shape.
    fn offset(&self, index: i64) -> Result<i64, TensorError>;

    /// The offset at a coordinate, which may nest less deeply than the shape.
    ///
    /// Errors: the coordinate is outside the shape, or does not fit it.
    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        Offsets::offset_at(&self.derived()?, coord)
    }

    /// The smallest and the largest offset.
    ///
    /// Errors: an offset is not representable; the range was not found within the limits of
    /// [`Composed::cosize`], and the map has more than [`MAX_WALK`] coordinates.
    fn range(&self) -> Result<(i64, i64), TensorError>;

    /// Whether different coordinates have different offsets.
    ///
    /// Errors: it was not decided within the limits of
    /// [`Layout::is_injective`](tilewright_layout::Layout::is_injective) or
    /// [`Composed::is_injective`].
    fn injective(&self) -> Result<bool, TensorError> {
        Offsets::injective(&self.derived()?)
    }

    /// Two indices, the smaller one first, and their common offset; None if there is no such pair,
    /// or if none was found within the limits.
    fn collision(&self) -> Option<(i64, i64, i64)> {
        // Enough for most cases. A refusal need not name a pair.
        let listed = self.size().min(1 << 16);
        let mut pairs = (0..listed).map(|i| Some((self.offset(i).ok()?, i))).collect::<Option<Vec<(i64, i64)>>>()?;
        pairs.sort_unstable();
        let twice = pairs.iter().zip(pairs.iter().skip(1)).filter(|(a, b)| a.0 == b.0).min_by_key(|(_, b)| b.1);
        twice.map(|(a, b)| (a.1, b.1, a.0))
    }

    /// The offsets in the order of the indices.
    fn walk(&self) -> Walk<Self>;

    /// The leaves with their integer strides, if the map is the layout with these leaves.
    fn leaves(&self) -> Option<&[Leaf]> {
        None
    }

    /// As [`Offsets::leaves`], if each of them is a top-level mode.
    fn flat_leaves(&self) -> Option<&[Leaf]> {
        None
    }
}

/// The methods about the shape, which a layout has under the same names.
macro_rules! of_shape {
    ($Layout:ident) => {
        fn shape(&self) -> Tree<i64> {
            $Layout::shape(self)
        }

        fn rank(&self) -> usize {
            $Layout::rank(self)
        }

        #[inline]
        fn size(&self) -> i64 {
            $Layout::size(self)
        }
    };
}
use of_shape;

/// What the trait asks of a layout that is not constant, whose values become offsets by `$offset`.
macro_rules! of_values {
    ($Layout:ident, $offset:expr) => {
        of_shape!($Layout);

        fn profile(&self) -> Profile {
            $Layout::profile(self).clone()
        }

        #[inline]
        fn offset(&self, index: i64) -> Result<i64, TensorError> {
            within(index, $Layout::size(self), || $Layout::shape(self))?;
            Ok($offset(self.eval(&index)?))
        }

        fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
            inside(coord, &$Layout::shape(self))?;
            Ok($offset(self.eval_at(coord)?))
        }

        fn injective(&self) -> Result<bool, TensorError> {
            Ok(self.is_injective()?)
        }
    };
}
use of_values;

/// Refuses a map that reaches an element twice, or is not known not to.
pub(crate) fn each_once<L: Offsets>(layout: &L) -> Result<(), TensorError> {
    if matches!(layout.injective(), Ok(true)) {
        return Ok(());
    }
    Err(TensorError::Shared { pair: layout.collision(), layout: layout.to_string().into() })
}

/// An error if a rearrangement names a coordinate of a shape twice.
fn names_once(how: &Rearrangement, shape: &Tree<i64>) -> Result<(), TensorError> {
    if !how.may_repeat() {
        return Ok(());
    }
    let (indices, _) = rearranged(&Layout::compact(shape)?, how, false)?;
    each_once(&indices)
}

/// As [`after`](crate::rearrange::after), but an error if a coordinate is named twice.
pub(crate) fn after_once<L: Rearrange<Start = i64>>(map: L, steps: &[Rearrangement]) -> Result<(L, i64), TensorError> {
    steps.iter().try_fold((map, 0_i64), |(map, start), step| {
        names_once(step, &map.extents())?;
        let (map, by) = rearranged(&map, step, false)?;
        Ok((map, start.wrapping_add(by)))
    })
}

/// An error if an index is outside a shape.
#[inline]
fn within(index: i64, size: i64, shape: impl FnOnce() -> Tree<i64>) -> Result<(), TensorError> {
    if index as u64 >= size as u64 { Err(outside(Tree::leaf(index), shape())) } else { Ok(()) }
}

#[cold]
pub(crate) fn outside(coord: Tree<i64>, shape: Tree<i64>) -> TensorError {
    TensorError::Coordinate { coord: Box::new(coord.map(|index| Slot::At(*index))), shape: Box::new(shape) }
}

/// An error if a coordinate is outside a shape.
pub(crate) fn inside(coord: &Tree<i64>, shape: &Tree<i64>) -> Result<(), TensorError> {
    let fits = if coord.is_leaf() {
        let size = shape.leaves().iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
        match (coord.leaves(), size) {
            ([index], Some(size)) => (*index as u64) < size as u64,
            _ => false,
        }
    } else {
        !shape.is_leaf()
            && coord.rank() == shape.rank()
            && coord.modes().zip(shape.modes()).all(|(coord, mode)| inside(&coord, &mode).is_ok())
    };
    if fits { Ok(()) } else { Err(outside(coord.clone(), shape.clone())) }
}
