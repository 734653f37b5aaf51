//! The algebra of layouts.
//!
//! A [`Layout`] is a tree of (extent, stride) pairs, read as a function: it sends a coordinate to
//! the sum of `index * stride`, and an integer to the value at its colexicographic coordinate,
//! first mode fastest. This crate holds the type and every operation on it:
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
//! The rooms of the crate, from the ground up; each uses those before it, and says at its head
//! where it does not:
//!
//! | room | what is in it |
//! |---|---|
//! | `refusal` | why there is no result: kinds, evidence, sentences, pages |
//! | `value` | numbers, nested tuples, coordinates, layouts |
//! | `text` | reading and printing |
//! | `bits` | matrices over bits, swizzles |
//! | `rearrange` | moving modes about, slicing |
//! | `algebra` | the operations of the algebra |
//! | `tile` | division and product |
//! | `coordinate`, `xor`, [`symbolic`] | the kinds of strides and extents that are no integers |
//! | `composed` | a layout seen through another map, linear layouts |
//! | `constant` | layouts known while one compiles |
//! | `any` | [`AnyLayout`]: layouts whose kind is known only as the program runs |
//! | [`atoms`] | instructions as thread-value layouts, tilings of them, shared memory of Hopper |
//! | [`morphism`] | layouts as morphisms of tuples |
//! | [`emit`] | index arithmetic as source text |
//! | [`analysis`] | bank conflicts, sectors, footprints, and what would cost less |
//!
//! The last four build on the algebra and have their own errors; no other module needs them.
//!
//! Every operation returns the exact result of its definition, or a [`LayoutError`] that says which
//! condition fails, where, and with which numbers. Nothing wraps, nothing panics, and work is
//! bounded: by the number of leaves, or by a stated limit.
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

mod algebra;
pub mod analysis;
mod any;
pub mod atoms;
mod bits;
pub mod candidate;
mod composed;
mod constant;
mod coordinate;
pub mod emit;
mod explanation;
mod ground;
pub mod limits;
pub mod morphism;
mod rearrange;
mod refusal;
#[cfg(feature = "serde")]
pub mod serialise;
pub mod symbolic;
mod text;
mod tile;
mod value;
pub mod verify;
mod xor;

pub use algebra::digits::{CommonDigits, Digit};
pub use algebra::domain::{common_coarsening, common_refinement, domain_distribute, greatest_common_domain};
pub use algebra::inner::Inner;
pub use algebra::order::compact_order;
pub use algebra::vector::{max_common_layout, max_common_vector};
pub use any::{AnyCoord, AnyLayout, AnyTiler, AnyTree, CoordinateStep, Kind};
pub use bits::bit_xor::BitXor;
pub use bits::matrix::BitMatrix;
pub use bits::space::{BitSpace, BitVector};
pub use bits::swizzle::Swizzle;
pub use composed::linear::{LinearLayout, Named};
pub use composed::{Composed, InnerValue, MapChain, OuterMap};
pub use constant::composed::StaticComposed;
pub use constant::layout::StaticLayout;
pub use constant::tiler::StaticTiler;
pub use coordinate::{Coordinate, Descriptor, ModePath};
pub use explanation::explanation;
pub use limits::{
    MAX_BITS, MAX_BOXES, MAX_CANDIDATES, MAX_CASES, MAX_CHAIN, MAX_DEPTH, MAX_IMAGE, MAX_INDICES, MAX_NODES, MAX_PATH,
    MAX_PATH_MODE, MAX_SWIZZLE_BITS, MAX_XOR_STEPS, MAX_XOR_VALUES,
};
pub use refusal::error::{LayoutError, Limit, Path, RefusedOperand};
pub use refusal::evidence::{BMode, Carry, Chain, Condition, Mixed, NoInverse, NotXor, Offset, Question, Uneven};
pub use refusal::interrupt;
pub use refusal::nearest::nearest;
pub use refusal::questions::Refusal;
pub use text::reading::{Cursor, LayoutLiteral, Literal};
pub use tile::form::DivideForm;
pub use tile::product::Blocks;
pub use tile::thread_value::make_layout_tv;
pub use tile::tiler::{Tiler, TilerModes};
pub use value::coord::{Coord, Coordinates, Slot, coordinates, crd2crd, crd2idx, idx2crd, increment};
pub use value::evaluator::Evaluator;
pub use value::layout::{Layout, Leaf};
pub use value::number::{Extent, Stride, Truth};
pub use value::pieces::Pieces;
pub use value::profile::Profile;
pub use value::tree::Tree;
pub use value::tuples::IntoShape;
pub use xor::Xor;
