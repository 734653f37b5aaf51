//! `tilewright gemm --random`: products by chance, checked.
//!
//! Law: each problem follows from its number alone: types, sizes, layouts, batches, groups of rows,
//! lists (`random/list.rs`), folded modes, functions of the sums, and numbers: small ones, tiny
//! ones, large ones, or with infinities and NaN among them. So does its plan: that of the model for
//! most, and any of its candidates for the others. On a device each is run once, D poisoned before,
//! and elements by chance are compared with sums in f64; without one the interpreter runs small
//! problems, and all elements are compared.

mod list;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tilewright::gpu::{Device, Memory, Stream};
use tilewright::kernel::Element;
use tilewright::kernels::gemm::{ByProduct, Each, Fused, Matrix, Operand, Pairs, Problem, Product, Scales, Window};
use tilewright::kernels::{Expression, PlanError, Statistic, Unchecked, any_numbers, bits_at};

use super::tensors::{Block, Tensors, compare_kept, group_of, ready};
use crate::output::Failure;
use crate::terminal::Terminal;

/// Elements of D that are compared on a device, of each problem.
const COMPARED: u64 = 300;
/// Numbers of a tensor repeat after so many: a prime.
const PERIOD: usize = 65_521;
/// The most bytes of the tensors of a problem.
const BYTES: i64 = 1 << 28;

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// From 0 to below so many.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A size up to the largest; often small, often round.
    fn size(&mut self, largest: i64) -> i64 {
        let most = match self.below(4) {
            0 => 16,
            1 => 200,
            _ => largest,
        };
        let size = 1 + self.below(most.min(largest) as u64) as i64;
        match self.below(3) {
            0 => (size + 63) / 64 * 64,
            1 => (size + 7) / 8 * 8,
            _ => size,
        }
        .min(largest)
    }
}

/// What the numbers of a problem are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Small,
    Tiny,
    Large,
    Special,
}

/// A problem by chance.
struct Task {
    problem: Problem,
    numbers: Numbers,
    /// Which of the candidates is its plan, counted round; that of the model where none is said.
    plan: Option<usize>,
}

impl Task {
    fn new(chance: &mut Chance, problem: Problem, numbers: Numbers) -> Task {
        let plan = (chance.below(3) == 0).then(|| chance.next() as usize);
        Task { problem, numbers, plan }
    }

    fn text(&self) -> String {
        let [a, b, d] = [self.problem.a(), self.problem.b(), self.problem.d()];
        let which = self.plan.map_or_else(String::new, |plan| format!(", plan {plan} of all, counted round"));
        format!("{}, A {a}, B {b}, D {d}, {:?} numbers{which}", self.problem, self.numbers)
    }

    fn product(&self) -> Result<Product, PlanError> {
        let Some(number) = self.plan else { return Product::new(&self.problem) };
        let plans = Product::candidates(&self.problem)?;
        match plans.get(number % plans.len().max(1)) {
            Some((_, plan)) => Product::planned(&self.problem, plan),
            None => Product::new(&self.problem),
        }
    }
}

/// A matrix in some layout.
fn matrix(chance: &mut Chance, element: Element, [rows, columns, batch]: [i64; 3]) -> Result<Matrix, PlanError> {
    let unit = 16 / i64::from(element.bytes());
    let by_rows = chance.below(2) == 0;
    let (long, short) = if by_rows { (columns, rows) } else { (rows, columns) };
    let line = match chance.below(4) {
        0 => (long + unit - 1) / unit * unit + unit * chance.below(3) as i64,
        1 => long + chance.below(5) as i64,
        _ => long,
    };
    let step = line * short + if chance.below(4) == 0 { chance.below(20) as i64 } else { 0 };
    let strides = if by_rows { [line, 1, step] } else { [1, line, step] };
    // Every other element, now and then.
    let by = if chance.below(16) == 0 { 2 } else { 1 };
    let matrix = Matrix::strided(element, [rows, columns, batch], strides.map(|stride| stride * by))?;
    if chance.below(6) == 0 { matrix.at(chance.below(9) as i64) } else { Ok(matrix) }
}

fn task(number: u64, largest: i64) -> Result<Task, PlanError> {
    let mut chance = Chance(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x51_7cc1_b727_2202));
    let chance = &mut chance;
    chance.next();
    let floats = [Element::Bf16, Element::F16, Element::F32];
    let factors = chance.one_of(&[
        Element::Bf16,
        Element::Bf16,
        Element::Bf16,
        Element::F16,
        Element::F32,
        Element::E4M3,
        Element::E5M2,
        Element::I8,
        Element::U8,
    ]);
    let result = match factors {
        Element::I8 | Element::U8 => Element::I32,
        _ => chance.one_of(&[Element::Bf16, Element::F16, Element::F32, Element::Bf16, Element::E4M3]),
    };
    let (mut sizes, mut batch) = ([0; 3].map(|_| chance.size(largest)), 1);
    if chance.below(4) == 0 {
        batch = 1 + chance.below(5) as i64;
    }
    // What would not fit is made smaller.
    while sizes.iter().max().is_some_and(|most| most * most * batch * 12 > BYTES) {
        let most = if sizes[0] >= sizes[1].max(sizes[2]) {
            0
        } else if sizes[1] >= sizes[2] {
            1
        } else {
            2
        };
        sizes[most] = (sizes[most] / 2).max(1);
    }
    match number % 16 {
        7 | 15 => return grouped(chance, [factors, result], sizes),
        11 => return folded(chance, [factors, result], largest),
        _ => {}
    }
    let [m, n, k] = sizes;
    let a = matrix(chance, factors, [m, k, batch])?;
    // One matrix for all, now and then.
    let b = match batch > 1 && chance.below(3) == 0 {
        true => Matrix::strided(factors, [n, k, batch], [k, 1, 0])?,
        false => matrix(chance, factors, [n, k, batch])?,
    };
    let d = matrix(chance, result, [m, n, batch])?;
    // Pairs of columns, where there are so many.
    let paired = n % 2 == 0 && factors.is_float() && chance.below(6) == 0;
    let mut problem = match paired {
        true => {
            let d = matrix(chance, result, [m, n / 2, batch])?;
            let pairs = chance.one_of(&[Pairs::Neighbours, Pairs::Halves]);
            let text = chance.one_of(&["silu(x) * y", "relu(x) * y", "gelu_tanh(x) * y + x"]);
            Problem::gated(a, b, d, pairs, Fused { expression: Expression::parse(text, &["x", "y"])?, inputs: vec![] })?
        }
        false => Problem::of(a, b, d)?,
    };
    let n = problem.sizes()[1];
    if factors == Element::F32 && chance.below(2) == 0 {
        problem = problem.in_tf32();
    }
    if matches!(factors, Element::E4M3 | Element::E5M2) {
        problem = match chance.below(3) {
            0 => {
                // Blocks of columns of both halves of pairs have no scales.
                let columns = problem.b().extents()[0];
                let whole = problem.pairs() != Some(Pairs::Halves) || columns % 256 == 0 || columns <= 128;
                let scales = |chance: &mut Chance, rows: i64, blocked: bool| {
                    let rows = if chance.below(2) == 0 || !blocked { rows } else { (rows + 127) / 128 };
                    let steps = (k + 127) / 128;
                    Matrix::strided(Element::F32, [rows, steps, batch], [1, rows, rows * steps])
                };
                let (a, b) = (scales(chance, m, true)?, scales(chance, columns, whole)?);
                problem.scaled(Scales { a, b })?
            }
            1 => problem.fast(),
            _ => problem,
        };
    }
    let fused = result.is_float() && !paired && chance.below(2) == 0;
    let numbers = match (factors, fused || paired) {
        (Element::Bf16 | Element::F16 | Element::F32, false) => {
            chance.one_of(&[Numbers::Small, Numbers::Small, Numbers::Tiny, Numbers::Large, Numbers::Special])
        }
        _ => Numbers::Small,
    };
    if fused {
        let text = chance.one_of(&[
            "gelu_tanh(x + a) + b",
            "0.5 * x + 2 * b",
            "relu(x + a)",
            "clamp(x * a, -4, 4)",
            "silu(x) * b",
            "x * a * b",
            "gelu(x)",
        ]);
        let vector = if chance.below(2) == 0 { [0, 1, 0] } else { [1, 0, 0] };
        let a = Matrix::strided(chance.one_of(&floats), [m, n, batch], vector)?;
        let other = chance.one_of(&floats);
        let b = matrix(chance, other, [m, n, batch])?;
        problem =
            problem.fused(Fused { expression: Expression::parse(text, &["x", "a", "b"])?, inputs: vec![a, b] })?;
    }
    if factors.is_float() && numbers == Numbers::Small && chance.below(5) == 0 {
        let each = chance.one_of(&[Each::Row, Each::Column]);
        let statistic = chance.one_of(&[Statistic::Sum, Statistic::Maximum]);
        let of = Expression::parse(chance.one_of(&["d", "abs(d)", "d * d"]), &["d"])?;
        problem = problem.keeping(ByProduct { each, statistic, of })?;
    }
    Ok(Task::new(chance, problem, numbers))
}

/// Rows in groups.
fn grouped(chance: &mut Chance, [factors, result]: [Element; 2], [m, n, k]: [i64; 3]) -> Result<Task, PlanError> {
    let groups = 1 + chance.below(9) as i64;
    let n = (n / groups).max(1);
    let a = matrix(chance, factors, [m, k, 1])?;
    // Pairs of columns of the matrix of each group, now and then.
    let paired = factors.is_float() && result.is_float() && chance.below(4) == 0;
    let columns = if paired { 2 * n } else { n };
    let b = matrix(chance, factors, [columns, k, groups])?;
    let d = matrix(chance, result, [m, n, 1])?;
    let bias = Matrix::strided(if result.is_float() { result } else { Element::F32 }, [m, n, groups], [0, 1, n])?;
    let mut problem = match paired {
        true => {
            let pairs = chance.one_of(&[Pairs::Neighbours, Pairs::Halves]);
            let text = chance.one_of(&["silu(x) * y", "gelu_tanh(x) * y + a", "relu(x + a) * y"]);
            let expression = Expression::parse(text, &["x", "y", "a"])?;
            Problem::grouped_pairs(a, b, d, pairs, Fused { expression, inputs: vec![bias.clone()] })?
        }
        false => Problem::grouped(a, b, d)?,
    };
    if matches!(factors, Element::E4M3 | Element::E5M2) {
        problem = match chance.below(3) {
            0 => {
                let steps = (k + 127) / 128;
                let whole = problem.pairs() != Some(Pairs::Halves) || columns % 256 == 0 || columns <= 128;
                let rows = if chance.below(2) == 0 || !whole { columns } else { (columns + 127) / 128 };
                let of_b = Matrix::strided(Element::F32, [rows, steps, groups], [1, rows, rows * steps])?;
                problem.scaled(Scales { a: Matrix::columns(Element::F32, [m, steps])?, b: of_b })?
            }
            1 => problem.fast(),
            _ => problem,
        };
    }
    if factors == Element::F32 && chance.below(2) == 0 {
        problem = problem.in_tf32();
    }
    if !paired && result.is_float() && chance.below(2) == 0 {
        let other = matrix(chance, Element::Bf16, [m, n, 1])?;
        let expression = Expression::parse("relu(x + a) + b", &["x", "a", "b"])?;
        problem = problem.fused(Fused { expression, inputs: vec![bias, other] })?;
    }
    if factors.is_float() && chance.below(4) == 0 {
        let each = chance.one_of(&[Each::Row, Each::Column]);
        let statistic = chance.one_of(&[Statistic::Sum, Statistic::Maximum]);
        problem = problem.keeping(ByProduct { each, statistic, of: Expression::input(0).abs() })?;
    }
    Ok(Task::new(chance, problem, Numbers::Small))
}

/// Folded modes: a convolution of images with borders or without.
fn folded(chance: &mut Chance, [factors, result]: [Element; 2], largest: i64) -> Result<Task, PlanError> {
    let mut below = |most: i64| 1 + chance.below(most as u64) as i64;
    let side = if largest > 1000 { 60 } else { 12 };
    let (w, h, images, filters) = (4 + below(side), 4 + below(side), below(4), below(side * 4));
    let c = if below(4) == 1 { below(side * 2) } else { below(side / 4) * 16 };
    let window = Window::of([below(3), below(3)]).bordered([below(3) - 1, below(3) - 1]);
    let step = if below(3) == 1 { [2, below(2)] } else { [1, 1] };
    let window = Window { step, spread: if below(4) == 1 { [below(2), 2] } else { [1, 1] }, ..window };
    let strides = match below(3) {
        1 => [w * h, 1, w, c * w * h],
        _ => [1, c, c * w, c * w * h],
    };
    let [channel, column, row, image] = strides;
    let layout = format!("({c},({w},{h},{images})):({channel},({column},{row},{image}))");
    let a = Matrix::new(factors, &layout.parse()?)?;
    // Windows have 5 pixels at most, as the least image does.
    let [x, y] = window.results([w, h]).unwrap_or([1, 1]);
    let (m, k) = (x * y * images, c * window.filter[0] * window.filter[1]);
    let (b, d) = (matrix(chance, factors, [filters, k, 1])?, matrix(chance, result, [m, filters, 1])?);
    let mut problem = Problem::convolution(a, b, d, window)?;
    if result.is_float() && chance.below(2) == 0 {
        let bias = Matrix::strided(Element::F32, [m, filters, 1], [0, 1, 0])?;
        let other = matrix(chance, Element::Bf16, [m, filters, 1])?;
        let expression = Expression::parse("relu(x + a) + b", &["x", "a", "b"])?;
        problem = problem.fused(Fused { expression, inputs: vec![bias, other] })?;
    }
    Ok(Task::new(chance, problem, Numbers::Small))
}

/// Numbers of a tensor.
fn block(numbers: Numbers, operand: Operand, element: Element, count: usize) -> Vec<u8> {
    let seed = match operand {
        Operand::A => 1,
        Operand::B => 2,
        Operand::Input(number) => 3 + number as u64,
        Operand::Scales(side) => 101 + side as u64,
        Operand::Ends | Operand::D | Operand::ByProduct(_) | Operand::Workspace(_) => 0,
    };
    let mut bytes = any_numbers(element, count, seed);
    let width = element.bytes() as usize;
    // Exponents are moved, or numbers replaced.
    let (shift, inf, nan) = match element {
        Element::Bf16 => (60 << 7, 0x7f80, 0x7fc0),
        Element::F16 => (10 << 10, 0x7c00, 0x7e00),
        _ => (60 << 23, 0x7f80_0000, 0x7fc0_0000),
    };
    for (at, place) in bytes.chunks_exact_mut(width).enumerate() {
        let bits = bits_at(place, width, 0);
        let size = bits & !(1 << (8 * width - 1));
        let other = match numbers {
            Numbers::Small => continue,
            // Numbers too small to be shifted become 0.
            Numbers::Tiny => bits - if size >= shift { shift } else { size },
            Numbers::Large => bits + if size > 0 { shift } else { 0 },
            Numbers::Special if at % 997 == 5 => inf,
            Numbers::Special if at % 1499 == 7 => nan,
            Numbers::Special => continue,
        };
        place.copy_from_slice(&other.to_le_bytes()[..width]);
    }
    bytes
}

fn wrong(unchecked: Unchecked) -> Failure {
    Failure::Value(unchecked.to_string())
}

/// Checks a problem in the interpreter.
fn interpreted(task: &Task, number: u64) -> Result<u64, Failure> {
    let product = task.product().map_err(|error| Failure::refused(&error))?;
    let report = product.check_on(&|operand, element, count| match operand {
        Operand::Ends => task.problem.any_ends(number),
        _ => block(task.numbers, operand, element, count),
    });
    let report = report.map_err(wrong)?;
    Ok(report.compared as u64)
}

/// The tensors of a problem on a device: inputs of numbers by chance, further ones for a problem of
/// a list by its place, and poisoned memory for what is written and for the workspace.
fn filled(
    device: &Device,
    stream: &Stream,
    (problem, place): (&Problem, usize),
    (numbers, number): (Numbers, u64),
    workspaces: &[i64],
) -> Result<(Tensors, Vec<Block>), Failure> {
    let mut tensors = Tensors { memory: Vec::new() };
    let mut blocks: Vec<Block> = Vec::new();
    let allocate = |bytes: i64| -> Result<Memory, Failure> {
        let mut memory = device.allocate(bytes as u64 + 256)?;
        memory.fill_bytes(stream, 0xff)?;
        Ok(memory)
    };
    for operand in problem.given() {
        let Some(matrix) = problem.matrix(operand) else { continue };
        let width = matrix.element().bytes() as usize;
        let mut block = match operand {
            Operand::Ends => problem.any_ends(number),
            _ => block(numbers, operand, matrix.element(), PERIOD),
        };
        // Each problem of a list begins elsewhere in the same numbers.
        if operand != Operand::Ends {
            block.rotate_left(width * (place * 1009 % PERIOD));
        }
        let bytes = matrix.reach()? as u64 * width as u64;
        let mut memory = allocate(bytes as i64)?;
        for from in (0..bytes).step_by(block.len()) {
            let end = usize::try_from(bytes - from).unwrap_or(usize::MAX).min(block.len());
            memory.write(stream, from, &block[..end])?;
        }
        blocks.push((operand, width, block));
        tensors.memory.push((operand, memory));
    }
    for (at, bytes) in workspaces.iter().enumerate() {
        tensors.memory.push((Operand::Workspace(at), allocate(*bytes)?));
    }
    for operand in problem.written_operands() {
        let Some(matrix) = problem.matrix(operand) else { continue };
        tensors.memory.push((operand, allocate(matrix.reach()? * i64::from(matrix.element().bytes()))?));
    }
    Ok((tensors, blocks))
}

/// Compares elements of D by chance, so many, and by-products: how many in all.
fn compared(
    stream: &Stream,
    problem: &Problem,
    (tensors, blocks): (&Tensors, &[Block]),
    number: u64,
    elements: u64,
) -> Result<u64, Failure> {
    let Some(d) = tensors.of(Operand::D) else { return Ok(0) };
    let width = problem.result().bytes() as usize;
    let mut left = vec![0; usize::try_from(d.bytes()).unwrap_or(0)];
    d.read(stream, 0, &mut left)?;
    let input = |operand: Operand, at: i64| {
        let found = blocks.iter().find(|(known, ..)| *known == operand);
        found.map_or(0, |(_, width, block)| bits_at(block, *width, at as usize % PERIOD))
    };
    let ([m, n, _], batch) = (problem.sizes(), problem.batch());
    let mut chance = Chance(number);
    for at in 0..elements {
        // The last element, and others by chance.
        let place = match at {
            0 => [m - 1, n - 1, batch - 1],
            _ => [m, n, batch].map(|size| chance.below(size as u64) as i64),
        };
        let own = if problem.groups().is_some() { group_of(problem, &input, place[0]) } else { Some(place[2]) };
        let Some(matrix) = own else {
            // A row of no group is as it was.
            let at = problem.d().place(place)? as usize;
            if bits_at(&left, width, at) != u64::MAX >> (64 - 8 * width) {
                return Err(Failure::Value(format!("D has a number at {at}, in a row of no group")));
            }
            continue;
        };
        let wanted = problem.expected(&input, [place[0], place[1], matrix])?;
        wanted.distance(bits_at(&left, width, wanted.place as usize)).map_err(wrong)?;
    }
    let kept = compare_kept(problem, stream, &input, tensors, &mut 0.0)?;
    Ok(elements + kept as u64)
}

/// Checks a problem on a device.
fn launched(device: &Device, task: &Task, number: u64) -> Result<u64, Failure> {
    let product = task.product().map_err(|error| Failure::refused(&error))?;
    let stream = device.stream()?;
    let kernels = ready(device, product.steps())?;
    let problem = &task.problem;
    let made = filled(device, &stream, (problem, 0), (task.numbers, number), product.workspaces())?;
    let (mut tensors, blocks) = made;
    tensors.launch(&stream, &kernels)?;
    stream.synchronize()?;
    compared(&stream, problem, (&tensors, &blocks), number, COMPARED)
}

/// Whether a number stands for a list.
fn is_list(number: u64) -> bool {
    number % 16 == 3
}

/// Checks the problem, or the list, of a number; a failure says what it was.
fn checked(number: u64, largest: i64, device: Option<&Device>) -> Result<u64, (String, Failure)> {
    let about = |text: String| move |failure: Failure| (text, failure);
    let refused = |error: PlanError| (String::new(), Failure::refused(&error));
    if is_list(number) {
        let task = list::task(number, largest).map_err(refused)?;
        let checked = match device {
            Some(device) => list::launched(device, &task, number),
            None => list::interpreted(&task),
        };
        return checked.map_err(about(task.text()));
    }
    let task = task(number, largest).map_err(refused)?;
    let checked = match device {
        Some(device) => launched(device, &task, number),
        None => interpreted(&task, number),
    };
    checked.map_err(about(task.text()))
}

/// Checks so many problems, from a number on.
pub fn run(count: u64, first: u64, largest: i64, device: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let (next, compared, over) = (AtomicU64::new(first), AtomicU64::new(0), AtomicBool::new(false));
    let failed: Mutex<Option<(u64, String, Failure)>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get()).min(count.max(1) as usize);
    let work = || -> Result<(), Failure> {
        let device = if device { Some(Device::open(0)?) } else { None };
        while !over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= first + count {
                break;
            }
            match checked(number, largest, device.as_ref()) {
                Ok(elements) => {
                    compared.fetch_add(elements, Ordering::Relaxed);
                }
                Err((text, failure)) => {
                    over.store(true, Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((number, text, failure));
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut outcome = Ok(());
        for worker in workers {
            outcome = outcome.and(worker.join().unwrap_or(Ok(())));
        }
        outcome
    })?;
    if let Some((number, text, failure)) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(Failure::Value(format!("problem {number}, {text}: {}", failure.text(false).trim_end())));
    }
    let where_ = if device { "on the device" } else { "in the interpreter" };
    let compared = compared.into_inner();
    if terminal.json {
        return Ok(terminal.object(&serde_json::json!({ "problems": count, "first": first, "compared": compared }))?);
    }
    Ok(terminal.text(&format!(
        "{count} problems from number {first} on {where_}: {compared} elements compared with f64, all within their bounds\n"
    ))?)
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn problems_by_chance_are_right() {
        for number in 0..24 {
            checked(number, 80, None)
                .unwrap_or_else(|(text, failure)| panic!("{number}: {text}: {}", failure.text(false)));
        }
    }
}
