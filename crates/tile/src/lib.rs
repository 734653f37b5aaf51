//! Tile programs: what is computed, without a layout.
//!
//! A program says what a block of threads computes: tiles of tensors are loaded, computed with and
//! stored. A tile has a shape and a type, and no layout. The passes give it one:
//!
//! 1. *candidates*: the layouts that tensors, matrix instructions and the author ask for, taken
//!    through the program, bit by bit;
//! 2. *assignment*: one for each value, by what operations and conversions cost, the cheapest of
//!    all where the tables of the search fit, else with a bound;
//! 3. *conversions*, each once, and outside the loops that do not change their value;
//! 4. the *kernel*, in the language of `tilewright-kernel`, whose interpreter checks it and whose
//!    writer prints it as PTX.
//!
//! [`interpret::run`] says what a program means, and every pass keeps that;
//! [`Compiled::check`] compares the kernel with it.
//!
//! ```
//! use tilewright_kernel::ptx::{self, Target};
//! use tilewright_tile::Program;
//!
//! // e^x / sum of e^x over rows of 1024, four rows a block; a text reads like the mathematics.
//! let softmax: Program = "
//! tile softmax {
//!     input  x: f32 (M,1024):(1024,1)
//!     output y: f32 (M,1024):(1024,1)
//!     grid ceil(M/4)
//!     a = load(x, (4,1024), (block.x, 0))
//!     e = exp(a - reduce_max(a, 1))
//!     store(y, (block.x, 0), e / reduce_sum(e, 1))
//! }"
//! .parse()?;
//! let compiled = softmax.compile(None)?;
//! assert!(ptx::write(compiled.kernel().program(), Target::Sm80)?.contains("ld.global.v4.b32"));
//! println!("{}", compiled.explain()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assign;
mod build;
mod by_hand;
mod check;
mod compile;
mod demand;
mod error;
mod explain;
mod explanation;
mod grad;
mod held;
pub mod interpret;
mod library;
mod loads;
mod lower;
mod matrix;
mod memory;
mod network;
mod operand_staging;
mod padding;
mod picked;
mod place;
mod pools;
mod pressure;
mod program;
mod read;
mod roles;
mod sequence;
mod staged_copy;
mod sums;
mod top;
mod weights;

pub use assign::Costs;
pub use build::{Build, Mask, TensorId, Value};
pub use check::{CheckOptions, Compared, Meant, Report, TensorBytes, Unchecked, number_of_check};
pub use compile::Compiled;
pub use error::{Reason, Taker, TileError};
pub use explain::{Choice, Conversion, Explanation, NextBest, Staged, Taken};
pub use explanation::explanation;
pub use grad::{GradientOptions, TotalTiles, multiprocessors};
pub use held::Held;
pub use library::{Entry, LIBRARY};
pub use program::{
    Axis, Binary, Comparison, Count, Counter, Index, Loop, MAX_ELEMENTS, MAX_RANK, Name, Operation, Program, Reduction,
    Role, Scalar, Statement, Tensor, Type, Unary, ValueId,
};
pub use read::mention::{Mention, Outline, Subject};
pub use sequence::{Sequence, SequenceKernels, SequenceSizes, SequenceTensor, TensorPurpose};
pub use tilewright_kernel::Element;
