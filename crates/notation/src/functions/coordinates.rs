//! Coordinates, slices and offsets.

use tilewright_layout::{Layout, crd2crd, crd2idx, idx2crd, increment};

use super::Function;
use super::structure::either;
use crate::arguments::Fault;
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
            if a.len() == 3 {
                let layout = Layout::new(&a.tree(1)?, &a.tree(2)?).map_err(|error| Fault::At(1, error))?;
                return Ok(layout.eval_at(&a.indices(0)?)?.into());
            }
            // As a method the layout comes first.
            let (coord, shape) = if a.is_map(0) { (1, 0) } else { (0, 1) };
            let coord = a.indices(coord)?;
            match a.get(shape) {
                Some(Value::Layout(layout)) => Ok(layout.eval_at(&coord)?.into()),
                Some(Value::Composed(map)) => Ok(map.eval_at(&coord)?.into()),
                _ => Ok(crd2idx(&coord, &a.tree(shape)?)?.into()),
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
            Ok(idx2crd(&a.indices(index)?, &a.shape(shape)?)?.into())
        },
    },
    Function {
        name: "crd2crd",
        signature: "crd2crd(c, from, to)",
        summary: "the coordinate in one shape that has the index of a coordinate in another",
        example: "crd2crd((1,2), (2,3), (3,2))",
        result: "(2,1)",
        section: COORDINATES,
        least: 3,
        most: 3,
        run: |a| Ok(crd2crd(&a.indices(0)?, &a.shape(1)?, &a.shape(2)?)?.into()),
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
        run: |a| Ok(increment(&a.indices(0)?, &a.shape(1)?)?.into()),
    },
    Function {
        name: "slice",
        signature: "slice(A, c)",
        summary: "the modes of A where the coordinate has _; A(c) is the same",
        example: "slice((4,8):(8,1), (2,_))",
        result: "(8):(1)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            let coord = a.coord(1)?;
            if let Some(Value::Composed(map)) = a.get(0) {
                return Ok(map.slice(&coord)?.into());
            }
            either(&a, |layout| layout.slice(&coord), |tree| tree.slice(&coord))
        },
    },
    Function {
        name: "dice",
        signature: "dice(A, c)",
        summary: "the modes of A where the coordinate has a number",
        example: "dice((4,8):(8,1), (2,_))",
        result: "(4):(8)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            let coord = a.coord(1)?;
            either(&a, |layout| layout.dice(&coord), |tree| tree.dice(&coord))
        },
    },
    Function {
        name: "slice_and_offset",
        signature: "slice_and_offset(A, c)",
        summary: "the slice, and the offset at which it begins",
        example: "slice_and_offset((4,8):(8,1), (2,_))",
        result: "((8):(1),16)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            let (slice, offset) = a.layout(0)?.slice_and_offset(&a.coord(1)?)?;
            Ok(Value::List(vec![slice.into(), offset.into()]))
        },
    },
    Function {
        name: "domain_offset",
        signature: "domain_offset(A, c)",
        summary: "the layout seen from a coordinate on, and the offset of that coordinate",
        example: "domain_offset((4,8):(8,1), (1,2))",
        result: "((4,8):(8,1),10)",
        section: COORDINATES,
        least: 2,
        most: 2,
        run: |a| {
            if let Some(Value::Composed(map)) = a.get(0) {
                return Ok(map.domain_offset(&a.indices(1)?)?.into());
            }
            let (layout, offset) = a.layout(0)?.domain_offset(&a.indices(1)?)?;
            Ok(Value::List(vec![layout.into(), offset.into()]))
        },
    },
];
