//! Refusals: why an operation gives no result.
//!
//! Law: an operation returns the value that its definition asks for, or a
//! [`LayoutError`](crate::LayoutError) with the condition that fails, the mode and the numbers. A
//! refusal holds data; its sentence is made when it is printed.
//!
//! * `error`: the kinds of refusal
//! * `evidence`: what a refusal holds to show its case
//! * `interrupt`: how long a search goes on before it refuses, and how it is stopped
//! * `message`: the sentences and the help lines
//! * `nearest`: the names that a misspelt one may stand for
//! * `pages`: a page about each code, for this crate and for those built on it
//! * `questions`: the code of a refusal, its operation and the place in its operands

pub(crate) mod error;
pub(crate) mod evidence;
pub mod interrupt;
pub(crate) mod message;
pub(crate) mod nearest;
mod pages;
pub(crate) mod questions;
