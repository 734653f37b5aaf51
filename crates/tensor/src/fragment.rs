//! Fragments: a thread's own copy of the elements of a view.
//!
//! Law: a fragment has the shape of the view and compact memory of its own, in the order of
//! [`Layout::fragment_like`]. `load` copies the elements of the view to a fragment, and `store`
//! copies them back: element `i` of one is element `i` of the other.

use bytemuck::{NoUninit, Zeroable};
use tilewright_layout::{Composed, Layout, LayoutError};

use crate::copy::copy;
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::tensor::Tensor;
use crate::view::{TensorView, TensorViewMut};

/// A map from which the layout of a fragment is derived.
pub trait Fragmented: sealed::Sealed {
    /// The layout of a fragment.
    ///
    /// Errors: as [`Layout::fragment_like`].
    fn fragment_layout(&self) -> Result<Layout, LayoutError>;

    /// The compact layout whose strides have the same order as those of this map.
    ///
    /// Errors: as [`Layout::layout_like`].
    fn compact_like(&self) -> Result<Layout, LayoutError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for tilewright_layout::Layout {}
    impl Sealed for tilewright_layout::Composed {}
}

impl Fragmented for Layout {
    fn fragment_layout(&self) -> Result<Layout, LayoutError> {
        self.fragment_like()
    }

    fn compact_like(&self) -> Result<Layout, LayoutError> {
        self.layout_like()
    }
}

impl Fragmented for Composed {
    /// The fragment layout of the inner layout.
    fn fragment_layout(&self) -> Result<Layout, LayoutError> {
        self.inner().fragment_like()
    }

    fn compact_like(&self) -> Result<Layout, LayoutError> {
        self.inner().layout_like()
    }
}

impl<T, L: Offsets> TensorView<'_, T, L>
where
    L::Derived: Fragmented,
{
    /// A fragment of zeros for this view, in elements of type `U`. Mode 0 is the fastest; the other
    /// modes are ordered by their strides (CuTe `make_fragment_like`).
    ///
    /// Errors: as [`Layout::fragment_like`]; mode 0 repeats elements, but each element of a
    /// fragment has one coordinate.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::{Tensor, Tiling};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tensor = Tensor::filled("(8,8):(8,1)".parse::<Layout>()?, 1_u8)?;
    /// let part = tensor.view().local_partition(&"(4,2):(2,1)".parse()?, 5)?;
    /// assert_eq!(part.layout().to_string(), "(2,4):(32,2)");
    /// assert_eq!(part.fragment_like::<f32>()?.layout().to_string(), "(2,4):(1,2)");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "make_fragment_like")]
    #[doc(alias = "make_fragment_A")]
    #[doc(alias = "make_fragment_B")]
    #[doc(alias = "make_fragment_C")]
    pub fn fragment_like<U: Zeroable>(&self) -> Result<Tensor<U>, TensorError> {
        Tensor::zeroed(self.layout().derived()?.fragment_layout()?)
    }

    /// A tensor of zeros of this shape, in elements of type `U`, compact, with the order of the
    /// modes that this view has (CuTe `make_tensor_like`).
    ///
    /// Errors: as [`Layout::layout_like`]; the view repeats elements.
    #[doc(alias = "make_tensor_like")]
    pub fn tensor_like<U: Zeroable>(&self) -> Result<Tensor<U>, TensorError> {
        Tensor::zeroed(self.layout().derived()?.compact_like()?)
    }

    /// A fragment with the elements of this view (CuTe DSL `tensor.load()`).
    ///
    /// Errors: as [`TensorView::fragment_like`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::{Tensor, Tiling, update};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut tensor = Tensor::from_fn("(4,4):(4,1)".parse::<Layout>()?, |index| index)?;
    /// // Thread 3 of 2 x 2 has every other element of every other row: doubled in registers.
    /// let threads: Layout = "(2,2):(1,2)".parse()?;
    /// let mut own = tensor.view().local_partition(&threads, 3)?.load()?;
    /// update(&mut own.view_mut(), |element| *element *= 2)?;
    /// tensor.view_mut().local_partition(&threads, 3)?.store(&own.view())?;
    /// assert_eq!((tensor.get([1, 1])?, tensor.get([1, 2])?), (&10, &9));
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(&self) -> Result<Tensor<T>, TensorError>
    where
        T: NoUninit + Zeroable,
    {
        let mut fragment = self.fragment_like::<T>()?;
        copy(self, &mut fragment.view_mut())?;
        Ok(fragment)
    }
}

impl<T: NoUninit, L: Offsets> TensorViewMut<'_, T, L> {
    /// Writes the elements of a fragment, or of any view of this size, to this view (CuTe DSL
    /// `tensor.store(value)`).
    ///
    /// Errors: the sizes differ (E0420).
    pub fn store<S: Offsets>(&mut self, fragment: &TensorView<'_, T, S>) -> Result<(), TensorError> {
        copy(fragment, self)
    }
}
