//! The engine: blocks, warps and their schedule.
//!
//! A module is decoded once: each statement becomes operations on numbered registers (`decode`,
//! `code`), and each branch gets the place at which its lanes reconverge (`flow`). A cluster of
//! blocks runs on one thread of the host (`cluster`), one warp at a time (`warp`, `execute`), one
//! operation for all lanes at once. `parting` handles lanes that diverge and calls of functions.
//! Memory accesses (`access`, `perform`), operations of several lanes (`meeting`, `together`,
//! `matrix`) and the asynchronous engines (`engines`) report to the checker.

mod access;
mod cluster;
mod code;
mod decode;
mod engines;
mod execute;
mod flow;
mod grid;
mod heap;
mod marks;
mod matrix;
mod meeting;
mod memory;
mod parting;
mod perform;
mod print;
mod schedule;
mod special;
mod together;
mod tracing;
mod warp;
mod windows;

pub(crate) use cluster::{Grid, Stop};
pub(crate) use code::Program;
pub(crate) use decode::program;
pub(crate) use engines::tensor_map;
pub(crate) use grid::run;
pub(crate) use memory::{Memory, Region, Words};
pub(crate) use windows::GLOBAL;

pub use schedule::Schedule;
