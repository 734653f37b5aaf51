//! Elements of another width, for layouts of any kind.
//!
//! Law: each method is that of the layout itself, of the same name.

use super::combine::vectors;
use super::{AnyLayout, wrong_kind};
use crate::bits::matrix::BitMatrix;
use crate::bits::swizzle::ratio;
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::Expr;
use crate::value::layout::Layout;
use crate::xor::Xor;

macro_rules! widths {
    ($($(#[$about:meta])* $name:ident($($argument:ident),*);)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self $(, $argument: i64)*) -> Result<AnyLayout, LayoutError> {
                    match self {
                        AnyLayout::Integer(layout) => Ok(layout.$name($($argument),*)?.into()),
                        AnyLayout::Launch(layout) => Ok(layout.$name($($argument),*)?.into()),
                        AnyLayout::Coordinate(_) => {
                            wrong_kind(stringify!($name), RefusedOperand::First, "a layout whose values are numbers")
                        }
                        AnyLayout::Xor(layout) => Ok(vectors(layout.composed()?.$name($($argument),*)?)),
                        map => Ok(map.composed_in(stringify!($name), RefusedOperand::First)?.$name($($argument),*)?.into()),
                    }
                }
            )*
        }
    };
}

widths! {
    /// The layout for elements that are `n` times as wide, rounded up as in CuTe:
    /// [`Layout::upcast`](crate::Layout::upcast).
    upcast(n);
    /// The layout for elements that are `n` times as narrow:
    /// [`Layout::downcast`](crate::Layout::downcast).
    downcast(n);
}

impl AnyLayout {
    /// The layout of the same bits as elements of another width:
    /// [`Layout::recast`](crate::Layout::recast).
    ///
    /// A layout with XOR strides is widened by a power of two leaf by leaf
    /// ([`Layout::widen`](crate::Layout::widen)). For any other ratio it is recast as the equal
    /// layout of integers if there is one, else as a map over bits.
    pub fn recast(&self, new_bits: i64, old_bits: i64) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "recast_layout";
        match self {
            AnyLayout::Integer(layout) => Ok(layout.recast(new_bits, old_bits)?.into()),
            AnyLayout::Launch(layout) => Ok(layout.recast(new_bits, old_bits)?.into()),
            AnyLayout::Xor(layout) => {
                let (wider, narrower) = ratio(OP, new_bits, old_bits)?;
                if narrower == 1 && wider.count_ones() == 1 {
                    return Ok(layout.widen(wider)?.into());
                }
                let Ok(integers) = layout.integers() else {
                    return Ok(vectors(layout.composed()?.recast(new_bits, old_bits)?));
                };
                let recast = integers.recast(new_bits, old_bits)?;
                Ok(Layout::<Xor>::of_integers(&recast).map_or_else(|_| recast.into(), AnyLayout::from))
            }
            AnyLayout::Coordinate(_) => wrong_kind(OP, RefusedOperand::First, "a layout whose values are numbers"),
            AnyLayout::LaunchComposed(map) => Ok(map.recast(new_bits, old_bits)?.into()),
            map => Ok(map.composed_in(OP, RefusedOperand::First)?.recast(new_bits, old_bits)?.into()),
        }
    }

    /// The number of elements that are always contiguous and aligned:
    /// [`Layout::max_alignment`](crate::Layout::max_alignment).
    ///
    /// Errors: the values are coordinates, or a composed layout has numbers that are not known
    /// ([`LayoutError::Kind`]).
    pub fn max_alignment(&self) -> Result<Expr, LayoutError> {
        match self {
            AnyLayout::Integer(layout) => Ok(layout.max_alignment().into()),
            AnyLayout::Launch(layout) => Ok(layout.max_alignment()),
            AnyLayout::Coordinate(_) => {
                wrong_kind("max_alignment", RefusedOperand::First, "a layout whose values are numbers")
            }
            map => Ok(map.composed_in("max_alignment", RefusedOperand::First)?.max_alignment().into()),
        }
    }

    /// The bit matrix that equals a layout whose extents are powers of two.
    ///
    /// Errors: the layout is not linear over bits; its numbers are not known
    /// ([`LayoutError::Kind`]).
    pub fn bit_matrix(&self) -> Result<BitMatrix, LayoutError> {
        match self {
            AnyLayout::Integer(layout) => BitMatrix::of_layout(layout),
            AnyLayout::Xor(layout) => layout.bit_matrix(),
            map if map.is_composed() => map.composed_in("bit_matrix", RefusedOperand::First)?.bit_matrix(),
            map => wrong_kind("bit_matrix", RefusedOperand::First, map.not_integer()),
        }
    }
}
