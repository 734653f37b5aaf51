//! Values: numbers, nested tuples of them, and layouts.
//!
//! Law: a nested tuple is the flat list of its leaves and its profile, and a layout is a nested
//! tuple of (extent, stride) leaves. The constructors check the invariants of a value, and every
//! operation keeps them, so no other code checks them again.
//!
//! * `number`: the arithmetic that the algebra needs
//! * `kind`: further operations that the algebra needs, which each type of number implements
//! * `profile`, `tree`: nesting, and nested tuples
//! * `shape`, `division`, `compare`: arithmetic and order of shapes
//! * `coord`, `coord_macro`: coordinates, and indices
//! * `layout`, `evaluator`, `pieces`: layouts, their evaluation at many indices, and layouts with
//!   split leaves
//! * `pairs`: two trees that are written at the same time, in pairs of modes

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
