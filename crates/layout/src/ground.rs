//! The basis of values and refusals: nestings, nested tuples, and sizes known at launch.
//!
//! Law: no operation here returns an error, so errors may contain these types. Constructors that
//! may refuse are in `value` and `symbolic`.

pub(crate) mod bounds;
pub(crate) mod parameter;
pub(crate) mod profile;
pub(crate) mod tree;
mod variants;
pub(crate) mod words;
