//! Hardware layouts as data.
//!
//! The matrix instructions of Hopper (`wgmma`) read operands from shared memory in eight arrangements: for each of two directions in which elements lie side
//! by side ([`Major`]), four ways to permute units of 16 bytes ([`SwizzleMode`]). This crate has each of them as a layout, tiles it to a
//! shape, and goes back: from any layout to the 64-bit descriptor with which the instruction is told where the matrix is, or to the condition that fails.
//!
//! ```
//! use tilewright_atoms::{Major, MatrixDescriptor, SwizzleMode};
//! use tilewright_layout::Tiler;
//!
//! # fn main() -> Result<(), tilewright_atoms::AtomError> {
//! // A tile of 128 x 64 halves, K-major: rows of 128 bytes, permuted within every eight rows.
//! let mode = SwizzleMode::Bytes128;
//! let tile = mode.tile(Major::K, 16, &"(128,64)".parse()?)?;
//! assert_eq!(tile.to_string(), "S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))");
//!
//! // One instruction reads 64 rows and 16 columns of it: here the second of four steps along K.
//! let steps = tile.zipped_divide(&"[64:1;16:1]".parse::<Tiler>()?)?;
//! let operand = steps.slice(&"(_,(0,1))".parse()?)?.mode(0).expect("the tile");
//! let descriptor = MatrixDescriptor::of_layout(&operand, Major::K, 16, 0x4000)?;
//! assert_eq!((descriptor.start(), descriptor.stride(), descriptor.mode()), (0x4020, 1024, mode));
//! assert_eq!(descriptor.bits(), 0x4000_0040_0001_0402);
//! # Ok(())
//! # }
//! ```
#![no_std]

extern crate alloc;

mod descriptor;
mod error;
mod shared;

pub use descriptor::MatrixDescriptor;
pub use error::{AtomError, Condition, Side};
pub use shared::{Major, SwizzleMode};
