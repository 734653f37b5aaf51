//! Running planned kernels on devices: GEMM in one call, timing of kernels and tile programs,
//! resharding between GPUs, and GEMM of sharded matrices.
//!
//! The rest of the crate knows kernels only as programs and imports nothing from this module.
//! `tilewright` has the modules in it under the same names.

pub mod bench;
pub mod between;
pub mod gemm;
pub mod measured;
pub mod reshard;
pub mod sharded;
