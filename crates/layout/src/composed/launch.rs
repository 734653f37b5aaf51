//! Substitution of numbers for parameters in composed layouts.
//!
//! Law: as for layouts ([`Symbolic`]): the parameters are replaced in the outer map, the offset and
//! the inner layout.

use super::{Composed, InnerValue, OuterMap};
use crate::refusal::error::LayoutError;
use crate::symbolic::{Expr, Symbolic, Values};
use crate::value::layout::Layout;
use crate::value::number::Extent;

/// The outer map with its layouts and offsets replaced.
fn remade<N: Extent>(
    map: &OuterMap<Expr>,
    layout: &impl Fn(&Layout<Expr>) -> Result<Layout<N>, LayoutError>,
    offset: &impl Fn(&Expr) -> Result<N, LayoutError>,
) -> Result<OuterMap<N>, LayoutError> {
    Ok(match map {
        OuterMap::Layout(own) => OuterMap::Layout(layout(own)?),
        OuterMap::Swizzle(swizzle) => OuterMap::Swizzle(*swizzle),
        OuterMap::Bits(matrix) => OuterMap::Bits(matrix.clone()),
        // The inner map of a chain is not a chain, and a chain has at most MAX_CHAIN maps.
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
    D: InnerValue<Extent = Expr> + Symbolic,
    D::Numbers: InnerValue<Extent = i64>,
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
