//! Layouts that are evaluated at compile time.
//!
//! [`layout!`] and [`tiler!`] take a program of the expression language in a string literal and
//! evaluate it at compile time with the library itself. If the library refuses the program, the
//! refusal is a compile error at the literal. The value is a constant, for a `const`, a `static`,
//! an associated constant or any expression:
//!
//! ```
//! use tilewright_layout::{StaticLayout, StaticTiler};
//! use tilewright_macros::{layout, tiler};
//!
//! const TILE: StaticLayout = layout!("(8,16):(16,1)");
//! const TILER: StaticTiler = tiler!("[16:1;8:1]");
//! // A 128 x 64 matrix in tiles of 16 x 8: shifts and masks compute an offset.
//! const TILED: StaticLayout = layout!("zipped_divide((128,64):(64,1), [16:1;8:1])");
//!
//! assert_eq!(TILE.eval_at([2, 3]), Some(35));
//! assert_eq!(TILER.to_string(), "[16:1;8:1]");
//! assert_eq!(TILED.to_string(), "((16,8),(8,8)):((64,1),(1024,8))");
//! ```
//!
//! The crate `tilewright` exports both macros. A program without `std` depends on this crate and on
//! `tilewright-layout`, whose types the expansion names; a crate that re-exports
//! `tilewright-layout` under another path names that path first: `layout!($crate::layout, "4:1")`.

mod expansion;
mod input;
mod literal;

use proc_macro::TokenStream;

/// The layout that a program of the expression language evaluates to, as a `StaticLayout`, or as a
/// `StaticComposed` if it has a swizzle.
///
/// ```
/// use tilewright_layout::{Layout, StaticLayout};
/// use tilewright_macros::layout;
///
/// /// A kernel that is generic over the shape of its tile.
/// trait Kernel {
///     const TILE: StaticLayout;
/// }
///
/// struct Rows;
///
/// impl Kernel for Rows {
///     const TILE: StaticLayout = layout!("A = (6,2):(8,2); A o (4,3):(3,1)");
/// }
///
/// fn offsets<K: Kernel>() -> Vec<i64> {
///     (0..K::TILE.size()).filter_map(|index| K::TILE.eval(index)).collect()
/// }
///
/// let same: Layout = "((2,2),3):((24,2),8)".parse().unwrap();
/// assert_eq!(Rows::TILE.to_layout(), same);
/// assert_eq!(offsets::<Rows>(), [0, 24, 2, 26, 8, 32, 10, 34, 16, 40, 18, 42]);
/// ```
///
/// A tile in shared memory, its rows swizzled:
///
/// ```
/// use tilewright_layout::StaticComposed;
///
/// const TILE: StaticComposed = tilewright_macros::layout!("S<3,3,3> o 0 o (8,64):(64,1)");
/// assert_eq!(TILE.eval_at([1, 0]), Some(72));
/// ```
///
/// # Compile errors
///
/// The text is not a program; an operation refuses; the value is not a layout of known integers,
/// with or without a swizzle; an offset is not representable.
///
/// ```compile_fail
/// // E0107: the modes of B carry in mode 0 of A: at coordinate (2,1) the sum carries
/// tilewright_macros::layout!("(6,2):(1,7) o (3,2):(2,3)");
/// ```
#[proc_macro]
pub fn layout(input: TokenStream) -> TokenStream {
    input::expand(input, "layout!", expansion::layout)
}

/// The tiler that a program of the expression language evaluates to, as a `StaticTiler`: a layout,
/// a shape, `_`, or a tiler for each mode in brackets.
///
/// ```
/// use tilewright_layout::{Layout, StaticTiler};
/// use tilewright_macros::tiler;
///
/// const TILER: StaticTiler = tiler!("[16:1;8:1]");
///
/// let matrix: Layout = "(128,64):(64,1)".parse().unwrap();
/// let tiled = matrix.zipped_divide(&TILER.to_tiler()).unwrap();
/// assert_eq!(tiled.to_string(), "((16,8),(8,8)):((64,1),(1024,8))");
/// ```
///
/// # Compile errors
///
/// As for [`layout!`], with a tiler as the value.
#[proc_macro]
pub fn tiler(input: TokenStream) -> TokenStream {
    input::expand(input, "tiler!", expansion::tiler)
}
