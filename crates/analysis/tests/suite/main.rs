//! All tests of the crate, in one program: it is linked once.

mod footprint;
mod memory;
mod suggest;
