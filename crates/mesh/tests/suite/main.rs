//! All tests of the crate, in one program: it is linked once.

mod between;
mod faults;
mod layouts;
mod operations;
#[path = "../oracle/mod.rs"]
mod oracle;
mod pieces;
#[path = "../processes/mod.rs"]
mod processes;
mod product;
mod random;
mod rendezvous;
mod scale;
mod uneven;
