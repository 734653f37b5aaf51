//! The algebra of layouts.
//!
//! A [`Layout`] is a tree of (extent, stride) pairs, read as a function: it maps a coordinate to
//! the sum of `index * stride`, and an integer to the value at its colexicographic coordinate,
//! first mode fastest. This crate has the type and every operation on it:
//!
//! | group | operations |
//! |---|---|
//! | build | [`Layout::new`], [`compact`](Layout::compact), [`row_major`](Layout::row_major), [`ordered`](Layout::ordered), [`tuple`](Layout::tuple), `str::parse` |
//! | inspect | [`eval`](Layout::eval), [`eval_at`](Layout::eval_at), [`size`](Layout::size), [`cosize`](Layout::cosize), [`is_injective`](Layout::is_injective), .. |
//! | rearrange | [`flatten`](Layout::flatten), [`group`](Layout::group), [`select`](Layout::select), [`slice`](Layout::slice), [`zip`](Layout::zip), .. |
//! | simplify | [`coalesce`](Layout::coalesce), [`filter`](Layout::filter), [`equivalent`](Layout::equivalent) |
//! | combine | [`compose`](Layout::compose), [`complement`](Layout::complement), [`right_inverse`](Layout::right_inverse), [`left_inverse`](Layout::left_inverse), [`add`](Layout::add) |
//! | tile | [`logical_divide`](Layout::logical_divide), [`logical_product`](Layout::logical_product), their zipped, tiled, flat, blocked and raked forms, [`make_layout_tv`] |
//! | reinterpret | [`recast`](Layout::recast), [`Swizzle`], [`Composed`] |
//! | at compile time | [`StaticLayout`], [`StaticComposed`], [`StaticTiler`]: constants, which the macros `layout!` and `tiler!` of `tilewright-macros` write |
//!
//! The modules of the crate, from the lowest up. Each one uses only those before it, or states an
//! exception at its head:
//!
//! | module | contents |
//! |---|---|
//! | `refusal` | errors: their kinds, data, messages and pages |
//! | `value` | numbers, nested tuples, coordinates, layouts |
//! | `text` | reading and printing |
//! | `bits` | matrices over bits, swizzles |
//! | `rearrange` | rearranging modes, slicing |
//! | `algebra` | the operations of the algebra |
//! | `tile` | division and product |
//! | `coordinate`, `xor`, [`symbolic`] | the kinds of strides and extents other than integers |
//! | `composed` | swizzled and other composed layouts, linear layouts |
//! | `constant` | layouts that are known at compile time |
//! | `any` | [`AnyLayout`]: layouts whose kind is known only at run time |
//! | [`atoms`] | instructions as thread-value layouts, tiled copies and MMAs, shared-memory layouts of Hopper |
//! | [`morphism`] | layouts as morphisms of tuples |
//! | [`emit`] | index arithmetic as source text |
//! | [`analysis`] | bank conflicts, sectors, footprints, and suggestions that reduce the cost |
//!
//! The last four build on the algebra and have their own errors; no other module needs them.
//!
//! Every operation returns the exact result of its definition, or a [`LayoutError`] with the
//! condition that fails, its position, and the numbers. Nothing wraps, nothing panics, and work is
//! bounded: by the number of leaves, or by a stated limit.
//!
//! ```
//! use tilewright_layout::{Layout, Tiler};
//!
//! # fn main() -> Result<(), tilewright_layout::LayoutError> {
//! // A row-major 128 x 64 matrix in tiles of 16 x 8.
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
