//! Copies, transforms and products, beside plain loops.

mod copies;
mod gemm;
pub mod random;
mod transforms;
