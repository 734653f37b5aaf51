//! Values: numbers, nested tuples of them, and layouts.
//!
//! Law: a nested tuple is the flat list of its leaves and its profile, and a layout is a nested
//! tuple of (extent, stride) leaves. What is checked when a value is made holds ever after, so that
//! code that has a value never checks it again.
//!
//! It imports from `algebra` and `text` above it: a kind of stride brings its own composition, sum
//! and text, which the trait `Stride` names.
//!
//! * `number`: the arithmetic that the algebra is written against
//! * `profile`, `tree`: nesting, and nested tuples
//! * `shape`, `division`, `compare`: arithmetic and order of shapes
//! * `coord`, `coord_macro`: coordinates, and indices
//! * `layout`, `evaluator`, `pieces`: layouts, many values of one, and layouts from pieces of modes

pub(crate) mod compare;
pub(crate) mod coord;
mod coord_macro;
pub(crate) mod division;
pub(crate) mod evaluator;
pub(crate) mod layout;
pub(crate) mod number;
pub(crate) mod pieces;
pub(crate) mod profile;
pub(crate) mod shape;
pub(crate) mod tree;
