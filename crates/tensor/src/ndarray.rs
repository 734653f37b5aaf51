//! Conversions between tensors and arrays of the crate `ndarray`.
//!
//! Law: element `(i,j,..)` of a tensor is element `[i,j,..]` of the array, and they share memory.
//! Views become views with the same strides, including negative ones, and owned memory is moved. An
//! array has one axis for each mode. A nested mode is not an axis, and is refused.
//!
//! Reason for unsafe code: a view of `ndarray` is made of a pointer and strides, and so is a view
//! of this crate. A slice of everything between their ends may not be borrowed, because others may
//! own elements there.
#![allow(unsafe_code)]

use ndarray::{
    Array, ArrayD, ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Axis, Dimension, IxDyn, ShapeBuilder,
};
use tilewright_layout::{Layout, LayoutError, Tree};

use crate::error::TensorError;
use crate::offsets::{Offsets, each_once};
use crate::tensor::Tensor;
use crate::view::{TensorView, TensorViewMut};

/// The layout of an array.
fn layout_of(shape: &[usize], strides: &[isize]) -> Result<Layout, TensorError> {
    let overflow = |_| LayoutError::Overflow { op: "ndarray" };
    let extents = shape.iter().map(|extent| i64::try_from(*extent)).collect::<Result<Vec<_>, _>>().map_err(overflow)?;
    let strides = strides.iter().zip(shape).map(|(stride, extent)| if *extent > 1 { *stride as i64 } else { 0 });
    Ok(Layout::new(&Tree::flat(extents)?, &Tree::flat(strides)?)?)
}

/// The axes of a layout: extents, magnitudes of strides, and which strides are negative.
struct Axes {
    extents: Vec<usize>,
    strides: Vec<usize>,
    backwards: Vec<usize>,
    /// The smallest offset.
    least: i64,
}

impl Axes {
    fn of(layout: &Layout) -> Result<Axes, TensorError> {
        let found = layout.rank();
        let rank = layout.leaves().len();
        let refused = LayoutError::Rank { op: "ndarray", path: Vec::new(), expected: rank, found };
        let mut axes = Axes { extents: Vec::new(), strides: Vec::new(), backwards: Vec::new(), least: 0 };
        for (axis, leaf) in layout.flat_leaves().ok_or(refused)?.iter().enumerate() {
            let stride = if leaf.extent > 1 { leaf.stride } else { 0 };
            let size = |number: u64| usize::try_from(number).map_err(|_| LayoutError::Overflow { op: "ndarray" });
            axes.extents.push(size(leaf.extent.unsigned_abs())?);
            axes.strides.push(size(stride.unsigned_abs())?);
            if stride < 0 {
                axes.backwards.push(axis);
                // The sum of offsets of the layout cannot overflow.
                axes.least += stride * (leaf.extent - 1);
            }
        }
        Ok(axes)
    }
}

impl<'a, T> TensorView<'a, T> {
    /// A view of an array's elements, in place.
    ///
    /// Errors: an axis has no elements.
    ///
    /// ```
    /// use ndarray::{array, s};
    /// use tilewright_tensor::TensorView;
    ///
    /// let array = array![[1, 2, 3], [4, 5, 6]];
    /// let view = TensorView::from_ndarray(array.slice(s![.., ..;-1])).unwrap();
    /// assert_eq!(view.layout().to_string(), "(2,3):(3,-1)");
    /// assert_eq!(view.get([1, 0]), Ok(&6));
    /// assert_eq!(view.to_ndarray().unwrap(), array![[3, 2, 1], [6, 5, 4]].into_dyn());
    /// ```
    pub fn from_ndarray<D: Dimension>(array: ArrayView<'a, T, D>) -> Result<TensorView<'a, T>, TensorError> {
        let layout = layout_of(array.shape(), array.strides())?;
        // SAFETY: the array's elements, borrowed for 'a, at the array's strides from its first.
        Ok(unsafe { TensorView::from_raw(array.as_ptr(), layout) })
    }

    /// The elements as an array view, in place.
    ///
    /// Errors: a mode is nested: [`Tiling::flatten`](crate::Tiling::flatten) undoes the nesting.
    pub fn to_ndarray(&self) -> Result<ArrayViewD<'a, T>, TensorError> {
        let axes = Axes::of(self.layout())?;
        let shape = IxDyn(&axes.extents).strides(IxDyn(&axes.strides));
        let first = self.as_ptr().wrapping_offset(axes.least as isize);
        // SAFETY: from the element that is first in memory the strides are not negative, and reach
        // the elements of this view, borrowed for 'a.
        let mut array = unsafe { ArrayViewD::from_shape_ptr(shape, first) };
        axes.backwards.iter().for_each(|axis| array.invert_axis(Axis(*axis)));
        Ok(array)
    }
}

impl<'a, T> TensorViewMut<'a, T> {
    /// A mutable view of an array's elements, in place.
    ///
    /// Errors: an axis has no elements.
    pub fn from_ndarray<D: Dimension>(mut array: ArrayViewMut<'a, T, D>) -> Result<TensorViewMut<'a, T>, TensorError> {
        let layout = layout_of(array.shape(), array.strides())?;
        each_once(&layout)?;
        // SAFETY: the array's elements, borrowed for 'a, at the array's strides from its first,
        // each at one coordinate.
        Ok(unsafe { TensorViewMut::from_raw(array.as_mut_ptr(), layout) })
    }

    /// The elements as a mutable array view, in place.
    ///
    /// Errors: a mode is nested.
    pub fn into_ndarray(mut self) -> Result<ArrayViewMutD<'a, T>, TensorError> {
        let axes = Axes::of(self.layout())?;
        let shape = IxDyn(&axes.extents).strides(IxDyn(&axes.strides));
        let first = self.as_mut_ptr().wrapping_offset(axes.least as isize);
        // SAFETY: from the element that is first in memory the strides are not negative, and reach
        // the elements of this view, borrowed mutably for 'a, each at one coordinate.
        let mut array = unsafe { ArrayViewMutD::from_shape_ptr(shape, first) };
        axes.backwards.iter().for_each(|axis| array.invert_axis(Axis(*axis)));
        Ok(array)
    }
}

impl<T> Tensor<T> {
    /// The tensor of an array, whose memory it takes over.
    ///
    /// Errors: an axis has no elements.
    pub fn from_ndarray<D: Dimension>(array: Array<T, D>) -> Result<Tensor<T>, TensorError> {
        let layout = layout_of(array.shape(), array.strides())?;
        let (elements, origin) = array.into_raw_vec_and_offset();
        Tensor::from_vec_with_origin(elements, origin.unwrap_or(0), layout)
    }

    /// The array of a tensor. The array takes over the tensor's memory if that came from a vector
    /// or an array. Memory aligned to [`ALIGNMENT`](crate::ALIGNMENT) cannot belong to a vector, so
    /// its elements are moved.
    ///
    /// Errors: a mode is nested.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::Tensor;
    ///
    /// let columns: Layout = "(2,3):(1,2)".parse().unwrap();
    /// let tensor = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6], columns).unwrap();
    /// assert_eq!(tensor.into_ndarray().unwrap(), ndarray::array![[1, 3, 5], [2, 4, 6]].into_dyn());
    /// ```
    pub fn into_ndarray(self) -> Result<ArrayD<T>, TensorError> {
        let axes = Axes::of(self.layout())?;
        let before = self.origin().saturating_add_signed(axes.least as isize);
        let mut elements = self.into_vec();
        elements.drain(..before.min(elements.len()));
        let shape = IxDyn(&axes.extents).strides(IxDyn(&axes.strides));
        // When the tensor was made, all offsets were proved to be in the memory, each at one
        // coordinate.
        let array = ArrayD::from_shape_vec(shape, elements);
        let mut array = array.map_err(|_| LayoutError::Overflow { op: "ndarray" })?;
        axes.backwards.iter().for_each(|axis| array.invert_axis(Axis(*axis)));
        Ok(array)
    }
}
