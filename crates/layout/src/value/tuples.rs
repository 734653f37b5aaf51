//! Shapes and strides as Rust tuples.
//!
//! Law: `Layout::strided(s, d)` is the layout with the text `s:d`.

use alloc::string::String;
use alloc::vec::Vec;

use crate::refusal::error::{Fits, LayoutError};
use crate::value::layout::Layout;
use crate::value::tree::Tree;

/// A shape or strides, CuTe's `IntTuple`: a number, or a tuple of these. A text such as
/// `"(8,(2,4))"` and a flat list of numbers are accepted, too.
///
/// ```
/// use tilewright_layout::{IntoShape, LayoutError};
///
/// assert_eq!((8, (2, 4)).into_shape()?, "(8,(2,4))".into_shape()?);
/// assert_eq!([8, 2].into_shape()?.to_string(), "(8,2)");
/// # Ok::<(), LayoutError>(())
/// ```
pub trait IntoShape {
    /// The numbers, in the given nesting.
    ///
    /// Errors: the text is none of a shape; a tuple is too long or too deep.
    fn into_shape(self) -> Result<Tree<i64>, LayoutError>;
}

impl IntoShape for Tree<i64> {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        Ok(self)
    }
}

impl IntoShape for &Tree<i64> {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        Ok(self.clone())
    }
}

impl IntoShape for i64 {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        Ok(Tree::from(self))
    }
}

impl IntoShape for i32 {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        i64::from(self).into_shape()
    }
}

impl IntoShape for u32 {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        i64::from(self).into_shape()
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        i64::try_from(self).ok().fits("shape")?.into_shape()
    }
}

impl IntoShape for &str {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        self.parse()
    }
}

impl IntoShape for &String {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        self.parse()
    }
}

impl<const N: usize> IntoShape for [i64; N] {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        Tree::flat(self)
    }
}

impl IntoShape for &[i64] {
    fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
        Tree::flat(self.iter().copied())
    }
}

macro_rules! tuples {
    ($(($($part:ident)+))+) => {$(
        impl<$($part: IntoShape),+> IntoShape for ($($part,)+) {
            fn into_shape(self) -> Result<Tree<i64>, LayoutError> {
                #[expect(non_snake_case, reason = "a variable has the name of its type")]
                let ($($part,)+) = self;
                Tree::tuple([$(&$part.into_shape()?),+])
            }
        }
    )+};
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

impl Layout {
    /// The layout of a shape and strides, as tuples.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let rows = 64;
    /// let panels = Layout::strided((rows, (8, 4)), (8, (1, 8 * rows)))?;
    /// assert_eq!(panels, "(64,(8,4)):(8,(1,512))".parse()?);
    /// # Ok::<(), tilewright_layout::LayoutError>(())
    /// ```
    ///
    /// Errors: as [`Layout::new`] and [`IntoShape::into_shape`].
    pub fn strided(shape: impl IntoShape, strides: impl IntoShape) -> Result<Layout, LayoutError> {
        Layout::new(&shape.into_shape()?, &strides.into_shape()?)
    }

    /// The layout of a list of modes, extents with their strides; `1:0` without any.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// assert_eq!(Layout::of_modes([(4, 1), (8, 4)])?.to_string(), "(4,8):(1,4)");
    /// # Ok::<(), tilewright_layout::LayoutError>(())
    /// ```
    ///
    /// Errors: as [`Layout::new`]; there are too many modes.
    pub fn of_modes(modes: impl IntoIterator<Item = (i64, i64)>) -> Result<Layout, LayoutError> {
        let (shape, strides): (Vec<i64>, Vec<i64>) = modes.into_iter().unzip();
        if shape.is_empty() {
            return Layout::strided(1, 0);
        }
        Layout::strided(&shape[..], &strides[..])
    }
}
