//! Hardware layouts as data.
//!
//! # Instructions
//!
//! An MMA instruction is an [`MmaAtom`]: its shape, the types of its values, the threads that
//! execute it together, and a thread-value layout for each operand, which maps (thread, value) to
//! an element. The constructor checks that the stated number of threads hold each element of a
//! tile. The same type describes CPU micro-kernels, [`MmaAtom::cpu`]. A [`TiledMma`] repeats an
//! atom over threads and values, and partitions operands of any layout.
//!
//! A copy instruction is a [`CopyAtom`], which has the bits that a thread reads and those that it
//! writes; a [`TiledCopy`] repeats it over threads and values. [`MmaAtom::named`] and
//! [`CopyAtom::named`] return the published instructions by name, with the thread-value layouts of
//! the vendors' documents.
//!
//! # Shared memory
//!
//! A bulk tensor copy (TMA) moves boxes: [`TensorMap`] derives the box of a tile, or names the
//! hardware rule that the tile breaks. [`BulkCopy::named`] returns the instructions by name.
//!
//! The MMA instructions of Hopper (`wgmma`) read operands from shared memory in eight canonical
//! layouts: for each of two contiguous directions ([`Major`]), four ways to permute units of 16
//! bytes ([`SwizzleMode`]). This crate has each of them as a layout, and repeats it to cover a
//! shape. It also computes the 64-bit matrix descriptor of any layout, or names the condition that
//! fails.
//!
//! ```
//! use tilewright_layout::atoms::{Major, MatrixDescriptor, SwizzleMode};
//! use tilewright_layout::Tiler;
//!
//! # fn main() -> Result<(), tilewright_layout::atoms::AtomError> {
//! // A K-major tile, 128 x 64 of f16: rows of 128 bytes, swizzled within every eight rows.
//! let mode = SwizzleMode::Bytes128;
//! let tile = mode.tile(Major::K, 16, &"(128,64)".parse()?)?;
//! assert_eq!(tile.to_string(), "S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))");
//!
//! // One wgmma reads 64 rows and 16 columns of it: here the second of four along K.
//! let steps = tile.zipped_divide(&"[64:1;16:1]".parse::<Tiler>()?)?;
//! let operand = steps.slice(&"(_,(0,1))".parse()?)?.mode(0).expect("the tile");
//! let descriptor = MatrixDescriptor::of_layout(&operand, Major::K, 16, 0x4000)?;
//! assert_eq!((descriptor.start(), descriptor.stride(), descriptor.mode()), (0x4020, 1024, mode));
//! assert_eq!(descriptor.bits(), 0x4000_0040_0001_0402);
//! # Ok(())
//! # }
//! ```

mod alias;
mod arch;
mod bulk_copy;
mod catalogue;
mod copies;
mod copy;
mod cotiled;
mod cpu;
mod descriptor;
mod error;
mod evidence;
mod explanation;
mod family;
mod instructions;
mod mma;
mod pattern;
mod retile;
mod shared;
mod tensor_map;
mod terms;
mod thread_number;
mod thread_value;
mod tiled_copy;
mod tiled_mma;
mod value_type;

pub use arch::Arch;
pub use bulk_copy::{BulkCopy, BulkDirection, BulkFamily, BulkMode};
pub use catalogue::MmaFamily;
pub use copies::CopyFamily;
pub use copy::CopyAtom;
pub use cotiled::MAX_ELEMENTS;
pub use descriptor::MatrixDescriptor;
pub use error::AtomError;
pub use evidence::{BadThreadValue, CanonicalCondition, Flaw, NoTile};
pub use explanation::explanation;
pub use family::{Family, Known};
pub use mma::{MmaAtom, MmaTypes, Operand};
pub use pattern::word;
pub use tensor_map::{Dimension, MAX_BOX, MAX_DIMENSIONS, TensorMap};
pub use terms::{CopyEnd, Major, OperandMode, SwizzleMode};
pub use thread_value::ThreadValue;
pub use tiled_copy::{CopyTilers, ThreadCopy, TiledCopy};
pub use tiled_mma::{MmaTilers, ThreadMma, TiledMma};
pub use value_type::ValueType;
