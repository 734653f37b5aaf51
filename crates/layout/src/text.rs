//! Text of values, both ways.
//!
//! Law: what is printed reads back as the same value.

pub(crate) mod print;
pub(crate) mod reading;
