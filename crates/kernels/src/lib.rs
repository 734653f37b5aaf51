//! Kernels planned from layouts.
//!
//! Each function here looks at the layouts of its tensors, decides how a GPU should do the work,
//! and returns the kernel with its plan: a few lines that say what was chosen and why. Nothing but
//! layouts, sizes and types is looked at, so a plan can be made, read and checked on any machine.
//!
//! | function | what the kernel does |
//! |---|---|
//! | [`relayout()`] | moves a tensor from any layout to any other of the same size, and converts its type |
//! | [`fn@map`] | a function of tensors, element by element, with broadcasting |
//! | [`fn@reduce`] | sums, means, norms, greatest elements and their places along any modes |
//! | [`fn@softmax`], [`rms_norm`], [`layer_norm`] | rows |
//! | [`fn@gather`], [`scatter`] | rows by their numbers |
//! | [`fn@product`] | a product of matrices for every GPU since Ampere |
//! | [`gemm`] | products for Hopper: any layouts, types, functions of the sums, groups, convolutions |
//! | [`library()`], [`named`] | all of them by name, with default sizes, as the command has them |
//!
//! ```
//! use tilewright_kernel::Element;
//! use tilewright_kernel::ptx::{self, Target};
//! use tilewright_kernels::softmax;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let planned = softmax(1024, Element::Bf16)?;
//! println!("{planned}"); // what was chosen
//! let text = ptx::write(planned.kernel().program(), Target::Sm80)?;
//! assert!(text.contains(".entry"));
//! # Ok(())
//! # }
//! ```

mod axes;
mod error;
mod explanation;
mod expression;
mod extremes;
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
pub use norm::{Norm, layer_norm, layer_norm_of, layer_norm_with, rms_norm, rms_norm_of, rms_norm_with};
pub use planned::Planned;
pub use product::product;
pub use reduce::{Indices, Statistic, indices_of_greatest, reduce, reduce_at};
pub use relayout::{Place, relayout, relayout_for};
pub use rows::RowMatrix;
pub use softmax::{softmax, softmax_of};
pub use tiled_add::tiled_add;
