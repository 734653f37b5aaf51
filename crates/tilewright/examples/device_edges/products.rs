//! Random GEMM: types, sizes, pitches, bases, batches, gated pairs, epilogue functions, row groups,
//! reductions and lists.

use tilewright::gpu::{Argument, Device, Stream};
use tilewright::kernel::Element;
use tilewright::planners::gemm::{
    Each, EpilogueReduction, Fused, Matrix, Pairs, Problem, Problems, Product, ProductTensor, Products, Step,
};
use tilewright::planners::{Expression, Statistic, any_numbers, bits_at};

use crate::chance::{Chance, compiled};
use crate::guarded::{Guarded, Outcome};

/// Elements of D that are compared, of each problem.
const COMPARED: i64 = 60;

/// A matrix in some layout: by rows or by columns, with lines of whole chunks or of any length, at
/// an offset or not.
fn matrix(chance: &mut Chance, element: Element, [rows, columns, batch]: [i64; 3]) -> Outcome<Matrix> {
    let unit = 16 / i64::from(element.bytes());
    let by_rows = chance.below(4) > 0;
    let (long, short) = if by_rows { (columns, rows) } else { (rows, columns) };
    let whole = (long + unit - 1) / unit * unit;
    let line = match chance.below(4) {
        0 => long + chance.below(5),
        1 => long,
        _ => whole + unit * chance.below(3),
    };
    let step = line * short + if chance.below(4) == 0 { unit * chance.below(9) } else { 0 };
    let strides = if by_rows { [line, 1, step] } else { [1, line, step] };
    let matrix = Matrix::strided(element, [rows, columns, batch], strides)?;
    Ok(if chance.below(8) == 0 { matrix.at(chance.below(9))? } else { matrix })
}

fn types(chance: &mut Chance) -> [Element; 2] {
    let all = [Element::Bf16, Element::Bf16, Element::F16, Element::F32, Element::E4M3, Element::E5M2, Element::I8];
    let factors = chance.one_of(&all);
    match factors {
        Element::I8 => [factors, Element::I32],
        _ => [factors, chance.one_of(&[Element::Bf16, Element::F16, Element::F32, Element::E4M3])],
    }
}

fn function(text: &str, names: &[&str], inputs: Vec<Matrix>) -> Outcome<Fused> {
    Ok(Fused { expression: Expression::parse(text, names)?, inputs })
}

fn problem(chance: &mut Chance, [factors, result]: [Element; 2], lists: bool) -> Outcome<Problem> {
    let most = if chance.below(4) == 0 { 1200 } else { 200 };
    let [m, n, k] = [chance.size(most), chance.size(most), chance.size(most)];
    let batch = if !lists && chance.below(4) == 0 { 1 + chance.below(4) } else { 1 };
    let a = matrix(chance, factors, [m, k, batch])?;
    let d = matrix(chance, result, [m, n, batch])?;
    if !lists && factors.is_float() && chance.below(5) == 0 {
        let b = matrix(chance, factors, [2 * n, k, batch])?;
        let pairs = chance.one_of(&[Pairs::Neighbours, Pairs::Halves]);
        return Ok(Problem::gated(a, b, d, pairs, function("silu(x) * y", &["x", "y"], vec![])?)?);
    }
    if !lists && chance.below(6) == 0 {
        let groups = 1 + chance.below(6);
        let (a, d) = (matrix(chance, factors, [m, k, 1])?, matrix(chance, result, [m, n, 1])?);
        return Ok(Problem::grouped(a, matrix(chance, factors, [n, k, groups])?, d)?);
    }
    let b = matrix(chance, factors, [n, k, batch])?;
    let mut problem = Problem::of(a, b, d)?;
    if factors == Element::F32 && chance.below(2) == 0 {
        problem = problem.in_tf32();
    }
    if !lists && result.is_float() && chance.below(3) == 0 {
        let bias = Matrix::strided(Element::F32, [m, n, batch], [0, 1, 0])?;
        let element = chance_of(chance, result);
        let other = matrix(chance, element, [m, n, batch])?;
        problem = problem.fused(function("relu(x + a) + b", &["x", "a", "b"], vec![bias, other])?)?;
    }
    if !lists && factors.is_float() && chance.below(6) == 0 {
        let (each, statistic) =
            (chance.one_of(&[Each::Row, Each::Column]), chance.one_of(&[Statistic::Sum, Statistic::Maximum]));
        problem = problem.reducing(EpilogueReduction { each, statistic, of: Expression::input(0).abs() })?;
    }
    Ok(problem)
}

/// The type of D, or another one.
fn chance_of(chance: &mut Chance, result: Element) -> Element {
    if chance.below(2) == 0 { result } else { chance.one_of(&[Element::Bf16, Element::F16, Element::F32]) }
}

fn words(problem: &Problem) -> String {
    format!("{problem}, A {}, B {}, D {}", problem.a(), problem.b(), problem.d())
}

/// A product by the plan of the model, or by any of the candidates.
pub fn one(device: &Device, chance: &mut Chance) -> (String, Outcome<String>) {
    let types = types(chance);
    let problem = match problem(chance, types, false) {
        Ok(problem) => problem,
        Err(error) => return ("a product".to_string(), Err(error)),
    };
    let which = (chance.below(3) == 0).then(|| chance.below(1 << 20) as usize);
    let mut text = words(&problem);
    let mut run = || -> Outcome<String> {
        let machine = device.machine()?;
        let product = match which {
            None => Product::new(&problem, &machine)?,
            Some(which) => {
                let plans = Product::candidates(&problem, &machine)?;
                let (_, plan) = &plans[which % plans.len()];
                text = format!("{text}, plan {plan}");
                Product::planned(&problem, plan, &machine)?
            }
        };
        launched(device, std::slice::from_ref(&problem), product.steps(), product.workspaces())
    };
    let outcome = run();
    (text, outcome)
}

/// A list of products in one launch.
pub fn list(device: &Device, chance: &mut Chance) -> (String, Outcome<String>) {
    let types = types(chance);
    let all = (0..1 + chance.below(4)).map(|_| problem(chance, types, true)).collect::<Outcome<Vec<_>>>();
    let mut all = match all {
        Ok(all) => all,
        Err(error) => return ("a list".to_string(), Err(error)),
    };
    // All of them are in tf32, or none.
    if all.iter().any(Problem::is_tf32) {
        all = all.into_iter().map(Problem::in_tf32).collect();
    }
    let text = all.iter().map(words).collect::<Vec<_>>().join("; ");
    let run = || -> Outcome<String> {
        let machine = device.machine()?;
        let products = Products::new(&Problems::new(all.clone())?, &machine)?;
        launched(device, &all, products.steps(), products.workspaces())
    };
    (text, run())
}

/// A tensor of a problem of a list; the workspace is that of all.
type Name = (usize, ProductTensor);

fn launched(device: &Device, problems: &[Problem], steps: &[Step], workspaces: &[i64]) -> Outcome<String> {
    let stream = device.stream()?;
    let mut memory: Vec<(Name, Guarded)> = Vec::new();
    let mut numbers: Vec<(Name, usize, Vec<u8>)> = Vec::new();
    for (at, problem) in problems.iter().enumerate() {
        for (seed, operand) in problem.given().into_iter().enumerate() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let contents = match operand {
                ProductTensor::Ends => problem.any_ends(at as u64 + 1),
                _ => any_numbers(matrix.element(), matrix.reach()? as usize, (seed + 1 + 100 * at) as u64),
            };
            memory.push(((at, operand), Guarded::of(device, &stream, &contents)?));
            numbers.push(((at, operand), matrix.element().bytes() as usize, contents));
        }
        for operand in problem.outputs() {
            let Some(matrix) = problem.matrix(operand) else { continue };
            let bytes = matrix.reach()? as u64 * u64::from(matrix.element().bytes());
            memory.push(((at, operand), Guarded::empty(device, &stream, bytes)?));
        }
    }
    for (at, bytes) in workspaces.iter().enumerate() {
        memory.push(((0, ProductTensor::Workspace(at)), Guarded::empty(device, &stream, *bytes as u64)?));
    }
    for step in steps {
        launch(device, &stream, step, &mut memory)?;
    }
    stream.synchronize()?;
    for (at, problem) in problems.iter().enumerate() {
        compared(&stream, (at, problem), &memory, &numbers)?;
    }
    for ((_, operand), own) in &memory {
        match operand {
            ProductTensor::D | ProductTensor::Reduction(_) => {}
            ProductTensor::Workspace(_) => drop(own.kept(&stream, 1, 0..own.bytes() as i64)?),
            _ => own.untouched(&stream).map_err(|error| format!("{operand:?}: {error}"))?,
        }
    }
    Ok(format!("{} kernels", steps.len()))
}

fn launch(device: &Device, stream: &Stream, step: &Step, memory: &mut Vec<(Name, Guarded)>) -> Outcome<()> {
    let kernel = compiled(device, step.kernel(), step.sizes())?;
    let name = |(problem, operand): (usize, &ProductTensor)| match operand {
        ProductTensor::Workspace(_) => (0, *operand),
        operand => (problem, *operand),
    };
    let operands: Vec<Name> = step.problems().zip(step.operands()).map(name).collect();
    let (from, to) = operands.split_at(step.read_and_written().0.len());
    // Those that are written are taken out meanwhile.
    let mut written: Vec<(Name, Guarded)> = Vec::new();
    for name in to {
        let at = memory.iter().position(|(known, _)| known == name).ok_or("a tensor that is written is missing")?;
        written.push(memory.swap_remove(at));
    }
    let mut arguments: Vec<Argument<'_>> = Vec::new();
    for name in from {
        let known = memory.iter().find(|(known, _)| known == name).ok_or("a tensor that is read is missing")?;
        arguments.push(known.1.read()?);
    }
    for (_, own) in &mut written {
        arguments.push(own.written()?);
    }
    kernel.launch(stream, &arguments)?;
    drop(arguments);
    memory.extend(written);
    Ok(())
}

/// Compares elements of D, and all bytes beside D and by-products.
fn compared(
    stream: &Stream,
    (at, problem): (usize, &Problem),
    memory: &[(Name, Guarded)],
    numbers: &[(Name, usize, Vec<u8>)],
) -> Outcome<()> {
    let of = |operand: ProductTensor| {
        let found = memory.iter().find(|(known, _)| *known == (at, operand));
        found.map(|(_, own)| own).ok_or_else(|| format!("{operand:?} is missing"))
    };
    let every = |matrix: &Matrix| -> Outcome<Vec<i64>> {
        let [rows, columns, matrices] = matrix.extents();
        let all = (0..matrices).flat_map(|l| (0..columns).flat_map(move |c| (0..rows).map(move |r| [r, c, l])));
        Ok(all.map(|at| matrix.place(at)).collect::<Result<_, _>>()?)
    };
    let width = problem.result_type().bytes() as usize;
    let left = of(ProductTensor::D)?.kept(stream, width, every(problem.d())?.into_iter())?;
    for number in 0..problem.reductions().count() {
        let operand = ProductTensor::Reduction(number);
        let Some(matrix) = problem.matrix(operand) else { continue };
        of(operand)?.kept(stream, matrix.element().bytes() as usize, every(matrix)?.into_iter())?;
    }
    let input = |operand: ProductTensor, place: i64| {
        let found = numbers.iter().find(|(known, ..)| *known == (at, operand));
        found.map_or(0, |(_, width, bytes)| bits_at(bytes, *width, place as usize))
    };
    let ([m, n, _], batch) = (problem.sizes(), problem.batch());
    let mut chance = Chance::of(at as u64);
    for number in 0..COMPARED {
        let [row, column, matrix] = match number {
            0 => [m - 1, n - 1, batch - 1],
            _ => [m, n, batch].map(|size| chance.below(size)),
        };
        let own = match problem.row_groups() {
            None => Some(matrix),
            Some(_) => problem.row_group_of(row, |group| i64::from(input(ProductTensor::Ends, group) as u32 as i32)),
        };
        if let Some(own) = own {
            let wanted = problem.expected(&input, [row, column, own])?;
            wanted.distance(bits_at(&left, width, wanted.place as usize))?;
        }
    }
    Ok(())
}
