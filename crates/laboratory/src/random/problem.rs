//! Random problems.

mod warps;

use tilewright::kernel::Element;
use tilewright::planners::gemm::{Each, EpilogueReduction, Fused, Matrix, Pairs, Problem, Scales, Window};
use tilewright::planners::{Expression, PlanError, Statistic};

use super::{Numbers, Task, Work};

/// The most bytes of all tensors of a problem.
pub(super) const BYTES: i64 = 1 << 28;

/// A generator of random numbers.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A random number from 0 to `end - 1`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A random size up to the largest: often small, often round.
    pub(super) fn size(&mut self, largest: i64) -> i64 {
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

    /// Three random sizes: few rows and columns and a large K if `long`.
    pub(super) fn sizes(&mut self, largest: i64, long: bool) -> [i64; 3] {
        match long {
            false => [0; 3].map(|_| self.size(largest)),
            true => [self.size(72), self.size(40), 300 + self.size(600)],
        }
    }
}

/// A matrix in a random layout.
pub(super) fn matrix(
    chance: &mut Chance,
    element: Element,
    [rows, columns, batch]: [i64; 3],
) -> Result<Matrix, PlanError> {
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
    // Occasionally, every other element only.
    let by = if chance.below(16) == 0 { 2 } else { 1 };
    let matrix = Matrix::strided(element, [rows, columns, batch], strides.map(|stride| stride * by))?;
    if chance.below(6) == 0 { matrix.at(chance.below(9) as i64) } else { Ok(matrix) }
}

/// The problem of this number, of sizes up to the largest. Its types, sizes, layouts, batches, row
/// groups, folded modes, scales and epilogue functions are random; occasionally its type is one
/// that warps multiply by mma.sync on every machine.
pub(super) fn task(number: u64, largest: i64, long: bool) -> Result<Task, PlanError> {
    let mut chance = Chance(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x51_7cc1_b727_2202));
    let chance = &mut chance;
    chance.next();
    let types = types(chance);
    let (sizes, batch) = sizes(chance, largest, long);
    match number % 16 {
        7 | 15 => return grouped(chance, types, sizes),
        11 => return folded(chance, types, largest),
        13 => return warps::task(chance, sizes),
        _ => {}
    }
    let [operands, result] = types;
    let mut problem = batched(chance, types, sizes, batch)?;
    if operands == Element::F32 && chance.below(2) == 0 {
        problem = problem.in_tf32();
    }
    if has_eight_bits(operands) {
        problem = with_scales(chance, problem)?;
    }
    let paired = problem.pairs().is_some();
    let fused = result.is_float() && !paired && chance.below(2) == 0;
    let numbers = match (operands, fused || paired) {
        (Element::Bf16 | Element::F16 | Element::F32, false) => {
            chance.one_of(&[Numbers::Small, Numbers::Small, Numbers::Tiny, Numbers::Large, Numbers::Special])
        }
        _ => Numbers::Small,
    };
    if fused {
        problem = with_function(chance, problem)?;
    }
    if operands.is_float() && numbers == Numbers::Small && chance.below(5) == 0 {
        let (each, statistic) = reduction(chance);
        let of = Expression::parse(chance.one_of(&["d", "abs(d)", "d * d"]), &["d"])?;
        problem = problem.reducing(EpilogueReduction { each, statistic, of })?;
    }
    Ok(Task::new(chance, Work::One(Box::new(problem)), numbers))
}

/// Whether elements are 8-bit floats.
fn has_eight_bits(element: Element) -> bool {
    matches!(element, Element::E4M3 | Element::E5M2)
}

/// Random types of the operands and of D.
fn types(chance: &mut Chance) -> [Element; 2] {
    let operands = chance.one_of(&[
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
    let result = match operands {
        Element::I8 | Element::U8 => Element::I32,
        _ => chance.one_of(&[Element::Bf16, Element::F16, Element::F32, Element::Bf16, Element::E4M3]),
    };
    [operands, result]
}

/// M, N and K, and the number of matrices of the batch. Sizes are reduced until the tensors fit.
fn sizes(chance: &mut Chance, largest: i64, long: bool) -> ([i64; 3], i64) {
    let (mut sizes, mut batch) = (chance.sizes(largest, long), 1);
    if chance.below(4) == 0 {
        batch = 1 + chance.below(5) as i64;
    }
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
    (sizes, batch)
}

/// Matrices in random layouts, with gated pairs of columns if requested.
fn batched(
    chance: &mut Chance,
    [operands, result]: [Element; 2],
    [m, n, k]: [i64; 3],
    batch: i64,
) -> Result<Problem, PlanError> {
    let a = matrix(chance, operands, [m, k, batch])?;
    // Occasionally, one B for the whole batch.
    let b = match batch > 1 && chance.below(3) == 0 {
        true => Matrix::strided(operands, [n, k, batch], [k, 1, 0])?,
        false => matrix(chance, operands, [n, k, batch])?,
    };
    let d = matrix(chance, result, [m, n, batch])?;
    if n % 2 != 0 || !operands.is_float() || chance.below(6) > 0 {
        return Problem::of(a, b, d);
    }
    let d = matrix(chance, result, [m, n / 2, batch])?;
    let pairs = chance.one_of(&[Pairs::Neighbours, Pairs::Halves]);
    let text = chance.one_of(&["silu(x) * y", "relu(x) * y", "gelu_tanh(x) * y + x"]);
    Problem::gated(a, b, d, pairs, Fused { expression: Expression::parse(text, &["x", "y"])?, inputs: vec![] })
}

/// The problem with random block scales, or with sums that are accumulated by the instructions
/// alone.
fn with_scales(chance: &mut Chance, problem: Problem) -> Result<Problem, PlanError> {
    match chance.below(3) {
        0 => {
            let ([m, _, k], batch) = (problem.sizes(), problem.batch());
            let columns = problem.b().extents()[0];
            let blocks = has_blocks_of_columns(&problem);
            let a = scales(chance, m, [k, batch], true)?;
            let b = scales(chance, columns, [k, batch], blocks)?;
            problem.scaled(Scales { a, b })
        }
        1 => Ok(problem.fast()),
        _ => Ok(problem),
    }
}

/// Whether columns of B may share scales in blocks: not if they are the two halves of gated pairs.
fn has_blocks_of_columns(problem: &Problem) -> bool {
    let columns = problem.b().extents()[0];
    problem.pairs() != Some(Pairs::Halves) || columns % 256 == 0 || columns <= 128
}

/// Scales of this many rows: one for each row or, if allowed, one for each block of rows.
fn scales(chance: &mut Chance, rows: i64, [k, matrices]: [i64; 2], may_be_blocked: bool) -> Result<Matrix, PlanError> {
    let rows = if chance.below(2) == 0 || !may_be_blocked { rows } else { (rows + 127) / 128 };
    let steps = (k + 127) / 128;
    Matrix::strided(Element::F32, [rows, steps, matrices], [1, rows, rows * steps])
}

/// The problem with a random epilogue function and its inputs.
fn with_function(chance: &mut Chance, problem: Problem) -> Result<Problem, PlanError> {
    let ([m, n, _], batch) = (problem.sizes(), problem.batch());
    let text = chance.one_of(&[
        "gelu_tanh(x + a) + b",
        "0.5 * x + 2 * b",
        "relu(x + a)",
        "clamp(x * a, -4, 4)",
        "silu(x) * b",
        "x * a * b",
        "gelu(x)",
    ]);
    let floats = [Element::Bf16, Element::F16, Element::F32];
    let vector = if chance.below(2) == 0 { [0, 1, 0] } else { [1, 0, 0] };
    let a = Matrix::strided(chance.one_of(&floats), [m, n, batch], vector)?;
    let other = chance.one_of(&floats);
    let b = matrix(chance, other, [m, n, batch])?;
    problem.fused(Fused { expression: Expression::parse(text, &["x", "a", "b"])?, inputs: vec![a, b] })
}

/// A random reduction of rows or of columns.
fn reduction(chance: &mut Chance) -> (Each, Statistic) {
    (chance.one_of(&[Each::Row, Each::Column]), chance.one_of(&[Statistic::Sum, Statistic::Maximum]))
}

/// A random problem with row groups.
fn grouped(chance: &mut Chance, [operands, result]: [Element; 2], [m, n, k]: [i64; 3]) -> Result<Task, PlanError> {
    let groups = 1 + chance.below(9) as i64;
    let n = (n / groups).max(1);
    let a = matrix(chance, operands, [m, k, 1])?;
    // Occasionally, gated pairs of columns in the matrix of each group.
    let paired = operands.is_float() && result.is_float() && chance.below(4) == 0;
    let columns = if paired { 2 * n } else { n };
    let b = matrix(chance, operands, [columns, k, groups])?;
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
    if has_eight_bits(operands) {
        problem = match chance.below(3) {
            0 => {
                let blocks = has_blocks_of_columns(&problem);
                let of_a = Matrix::columns(Element::F32, [m, (k + 127) / 128])?;
                problem.scaled(Scales { a: of_a, b: scales(chance, columns, [k, groups], blocks)? })?
            }
            1 => problem.fast(),
            _ => problem,
        };
    }
    if operands == Element::F32 && chance.below(2) == 0 {
        problem = problem.in_tf32();
    }
    if !paired && result.is_float() && chance.below(2) == 0 {
        let other = matrix(chance, Element::Bf16, [m, n, 1])?;
        let expression = Expression::parse("relu(x + a) + b", &["x", "a", "b"])?;
        problem = problem.fused(Fused { expression, inputs: vec![bias, other] })?;
    }
    if operands.is_float() && chance.below(4) == 0 {
        let (each, statistic) = reduction(chance);
        problem = problem.reducing(EpilogueReduction { each, statistic, of: Expression::input(0).abs() })?;
    }
    Ok(Task::new(chance, Work::One(Box::new(problem)), Numbers::Small))
}

/// A random problem with folded modes: a convolution of images, with or without padding.
fn folded(chance: &mut Chance, [operands, result]: [Element; 2], largest: i64) -> Result<Task, PlanError> {
    let mut below = |most: i64| 1 + chance.below(most as u64) as i64;
    let side = if largest > 1000 { 60 } else { 12 };
    let (w, h, images, filters) = (4 + below(side), 4 + below(side), below(4), below(side * 4));
    let c = if below(4) == 1 { below(side * 2) } else { below(side / 4) * 16 };
    let window = Window::of([below(3), below(3)]).padded([below(3) - 1, below(3) - 1]);
    let stride = if below(3) == 1 { [2, below(2)] } else { [1, 1] };
    let window = Window { stride, dilation: if below(4) == 1 { [below(2), 2] } else { [1, 1] }, ..window };
    let strides = match below(3) {
        1 => [w * h, 1, w, c * w * h],
        _ => [1, c, c * w, c * w * h],
    };
    let [channel, column, row, image] = strides;
    let layout = format!("({c},({w},{h},{images})):({channel},({column},{row},{image}))");
    let a = Matrix::new(operands, &layout.parse()?)?;
    // Windows have 5 pixels at most along each axis, as many as the smallest image.
    let [x, y] = window.results([w, h]).unwrap_or([1, 1]);
    let (m, k) = (x * y * images, c * window.filter[0] * window.filter[1]);
    let (b, d) = (matrix(chance, operands, [filters, k, 1])?, matrix(chance, result, [m, filters, 1])?);
    let mut problem = Problem::convolution(a, b, d, window)?;
    if result.is_float() && chance.below(2) == 0 {
        let bias = Matrix::strided(Element::F32, [m, filters, 1], [0, 1, 0])?;
        let other = matrix(chance, Element::Bf16, [m, filters, 1])?;
        let expression = Expression::parse("relu(x + a) + b", &["x", "a", "b"])?;
        problem = problem.fused(Fused { expression, inputs: vec![bias, other] })?;
    }
    Ok(Task::new(chance, Work::One(Box::new(problem)), Numbers::Small))
}
