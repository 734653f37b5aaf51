//! The tests of the sanitizer, a file for each topic.

mod check;
mod corpus;
mod control;
mod directions;
mod engines;
mod instructions;
mod isa;
mod launches;
mod reader;
mod together;
mod tools;
