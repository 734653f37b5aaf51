//! Values: numbers, nested tuples of them, and layouts.
//!
//! Law: a nested tuple is the flat list of its leaves and its profile, and a layout is a nested
//! tuple of (extent, stride) leaves. What is checked when a value is made holds ever after, so that
//! code that has a value never checks it again.
//!
//! * `number`: the arithmetic that the algebra is written against
//! * `kind`: what the algebra asks of a kind of numbers besides, which the rooms of the kinds
//!   answer
//! * `profile`, `tree`: nesting, and nested tuples
//! * `shape`, `division`, `compare`: arithmetic and order of shapes
//! * `coord`, `coord_macro`: coordinates, and indices
//! * `layout`, `evaluator`, `pieces`: layouts, many values of one, and layouts from pieces of modes
//! * `pairs`: two trees that are written at once, a pair of modes at a time

pub(crate) mod compare;
pub(crate) mod coord;
mod coord_macro;
pub(crate) mod division;
pub(crate) mod evaluator;
pub(crate) mod kind;
pub(crate) mod layout;
pub(crate) mod number;
pub(crate) mod pairs;
pub(crate) mod pieces;
pub(crate) mod profile;
pub(crate) mod shape;
pub(crate) mod tree;
pub(crate) mod tuples;
