//! Structures of expressions: trees, coordinates, layouts, tilers, and maps after one another.
//!
//! Law: numbers in place of parameters are put into each part, and what is made of the parts is made of what they become.

use alloc::vec::Vec;

use super::expression::Expr;
use super::values::{Symbolic, Values};
use crate::composed::{Composed, OuterMap, Place};
use crate::coordinate::Coordinate;
use crate::refusal::error::LayoutError;
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

/// The step whose scales are those of another one, changed.
fn rescaled<N: Extent>(
    step: &Coordinate<Expr>,
    scale: impl Fn(&Expr) -> Result<N, LayoutError>,
) -> Result<Coordinate<N>, LayoutError> {
    step.terms().try_fold(Coordinate::zero(), |sum, (path, own)| {
        sum.plus(&Coordinate::step(scale(own)?, path)).ok_or_else(|| LayoutError::overflow("substitute"))
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
        // The text has all extents first, and facts belong to the first occurrence.
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

/// The outer map with its layouts and offsets changed.
fn remade<N: Extent>(
    map: &OuterMap<Expr>,
    layout: &impl Fn(&Layout<Expr>) -> Result<Layout<N>, LayoutError>,
    offset: &impl Fn(&Expr) -> Result<N, LayoutError>,
) -> Result<OuterMap<N>, LayoutError> {
    Ok(match map {
        OuterMap::Layout(own) => OuterMap::Layout(layout(own)?),
        OuterMap::Swizzle(swizzle) => OuterMap::Swizzle(*swizzle),
        OuterMap::Bits(matrix) => OuterMap::Bits(matrix.clone()),
        // A chain holds no chain as its inner map, and at most MAX_CHAIN maps.
        OuterMap::Chain(chain) => remade(chain.outer(), layout, offset)?
            .after(&offset(chain.offset())?, &remade(chain.inner(), layout, offset)?)?,
    })
}

impl Symbolic for OuterMap<Expr> {
    type Numbers = OuterMap;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        match self {
            OuterMap::Layout(layout) => layout.visit(each),
            OuterMap::Swizzle(_) | OuterMap::Bits(_) => {}
            OuterMap::Chain(chain) => {
                chain.outer().visit(each);
                each(chain.offset());
                chain.inner().visit(each);
            }
        }
    }

    fn substitute(&self, values: &Values) -> Result<OuterMap<Expr>, LayoutError> {
        remade(self, &|layout| layout.substitute(values), &|offset| offset.substitute(values))
    }

    fn numbers(&self, values: &Values) -> Result<OuterMap, LayoutError> {
        remade(self, &|layout| layout.numbers(values), &|offset| offset.numbers(values))
    }
}

impl<D> Symbolic for Composed<D>
where
    D: Place<Extent = Expr> + Symbolic,
    D::Numbers: Place<Extent = i64>,
{
    type Numbers = Composed<D::Numbers>;

    fn visit(&self, each: &mut dyn FnMut(&Expr)) {
        self.outer().visit(each);
        self.offset().visit(each);
        self.inner().visit(each);
    }

    fn substitute(&self, values: &Values) -> Result<Composed<D>, LayoutError> {
        let (outer, offset) = (self.outer().substitute(values)?, self.offset().substitute(values)?);
        Composed::new(outer, offset, self.inner().substitute(values)?)
    }

    fn numbers(&self, values: &Values) -> Result<Composed<D::Numbers>, LayoutError> {
        let (outer, offset) = (self.outer().numbers(values)?, self.offset().numbers(values)?);
        Composed::new(outer, offset, self.inner().numbers(values)?)
    }
}
