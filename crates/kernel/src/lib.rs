//! Kernels: programs for many threads, written with layouts.

mod build;
mod element;
mod error;
mod explanation;
pub mod interpret;
pub mod program;
pub mod ptx;

pub use build::{Build, Flag, Fragment, Kernel, Num, Tensor, View};
pub use element::{Element, ElementType};
pub use error::{KernelError, Reason};
pub use program::Program;
pub use program::scalar::reciprocal;

/// The page about an error code of this crate: what is refused while a kernel is written or
/// printed, and what the interpreter finds. None for a code that is not one of its own.
///
/// ```
/// assert!(tilewright_kernel::explanation("E0903").is_some_and(|page| page.contains("exist")));
/// assert!(tilewright_kernel::explanation("E1016").is_some_and(|page| page.contains("barrier")));
/// assert!(tilewright_kernel::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    explanation::explanation(code).or_else(|| interpret::explanation(code))
}
