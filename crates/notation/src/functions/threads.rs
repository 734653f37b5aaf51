//! Threads, their values, and what they can move at once.

use tilewright_layout::{Composed, make_layout_tv, max_common_layout, max_common_vector};

use super::Function;
use crate::arguments::{Arguments, Fault, Layouts};
use crate::value::Value;

const THREADS: &str = "Threads and vectors";

/// Both arguments as composed layouts, where one is.
fn seen(a: &Arguments<'_>) -> Result<Option<(Composed, Composed)>, Fault> {
    match a.is_map_of_bits(0) || a.is_map_of_bits(1) {
        true => Ok(Some((a.composed(0)?, a.composed(1)?))),
        false => Ok(None),
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "make_layout_tv",
        signature: "make_layout_tv(threads, values)",
        summary: "the shape of the tile, and the layout from (thread, value) to the index in the tile",
        example: "make_layout_tv((4,64):(64,1), (16,8):(8,1))",
        result: "((64,512),((64,4),(8,16)):((512,16),(64,1)))",
        section: THREADS,
        least: 2,
        most: 2,
        run: |a| {
            if let Layouts::Symbol(threads, values) = a.layouts(0, 1)? {
                let (tile, layout) = make_layout_tv(&threads, &values)?;
                return Ok(Value::List(vec![tile.into(), layout.into()]));
            }
            let (tile, layout) = make_layout_tv(&*a.layout(0)?, &*a.layout(1)?)?;
            Ok(Value::List(vec![tile.into(), layout.into()]))
        },
    },
    Function {
        name: "max_common_layout",
        signature: "max_common_layout(A, B)",
        summary: "the largest layout of indices at which both are 0, 1, 2 and so on",
        example: "max_common_layout((4,8):(8,1), (4,8):(16,1))",
        result: "8:4",
        section: THREADS,
        least: 2,
        most: 2,
        run: |a| match seen(&a)? {
            Some((x, y)) => Ok(x.max_common_layout(&y)?.into()),
            None => match a.layouts(0, 1)? {
                Layouts::Symbol(x, y) => Ok(max_common_layout(&x, &y)?.into()),
                _ => Ok(max_common_layout(&*a.layout(0)?, &*a.layout(1)?)?.into()),
            },
        },
    },
    Function {
        name: "max_common_vector",
        signature: "max_common_vector(A, B)",
        summary: "how many elements lie side by side in both",
        example: "max_common_vector((4,8):(1,4), (4,8):(1,8))",
        result: "4",
        section: THREADS,
        least: 2,
        most: 2,
        run: |a| match seen(&a)? {
            Some((x, y)) => Ok(x.max_common_vector(&y)?.into()),
            None => match a.layouts(0, 1)? {
                Layouts::Symbol(x, y) => Ok(max_common_vector(&x, &y)?.into()),
                _ => Ok(max_common_vector(&*a.layout(0)?, &*a.layout(1)?)?.into()),
            },
        },
    },
];
