//! How rows of a matrix are cut into tiles.
//!
//! Law: a row is in one tile if it has at most [`LONGEST_ROW_IN_A_TILE`] elements. A longer row is
//! read chunk by chunk, each chunk a tile. Short rows share a block.

use tilewright_tile::{Element, Program};

use crate::error::OperatorError;

/// The longest row, in elements, that threads hold in registers: 16 warps with 32 elements a
/// thread.
pub(crate) const LONGEST_ROW_IN_A_TILE: i64 = 16384;
/// The elements of a chunk of a longer row.
const CHUNK: i64 = 8192;
/// The elements of a tile of short rows.
const SHORT_TILE: i64 = 2048;
/// The same in the backward of norms, which holds several tiles at once: with 2048, rows of 1024 of
/// RMS norm took 265 us and of layer norm 390 us on an H200, and 237 us and 301 us with 1024
/// (131072 rows of bf16).
pub(crate) const SHORT_TILE_OF_GRADIENT: i64 = 1024;
/// The longest row that is taken.
pub(crate) const LONGEST_ROW: i64 = 1 << 24;

/// The rows of the tensors of an operator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowTiles {
    /// The elements of a row.
    pub length: i64,
    /// The type of the elements.
    pub element: Element,
    /// A power of two that divides the distance between rows, in elements.
    pub alignment: i64,
    /// The elements of a tile of short rows.
    short_tile: i64,
}

impl RowTiles {
    /// Rows of a length, as operators cut them.
    pub(crate) fn new(length: i64, element: Element, alignment: i64) -> RowTiles {
        RowTiles { length, element, alignment, short_tile: SHORT_TILE }
    }

    /// The same rows in the tiles of the backward of a norm.
    pub(crate) fn of_gradient(self) -> RowTiles {
        RowTiles { short_tile: SHORT_TILE_OF_GRADIENT, ..self }
    }

    /// Checks the options of an operator.
    pub(crate) fn checked(self, operator: &'static str) -> Result<RowTiles, OperatorError> {
        let RowTiles { length, element, alignment, .. } = self;
        if length < 1 {
            return Err(OperatorError::value(operator, "length", length, "a row has at least one element"));
        }
        if length > LONGEST_ROW {
            let because = format!("a row has at most {LONGEST_ROW} elements");
            return Err(OperatorError::value(operator, "length", length, because));
        }
        if alignment < 1 || alignment.count_ones() != 1 {
            return Err(OperatorError::value(operator, "alignment", alignment, "an alignment is a power of two"));
        }
        check_float(operator, "element", element)?;
        Ok(self)
    }

    /// Whether a row is in one tile.
    pub(crate) fn fits(self) -> bool {
        self.length <= LONGEST_ROW_IN_A_TILE
    }

    /// How many rows a block has.
    pub(crate) fn rows_of_block(self) -> i64 {
        (self.short_tile / self.length.max(1).unsigned_abs().next_power_of_two() as i64).max(1)
    }

    /// The declaration of a tensor of rows. A derivative `d_x` has the pitch of `x`.
    pub(crate) fn tensor(self, role: &str, name: &str) -> String {
        let RowTiles { length, alignment, element, .. } = self;
        let of = name.strip_prefix("d_").unwrap_or(name);
        let pitch = match alignment {
            1 => format!("{of}_pitch"),
            _ => format!("{of}_pitch{{div={alignment}}}"),
        };
        format!("    {role} {name}: {element} (M,{length}):({pitch},1)\n")
    }

    /// The shape of the tile of a block: whole rows, or a chunk of one.
    pub(crate) fn shape(self) -> String {
        if self.fits() { format!("({},{})", self.rows_of_block(), self.length) } else { format!("(1,{CHUNK})") }
    }

    /// The coordinate of the tile of whole rows of a block.
    pub(crate) fn place(self) -> &'static str {
        if self.fits() { "(block.x, 0)" } else { "(block.x, chunk)" }
    }

    /// The grid.
    pub(crate) fn grid(self) -> String {
        match self.rows_of_block() {
            1 => "    grid M\n".to_string(),
            rows => format!("    grid ceil(M/{rows})\n"),
        }
    }

    /// How many chunks a long row has.
    pub(crate) fn chunks(self) -> i64 {
        (self.length + CHUNK - 1) / CHUNK
    }

    /// A tile of a tensor of rows, as f32; elements behind the row are 0, or what `outside` says.
    pub(crate) fn load(self, name: &str, outside: &str) -> String {
        widened(self.element, &format!("load({name}, {}, {}{outside})", self.shape(), self.place()))
    }

    /// The statement that stores a tile of f32.
    pub(crate) fn store(self, name: &str, value: &str) -> String {
        format!("store({name}, {}, {})", self.place(), narrowed(self.element, value))
    }
}

/// Refuses a type that is no floating-point type of at most 32 bits.
pub(crate) fn check_float(operator: &'static str, name: &'static str, element: Element) -> Result<(), OperatorError> {
    match element {
        Element::F32 | Element::Bf16 | Element::F16 => Ok(()),
        _ => Err(OperatorError::value(operator, name, element, "the types are f32, bf16 and f16")),
    }
}

/// A value as f32.
pub(crate) fn widened(element: Element, value: &str) -> String {
    if element == Element::F32 { value.to_string() } else { format!("f32({value})") }
}

/// A value of f32 in the type of a tensor.
pub(crate) fn narrowed(element: Element, value: &str) -> String {
    if element == Element::F32 { value.to_string() } else { format!("{element}({value})") }
}

/// A tile program of its text.
pub(crate) fn program(text: &str) -> Result<Program, OperatorError> {
    Ok(text.parse::<Program>()?)
}
