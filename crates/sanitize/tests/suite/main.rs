//! The tests of the sanitizer, a file for each topic.

mod check;
mod directions;
mod control;
mod engines;
mod instructions;
mod isa;
mod launches;
mod reader;
mod together;
mod tools;
