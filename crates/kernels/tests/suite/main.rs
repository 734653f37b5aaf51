//! All tests of the crate, in one program: it is linked once.

mod costs;
mod extremes;
mod gemm;
mod interpreted;
mod reductions;
mod relayouts;
mod shown;
mod steps;
mod targets;
