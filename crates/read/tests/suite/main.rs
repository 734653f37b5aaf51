//! All tests of the crate, in one program: it is linked once.

mod cute_facts;
mod cute_print;
mod others;
mod same;
mod triton;
mod write;
