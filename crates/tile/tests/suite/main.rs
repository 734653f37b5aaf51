//! All tests of the crate, in one program: it is linked once.

mod gradients;
mod programs;
mod random;
mod refusals;
mod sequences;
