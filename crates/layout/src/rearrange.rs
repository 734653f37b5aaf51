//! Operations that rearrange modes, or fix some of them.
//!
//! Law: every leaf of the result is a leaf of an argument. So each operation works for every kind
//! of stride, and is written once.

mod modes;
pub(crate) mod slice;
