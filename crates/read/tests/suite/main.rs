//! All tests of the crate, in one program: it is linked once.

mod cute_cpp;
mod cute_dsl;
mod cute_facts;
mod cute_print;
mod failures;
mod foreign;
mod hostile;
mod others;
mod pastes;
mod same;
mod shardy;
mod triton;
mod views;
mod write;
