//! Tests without a device: the same code, with a fake driver that is implemented here.

mod allocations;
mod bad_input;
mod failures;
pub(crate) mod fake;
mod kernels;
mod launches;
mod loading;
mod measured;
mod memory;
mod opening;
mod sequences;
