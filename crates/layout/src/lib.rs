//! The algebra of layouts.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod carry;
mod coalesce;
mod compare;
mod complement;
mod compose;
mod composed;
mod coord;
mod divide;
mod division;
mod domain;
mod error;
mod inverse;
mod largest;
mod layout;
mod modes;
mod number;
mod order;
mod predicate;
mod print;
mod product;
mod profile;
mod recast;
mod search;
mod shape;
mod slice;
mod sum;
mod swizzle;
mod text;
mod thread_value;
mod tiler;
mod tree;
mod vector;

pub use carry::MAX_CASES;
pub use composed::{Composed, OuterMap};
pub use coord::{Coord, Coordinates, Slot, coordinates, crd2crd, crd2idx, idx2crd, increment};
pub use domain::{common_coarsening, common_refinement, domain_distribute, greatest_common_domain};
pub use error::{LayoutError, Limit, Operand, Path};
pub use largest::MAX_BOXES;
pub use layout::{Layout, Leaf};
pub use number::{Extent, Stride, Truth};
pub use order::compact_order;
pub use predicate::MAX_IMAGE;
pub use print::Printer;
pub use profile::{MAX_DEPTH, MAX_NODES, Profile};
pub use search::MAX_CANDIDATES;
pub use swizzle::{MAX_SWIZZLE_BITS, Swizzle};
pub use thread_value::make_layout_tv;
pub use tiler::{Tiler, TilerModes};
pub use tree::Tree;
pub use vector::{max_common_layout, max_common_vector};
