//! Index arithmetic of layouts as source text, for Rust, C, CUDA, Python and Triton.
//!
//! A kernel computes the offset of an element from its coordinate. This module writes that
//! computation as source text: the value of a layout at variables that the caller names, for every
//! admissible value of the extents and strides that become known at launch.
//!
//! ```
//! use tilewright_layout::emit::{Language, Map, Style, Variables, inside, value};
//! use tilewright_layout::symbolic::Expr;
//! use tilewright_layout::{Layout, Tiler, Tree};
//!
//! # fn main() -> Result<(), tilewright_layout::emit::EmitError> {
//! // A matrix of M rows and K columns, in tiles of 128 x 64.
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
//! // The predicate of the elements: M is a multiple of the tile, K need not be.
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
//! * *Exact.* The text computes the same values as the library, for all values of the variables
//!   that the facts and the [`Promise`] admit.
//! * *Reduced.* Modes are coalesced first, and digits with stride 0 are dropped. If a dividend is
//!   known to be nonnegative, a shift or a mask replaces the division by a power of two. Any other
//!   quotient is rounded as the layout requires, with extra operations if the language rounds
//!   differently. Quotient and remainder of the same division cost one division. Products with
//!   constants stay products: compilers turn them into shifts, and products are easier to read.
//! * *Named once.* In statements and functions everything that is used twice is computed once, and
//!   nothing else has a name.
//! * *Wide enough.* Integers have 64 bits. With 32 bits, a text is written only if the facts prove
//!   that every intermediate value fits; otherwise the error names the part that may not fit, and
//!   the fact that would settle it.
//!
//! A name that is a keyword of the language becomes a raw identifier in Rust and is refused in the
//! other languages.

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
