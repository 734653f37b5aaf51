//! Lists of problems by chance.
//!
//! Law: a list follows from its number alone, as a problem does: types and the function of the sums
//! are those of all its problems, sizes and layouts each problem's own.

use tilewright::gpu::Device;
use tilewright::kernel::Element;
use tilewright::kernels::gemm::{Fused, Matrix, Problem, Problems, Products};
use tilewright::kernels::{Expression, PlanError};

use super::{BYTES, COMPARED, Chance, Numbers, block, compared, filled, matrix, wrong};
use crate::gemm::tensors::{Tensors, ready};
use crate::output::Failure;

/// The most problems of a list.
const MOST: u64 = 12;
/// The most of a list with inputs, which may not come ahead of the sums.
const MOST_READ: u64 = 8;

/// A list by chance.
pub(super) struct Task {
    problems: Problems,
    numbers: Numbers,
    /// Which of the candidates is its plan, counted round; that of the model where none is said.
    plan: Option<usize>,
}

impl Task {
    pub(super) fn text(&self) -> String {
        let lies = |problem: &Problem| format!("A {}, B {}, D {}", problem.a(), problem.b(), problem.d());
        let lies: Vec<String> = self.problems.problems().iter().map(lies).collect();
        let which = self.plan.map_or_else(String::new, |plan| format!(", plan {plan} of all, counted round"));
        format!("{}: {}, {:?} numbers{which}", self.problems, lies.join("; "), self.numbers)
    }

    fn products(&self) -> Result<Products, PlanError> {
        let Some(number) = self.plan else { return Products::new(&self.problems) };
        let plans = Products::candidates(&self.problems)?;
        match plans.get(number % plans.len().max(1)) {
            Some((_, plan)) => Products::planned(&self.problems, plan),
            None => Products::new(&self.problems),
        }
    }
}

/// The list of a number.
pub(super) fn task(number: u64, largest: i64) -> Result<Task, PlanError> {
    let mut chance = Chance(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678));
    let chance = &mut chance;
    chance.next();
    let factors = chance.one_of(&[
        Element::Bf16,
        Element::Bf16,
        Element::F16,
        Element::F32,
        Element::E4M3,
        Element::E5M2,
        Element::I8,
    ]);
    let result = match factors {
        Element::I8 => Element::I32,
        _ => chance.one_of(&[Element::Bf16, Element::F16, Element::F32, Element::E4M3]),
    };
    let [tf32, fast, vector, residual, plain] = [0; 5].map(|_| chance.below(2) == 0);
    let fused = result.is_float() && chance.below(3) == 0;
    let count = 1 + chance.below(if fused { MOST_READ } else { MOST }) as usize;
    let mut problems = Vec::new();
    for _ in 0..count {
        let mut sizes = [0; 3].map(|_| chance.size(largest));
        while sizes.iter().max().is_some_and(|most| most * most * 12 * count as i64 > BYTES) {
            if let Some(most) = sizes.iter_mut().max() {
                *most = (*most / 2).max(1);
            }
        }
        let [m, n, k] = sizes;
        let mut own = |element, [rows, columns]: [i64; 2]| match plain {
            // As kernels take them, so that nothing is moved; or anyhow.
            true => {
                let line = (columns + 15) / 16 * 16;
                Matrix::strided(element, [rows, columns, 1], [line, 1, rows * line])
            }
            false => matrix(chance, element, [rows, columns, 1]),
        };
        let [a, b, d] = [own(factors, [m, k])?, own(factors, [n, k])?, own(result, [m, n])?];
        let other = own(Element::Bf16, [m, n])?;
        let mut problem = Problem::of(a, b, d)?;
        if tf32 && factors == Element::F32 {
            problem = problem.in_tf32();
        }
        if fast && matches!(factors, Element::E4M3 | Element::E5M2) {
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
    let numbers = match factors {
        Element::Bf16 | Element::F16 | Element::F32 if !fused => {
            chance.one_of(&[Numbers::Small, Numbers::Tiny, Numbers::Large, Numbers::Special])
        }
        _ => Numbers::Small,
    };
    let plan = (chance.below(3) == 0).then(|| chance.next() as usize);
    Ok(Task { problems: Problems::new(problems)?, numbers, plan })
}

/// Checks a list in the interpreter.
pub(super) fn interpreted(task: &Task) -> Result<u64, Failure> {
    let products = task.products().map_err(|error| Failure::refused(&error))?;
    let report = products.check_on(&|problem, operand, element, count| {
        // Each problem has numbers of its own.
        let mut bytes = block(task.numbers, operand, element, count + problem);
        bytes.drain(..problem * element.bytes() as usize);
        bytes
    });
    Ok(report.map_err(wrong)?.compared as u64)
}

/// Checks a list on a device.
pub(super) fn launched(device: &Device, task: &Task, number: u64) -> Result<u64, Failure> {
    let products = task.products().map_err(|error| Failure::refused(&error))?;
    let stream = device.stream()?;
    let kernels = ready(device, products.steps())?;
    let problems = task.problems.problems();
    let (mut all, mut blocks) = (Vec::new(), Vec::new());
    for (place, problem) in problems.iter().enumerate() {
        let workspaces = if place == 0 { products.workspaces() } else { &[] };
        let made = filled(device, &stream, (problem, place), (task.numbers, number), workspaces)?;
        all.push(made.0);
        blocks.push(made.1);
    }
    Tensors::launch_all(&mut all, &stream, &kernels)?;
    stream.synchronize()?;
    let each = COMPARED / problems.len() as u64;
    let of =
        |(place, problem): (usize, &Problem)| compared(&stream, problem, (&all[place], &blocks[place]), number, each);
    problems.iter().enumerate().map(of).sum()
}
