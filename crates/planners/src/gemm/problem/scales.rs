//! Block scales of A and B: layouts.

use tilewright_kernel::Element;
use tilewright_layout::{Layout, LayoutError};

use crate::error::PlanError;
use crate::gemm::problem::gated::Pairs;
use crate::gemm::problem::matrix::Matrix;
use crate::units::count;

/// The size of a block that has a scale: elements along K, and rows or columns.
pub(crate) const SCALE_BLOCK: i64 = 128;

/// Scales of the blocks of A and of B, in f32.
///
/// Scales of A are `(M,K/128)`, one for each row, or `(M/128,K/128)`, one for 128 rows; scales of B
/// likewise. The last blocks may be smaller. A batch has one more mode, the matrix. With row
/// groups, the scales of B have one more mode, the group, and A has one scale for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Scales {
    /// The scales of A.
    pub a: Matrix,
    /// The scales of B.
    pub b: Matrix,
}

impl Scales {
    /// Whether the scales match an operand of `rows` rows, `k` elements along K, and a batch.
    /// `each` requires a scale for each row.
    ///
    /// Errors: their extents differ.
    pub(crate) fn fit(scales: &Matrix, [rows, k, batch]: [i64; 3], each: bool) -> Result<(), PlanError> {
        let (steps, few) = (count(k, SCALE_BLOCK), if each { rows } else { count(rows, SCALE_BLOCK) });
        if scales.extents() == [rows, steps, batch] || scales.extents() == [few, steps, batch] {
            return Ok(());
        }
        let batch = if batch > 1 { format!(",{batch}") } else { String::new() };
        let all = format!("({rows},{steps}{batch})");
        let shape = if few == rows { all } else { format!("{all} or ({few},{steps}{batch})") };
        Err(PlanError::Shape { layout: scales.layout().to_string(), shape })
    }

    /// The same scales as a batch, for groups of `rows` rows each.
    pub(crate) fn parted_evenly(&self, rows: i64, groups: i64) -> Result<Scales, PlanError> {
        let [_, steps, _] = self.a.extents();
        let [down, along, _] = self.a.strides().unwrap_or([1, 1, 0]);
        let a = Matrix::strided(Element::F32, [rows, steps, groups], [down, along, rows * down])?;
        Ok(Scales { a, b: self.b.clone() })
    }
}

/// The layout of the scales of an operand along rows or columns of D.
pub(crate) struct ScaleLayout {
    /// The mode: its extent and stride.
    pub(crate) mode: Layout,
    /// From the scale of the first column of a pair to that of the second.
    pub(crate) apart: i64,
    /// Rows or columns that share a scale.
    pub(crate) wide: i64,
}

impl ScaleLayout {
    /// The layout along `own` rows or columns of D; `down` is the stride between blocks.
    ///
    /// Errors: a scale has no offset that is a number.
    pub(crate) fn of(scales: &Matrix, own: i64, pairs: Option<Pairs>) -> Result<ScaleLayout, LayoutError> {
        let ([blocks, ..], [down, ..]) = (scales.extents(), scales.strides().unwrap_or([0; 3]));
        let all = if pairs.is_some() { 2 * own } else { own };
        let each = |stride: i64, apart: i64| -> Result<ScaleLayout, LayoutError> {
            Ok(ScaleLayout { mode: Layout::strided(own, stride)?, apart, wide: if stride == 0 { own } else { 1 } })
        };
        let blocked = |wide: i64, count: i64, apart: i64| -> Result<ScaleLayout, LayoutError> {
            Ok(ScaleLayout { mode: Layout::strided((wide, count), (0, down))?, apart, wide })
        };
        match pairs {
            _ if blocks == 1 && all > 1 => each(0, 0),
            None if blocks == all => each(down, 0),
            Some(Pairs::Neighbours) if blocks == all => each(2 * down, down),
            Some(Pairs::Halves) if blocks == all => each(down, own * down),
            None => blocked(SCALE_BLOCK, blocks, 0),
            // Both columns of a pair are in one block.
            Some(Pairs::Neighbours) => blocked(SCALE_BLOCK / 2, blocks, 0),
            // Each half has its own blocks.
            Some(Pairs::Halves) => blocked(SCALE_BLOCK, blocks / 2, blocks / 2 * down),
        }
    }
}
