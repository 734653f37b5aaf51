//! Runs the PTX of any compiler without a GPU, and finds what is wrong with it.
//!
//! [`sanitize`] takes a text of PTX as a compiler wrote it, a [`KernelLaunch`] and [`Options`], and
//! gives a [`Report`]: races, reads of what nobody wrote, accesses out of bounds, waits that never
//! end, each with the thread and the lines of the source that take part, beside the results.
//!
//! * [`ptx`]: the text as a module of functions, variables and statements, each with its line.
//! * [`isa`]: what each instruction computes, from bits to bits.
//! * [`engine`]: blocks, warps and their schedule: the instructions one after another.
//! * [`check`]: the memory of what was written and by whom, and the findings.
//! * [`costs`]: what each line of the source takes: instructions, sectors, wavefronts.

pub mod check;
pub mod costs;
mod element;
pub mod engine;
mod explanations;
pub mod isa;
mod json;
mod launch;
pub mod npy;
pub mod ptx;
mod refusal;
mod report;
mod run;
mod sarif;

pub use element::Element;
pub use explanations::explanation;
pub use launch::{
    Argument, Array, Direction, KernelLaunch, MAX_ARGUMENT_BYTES, MapArray, MapSwizzle, MapView, MapWalk,
};
pub use refusal::LaunchError;
pub use report::{Difference, Ending, Report, ResultArray, StatementSource};
pub use run::{MAX_SHARED_BYTES, Options, sanitize};
