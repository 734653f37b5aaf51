//! Printing and parsing of values.
//!
//! Law: the printed text parses to the same value.

pub(crate) mod print;
pub(crate) mod reading;
