//! All tests of the crate, in one program: it is linked once.

mod compile_time;
mod floors;
#[cfg(feature = "devices")]
mod measured;
mod names;
#[cfg(feature = "devices")]
mod order;
#[cfg(feature = "devices")]
mod own_kernels;
#[cfg(feature = "devices")]
mod reshard;
#[cfg(feature = "devices")]
mod same;
#[cfg(feature = "devices")]
mod sharded;
#[cfg(feature = "devices")]
mod work;

/// The card for which most tests plan.
fn h200() -> tilewright::kernel::machine::Machine {
    tilewright::kernel::machine::Machine::named("H200").unwrap()
}

/// A card of so few multiprocessors that small tensors have several blocks for each.
fn few() -> tilewright::kernel::machine::Machine {
    tilewright::kernel::machine::Machine { multiprocessors: 4, ..h200() }
}
