//! All tests of the crate, in one program: it is linked once.

mod conformance;
mod diagnostics;
mod programs;

// Its macro has a test of its own: the codes in use have pages, and the pages are about such codes.
#[allow(dead_code)]
#[path = "../../src/explanation.rs"]
mod explanation;
