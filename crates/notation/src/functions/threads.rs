//! Thread-value layouts, and the widest vectors that threads can copy.

use super::{Function, function};
use crate::value::Value;

pub(super) const THREADS: &[Function] = &[
    function(
        "make_layout_tv(threads, values)",
        "the shape of the tile, and the layout from (thread, value) to the index in the tile",
    )
    .example("make_layout_tv((4,64):(64,1), (16,8):(8,1))", "((64,512),((64,4),(8,16)):((512,16),(64,1)))")
    .run(2..=2, |a| {
        let (tile, layout) = a.layout(0)?.thread_value(&*a.layout(1)?)?;
        Ok(Value::List(vec![tile.into(), layout.into()]))
    }),
    function(
        "max_common_layout(A, B)",
        "a layout of indices whose elements are contiguous in both; the largest, if A or B is injective",
    )
    .example("max_common_layout((4,8):(8,1), (4,8):(16,1))", "8:4")
    .run(2..=2, |a| Ok(a.layout(0)?.max_common_layout(&*a.layout(1)?)?.into())),
    function(
        "max_common_vector(A, B)",
        "the number of elements that are contiguous in both: the size of max_common_layout",
    )
    .example("max_common_vector((4,8):(1,4), (4,8):(1,8))", "4")
    .run(2..=2, |a| Ok(a.layout(0)?.max_common_vector(&*a.layout(1)?)?.into())),
];
