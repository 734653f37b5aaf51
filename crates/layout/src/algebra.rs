//! The algebra of layouts with strides in an integer semimodule.
//!
//! Law: each operation has a definition, by values at every index. It returns the layout that the
//! definition asks for whenever there is one, and refuses otherwise. Kinds of strides that need an
//! algebra of their own have it in `coordinate` and `xor`; `inner` says where they take over.
//!
//! * `coalesce`, `equivalence`: the fewest modes, and equality of functions
//! * `compose`, `carry`: `A o B`, and when carries let it exist
//! * `complement`, `inverse`, `search`, `sum`: complements, inverses, and sums
//! * `domain`, `vector`: common refinements, and vectors that two layouts share
//! * `predicate`: injective, surjective, compact, ..
//! * `integer`: what is particular to integers
//! * `order`, `recast`: compact strides in an order, and elements of another width

pub(crate) mod carry;
pub(crate) mod coalesce;
pub(crate) mod complement;
pub(crate) mod compose;
pub(crate) mod digits;
pub(crate) mod domain;
mod equivalence;
pub(crate) mod inner;
mod integer;
pub(crate) mod inverse;
pub(crate) mod order;
pub(crate) mod predicate;
mod recast;
pub(crate) mod search;
#[cfg(test)]
mod semimodule;
pub(crate) mod sum;
pub(crate) mod vector;
