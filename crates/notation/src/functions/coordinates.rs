//! Coordinates, slices and offsets.

use tilewright_layout::{Layout, Stride, crd2crd, crd2idx, idx2crd, increment};

use super::making::shaped;
use super::numbers::tuples;
use super::{Function, apply, numeric, offset, position};
use crate::arguments::{Fault, Map, is_map};
use crate::reading::symbol_tree;
use crate::value::Value;

const COORDINATES: &str = "Coordinates and slices";

/// The result of an operation that layouts and tuples share, on the first argument and a coordinate.
macro_rules! cut {
    ($a:expr, ($x:ident, $coord:ident) => $result:expr) => {
        match ($a.get(0), $a.coord(1)) {
            (Some(Value::Layout($x)), Ok($coord)) => Ok($result.into()),
            (Some(Value::XorLayout($x)), Ok($coord)) => Ok($result.into()),
            (Some(Value::Composed($x)), Ok($coord)) => Ok($result.into()),
            (first, _) => {
                let $coord = $a.symbol_coord(1)?;
                match first {
                    Some(Value::Layout(_)) => {
                        let $x = $a.symbol_layout(0)?;
                        Ok($result.into())
                    }
                    Some(Value::SymbolLayout($x)) => Ok($result.into()),
                    Some(Value::StepLayout($x)) => Ok($result.into()),
                    Some(Value::SymbolComposed($x)) => Ok($result.into()),
                    Some(Value::StepComposed($x)) => Ok($result.into()),
                    Some(Value::StepTree($x)) => Ok($result.into()),
                    Some(Value::XorTree($x)) => Ok($result.into()),
                    first => match first.and_then(symbol_tree) {
                        Some($x) => Ok($result.into()),
                        None => $a.kind(0, "a layout or a tuple"),
                    },
                }
            }
        }
    };
}

/// A layout and an offset as a list.
fn both<D: Stride>((layout, offset): (Layout<D>, D)) -> Result<Value, Fault>
where
    Value: From<Layout<D>> + From<D>,
{
    Ok(Value::List(vec![layout.into(), offset.into()]))
}

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
                a.indices(argument).map(|_| ()).or_else(|_| a.symbol_tree(argument).map(|_| ()))?;
                a.get(argument).map_or_else(|| a.kind(argument, "a coordinate without _"), Ok)
            };
            if a.len() == 3 {
                let map = shaped(&a, 1, 2).map_err(|fault| match fault {
                    Fault::Refused(error) => Fault::At(1, error),
                    fault => fault,
                })?;
                return apply(&map, place(0)?).unwrap_or_else(|| a.kind(1, "a shape"));
            }
            // As a method the layout comes first.
            let (coord, shape) = if a.is_map(0) { (1, 0) } else { (0, 1) };
            let coord = place(coord)?;
            match a.get(shape) {
                Some(map) if is_map(map) => apply(map, coord).unwrap_or_else(|| a.kind(shape, "a layout")),
                _ => numeric!(a, tuples(&a)?, (coord, shape) => crd2idx(&coord, &shape)?),
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
            match (a.indices(index), a.shape(shape)) {
                (Ok(index), Ok(shape)) => Ok(idx2crd(&index, &shape)?.into()),
                _ => Ok(idx2crd(&a.symbol_tree(index)?, &a.symbol_shape(shape)?)?.into()),
            }
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
        run: |a| match (a.indices(0), a.shape(1), a.shape(2)) {
            (Ok(coord), Ok(from), Ok(to)) => Ok(crd2crd(&coord, &from, &to)?.into()),
            _ => Ok(crd2crd(&a.symbol_tree(0)?, &a.symbol_shape(1)?, &a.symbol_shape(2)?)?.into()),
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
        run: |a| match (a.indices(0), a.shape(1)) {
            (Ok(coord), Ok(shape)) => Ok(increment(&coord, &shape)?.into()),
            _ => Ok(increment(&a.symbol_tree(0)?, &a.symbol_shape(1)?)?.into()),
        },
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
        run: |a| cut!(a, (x, coord) => x.slice(&coord)?),
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
        run: |a| cut!(a, (x, coord) => x.dice(&coord)?),
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
        run: |a| match a.map_of_indices(0)? {
            Map::Integer(layout) => match a.coord(1) {
                Ok(coord) => both(layout.slice_and_offset(&coord)?),
                Err(_) => both(a.symbol_layout(0)?.slice_and_offset(&a.symbol_coord(1)?)?),
            },
            Map::Symbol(layout) => both(layout.slice_and_offset(&a.symbol_coord(1)?)?),
            Map::Step(layout) => {
                let (slice, offset) = layout.slice_and_offset(&a.symbol_coord(1)?)?;
                Ok(Value::List(vec![slice.into(), position(&layout, &offset)?]))
            }
            Map::Xor(layout) => {
                let (slice, at) = layout.slice_and_offset(&a.coord(1)?)?;
                Ok(Value::List(vec![slice.into(), offset(at)]))
            }
            Map::Composed(map) => both(map.slice_and_offset(&a.coord(1)?)?),
            _ => a.kind(0, "a layout, or a composed layout of known numbers"),
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
        run: |a| match a.map(0)? {
            Map::Integer(layout) => match a.indices(1) {
                Ok(coord) => both(layout.domain_offset(&coord)?),
                Err(_) => both(a.symbol_layout(0)?.domain_offset(&a.symbol_tree(1)?)?),
            },
            Map::Symbol(layout) => both(layout.domain_offset(&a.symbol_tree(1)?)?),
            Map::Step(layout) => {
                let (moved, offset) = layout.domain_offset(&a.symbol_tree(1)?)?;
                Ok(Value::List(vec![moved.into(), position(&layout, &offset)?]))
            }
            Map::Xor(layout) => {
                let (moved, at) = layout.domain_offset(&a.indices(1)?)?;
                Ok(Value::List(vec![moved.into(), offset(at)]))
            }
            Map::Composed(map) => Ok(map.domain_offset(&a.indices(1)?)?.into()),
            Map::SymbolComposed(map) => Ok(map.domain_offset(&a.symbol_tree(1)?)?.into()),
            Map::StepComposed(map) => Ok(map.domain_offset(&a.symbol_tree(1)?)?.into()),
        },
    },
];
