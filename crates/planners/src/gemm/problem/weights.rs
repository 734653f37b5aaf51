//! Weights of four bits: a GEMM whose B is packed words with scales.
//!
//! Law: a weight `w(n,k)` is an integer from -8 to 7 times the scale of its group of 128 along K. A
//! word of i32 packs eight weights of a row: from the lowest four bits upward, the weights at K =
//! 0, 2, 4, 6, 1, 3, 5, 7.

use tilewright_kernel::Element;
use tilewright_layout::LayoutError;

use crate::error::PlanError;
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::problem::scales::SCALE_BLOCK;
use crate::gemm::step::ProductTensor;

/// The number of weights along K that share a scale.
pub(crate) const GROUP: i64 = SCALE_BLOCK;
/// The number of weights in a word, of four bits each.
pub(crate) const WEIGHTS_OF_WORD: i64 = i32::BITS as i64 / 4;
/// The number of words of a row in a group.
pub(crate) const WORDS_OF_GROUP: i64 = GROUP / WEIGHTS_OF_WORD;

impl Problem {
    /// The GEMM of A `(M,K)` of bf16 or f16 and weights of four bits into D `(M,N)`: `words` are
    /// `(N,K/8)` of i32, and `scales` `(N,K/128)` of bf16, f16 or f32.
    ///
    /// From the lowest four bits of a word upward, its weights are those at K = 0, 2, 4, 6, 1, 3,
    /// 5, 7, from -8 to 7. The products of 128 elements along K are added in f32, the sum is
    /// multiplied by their scale, and added to the total.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Matrix, Problem, Product};
    ///
    /// let rows = |element, extents| Matrix::rows(element, extents).unwrap();
    /// let a = rows(Element::Bf16, [16, 4096]);
    /// let (words, scales) = (rows(Element::I32, [4096, 512]), Matrix::columns(Element::Bf16, [4096, 32]).unwrap());
    /// let problem = Problem::of_int4(a, words, scales, rows(Element::Bf16, [16, 4096])).unwrap();
    /// assert!(problem.to_string().starts_with("bf16 (16,4096) x int4 (4096,4096) -> bf16 (16,4096)"));
    /// assert!(Product::new(&problem, &Machine::named("A100").unwrap()).is_ok());
    /// ```
    ///
    /// Errors: other types ([`PlanError::Unknown`]); K that is no multiple of 128
    /// ([`PlanError::Size`]); a batch ([`PlanError::Together`]); extents that do not match
    /// ([`PlanError::Extents`], [`PlanError::Shape`]); folded modes of the scales
    /// ([`PlanError::Rank`]).
    pub fn of_int4(a: Matrix, words: Matrix, scales: Matrix, d: Matrix) -> Result<Problem, PlanError> {
        let known = |what, given: Element, known: &str| {
            Err(PlanError::Unknown { what, given: given.to_string(), known: known.to_string() })
        };
        let (numbers, [n, count, batch]) = (a.element(), words.extents());
        if !matches!(numbers, Element::Bf16 | Element::F16) {
            return known("type of an operand beside weights of four bits", numbers, "bf16 and f16");
        }
        if words.element() != Element::I32 {
            return known("type of words of weights", words.element(), "i32");
        }
        if !matches!(scales.element(), Element::Bf16 | Element::F16 | Element::F32) {
            return known("type of a scale of weights", scales.element(), "bf16, f16 and f32");
        }
        if batch != 1 || a.extents()[2] != 1 {
            return Err(PlanError::Together { what: "batch", with: "weights of four bits" });
        }
        if count % WORDS_OF_GROUP != 0 {
            return Err(PlanError::Size { name: "K, in whole groups of 128 weights".to_string(), given: 8 * count });
        }
        if scales.extents() != [n, count / WORDS_OF_GROUP, 1] {
            let (layout, shape) = (scales.layout().to_string(), format!("({n},{})", count / WORDS_OF_GROUP));
            return Err(PlanError::Shape { layout, shape });
        }
        if scales.strides().is_none() {
            return Err(PlanError::Rank { layout: scales.layout().to_string() });
        }
        // Checks the extents with weights of the type of A.
        let weights = Matrix::rows(numbers, [n, count.saturating_mul(WEIGHTS_OF_WORD)])?;
        Ok(Problem { b: words, int4: Some(scales), ..Problem::checked(a, weights, d, None)? })
    }

    /// The scales of weights of four bits, if B is words of them.
    pub fn int4_scales(&self) -> Option<&Matrix> {
        self.int4.as_ref()
    }

    /// The GEMM by the same weights in the type of A, `(N,K)` with K contiguous; None without
    /// weights of four bits.
    pub(crate) fn unpacked(&self) -> Result<Option<Problem>, PlanError> {
        if self.int4.is_none() {
            return Ok(None);
        }
        let [_, n, k] = self.mma_sizes();
        let b = Matrix::rows(self.operand_type(), [n, k])?;
        Ok(Some(Problem { b, int4: None, ..self.clone() }))
    }

    /// The type of random numbers for a tensor of this type: words of weights may have any bits.
    pub fn random_type(&self, operand: ProductTensor, element: Element) -> Element {
        if operand == ProductTensor::B && self.int4.is_some() { Element::U32 } else { element }
    }

    /// The weight of a row of B without its scale; `word` gives the bits of a word by its offset.
    pub(crate) fn int4_weight(&self, word: impl Fn(i64) -> u64, [row, k]: [i64; 2]) -> Result<f64, LayoutError> {
        let at = self.b.place([row, k / WEIGHTS_OF_WORD, 0])?;
        let place = k % WEIGHTS_OF_WORD;
        let bits = word(at) >> (4 * (place / 2 + 4 * (place % 2))) & 15;
        Ok(bits as f64 - if bits > 7 { 16.0 } else { 0.0 })
    }
}
