//! All tests of the crate, in one program: it is linked once.

mod cards;
mod costs;
mod extremes;
mod gemm;
mod interpreted;
mod reductions;
mod relayouts;
mod shown;
mod steps;
mod targets;

/// The card for which most tests plan.
fn h200() -> tilewright_kernel::machine::Machine {
    tilewright_kernel::machine::Machine::named("H200").unwrap()
}
