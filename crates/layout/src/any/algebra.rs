//! Complements, inverses, sums and equality of layouts of any kind.
//!
//! Law: each method is that of the layout itself. A composed layout of coordinates is first
//! converted to the equal map of indices.

use super::{AnyLayout, AnyTree, wrong_kind};
use crate::algebra::vector::{max_common_layout, max_common_vector};
use crate::refusal::error::{Fits, LayoutError, RefusedOperand};
use crate::symbolic::{Expr, Symbolic};
use crate::tile::thread_value::make_layout_tv;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Stride, Truth};
use crate::value::tree::Tree;

/// The operand that is expected by operations that are not defined for all kinds.
const OTHER: &str = "a layout whose values are numbers, all known";

macro_rules! of_map_of_indices {
    ($($(#[$about:meta])* $name:ident: $($kind:ident)|+;)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self) -> Result<AnyLayout, LayoutError> {
                    match &*self.by_index()? {
                        $(AnyLayout::$kind(layout) => Ok(layout.$name()?.into()),)+
                        _ => wrong_kind(stringify!($name), RefusedOperand::First, OTHER),
                    }
                }
            )*
        }
    };
}

of_map_of_indices! {
    /// The complement without a target: [`Layout::complement_open`].
    complement_open: Integer | Launch | Coordinate | Xor | Composed;
    /// The weak complement, which may leave holes, without a target:
    /// [`Layout::weak_complement_open`].
    weak_complement_open: Integer | Launch | Coordinate | Xor | Composed;
    /// The largest layout `R` with `L(R(i)) = i`: [`Layout::right_inverse`].
    right_inverse: Integer | Launch | Coordinate | Xor | Composed | LaunchComposed;
    /// A layout that maps a value to an index with this value: [`Layout::left_inverse`].
    left_inverse: Integer | Launch | Coordinate | Xor | Composed | LaunchComposed;
    /// The layout of indices that the modes of stride 0 generate: [`Layout::nullspace`].
    nullspace: Integer | Launch | Coordinate | Xor | Composed | LaunchComposed;
}

macro_rules! complements {
    ($($(#[$about:meta])* $name:ident, $open:ident;)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self, target: &AnyTree) -> Result<AnyLayout, LayoutError> {
                    const OP: &str = stringify!($name);
                    let whole = self.by_index()?;
                    match (&*whole, target.integer()) {
                        (AnyLayout::Integer(layout), Some(target)) => {
                            return Ok(layout.$name(&target.product()?)?.into());
                        }
                        (AnyLayout::Xor(layout), Some(target)) => return Ok(layout.$name(&target.product()?)?.into()),
                        (AnyLayout::Composed(map), Some(target)) => return Ok(map.$name(&target.product()?)?.into()),
                        _ => {}
                    }
                    let Some(target) = target.launch() else {
                        return wrong_kind(OP, RefusedOperand::Second, "a shape or a layout");
                    };
                    if let AnyLayout::Coordinate(layout) = &*whole {
                        return Ok(layout.$name(&target)?.into());
                    }
                    let layout = whole.launch_in(OP, RefusedOperand::First)?;
                    let filled = layout.$name(&target.product()?)?;
                    Ok(shaped_like(&target, filled, &layout.$open()?)?.into())
                }
            )*
        }
    };
}

complements! {
    /// The layout that together with this one covers each offset of `[0, target)` once:
    /// [`Layout::complement`]. The target is a number, or a shape.
    ///
    /// Errors: as [`Layout::complement`]; a composed layout whose numbers are not known
    /// ([`LayoutError::Kind`]).
    complement, complement_open;
    /// The layout that fills the gaps with as many whole copies as fit:
    /// [`Layout::weak_complement`].
    ///
    /// Errors: as [`AnyLayout::complement`].
    weak_complement, weak_complement_open;
}

macro_rules! compact_like {
    ($($(#[$about:meta])* $name:ident, $op:literal;)*) => {
        impl AnyLayout {
            $(
                $(#[$about])*
                pub fn $name(&self) -> Result<AnyLayout, LayoutError> {
                    match &*self.by_index()? {
                        AnyLayout::Composed(map) => Ok(map.inner().$name()?.into()),
                        AnyLayout::Launch(layout) => Ok(layout.$name()?.into()),
                        map => Ok(map.integer_in($op, RefusedOperand::First)?.$name()?.into()),
                    }
                }
            )*
        }
    };
}

compact_like! {
    /// The compact layout of the same shape with modes in the same order of strides:
    /// [`Layout::layout_like`].
    ///
    /// Errors: as [`Layout::layout_like`]; coordinates or bit vectors ([`LayoutError::Kind`]).
    layout_like, "make_layout_like";
    /// The compact layout of the register fragment for this layout: [`Layout::fragment_like`].
    ///
    /// Errors: as [`AnyLayout::layout_like`].
    fragment_like, "make_fragment_like";
}

/// A complement that keeps the extents of its target, for targets with an anonymous extent, whose
/// product is no expression.
///
/// `whole` is the complement in the product of the target. `open` is the complement without a
/// target, whose last mode begins at the next copy; the rest of the target is divided among its
/// extents.
fn shaped_like(target: &Tree<Expr>, whole: Layout<Expr>, open: &Layout<Expr>) -> Result<Layout<Expr>, LayoutError> {
    let unnamed = target.parameters().iter().any(|parameter| parameter.name().is_none());
    let Some((last, gaps)) = open.leaves().split_last().filter(|_| unnamed && target.leaves().len() > 1) else {
        return Ok(whole);
    };
    let rest = target.flatten()?.ceil_div(&Tree::leaf(last.stride.clone()))?;
    let mut leaves = gaps.to_vec();
    let mut stride = last.stride.clone();
    for extent in rest.leaves() {
        leaves.push(Leaf { extent: extent.clone(), stride: stride.clone() });
        stride = stride.times(extent).fits("complement")?;
    }
    let shaped = Layout::from_tree(Tree::flat(leaves)?)?;
    Ok(if shaped.size().same(&whole.size()).proved() { shaped.coalesce()? } else { whole })
}

impl AnyLayout {
    /// The layout with value `A(i) + B(i)` at index `i`: [`Layout::add`].
    ///
    /// Errors: as [`Layout::add`]; the kinds have no join ([`LayoutError::Kind`]).
    pub fn add(&self, other: &AnyLayout) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "layout_add";
        if self.is_composed() || other.is_composed() {
            let (a, b) = (self.composed_in(OP, RefusedOperand::First)?, other.composed_in(OP, RefusedOperand::Second)?);
            return Ok(a.add(&b)?.into());
        }
        super::paired!(OP, self, other, (a, b) => Ok(a.add(b)?.into()))
    }

    /// Whether both are the same function of an index: [`Layout::same_function`],
    /// [`Composed::equivalent`](crate::Composed::equivalent).
    ///
    /// Errors: the kinds have no join ([`LayoutError::Kind`]); too many indices of composed layouts
    /// would have to be compared.
    pub fn same_function(&self, other: &AnyLayout) -> Result<Truth, LayoutError> {
        const OP: &str = "equivalent";
        let bits_and_integers = matches!(
            (self, other),
            (AnyLayout::Xor(_), AnyLayout::Integer(_)) | (AnyLayout::Integer(_), AnyLayout::Xor(_))
        );
        if bits_and_integers || self.is_composed() || other.is_composed() {
            if self == other {
                return Ok(Truth::Proved);
            }
            let (a, b) = (self.composed_in(OP, RefusedOperand::First)?, other.composed_in(OP, RefusedOperand::Second)?);
            return Ok(Truth::from(a.equivalent(&b)?));
        }
        super::paired!(OP, self, other, (a, b) => Ok(a.same_function(b)))
    }

    /// Whether both have the same modes, ignoring the strides of extent-1 modes. Composed layouts
    /// are compared as written.
    pub fn same_modes(&self, other: &AnyLayout) -> Truth {
        match (self, other) {
            (AnyLayout::Integer(a), AnyLayout::Integer(b)) => a.same_modes(b),
            (AnyLayout::Xor(a), AnyLayout::Xor(b)) => a.same_modes(b),
            (AnyLayout::Coordinate(a), AnyLayout::Coordinate(b)) => a.same_modes(b),
            _ => match (self.launch(), other.launch()) {
                (Some(a), Some(b)) => a.same_modes(&b),
                _ => Truth::from(self == other),
            },
        }
    }

    /// The shape of the tile, and the layout from (thread, value) to the index in the tile:
    /// [`make_layout_tv`].
    ///
    /// Errors: as [`make_layout_tv`]; kinds other than integers and numbers known at launch
    /// ([`LayoutError::Kind`]).
    pub fn thread_value(&self, values: &AnyLayout) -> Result<(AnyTree, AnyLayout), LayoutError> {
        const OP: &str = "make_layout_tv";
        if let (AnyLayout::Integer(threads), AnyLayout::Integer(values)) = (self, values) {
            let (tile, layout) = make_layout_tv(threads, values)?;
            return Ok((tile.into(), layout.into()));
        }
        let (threads, values) = self.numbers(OP, values)?;
        let (tile, layout) = make_layout_tv(&threads, &values)?;
        Ok((tile.into(), layout.into()))
    }

    /// A layout of indices of elements that are contiguous in both layouts: [`max_common_layout`].
    ///
    /// Errors: as [`max_common_layout`]; coordinates ([`LayoutError::Kind`]).
    pub fn max_common_layout(&self, other: &AnyLayout) -> Result<AnyLayout, LayoutError> {
        const OP: &str = "max_common_layout";
        if self.is_map_of_bits() || other.is_map_of_bits() {
            let (a, b) = (self.composed_in(OP, RefusedOperand::First)?, other.composed_in(OP, RefusedOperand::Second)?);
            return Ok(a.max_common_layout(&b)?.into());
        }
        if let (AnyLayout::Integer(a), AnyLayout::Integer(b)) = (self, other) {
            return Ok(max_common_layout(a, b)?.into());
        }
        let (a, b) = self.numbers(OP, other)?;
        Ok(max_common_layout(&a, &b)?.into())
    }

    /// The number of elements that are contiguous in both layouts: [`max_common_vector`].
    ///
    /// Errors: as [`AnyLayout::max_common_layout`].
    pub fn max_common_vector(&self, other: &AnyLayout) -> Result<Expr, LayoutError> {
        const OP: &str = "max_common_vector";
        if self.is_map_of_bits() || other.is_map_of_bits() {
            let (a, b) = (self.composed_in(OP, RefusedOperand::First)?, other.composed_in(OP, RefusedOperand::Second)?);
            return Ok(a.max_common_vector(&b)?.into());
        }
        if let (AnyLayout::Integer(a), AnyLayout::Integer(b)) = (self, other) {
            return Ok(max_common_vector(a, b)?.into());
        }
        let (a, b) = self.numbers(OP, other)?;
        max_common_vector(&a, &b)
    }

    /// Both layouts with expressions as numbers.
    fn numbers(&self, op: &'static str, other: &AnyLayout) -> Result<(Layout<Expr>, Layout<Expr>), LayoutError> {
        let (a, b) = (self.launch_in(op, RefusedOperand::First)?, other.launch_in(op, RefusedOperand::Second)?);
        Ok((a.into_owned(), b.into_owned()))
    }

    /// The largest value plus one: [`Layout::cosize`].
    ///
    /// Errors: as [`Layout::cosize`]; a composed layout with numbers that are not known, unless it
    /// equals a layout plus an offset ([`LayoutError::Kind`]).
    pub fn cosize(&self) -> Result<Expr, LayoutError> {
        match &*self.by_index()? {
            AnyLayout::Integer(layout) => Ok(layout.cosize()?.into()),
            AnyLayout::Launch(layout) => layout.cosize(),
            AnyLayout::Coordinate(layout) => layout.cosize(),
            AnyLayout::Xor(layout) => Ok(layout.cosize()?.into()),
            AnyLayout::Composed(map) => Ok(map.cosize()?.into()),
            AnyLayout::LaunchComposed(map) => map.cosize(),
            _ => wrong_kind("cosize", RefusedOperand::First, "a layout, or a composed layout of known numbers"),
        }
    }

    /// The shape of the codomain: the cosize or, for coordinate values, an extent for each mode.
    ///
    /// Errors: as [`AnyLayout::cosize`].
    pub fn coshape(&self) -> Result<AnyTree, LayoutError> {
        match self {
            AnyLayout::Coordinate(layout) => Ok(layout.coshape()?.into()),
            _ => Ok(self.cosize()?.into()),
        }
    }
}
