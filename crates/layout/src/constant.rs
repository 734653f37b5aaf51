//! Layouts that are known at compile time.
//!
//! Law: a constant has the values of the layout, composed layout or tiler that it was made from.
//! Its type does not depend on the shape, and its index arithmetic consists of shifts, masks and
//! products.

pub(crate) mod composed;
pub(crate) mod layout;
pub(crate) mod tiler;
