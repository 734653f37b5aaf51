//! All tests of the crate, in one program: it is linked once.

mod candidate;
mod interner;
#[path = "../../../layout/tests/random/mod.rs"]
mod random;
mod verify;
