//! Layouts known while one compiles.
//!
//! Law: a constant has the values of the layout, composed layout or tiler that it was made from.
//! Its type does not depend on the shape, and its index arithmetic is shifts, masks and products.

pub(crate) mod composed;
pub(crate) mod layout;
pub(crate) mod tiler;
