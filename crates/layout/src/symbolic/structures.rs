//! Substitution in structures of expressions: trees, coordinates, layouts, tilers and composed
//! layouts.
//!
//! Law: substitution in a structure is substitution in each of its parts.

use alloc::vec::Vec;

use super::expression::Expr;
use super::values::{Symbolic, Values};
use crate::coordinate::Coordinate;
use crate::refusal::error::{Fits, LayoutError};
use crate::tile::tiler::Tiler;
use crate::value::coord::Slot;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::tree::Tree;

impl<T: Symbolic> Symbolic for Tree<T> {
    type Numbers = Tree<T::Numbers>;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        self.leaves().iter().for_each(|leaf| leaf.visit(each));
    }

    fn substitute(&self, values: &Values) -> Result<Tree<T>, LayoutError> {
        self.try_map(|leaf| leaf.substitute(values))
    }

    fn numbers(&self, values: &Values) -> Result<Tree<T::Numbers>, LayoutError> {
        self.try_map(|leaf| leaf.numbers(values))
    }
}

impl Symbolic for Slot<Expr> {
    type Numbers = Slot<i64>;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        if let Slot::At(index) = self {
            each(index);
        }
    }

    fn substitute(&self, values: &Values) -> Result<Slot<Expr>, LayoutError> {
        Ok(match self {
            Slot::At(index) => Slot::At(index.substitute(values)?),
            Slot::All => Slot::All,
        })
    }

    fn numbers(&self, values: &Values) -> Result<Slot<i64>, LayoutError> {
        Ok(match self {
            Slot::At(index) => Slot::At(index.numbers(values)?),
            Slot::All => Slot::All,
        })
    }
}

/// A step with the same paths, with a function applied to each scale.
fn rescaled<N: Extent>(
    step: &Coordinate<Expr>,
    scale: impl Fn(&Expr) -> Result<N, LayoutError>,
) -> Result<Coordinate<N>, LayoutError> {
    step.terms().try_fold(Coordinate::zero(), |sum, (path, own)| {
        sum.plus(&Coordinate::step(scale(own)?, path)).fits("substitute")
    })
}

impl Symbolic for Coordinate<Expr> {
    type Numbers = Coordinate;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        self.terms().for_each(|(_, scale)| each(scale));
    }

    fn substitute(&self, values: &Values) -> Result<Coordinate<Expr>, LayoutError> {
        rescaled(self, |scale| scale.substitute(values))
    }

    fn numbers(&self, values: &Values) -> Result<Coordinate, LayoutError> {
        rescaled(self, |scale| scale.numbers(values))
    }
}

impl<D> Symbolic for Layout<D>
where
    D: Stride<Extent = Expr> + Symbolic,
    D::Numbers: Stride<Extent = i64>,
{
    type Numbers = Layout<D::Numbers>;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        // In the text all extents come first, and facts are printed at the first occurrence of a
        // name.
        self.leaves().iter().for_each(|leaf| each(&leaf.extent));
        self.leaves().iter().for_each(|leaf| leaf.stride.visit(each));
    }

    fn substitute(&self, values: &Values) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().try_map(|leaf| {
            Ok(Leaf { extent: leaf.extent.substitute(values)?, stride: leaf.stride.substitute(values)? })
        })?)
    }

    fn numbers(&self, values: &Values) -> Result<Layout<D::Numbers>, LayoutError> {
        Layout::from_tree(
            self.tree().try_map(|leaf| {
                Ok(Leaf { extent: leaf.extent.numbers(values)?, stride: leaf.stride.numbers(values)? })
            })?,
        )
    }
}

impl<D> Symbolic for Tiler<D>
where
    D: Stride<Extent = Expr> + Symbolic,
    D::Numbers: Stride<Extent = i64>,
{
    type Numbers = Tiler<D::Numbers>;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        match self {
            Tiler::Keep => {}
            Tiler::Layout(layout) => layout.visit(each),
            Tiler::Modes(modes) => modes.items().iter().for_each(|item| item.visit(each)),
        }
    }

    fn substitute(&self, values: &Values) -> Result<Tiler<D>, LayoutError> {
        Ok(match self {
            Tiler::Keep => Tiler::Keep,
            Tiler::Layout(layout) => Tiler::Layout(layout.substitute(values)?),
            Tiler::Modes(modes) => {
                let items: Result<Vec<_>, _> = modes.items().iter().map(|item| item.substitute(values)).collect();
                Tiler::modes(items?)?
            }
        })
    }

    fn numbers(&self, values: &Values) -> Result<Tiler<D::Numbers>, LayoutError> {
        Ok(match self {
            Tiler::Keep => Tiler::Keep,
            Tiler::Layout(layout) => Tiler::Layout(layout.numbers(values)?),
            Tiler::Modes(modes) => {
                let items: Result<Vec<_>, _> = modes.items().iter().map(|item| item.numbers(values)).collect();
                Tiler::modes(items?)?
            }
        })
    }
}
