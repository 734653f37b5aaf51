//! The scales of block-scaled formats: MXFP8, MXFP4 and NVFP4.
//!
//! Law: `D(m,n) = f(sum over k of A(m,k) * s(m,k/b) * B(n,k) * t(n,k/b))`, where a block of `b`
//! elements along K has one scale, by the format. The instructions apply the scales, so that
//! accumulators need no promotion.

use tilewright_kernel::program::operation::BlockScaled;

use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::scales::Scales;

/// The format of the operands of a GEMM, and their scales.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockScales {
    /// The format.
    pub format: BlockScaled,
    /// The scales, in bytes, with K along their columns: `(M,K/b)` of A and `(N,K/b)` of B.
    pub scales: Scales,
}

impl BlockScales {
    /// The matrix of one side.
    pub(crate) fn of(&self, is_a: bool) -> &Matrix {
        if is_a { &self.scales.a } else { &self.scales.b }
    }

    /// The number of bytes of the scales of one instruction along K, which are adjacent in memory
    /// and read as one word.
    pub(crate) fn word(&self) -> i64 {
        self.format.scales().into()
    }

    /// Whether a kernel can read scales in place: in words along K, at multiples of their size.
    pub(crate) fn is_readable(&self, matrix: &Matrix) -> bool {
        let [_, along, _] = matrix.extents();
        let Some([down, across, step]) = matrix.strides() else { return false };
        let (contiguous, whole) = (across == 1 || along == 1, |number: i64| number % self.word() == 0);
        let [_, declared, _] = matrix.declared_extents();
        contiguous && down >= 0 && step >= 0 && [declared, down, step, matrix.offset()].into_iter().all(whole)
    }
}
