//! Division into tiles and products of blocks.

use tilewright_layout::DivideForm;

use super::Function;
use crate::arguments::{Arguments, Fault};
use crate::value::Value;

const DIVISION: &str = "Division";
const PRODUCT: &str = "Product";

/// A layout divided by a tiler.
fn divided(a: Arguments<'_>, form: DivideForm) -> Result<Value, Fault> {
    Ok(a.layout(0)?.divide(form, &*a.tiler(1)?)?.into())
}

/// Copies of a block, arranged by a tiler.
fn multiplied(a: Arguments<'_>, form: DivideForm) -> Result<Value, Fault> {
    Ok(a.layout(0)?.product(form, &*a.tiler(1)?)?.into())
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "logical_divide",
        signature: "logical_divide(A, T)",
        summary: "A split into tiles: (tile, rest), or the same in each mode of the tiler",
        example: "logical_divide((4,6):(1,4), (2,3))",
        result: "((2,2),(3,2)):((1,2),(4,12))",
        section: DIVISION,
        least: 2,
        most: 2,
        run: |a| divided(a, DivideForm::Logical),
    },
    Function {
        name: "zipped_divide",
        signature: "zipped_divide(A, T)",
        summary: "logical_divide with all tiles first: ((tiles),(rests))",
        example: "zipped_divide((4,6):(1,4), (2,3))",
        result: "((2,3),(2,2)):((1,4),(2,12))",
        section: DIVISION,
        least: 2,
        most: 2,
        run: |a| divided(a, DivideForm::Zipped),
    },
    Function {
        name: "tiled_divide",
        signature: "tiled_divide(A, T)",
        summary: "logical_divide as ((tiles),rest,rest,...)",
        example: "tiled_divide((4,6):(1,4), (2,3))",
        result: "((2,3),2,2):((1,4),2,12)",
        section: DIVISION,
        least: 2,
        most: 2,
        run: |a| divided(a, DivideForm::Tiled),
    },
    Function {
        name: "flat_divide",
        signature: "flat_divide(A, T)",
        summary: "logical_divide as (tile,tile,...,rest,rest,...)",
        example: "flat_divide((4,6):(1,4), (2,3))",
        result: "(2,3,2,2):(1,4,2,12)",
        section: DIVISION,
        least: 2,
        most: 2,
        run: |a| divided(a, DivideForm::Flat),
    },
    Function {
        name: "logical_product",
        signature: "logical_product(A, B)",
        summary: "copies of the block A, arranged by a layout: (block, copies)",
        example: "logical_product((2,2):(4,1), 6:1)",
        result: "((2,2),(2,3)):((4,1),(2,8))",
        section: PRODUCT,
        least: 2,
        most: 2,
        run: |a| multiplied(a, DivideForm::Logical),
    },
    Function {
        name: "zipped_product",
        signature: "zipped_product(A, B)",
        summary: "logical_product with all blocks first: ((blocks),(copies))",
        example: "zipped_product(4:1, 3:1)",
        result: "(4,3):(1,4)",
        section: PRODUCT,
        least: 2,
        most: 2,
        run: |a| multiplied(a, DivideForm::Zipped),
    },
    Function {
        name: "tiled_product",
        signature: "tiled_product(A, B)",
        summary: "logical_product as ((blocks),copies,copies,...)",
        example: "tiled_product((3,4):(4,1), (2,5):(1,2))",
        result: "((3,4),2,5):((4,1),12,24)",
        section: PRODUCT,
        least: 2,
        most: 2,
        run: |a| multiplied(a, DivideForm::Tiled),
    },
    Function {
        name: "flat_product",
        signature: "flat_product(A, B)",
        summary: "logical_product as (block,block,...,copies,copies,...)",
        example: "flat_product((3,4):(4,1), (2,5):(1,2))",
        result: "(3,4,2,5):(4,1,12,24)",
        section: PRODUCT,
        least: 2,
        most: 2,
        run: |a| multiplied(a, DivideForm::Flat),
    },
    Function {
        name: "blocked_product",
        signature: "blocked_product(A, B)",
        summary: "copies one after another in every mode: ((block,copies),...)",
        example: "blocked_product((2,5):(5,1), (3,4))",
        result: "((2,3),(5,4)):((5,10),(1,30))",
        section: PRODUCT,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.blocked_product(&*a.layout(1)?)?.into()),
    },
    Function {
        name: "raked_product",
        signature: "raked_product(A, B)",
        summary: "copies interleaved in every mode: ((copies,block),...), each mode coalesced",
        example: "raked_product((2,5):(5,1), (3,4))",
        result: "((3,2),(4,5)):((10,5),(30,1))",
        section: PRODUCT,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.raked_product(&*a.layout(1)?)?.into()),
    },
    Function {
        name: "tile_to_shape",
        signature: "tile_to_shape(A, shape, order)",
        summary: "the block A repeated until it covers the shape; the mode with the least key of the order advances first",
        example: "tile_to_shape((3,2):(1,3), (6,8), (1,0))",
        result: "((3,2),(2,4)):((1,24),(3,6))",
        section: PRODUCT,
        least: 2,
        most: 3,
        run: |a| {
            let order = if a.len() > 2 { Some(a.integer_tree(2)?) } else { None };
            Ok(a.layout(0)?.tile_to_shape(&*a.shape(1)?, order.as_ref())?.into())
        },
    },
];
