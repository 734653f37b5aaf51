//! Numbers that become known at launch.
//!
//! An [`Expr`] is an integer over named [`Parameter`]s, about each of which some [`Facts`] are
//! known. It is an [`Extent`](crate::Extent) and a [`Stride`](crate::Stride), so that the whole
//! algebra works on `Layout<Expr>`; a result is right for every value that the facts admit, and
//! what depends on the value is refused ([`crate::LayoutError::Open`]).
//!
//! * `expression`: the number itself, and its arithmetic
//! * `polynomial`: the canonical form, sums of products of atoms
//! * `parameter`: the atoms that are given, and what is known about them
//! * `quotient`: the atoms that division makes
//! * `divisor`: what divides two expressions
//! * `bounds`: what follows from the facts about the sign of an expression
//! * `given`: the same where extents may be taken to be at least 2
//! * `question`: which further fact would settle what does not follow
//! * `predicate`: what kind of function a layout of expressions is
//! * `form`: an expression as a tree of operations, and its text
//! * `text`: reading expressions, and trees, layouts and tilers of them
//! * `values`: numbers in place of the parameters
//! * `structures`: the same in trees, layouts, tilers and composed layouts

mod bounds;
mod divisor;
mod expression;
mod form;
mod given;
mod kind;
mod parameter;
mod polynomial;
mod predicate;
mod question;
mod quotient;
mod structures;
mod text;
mod values;

pub use expression::Expr;
pub use form::{Node, Rounding};
pub use parameter::{Facts, Parameter};
pub use text::Declarations;
pub use values::{Symbolic, Values};
