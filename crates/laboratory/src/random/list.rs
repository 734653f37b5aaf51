//! Random lists of problems.
//!
//! Law: a list is determined by its number, like a problem: types and the epilogue function are the
//! same for all its problems, sizes and layouts differ.

use tilewright::kernel::Element;
use tilewright::planners::gemm::{Fused, Matrix, Problem, Problems};
use tilewright::planners::{Expression, PlanError};

use super::problem::{BYTES, Chance, matrix};
use super::{Numbers, Task, Work};

/// The greatest number of problems of a list.
const MOST: u64 = 12;
/// The greatest number of problems of a list whose inputs may not be prefetchable.
const MOST_READ: u64 = 8;

/// The list of this number.
pub(super) fn task(number: u64, largest: i64, long: bool) -> Result<Task, PlanError> {
    let mut chance = Chance(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678));
    let chance = &mut chance;
    chance.next();
    let operands = chance.one_of(&[
        Element::Bf16,
        Element::Bf16,
        Element::F16,
        Element::F32,
        Element::E4M3,
        Element::E5M2,
        Element::I8,
    ]);
    let result = match operands {
        Element::I8 => Element::I32,
        _ => chance.one_of(&[Element::Bf16, Element::F16, Element::F32, Element::E4M3]),
    };
    let [tf32, fast, vector, residual, plain] = [0; 5].map(|_| chance.below(2) == 0);
    let fused = result.is_float() && chance.below(3) == 0;
    let count = 1 + chance.below(if fused { MOST_READ } else { MOST }) as usize;
    let mut problems = Vec::new();
    for _ in 0..count {
        let mut sizes = chance.sizes(largest, long);
        while sizes.iter().max().is_some_and(|most| most * most * 12 * count as i64 > BYTES) {
            if let Some(most) = sizes.iter_mut().max() {
                *most = (*most / 2).max(1);
            }
        }
        let [m, n, k] = sizes;
        let mut own = |element, [rows, columns]: [i64; 2]| match plain {
            // Either in the layout that kernels read, so that nothing is copied first, or in any
            // layout.
            true => {
                let line = (columns + 15) / 16 * 16;
                Matrix::strided(element, [rows, columns, 1], [line, 1, rows * line])
            }
            false => matrix(chance, element, [rows, columns, 1]),
        };
        let [a, b, d] = [own(operands, [m, k])?, own(operands, [n, k])?, own(result, [m, n])?];
        let other = own(Element::Bf16, [m, n])?;
        let mut problem = Problem::of(a, b, d)?;
        if tf32 && operands == Element::F32 {
            problem = problem.in_tf32();
        }
        if fast && matches!(operands, Element::E4M3 | Element::E5M2) {
            problem = problem.fast();
        }
        if fused {
            let along = if vector { [0, 1, 0] } else { [1, 0, 0] };
            let mut inputs = vec![Matrix::strided(Element::Bf16, [m, n, 1], along)?];
            let text = if residual { "relu(x + a) + b" } else { "gelu_tanh(x * a)" };
            inputs.extend(residual.then_some(other));
            problem = problem.fused(Fused { expression: Expression::parse(text, &["x", "a", "b"])?, inputs })?;
        }
        problems.push(problem);
    }
    let numbers = match operands {
        Element::Bf16 | Element::F16 | Element::F32 if !fused => {
            chance.one_of(&[Numbers::Small, Numbers::Tiny, Numbers::Large, Numbers::Special])
        }
        _ => Numbers::Small,
    };
    Ok(Task::new(chance, Work::List(Problems::new(problems)?), numbers))
}
