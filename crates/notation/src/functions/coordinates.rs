//! Coordinates, slices and offsets.

use tilewright_layout::{crd2crd, crd2idx, idx2crd, increment};

use super::making::shaped;
use super::{Function, apply, nested, numeric};
use crate::arguments::{Fault, is_map};
use crate::value::Value;

const COORDINATES: &str = "Coordinates and slices";

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "crd2idx",
        signature: "crd2idx(c, A) or crd2idx(c, shape, stride)",
        summary: "the value of a layout at a coordinate; the index of a coordinate in a shape",
        example: "crd2idx((2,(0,1)), (4,(2,4)):(2,(1,8)))",
        result: "12",
        section: COORDINATES,
        least: 2,
        most: 3,
        run: |a| {
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
            // As a method, the layout comes first.
            let (coord, shape) = if a.is_map(0) { (1, 0) } else { (0, 1) };
            let coord = place(coord)?;
            match a.get(shape) {
                Some(map) if is_map(map) => apply(map, coord).unwrap_or_else(|| a.kind(shape, "a layout")),
                _ => numeric!(a, a.tuples(0, 1)?, (coord, shape) => crd2idx(&coord, &shape)?),
            }
        },
    },
    Function {
        name: "idx2crd",
        signature: "idx2crd(i, shape)",
        summary: "the coordinate at an index, first mode fastest",
        example: "idx2crd(9, (4,(2,3)))",
        result: "(1,(0,1))",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            let (index, shape) = if a.is_map(0) { (1, 0) } else { (0, 1) };
            match (a.integer_tree(index), a.integer_shape(shape)) {
                (Ok(index), Ok(shape)) => Ok(idx2crd(&index, &shape)?.into()),
                _ => Ok(idx2crd(&a.launch_tree(index)?, &a.launch_shape(shape)?)?.into()),
            }
        },
    },
    Function {
        name: "crd2crd",
        signature: "crd2crd(c, from, to)",
        summary: "the coordinate in one shape with the same index as a coordinate in another",
        example: "crd2crd((1,2), (2,3), (3,2))",
        result: "(2,1)",
        section: COORDINATES,
        least: 3,
        most: 3,
        run: |a| match (a.integer_tree(0), a.integer_shape(1), a.integer_shape(2)) {
            (Ok(coord), Ok(from), Ok(to)) => Ok(crd2crd(&coord, &from, &to)?.into()),
            _ => Ok(crd2crd(&a.launch_tree(0)?, &a.launch_shape(1)?, &a.launch_shape(2)?)?.into()),
        },
    },
    Function {
        name: "increment_coord",
        signature: "increment_coord(c, shape)",
        summary: "the next coordinate, first mode fastest",
        example: "increment_coord((3,2), (4,8))",
        result: "(0,3)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| match (a.integer_tree(0), a.integer_shape(1)) {
            (Ok(coord), Ok(shape)) => Ok(increment(&coord, &shape)?.into()),
            _ => Ok(increment(&a.launch_tree(0)?, &a.launch_shape(1)?)?.into()),
        },
    },
    Function {
        name: "slice",
        signature: "slice(A, c)",
        summary: "the modes of A for which the coordinate has _; also written A(c)",
        example: "slice((4,8):(8,1), (2,_))",
        result: "(8):(1)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            let coord = a.coord(1)?;
            nested!(a, x => x.slice(&coord)?)
        },
    },
    Function {
        name: "dice",
        signature: "dice(A, c)",
        summary: "the modes of A for which the coordinate has a number",
        example: "dice((4,8):(8,1), (2,_))",
        result: "(4):(8)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            let coord = a.coord(1)?;
            nested!(a, x => x.dice(&coord)?)
        },
    },
    Function {
        name: "slice_and_offset",
        signature: "slice_and_offset(A, c)",
        summary: "the slice, and its first offset",
        example: "slice_and_offset((4,8):(8,1), (2,_))",
        result: "((8):(1),16)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            let coord = a.coord(1)?;
            let (slice, offset) = a.layout(0)?.slice_and_offset(&coord)?;
            Ok(Value::List(vec![slice.into(), offset.into()]))
        },
    },
    Function {
        name: "domain_offset",
        signature: "domain_offset(A, c)",
        summary: "the layout with its origin moved to a coordinate, and the offset of that coordinate",
        example: "domain_offset((4,8):(8,1), (1,2))",
        result: "((4,8):(8,1),10)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            // A layout in the place of the coordinate means the other order.
            let coord = a.any_tree(1)?;
            match a.layout(0)?.domain_offset(&coord)? {
                (moved, Some(offset)) => Ok(Value::List(vec![moved.into(), offset.into()])),
                (moved, None) => Ok(moved.into()),
            }
        },
    },
];
