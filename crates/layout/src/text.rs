//! Text of values, both ways.
//!
//! Law: what is printed reads back as the same value.
//!
//! `reading` imports from `xor` above it, whose steps it reads beside those of the other kinds.

pub(crate) mod print;
pub(crate) mod reading;
