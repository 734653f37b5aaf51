//! Division into tiles and products of blocks.

use tilewright_layout::DivideForm;

use super::{Function, function};
use crate::arguments::{Arguments, Fault};
use crate::value::Value;

/// A layout divided by a tiler.
fn divided(a: Arguments<'_>, form: DivideForm) -> Result<Value, Fault> {
    Ok(a.layout(0)?.divide(form, &*a.tiler(1)?)?.into())
}

/// Copies of a block, arranged by a tiler.
fn multiplied(a: Arguments<'_>, form: DivideForm) -> Result<Value, Fault> {
    Ok(a.layout(0)?.product(form, &*a.tiler(1)?)?.into())
}

pub(super) const DIVISION: &[Function] = &[
    function("logical_divide(A, T)", "A split into tiles: (tile, rest), or the same in each mode of the tiler")
        .example("logical_divide((4,6):(1,4), (2,3))", "((2,2),(3,2)):((1,2),(4,12))")
        .run(2..=2, |a| divided(a, DivideForm::Logical)),
    function("zipped_divide(A, T)", "logical_divide with all tiles first: ((tiles),(rests))")
        .example("zipped_divide((4,6):(1,4), (2,3))", "((2,3),(2,2)):((1,4),(2,12))")
        .run(2..=2, |a| divided(a, DivideForm::Zipped)),
    function("tiled_divide(A, T)", "logical_divide as ((tiles),rest,rest,...)")
        .example("tiled_divide((4,6):(1,4), (2,3))", "((2,3),2,2):((1,4),2,12)")
        .run(2..=2, |a| divided(a, DivideForm::Tiled)),
    function("flat_divide(A, T)", "logical_divide as (tile,tile,...,rest,rest,...)")
        .example("flat_divide((4,6):(1,4), (2,3))", "(2,3,2,2):(1,4,2,12)")
        .run(2..=2, |a| divided(a, DivideForm::Flat)),
];

pub(super) const PRODUCT: &[Function] = &[
    function("logical_product(A, B)", "copies of the block A, arranged by a layout: (block, copies)")
        .example("logical_product((2,2):(4,1), 6:1)", "((2,2),(2,3)):((4,1),(2,8))")
        .run(2..=2, |a| multiplied(a, DivideForm::Logical)),
    function("zipped_product(A, B)", "logical_product with all blocks first: ((blocks),(copies))")
        .example("zipped_product(4:1, 3:1)", "(4,3):(1,4)")
        .run(2..=2, |a| multiplied(a, DivideForm::Zipped)),
    function("tiled_product(A, B)", "logical_product as ((blocks),copies,copies,...)")
        .example("tiled_product((3,4):(4,1), (2,5):(1,2))", "((3,4),2,5):((4,1),12,24)")
        .run(2..=2, |a| multiplied(a, DivideForm::Tiled)),
    function("flat_product(A, B)", "logical_product as (block,block,...,copies,copies,...)")
        .example("flat_product((3,4):(4,1), (2,5):(1,2))", "(3,4,2,5):(4,1,12,24)")
        .run(2..=2, |a| multiplied(a, DivideForm::Flat)),
    function("blocked_product(A, B)", "copies one after another in every mode: ((block,copies),...)")
        .example("blocked_product((2,5):(5,1), (3,4))", "((2,3),(5,4)):((5,10),(1,30))")
        .run(2..=2, |a| Ok(a.layout(0)?.blocked_product(&*a.layout(1)?)?.into())),
    function("raked_product(A, B)", "copies interleaved in every mode: ((copies,block),...), each mode coalesced")
        .example("raked_product((2,5):(5,1), (3,4))", "((3,2),(4,5)):((10,5),(30,1))")
        .run(2..=2, |a| Ok(a.layout(0)?.raked_product(&*a.layout(1)?)?.into())),
    function(
        "tile_to_shape(A, shape, order)",
        "the block A repeated until it covers the shape; the mode with the least key of the order advances first",
    )
    .example("tile_to_shape((3,2):(1,3), (6,8), (1,0))", "((3,2),(2,4)):((1,24),(3,6))")
    .run(2..=3, |a| {
        let order = if a.len() > 2 { Some(a.integer_tree(2)?) } else { None };
        Ok(a.layout(0)?.tile_to_shape(&*a.shape(1)?, order.as_ref())?.into())
    }),
];
