//! Functions that make layouts from shapes, strides, orders and other layouts.

use tilewright_layout::{AnyLayout, CoordinateStep, Layout, LayoutError, RefusedOperand, compact_order};

use super::{Function, MANY, function, numeric};
use crate::arguments::{Arguments, Fault, among, is_map};
use crate::reading::any_tree;
use crate::substitute::values_of;
use crate::value::Value;

pub(super) const MAKING: &[Function] = &[
    function(
        "make_layout(A, B, ...) or make_layout(shape, stride)",
        "the layout whose modes are the given layouts, or the layout with this shape and these strides",
    )
    .example("make_layout(4:1, (2,3):(4,8))", "(4,(2,3)):(1,(4,8))")
    .run(1..=MANY, |a| {
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
    }),
    function("col_major(shape)", "the compact layout of a shape, first mode fastest")
        .example("col_major((4,8))", "(4,8):(1,4)")
        .run(1..=1, |a| numeric!(a, 0, shape => Layout::compact(&shape)?)),
    function("row_major(shape)", "the compact layout of a shape, last mode fastest")
        .example("row_major((4,8))", "(4,8):(8,1)")
        .run(1..=1, |a| numeric!(a, 0, shape => Layout::row_major(&shape)?)),
    function(
        "make_ordered_layout(shape, order)",
        "the compact layout with its modes ordered by their keys, the least key fastest",
    )
    .example("make_ordered_layout((2,3,4), (2,0,1))", "(2,3,4):(12,1,3)")
    .run(2..=2, |a| {
        let order = a.integer_tree(1)?;
        numeric!(a, 0, shape => Layout::ordered(&shape, &order)?)
    }),
    function("compact_order(shape, order)", "the strides of make_ordered_layout")
        .example("compact_order((2,3,4), (2,0,1))", "(12,1,3)")
        .run(2..=2, |a| {
            let order = a.integer_tree(1)?;
            numeric!(a, 0, shape => compact_order(&shape, &order)?)
        }),
    function(
        "make_layout_like(A)",
        "the compact layout of the same shape with the same order of strides; stride 0 is kept",
    )
    .example("make_layout_like((4,8,3):(10,1,0))", "(4,8,3):(8,1,0)")
    .run(1..=1, |a| Ok(a.layout(0)?.layout_like()?.into())),
    function(
        "make_fragment_like(A)",
        "the compact layout of a register copy of A: mode 0 first, the others in the order of strides",
    )
    .example("make_fragment_like(((2,2),3,4):((8,0),0,1))", "((2,2),3,4):((1,0),2,6)")
    .run(1..=1, |a| Ok(a.layout(0)?.fragment_like()?.into())),
    function("with_shape(A, shape)", "A with another shape: R(i) = A(i) at every index of the shape")
        .example("with_shape((4,6):(1,4), (2,12))", "(2,12):(1,2)")
        .run(2..=2, |a| {
            let shape = a.shape(1)?.into_owned();
            let Some(indices) = crate::reading::compact(&shape) else { return a.kind(1, "a shape") };
            let indices = indices.map_err(|error| Fault::At(1, error))?;
            Ok(a.layout(0)?.compose(&indices)?.into())
        }),
    function("substitute(A, M, number, ...)", "A with numbers substituted for sizes known at launch")
        .example("substitute((M{div=8},K):(K,1), M, 64, K, 16)", "(64,16):(16,1)")
        .run(1..=MANY, |a| {
            let Some(value) = a.get(0) else { return a.kind(0, "a value") };
            let pairs: Vec<&Value> = a.values.iter().skip(1).collect();
            match values_of(&pairs) {
                Ok(values) => Ok(value.substitute(&values)?),
                Err(argument) if argument % 2 == 0 => a.kind(argument + 1, "a name that becomes known at launch"),
                Err(argument) => a.kind(argument + 1, "an integer"),
            }
        }),
    function("make_identity_layout(shape)", "the layout that maps each coordinate to itself")
        .example("make_identity_layout((4,(2,3)))", "(4,(2,3)):(1@0,(1@0@1,1@1@1))")
        .run(1..=1, |a| Ok(Layout::<CoordinateStep>::identity(&a.launch_shape(0)?)?.into())),
];

/// The layout with the shape and the strides of two arguments.
pub(crate) fn shaped(a: &Arguments<'_>, shape: usize, stride: usize) -> Result<Value, Fault> {
    let extents = a.any_tree(shape)?;
    let Some(strides) = a.get(stride).and_then(any_tree) else { return a.kind(stride, "strides") };
    Ok(AnyLayout::new(&extents, &strides).map_err(among(shape, stride))?.into())
}
