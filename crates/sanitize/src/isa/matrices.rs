//! `ldmatrix`, `stmatrix` and `movmatrix`: 8 x 8 matrices of 16 bits.
//!
//! Law: row `r` of matrix `j` is 16 bytes at the address of lane `8j + r`. In lane `4g + t`,
//! register `j` holds the two elements of row `g` from `2t` on; with `.trans`, it holds those of
//! column `g` in the two rows from `2t` on. `movmatrix.trans` converts a register from the first
//! form to the second.

use super::mma::{LANES, LaneWords};

/// The rows of a matrix, as bytes.
pub type Rows = [[u8; 16]; 8];

/// The lane that holds the address of a row of a matrix.
#[inline(always)]
pub fn address_lane(matrix: usize, row: usize) -> usize {
    (8 * matrix + row) % LANES
}

/// The row and the column of an element of a register.
#[inline(always)]
fn place(lane: usize, half: usize, transposed: bool) -> (usize, usize) {
    let (group, pair) = (lane / 4, 2 * (lane % 4) + half);
    if transposed { (pair, group) } else { (group, pair) }
}

/// The register of each lane for a matrix: `ldmatrix`.
///
/// ```
/// use tilewright_sanitize::isa::matrices::load;
///
/// let mut rows = [[0; 16]; 8];
/// rows[1][2] = 7; // row 1, column 1
/// assert_eq!(load(&rows, false)[4], 7 << 16);
/// assert_eq!(load(&rows, true)[4], 7 << 16);
/// ```
pub fn load(rows: &Rows, transposed: bool) -> LaneWords {
    let mut register = [0; LANES];
    for (lane, word) in register.iter_mut().enumerate() {
        for half in 0..2 {
            let (row, column) = place(lane, half, transposed);
            let bytes = [rows[row][2 * column], rows[row][2 * column + 1]];
            *word |= u32::from(u16::from_le_bytes(bytes)) << (16 * half);
        }
    }
    register
}

/// The rows of a matrix from the registers of the lanes: `stmatrix`.
pub fn store(register: &LaneWords, transposed: bool) -> Rows {
    let mut rows = [[0; 16]; 8];
    for (lane, word) in register.iter().enumerate() {
        for half in 0..2 {
            let (row, column) = place(lane, half, transposed);
            let [low, high] = ((word >> (16 * half)) as u16).to_le_bytes();
            rows[row][2 * column] = low;
            rows[row][2 * column + 1] = high;
        }
    }
    rows
}

/// `movmatrix.trans`.
pub fn transpose(register: &LaneWords) -> LaneWords {
    load(&store(register, false), true)
}
