//! Functions that make layouts from shapes, strides, orders and other layouts.

use std::borrow::Cow;

use tilewright_layout::{Composed, Layout, Stride, compact_order};

use super::{Function, MANY, shaped_as};
use crate::arguments::{Arguments, Fault, Kind, Map, is_map};
use crate::kinds::Step;
use crate::reading::{number_tree, step_tree, symbol_tree, xor_tree};
use crate::substitute::values_of;
use crate::value::Value;

const MAKING: &str = "Making layouts";

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "make_layout",
        signature: "make_layout(A, B, ...) or make_layout(shape, stride)",
        summary: "the layout whose modes are the given layouts, or the layout with this shape and these strides",
        example: "make_layout(4:1, (2,3):(4,8))",
        result: "(4,(2,3)):(1,(4,8))",
        section: MAKING,
        least: 1,
        most: MANY,
        run: |a| {
            if !a.values.iter().any(is_map) {
                return match a.len() {
                    1 => shaped_as!(a, 0, shape => Layout::compact(&shape)?),
                    2 => shaped(&a, 0, 1),
                    _ => a.kind(2, "a layout"),
                };
            }
            let all = 0..a.len();
            if all.clone().any(|at| a.is_composed(at)) {
                let modes: Vec<Composed> = all.map(|at| a.composed(at)).collect::<Result<_, _>>()?;
                return Ok(Composed::tuple(&modes)?.into());
            }
            match a.kind_of(all.clone()) {
                Kind::Integer => modes(all.map(|at| a.layout(at))),
                Kind::Symbol => modes(all.map(|at| a.symbol_layout(at).map(Cow::Owned))),
                Kind::Step => modes(all.map(|at| a.step_layout(at).map(Cow::Owned))),
                Kind::Xor => modes(all.map(|at| a.xor_layout(at))),
            }
        },
    },
    Function {
        name: "col_major",
        signature: "col_major(shape)",
        summary: "the compact layout of a shape, first mode fastest",
        example: "col_major((4,8))",
        result: "(4,8):(1,4)",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| shaped_as!(a, 0, shape => Layout::compact(&shape)?),
    },
    Function {
        name: "row_major",
        signature: "row_major(shape)",
        summary: "the compact layout of a shape, last mode fastest",
        example: "row_major((4,8))",
        result: "(4,8):(8,1)",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| shaped_as!(a, 0, shape => Layout::row_major(&shape)?),
    },
    Function {
        name: "make_ordered_layout",
        signature: "make_ordered_layout(shape, order)",
        summary: "the compact layout whose modes run in the order of their keys, the least key fastest",
        example: "make_ordered_layout((2,3,4), (2,0,1))",
        result: "(2,3,4):(12,1,3)",
        section: MAKING,
        least: 2,
        most: 2,
        run: |a| {
            let order = a.tree(1)?;
            shaped_as!(a, 0, shape => Layout::ordered(&shape, &order)?)
        },
    },
    Function {
        name: "compact_order",
        signature: "compact_order(shape, order)",
        summary: "the strides of make_ordered_layout",
        example: "compact_order((2,3,4), (2,0,1))",
        result: "(12,1,3)",
        section: MAKING,
        least: 2,
        most: 2,
        run: |a| {
            let order = a.tree(1)?;
            shaped_as!(a, 0, shape => compact_order(&shape, &order)?)
        },
    },
    Function {
        name: "make_layout_like",
        signature: "make_layout_like(A)",
        summary: "the compact layout of the same shape with modes in the same order of strides; stride 0 stays",
        example: "make_layout_like((4,8,3):(10,1,0))",
        result: "(4,8,3):(8,1,0)",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Composed(map) => Ok(map.inner().layout_like()?.into()),
            Map::Symbol(layout) => Ok(layout.layout_like()?.into()),
            _ => Ok(a.layout(0)?.layout_like()?.into()),
        },
    },
    Function {
        name: "make_fragment_like",
        signature: "make_fragment_like(A)",
        summary: "the compact layout for a thread's own copy: mode 0 first, the others in the order of strides",
        example: "make_fragment_like(((2,2),3,4):((8,0),0,1))",
        result: "((2,2),3,4):((1,0),2,6)",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| match a.map_of_indices(0)? {
            Map::Composed(map) => Ok(map.inner().fragment_like()?.into()),
            Map::Symbol(layout) => Ok(layout.fragment_like()?.into()),
            _ => Ok(a.layout(0)?.fragment_like()?.into()),
        },
    },
    Function {
        name: "substitute",
        signature: "substitute(A, M, number, ...)",
        summary: "A with numbers in place of names that become known at launch",
        example: "substitute((M{div=8},K):(K,1), M, 64, K, 16)",
        result: "(64,16):(16,1)",
        section: MAKING,
        least: 1,
        most: MANY,
        run: |a| {
            let (value, pairs) = match a.values.split_first() {
                Some((value, pairs)) => (value, pairs),
                None => return a.kind(0, "a value"),
            };
            match values_of(pairs) {
                Ok(values) => Ok(value.substitute(&values)?),
                Err(argument) if argument % 2 == 0 => a.kind(argument + 1, "a name that becomes known at launch"),
                Err(argument) => a.kind(argument + 1, "an integer"),
            }
        },
    },
    Function {
        name: "make_identity_layout",
        signature: "make_identity_layout(shape)",
        summary: "the layout that sends a coordinate to itself",
        example: "make_identity_layout((4,(2,3)))",
        result: "(4,(2,3)):(1@0,(1@0@1,1@1@1))",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| Ok(Layout::<Step>::identity(&a.symbol_shape(0)?)?.into()),
    },
];

/// The layout with the shape and the strides of two arguments.
pub(crate) fn shaped(a: &Arguments<'_>, shape: usize, stride: usize) -> Result<Value, Fault> {
    let (Some(extents), Some(strides)) = (a.get(shape), a.get(stride)) else { return a.kind(stride, "strides") };
    match (number_tree(extents), number_tree(strides)) {
        (Some(extents), Some(strides)) => return Ok(Layout::new(&extents, &strides)?.into()),
        (Some(extents), None) => {
            if let Some(strides) = xor_tree(strides) {
                return Ok(Layout::new(&extents, &strides)?.into());
            }
        }
        _ => {}
    }
    let extents = a.symbol_tree(shape)?;
    match (symbol_tree(strides), step_tree(strides)) {
        (Some(strides), _) => Ok(Layout::new(&extents, &strides)?.into()),
        (None, Some(strides)) => Ok(Layout::new(&extents, &strides)?.into()),
        _ => a.kind(stride, "strides"),
    }
}

/// The layout whose modes are these.
fn modes<'a, D: Stride + 'a>(modes: impl Iterator<Item = Result<Cow<'a, Layout<D>>, Fault>>) -> Result<Value, Fault>
where
    Value: From<Layout<D>>,
{
    let modes: Vec<Cow<'a, Layout<D>>> = modes.collect::<Result<_, _>>()?;
    Ok(Layout::tuple(modes.iter().map(|mode| &**mode))?.into())
}
