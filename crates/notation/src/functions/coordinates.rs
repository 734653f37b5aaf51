//! Coordinates, slices and offsets.

use tilewright_layout::{crd2crd, crd2idx, idx2crd, increment};

use super::making::shaped;
use super::{Function, apply, function, nested, numeric};
use crate::arguments::{Fault, is_map};
use crate::value::Value;

pub(super) const COORDINATES: &[Function] = &[
    function(
        "crd2idx(c, A) or crd2idx(c, shape, stride)",
        "the value of a layout at a coordinate; the index of a coordinate in a shape",
    )
    .example("crd2idx((2,(0,1)), (4,(2,4)):(2,(1,8)))", "12")
    .run(2..=3, |a| {
        let place = |argument: usize| {
            a.launch_tree(argument)?;
            a.get(argument).map_or_else(|| a.kind(argument, "a coordinate without _"), Ok)
        };
        if a.len() == 3 {
            let map = shaped(&a, 1, 2).map_err(|fault| match fault {
                Fault::Refused(error) => Fault::At(1, error),
                fault => fault,
            })?;
            return apply(&map, place(0)?).unwrap_or_else(|| a.kind(1, "a shape"));
        }
        // In method form the layout is the first argument.
        let (coord, shape) = if a.is_map(0) { (1, 0) } else { (0, 1) };
        let coord = place(coord)?;
        match a.get(shape) {
            Some(map) if is_map(map) => apply(map, coord).unwrap_or_else(|| a.kind(shape, "a layout")),
            _ => numeric!(a, a.tuples(0, 1)?, (coord, shape) => crd2idx(&coord, &shape)?),
        }
    }),
    function("idx2crd(i, shape)", "the coordinate at an index, first mode fastest")
        .example("idx2crd(9, (4,(2,3)))", "(1,(0,1))")
        .run(2..=2, |a| {
            let (index, shape) = if a.is_map(0) { (1, 0) } else { (0, 1) };
            match (a.integer_tree(index), a.integer_shape(shape)) {
                (Ok(index), Ok(shape)) => Ok(idx2crd(&index, &shape)?.into()),
                _ => Ok(idx2crd(&a.launch_tree(index)?, &a.launch_shape(shape)?)?.into()),
            }
        }),
    function("crd2crd(c, from, to)", "the coordinate in one shape with the same index as a coordinate in another")
        .example("crd2crd((1,2), (2,3), (3,2))", "(2,1)")
        .run(3..=3, |a| match (a.integer_tree(0), a.integer_shape(1), a.integer_shape(2)) {
            (Ok(coord), Ok(from), Ok(to)) => Ok(crd2crd(&coord, &from, &to)?.into()),
            _ => Ok(crd2crd(&a.launch_tree(0)?, &a.launch_shape(1)?, &a.launch_shape(2)?)?.into()),
        }),
    function("increment_coord(c, shape)", "the next coordinate, first mode fastest")
        .example("increment_coord((3,2), (4,8))", "(0,3)")
        .run(2..=2, |a| match (a.integer_tree(0), a.integer_shape(1)) {
            (Ok(coord), Ok(shape)) => Ok(increment(&coord, &shape)?.into()),
            _ => Ok(increment(&a.launch_tree(0)?, &a.launch_shape(1)?)?.into()),
        }),
    function("slice(A, c)", "the modes of A for which the coordinate has _; also written A(c)")
        .example("slice((4,8):(8,1), (2,_))", "(8):(1)")
        .run(2..=2, |a| {
            let coord = a.coord(1)?;
            nested!(a, x => x.slice(&coord)?)
        }),
    function("dice(A, c)", "the modes of A for which the coordinate has a number")
        .example("dice((4,8):(8,1), (2,_))", "(4):(8)")
        .run(2..=2, |a| {
            let coord = a.coord(1)?;
            nested!(a, x => x.dice(&coord)?)
        }),
    function("slice_and_offset(A, c)", "the slice, and its first offset")
        .example("slice_and_offset((4,8):(8,1), (2,_))", "((8):(1),16)")
        .run(2..=2, |a| {
            let coord = a.coord(1)?;
            let (slice, offset) = a.layout(0)?.slice_and_offset(&coord)?;
            Ok(Value::List(vec![slice.into(), offset.into()]))
        }),
    function(
        "domain_offset(A, c)",
        "the layout with its origin moved to a coordinate, and the offset of that coordinate",
    )
    .example("domain_offset((4,8):(8,1), (1,2))", "((4,8):(8,1),10)")
    .run(2..=2, |a| {
        // If the second argument is a layout, the arguments are in the other order.
        let coord = a.any_tree(1)?;
        match a.layout(0)?.domain_offset(&coord)? {
            (moved, Some(offset)) => Ok(Value::List(vec![moved.into(), offset.into()])),
            (moved, None) => Ok(moved.into()),
        }
    }),
];
