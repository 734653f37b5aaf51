//! Kernels: programs for many threads, written with layouts.

mod build;
mod element;
mod error;
mod explanation;
pub mod program;
pub mod ptx;

pub use build::{Build, Flag, Fragment, Kernel, Num, Tensor, View};
pub use element::{Element, ElementType};
pub use error::{KernelError, Reason};
pub use explanation::explanation;
pub use program::Program;
pub use program::scalar::reciprocal;
