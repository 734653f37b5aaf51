//! Construction of GEMMs of block-scaled formats.
//!
//! Law: operands and scales have the types of the format, and there is one scale for each block of
//! each row of A and of B.

use tilewright_kernel::Element;
use tilewright_kernel::program::operation::BlockScaled;

use crate::error::PlanError;
use crate::gemm::problem::Problem;
use crate::gemm::problem::blocks::BlockScales;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::scales::Scales;
use crate::gemm::step::ProductTensor;
use crate::meaning::any_numbers;
use crate::units::count;

/// The type of the matrices of a format: u8 if a byte holds two elements of 4 bits.
fn element(format: BlockScaled) -> Element {
    match format {
        BlockScaled::Mxf8E4M3 => Element::E4M3,
        BlockScaled::Mxf8E5M2 => Element::E5M2,
        BlockScaled::Mxf4 | BlockScaled::Nvf4 => Element::U8,
    }
}

impl Problem {
    /// The GEMM of block-scaled A and B into D. A and B are matrices of e4m3 or e5m2, or of u8 for
    /// the 4-bit formats. There, a byte holds two elements along K, the one with the lower index in
    /// the lower bits, so that the columns of the matrices are pairs of elements. Scales are
    /// matrices of u8, whose bits are those of ue8m0 or ue4m3: `(M,K/b)` and `(N,K/b)`, with the
    /// batch as a third mode. The last block of a row may have fewer elements.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_kernel::program::operation::BlockScaled;
    /// use tilewright_planners::gemm::{Matrix, Problem, Product, Scales};
    ///
    /// // 96 x 64 results of 256 products each, in NVFP4.
    /// let of = |rows, columns| Matrix::rows(Element::U8, [rows, columns]).unwrap();
    /// let scales = Scales { a: of(96, 16), b: of(64, 16) };
    /// let d = Matrix::rows(Element::Bf16, [96, 64]).unwrap();
    /// let problem = Problem::block_scaled(BlockScaled::Nvf4, of(96, 128), of(64, 128), d, scales).unwrap();
    /// assert_eq!(problem.operations(), 2 * 96 * 64 * 256);
    /// let product = Product::new(&problem, &Machine::named("RTX 5090").unwrap()).unwrap();
    /// assert_eq!(product.check().unwrap().compared, 96 * 64);
    /// // An H200 has no such instructions.
    /// assert!(Product::new(&problem, &Machine::named("H200").unwrap()).is_err());
    /// ```
    ///
    /// Errors: as [`Problem::of`]; operands or scales of another type ([`PlanError::Unknown`]);
    /// scales of another shape ([`PlanError::Shape`]).
    pub fn block_scaled(
        format: BlockScaled,
        a: Matrix,
        b: Matrix,
        d: Matrix,
        scales: Scales,
    ) -> Result<Problem, PlanError> {
        let wanted = element(format);
        if a.element() != wanted {
            let (given, known) = (a.element().to_string(), wanted.to_string());
            return Err(PlanError::Unknown { what: "operand type of this block-scaled format", given, known });
        }
        let problem = Problem::of(a, b, d)?;
        let ([m, n, k], batch) = (problem.sizes(), problem.batch());
        let blocks = count(k * i64::from(format.packed()), i64::from(format.block()));
        for (matrix, rows) in [(&scales.a, m), (&scales.b, n)] {
            if matrix.element() != Element::U8 {
                let (given, known) = (matrix.element().to_string(), "u8, the bits of the scale".to_string());
                return Err(PlanError::Unknown { what: "type of a scale", given, known });
            }
            if matrix.extents() != [rows, blocks, batch] {
                let batch = if batch > 1 { format!(",{batch}") } else { String::new() };
                let shape = format!("({rows},{blocks}{batch})");
                return Err(PlanError::Shape { layout: matrix.layout().to_string(), shape });
            }
        }
        Ok(Problem { blocks: Some(BlockScales { format, scales }), ..problem })
    }

    /// The format and the scales of a block-scaled GEMM.
    pub fn blocks(&self) -> Option<&BlockScales> {
        self.blocks.as_ref()
    }

    /// The same GEMM with copies of the scales in other matrices.
    pub(crate) fn with_block_scales(self, scales: Scales) -> Problem {
        let blocks = self.blocks.as_ref().map(|blocks| BlockScales { format: blocks.format, scales });
        Problem { blocks, ..self }
    }

    /// Random numbers for a tensor, as bytes: small, and never NaN. Scales of blocks are from 1/8
    /// to 8.
    pub fn any_numbers(&self, operand: ProductTensor, element: Element, count: usize, seed: u64) -> Vec<u8> {
        let mut bytes = any_numbers(element, count, seed);
        let is_scale = matches!(operand, ProductTensor::ScalesA | ProductTensor::ScalesB);
        match self.blocks().filter(|_| is_scale).map(|blocks| blocks.format) {
            // 2^-3 to 2^3.
            Some(BlockScaled::Mxf8E4M3 | BlockScaled::Mxf8E5M2 | BlockScaled::Mxf4) => {
                bytes.iter_mut().for_each(|byte| *byte = 124 + *byte % 7);
            }
            // Exponents from -3 to 2.
            Some(BlockScaled::Nvf4) => bytes.iter_mut().for_each(|byte| *byte = 0x20 + *byte % 0x30),
            None => {}
        }
        bytes
    }
}
