//! The domain that several layouts share, over which copies, transforms and reductions iterate.
//!
//! Law: axes, or single indices, visit every index of the layouts once, with the offset of its
//! element in each. `addressing` describes the offsets of one layout, `axes` cuts several layouts
//! into common axes, `space` holds these in bytes, and `counter` steps through indices if there are
//! no common axes.

mod addressing;
mod axes;
mod counter;
mod space;

pub(crate) use addressing::Addressing;
pub(crate) use counter::{runs, runs_of};
pub(crate) use space::{Space, Step};
