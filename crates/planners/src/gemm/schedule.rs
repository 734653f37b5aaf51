//! The tile schedule: which block computes which tile, and in which order.
//!
//! `grid.rs` has the raster order of a persistent grid, `grouped.rs` the table of row groups,
//! `list.rs` the tiles of several problems, `edges.rs` the lines that are loaded of tiles at an
//! edge. `unit.rs` is a work unit.

pub(crate) mod edges;
pub(crate) mod grid;
pub(crate) mod grouped;
pub(crate) mod list;
pub(crate) mod unit;
