//! Functions that make layouts from shapes, strides, orders and other layouts.

use tilewright_layout::{AnyLayout, CoordinateStep, Layout, LayoutError, RefusedOperand, compact_order};

use super::{Function, MANY, numeric};
use crate::arguments::{Arguments, Fault, among, is_map};
use crate::reading::any_tree;
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
                    1 => numeric!(a, 0, shape => Layout::compact(&shape)?),
                    2 => shaped(&a, 0, 1),
                    _ => a.kind(2, "a layout"),
                };
            }
            let modes: Vec<AnyLayout> =
                (0..a.len()).map(|at| a.layout(at).map(|mode| mode.into_owned())).collect::<Result<_, _>>()?;
            AnyLayout::tuple(&modes).map(Value::from).map_err(|error| match error {
                // The error is about the first mode whose kind differs from the common kind of the
                // others.
                LayoutError::Kind { wanted, operand, .. } => {
                    let odd = (0..a.len()).filter(|at| *at > 0 || operand == RefusedOperand::First);
                    let meets = |at: &usize| AnyLayout::tuple(modes.get(..=*at).unwrap_or_default()).is_ok();
                    Fault::Kind { argument: odd.into_iter().find(|at| !meets(at)).unwrap_or(0), wanted }
                }
                error => error.into(),
            })
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
        run: |a| numeric!(a, 0, shape => Layout::compact(&shape)?),
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
        run: |a| numeric!(a, 0, shape => Layout::row_major(&shape)?),
    },
    Function {
        name: "make_ordered_layout",
        signature: "make_ordered_layout(shape, order)",
        summary: "the compact layout with its modes ordered by their keys, the least key fastest",
        example: "make_ordered_layout((2,3,4), (2,0,1))",
        result: "(2,3,4):(12,1,3)",
        section: MAKING,
        least: 2,
        most: 2,
        run: |a| {
            let order = a.integer_tree(1)?;
            numeric!(a, 0, shape => Layout::ordered(&shape, &order)?)
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
            let order = a.integer_tree(1)?;
            numeric!(a, 0, shape => compact_order(&shape, &order)?)
        },
    },
    Function {
        name: "make_layout_like",
        signature: "make_layout_like(A)",
        summary: "the compact layout of the same shape with the same order of strides; stride 0 is kept",
        example: "make_layout_like((4,8,3):(10,1,0))",
        result: "(4,8,3):(8,1,0)",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.layout_like()?.into()),
    },
    Function {
        name: "make_fragment_like",
        signature: "make_fragment_like(A)",
        summary: "the compact layout of a register copy of A: mode 0 first, the others in the order of strides",
        example: "make_fragment_like(((2,2),3,4):((8,0),0,1))",
        result: "((2,2),3,4):((1,0),2,6)",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| Ok(a.layout(0)?.fragment_like()?.into()),
    },
    Function {
        name: "with_shape",
        signature: "with_shape(A, shape)",
        summary: "A with another shape: R(i) = A(i) at every index of the shape",
        example: "with_shape((4,6):(1,4), (2,12))",
        result: "(2,12):(1,2)",
        section: MAKING,
        least: 2,
        most: 2,
        run: |a| {
            let shape = a.shape(1)?.into_owned();
            let Some(indices) = crate::reading::compact(&shape) else { return a.kind(1, "a shape") };
            let indices = indices.map_err(|error| Fault::At(1, error))?;
            Ok(a.layout(0)?.compose(&indices)?.into())
        },
    },
    Function {
        name: "substitute",
        signature: "substitute(A, M, number, ...)",
        summary: "A with numbers substituted for sizes known at launch",
        example: "substitute((M{div=8},K):(K,1), M, 64, K, 16)",
        result: "(64,16):(16,1)",
        section: MAKING,
        least: 1,
        most: MANY,
        run: |a| {
            let Some(value) = a.get(0) else { return a.kind(0, "a value") };
            let pairs: Vec<&Value> = a.values.iter().skip(1).collect();
            match values_of(&pairs) {
                Ok(values) => Ok(value.substitute(&values)?),
                Err(argument) if argument % 2 == 0 => a.kind(argument + 1, "a name that becomes known at launch"),
                Err(argument) => a.kind(argument + 1, "an integer"),
            }
        },
    },
    Function {
        name: "make_identity_layout",
        signature: "make_identity_layout(shape)",
        summary: "the layout that maps each coordinate to itself",
        example: "make_identity_layout((4,(2,3)))",
        result: "(4,(2,3)):(1@0,(1@0@1,1@1@1))",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| Ok(Layout::<CoordinateStep>::identity(&a.launch_shape(0)?)?.into()),
    },
];

/// The layout with the shape and the strides of two arguments.
pub(crate) fn shaped(a: &Arguments<'_>, shape: usize, stride: usize) -> Result<Value, Fault> {
    let extents = a.any_tree(shape)?;
    let Some(strides) = a.get(stride).and_then(any_tree) else { return a.kind(stride, "strides") };
    Ok(AnyLayout::new(&extents, &strides).map_err(among(shape, stride))?.into())
}
