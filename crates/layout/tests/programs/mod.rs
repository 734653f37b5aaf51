//! Programs on layouts whose extents and strides are known at launch.

mod generator;
mod program;

pub use generator::{Generator, parameters};
pub use program::{AsIs, Program};
