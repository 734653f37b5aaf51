//! Functions that make layouts from shapes, strides, orders and other layouts.

use tilewright_layout::{Layout, compact_order};

use super::{Function, MANY};
use crate::arguments::Fault;
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
            if !a.values.iter().any(|value| matches!(value, Value::Layout(_))) {
                return match a.len() {
                    1 => Ok(a.layout(0)?.into_owned().into()),
                    2 => Ok(Layout::new(&a.tree(0)?, &a.tree(1)?)?.into()),
                    _ => a.kind(2, "a layout"),
                };
            }
            let modes: Vec<_> = (0..a.len()).map(|argument| a.layout(argument)).collect::<Result<_, _>>()?;
            Ok(Layout::tuple(modes.iter().map(|mode| &**mode))?.into())
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
        run: |a| Ok(Layout::compact(&a.shape(0)?)?.into()),
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
        run: |a| Ok(Layout::row_major(&a.shape(0)?)?.into()),
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
        run: |a| Ok(Layout::ordered(&a.shape(0)?, &a.tree(1)?)?.into()),
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
        run: |a| Ok(compact_order(&a.shape(0)?, &a.tree(1)?)?.into()),
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
        run: |a| Ok(a.layout(0)?.layout_like()?.into()),
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
        run: |a| Ok(a.layout(0)?.fragment_like()?.into()),
    },
    Function {
        name: "make_identity_layout",
        signature: "make_identity_layout(n)",
        summary: "the layout that sends a coordinate to itself; in this version of a number only",
        example: "make_identity_layout(8)",
        result: "8:1",
        section: MAKING,
        least: 1,
        most: 1,
        run: |a| match a.get(0) {
            Some(Value::Int(_)) => Ok(a.layout(0)?.into_owned().into()),
            _ => Err(Fault::Later("coordinate steps", "a step such as 1@0, which the identity of a tuple has,")),
        },
    },
];
