//! The product that the options of `tilewright gemm --device` ask for.
//!
//! Law: A is M x K and B is K x N, as in mathematics; the planner's B is the transpose, under a
//! layout.

use clap::ValueEnum;
use tilewright::Layout;
use tilewright::kernel::Element;
use tilewright::kernels::gemm::{Fused, Matrix, Problem};
use tilewright::kernels::{Expression, PlanError};

use super::{Kind, Options};
use crate::output::Failure;

/// The types of D.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Stored {
    F32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    I32,
}

fn refused(error: &PlanError) -> Failure {
    Failure::refused(error)
}

/// The type of the factors, and whether they are rounded to tf32.
fn factors(kind: Kind) -> Result<(Element, bool), Failure> {
    Ok(match kind {
        Kind::F32 => (Element::F32, false),
        Kind::Tf32 => (Element::F32, true),
        Kind::F16 => (Element::F16, false),
        Kind::Bf16 => (Element::Bf16, false),
        Kind::I8 => (Element::I8, false),
        Kind::U8 => (Element::U8, false),
        Kind::E4m3 => (Element::E4M3, false),
        Kind::E5m2 => (Element::E5M2, false),
        Kind::F64 => return Err(Failure::Usage("f64 is multiplied on the processor: leave out --device".into())),
    })
}

/// A matrix `(rows,columns)`, or a batch, as the words `row` and `column` or a layout say.
fn matrix(option: &str, text: &str, element: Element, [rows, columns, batch]: [i64; 3]) -> Result<Matrix, Failure> {
    let size = rows.saturating_mul(columns);
    match text {
        "row" => Matrix::strided(element, [rows, columns, batch], [columns, 1, size]).map_err(|error| refused(&error)),
        "column" => Matrix::strided(element, [rows, columns, batch], [1, rows, size]).map_err(|error| refused(&error)),
        text => {
            // An offset in front, as composed layouts have it.
            let (offset, layout) = match text.split_once(" o ") {
                Some((offset, layout)) => {
                    let number = offset.trim().parse().map_err(|_| {
                        Failure::Usage(format!("{option} {text:?}: before `o` stands how many elements come before"))
                    })?;
                    (number, layout)
                }
                None => (0, text),
            };
            let layout: Layout =
                layout.parse().map_err(|error: tilewright::LayoutError| Failure::refused_about(option, &error))?;
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

/// The product, and the names of the inputs of its function.
pub fn problem(options: &Options) -> Result<(Problem, Vec<&'static str>), Failure> {
    let [m, n, k] = options.extents().map(|size| i64::from(size.unwrap_or(1024)));
    let own = &options.device;
    let batch = i64::from(own.batch);
    let (element, tf32) = factors(options.kind.unwrap_or(Kind::Bf16))?;
    let result = match own.result {
        Some(Stored::F32) => Element::F32,
        Some(Stored::F16) => Element::F16,
        Some(Stored::Bf16) => Element::Bf16,
        Some(Stored::E4m3) => Element::E4M3,
        Some(Stored::E5m2) => Element::E5M2,
        Some(Stored::I32) => Element::I32,
        None => match element {
            Element::I8 | Element::U8 => Element::I32,
            Element::E4M3 | Element::E5M2 => Element::Bf16,
            other => other,
        },
    };
    let a = matrix("--lies-a", &own.lies_a, element, [m, k, batch])?;
    let b = matrix("--lies-b", &own.lies_b, element, [k, n, batch])?;
    let d = matrix("--lies-d", &own.lies_d, result, [m, n, batch])?;
    let modes: &[usize] = if b.layout().rank() == 3 { &[1, 0, 2] } else { &[1, 0] };
    let turned = b.layout().select(modes).map_err(|error| refused(&error.into()))?;
    let b = Matrix::new(element, &turned).and_then(|matrix| matrix.at(b.offset())).map_err(|error| refused(&error))?;
    let problem = Problem::of(a, b, d).map_err(|error| refused(&error))?;
    let problem = if tf32 { problem.in_tf32() } else { problem };

    const NAMES: [&str; 4] = ["x", "c", "bias", "column"];
    let given = own.epilogue.as_deref();
    let mut expression = match given {
        Some(text) => Expression::parse(text, &NAMES).map_err(|error| Failure::refused_about("--epilogue", &error))?,
        None => Expression::input(0),
    };
    if options.alpha != 1.0 || options.beta != 0.0 {
        let mut sum = Expression::input(0) * options.alpha;
        if options.beta != 0.0 {
            sum = sum + Expression::input(1) * options.beta;
        }
        expression = expression.with(&[sum]);
    }
    let used: Vec<usize> = (1..NAMES.len()).filter(|number| expression.has(*number)).collect();
    if given.is_none() && options.alpha == 1.0 && options.beta == 0.0 {
        return Ok((problem, Vec::new()));
    }
    let plain = if result.is_float() { result } else { Element::F32 };
    let size = m.saturating_mul(n);
    let inputs = used.iter().map(|number| match number {
        1 => match own.lies_d.as_str() {
            "column" => Matrix::strided(plain, [m, n, batch], [1, m, size]),
            _ => Matrix::strided(plain, [m, n, batch], [n, 1, size]),
        },
        2 => Matrix::strided(plain, [m, n, batch], [0, 1, 0]),
        _ => Matrix::strided(plain, [m, n, batch], [1, 0, 0]),
    });
    let inputs: Vec<Matrix> = inputs.collect::<Result<_, _>>().map_err(|error| refused(&error))?;
    // Inputs that are not used are none of the kernel.
    let mut places: Vec<Expression> = (0..NAMES.len()).map(Expression::input).collect();
    for (place, number) in used.iter().enumerate() {
        places[*number] = Expression::input(place + 1);
    }
    let expression = expression.with(&places);
    let names = used.iter().map(|number| NAMES[*number]).collect();
    Ok((problem.fused(Fused { expression, inputs }).map_err(|error| refused(&error))?, names))
}
