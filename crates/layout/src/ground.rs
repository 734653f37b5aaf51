//! The basis of values and refusals: nestings, nested tuples, and sizes known at launch.
//!
//! Law: nothing here is refused, so that a refusal may hold all of it. What makes a value of parts
//! that may be wrong is in `value` and `symbolic`.

pub(crate) mod bounds;
pub(crate) mod parameter;
pub(crate) mod profile;
pub(crate) mod tree;
mod variants;
pub(crate) mod words;
