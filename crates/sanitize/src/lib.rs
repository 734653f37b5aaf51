//! Runs the PTX of any compiler without a GPU, and finds what is wrong with it.
//!
//! * [`ptx`]: the text as a module of functions, variables and statements, each with its line.
//! * [`isa`]: what each instruction computes, from bits to bits.
//! * [`engine`]: blocks, warps and their schedule: the instructions one after another.
//! * [`check`]: the memory of what was written and by whom, and the findings.

pub mod check;
pub mod engine;
pub mod isa;
pub mod ptx;
