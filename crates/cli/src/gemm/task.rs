//! The GEMM that the options of `tilewright gemm --device` describe.
//!
//! Law: A is M x K and B is K x N, as in mathematics; the planner's B is the transpose, given by a
//! layout.

use tilewright::Layout;
use tilewright::kernel::Element;
use tilewright::kernel::program::operation::BlockScaled;
use tilewright::planners::gemm::{EpilogueReduction, Fused, Matrix, Pairs, Problem, Scales, Window};
use tilewright::planners::{Expression, PlanError};

use super::on_device::{DeviceRunOptions, Groups, Paired, Stored};
use super::{ElementKind, GemmOptions};
use crate::output::Failure;

/// The array of group ends, as bytes; None if the sizes of the groups are not given.
pub fn ends(options: &GemmOptions, problem: &Problem) -> Result<Option<Vec<u8>>, Failure> {
    let Some(Groups::Sizes(sizes)) = &options.device.groups else { return Ok(None) };
    let rows = problem.sizes()[0];
    let mut end = 0_i64;
    let mut bytes = Vec::with_capacity(4 * sizes.len());
    for size in sizes {
        end = end.saturating_add(*size);
        if end > rows {
            return Err(Failure::Usage(format!("--groups: they have {end} rows or more, and A has {rows}")));
        }
        bytes.extend_from_slice(&(end as i32).to_le_bytes());
    }
    Ok(Some(bytes))
}

/// The scales of blocks of 128 elements along K: one for each row of A, and one for each 128
/// columns of B, for these numbers of matrices.
fn scales([m, n, k]: [i64; 3], [of_a, of_b]: [i64; 2]) -> Result<Scales, PlanError> {
    let of = |rows: i64, matrices: i64| {
        let steps = (k + 127) / 128;
        Matrix::strided(Element::F32, [rows, steps, matrices], [1, rows, rows * steps])
    };
    Ok(Scales { a: of(m, of_a)?, b: of((n + 127) / 128, of_b)? })
}

fn refused(error: &PlanError) -> Failure {
    Failure::refused(error)
}

/// The type of the operands, and whether they are rounded to tf32.
fn operands(kind: ElementKind) -> (Element, bool) {
    match kind {
        ElementKind::F32 => (Element::F32, false),
        ElementKind::Tf32 => (Element::F32, true),
        ElementKind::F16 => (Element::F16, false),
        ElementKind::Bf16 => (Element::Bf16, false),
        ElementKind::I8 | ElementKind::S4 => (Element::I8, false),
        ElementKind::U8 | ElementKind::U4 => (Element::U8, false),
        ElementKind::E4m3 => (Element::E4M3, false),
        ElementKind::E5m2 => (Element::E5M2, false),
        ElementKind::Mxf8 => (Element::E4M3, false),
        // A byte contains two 4-bit elements.
        ElementKind::Mxf4 | ElementKind::Nvf4 => (Element::U8, false),
        ElementKind::F64 => (Element::F64, false),
    }
}

/// The block-scaled format of a type.
fn blocks(kind: ElementKind) -> Option<BlockScaled> {
    match kind {
        ElementKind::Mxf8 => Some(BlockScaled::Mxf8E4M3),
        ElementKind::Mxf4 => Some(BlockScaled::Mxf4),
        ElementKind::Nvf4 => Some(BlockScaled::Nvf4),
        _ => None,
    }
}

/// The scales of a block-scaled format, in row-major order: one for each block of `K` elements of A
/// and of B.
fn block_scales(format: BlockScaled, [m, n, k]: [i64; 3], batch: i64) -> Result<Scales, PlanError> {
    let block = i64::from(format.block());
    let blocks = (k + block - 1) / block;
    let of = |rows: i64| Matrix::strided(Element::U8, [rows, blocks, batch], [blocks, 1, rows * blocks]);
    Ok(Scales { a: of(m)?, b: of(n)? })
}

/// A matrix `(rows,columns)`, or a batch of them, with the layout that the words `row` and `column`
/// or an expression describe.
fn matrix(option: &str, text: &str, element: Element, [rows, columns, batch]: [i64; 3]) -> Result<Matrix, Failure> {
    let size = rows.saturating_mul(columns);
    match text {
        "row" => Matrix::strided(element, [rows, columns, batch], [columns, 1, size]).map_err(|error| refused(&error)),
        "column" => Matrix::strided(element, [rows, columns, batch], [1, rows, size]).map_err(|error| refused(&error)),
        text => {
            // An offset may precede the layout, as in composed layouts.
            let (offset, layout) = match text.split_once(" o ") {
                Some((offset, layout)) => {
                    let number = offset.trim().parse().map_err(|_| {
                        Failure::Usage(format!(
                            "{option} {text:?}: before `o` is the offset in elements, an integer of 64 bits"
                        ))
                    })?;
                    (number, layout)
                }
                None => (0, text),
            };
            let layout: Layout = layout.parse().map_err(|error: tilewright::LayoutError| {
                let help = "write `row`, `column`, or a layout of (rows,columns), such as (64,32):(32,1)";
                Failure::refused_about(format_args!("{option} {text:?}"), &error).with_help(help.into())
            })?;
            let found = Matrix::new(element, &layout).and_then(|matrix| matrix.at(offset));
            let found = found.map_err(|error| Failure::refused_about(option, &error))?;
            if found.extents() != [rows, columns, batch] {
                let [r, c, l] = found.extents();
                return Err(Failure::Usage(format!(
                    "{option} {text:?} has {r} rows, {c} columns and {l} matrices, where {rows}, {columns} and {batch} are expected"
                )));
            }
            Ok(found)
        }
    }
}

/// A GEMM, and the names of the inputs of its epilogue.
pub struct Task {
    pub problem: Problem,
    /// The names of the epilogue inputs.
    pub inputs: Vec<&'static str>,
    /// The same GEMM without batch invariance, if batch invariance was requested.
    pub free: Option<Problem>,
}

impl Task {
    /// The names of all inputs of the epilogue: first the accumulators.
    pub fn names(&self) -> Vec<&'static str> {
        let sums = if self.problem.pairs().is_some() { 2 } else { 1 };
        SUMS[..sums].iter().chain(&self.inputs).copied().collect()
    }

    /// The GEMM in words.
    pub fn text(&self) -> String {
        self.problem.described(&self.names())
    }
}

/// The names of accumulators in epilogues; gated pairs have two.
const SUMS: [&str; 2] = ["x", "y"];
/// The names of epilogue inputs.
const INPUTS: [&str; 3] = ["c", "bias", "column"];

/// The GEMM that the options describe.
pub fn problem(options: &GemmOptions) -> Result<Task, Failure> {
    sized(options, options.extents().map(|size| i64::from(size.unwrap_or(1024))))
}

/// The same GEMM with other sizes M, N and K.
pub fn sized(options: &GemmOptions, extents: [i64; 3]) -> Result<Task, Failure> {
    let own = &options.device;
    let kind = options.kind.unwrap_or(ElementKind::Bf16);
    let ((element, tf32), format) = (operands(kind), blocks(kind));
    let nibbles = matches!(kind, ElementKind::S4 | ElementKind::U4);
    if let Some(format) = format {
        let given = [
            ("--scales", own.scales),
            ("--fast", own.fast),
            ("--pairs", own.pairs.is_some()),
            ("--groups", own.groups.is_some()),
            ("--images", own.convolution.option().is_some()),
            ("--list", own.list.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(Failure::Usage(format!(
                "{option} is not for operands of {format}, which have their own scales"
            )));
        }
        if extents[2] % i64::from(format.packed()) != 0 {
            let text = format!("K is {}: two elements of {format} are a byte, so K is even", extents[2]);
            return Err(Failure::Usage(text));
        }
    }
    if (own.fast || own.scales) && !matches!(element, Element::E4M3 | Element::E5M2) {
        let option = if own.fast { "--fast" } else { "--scales" };
        let text = format!("{option} is for operands of e4m3 and e5m2, not {element}: say so with --type");
        return Err(Failure::Usage(text));
    }
    let convolution = own.convolution.asked(element)?;
    let [m, columns, terms] = convolution.as_ref().map_or(extents, |asked| asked.sizes);
    let k = match (nibbles, format) {
        // The layouts are of bytes, each with two elements.
        (true, _) => bytes_of_nibbles(own, kind, terms)?,
        (_, Some(format)) => terms / i64::from(format.packed()),
        _ => terms,
    };
    let batch = i64::from(own.batch);
    let n = match own.pairs {
        None => columns,
        Some(_) if columns % 2 == 0 => columns / 2,
        Some(_) => return Err(Failure::Usage(format!("--pairs: {columns} columns of B make no pairs"))),
    };
    let result = match (own.result, format) {
        (None, Some(_)) => Element::Bf16,
        (said, _) => result(said, element),
    };
    let a = match &convolution {
        None => matrix("--layout-a", &own.layout_a, element, [m, k, batch])?,
        Some(asked) => asked.images.clone(),
    };
    let matrices = own.groups.as_ref().map_or(batch, Groups::count);
    let (of_b, depth) = if own.int4 { (Element::I32, words_of_int4(k)?) } else { (element, k) };
    let b = matrix("--layout-b", &own.layout_b, of_b, [depth, columns, matrices])?;
    let d = matrix("--layout-d", &own.layout_d, result, [m, n, batch])?;
    let b = transposed(&b).map_err(|error| refused(&error))?;
    let (fused, inputs) = function(options, [m, n], batch, result)?;
    let window = convolution.map(|asked| asked.window);
    let made = || -> Result<Problem, PlanError> {
        let with = |problem: Problem| fused.clone().map_or(Ok(problem.clone()), |fused| problem.fused(fused));
        let mut problem = match (own.int4, format) {
            (true, _) => with(Problem::of_int4(a, b, Matrix::columns(element, [n, k / GROUP])?, d)?)?,
            (_, Some(format)) => {
                let scales = block_scales(format, [m, columns, terms], batch)?;
                with(Problem::block_scaled(format, a, b, d, scales)?)?
            }
            _ => multiplied(own, [a, b, d], fused, window)?,
        };
        if nibbles {
            problem = problem.in_nibbles()?;
        }
        if own.scales {
            problem = problem.scaled(scales([m, columns, k], [batch, matrices])?)?;
        }
        if own.fast {
            problem = problem.fast();
        }
        Ok(if tf32 { problem.in_tf32() } else { problem })
    };
    let mut problem = made().map_err(|error| refused(&error))?;
    for text in &own.keep {
        let kept: EpilogueReduction =
            text.parse().map_err(|error: PlanError| Failure::refused_about("--keep", &error))?;
        problem = problem.reducing(kept).map_err(|error| refused(&error))?;
    }
    if !own.invariant {
        return Ok(Task { problem, inputs, free: None });
    }
    let free = Some(problem.clone());
    let problem = problem.batch_invariant().map_err(|error| Failure::refused_about("--invariant", &error))?;
    Ok(Task { problem, inputs, free })
}

/// The number of 4-bit weights along K that share a scale.
const GROUP: i64 = 128;

/// The number of words of `k` 4-bit weights.
fn words_of_int4(k: i64) -> Result<i64, Failure> {
    match k % GROUP {
        0 => Ok(k / 8),
        _ => {
            Err(Failure::Usage(format!("--int4: K is a multiple of {GROUP}, the weights that share a scale, not {k}")))
        }
    }
}

/// The number of bytes of `k` 4-bit integers.
fn bytes_of_nibbles(own: &DeviceRunOptions, kind: ElementKind, k: i64) -> Result<i64, Failure> {
    if let Some(option) = own.convolution.option() {
        return Err(Failure::Usage(format!("{option} is not for operands of {}: say --type i8", kind.name())));
    }
    match k % 2 {
        0 => Ok(k / 2),
        _ => Err(Failure::Usage(format!("K of {} is even, for a byte has two elements, and {k} is odd", kind.name()))),
    }
}

/// The type of the result: the given one, or that of the operands; i32 for 8-bit integers, bf16 for
/// 8-bit floats.
fn result(said: Option<Stored>, operands: Element) -> Element {
    match (said, operands) {
        (Some(Stored::F64), _) => Element::F64,
        (Some(Stored::F32), _) => Element::F32,
        (Some(Stored::F16), _) => Element::F16,
        (Some(Stored::Bf16), _) => Element::Bf16,
        (Some(Stored::E4m3), _) => Element::E4M3,
        (Some(Stored::E5m2), _) => Element::E5M2,
        (Some(Stored::I32), _) | (None, Element::I8 | Element::U8) => Element::I32,
        (None, Element::E4M3 | Element::E5M2) => Element::Bf16,
        (None, operands) => operands,
    }
}

/// The planner's B, `(N,K)`.
fn transposed(b: &Matrix) -> Result<Matrix, PlanError> {
    let modes: &[usize] = if b.layout().rank() == 3 { &[1, 0, 2] } else { &[1, 0] };
    Matrix::new(b.element(), &b.layout().select(modes)?)?.at(b.offset())
}

/// The operands of the GEMM: groups of rows, pairs of columns, windows of images, or plain
/// matrices.
fn multiplied(
    own: &DeviceRunOptions,
    [a, b, d]: [Matrix; 3],
    fused: Option<Fused>,
    window: Option<Window>,
) -> Result<Problem, PlanError> {
    let pairs = own.pairs.map(|pairs| match pairs {
        Paired::Neighbours => Pairs::Neighbours,
        Paired::Halves => Pairs::Halves,
    });
    let (problem, fused) = match (pairs, fused) {
        (Some(pairs), Some(fused)) if own.groups.is_some() => {
            return Problem::grouped_pairs(a, b, d, pairs, fused);
        }
        (Some(pairs), Some(fused)) => return Problem::gated(a, b, d, pairs, fused),
        (None, fused) if own.groups.is_some() => (Problem::grouped(a, b, d)?, fused),
        (_, fused) => match window {
            Some(window) => (Problem::convolution(a, b, d, window)?, fused),
            None => (Problem::of(a, b, d)?, fused),
        },
    };
    fused.map_or(Ok(problem.clone()), |fused| problem.fused(fused))
}

/// The epilogue function, if one is given, and the names of its inputs.
fn function(
    options: &GemmOptions,
    [m, n]: [i64; 2],
    batch: i64,
    result: Element,
) -> Result<(Option<Fused>, Vec<&'static str>), Failure> {
    let own = &options.device;
    let sums = if own.pairs.is_some() { 2 } else { 1 };
    let names: Vec<&'static str> = SUMS[..sums].iter().chain(&INPUTS).copied().collect();
    let given = own.epilogue.as_deref();
    if given.is_none() && options.alpha == 1.0 && options.beta == 0.0 {
        return Ok((None, Vec::new()));
    }
    let mut expression = match given {
        Some(text) => Expression::parse(text, &names).map_err(|error| Failure::refused_about("--epilogue", &error))?,
        None => Expression::input(0),
    };
    if options.alpha != 1.0 || options.beta != 0.0 {
        let scaled = |number: usize| Expression::input(number) * options.alpha;
        let mut scaled: Vec<Expression> = (0..sums).map(scaled).collect();
        if options.beta != 0.0 {
            scaled[0] = scaled[0].clone() + Expression::input(sums) * options.beta;
        }
        expression = expression.with(&scaled);
    }
    let used: Vec<usize> = (sums..names.len()).filter(|number| expression.has(*number)).collect();
    let plain = if result.is_float() { result } else { Element::F32 };
    let size = m.saturating_mul(n);
    let inputs = used.iter().map(|number| match names[*number] {
        "c" => match own.layout_d.as_str() {
            "column" => Matrix::strided(plain, [m, n, batch], [1, m, size]),
            _ => Matrix::strided(plain, [m, n, batch], [n, 1, size]),
        },
        "bias" => Matrix::strided(plain, [m, n, batch], [0, 1, 0]),
        _ => Matrix::strided(plain, [m, n, batch], [1, 0, 0]),
    });
    let inputs: Vec<Matrix> = inputs.collect::<Result<_, _>>().map_err(|error| refused(&error))?;
    // Inputs that the function does not use are not inputs of the kernel.
    let mut places: Vec<Expression> = (0..names.len()).map(Expression::input).collect();
    for (place, number) in used.iter().enumerate() {
        places[*number] = Expression::input(place + sums);
    }
    let expression = expression.with(&places);
    let names = used.iter().map(|number| names[*number]).collect();
    Ok((Some(Fused { expression, inputs }), names))
}
