//! What runs planned kernels on devices: products of matrices in one call, kernels and tile programs
//! timed, tensors moved between GPUs, and products of sharded matrices.
//!
//! All else of the crate knows kernels as programs alone and imports nothing of this module.
//! `tilewright` has the modules in it under the same names.

pub mod bench;
pub mod between;
pub mod gemm;
pub mod measured;
pub mod reshard;
pub mod sharded;
