//! How the rows of a matrix are divided into tiles.
//!
//! Law: a row of at most [`LONGEST_ROW_IN_A_TILE`] elements is in one tile. A longer row is read in
//! chunks, each of which is a tile. Short rows share a block.

use tilewright_kernel::machine::Machine;
use tilewright_tile::{Element, Program, multiprocessors};

use crate::error::OperatorError;
use crate::row_blocks::power_from;

/// The longest row, in elements, that the threads of a block hold in registers: 16 warps with 32
/// elements for each thread.
pub(crate) const LONGEST_ROW_IN_A_TILE: i64 = 16384;
/// The elements of a chunk of a row that is not in one tile.
const CHUNK: i64 = 8192;
/// The elements of a tile of short rows.
const SHORT_TILE: i64 = 2048;
/// The elements of a thread in the backward: the usual number, and the greatest.
const ELEMENTS_OF_THREAD: i64 = 16;
const MOST_OF_THREAD: i64 = 32;
/// The longest row that one warp holds.
const MOST_OF_WARP: i64 = 32 * MOST_OF_THREAD;
/// The rows of a block of a backward with sums over rows, if the number of rows is not known.
const ROWS_OF_BLOCK: i64 = 64;
/// The most tiles of a block.
const MOST_TILES: i64 = 512;
/// The warps of a grid for each multiprocessor with 16 elements for each thread: one wave of
/// resident warps. Two waves took 1.01 to 1.03 of the time of one on an H200, 2026-12-01.
const WARPS: i64 = 16;
/// As [`WARPS`], with [`MOST_OF_THREAD`] elements for each thread.
const WARPS_OF_MOST: i64 = 12;
/// The greatest length of a row.
pub(crate) const LONGEST_ROW: i64 = 1 << 24;

impl GradientTiles {
    /// The tiles for rows of a length. A thread has 16 elements of a tensor, or 32 if a warp then
    /// has a whole row whose lanes have at most 24 that exist. Measured on an H200.
    pub(crate) fn new(rows: RowTiles, sums: Sums) -> GradientTiles {
        let length = power_from(rows.length);
        let is_whole = length <= MOST_OF_WARP && rows.length * 4 <= MOST_OF_WARP * 3;
        let of_thread = if is_whole { MOST_OF_THREAD } else { ELEMENTS_OF_THREAD };
        let many = (SHORT_TILE / length).clamp(1, 8);
        let warps = (many * length / (32 * of_thread)).clamp(1, 16);
        let tiles = if sums == Sums::None { 1 } else { ROWS_OF_BLOCK / many };
        GradientTiles {
            rows: many,
            warps,
            tiles,
            warps_of_multiprocessor: if of_thread == MOST_OF_THREAD { WARPS_OF_MOST } else { WARPS },
        }
    }

    /// The same tiles, for about this many rows on a machine (None for an H200): blocks process
    /// equally many tiles, so that a wave ends at one time, and each block writes its sums once.
    pub(crate) fn about(self, rows: i64, machine: Option<&Machine>) -> GradientTiles {
        if rows < 1 {
            return self;
        }
        let most = self.rows * self.warps_of_multiprocessor * multiprocessors(machine) / self.warps;
        let tiles = ((rows + most - 1) / most).clamp(1, MOST_TILES);
        GradientTiles { tiles: if tiles == 1 { 1 } else { tiles + tiles % 2 }, ..self }
    }

    /// The same tiles, but the rows, the warps and the tiles of a block are those of the options if
    /// they are not 0.
    ///
    /// Errors: a number that no kernel supports.
    pub(crate) fn given(
        self,
        operator: &'static str,
        [rows, warps, tiles]: [i64; 3],
    ) -> Result<GradientTiles, OperatorError> {
        let limits = [("backward_rows", rows, 64), ("backward_warps", warps, 16), ("backward_tiles", tiles, 1 << 16)];
        for (name, value, most) in limits {
            let is_power = value == 0 || value > 0 && value.count_ones() == 1;
            if !is_power || value > most {
                let because = format!("it is a power of two up to {most}, or 0");
                return Err(OperatorError::value(operator, name, value, because));
            }
        }
        let or = |given: i64, own: i64| if given == 0 { own } else { given };
        Ok(GradientTiles {
            rows: or(rows, self.rows),
            warps: or(warps, self.warps),
            tiles: or(tiles, self.tiles),
            ..self
        })
    }
}

/// The rows of the tensors of an operator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowTiles {
    /// The elements of a row.
    pub length: i64,
    /// The type of the elements.
    pub element: Element,
    /// A power of two that divides the distance between rows, in elements.
    pub alignment: i64,
    /// The rows of a tile of short rows.
    rows: i64,
    /// The warps of a block; None if the compiler chooses.
    warps: Option<i64>,
}

/// How the backward divides rows into tiles, and the number of tiles of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GradientTiles {
    /// The rows of a tile.
    pub(crate) rows: i64,
    /// The warps of a block.
    pub(crate) warps: i64,
    /// The tiles that a block processes in a loop.
    pub(crate) tiles: i64,
    /// The warps of the whole grid for each multiprocessor.
    warps_of_multiprocessor: i64,
}

/// The sums over rows that a backward keeps in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sums {
    /// No sums: a block has one tile.
    None,
    /// One or two for each element of a row.
    Some,
}

impl RowTiles {
    /// Rows of a length, with the tiles that operators use.
    pub(crate) fn new(length: i64, element: Element, alignment: i64) -> RowTiles {
        let rows = (SHORT_TILE / power_from(length)).max(1);
        RowTiles { length, element, alignment, rows, warps: None }
    }

    /// The same rows in the tiles of a backward.
    pub(crate) fn of_gradient(self, tiles: GradientTiles) -> RowTiles {
        RowTiles { rows: tiles.rows, warps: Some(tiles.warps), ..self }
    }

    /// The same rows, with the warps of the forward of a norm that subtracts the mean. A thread has
    /// 32 elements in two cases: if one warp then has a whole row, so that no warps exchange
    /// values; and for the longest rows, because a multiprocessor then holds four rows instead of
    /// three.
    pub(crate) fn centred(self) -> RowTiles {
        let length = power_from(self.length);
        let warps = self.rows * length / MOST_OF_WARP;
        let whole = length == MOST_OF_WARP || length > LONGEST_ROW_IN_A_TILE / 4;
        RowTiles { warps: if whole && self.element != Element::F32 { Some(warps) } else { self.warps }, ..self }
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

    /// The number of rows of a tile.
    pub(crate) fn rows(self) -> i64 {
        self.rows
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
        if self.fits() { format!("({},{})", self.rows, self.length) } else { format!("(1,{CHUNK})") }
    }

    /// The coordinate of the tile of a block, for whole rows.
    pub(crate) fn place(self) -> &'static str {
        if self.fits() { "(block.x, 0)" } else { "(block.x, chunk)" }
    }

    /// The grid with one block for each tile.
    pub(crate) fn grid(self) -> String {
        self.grid_of(1)
    }

    /// The grid with one block for each group of this many tiles.
    pub(crate) fn grid_of(self, tiles: i64) -> String {
        let warps = self.warps.map_or(String::new(), |warps| format!("    warps {warps}\n"));
        match self.rows * tiles {
            1 => format!("    grid M\n{warps}"),
            rows => format!("    grid ceil(M/{rows})\n{warps}"),
        }
    }

    /// The number of chunks of a long row.
    pub(crate) fn chunks(self) -> i64 {
        (self.length + CHUNK - 1) / CHUNK
    }

    /// The expression that loads a tile of a tensor of rows as f32. Elements past the end of the
    /// row are 0, or the value `outside`.
    pub(crate) fn load(self, name: &str, outside: &str) -> String {
        widened(self.element, &format!("load({name}, {}, {}{outside})", self.shape(), self.place()))
    }

    /// The statement that stores a tile of f32.
    pub(crate) fn store(self, name: &str, value: &str) -> String {
        format!("store({name}, {}, {})", self.place(), narrowed(self.element, value))
    }
}

/// Refuses a type that is not a floating-point type of at most 32 bits.
pub(crate) fn check_float(operator: &'static str, name: &'static str, element: Element) -> Result<(), OperatorError> {
    match element {
        Element::F32 | Element::Bf16 | Element::F16 => Ok(()),
        _ => Err(OperatorError::value(operator, name, element, "the types are f32, bf16 and f16")),
    }
}

/// An expression that converts a value to f32.
pub(crate) fn widened(element: Element, value: &str) -> String {
    if element == Element::F32 { value.to_string() } else { format!("f32({value})") }
}

/// An expression that converts a value of f32 to the type of a tensor.
pub(crate) fn narrowed(element: Element, value: &str) -> String {
    if element == Element::F32 { value.to_string() } else { format!("{element}({value})") }
}

/// Parses a tile program.
pub(crate) fn program(text: &str) -> Result<Program, OperatorError> {
    Ok(text.parse::<Program>()?)
}
