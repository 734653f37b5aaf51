//! Tests without a device: the same code over a driver that is written here.

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
