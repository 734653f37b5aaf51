//! What takes devices and several crates of Tilewright: products of matrices in one call, kernels
//! and tile programs timed, tensors moved between GPUs, and products of sharded matrices.
//!
//! `tilewright` has these modules under the same names.

pub mod bench;
pub mod between;
pub mod gemm;
pub mod measured;
pub mod reshard;
pub mod sharded;
