//! Views: borrowed memory with a layout.
//!
//! Law: a view of memory `m` with layout `L` and offset 0 at element `o` has at coordinate `c` the
//! element `m[o + L(c)]`.
//!
//! # Invariant
//!
//! For a [`TensorView`]: for every offset of its layout, `base + offset` points to an element that
//! is borrowed for `'a`, and that nobody writes meanwhile. For a [`TensorViewMut`]: the same, and
//! in addition nobody else reads or writes the element meanwhile, and different coordinates have
//! different offsets.
//!
//! It holds on construction from a slice: the range of the layout is compared with the slice
//! ([`Offsets::range`]), and the layout of a mutable view is checked to be injective. A view made
//! of another view has the layout `L o f` for a map `f` into the coordinates of `L`, and so reaches
//! nothing new. `base` itself need not point to an element: a composed layout may have no offset 0.
//!
//! An offset times the size of an element cannot overflow, as both ends of the range lie in one
//! allocation.
//!
//! Reason for unsafe code: an element access after the proof is an addition and a load, with no
//! bounds check; and safe code cannot make many disjoint mutable views of one slice.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;

use tilewright_layout::{Layout, Tree};

use crate::error::TensorError;
use crate::offsets::{Offsets, after_once, each_once};
use crate::position::Position;
use crate::rearrange::{Rearrangement, after};
use crate::tiling::Tiling;

/// A read-only view: borrowed elements with a layout.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::TensorView;
///
/// let memory: Vec<i32> = (0..12).collect();
/// let rows: Layout = "(3,4):(4,1)".parse().unwrap();
/// let matrix = TensorView::new(&memory, rows).unwrap();
/// assert_eq!(matrix.get([1, 2]), Ok(&6));
/// assert_eq!(matrix.get(1), Ok(&4)); // index 1 is the coordinate (1,0)
/// assert_eq!(matrix.get([3, 0]).unwrap_err().code(), "E0403");
///
/// let larger: Layout = "(4,4):(4,1)".parse().unwrap();
/// assert_eq!(TensorView::new(&memory, larger).unwrap_err().to_string(), "offsets from 0 to 15 do not fit into 12 elements with offset 0 at element 0");
/// ```
pub struct TensorView<'a, T, L = Layout> {
    base: *const T,
    layout: L,
    memory: PhantomData<&'a T>,
}

/// A mutable view: mutably borrowed elements with a layout.
///
/// Every element has one coordinate: a layout that repeats an element is refused.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::TensorViewMut;
///
/// let mut memory = [0; 6];
/// let columns: Layout = "(2,3):(1,2)".parse().unwrap();
/// let mut matrix = TensorViewMut::new(&mut memory, columns).unwrap();
/// *matrix.get_mut([1, 2]).unwrap() = 7;
/// assert_eq!(memory, [0, 0, 0, 0, 0, 7]);
///
/// let repeated: Layout = "(2,3):(0,1)".parse().unwrap();
/// let refusal = TensorViewMut::new(&mut memory, repeated).unwrap_err();
/// assert_eq!(refusal.to_string(), "(2,3):(0,1) reaches offset 0 at index 0 and again at index 1");
/// ```
pub struct TensorViewMut<'a, T, L = Layout> {
    base: *mut T,
    layout: L,
    memory: PhantomData<&'a mut T>,
}

// SAFETY: a view is shared references to elements.
unsafe impl<T: Sync, L: Send> Send for TensorView<'_, T, L> {}
// SAFETY: a shared view gives shared references to elements only.
unsafe impl<T: Sync, L: Sync> Sync for TensorView<'_, T, L> {}
// SAFETY: a mutable view is mutable references to elements that nobody else has.
unsafe impl<T: Send, L: Send> Send for TensorViewMut<'_, T, L> {}
// SAFETY: a shared mutable view gives shared references only.
unsafe impl<T: Sync, L: Sync> Sync for TensorViewMut<'_, T, L> {}

/// An error if a layout has offsets, counted from `origin`, outside this many elements.
pub(crate) fn check_range<L: Offsets>(layout: &L, origin: usize, elements: usize) -> Result<(), TensorError> {
    let (least, greatest) = layout.range()?;
    // The inputs have 64 bits, so their sums fit into 128 bits.
    let (first, last) = (origin as i128 + i128::from(least), origin as i128 + i128::from(greatest));
    if first < 0 || last >= elements as i128 {
        return Err(TensorError::Outside { least, greatest, origin, elements });
    }
    Ok(())
}

/// The methods about the layout that both kinds of views have.
macro_rules! of_both {
    ($T:ident, $L:ident) => {
        /// The layout.
        #[inline]
        pub fn layout(&self) -> &$L {
            &self.layout
        }

        pub(crate) fn into_layout(self) -> $L {
            self.layout
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
        #[inline]
        pub fn size(&self) -> i64 {
            self.layout.size()
        }

        /// The pointer to the element at offset 0. If no element has offset 0, the pointer to where
        /// it would be.
        #[inline]
        pub fn as_ptr(&self) -> *const $T {
            self.base
        }
    };
}

impl<'a, T, L: Offsets> TensorView<'a, T, L> {
    /// The view of a slice, with offset 0 at its first element.
    ///
    /// Errors: an offset is outside the slice.
    pub fn new(memory: &'a [T], layout: L) -> Result<TensorView<'a, T, L>, TensorError> {
        TensorView::with_origin(memory, 0, layout)
    }

    /// The view of a slice, with offset 0 at element `origin`: negative strides step back from
    /// there.
    ///
    /// Errors: an offset is outside the slice.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::TensorView;
    ///
    /// let backwards: Layout = "4:-1".parse().unwrap();
    /// let view = TensorView::with_origin(b"abcd", 3, backwards.clone()).unwrap();
    /// assert_eq!((view.get(0), view.get(3)), (Ok(&b'd'), Ok(&b'a')));
    /// assert_eq!(TensorView::new(b"abcd", backwards).unwrap_err().code(), "E0401");
    /// ```
    pub fn with_origin(memory: &'a [T], origin: usize, layout: L) -> Result<TensorView<'a, T, L>, TensorError> {
        check_range(&layout, origin, memory.len())?;
        // SAFETY: every offset is in the slice, as was just proved.
        Ok(unsafe { TensorView::of_valid(memory, origin, layout) })
    }

    /// The view of a slice for a layout all of whose offsets are known to be inside.
    ///
    /// # Safety
    /// All offsets are inside the slice.
    pub(crate) unsafe fn of_valid(memory: &'a [T], origin: usize, layout: L) -> TensorView<'a, T, L> {
        debug_assert!(check_range(&layout, origin, memory.len()).is_ok());
        // SAFETY: the caller vouches that all offsets are within the slice, borrowed for 'a.
        unsafe { TensorView::from_raw(memory.as_ptr().wrapping_add(origin), layout) }
    }

    /// A view of elements in memory that is not a Rust slice, such as an array of another language.
    /// `base` points to offset 0, or to where it would be.
    ///
    /// # Safety
    /// Every offset of the layout leads to an aligned, initialised element of one allocation that
    /// is borrowed for `'a`, and that nobody writes meanwhile.
    #[inline]
    pub unsafe fn from_raw(base: *const T, layout: L) -> TensorView<'a, T, L> {
        TensorView { base, layout, memory: PhantomData }
    }

    of_both!(T, L);

    /// The element at an index, a list of one index for each mode, or a nested coordinate.
    ///
    /// Errors: it is outside the shape.
    #[inline]
    pub fn get(&self, position: impl Position) -> Result<&'a T, TensorError> {
        let offset = position.offset(&self.layout)?;
        // SAFETY: the offset is one of the layout.
        Ok(unsafe { &*self.base.offset(offset as isize) })
    }

    /// The element at an offset.
    ///
    /// # Safety
    /// The offset is one that the layout has at some coordinate.
    #[inline(always)]
    pub unsafe fn at_offset(&self, offset: i64) -> &'a T {
        // SAFETY: the caller vouches that the offset is one of the layout.
        unsafe { &*self.base.offset(offset as isize) }
    }
}

impl<'a, T, L: Offsets> TensorViewMut<'a, T, L> {
    /// The view of a slice, with offset 0 at its first element.
    ///
    /// Errors: an offset is outside the slice; the layout reaches an element twice, or that could
    /// not be decided.
    pub fn new(memory: &'a mut [T], layout: L) -> Result<TensorViewMut<'a, T, L>, TensorError> {
        TensorViewMut::with_origin(memory, 0, layout)
    }

    /// The view of a slice, with offset 0 at element `origin`: negative strides step back from
    /// there.
    ///
    /// Errors: as [`TensorViewMut::new`].
    pub fn with_origin(memory: &'a mut [T], origin: usize, layout: L) -> Result<TensorViewMut<'a, T, L>, TensorError> {
        check_range(&layout, origin, memory.len())?;
        each_once(&layout)?;
        // SAFETY: every offset is in the slice and has one coordinate, as was just proved.
        Ok(unsafe { TensorViewMut::of_valid(memory, origin, layout) })
    }

    /// The view of a slice for a layout all of whose offsets are known to be inside, each at one
    /// coordinate.
    ///
    /// # Safety
    /// All offsets are inside the slice, each at one coordinate.
    pub(crate) unsafe fn of_valid(memory: &'a mut [T], origin: usize, layout: L) -> TensorViewMut<'a, T, L> {
        debug_assert!(check_range(&layout, origin, memory.len()).is_ok());
        // SAFETY: the caller vouches that all offsets are within the slice, borrowed mutably for
        // 'a, each at one coordinate.
        unsafe { TensorViewMut::from_raw(memory.as_mut_ptr().wrapping_add(origin), layout) }
    }

    /// A mutable view of elements in memory that is not a Rust slice, such as an array of another
    /// language. `base` points to offset 0, or to where it would be.
    ///
    /// # Safety
    /// Every offset of the layout leads to an aligned, initialised element of one allocation that
    /// is borrowed for `'a`, and that nobody else reads or writes meanwhile. Different coordinates
    /// have different offsets.
    #[inline]
    pub unsafe fn from_raw(base: *mut T, layout: L) -> TensorViewMut<'a, T, L> {
        TensorViewMut { base, layout, memory: PhantomData }
    }

    of_both!(T, L);

    /// The mutable pointer to the element at offset 0. If no element has offset 0, the pointer to
    /// where it would be.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.base
    }

    /// The element at an index, a list of one index for each mode, or a nested coordinate.
    ///
    /// Errors: it is outside the shape.
    #[inline]
    pub fn get(&self, position: impl Position) -> Result<&T, TensorError> {
        let offset = position.offset(&self.layout)?;
        // SAFETY: the offset is one of the layout.
        Ok(unsafe { &*self.base.offset(offset as isize) })
    }

    /// A mutable reference to the element at an index, a list of one index for each mode, or a
    /// nested coordinate.
    ///
    /// Errors: it is outside the shape.
    #[inline]
    pub fn get_mut(&mut self, position: impl Position) -> Result<&mut T, TensorError> {
        let offset = position.offset(&self.layout)?;
        // SAFETY: the offset is one of the layout.
        Ok(unsafe { &mut *self.base.offset(offset as isize) })
    }

    /// Writes the element at an index, a list of one index for each mode, or a nested coordinate.
    ///
    /// Errors: it is outside the shape.
    #[inline]
    pub fn set(&mut self, position: impl Position, value: T) -> Result<(), TensorError> {
        *self.get_mut(position)? = value;
        Ok(())
    }

    /// A read-only view of the same elements.
    pub fn view(&self) -> TensorView<'_, T, L> {
        TensorView { base: self.base, layout: self.layout.clone(), memory: PhantomData }
    }

    /// A mutable view of the same elements, with a shorter lifetime.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T, L> {
        TensorViewMut { base: self.base, layout: self.layout.clone(), memory: PhantomData }
    }
}

impl<'a, T, L: Offsets> Tiling for &TensorView<'a, T, L> {
    type Output = TensorView<'a, T, L::Derived>;

    fn rearranged(self, steps: &[Rearrangement]) -> Result<TensorView<'a, T, L::Derived>, TensorError> {
        let (layout, start) = after(self.layout.derived()?, steps)?;
        // SAFETY: `start + layout` is `L o f`: its offsets are among those of this view.
        Ok(unsafe { TensorView::from_raw(self.base.wrapping_offset(start as isize), layout) })
    }
}

impl<'a, T, L: Offsets> Tiling for TensorViewMut<'a, T, L> {
    type Output = TensorViewMut<'a, T, L::Derived>;

    fn rearranged(self, steps: &[Rearrangement]) -> Result<TensorViewMut<'a, T, L::Derived>, TensorError> {
        let (layout, start) = after_once(self.layout.derived()?, steps)?;
        // SAFETY: `start + layout` is `L o f` for an `f` that names no coordinate twice: its
        // offsets are among those of this view, each at one coordinate.
        Ok(unsafe { TensorViewMut::from_raw(self.base.wrapping_offset(start as isize), layout) })
    }
}

impl<T, L: Clone> Clone for TensorView<'_, T, L> {
    fn clone(&self) -> Self {
        TensorView { base: self.base, layout: self.layout.clone(), memory: PhantomData }
    }
}

impl<T, L: fmt::Display> fmt::Debug for TensorView<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorView({})", self.layout)
    }
}

impl<T, L: fmt::Display> fmt::Debug for TensorViewMut<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorViewMut({})", self.layout)
    }
}
