//! Elements of another width, for layouts of any kind.
//!
//! Law: each method is that of the layout itself, of the same name.

use super::combine::vectors;
use super::{AnyLayout, wrong_kind};
use crate::bits::matrix::BitMatrix;
use crate::refusal::error::{LayoutError, Operand};
use crate::symbolic::Expr;

macro_rules! widths {
    ($($(#[$about:meta])* $name:ident($($argument:ident),*) $(, $launch:ident => $of_launch:expr)?;)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self $(, $argument: i64)*) -> Result<AnyLayout, LayoutError> {
                    match self {
                        AnyLayout::Integer(layout) => Ok(layout.$name($($argument),*)?.into()),
                        AnyLayout::Launch(layout) => Ok(layout.$name($($argument),*)?.into()),
                        AnyLayout::Xor(layout) => Ok(vectors(layout.composed()?.$name($($argument),*)?)),
                        AnyLayout::Coordinate(_) => {
                            wrong_kind(stringify!($name), Operand::First, "a layout whose values are numbers")
                        }
                        $(AnyLayout::LaunchComposed($launch) => $of_launch,)?
                        map => Ok(map.composed_in(stringify!($name), Operand::First)?.$name($($argument),*)?.into()),
                    }
                }
            )*
        }
    };
}

widths! {
    /// The layout for elements `n` times as wide, rounded up as in CuTe:
    /// [`Layout::upcast`](crate::Layout::upcast).
    upcast(n);
    /// The layout for elements of which `n` make one:
    /// [`Layout::downcast`](crate::Layout::downcast).
    downcast(n);
    /// The layout of the same bits read as elements of another width:
    /// [`Layout::recast`](crate::Layout::recast).
    recast(new_bits, old_bits), map => Ok(map.recast(new_bits, old_bits)?.into());
}

impl AnyLayout {
    /// The number of elements that always lie together, aligned:
    /// [`Layout::max_alignment`](crate::Layout::max_alignment).
    ///
    /// Errors: the values are coordinates, or a composed layout's that are not known
    /// ([`LayoutError::Kind`]).
    pub fn max_alignment(&self) -> Result<Expr, LayoutError> {
        match self {
            AnyLayout::Integer(layout) => Ok(layout.max_alignment().into()),
            AnyLayout::Launch(layout) => Ok(layout.max_alignment()),
            AnyLayout::Coordinate(_) => {
                wrong_kind("max_alignment", Operand::First, "a layout whose values are numbers")
            }
            map => Ok(map.composed_in("max_alignment", Operand::First)?.max_alignment().into()),
        }
    }

    /// The linear map over bits that a layout with extents that are powers of two is.
    ///
    /// Errors: it is none; its numbers are not known ([`LayoutError::Kind`]).
    pub fn bit_matrix(&self) -> Result<BitMatrix, LayoutError> {
        match self {
            AnyLayout::Integer(layout) => BitMatrix::of_layout(layout),
            AnyLayout::Xor(layout) => layout.bit_matrix(),
            map if map.is_composed() => map.composed_in("bit_matrix", Operand::First)?.bit_matrix(),
            map => wrong_kind("bit_matrix", Operand::First, map.not_integer()),
        }
    }
}
