//! What says where the elements of a tensor lie.
//!
//! Law: a map from the coordinates of a shape to offsets, counted in elements. Its [range](Offsets::range) is that of its offsets, exactly; memory
//! is safe to access because of it, so the trait is implemented here alone: for layouts of integer and of XOR strides, composed layouts, and their
//! constant forms.
//!
//! Slices, tiles and compositions of these maps are maps of two kinds, [`Layout`] and [`Composed`] ([`Offsets::Derived`]). A layout with XOR strides is a
//! composed one: give every mode its own bits of a number, by a layout whose strides are powers of two; XOR strides are linear over those bits.

use std::fmt;

use tilewright_layout::{
    BitMatrix, Composed, Layout, LayoutError, Leaf, Profile, Slot, StaticComposed, StaticLayout, Stride, Tree, Xor,
};

use crate::error::TensorError;
use crate::rearrange::Rearrange;
use crate::walk::Walk;

mod sealed {
    pub trait Sealed {
        /// Whether the offsets are those of a layout seen through a map, or may be.
        const MAPPED: bool;
    }
}

/// The most coordinates of a composed layout that are looked at one by one, where its range is not found by bounds.
pub const MAX_WALK: i64 = 1 << 24;

/// What says where the elements of a tensor lie: a map from the coordinates of a shape to offsets.
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
    /// The kind of map that slices, tiles and compositions of this one are.
    type Derived: Offsets<Derived = Self::Derived> + Rearrange<Start = i64>;

    /// The same map, as one that can be sliced and tiled.
    ///
    /// Errors: the modes of an XOR layout take more bits than a number has.
    fn derived(&self) -> Result<Self::Derived, TensorError>;

    /// The same map as a composed layout, whose outer map is the identity where there is none.
    ///
    /// Errors: as [`Offsets::derived`].
    fn composed(&self) -> Result<Composed, TensorError>;

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
    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError>;

    /// The least and the greatest offset.
    ///
    /// Errors: an offset is not representable; the range was not found within the limits of [`Composed::cosize`], of a map with more than
    /// [`MAX_WALK`] coordinates.
    fn range(&self) -> Result<(i64, i64), TensorError>;

    /// Whether different coordinates have different offsets.
    ///
    /// Errors: it was not decided within the limits of [`Layout::is_injective`] or [`Composed::is_injective`].
    fn injective(&self) -> Result<bool, TensorError>;

    /// Two indices, the first of them less, and their common offset; none where there is no such pair, or none was found within the limits.
    fn collision(&self) -> Option<(i64, i64, i64)>;

    /// The offsets in the order of the indices.
    fn walk(&self) -> Walk<Self>;

    /// The integer strides, where the map is the layout that they make.
    fn leaves(&self) -> Option<&[Leaf]>;

    /// As [`Offsets::leaves`], where each of them is a top-level mode.
    fn flat_leaves(&self) -> Option<&[Leaf]>;
}

/// Whether every top-level mode is a leaf.
#[inline]
fn is_flat(profile: &Profile) -> bool {
    // One node for the tuple and one for each leaf leave none for tuples within.
    profile.is_leaf() || profile.nodes().len() == profile.leaves() + 1
}

/// Refuses a map that reaches an element twice, or is not known not to.
pub(crate) fn each_once<L: Offsets>(layout: &L) -> Result<(), TensorError> {
    if matches!(layout.injective(), Ok(true)) {
        return Ok(());
    }
    Err(TensorError::Shared { pair: layout.collision(), layout: layout.to_string().into() })
}

/// Refuses an index outside a shape.
#[inline]
fn within(index: i64, size: i64, shape: impl FnOnce() -> Tree<i64>) -> Result<(), TensorError> {
    if index as u64 >= size as u64 { Err(outside(Tree::leaf(index), shape())) } else { Ok(()) }
}

#[cold]
pub(crate) fn outside(coord: Tree<i64>, shape: Tree<i64>) -> TensorError {
    TensorError::Coordinate { coord: Box::new(coord.map(|index| Slot::At(*index))), shape: Box::new(shape) }
}

/// Refuses a coordinate outside a shape.
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

impl sealed::Sealed for Layout {
    const MAPPED: bool = false;
}

impl Offsets for Layout {
    type Derived = Layout;

    fn derived(&self) -> Result<Layout, TensorError> {
        Ok(self.clone())
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        Ok(Composed::from(self))
    }

    fn shape(&self) -> Tree<i64> {
        Layout::shape(self)
    }

    fn profile(&self) -> Profile {
        Layout::profile(self).clone()
    }

    fn rank(&self) -> usize {
        Layout::rank(self)
    }

    #[inline]
    fn size(&self) -> i64 {
        Layout::size(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, Layout::size(self), || Layout::shape(self))?;
        Ok(self.eval(&index)?)
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        inside(coord, &Layout::shape(self))?;
        Ok(self.eval_at(coord)?)
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Ok(Layout::range(self)?)
    }

    fn injective(&self) -> Result<bool, TensorError> {
        Ok(self.is_injective()?)
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        let (first, second) = Layout::collision(self).ok()??;
        Some((first, second, self.eval(&first).ok()?))
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_leaves(Layout::leaves(self))
    }

    #[inline]
    fn leaves(&self) -> Option<&[Leaf]> {
        Some(Layout::leaves(self))
    }

    #[inline]
    fn flat_leaves(&self) -> Option<&[Leaf]> {
        is_flat(Layout::profile(self)).then(|| Layout::leaves(self))
    }
}

impl sealed::Sealed for StaticLayout {
    const MAPPED: bool = false;
}

impl Offsets for StaticLayout {
    type Derived = Layout;

    fn derived(&self) -> Result<Layout, TensorError> {
        Ok(self.to_layout())
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        Ok(Composed::from(self.to_layout()))
    }

    fn shape(&self) -> Tree<i64> {
        StaticLayout::shape(self)
    }

    fn profile(&self) -> Profile {
        StaticLayout::profile(self)
    }

    fn rank(&self) -> usize {
        StaticLayout::rank(self)
    }

    #[inline]
    fn size(&self) -> i64 {
        StaticLayout::size(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, StaticLayout::size(self), || StaticLayout::shape(self))?;
        self.eval(index).ok_or_else(|| outside(Tree::leaf(index), StaticLayout::shape(self)))
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        self.to_layout().offset_at(coord)
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Ok(StaticLayout::range(self))
    }

    fn injective(&self) -> Result<bool, TensorError> {
        self.to_layout().injective()
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        Offsets::collision(&self.to_layout())
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_leaves(StaticLayout::leaves(self))
    }

    #[inline]
    fn leaves(&self) -> Option<&[Leaf]> {
        Some(StaticLayout::leaves(self))
    }

    fn flat_leaves(&self) -> Option<&[Leaf]> {
        is_flat(&StaticLayout::profile(self)).then(|| StaticLayout::leaves(self))
    }
}

impl sealed::Sealed for Composed {
    const MAPPED: bool = true;
}

impl Offsets for Composed {
    type Derived = Composed;

    fn derived(&self) -> Result<Composed, TensorError> {
        Ok(self.clone())
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        self.derived()
    }

    fn shape(&self) -> Tree<i64> {
        Composed::shape(self)
    }

    fn profile(&self) -> Profile {
        Composed::profile(self).clone()
    }

    fn rank(&self) -> usize {
        Composed::rank(self)
    }

    fn size(&self) -> i64 {
        Composed::size(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, Composed::size(self), || Composed::shape(self))?;
        Ok(self.eval(&index)?)
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        inside(coord, &Composed::shape(self))?;
        Ok(self.eval_at(coord)?)
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        // The least value is the greatest of the negatives.
        let negated = || self.then(Layout::mode_of(2, -1)?)?.cosize();
        let by_bounds = |end: Result<i64, LayoutError>| end.ok()?.checked_sub(1);
        if let (Some(greatest), Some(least)) = (by_bounds(self.cosize()), by_bounds(negated())) {
            return Ok((least.saturating_neg(), greatest));
        }
        let size = Composed::size(self);
        if size > MAX_WALK {
            return Err(LayoutError::Undecided { op: "range", limit: MAX_WALK as usize }.into());
        }
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        for index in 0..size {
            let offset = self.eval(&index)?;
            (least, greatest) = (least.min(offset), greatest.max(offset));
        }
        Ok((least, greatest))
    }

    fn injective(&self) -> Result<bool, TensorError> {
        Ok(self.is_injective()?)
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        collision_listed(self)
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_composed(self)
    }

    fn leaves(&self) -> Option<&[Leaf]> {
        None
    }

    fn flat_leaves(&self) -> Option<&[Leaf]> {
        None
    }
}

/// The first two indices of one offset, by listing the offsets.
fn collision_listed<L: Offsets>(layout: &L) -> Option<(i64, i64, i64)> {
    // Enough to find what is wrong in most cases; a refusal need not name a pair.
    let listed = layout.size().min(1 << 16);
    let mut pairs = (0..listed).map(|i| Some((layout.offset(i).ok()?, i))).collect::<Option<Vec<(i64, i64)>>>()?;
    pairs.sort_unstable();
    let twice = pairs.iter().zip(pairs.iter().skip(1)).filter(|(a, b)| a.0 == b.0).min_by_key(|(_, b)| b.1);
    twice.map(|(a, b)| (a.1, b.1, a.0))
}

impl sealed::Sealed for StaticComposed {
    const MAPPED: bool = true;
}

impl Offsets for StaticComposed {
    type Derived = Composed;

    fn derived(&self) -> Result<Composed, TensorError> {
        Ok(self.to_composed())
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        self.derived()
    }

    fn shape(&self) -> Tree<i64> {
        StaticComposed::shape(self)
    }

    fn profile(&self) -> Profile {
        self.inner().profile()
    }

    fn rank(&self) -> usize {
        StaticComposed::rank(self)
    }

    fn size(&self) -> i64 {
        StaticComposed::size(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, StaticComposed::size(self), || StaticComposed::shape(self))?;
        self.eval(index).ok_or_else(|| outside(Tree::leaf(index), StaticComposed::shape(self)))
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        self.to_composed().offset_at(coord)
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Offsets::range(&self.to_composed())
    }

    fn injective(&self) -> Result<bool, TensorError> {
        self.to_composed().injective()
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        collision_listed(self)
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_composed(&self.to_composed())
    }

    fn leaves(&self) -> Option<&[Leaf]> {
        None
    }

    fn flat_leaves(&self) -> Option<&[Leaf]> {
        None
    }
}

impl sealed::Sealed for Layout<Xor> {
    const MAPPED: bool = true;
}

/// The bits of an offset.
const BITS: usize = 63;

/// A vector of bits as a number.
pub(crate) fn number(value: Xor) -> i64 {
    value.bits() as i64
}

impl Offsets for Layout<Xor> {
    type Derived = Composed;

    fn derived(&self) -> Result<Composed, TensorError> {
        let mut columns: Vec<u64> = Vec::new();
        let mut fields = Vec::new();
        for leaf in Layout::leaves(self) {
            let moves = leaf.extent > 1 && leaf.stride.bits() != 0;
            let first = columns.len() as u32;
            fields.push(if moves { 1_i64.checked_shl(first).filter(|step| *step > 0).unwrap_or(0) } else { 0 });
            let bits = if moves { u64::BITS - (leaf.extent - 1).leading_zeros() } else { 0 };
            for bit in 0..bits {
                // A bit of an index that occurs: where its product does not fit, the layout has no value there.
                let column = leaf.stride.times(&(1 << bit)).ok_or(LayoutError::Overflow { op: "XOR layout" })?;
                columns.push(column.bits());
            }
        }
        // Square, so that tiles at a ragged edge, which begin inside and are clipped, have values past it.
        columns.resize(columns.len().max(BITS), 0);
        let matrix = BitMatrix::new(BITS, columns)?;
        let inner = Layout::new(&Layout::shape(self), &Tree::new(Layout::profile(self).clone(), fields)?)?;
        Ok(Composed::new(matrix, 0, inner)?)
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        self.derived()
    }

    fn shape(&self) -> Tree<i64> {
        Layout::shape(self)
    }

    fn profile(&self) -> Profile {
        Layout::profile(self).clone()
    }

    fn rank(&self) -> usize {
        Layout::rank(self)
    }

    fn size(&self) -> i64 {
        Layout::size(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, Layout::size(self), || Layout::shape(self))?;
        Ok(number(self.eval(&index)?))
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        inside(coord, &Layout::shape(self))?;
        Ok(number(self.eval_at(coord)?))
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        // The least value of bit vectors that form a space, or a part of one with 0 in it, is 0.
        let greatest = self.cosize()?.checked_sub(1).ok_or(LayoutError::Undecided { op: "range", limit: 0 })?;
        Ok((0, greatest))
    }

    fn injective(&self) -> Result<bool, TensorError> {
        Ok(self.is_injective()?)
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        collision_listed(self)
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_xor(self)
    }

    fn leaves(&self) -> Option<&[Leaf]> {
        None
    }

    fn flat_leaves(&self) -> Option<&[Leaf]> {
        None
    }
}
