//! The algebra of layouts with integers, against its definitions.

mod composition;
mod domain;
mod evaluator;
mod inverse;
mod known;
mod large;
mod limits;
mod modes;
#[path = "../oracle/mod.rs"]
mod oracle;
mod order;
mod predicate;
mod print;
#[path = "../random/mod.rs"]
mod random;
mod recast;
mod shape;
mod slice;
mod text;
mod thread_value;
mod tiling;
mod vector;
