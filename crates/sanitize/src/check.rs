//! What is checked while a kernel runs: who wrote each byte, what happened before what, findings.
//!
//! * [`checker`]: what an engine tells: accesses and synchronisation, of whole warps at once.
//! * [`finding`]: what is answered: defects, with the threads and the statements that take part.
//! * [`message`]: findings as sentences.
//! * [`GridChecker`]: the checker of a launch, which gives one to each of its clusters.

pub mod checker;
mod clock;
mod cluster;
mod event;
pub mod finding;
mod grid;
pub mod message;
mod report;
mod shadow;
mod uses;

pub use cluster::ClusterChecker;
pub use grid::GridChecker;
