//! The kinds of pictures.
//!
//! Law: every cell is computed by evaluating the layout at the cell's own index. Nothing is drawn
//! from assumptions about a layout.

mod bits;
mod composition;
mod filling;
mod fragments;
mod memory;
mod morphisms;
mod offsets;
mod request;
mod selection;
mod swizzling;
mod tiling;

pub use bits::bits;
pub use composition::{composition, composition_by_mode, over_indices};
pub use filling::filled;
pub use fragments::{copy, mma, thread_value, thread_value_corner};
pub use memory::memory;
pub use morphisms::{MAX_ENTRIES, morphism, mutual_refinement, span, square, worked_composition};
pub use offsets::{offsets, side_by_side};
pub use request::{Touch, Touched, request};
pub use selection::{slices, tiles};
pub use swizzling::{Banks, swizzle};
pub use tiling::{Multiplication, divide, product};

use crate::theme::Palette;

/// The text of a cell of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Label {
    /// The value of the layout.
    #[default]
    Offset,
    /// The coordinate of the cell.
    Coordinate,
    /// The index of the cell.
    Index,
    /// No text.
    Nothing,
}

/// How the cells of a grid are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Shade {
    /// Eight greys, by the offset modulo 8.
    #[default]
    Grey,
    /// A colour ramp from the smallest to the largest offset.
    Heat,
    /// A colour of the palette for each offset modulo 32: the bank of a 4-byte element.
    Palette,
    /// No fill.
    Plain,
}

/// The medium on which a picture is viewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Medium {
    /// A page or a screen of pixels. Large grids become images.
    #[default]
    Page,
    /// A terminal. Large grids are cut.
    Terminal,
}

/// The style of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Style {
    /// The text of cells.
    pub label: Label,
    /// The fill of the cells of grids of offsets.
    pub shade: Shade,
    /// The colours that distinguish threads, tiles and banks.
    pub palette: Palette,
    /// The medium.
    pub medium: Medium,
}

/// The largest number of indices of a layout for a picture that must evaluate all of them.
pub const MAX_INDICES: i64 = 1 << 24;
