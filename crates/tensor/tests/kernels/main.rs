//! Copies, transforms and products, beside plain loops.

mod copies;
mod gemm;
mod random;
mod transforms;
