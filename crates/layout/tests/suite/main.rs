//! All tests of the crate, in one program: it is linked once.

mod algebra;
mod analysis;
mod atoms;
mod candidate;
mod emit;
mod kinds;
mod launch;
mod morphism;
#[path = "../oracle/mod.rs"]
mod oracle;
#[path = "../random/mod.rs"]
mod random;
#[cfg(feature = "serde")]
mod serialise;
mod verify;
