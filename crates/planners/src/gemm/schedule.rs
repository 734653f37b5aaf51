//! Which tile a block takes when.
//!
//! `grid.rs` has the raster order of a persistent grid, `grouped.rs` the table of row groups,
//! `list.rs` the tiles of several problems, `edges.rs` the lines that are loaded of tiles at an
//! edge. `unit.rs` is a part of the work.

pub(crate) mod edges;
pub(crate) mod grid;
pub(crate) mod grouped;
pub(crate) mod list;
pub(crate) mod unit;
