//! The domain that several layouts have in common: what copies, transforms and reductions walk.

mod addressing;
mod axes;
mod counter;
mod space;

pub(crate) use addressing::Addressing;
pub(crate) use counter::{runs, runs_of};
pub(crate) use space::{Space, Step};
