//! Random problems of the types that warps multiply by mma.sync on every machine: f64, 4-bit
//! integers, and 4-bit weights.

use tilewright::kernel::Element;
use tilewright::planners::gemm::{Fused, Matrix, Problem};
use tilewright::planners::{Expression, PlanError};

use super::{Chance, matrix};
use crate::random::{Numbers, Task, Work};

/// The number of weights along K that share a scale, and the number of weights in a word.
const GROUP: i64 = 128;
const WEIGHTS_OF_WORD: i64 = 8;

/// A random problem of one of these types, of about the given sizes.
pub(super) fn task(chance: &mut Chance, sizes: [i64; 3]) -> Result<Task, PlanError> {
    let problem = match chance.below(3) {
        0 => doubles(chance, sizes)?,
        1 => nibbles(chance, sizes)?,
        _ => weights(chance, sizes)?,
    };
    Ok(Task::new(chance, Work::One(Box::new(problem)), Numbers::Small))
}

fn doubles(chance: &mut Chance, [m, n, k]: [i64; 3]) -> Result<Problem, PlanError> {
    let batch = chance.one_of(&[1, 1, 1, 3]);
    let result = chance.one_of(&[Element::F64, Element::F64, Element::F32]);
    let (a, b) = (matrix(chance, Element::F64, [m, k, batch])?, matrix(chance, Element::F64, [n, k, batch])?);
    let problem = Problem::of(a, b, matrix(chance, result, [m, n, batch])?)?;
    if chance.below(2) == 0 {
        return Ok(problem);
    }
    let text = chance.one_of(&["2 * x + 0.5 * c", "relu(x + c)", "max(x * c, -1)", "sqrt(abs(x)) - c"]);
    let element = chance.one_of(&[Element::F64, Element::F32, Element::Bf16]);
    let inputs = vec![matrix(chance, element, [m, n, batch])?];
    problem.fused(Fused { expression: Expression::parse(text, &["x", "c"])?, inputs })
}

fn nibbles(chance: &mut Chance, [m, n, k]: [i64; 3]) -> Result<Problem, PlanError> {
    let (element, batch) = (chance.one_of(&[Element::I8, Element::U8]), chance.one_of(&[1, 1, 1, 3]));
    let result = chance.one_of(&[Element::I32, Element::I32, Element::F32]);
    let (a, b) = (matrix(chance, element, [m, k, batch])?, matrix(chance, element, [n, k, batch])?);
    Problem::of(a, b, matrix(chance, result, [m, n, batch])?)?.in_nibbles()
}

fn weights(chance: &mut Chance, [m, n, k]: [i64; 3]) -> Result<Problem, PlanError> {
    let k = (k + GROUP - 1) / GROUP * GROUP;
    let element = chance.one_of(&[Element::Bf16, Element::F16]);
    let of_scales = chance.one_of(&[element, Element::F32]);
    let a = matrix(chance, element, [m, k, 1])?;
    let words = matrix(chance, Element::I32, [n, k / WEIGHTS_OF_WORD, 1])?;
    let scales = matrix(chance, of_scales, [n, k / GROUP, 1])?;
    let result = chance.one_of(&[Element::Bf16, Element::F16, Element::F32]);
    let problem = Problem::of_int4(a, words, scales, matrix(chance, result, [m, n, 1])?)?;
    if chance.below(2) == 0 {
        return Ok(problem);
    }
    let inputs = vec![Matrix::strided(element, [m, n, 1], [0, 1, 0])?];
    problem.fused(Fused { expression: Expression::parse("relu(x + bias)", &["x", "bias"])?, inputs })
}
