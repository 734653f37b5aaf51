//! Views prepared for access in any order.
//!
//! Law: the element at a position is that of the view at the same position. What an access needs is
//! read from the layout once: the steps and jumps of the [`Evaluator`] for access by index, and the
//! extents and strides as arrays for access by mode. Then an access is a comparison, a few
//! multiplications and a load.
//!
//! Reason for unsafe code: the comparison with the shape proves that the offset is one of the
//! layout, so the offset is not checked again.
#![allow(unsafe_code)]

use tilewright_layout::{Evaluator, Layout, LayoutError};

use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};

/// A view prepared for access by index; made by [`TensorView::by_index`].
pub struct ByIndex<'a, T> {
    view: TensorView<'a, T>,
    evaluator: Evaluator,
    size: i64,
}

impl<'a, T> ByIndex<'a, T> {
    /// The element at an index; None outside the tensor.
    #[inline(always)]
    pub fn get(&self, index: i64) -> Option<&'a T> {
        if index as u64 >= self.size as u64 {
            return None;
        }
        let offset = self.evaluator.eval(index).ok()?;
        // SAFETY: the index is inside the tensor, so that this is an offset of its layout.
        Some(unsafe { self.view.at_offset(offset) })
    }
}

impl<'a, T> TensorView<'a, T> {
    /// The view prepared for access at many indices.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::TensorView;
    ///
    /// let nested: Layout = "((2,2),3):((6,1),2)".parse().unwrap();
    /// let view = TensorView::new(b"abcdefghijkl", nested).unwrap();
    /// let elements = view.by_index();
    /// assert_eq!((elements.get(1), elements.get(4), elements.get(12)), (Some(&b'g'), Some(&b'c'), None));
    /// ```
    pub fn by_index(&self) -> ByIndex<'a, T> {
        ByIndex { view: self.clone(), evaluator: self.layout().evaluator(), size: self.size() }
    }
}

/// The extents and the strides of a layout each of whose modes is one leaf.
fn columns<const RANK: usize, L: Offsets>(layout: &L) -> Result<([i64; RANK], [i64; RANK]), TensorError> {
    let leaves = layout.flat_leaves().filter(|leaves| leaves.len() == RANK);
    let found = layout.rank();
    let leaves = leaves.ok_or(LayoutError::Rank { op: "by_mode", path: Vec::new(), expected: RANK, found })?;
    let (mut extents, mut strides) = ([0; RANK], [0; RANK]);
    for ((leaf, extent), stride) in leaves.iter().zip(&mut extents).zip(&mut strides) {
        (*extent, *stride) = (leaf.extent, leaf.stride);
    }
    Ok((extents, strides))
}

/// The offset of one index in each mode; None outside the extents.
#[inline(always)]
fn offset<const RANK: usize>(extents: &[i64; RANK], strides: &[i64; RANK], position: [i64; RANK]) -> Option<i64> {
    let (mut inside, mut offset) = (true, 0_i64);
    for ((extent, stride), index) in extents.iter().zip(strides).zip(position) {
        inside &= (index as u64) < *extent as u64;
        offset = offset.wrapping_add(stride.wrapping_mul(index));
    }
    inside.then_some(offset)
}

/// A view prepared for access by one index in each mode; made by [`TensorView::by_mode`].
pub struct ByMode<'a, T, const RANK: usize> {
    view: TensorView<'a, T>,
    extents: [i64; RANK],
    strides: [i64; RANK],
}

impl<'a, T, const RANK: usize> ByMode<'a, T, RANK> {
    /// The element at one index in each mode; None outside the tensor.
    #[inline(always)]
    pub fn get(&self, position: [i64; RANK]) -> Option<&'a T> {
        let offset = offset(&self.extents, &self.strides, position)?;
        // SAFETY: the position is inside the tensor, so that this is an offset of its layout.
        Some(unsafe { self.view.at_offset(offset) })
    }

    /// The extents.
    #[inline(always)]
    pub fn extents(&self) -> [i64; RANK] {
        self.extents
    }
}

/// A mutable view prepared for access by one index in each mode; made by
/// [`TensorViewMut::by_mode_mut`].
pub struct ByModeMut<'a, T, const RANK: usize> {
    view: TensorViewMut<'a, T>,
    extents: [i64; RANK],
    strides: [i64; RANK],
}

impl<T, const RANK: usize> ByModeMut<'_, T, RANK> {
    /// The element at one index in each mode; None outside the tensor.
    #[inline(always)]
    pub fn get_mut(&mut self, position: [i64; RANK]) -> Option<&mut T> {
        let offset = offset(&self.extents, &self.strides, position)?;
        // SAFETY: the position is inside the tensor, so that this is an offset of its layout.
        Some(unsafe { &mut *self.view.as_mut_ptr().offset(offset as isize) })
    }

    /// The extents.
    #[inline(always)]
    pub fn extents(&self) -> [i64; RANK] {
        self.extents
    }
}

impl<'a, T> TensorView<'a, T> {
    /// The view prepared for access by one index in each mode.
    ///
    /// Errors: a mode is nested, or there are not that many.
    /// [`Tiling::flatten`](crate::Tiling::flatten) undoes the nesting.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::TensorView;
    ///
    /// let rows: Layout = "(3,4):(4,1)".parse().unwrap();
    /// let view = TensorView::new(b"abcdefghijkl", rows).unwrap();
    /// let matrix = view.by_mode::<2>().unwrap();
    /// assert_eq!((matrix.get([2, 1]), matrix.get([2, 4])), (Some(&b'j'), None));
    /// ```
    pub fn by_mode<const RANK: usize>(&self) -> Result<ByMode<'a, T, RANK>, TensorError> {
        let (extents, strides) = columns(self.layout())?;
        Ok(ByMode { view: self.clone(), extents, strides })
    }
}

impl<'a, T> TensorViewMut<'a, T, Layout> {
    /// The view prepared for access by one index in each mode, to be written.
    ///
    /// Errors: as [`TensorView::by_mode`].
    pub fn by_mode_mut<const RANK: usize>(self) -> Result<ByModeMut<'a, T, RANK>, TensorError> {
        let (extents, strides) = columns(self.layout())?;
        Ok(ByModeMut { view: self, extents, strides })
    }
}
