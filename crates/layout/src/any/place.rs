//! Values of layouts of any kind, and slices.
//!
//! Law: a value is a number, or a coordinate of the codomain if the strides are coordinate steps.
//! An XOR value is the number with its bits. A slice `R` at its offset has the values of the
//! layout: `A(c) = offset + R(d)`.

use super::{AnyCoord, AnyLayout, AnyTree, CoordinateStep, wrong_kind};
use crate::refusal::error::{LayoutError, RefusedOperand};
use crate::symbolic::Expr;
use crate::value::coord::Coord;
use crate::value::layout::Layout;
use crate::value::tree::Tree;
use crate::xor::Xor;

const KNOWN: &str = "a coordinate whose indices are known";

/// The number with these bits.
fn number(value: Xor) -> AnyTree {
    // An XOR value has 63 bits.
    i64::try_from(value.bits()).unwrap_or(i64::MAX).into()
}

/// The value of a coordinate layout as a nested coordinate of its codomain.
fn position(layout: &Layout<CoordinateStep>, value: &CoordinateStep) -> Result<AnyTree, LayoutError> {
    Ok(value.in_profile(&layout.coprofile()?)?.into())
}

/// Slices of every kind of layout, by coordinates of the matching kind.
macro_rules! sliced {
    ($($(#[$about:meta])* $name:ident;)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self, coord: &AnyCoord) -> Result<AnyLayout, LayoutError> {
                    if let Some(coord) = coord.integer() {
                        match self {
                            AnyLayout::Integer(layout) => return Ok(layout.$name(coord)?.into()),
                            AnyLayout::Xor(layout) => return Ok(layout.$name(coord)?.into()),
                            AnyLayout::Composed(map) => return Ok(map.$name(coord)?.into()),
                            _ => {}
                        }
                    }
                    let coord: &Coord<Expr> = &coord.launch();
                    match self {
                        AnyLayout::Xor(_) => wrong_kind(stringify!($name), RefusedOperand::Second, KNOWN),
                        AnyLayout::Coordinate(layout) => Ok(layout.$name(coord)?.into()),
                        AnyLayout::CoordinateComposed(map) => Ok(map.$name(coord)?.into()),
                        map if map.is_composed() => {
                            Ok(map.launch_composed_in(stringify!($name), RefusedOperand::First)?.$name(coord)?.into())
                        }
                        layout => Ok(layout.launch_in(stringify!($name), RefusedOperand::First)?.$name(coord)?.into()),
                    }
                }
            )*
        }
    };
}

sliced! {
    /// The sublayout of the open modes of a coordinate: [`Layout::slice`].
    ///
    /// Errors: as [`Layout::slice`]; indices known at launch, for XOR strides
    /// ([`LayoutError::Kind`]).
    slice;
    /// The sublayout of the modes that a coordinate fixes: [`Layout::dice`].
    ///
    /// Errors: as [`AnyLayout::slice`].
    dice;
}

impl AnyLayout {
    /// The value at an index: a number, or a coordinate of the codomain.
    ///
    /// Errors: the value is not representable.
    ///
    /// ```
    /// use tilewright_layout::AnyLayout;
    ///
    /// let value = |layout: &str, index: i64| layout.parse::<AnyLayout>().unwrap().eval(index).unwrap().to_string();
    /// assert_eq!(value("(4,8):(8,1)", 6), "17");
    /// assert_eq!(value("(4,8):(1@0,1@1)", 6), "(2,1)");
    /// assert_eq!(value("S<1,0,3> o 0 o (4,8):(8,1)", 1), "9");
    /// ```
    pub fn eval(&self, index: i64) -> Result<AnyTree, LayoutError> {
        match self {
            AnyLayout::Integer(layout) => Ok(layout.eval(&index)?.into()),
            AnyLayout::Xor(layout) => Ok(number(layout.eval(&index)?)),
            AnyLayout::Composed(map) => Ok(map.eval(&index)?.into()),
            AnyLayout::Launch(layout) => Ok(layout.eval(&Expr::from(index))?.into()),
            AnyLayout::Coordinate(layout) => position(layout, &layout.eval(&Expr::from(index))?),
            AnyLayout::LaunchComposed(map) => Ok(map.eval(&Expr::from(index))?.into()),
            AnyLayout::CoordinateComposed(map) => Ok(map.eval(&Expr::from(index))?.into()),
        }
    }

    /// The value at a coordinate: a number, or a coordinate of the codomain.
    ///
    /// Errors: the coordinate does not fit the shape; the value is not representable; for XOR
    /// strides, indices that are not numbers or not known ([`LayoutError::Kind`]).
    pub fn eval_at(&self, coord: &AnyTree) -> Result<AnyTree, LayoutError> {
        const OP: &str = "eval";
        if let Some(coord) = coord.integer() {
            match self {
                AnyLayout::Integer(layout) => return Ok(layout.eval_at(coord)?.into()),
                AnyLayout::Xor(layout) => return Ok(number(layout.eval_at(coord)?)),
                AnyLayout::Composed(map) => return Ok(map.eval_at(coord)?.into()),
                _ => {}
            }
        }
        let Some(coord) = coord.launch() else { return wrong_kind(OP, RefusedOperand::Second, "a coordinate") };
        match self {
            AnyLayout::Xor(_) => wrong_kind(OP, RefusedOperand::Second, KNOWN),
            AnyLayout::Coordinate(layout) => position(layout, &layout.eval_at(&coord)?),
            AnyLayout::CoordinateComposed(map) => Ok(map.eval_at(&coord)?.into()),
            map if map.is_composed() => Ok(map.launch_composed_in(OP, RefusedOperand::First)?.eval_at(&coord)?.into()),
            layout => Ok(layout.launch_in(OP, RefusedOperand::First)?.eval_at(&coord)?.into()),
        }
    }

    /// The slice, and its offset: [`Layout::slice_and_offset`].
    ///
    /// Errors: as [`Layout::slice_and_offset`]; a composed layout of numbers that are not known
    /// ([`LayoutError::Kind`]).
    pub fn slice_and_offset(&self, coord: &AnyCoord) -> Result<(AnyLayout, AnyTree), LayoutError> {
        const OP: &str = "slice_and_offset";
        let whole = self.by_index()?;
        match (&*whole, coord.integer()) {
            (AnyLayout::Integer(layout), Some(coord)) => {
                let (slice, offset) = layout.slice_and_offset(coord)?;
                Ok((slice.into(), offset.into()))
            }
            (AnyLayout::Xor(layout), Some(coord)) => {
                let (slice, offset) = layout.slice_and_offset(coord)?;
                Ok((slice.into(), number(offset)))
            }
            (AnyLayout::Composed(map), Some(coord)) => {
                let (slice, offset) = map.slice_and_offset(coord)?;
                Ok((slice.into(), offset.into()))
            }
            (AnyLayout::Xor(_) | AnyLayout::Composed(_), None) => wrong_kind(OP, RefusedOperand::Second, KNOWN),
            (AnyLayout::Coordinate(layout), _) => {
                let (slice, offset) = layout.slice_and_offset(&coord.launch())?;
                Ok((slice.into(), position(layout, &offset)?))
            }
            (map, _) if map.is_composed() => {
                wrong_kind(OP, RefusedOperand::First, "a layout, or a composed layout of known numbers")
            }
            (layout, _) => {
                let (slice, offset) = layout.launch_in(OP, RefusedOperand::First)?.slice_and_offset(&coord.launch())?;
                Ok((slice.into(), offset.into()))
            }
        }
    }

    /// The layout with its origin moved to a coordinate, and the offset of that coordinate; None if
    /// the returned layout includes the offset ([`Layout::domain_offset`]).
    ///
    /// Errors: as [`Layout::domain_offset`]; indices known at launch, for XOR strides
    /// ([`LayoutError::Kind`]).
    pub fn domain_offset(&self, coord: &AnyTree) -> Result<(AnyLayout, Option<AnyTree>), LayoutError> {
        const OP: &str = "domain_offset";
        if let Some(coord) = coord.integer() {
            match self {
                AnyLayout::Integer(layout) => {
                    let (moved, offset) = layout.domain_offset(coord)?;
                    return Ok((moved.into(), Some(offset.into())));
                }
                AnyLayout::Xor(layout) => {
                    let (moved, offset) = layout.domain_offset(coord)?;
                    return Ok((moved.into(), Some(number(offset))));
                }
                AnyLayout::Composed(map) => return Ok((map.domain_offset(coord)?.into(), None)),
                _ => {}
            }
        }
        let Some(coord): Option<Tree<Expr>> = coord.launch() else {
            return wrong_kind(OP, RefusedOperand::Second, "a coordinate without _");
        };
        match self {
            AnyLayout::Xor(_) => wrong_kind(OP, RefusedOperand::Second, KNOWN),
            AnyLayout::Coordinate(layout) => {
                let (moved, offset) = layout.domain_offset(&coord)?;
                Ok((moved.into(), Some(position(layout, &offset)?)))
            }
            AnyLayout::CoordinateComposed(map) => Ok((map.domain_offset(&coord)?.into(), None)),
            map if map.is_composed() => {
                Ok((map.launch_composed_in(OP, RefusedOperand::First)?.domain_offset(&coord)?.into(), None))
            }
            layout => {
                let (moved, offset) = layout.launch_in(OP, RefusedOperand::First)?.domain_offset(&coord)?;
                Ok((moved.into(), Some(offset.into())))
            }
        }
    }
}
