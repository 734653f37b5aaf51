//! Recasts: the same memory as elements of another type.
//!
//! Law: element `c` of the recast tensor covers exactly the bits of a box of elements of the
//! original tensor, or of a part of one, as in [`Layout::recast`]. The layout algebra refuses modes
//! with negative strides within an element, because it cannot move offset 0. A tensor can move it:
//! those modes are reversed, recast, and reversed back.
//!
//! The first element must be aligned for the new type. Then all others are aligned, because their
//! distances are multiples of the element size.
//!
//! Reason for unsafe code: a pointer is cast to another type of elements.
#![allow(unsafe_code)]

use bytemuck::{AnyBitPattern, NoUninit};
use tilewright_layout::{Composed, Layout, LayoutError, Leaf, Tree};

use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};

/// A map that can be recast.
pub trait Recast: Sized + sealed::Sealed {
    /// The map of the same bits in elements of `new_bits`, and the offset at which it begins, in
    /// old elements and in new ones.
    #[doc(hidden)]
    fn recast_at(&self, new_bits: i64, old_bits: i64) -> Result<(Self, i64, i64), LayoutError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for tilewright_layout::Layout {}
    impl Sealed for tilewright_layout::Composed {}
}

impl Recast for Composed {
    fn recast_at(&self, new_bits: i64, old_bits: i64) -> Result<(Composed, i64, i64), LayoutError> {
        Ok((self.recast(new_bits, old_bits)?, 0, 0))
    }
}

impl Recast for Layout {
    fn recast_at(&self, new_bits: i64, old_bits: i64) -> Result<(Layout, i64, i64), LayoutError> {
        let error = match self.recast(new_bits, old_bits) {
            Ok(layout) => return Ok((layout, 0, 0)),
            Err(error) => error,
        };
        let backwards = |leaf: &Leaf| leaf.stride < 0;
        // If elements are also split, their parts would be reversed too.
        if new_bits.checked_rem(old_bits) != Some(0) || !self.leaves().iter().any(backwards) {
            return Err(error);
        }
        let Some((forwards, start)) = reversed(self, backwards) else { return Err(error) };
        let Ok(recast) = forwards.recast(new_bits, old_bits) else { return Err(error) };
        // Widening keeps the leaves of the layout.
        let reverses: Vec<bool> = self.leaves().iter().map(backwards).collect();
        let mut reverses = reverses.iter().copied();
        match reversed(&recast, |_| reverses.next() == Some(true)) {
            Some((layout, end)) => Ok((layout, start, end)),
            None => Err(error),
        }
    }
}

/// The layout with some modes reversed, and the offset at which it then begins.
fn reversed(layout: &Layout, mut which: impl FnMut(&Leaf) -> bool) -> Option<(Layout, i64)> {
    let mut start = 0_i64;
    let mut leaves = Vec::new();
    for leaf in layout.leaves() {
        let mut leaf = *leaf;
        if which(&leaf) {
            start = start.checked_add(leaf.stride.checked_mul(leaf.extent - 1)?)?;
            leaf.stride = leaf.stride.checked_neg()?;
        }
        leaves.push(leaf);
    }
    let tree = Tree::new(layout.profile().clone(), leaves).ok()?;
    Some((Layout::from_tree(tree).ok()?, start))
}

fn bits<T>() -> i64 {
    i64::try_from(size_of::<T>().saturating_mul(8)).unwrap_or(i64::MAX)
}

/// The map of a view in elements of type `U`, and the distance in bytes from offset 0 of the view
/// to that of the result.
fn recast_map<T, U, L: Recast>(map: &L, base: *const T) -> Result<(L, isize), TensorError> {
    let (map, old, new) = map.recast_at(bits::<U>(), bits::<T>())?;
    // Both are distances within one allocation, or 0.
    let distance = (old as isize)
        .wrapping_mul(size_of::<T>() as isize)
        .wrapping_add((new as isize).wrapping_mul(size_of::<U>() as isize));
    let address = base.wrapping_byte_offset(distance) as usize;
    match address.checked_rem(align_of::<U>()) {
        Some(0) => Ok((map, distance)),
        _ => Err(TensorError::Alignment { address, wanted: align_of::<U>() }),
    }
}

impl<'a, T: NoUninit, L: Offsets> TensorView<'a, T, L>
where
    L::Derived: Recast,
{
    /// The same memory as elements of another type: wider ones if enough elements are contiguous;
    /// narrower ones always (CuTe `recast`).
    ///
    /// Errors: as [`Layout::recast`]; the first element is not aligned for the type.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::TensorView;
    ///
    /// let words = [0x0201_u16, 0x0403, 0x0605, 0x0807];
    /// let view = TensorView::new(&words, "(2,2):(1,2)".parse::<Layout>().unwrap()).unwrap();
    /// let bytes = view.recast::<u8>().unwrap();
    /// assert_eq!(bytes.layout().to_string(), "(4,2):(1,4)");
    /// assert_eq!(bytes.to_vec(), [1, 2, 3, 4, 5, 6, 7, 8]);
    /// assert_eq!(bytes.recast::<u16>().unwrap().to_vec(), words);
    /// ```
    pub fn recast<U: AnyBitPattern>(&self) -> Result<TensorView<'a, U, L::Derived>, TensorError> {
        let (map, distance) = recast_map::<T, U, _>(&self.layout().derived()?, self.as_ptr())?;
        // SAFETY: the elements are boxes or parts of elements of this view, aligned, without
        // padding, and of a type for which any bits are valid.
        Ok(unsafe { TensorView::from_raw(self.as_ptr().wrapping_byte_offset(distance).cast::<U>(), map) })
    }
}

impl<'a, T: NoUninit + AnyBitPattern, L: Offsets> TensorViewMut<'a, T, L>
where
    L::Derived: Recast,
{
    /// The same memory as elements of another type, mutable: [`TensorView::recast`].
    ///
    /// Errors: as [`TensorView::recast`].
    pub fn recast<U: NoUninit + AnyBitPattern>(mut self) -> Result<TensorViewMut<'a, U, L::Derived>, TensorError> {
        let (map, distance) = recast_map::<T, U, _>(&self.layout().derived()?, self.as_ptr())?;
        // SAFETY: as for views that are read; any bits are valid for both types, and no bit is in
        // two elements, as none was before.
        Ok(unsafe { TensorViewMut::from_raw(self.as_mut_ptr().wrapping_byte_offset(distance).cast::<U>(), map) })
    }
}
