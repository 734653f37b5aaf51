//! All tests of the crate, in one program: it is linked once.

mod kernels;
#[cfg(feature = "ndarray")]
mod ndarray;
mod panics;
mod tensors;
mod threads;
