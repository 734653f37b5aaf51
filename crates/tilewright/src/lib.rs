//! A layout algebra that is exact or refuses.
//!
//! A *layout* is a shape and strides of the same nesting, read as a function from coordinates (or plain indices, first mode
//! fastest) to offsets: `(4,8):(8,1)` sends `(i,j)` to `8i + j`. Layouts say where each element of a tensor lives, which
//! thread owns it and how a tile is cut, as values that can be composed, inverted, divided and multiplied. Every operation
//! gives the layout that its definition asks for, or an error that names the condition, the mode and the numbers.
//!
//! # A quick tour
//!
//! Text is the first interface: what prints parses back.
//!
//! ```
//! use tilewright::Layout;
//!
//! # fn main() -> Result<(), tilewright::LayoutError> {
//! let rows: Layout = "(4,8):(8,1)".parse()?; // four rows of eight, stored row after row
//! assert_eq!(rows.size(), 32);
//! assert_eq!(rows.eval(&5)?, 9); // index 5 is the coordinate (1,1), first mode fastest
//! assert_eq!(rows.to_string(), "(4,8):(8,1)");
//! # Ok(())
//! # }
//! ```
//!
//! `a.compose(&b)` is the layout of `a(b(c))`, exactly, or the reason why there is none.
//!
//! ```
//! use tilewright::Layout;
//!
//! # fn main() -> Result<(), tilewright::LayoutError> {
//! let a: Layout = "(6,2):(8,2)".parse()?;
//! let b: Layout = "(4,3):(3,1)".parse()?;
//! assert_eq!(a.compose(&b)?.to_string(), "((2,2),3):((24,2),8)");
//!
//! let a: Layout = "(6,2):(1,7)".parse()?;
//! let b: Layout = "(3,2):(2,3)".parse()?;
//! let refusal = a.compose(&b).unwrap_err();
//! assert_eq!(refusal.code(), "E0107"); // the modes of b carry into the next mode of a
//! assert!(refusal.to_string().contains("at coordinate (2,1) the sum carries"));
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! * [`layout`]: the algebra.
//! * [`notation`]: the expression language of the command line, and its diagnostics.
//!
//! The types used most are also here, at the root.
//!
//! # Features
//!
//! * `serde`: layouts, trees, coordinates, profiles, tilers, swizzles and composed layouts serialise as their text.

pub use tilewright_layout as layout;
pub use tilewright_notation as notation;

pub use tilewright_layout::{Layout, LayoutError, Leaf, Profile, Tree};
pub use tilewright_notation::{Diagnostic, Environment, Value, evaluate};

/// The code blocks of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The code blocks of the description of the architecture, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../ARCHITECTURE.md")]
pub struct Architecture;
