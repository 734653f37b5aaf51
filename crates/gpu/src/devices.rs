//! Running planned kernels on devices: GEMM in one call, timing of kernels and tile programs,
//! resharding between GPUs, and GEMM of sharded matrices.
//!
//! The rest of the crate treats kernels as programs, and imports nothing from this module.
//! `tilewright` re-exports its modules under the same names.

pub mod bench;
pub mod between;
pub mod gemm;
pub mod measured;
pub mod reshard;
pub mod sharded;
