//! Index arithmetic of layouts as source text, for Rust, C, CUDA, Python and Triton.
//!
//! A layout says where each element is; a kernel computes it. This crate writes that computation:
//! what the layout gives at variables that the caller names, for every admissible value of the
//! extents and strides that become known at launch.
//!
//! ```
//! use tilewright_layout::emit::{Language, Map, Style, Variables, inside, value};
//! use tilewright_layout::symbolic::Expr;
//! use tilewright_layout::{Layout, Tiler, Tree};
//!
//! # fn main() -> Result<(), tilewright_layout::emit::EmitError> {
//! // A matrix of M rows of K, in tiles of 128 x 64.
//! let matrix: Layout<Expr> = "(M{div=128},K):(K,1)".parse()?;
//! let tiler: Tiler<Expr> = "[128:1;64:1]".parse()?;
//! let tiled = Map::from(matrix.zipped_divide(&tiler)?);
//! let place = Variables::leaves().named(["row", "col", "tile_row", "tile_col"]);
//! assert_eq!(value(&tiled, &place)?.function("offset", Style::new(Language::Cuda))?, "\
//! __device__ __forceinline__ int64_t offset(int64_t row, int64_t col, int64_t tile_row, int64_t tile_col, int64_t K) {
//!     return (row + tile_row * 128) * K + col + tile_col * 64;
//! }
//! ");
//!
//! // Which of the elements exist: the rows fill their tiles, the columns need not.
//! let shape: Tree<Expr> = "(M{div=128},K)".parse()?;
//! let positions = Map::from(Layout::identity(&shape)?.zipped_divide(&tiler)?);
//! let mask = inside(&positions, &shape, &place)?;
//! assert_eq!(mask.expression(Style::new(Language::Triton))?, "col + tile_col * 64 < K");
//! # Ok(())
//! # }
//! ```
//!
//! # What is emitted
//!
//! | computation | result |
//! |---|---|
//! | [`value()`] | the offset, or the coordinate, at an index, at an index for each mode, or at a natural coordinate |
//! | [`coordinate`] | the natural coordinate of an index (`idx2crd`) |
//! | [`inside`] | whether every number of the value is within bounds: the predicate of a ragged edge |
//!
//! Each is a [`Computation`]. Its text is an expression, statements with named common parts, or a
//! whole function ([`Computation::expression`], [`Computation::statements`],
//! [`Computation::function`]), in a [`Style`]: a language and an integer type. Several computations
//! over the same variables make one ([`Computation::and`]).
//!
//! # What can be relied on
//!
//! * *Exact.* The text computes what the library computes, for all values that the facts and the
//!   [`Promise`] about the variables admit.
//! * *Reduced.* Modes are coalesced first, and digits that only a stride of 0 counts are dropped. A
//!   dividend that is known not to be negative is never divided by a power of two: that is a shift
//!   or a mask. Any other is rounded as the layout demands, spelled out where the language rounds
//!   differently. Quotient and remainder of one division cost one division. Products by constants
//!   stay products: every compiler has shifts for them, and no reader wants them.
//! * *Named once.* In statements and functions everything that is used twice is computed once, and
//!   nothing else has a name.
//! * *Wide enough.* Integers have 64 bits. With 32, a text is written only if the facts show that
//!   every number on the way fits; otherwise the error says which part may not, and which fact
//!   would settle it.
//!
//! A name that is a word of the language is a raw identifier in Rust and refused elsewhere.

mod bits;
mod builder;
mod computation;
mod division;
mod error;
mod evaluation;
mod explanation;
mod expression;
mod function;
mod graph;
mod integer;
mod language;
mod map;
mod place;
mod polynomial;
mod range;
mod spelling;
mod value;

pub use computation::Computation;
pub use error::{EmitError, Width};
pub use explanation::explanation;
pub use integer::Integer;
pub use language::{Language, Style};
pub use map::Map;
pub use place::{Promise, Variables};

pub use value::{coordinate, inside, value};
