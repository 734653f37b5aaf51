//! The table of readers.

use crate::reader::Reader;
use crate::readers::{
    arrays, cute_blocks, cute_cpp, cute_dsl, cute_ir, cute_print, cute_tables, device_grid, sharding, tilelang, triton,
    typed,
};

/// Every reader. One that knows the longer text at a place wins, and of equals the first.
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
    triton::READER,
    triton::GLUON,
    triton::PRINTED,
    tilelang::READER,
    tilelang::NAMED,
    arrays::TINYGRAD,
    arrays::TIRX,
    arrays::NUMPY,
    arrays::TORCH,
    typed::TORCH,
    typed::XLA,
    device_grid::READER,
    sharding::JAX,
    sharding::DTENSOR,
];
