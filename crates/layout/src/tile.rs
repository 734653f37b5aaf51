//! Tiling: layouts divided into tiles, and multiplied to blocks.
//!
//! Law: `A` divided by `T` is `A o (T, C)`, where `C` runs over the copies of `T` that fill `A`; a
//! product is `(A, A* o B)`, where `A*` runs over copies of `A` that are disjoint. The forms of
//! both are regroupings of modes.
//!
//! * `tiler`: what a layout may be tiled by
//! * `form`, `divide`, `product`: the forms, and the two operations
//! * `index`: indices as what stands inside a composition
//! * `thread_value`: layouts of threads and their values

pub(crate) mod divide;
pub(crate) mod form;
mod index;
pub(crate) mod product;
pub(crate) mod thread_value;
pub(crate) mod tiler;
