//! Errors: the reasons why an operation has no result.
//!
//! Law: an operation returns the value that satisfies its definition, or a
//! [`LayoutError`](crate::LayoutError) with the condition that fails, the mode and the numbers. An
//! error contains data; its message is formatted when it is printed.
//!
//! * `error`: the kinds of error
//! * `evidence`: the data of an error
//! * `interrupt`: the work limits of searches, and how to interrupt them
//! * `message`: the messages and help texts
//! * `nearest`: the valid names that are similar to a misspelt one
//! * `pages`: a page about each code, for this crate and for those built on it
//! * `questions`: the code of an error, its operation, and the position in its operands

pub(crate) mod error;
pub(crate) mod evidence;
pub mod interrupt;
pub(crate) mod message;
pub(crate) mod nearest;
mod pages;
pub(crate) mod questions;
