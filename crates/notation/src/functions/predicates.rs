//! Properties of layouts as functions.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, LayoutError, Stride, Tree};

use super::{Function, mapped};
use crate::arguments::{Arguments, Fault, Map};
use crate::value::Value;

const PREDICATES: &str = "Properties";

/// The largest value plus one of a map whose numbers are not all known: of a layout with an offset.
pub(super) fn cosize_at_launch(a: &Arguments<'_>, map: &Composed<Expr>) -> Result<Value, Fault> {
    if !map.outer().is_identity() {
        return a.kind(0, "a layout, or a composed layout of known numbers");
    }
    let cosize = map.inner().cosize()?.plus(map.offset());
    Ok(cosize.ok_or(LayoutError::Overflow { op: "cosize" })?.into())
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "is_injective",
        signature: "is_injective(A)",
        summary: "whether different coordinates have different offsets",
        example: "is_injective((2,2):(2,3))",
        result: "true",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| mapped!(a, Integer | Symbol | Xor | Composed, layout => layout.is_injective()?),
    },
    Function {
        name: "is_surjective",
        signature: "is_surjective(A)",
        summary: "whether every offset from 0 up to the cosize is reached",
        example: "is_surjective((2,4):(1,2))",
        result: "true",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Xor(layout) => Ok(layout.is_surjective()?.into()),
            Map::Composed(map) => Ok(map.is_surjective()?.into()),
            Map::Symbol(layout) => Ok(layout.is_surjective()?.into()),
            _ => Ok(a.layout(0)?.is_surjective().into()),
        },
    },
    Function {
        name: "is_bijective",
        signature: "is_bijective(A)",
        summary: "whether the offsets are those from 0 up to the size, each once",
        example: "is_bijective((4,3):(3,1))",
        result: "true",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Xor(layout) => Ok(layout.is_bijective()?.into()),
            Map::Composed(map) => Ok(map.is_bijective()?.into()),
            Map::Symbol(layout) => Ok(layout.is_bijective()?.into()),
            _ => Ok(a.layout(0)?.is_bijective().into()),
        },
    },
    Function {
        name: "is_compact",
        signature: "is_compact(A)",
        summary: "whether the memory has no hole and no sharing: the same as is_bijective",
        example: "is_compact((4,3):(3,1))",
        result: "true",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Xor(layout) => Ok(layout.is_compact()?.into()),
            Map::Composed(map) => Ok(map.is_compact()?.into()),
            Map::Symbol(layout) => Ok(layout.is_compact()?.into()),
            _ => Ok(a.layout(0)?.is_compact().into()),
        },
    },
    Function {
        name: "is_contiguous",
        signature: "is_contiguous(A)",
        summary: "whether the offsets form an interval without a hole",
        example: "is_contiguous((2,4):(1,2))",
        result: "true",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Xor(layout) => Ok(layout.composed()?.is_contiguous()?.into()),
            Map::Composed(map) => Ok(map.is_contiguous()?.into()),
            Map::Symbol(layout) => Ok(layout.is_contiguous()?.into()),
            _ => Ok(a.layout(0)?.is_contiguous().into()),
        },
    },
    Function {
        name: "is_ordered",
        signature: "is_ordered(A)",
        summary: "whether the offsets increase strictly with the index",
        example: "is_ordered((4,3):(3,1))",
        result: "false",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Xor(layout) => Ok(layout.composed()?.is_ordered()?.into()),
            Map::Composed(map) => Ok(map.is_ordered()?.into()),
            Map::Symbol(layout) => Ok(layout.is_ordered()?.into()),
            _ => Ok(a.layout(0)?.is_ordered().into()),
        },
    },
    Function {
        name: "is_tractable",
        signature: "is_tractable(A)",
        summary: "whether, sorted by stride, extent * stride of each mode divides the next stride: the layouts of tuple morphisms",
        example: "is_tractable((2,2):(2,3))",
        result: "false",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| match a.map(0)? {
            Map::Symbol(layout) => Ok(layout.is_tractable()?.into()),
            _ => Ok(a.layout(0)?.is_tractable().into()),
        },
    },
    Function {
        name: "image",
        signature: "image(A)",
        summary: "the offsets that are reached, in order",
        example: "image((3,2):(1,4))",
        result: "(0,1,2,4,5,6)",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| {
            let values = match a.map_of_indices(0)? {
                Map::Xor(layout) => return Ok(Tree::flat(layout.image()?)?.into()),
                Map::Composed(map) => map.image()?,
                _ => a.layout(0)?.image()?,
            };
            Ok(Tree::flat(values)?.into())
        },
    },
    Function {
        name: "coshape",
        signature: "coshape(A)",
        summary: "the shape of the codomain: the cosize, or one extent for each mode of a coordinate",
        example: "coshape((2,3):(1,4))",
        result: "10",
        section: PREDICATES,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Composed(map) => Ok(map.coshape()?.into()),
            Map::SymbolComposed(map) => cosize_at_launch(&a, &map),
            Map::Step(layout) => Ok(layout.coshape()?.into()),
            _ => mapped!(a, Integer | Symbol | Xor, layout => layout.cosize()?),
        },
    },
];
