//! Columns of B that make one column of D together.
//!
//! Law: column `j` of D is the function of two sums, those of A with the two columns of B of the
//! pair: of a gate and of what it lets through, for instance. Both sums are in the registers of one
//! thread, because the halves of a tile of B are multiplied one after the other, each into sums of
//! its own.

use super::matrix::{Contiguous, Matrix};
use super::problem::Problem;

/// Which two columns of B make a column of D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pairs {
    /// Columns `2 j` and `2 j + 1`.
    Neighbours,
    /// Columns `j` and `j + N`, where D has `N` columns and B has `2 N`.
    Halves,
}

impl Pairs {
    /// The columns of B of a column of D, of so many.
    pub(super) fn columns(self, column: i64, of: i64) -> [i64; 2] {
        match self {
            Pairs::Neighbours => [2 * column, 2 * column + 1],
            Pairs::Halves => [column, column + of],
        }
    }
}

/// The first columns of all pairs, as a matrix, and how far behind it the second ones lie.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Firsts {
    pub(super) matrix: Matrix,
    pub(super) apart: i64,
}

impl Firsts {
    /// The layout that a kernel declares: columns, K, which of the pair, and matrices where they
    /// differ.
    pub(super) fn declared(&self) -> Option<String> {
        let [rows, columns, matrices] = self.matrix.extents();
        let [down, across, step] = self.matrix.declared_strides()?;
        let apart = self.apart;
        Some(match self.matrix.is_batch() {
            true => format!("({rows},{columns},2,{matrices}):({down},{across},{apart},{step})"),
            false => format!("({rows},{columns},2):({down},{across},{apart})"),
        })
    }
}

impl Problem {
    /// The first columns of the pairs of B, where there are pairs and its modes are not folded.
    pub(super) fn firsts(&self) -> Option<Firsts> {
        let (b, [down, across, step]) = (self.b(), self.b().strides()?);
        let [rows, columns, matrices] = b.extents();
        let (stride, apart) = match self.pairs()? {
            Pairs::Neighbours => (2 * down, down),
            Pairs::Halves => (down, rows / 2 * down),
        };
        let matrix = Matrix::strided(b.element(), [rows / 2, columns, matrices], [stride, across, step]).ok()?;
        let matrix = matrix.at(b.offset()).ok()?;
        Some(Firsts { matrix, apart })
    }

    /// In which mode the copy engine reads B, or why it cannot be multiplied as it lies.
    pub(super) fn readable_b(&self) -> Result<Contiguous, &'static str> {
        if self.fold().is_some() {
            return Ok(Contiguous::Columns);
        }
        if self.pairs().is_none() {
            return self.readable(self.b());
        }
        let firsts = self.firsts().ok_or("its modes are folded")?;
        let found = self.readable(&firsts.matrix)?;
        match firsts.apart * i64::from(self.factors().bytes()) % 16 {
            0 => Ok(found),
            _ => Err("the columns of a pair are no multiples of 16 bytes apart"),
        }
    }
}
