//! Weights of four bits: multiplied directly, or first converted to 16 bits.

use tilewright_kernel::machine::Machine;

use crate::error::PlanError;
use crate::gemm::fitted::GENERAL;
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Matrix;
use crate::gemm::product::Product;

/// Whether it takes less time on a machine, by the model, to convert the weights of a GEMM of
/// weights of four bits ([`Problem::of_int4`]) first: a kernel writes the weights, times their
/// scales, in the type of A, and the GEMM multiplies by those. It is false for any other problem.
///
/// The two ways do not compute the same bits, because the second one rounds the scaled weights. So
/// the caller chooses, and no plan of the problem itself converts the weights.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::gemm::{Matrix, Problem, is_faster_unpacked};
///
/// let h200 = Machine::named("H200").unwrap();
/// let of = |m| {
///     let rows = |element, extents| Matrix::rows(element, extents).unwrap();
///     let [a, d] = [[m, 4096], [m, 14336]].map(|extents| rows(Element::Bf16, extents));
///     let scales = Matrix::columns(Element::Bf16, [14336, 32]).unwrap();
///     Problem::of_int4(a, rows(Element::I32, [14336, 512]), scales, d).unwrap()
/// };
/// // Few rows are multiplied as fast as the words are read, and many rows by wgmma.
/// assert!(!is_faster_unpacked(&of(16), &h200).unwrap());
/// assert!(is_faster_unpacked(&of(4096), &h200).unwrap());
/// ```
///
/// Errors: as [`Product::new`].
pub fn is_faster_unpacked(problem: &Problem, machine: &Machine) -> Result<bool, PlanError> {
    let (Some(scales), Some(unpacked)) = (problem.int4_scales(), problem.unpacked()?) else { return Ok(false) };
    let least = |problem: &Problem| {
        let plans = Product::candidates(problem, machine)?;
        Ok::<f64, PlanError>(plans.first().map_or(f64::INFINITY, |(seconds, _)| *seconds))
    };
    let moved = [problem.b(), scales, unpacked.b()].into_iter().map(Matrix::bytes).fold(0, i64::saturating_add);
    let writes = GENERAL.launch + moved as f64 / (machine.bandwidth * GENERAL.bandwidth);
    Ok(writes + least(&unpacked)? < least(problem)?)
}
