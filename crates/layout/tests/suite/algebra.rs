//! The algebra of layouts with integers, against its definitions.

mod composition;
mod domain;
mod evaluator;
mod inverse;
mod known;
mod large;
mod limits;
mod modes;
mod order;
mod predicate;
mod print;
mod recast;
mod shape;
mod slice;
mod text;
mod thread_value;
mod tiling;
mod vector;
