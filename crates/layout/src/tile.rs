//! Tiling: division of layouts into tiles, and products of blocks.
//!
//! Law: `A` divided by `T` is `A o (T, C)`, where `C` runs over the copies of `T` that cover `A`; a
//! product is `(A, A* o B)`, where `A*` runs over disjoint copies of `A`. The forms of both differ
//! only in the grouping of modes.
//!
//! * `tiler`: tilers
//! * `form`, `divide`, `product`: the forms, and the two operations
//! * `index`: layouts of indices as inner layouts and as tiles
//! * `thread_value`: layouts of threads and their values

pub(crate) mod divide;
pub(crate) mod form;
mod index;
pub(crate) mod product;
pub(crate) mod thread_value;
pub(crate) mod tiler;
