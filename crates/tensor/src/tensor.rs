//! Tensors: owned memory with a layout.
//!
//! Law: as of a [`TensorView`], with memory of its own. The layout reaches every element at most
//! once, so that a mutable view of the whole tensor always exists. A layout that repeats elements
//! needs a view.
//!
//! Invariant: both properties were proved when the tensor was made, and neither the memory nor the
//! layout is replaced or resized.
//!
//! Reason for unsafe code: views of the whole tensor do not repeat the proof.
#![allow(unsafe_code)]

use std::fmt;

use bytemuck::Zeroable;
use tilewright_layout::{Layout, LayoutError, Tree};

use crate::error::TensorError;
use crate::memory::Memory;
use crate::offsets::{Offsets, each_once};
use crate::position::Position;
use crate::view::{TensorView, TensorViewMut, check_range};

/// Owned elements with a layout.
///
/// Memory that this crate allocates is aligned to [`ALIGNMENT`](crate::ALIGNMENT) bytes, and from 2
/// MiB on uses huge pages if Linux has some. The memory of a `Vec` is used in place.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::Tensor;
///
/// let rows: Layout = "(2,3):(3,1)".parse().unwrap();
/// let mut tensor = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6], rows).unwrap();
/// assert_eq!(tensor.get([1, 0]), Ok(&4));
/// tensor.set([1, 0], 7).unwrap();
/// assert_eq!(tensor.into_vec(), [1, 2, 3, 7, 5, 6]);
/// ```
pub struct Tensor<T, L = Layout> {
    memory: Memory<T>,
    origin: usize,
    layout: L,
}

/// The number of elements from the smallest offset to the largest, and the position of offset 0
/// among them.
fn room<L: Offsets, T>(layout: &L) -> Result<(usize, usize), TensorError> {
    each_once(layout)?;
    let (least, greatest) = layout.range()?;
    // Memory is allocated from offset 0, or from the smallest offset if that is negative, to the
    // largest offset.
    let first = least.min(0);
    let elements = greatest.checked_sub(first).and_then(|last| last.checked_add(1));
    let refused = |elements| TensorError::Memory { elements, bytes: size_of::<T>() };
    let elements = elements.ok_or(refused(i64::MAX))?;
    let origin = usize::try_from(first.unsigned_abs()).map_err(|_| refused(elements))?;
    Ok((usize::try_from(elements).map_err(|_| refused(elements))?, origin))
}

impl<T, L: Offsets> Tensor<T, L> {
    /// A tensor of clones of a value. Memory is allocated from offset 0, or from the smallest
    /// offset if that is negative, to the largest offset.
    ///
    /// Errors: the layout reaches an element twice, or that could not be decided; there is not
    /// enough memory.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::Tensor;
    ///
    /// let padded: Layout = "(3,2):(1,4)".parse().unwrap();
    /// let tensor = Tensor::filled(padded, 0.5_f32).unwrap();
    /// assert_eq!((tensor.get([2, 1]), tensor.as_slice().len()), (Ok(&0.5), 7));
    /// ```
    pub fn filled(layout: L, value: T) -> Result<Tensor<T, L>, TensorError>
    where
        T: Clone,
    {
        let (elements, origin) = room::<L, T>(&layout)?;
        Ok(Tensor { memory: Memory::filled(elements, &value)?, origin, layout })
    }

    /// A tensor of zeros: of zero bytes.
    ///
    /// Errors: as [`Tensor::filled`].
    pub fn zeroed(layout: L) -> Result<Tensor<T, L>, TensorError>
    where
        T: Zeroable,
    {
        let (elements, origin) = room::<L, T>(&layout)?;
        Ok(Tensor { memory: Memory::zeroed(elements)?, origin, layout })
    }

    /// A tensor whose element at each index is the value of a function of the index. Elements in
    /// memory that no index reaches are clones of the first element.
    ///
    /// Errors: as [`Tensor::filled`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::Tensor;
    ///
    /// let rows: Layout = "(2,3):(3,1)".parse().unwrap();
    /// let tensor = Tensor::from_fn(rows, |index| index).unwrap(); // counted column by column
    /// assert_eq!(tensor.as_slice(), [0, 2, 4, 1, 3, 5]);
    /// ```
    pub fn from_fn(layout: L, mut value: impl FnMut(i64) -> T) -> Result<Tensor<T, L>, TensorError>
    where
        T: Clone,
    {
        let mut tensor = Tensor::filled(layout, value(0))?;
        for index in 1..tensor.size() {
            tensor.set(index, value(index))?;
        }
        Ok(tensor)
    }

    /// The tensor of a vector, whose memory is used in place, with offset 0 at its first element.
    ///
    /// Errors: the layout reaches an element twice, or that could not be decided; an offset is
    /// outside the vector.
    pub fn from_vec(vec: Vec<T>, layout: L) -> Result<Tensor<T, L>, TensorError> {
        Tensor::from_vec_with_origin(vec, 0, layout)
    }

    /// As [`Tensor::from_vec`], with offset 0 at element `origin`.
    ///
    /// Errors: as [`Tensor::from_vec`].
    pub fn from_vec_with_origin(vec: Vec<T>, origin: usize, layout: L) -> Result<Tensor<T, L>, TensorError> {
        check_range(&layout, origin, vec.len())?;
        each_once(&layout)?;
        Ok(Tensor { memory: Memory::of_vec(vec), origin, layout })
    }

    /// All elements in memory, including those that no coordinate reaches, in the order of memory.
    /// They are not copied if the memory came from a vector.
    pub fn into_vec(self) -> Vec<T> {
        self.memory.into_vec()
    }

    /// The same elements under another layout.
    ///
    /// Errors: the layout reaches an element twice, or that could not be decided; an offset is
    /// outside the memory.
    pub fn with_layout<M: Offsets>(self, layout: M) -> Result<Tensor<T, M>, TensorError> {
        check_range(&layout, self.origin, self.memory.as_slice().len())?;
        each_once(&layout)?;
        Ok(Tensor { memory: self.memory, origin: self.origin, layout })
    }

    /// All elements in memory, including those that no coordinate reaches, in the order of memory.
    pub fn as_slice(&self) -> &[T] {
        self.memory.as_slice()
    }

    /// As [`Tensor::as_slice`], mutable.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.memory.as_mut_slice()
    }

    /// The position of offset 0 among the elements in memory.
    pub fn origin(&self) -> usize {
        self.origin
    }

    /// The layout.
    #[inline]
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// The extents.
    pub fn shape(&self) -> Tree<i64> {
        self.layout.shape()
    }

    /// The number of top-level modes.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// The number of coordinates.
    pub fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The pointer to the element at offset 0. If no element has offset 0, the pointer to where it
    /// would be.
    pub fn as_ptr(&self) -> *const T {
        self.memory.as_slice().as_ptr().wrapping_add(self.origin)
    }

    /// The mutable pointer to the element at offset 0. If no element has offset 0, the pointer to
    /// where it would be.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.memory.as_mut_slice().as_mut_ptr().wrapping_add(self.origin)
    }

    /// A view of the elements.
    pub fn view(&self) -> TensorView<'_, T, L> {
        // SAFETY: by the invariant every offset of the layout lies in the memory.
        unsafe { TensorView::of_valid(self.memory.as_slice(), self.origin, self.layout.clone()) }
    }

    /// A mutable view of the elements.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T, L> {
        // SAFETY: by the invariant every offset of the layout lies in the memory, each at one
        // coordinate.
        unsafe { TensorViewMut::of_valid(self.memory.as_mut_slice(), self.origin, self.layout.clone()) }
    }

    /// The element at an index, a list of one index for each mode, or a nested coordinate.
    ///
    /// Errors: it is outside the shape.
    pub fn get(&self, position: impl Position) -> Result<&T, TensorError> {
        let offset = position.offset(&self.layout)?;
        self.memory.as_slice().get(self.place(offset)).ok_or_else(unreachable_offset)
    }

    /// A mutable reference to the element at an index, a list of one index for each mode, or a
    /// nested coordinate.
    ///
    /// Errors: it is outside the shape.
    pub fn get_mut(&mut self, position: impl Position) -> Result<&mut T, TensorError> {
        let place = self.place(position.offset(&self.layout)?);
        self.memory.as_mut_slice().get_mut(place).ok_or_else(unreachable_offset)
    }

    /// Writes the element at an index, a list of one index for each mode, or a nested coordinate.
    ///
    /// Errors: it is outside the shape.
    pub fn set(&mut self, position: impl Position, value: T) -> Result<(), TensorError> {
        *self.get_mut(position)? = value;
        Ok(())
    }

    /// The position in memory of an offset.
    fn place(&self, offset: i64) -> usize {
        self.origin.wrapping_add_signed(offset as isize)
    }
}

/// Panics at an offset that the proof on construction excludes.
#[cold]
fn unreachable_offset() -> TensorError {
    TensorError::Layout(LayoutError::Overflow { op: "tensor" })
}

impl<T: Clone, L: Offsets> Tensor<T, L> {
    /// A copy of the tensor with the same layout.
    ///
    /// Errors: there is not enough memory.
    pub fn try_clone(&self) -> Result<Tensor<T, L>, TensorError> {
        Ok(Tensor { memory: Memory::copied(self.as_slice())?, origin: self.origin, layout: self.layout.clone() })
    }
}

impl<T, L: fmt::Display> fmt::Debug for Tensor<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({})", self.layout)
    }
}
