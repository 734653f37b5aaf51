//! Planners: kernels chosen from layouts.
//!
//! Each function here reads the layouts of its tensors, decides how a GPU should do the work, and
//! returns the kernel with its plan: a few lines that say what was chosen and why. A plan depends
//! only on layouts, sizes, types and the GPU ([`Machine`](tilewright_kernel::machine::Machine)), so
//! a plan for any GPU can be made, read and checked on any computer.
//!
//! | function | what the kernel does |
//! |---|---|
//! | [`relayout()`] | copies a tensor from any layout to any other of the same size, and converts its type |
//! | [`fn@map`] | computes an elementwise function of tensors, with broadcasting |
//! | [`fn@reduce`] | computes the sum, mean, norm, maximum or argmax along any modes |
//! | [`fn@softmax`], [`rms_norm`], [`layer_norm`] | normalizes rows |
//! | [`fn@gather`], [`scatter`] | copies rows by index |
//! | [`gemm`] | GEMM (matmul), by wgmma and TMA or by `mma.sync`: any layouts, types and epilogue; grouped GEMM, convolutions |
//! | [`fn@product`] | GEMM by one kernel with the sizes as launch arguments |
//! | [`library()`], [`named`] | all kernels by name, with default sizes |
//!
//! ```
//! use tilewright_kernel::Element;
//! use tilewright_kernel::machine::Machine;
//! use tilewright_kernel::ptx;
//! use tilewright_planners::softmax;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let a100: Machine = "A100".parse()?;
//! let planned = softmax(&a100, (1024, Element::Bf16))?;
//! println!("{planned}"); // what was chosen
//! let text = ptx::write(planned.kernel().program(), a100.target)?;
//! assert!(text.contains(".entry"));
//! # Ok(())
//! # }
//! ```

mod axes;
mod computation;
mod error;
mod explanation;
mod expression;
mod extremes;
mod fitted;
mod gather;
pub mod gemm;
mod law;
mod library;
mod map;
mod meaning;
mod norm;
mod planned;
mod planner;
mod reduce;
mod relayout;
mod rows;
mod softmax;
mod terms;
mod tiled_add;
mod units;

pub use axes::Axis;
pub use computation::Computation;
pub use error::PlanError;
pub use explanation::explanation;
pub use expression::Expression;
pub use gather::{gather, scatter};
pub use gemm::product;
pub use library::{Entry, EntryOptions, library, named};
pub use map::{MapOptions, MapTensor, map};
pub use meaning::{Definition, Report, Unchecked, Wanted, any_numbers, bits_at};
pub use norm::{layer_norm, rms_norm};
pub use planned::Planned;
pub use planner::Planner;
pub use reduce::{ReduceOptions, indices_of_greatest, reduce};
pub use relayout::relayout;
pub use softmax::softmax;
pub use terms::{Indices, Norm, Place, RowMatrix, Statistic};
pub use tiled_add::tiled_add;
