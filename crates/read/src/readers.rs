//! The readers, one file for each system.

pub mod arrays;
pub mod cute_blocks;
pub mod cute_cpp;
pub mod cute_dsl;
pub mod cute_ir;
pub mod cute_print;
pub mod cute_tables;
pub mod device_grid;
pub mod dtensor;
mod near;
mod placements;
pub mod pycute;
pub mod sharding;
pub mod shardy;
pub mod strided_calls;
pub mod tilelang;
pub mod triton;
pub mod typed;
