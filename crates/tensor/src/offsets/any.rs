//! Layouts whose kind of strides is known only at run time.
//!
//! Law: that of [`super::Offsets`], for the layout of its kind.

use std::fmt;

use tilewright_layout::{AnyLayout, Composed, Layout, Leaf, Profile, Tree};

use super::Offsets;
use crate::error::TensorError;
use crate::walk::Walk;
use crate::walk::sealed::Sealed;

/// A layout of any kind whose values are offsets, such as one that is read from text or comes from
/// another language.
///
/// Integer strides are kept, so that loops over them are as fast as over a [`Layout`]. XOR strides
/// become a composed layout.
///
/// ```
/// use tilewright_layout::AnyLayout;
/// use tilewright_tensor::{AnyOffsets, Offsets, TensorView};
///
/// let read = |text: &str| AnyOffsets::try_from(&text.parse::<AnyLayout>().unwrap());
/// let columns = read("(2,3):(1,2)").unwrap();
/// let swizzled = read("S<1,0,1> o 0 o (2,3):(2,1)").unwrap();
/// assert_eq!(TensorView::new(b"abcdef", columns).unwrap().get([1, 1]), Ok(&b'd'));
/// assert_eq!(TensorView::new(b"abcdef", swizzled).unwrap().get([1, 1]), Ok(&b'c'));
/// assert_eq!(read("(2,3):(1@0,1@1)").unwrap_err().code(), "E0414");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum AnyOffsets {
    /// Integer strides.
    Plain(Layout),
    /// A layout seen through a map.
    Mapped(Box<Composed>),
}

impl TryFrom<&AnyLayout> for AnyOffsets {
    type Error = TensorError;

    /// Errors: the values are not integers, or are known only at launch (E0414).
    fn try_from(layout: &AnyLayout) -> Result<AnyOffsets, TensorError> {
        match layout {
            AnyLayout::Integer(layout) => Ok(AnyOffsets::Plain(layout.clone())),
            AnyLayout::Composed(composed) => Ok(AnyOffsets::Mapped(composed.clone())),
            AnyLayout::Xor(layout) => Ok(AnyOffsets::Mapped(Box::new(layout.derived()?))),
            other => Err(TensorError::NoOffsets { layout: other.to_string().into(), kind: other.kind().name() }),
        }
    }
}

/// Calls a method of the contained layout, whatever its kind.
macro_rules! of_kind {
    ($offsets:expr, $layout:ident => $value:expr) => {
        match $offsets {
            AnyOffsets::Plain($layout) => $value,
            AnyOffsets::Mapped($layout) => {
                let $layout = &**$layout;
                $value
            }
        }
    };
}

impl fmt::Display for AnyOffsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_kind!(self, layout => fmt::Display::fmt(layout, f))
    }
}

impl Sealed for AnyOffsets {
    // Integer strides are walked as a composed layout whose map is the identity.
    const MAPPED: bool = true;
}

impl Offsets for AnyOffsets {
    type Derived = Composed;

    fn derived(&self) -> Result<Composed, TensorError> {
        of_kind!(self, layout => layout.composed())
    }

    fn shape(&self) -> Tree<i64> {
        of_kind!(self, layout => Offsets::shape(layout))
    }

    fn profile(&self) -> Profile {
        of_kind!(self, layout => Offsets::profile(layout))
    }

    fn rank(&self) -> usize {
        of_kind!(self, layout => Offsets::rank(layout))
    }

    fn size(&self) -> i64 {
        of_kind!(self, layout => Offsets::size(layout))
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        of_kind!(self, layout => Offsets::offset(layout, index))
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        of_kind!(self, layout => layout.offset_at(coord))
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        of_kind!(self, layout => Offsets::range(layout))
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        of_kind!(self, layout => Offsets::collision(layout))
    }

    fn walk(&self) -> Walk<Self> {
        match self {
            AnyOffsets::Plain(layout) => Walk::of_composed(&Composed::from(layout)),
            AnyOffsets::Mapped(composed) => Walk::of_composed(composed),
        }
    }

    fn leaves(&self) -> Option<&[Leaf]> {
        of_kind!(self, layout => Offsets::leaves(layout))
    }

    fn flat_leaves(&self) -> Option<&[Leaf]> {
        of_kind!(self, layout => layout.flat_leaves())
    }
}
