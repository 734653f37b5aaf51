//! Kernels planned from layouts.
//!
//! Each function here looks at the layouts of its tensors, decides how a GPU should do the work,
//! and returns the kernel with its plan: a few lines that say what was chosen and why. Nothing but
//! layouts, sizes and types is looked at, so a plan can be read, checked and timed on any machine.

mod axes;
mod error;
mod explanation;
mod expression;
mod gather;
pub mod gemm;
mod group_product;
mod library;
mod long_rows;
mod map;
mod meaning;
mod norm;
mod planned;
mod product;
mod reduce;
mod relayout;
mod rows;
mod softmax;
mod tiled_add;

pub use axes::Axis;
pub use error::PlanError;
pub use explanation::explanation;
pub use expression::Expression;
pub use gather::{gather, scatter};
pub use group_product::group_product;
pub use library::{Entry, library, named};
pub use map::{Placed, map, map_at};
pub use meaning::{Definition, Report, Unchecked, Wanted, any_numbers, bits_at};
pub use norm::{layer_norm, layer_norm_at, rms_norm, rms_norm_at};
pub use planned::Planned;
pub use product::product;
pub use reduce::{Statistic, reduce, reduce_at};
pub use relayout::{Place, relayout, relayout_for};
pub use softmax::{softmax, softmax_at};
pub use tiled_add::tiled_add;
