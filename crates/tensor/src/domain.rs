//! The domain that several layouts have in common: what copies, transforms and reductions walk.
//!
//! Law: axes, or indices one by one, visit every index of the layouts once, with the place of its
//! element in each. `addressing` says where the elements of one layout lie, `axes` cuts several
//! layouts into common axes, `space` has these in bytes, and `counter` walks indices where there
//! are no axes.

mod addressing;
mod axes;
mod counter;
mod space;

pub(crate) use addressing::Addressing;
pub(crate) use counter::{runs, runs_of};
pub(crate) use space::{Space, Step};
