//! Data with a layout.
//!
//! A tensor is memory and a layout that gives the offset of the element at each coordinate.
//! [`Tensor`] owns its memory; [`TensorView`] and [`TensorViewMut`] borrow it. When a view is made,
//! the range of the layout proves once that every offset is in the memory. After that, an element
//! access is an addition.
//!
//! ```
//! use tilewright_layout::Layout;
//! use tilewright_tensor::{Tensor, TensorView};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Rows of a matrix one after another, and the same memory by columns.
//! let rows: Layout = "(2,3):(3,1)".parse()?;
//! let tensor = Tensor::from_fn(rows, |index| index)?;
//! let transposed: Layout = "(3,2):(1,3)".parse()?;
//! let view = TensorView::new(tensor.as_slice(), transposed)?;
//! assert_eq!(view.get([2, 1])?, tensor.get([1, 2])?);
//! # Ok(())
//! # }
//! ```

// The micro-kernels of x86 processors use these; WebAssembly has no such micro-kernels.
#![cfg_attr(target_family = "wasm", allow(dead_code, unused_imports))]

mod compare;
mod coordinates;
mod copy;
mod domain;
mod elements;
mod error;
mod explanation;
mod fragment;
mod gemm;
mod instruction;
mod memory;
#[cfg(feature = "ndarray")]
mod ndarray;
pub mod npy;
mod offsets;
mod parts;
mod position;
mod prepared;
mod print;
mod rearrange;
mod recast;
mod simd;
mod tensor;
mod threads;
mod tiled_copy;
mod tiled_product;
mod tiling;
mod transform;
mod view;
mod visit;
mod walk;
mod zipped;

pub use compare::{Difference, Tolerance};
pub use coordinates::CoordinateTensor;
pub use copy::{CopyOptions, Plan, copy, fill};
pub use elements::{Elements, ElementsMut};
pub use error::TensorError;
pub use explanation::explanation;
pub use fragment::Fragmented;
pub use gemm::{Numbers, Tilings, cpu_atoms, cpu_mma, cpu_mma_of, gemm, multiply_adds, tilings};
pub use instruction::Instructed;
pub use memory::ALIGNMENT;
pub use offsets::{AnyOffsets, MAX_WALK, Offsets};
pub use parts::{ParallelParts, Parts};
pub use position::Position;
pub use prepared::{ByIndex, ByMode, ByModeMut};
pub use rearrange::{Rearrange, Rearrangement};
pub use recast::Recast;
pub use simd::Instructions;
pub use tensor::Tensor;
pub use tiled_copy::{copy_thread, copy_thread_if, copy_threads};
pub use tiled_product::{Accumulator, Value, gemm_partitions};
pub use tiling::Tiling;
pub use transform::{axpby, copy_if, reduce, reduce_with, transform, transform2, transform3, update};
pub use view::{TensorView, TensorViewMut};
pub use walk::Walk;
pub use zipped::{Member, Members, Zipped};
