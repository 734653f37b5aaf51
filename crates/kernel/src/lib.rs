//! Kernels: programs for many threads, written with layouts.

mod element;
pub mod program;

pub use element::{Element, ElementType};
pub use program::Program;
pub use program::scalar::reciprocal;
