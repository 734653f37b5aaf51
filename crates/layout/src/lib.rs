//! The algebra of layouts.
//!
//! A [`Layout`] is a tree of (extent, stride) pairs, read as a function: it sends a coordinate to the sum of `index * stride`, and an integer to
//! the value at its colexicographic coordinate, first mode fastest. This crate holds the type and every operation on it:
//!
//! | what | operations |
//! |---|---|
//! | build | [`Layout::new`], [`compact`](Layout::compact), [`row_major`](Layout::row_major), [`ordered`](Layout::ordered), [`tuple`](Layout::tuple), `str::parse` |
//! | look | [`eval`](Layout::eval), [`eval_at`](Layout::eval_at), [`size`](Layout::size), [`cosize`](Layout::cosize), [`is_injective`](Layout::is_injective), .. |
//! | rearrange | [`flatten`](Layout::flatten), [`group`](Layout::group), [`select`](Layout::select), [`slice`](Layout::slice), [`zip`](Layout::zip), .. |
//! | simplify | [`coalesce`](Layout::coalesce), [`filter`](Layout::filter), [`equivalent`](Layout::equivalent) |
//! | combine | [`compose`](Layout::compose), [`complement`](Layout::complement), [`right_inverse`](Layout::right_inverse), [`left_inverse`](Layout::left_inverse), [`add`](Layout::add) |
//! | tile | [`logical_divide`](Layout::logical_divide), [`logical_product`](Layout::logical_product), their zipped, tiled, flat, blocked and raked forms, [`make_layout_tv`] |
//! | reinterpret | [`recast`](Layout::recast), [`Swizzle`], [`Composed`] |
//! | at compile time | [`StaticLayout`], [`StaticComposed`], [`StaticTiler`]: constants, which the macros `layout!` and `tiler!` of `tilewright-macros` write |
//!
//! The promise of every one of them: the result that its definition asks for, exactly, or a [`LayoutError`] that says which condition fails,
//! where, and with which numbers. Nothing wraps, nothing panics, and work is bounded: by the number of leaves, or by a stated limit.
//!
//! ```
//! use tilewright_layout::{Layout, Tiler};
//!
//! # fn main() -> Result<(), tilewright_layout::LayoutError> {
//! // A 128 x 64 matrix, row after row, in tiles of 16 x 8.
//! let matrix: Layout = "(128,64):(64,1)".parse()?;
//! let tiler: Tiler = "[16:1;8:1]".parse()?;
//! let tiled = matrix.zipped_divide(&tiler)?;
//! assert_eq!(tiled.to_string(), "((16,8),(8,8)):((64,1),(1024,8))");
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod bit_matrix;
mod bit_xor;
mod carry;
mod coalesce;
mod compare;
mod complement;
mod compose;
mod composed;
mod coord;
mod coord_macro;
mod coordinate;
mod divide;
mod division;
mod domain;
mod equivalence;
mod error;
mod evaluator;
mod evidence;
mod inner;
mod inverse;
mod largest;
mod layout;
mod linear;
mod message;
mod modes;
mod number;
mod order;
mod pages;
mod pieces;
mod predicate;
mod print;
mod product;
mod profile;
mod recast;
mod search;
#[cfg(feature = "serde")]
pub mod serialise;
mod shape;
mod slice;
mod static_composed;
mod static_layout;
mod static_tiler;
mod sum;
mod swizzle;
pub mod symbolic;
mod text;
mod thread_value;
mod tiler;
mod tree;
mod vector;
mod xor;

pub use bit_matrix::{BitMatrix, MAX_BITS};
pub use bit_xor::BitXor;
pub use carry::MAX_CASES;
pub use composed::{Composed, MAX_CHAIN, MAX_INDICES, MapChain, OuterMap, Place};
pub use coord::{Coord, Coordinates, Slot, coordinates, crd2crd, crd2idx, idx2crd, increment};
pub use coordinate::{Coordinate, Descriptor, MAX_PATH, MAX_PATH_MODE, ModePath};
pub use domain::{common_coarsening, common_refinement, domain_distribute, greatest_common_domain};
pub use error::{LayoutError, Limit, Operand, Path};
pub use evaluator::Evaluator;
pub use evidence::{BMode, Carry, Chain, Condition, Mixed, NoInverse, NotXor, Offset, Question, Uneven};
pub use inner::Inner;
pub use largest::MAX_BOXES;
pub use layout::{Layout, Leaf};
pub use linear::{LinearLayout, Named};
pub use number::{Extent, Stride, Truth};
pub use order::compact_order;
pub use pieces::Pieces;
pub use predicate::MAX_IMAGE;
pub use print::Printer;
pub use product::Blocks;
pub use profile::{MAX_DEPTH, MAX_NODES, Profile};
pub use search::MAX_CANDIDATES;
pub use static_composed::StaticComposed;
pub use static_layout::StaticLayout;
pub use static_tiler::StaticTiler;
pub use swizzle::{MAX_SWIZZLE_BITS, Swizzle};
pub use text::{Cursor, LayoutLiteral, Literal};
pub use thread_value::make_layout_tv;
pub use tiler::{Tiler, TilerModes};
pub use tree::Tree;
pub use vector::{max_common_layout, max_common_vector};
pub use xor::Xor;
pub use xor::function::MAX_XOR_VALUES;
pub use xor::inverse::MAX_XOR_STEPS;
