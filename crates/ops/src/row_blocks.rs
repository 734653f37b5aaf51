//! How the rows of operators that move or add rows are divided into blocks.
//!
//! Law: elements of a row are independent of each other, so a block processes a part of a long row,
//! or several short rows.

use crate::error::OperatorError;

/// The elements of a tile: 8 for each of 256 threads.
const TILE: i64 = 2048;
/// The greatest length of a row.
const LONGEST: i64 = 1 << 20;

/// The least power of two that is at least `number`, which must be positive.
pub(crate) fn power_from(number: i64) -> i64 {
    number.max(1).unsigned_abs().next_power_of_two() as i64
}

/// The blocks of rows of a known length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowBlocks {
    /// The elements of a row.
    pub length: i64,
    /// The elements of a row that one block processes.
    pub part: i64,
    /// The rows of a block.
    pub rows: i64,
}

impl RowBlocks {
    /// The blocks of rows of this length.
    ///
    /// Errors: a length that is out of range.
    pub(crate) fn new(operator: &'static str, length: i64) -> Result<RowBlocks, OperatorError> {
        if !(1..=LONGEST).contains(&length) {
            let because = format!("a row has from 1 to {LONGEST} elements");
            return Err(OperatorError::value(operator, "length", length, because));
        }
        let part = power_from(length).min(TILE);
        Ok(RowBlocks { length, part, rows: TILE / part })
    }

    /// The same parts, with one row in each block.
    pub(crate) fn single(self) -> RowBlocks {
        RowBlocks { rows: 1, ..self }
    }

    /// The number of parts of a row.
    pub(crate) fn parts(self) -> i64 {
        (self.length + self.part - 1) / self.part
    }

    /// The shape of a tile.
    pub(crate) fn shape(self) -> String {
        format!("({},{})", self.rows, self.part)
    }

    /// The layout of this many contiguous rows.
    pub(crate) fn layout(self, rows: &str) -> String {
        let length = self.length;
        format!("({rows},{length}):({length},1)")
    }

    /// The grid of blocks for this many rows.
    pub(crate) fn grid(self, rows: &str) -> String {
        let blocks = if self.rows == 1 { rows.to_string() } else { format!("ceil({rows}/{})", self.rows) };
        format!("    grid {blocks}, {}\n", self.parts())
    }
}
