//! Runs PTX of any compiler without a GPU, and finds defects in it.
//!
//! [`sanitize`] takes the PTX text of a compiler, a [`KernelLaunch`] and [`Options`], and returns a
//! [`Report`]. It finds races, reads of uninitialised memory, accesses out of bounds, and waits
//! that never end. Each finding has the thread and the source lines that take part; the report also
//! has the results.
//!
//! * [`ptx`]: parses the text into a module of functions, variables and statements, each with its
//!   line.
//! * [`isa`]: the functions that instructions compute, from bits to bits.
//! * [`engine`]: executes the instructions of blocks and warps in the order of a schedule.
//! * [`check`]: records who wrote and read each byte, and makes findings.
//! * [`costs`]: the cost of each source line: instructions, sectors, wavefronts.

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
