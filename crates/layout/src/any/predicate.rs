//! Properties of layouts of any kind as functions.
//!
//! Law: each method is that of the layout itself. A composed layout of coordinates is first
//! converted to the equal map of indices.

use alloc::vec::Vec;

use super::{AnyLayout, AnyTree, CoordinateStep, wrong_kind};
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::Expr;
use crate::value::layout::Layout;
use crate::value::tree::Tree;

macro_rules! properties {
    ($(
        $(#[$about:meta])*
        $name:ident $([$coordinates:ident => $of_coordinates:expr])?,
        $xor:ident => $of_xor:expr $(, $launch:ident => $of_launch:expr)?;
    )*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self) -> Result<bool, LayoutError> {
                    match &*self.by_index()? {
                        AnyLayout::Xor($xor) => $of_xor,
                        AnyLayout::Composed(map) => map.$name(),
                        AnyLayout::Launch(layout) => layout.$name(),
                        $(AnyLayout::LaunchComposed($launch) => $of_launch,)?
                        $(AnyLayout::Coordinate($coordinates) => $of_coordinates,)?
                        map => Ok(map.integer_in(stringify!($name), RefusedOperand::First)?.$name()),
                    }
                }
            )*
        }
    };
}

properties! {
    /// Whether the values are exactly the numbers from 0 to the cosize minus one, or exactly the
    /// coordinates in the coshape: [`Layout::is_surjective`](crate::Layout::is_surjective).
    is_surjective [layout => layout.is_onto("is_surjective", |part| AnyLayout::from(part.clone()).is_surjective())],
        layout => layout.is_surjective(), map => map.is_surjective();
    /// Whether the values are exactly the numbers from 0 to the size minus one, each once:
    /// [`Layout::is_bijective`](crate::Layout::is_bijective).
    is_bijective [layout => onto_each_coordinate_once(layout)],
        layout => layout.is_bijective(), map => map.is_bijective();
    /// The same as [`AnyLayout::is_bijective`]: no offset is missing and none is shared.
    is_compact [layout => onto_each_coordinate_once(layout)],
        layout => layout.is_compact(), map => map.is_bijective();
    /// Whether the values form an interval without a hole:
    /// [`Layout::is_contiguous`](crate::Layout::is_contiguous).
    is_contiguous, layout => layout.composed()?.is_contiguous();
    /// Whether the values increase strictly with the index:
    /// [`Layout::is_ordered`](crate::Layout::is_ordered).
    is_ordered, layout => layout.composed()?.is_ordered();
}

/// Whether each coordinate in the coshape is the value of one index.
fn onto_each_coordinate_once(layout: &Layout<CoordinateStep>) -> Result<bool, LayoutError> {
    let along = |part: &Layout<Expr>| AnyLayout::from(part.clone()).is_bijective();
    Ok(layout.is_onto("is_bijective", along)? && layout.is_injective()?)
}

impl AnyLayout {
    /// Whether different coordinates have different values:
    /// [`Layout::is_injective`](crate::Layout::is_injective).
    ///
    /// Errors: as [`Layout::is_injective`](crate::Layout::is_injective); a composed layout of
    /// coordinates ([`LayoutError::Kind`]).
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        match &*self.by_index()? {
            AnyLayout::Integer(layout) => layout.is_injective(),
            AnyLayout::Launch(layout) => layout.is_injective(),
            AnyLayout::Xor(layout) => layout.is_injective(),
            AnyLayout::Composed(map) => map.is_injective(),
            AnyLayout::Coordinate(layout) => layout.is_injective(),
            AnyLayout::LaunchComposed(map) => map.is_injective(),
            _ => wrong_kind("is_injective", RefusedOperand::First, "a layout whose values are numbers"),
        }
    }

    /// Whether, sorted by stride, each mode divides the next stride:
    /// [`Layout::is_tractable`](crate::Layout::is_tractable).
    ///
    /// Errors: it depends on a number that is not known; strides that are not numbers
    /// ([`LayoutError::Kind`]).
    pub fn is_tractable(&self) -> Result<bool, LayoutError> {
        match self {
            AnyLayout::Launch(layout) => layout.is_tractable(),
            map => Ok(map.integer_in("is_tractable", RefusedOperand::First)?.is_tractable()),
        }
    }

    /// The values, each once, in increasing order: numbers, or XOR steps.
    ///
    /// Errors: as [`Layout::image`](crate::Layout::image); kinds other than integers, XOR steps and
    /// composed ones ([`LayoutError::Kind`]).
    pub fn image(&self) -> Result<AnyTree, LayoutError> {
        let values: Vec<i64> = match &*self.by_index()? {
            AnyLayout::Xor(layout) => return Ok(Tree::flat(layout.image()?)?.into()),
            AnyLayout::Composed(map) => map.image()?,
            map => map.integer_in("image", RefusedOperand::First)?.image()?,
        };
        Ok(Tree::flat(values)?.into())
    }
}
