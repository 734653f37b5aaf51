//! Tile programs: programs over tiles without layouts.
//!
//! A program says what a block of threads computes: it loads tiles of tensors, computes with them,
//! and stores tiles. A tile has a shape and an element type, but no layout. The passes choose the
//! layouts:
//!
//! 1. *candidates*: layouts that tensors, matrix instructions and the author ask for are propagated
//!    through the program as maps of bits;
//! 2. *assignment*: one layout for each value, chosen by the cost of operations and conversions.
//!    The choice is optimal if the tables of the search fit; otherwise its cost has a proved bound;
//! 3. *conversions* are inserted, each once, and outside of the loops that do not change the value;
//! 4. the *kernel* is written in the language of `tilewright-kernel`. The interpreter of that crate
//!    checks it, and its writer prints it as PTX.
//!
//! [`interpret::run`] defines what a program means. Every pass preserves that meaning, and
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
