//! The table of readers.

use crate::reader::Reader;
use crate::readers::{
    arrays, cute_blocks, cute_cpp, cute_dsl, cute_ir, cute_print, cute_tables, device_grid, dtensor, pycute, sharding,
    shardy, strided_calls, tilelang, triton, typed,
};

/// Every reader. If several recognise the text at a position, the longest text wins, and among
/// equals the first reader.
pub fn readers() -> &'static [Reader] {
    READERS
}

static READERS: &[Reader] = &[
    cute_print::READER,
    cute_tables::READER,
    cute_blocks::READER,
    cute_blocks::PYTHON,
    cute_cpp::READER,
    cute_ir::READER,
    cute_ir::PRINTED,
    cute_dsl::READER,
    pycute::READER,
    triton::READER,
    triton::GLUON,
    triton::PRINTED,
    triton::VIEWS,
    tilelang::READER,
    tilelang::NAMED,
    arrays::TINYGRAD,
    arrays::TIRX,
    arrays::INTERFACE,
    arrays::NUMPY,
    arrays::TORCH,
    strided_calls::TORCH,
    strided_calls::NUMPY,
    typed::TORCH,
    typed::XLA,
    typed::AXES,
    device_grid::READER,
    sharding::JAX,
    sharding::DTENSOR,
    dtensor::READER,
    shardy::READER,
];
