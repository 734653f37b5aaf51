//! The algebra of layouts with strides in an integer semimodule.
//!
//! Law: each operation is defined by its values at every index. It returns the layout that
//! satisfies the definition if one exists, and refuses otherwise. Coordinate and XOR strides need
//! operations of their own, in `coordinate` and `xor`; `inner` selects them.
//!
//! * `coalesce`, `equivalence`: the fewest modes, and equality of functions
//! * `compose`, `carry`: `A o B`, and the decision whether carries allow it
//! * `complement`, `inverse`, `search`, `sum`: complements, inverses, and sums
//! * `domain`, `vector`: common refinements, and vectors that two layouts share
//! * `predicate`: injective, surjective, compact, ..
//! * `integer`: the parts that hold only for integers
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
