//! The tests of the sanitizer, a file for each topic.

mod audit;
mod check;
mod control;
mod corpus;
mod costs;
mod directions;
mod engines;
mod instructions;
mod isa;
mod launches;
mod libraries;
mod reader;
mod sparse;
mod stack;
mod together;
mod tools;
mod uses;
mod video;
