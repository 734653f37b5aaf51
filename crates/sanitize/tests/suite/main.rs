//! The tests of the sanitizer, a file for each topic.

mod reader;
mod isa;
