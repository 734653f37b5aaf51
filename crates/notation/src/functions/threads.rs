//! Threads, their values, and what they can move at once.

use super::Function;
use crate::value::Value;

const THREADS: &str = "Threads and vectors";

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
            let (tile, layout) = a.layout(0)?.thread_value(&*a.layout(1)?)?;
            Ok(Value::List(vec![tile.into(), layout.into()]))
        },
    },
    Function {
        name: "max_common_layout",
        signature: "max_common_layout(A, B)",
        summary: "a layout of indices whose elements are contiguous in both; the largest, if A or B is injective",
        example: "max_common_layout((4,8):(8,1), (4,8):(16,1))",
        result: "8:4",
        section: THREADS,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.max_common_layout(&*a.layout(1)?)?.into()),
    },
    Function {
        name: "max_common_vector",
        signature: "max_common_vector(A, B)",
        summary: "the number of elements that are contiguous in both: the size of max_common_layout",
        example: "max_common_vector((4,8):(1,4), (4,8):(1,8))",
        result: "4",
        section: THREADS,
        least: 2,
        most: 2,
        run: |a| Ok(a.layout(0)?.max_common_vector(&*a.layout(1)?)?.into()),
    },
];
