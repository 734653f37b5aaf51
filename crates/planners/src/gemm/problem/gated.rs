//! Gated GEMM: a column of D is computed from two columns of B.
//!
//! Law: column `j` of D is a function of two accumulators, those of A with both columns of a pair,
//! such as `silu(x) * y`. Both are in the registers of one thread, because the halves of a tile of
//! B are multiplied by separate instructions.

/// Which two columns of B make a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pairs {
    /// Columns `2 j` and `2 j + 1`.
    Neighbours,
    /// Columns `j` and `j + N`, where D has `N` columns and B has `2 N`.
    Halves,
}

impl Pairs {
    /// The two columns of B for a column of D, which has `of` columns.
    pub(crate) fn columns(self, column: i64, of: i64) -> [i64; 2] {
        match self {
            Pairs::Neighbours => [2 * column, 2 * column + 1],
            Pairs::Halves => [column, column + of],
        }
    }
}
