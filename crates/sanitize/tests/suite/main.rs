//! The tests of the sanitizer, a file for each topic.

mod check;
mod isa;
mod reader;
