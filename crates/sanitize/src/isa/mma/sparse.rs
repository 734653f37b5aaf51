//! `mma.sp` and `wgmma.mma_async.sp`: products with a sparse A, and the metadata of its elements.
//!
//! Law: `D = A B + C`, where A is m x k, but only k / 2 elements of each row are stored, in
//! registers and in shared memory like a dense A of m x k / 2. An index of 2 bits gives the
//! position of an element in its chunk of A. There are two indices: for the two elements of a chunk
//! of four, or, for 4-bit elements, for the two pairs of a chunk of eight. For tf32, one element of
//! a chunk of two is stored, with metadata `0b0100` (the first) or `0b1110` (the second). The
//! metadata for register `r` of A are ordered by the lanes of a group of four, low bits first, and
//! follow those for register `r - 1`. Their first 32 bits are in the first contributing lane of the
//! group, the next in the second, and so on. As many lanes contribute as there are words, and the
//! selector counts such sets of lanes.
//!
//! Products are accumulated like a dense product of depth k / 2, of the stored elements of A with
//! the elements of B that belong to them.
//!
//! Metadata have no defined result if both indices of a chunk are equal, if those of tf32 have
//! other bits, or, with `sp::ordered_metadata`, if the first index is above the second.
//! [`Sparsity::places`] refuses them.
//!
//! (PTX ISA, "Sparse matrix storage" and "Matrix fragments for multiply-accumulate operation with
//! sparse matrix A".)

use std::fmt;

use super::{LANES, LaneWords, Mma, Operands};
use crate::isa::tensor_core::{SumModel, SumType};

/// Rows of A for each warp.
pub(crate) const ROWS: usize = 16;
/// The number of lanes that hold a row together.
const GROUP: usize = 4;

/// The layout of a sparse A's metadata in the registers of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sparsity {
    /// Bits of an element: 4, 8, 16 or 32.
    bits: u32,
    /// The number of registers of A in each lane.
    registers: usize,
    selector: usize,
    is_ordered: bool,
}

/// Metadata without a defined result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MetadataFlaw {
    /// The row of A, from 0 to 15 in a warp.
    pub row: usize,
    /// The first column of the chunk.
    pub column: usize,
    /// The four metadata bits of the chunk.
    pub bits: u32,
}

impl fmt::Display for MetadataFlaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, column, bits } = self;
        write!(out, "the metadata of row {row} of A are 0b{bits:04b} for the chunk from column {column} on, ")?;
        out.write_str("which has no defined result")
    }
}

/// For each stored element of A, its column in A, which is its row in B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    columns: Vec<u16>,
    held: usize,
}

impl Places {
    /// The columns of the stored elements of a row of A, in order.
    pub fn row(&self, row: usize) -> &[u16] {
        self.columns.get(row * self.held..(row + 1) * self.held).unwrap_or_default()
    }

    /// Whether rows of A have this many stored elements.
    pub(crate) fn fits(&self, held: usize) -> bool {
        self.held == held
    }

    /// The rows of B, `width` elements each, that belong to the stored elements of a row of A.
    pub(crate) fn gather<T: Copy>(&self, row: usize, width: usize, from: &[T]) -> Vec<T> {
        let rows = self.row(row).iter().filter_map(|at| from.get(usize::from(*at) * width..)?.get(..width));
        rows.flatten().copied().collect()
    }
}

impl Sparsity {
    /// The layout for an A with elements of this many bits, in two or four registers of each lane.
    ///
    /// # Errors
    ///
    /// Errors: there is no such A, or the selector names lanes that do not exist.
    ///
    /// ```
    /// use tilewright_sanitize::isa::mma::sparse::Sparsity;
    ///
    /// // `m16n8k32` of f16: two lanes of four contribute, the first ones or the last ones.
    /// assert!(Sparsity::new(16, 4, 1, true).is_ok());
    /// assert!(Sparsity::new(16, 4, 2, true).is_err());
    /// // `m16n8k16`: one of the four does.
    /// assert!(Sparsity::new(16, 2, 3, true).is_ok());
    /// ```
    pub fn new(bits: u32, registers: usize, selector: u64, is_ordered: bool) -> Result<Self, String> {
        if !matches!(bits, 4 | 8 | 16 | 32) || !matches!(registers, 2 | 4) {
            return Err("there is no sparse product of this shape and these types".to_string());
        }
        let mut own = Self { bits, registers, selector: 0, is_ordered };
        let sets = GROUP / own.words();
        match usize::try_from(selector) {
            Ok(selector) if selector < sets => {
                own.selector = selector;
                Ok(own)
            }
            _ => Err(format!("the selector of the sparsity is {selector}, but at most {} here", sets - 1)),
        }
    }

    /// The number of metadata bits for a register of a lane.
    fn step(self) -> usize {
        if self.bits >= 16 { 4 } else { 8 }
    }

    /// The number of contributing lanes of a group. Each holds one word.
    fn words(self) -> usize {
        (self.registers * GROUP * self.step()).div_ceil(32)
    }

    /// The columns of the stored elements of A, from the metadata registers of a warp.
    ///
    /// # Errors
    ///
    /// Errors: the first metadata without a defined result.
    ///
    /// ```
    /// use tilewright_sanitize::isa::mma::sparse::Sparsity;
    ///
    /// let sparsity = Sparsity::new(16, 2, 0, true).unwrap();
    /// // In each chunk of four elements the second and the fourth.
    /// let places = sparsity.places(&[0xdddd_dddd; 32]).unwrap();
    /// assert_eq!(places.row(0), [1, 3, 5, 7, 9, 11, 13, 15]);
    /// assert!(sparsity.places(&[0; 32]).is_err());
    /// ```
    pub fn places(&self, metadata: &LaneWords) -> Result<Places, MetadataFlaw> {
        // The number of elements in a register, and of those that one index covers.
        let packed = (32 / self.bits) as usize;
        let pair = if self.bits == 4 { 2 } else { 1 };
        let held = self.registers / 2 * GROUP * packed;
        let mut columns = Vec::with_capacity(ROWS * held);
        for row in 0..ROWS {
            for at in 0..held {
                let (register, part) = (at / (GROUP * packed) * 2 + row / 8, at % packed);
                let lane = at / packed % GROUP;
                let bit = (register * GROUP + lane) * self.step();
                let contributor = row % 8 * GROUP + self.selector * self.words() + bit / 32;
                let word = metadata[contributor % LANES] >> (bit % 32);
                // The metadata of this element's chunk: four bits with two indices.
                let bits = word >> (part / (2 * pair) * 4) & 15;
                let chunk = if self.bits == 32 { at } else { at / (2 * pair) };
                let index = if self.bits == 32 { bits & 3 } else { bits >> (part / pair % 2 * 2) & 3 } as usize;
                let (low, high) = (bits & 3, bits >> 2);
                let is_good = match self.bits {
                    32 => matches!(bits, 0b0100 | 0b1110),
                    _ if self.is_ordered => low < high,
                    _ => low != high,
                };
                let width = if self.bits == 32 { 2 } else { 4 * pair };
                if !is_good {
                    return Err(MetadataFlaw { row, column: chunk * width, bits });
                }
                // For tf32, an index counts halves of an element.
                let offset = if self.bits == 32 { index / 2 } else { index * pair + part % pair };
                columns.push((chunk * width + offset) as u16);
            }
        }
        Ok(Places { columns, held })
    }
}

/// An `mma.sp` of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseMma {
    dense: Mma,
    sparsity: Sparsity,
}

impl SparseMma {
    /// An instruction of a shape. K counts the elements that are not stored, too.
    ///
    /// # Errors
    ///
    /// Errors: there is no instruction of this shape and these types, or the selector does not fit.
    ///
    /// ```
    /// use tilewright_sanitize::isa::mma::{LANES, Operands};
    /// use tilewright_sanitize::isa::mma::sparse::SparseMma;
    /// use tilewright_sanitize::isa::tensor_core::SumType;
    ///
    /// let bytes = Operands::Integers { bits: 8, a_signed: true, b_signed: true };
    /// let mma = SparseMma::new([16, 8, 32], bytes, SumType::F32, (false, true), 0).unwrap();
    /// let mut d = [[0; LANES]; 4];
    /// // Rows of 16 ones; B has 1 in its even rows and 2 in its odd ones.
    /// let (a, b) = ([[0x0101_0101; LANES]; 2], [[0x0201_0201; LANES]; 2]);
    /// mma.multiply(&a, &b, &[[0; LANES]; 4], &[0x8888_8888; LANES], &mut d).unwrap();
    /// assert_eq!(d, [[16; LANES]; 4]); // the elements 0 and 2 of each chunk
    /// ```
    pub fn new(
        [m, n, k]: [usize; 3],
        operands: Operands,
        sums: SumType,
        (saturate, is_ordered): (bool, bool),
        selector: u64,
    ) -> Result<Self, String> {
        let unknown = || "there is no sparse product of this shape and these types".to_string();
        let is_known = match operands {
            Operands::Floats(factor, _) if factor.bits() == 8 => k == 64,
            Operands::Floats(factor, _) => k * factor.bits() as usize >= 256,
            Operands::Integers { bits, .. } => k * bits as usize >= 256,
            _ => false,
        };
        let dense = Mma::new([m, n, k / 2], operands, sums, saturate).filter(|_| is_known && m == ROWS);
        let dense = dense.ok_or_else(unknown)?;
        let sparsity = Sparsity::new(operands.bits(), dense.registers()[0], selector, is_ordered)?;
        Ok(Self { dense, sparsity })
    }

    /// The same instruction with the accumulation of another device.
    pub fn with_model(self, model: SumModel) -> Self {
        Self { dense: self.dense.with_model(model), ..self }
    }

    /// The shape: M, N, and K, which counts the elements that are not stored, too.
    pub fn shape(&self) -> [usize; 3] {
        let [m, n, k] = self.dense.shape();
        [m, n, 2 * k]
    }

    /// The number of 32-bit registers of A, of B, and of C or D.
    pub fn registers(&self) -> [usize; 3] {
        let [a, b, c] = self.dense.registers();
        [a, 2 * b, c]
    }

    /// Computes D. If registers are missing, nothing is done.
    ///
    /// # Errors
    ///
    /// Errors: the first metadata without a defined result.
    pub fn multiply(
        &self,
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        metadata: &LaneWords,
        d: &mut [LaneWords],
    ) -> Result<(), MetadataFlaw> {
        let places = self.sparsity.places(metadata)?;
        self.dense.multiply_sparse(a, b, c, &places, d);
        Ok(())
    }
}
