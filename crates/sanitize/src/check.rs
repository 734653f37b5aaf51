//! Checks of a running kernel: who wrote each byte, which accesses are ordered, and which defects
//! follow.
//!
//! * [`checker`]: what an engine reports: accesses and synchronisation, of whole warps at once.
//! * [`finding`]: defects, with the threads and the statements that take part.
//! * [`message`]: findings as text.
//! * [`GridChecker`]: the checker of a launch, which makes a checker for each of its clusters.

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
