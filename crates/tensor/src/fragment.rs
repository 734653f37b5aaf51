//! Fragments: a thread's own copy of what a view shows.
//!
//! Law: a fragment has the shape of the view, and memory of its own, compact: [`Layout::fragment_like`] says in which order.

use bytemuck::Zeroable;
use tilewright_layout::{Composed, Layout, LayoutError};

use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::tensor::Tensor;
use crate::view::TensorView;

/// A map that says how the elements of a fragment are ordered.
pub trait Fragmented: sealed::Sealed {
    /// The layout of a fragment.
    ///
    /// Errors: as [`Layout::fragment_like`].
    fn fragment_layout(&self) -> Result<Layout, LayoutError>;

    /// The compact layout that keeps which mode is faster than which.
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
    /// That of the inner layout.
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
    /// A tensor of zeros for what this view shows, in elements of type `U`: mode 0 first and fastest, the others by their strides (CuTe
    /// `make_fragment_like`).
    ///
    /// Errors: as [`Layout::fragment_like`]; mode 0 repeats elements: what is written must have one coordinate.
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

    /// A tensor of zeros of this shape, in elements of type `U`, compact, with the order of the modes that this view has (CuTe `make_tensor_like`).
    ///
    /// Errors: as [`Layout::layout_like`]; the view repeats elements.
    #[doc(alias = "make_tensor_like")]
    pub fn tensor_like<U: Zeroable>(&self) -> Result<Tensor<U>, TensorError> {
        Tensor::zeroed(self.layout().derived()?.compact_like()?)
    }
}
