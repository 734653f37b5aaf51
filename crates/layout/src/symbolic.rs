//! Numbers that become known at launch.
//!
//! An [`Expr`] is an integer over named [`Parameter`]s, about each of which some [`Facts`] are
//! known. It is an [`Extent`](crate::Extent) and a [`Stride`](crate::Stride), so that the whole
//! algebra works on `Layout<Expr>`. A result is correct for every value that the facts admit; an
//! operation whose result depends on the value is refused ([`crate::LayoutError::Open`]).
//!
//! * `expression`: the number itself, and its arithmetic
//! * `polynomial`: the canonical form, sums of products of atoms
//! * `parameter`: parameters and the facts about them
//! * `quotient`: division, and the atoms for quotients
//! * `divisor`: common divisors of two expressions
//! * `bounds`: proofs of the sign of an expression from facts
//! * `given`: proofs under the assumption that some extents are at least 2
//! * `question`: the fact that would settle an open condition
//! * `predicate`: predicates of layouts of expressions
//! * `form`: an expression as a tree of operations, and its text
//! * `text`: parsing of expressions, and of trees, layouts and tilers of them
//! * `values`: substitution of numbers for parameters
//! * `structures`: substitution in trees, layouts, tilers and composed layouts

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
