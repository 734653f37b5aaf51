//! GEMM without the interpreter's lock.
//!
//! Law: the result is that of `gemm` of `tilewright-tensor`, by columns of C in parts (`work.rs`),
//! so that no sum is split.
//!
//! Reason for unsafe code: views of memory that Python shares; each comment says why it is sound.
#![allow(unsafe_code)]

use half::{bf16, f16};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tilewright_layout::{AnyLayout, Layout, Tree};
use tilewright_tensor::{self as cpu, Numbers, Offsets};

use super::element::Element;
use super::memory::Guard;
use super::placed::Placed;
use super::work::{in_parts, on_threads, parts};
use super::{Tensor, TensorBody, is_overlapping};
use crate::refusal;

/// The number of multiplications of a part of a GEMM.
const PART_OF_PRODUCT: i64 = 1 << 34;
/// The smallest number of columns of a part of a GEMM, so that packing A again for each part costs
/// little.
const COLUMNS: i64 = 1024;

/// `C = alpha * A * B + beta * C`, with A of modes (M,K), B of (N,K) and C of (M,N): the tensor C,
/// a new one if none is given.
///
/// Operands are of float32, float64, float16, bfloat16 or int8; accumulators of 16-bit floats are
/// float32, those of int8 are int32.
///
/// Errors: modes or types that do not match; C overlaps an operand, is read-only or not injective;
/// another thread uses the memory.
#[pyfunction]
#[pyo3(signature = (a, b, c = None, *, alpha = None, beta = None, threads = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "as the caller in Python names them")]
pub fn gemm<'py>(
    py: Python<'py>,
    a: &Bound<'py, Tensor>,
    b: &Bound<'py, Tensor>,
    c: Option<&Bound<'py, Tensor>>,
    alpha: Option<f64>,
    beta: Option<f64>,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, Tensor>> {
    let (left, right) = (a.get(), b.get());
    let element = left.element();
    let sums = match element {
        Element::F16 | Element::BF16 | Element::F32 => Element::F32,
        Element::F64 => Element::F64,
        Element::I8 => Element::I32,
        other => return Err(PyTypeError::new_err(format!("matrices of {} are not multiplied", other.name()))),
    };
    if right.element() != element {
        let (a, b) = (left.dtype(), right.dtype());
        return Err(PyTypeError::new_err(format!("A is of {a}, B of {b}: relayout(dtype=..) converts one")));
    }
    let (of_left, of_right) = (left.sizes(), right.sizes());
    let (&[m, k], &[n, other]) = (&of_left[..], &of_right[..]) else {
        let lies =
            |tensor: &Tensor| tensor.layout().map_or_else(|| format!("{:?}", tensor.sizes()), AnyLayout::to_string);
        let (a, b) = (lies(left), lies(right));
        return Err(PyValueError::new_err(format!("A has modes (M,K), B (N,K), not {a} and {b}")));
    };
    if c.is_none() && beta.is_some_and(|beta| beta != 0.0) {
        return Err(PyTypeError::new_err("beta is a factor of C, and there is none"));
    }
    let made = match c {
        Some(c) => c.clone(),
        None => Bound::new(py, Tensor::zeros_of(py, sums, &[m, n])?)?,
    };
    let result = made.get();
    if result.element() != sums {
        let (found, wanted) = (result.dtype(), sums.name());
        return Err(PyTypeError::new_err(format!(
            "products of {} are of {wanted}, and C is of {found}",
            element.name()
        )));
    }
    let (left, right, result) = match (&left.0, &right.0, &result.0) {
        (TensorBody::Placed(left), TensorBody::Placed(right), TensorBody::Placed(result)) => (left, right, result),
        // Without elements of A or B, sums are empty.
        _ => return of_nothing(py, &made, [m, n, k, other], (sums, beta), threads),
    };
    left.memory.check_here()?;
    right.memory.check_here()?;
    result.check_written(py)?;
    let (of_a, of_b, of_c) = (left.addresses(py)?, right.addresses(py)?, result.addresses(py)?);
    if is_overlapping(of_a, of_c) || is_overlapping(of_b, of_c) {
        return Err(PyValueError::new_err("C overlaps a factor, which would change while it is read"));
    }
    let _guard = Guard::new(&[(of_a, false), (of_b, false), (of_c, true)])?;
    let scales = (alpha.unwrap_or(1.0), beta.unwrap_or(0.0));
    // Split by columns of C, so that no sum is split.
    let work = m.saturating_mul(k).saturating_mul(n);
    let most = PART_OF_PRODUCT.max(m.saturating_mul(k).saturating_mul(COLUMNS));
    let agree = result.offsets.rank() == 2 && result.size_of(1) == n;
    let parts = match agree {
        true => parts(py, [(right, Some(0)), (result, Some(1))], work, most)?,
        // The GEMM reports mismatches.
        false => vec![([right.again(), result.again()], work)],
    };
    in_parts(py, &parts, progress, |[b, c]| match element {
        Element::F16 => multiplied::<f16>(py, left, b, c, (scales.0 as f32, scales.1 as f32), threads),
        Element::BF16 => multiplied::<bf16>(py, left, b, c, (scales.0 as f32, scales.1 as f32), threads),
        Element::F32 => multiplied::<f32>(py, left, b, c, (scales.0 as f32, scales.1 as f32), threads),
        Element::F64 => multiplied::<f64>(py, left, b, c, scales, threads),
        _ => multiplied::<i8>(py, left, b, c, whole(scales)?, threads),
    })?;
    Ok(made)
}

/// A GEMM with an extent of 0: either C is empty, or its sums are, so that the result is `beta`
/// times the old value.
fn of_nothing<'py>(
    py: Python<'py>,
    made: &Bound<'py, Tensor>,
    [m, n, k, other]: [i64; 4],
    (sums, beta): (Element, Option<f64>),
    threads: Option<usize>,
) -> PyResult<Bound<'py, Tensor>> {
    if k != other || made.get().sizes() != [m, n] {
        let sizes = made.get().sizes();
        return Err(PyValueError::new_err(format!(
            "A is ({m},{k}) and B ({n},{other}), which have no product of the sizes {sizes:?}"
        )));
    }
    match &made.get().0 {
        TensorBody::Empty(result) => result.check_writable()?,
        TensorBody::Placed(result) => {
            result.check_written(py)?;
            let _guard = Guard::new(&[(result.addresses(py)?, true)])?;
            let beta = beta.unwrap_or(0.0);
            // A GEMM with one product of zeros has the result of empty sums.
            let operand = if sums == Element::I32 { Element::I8 } else { sums };
            let refused = |error| refusal::of_layout(py, error);
            let one = |rows: i64| {
                let layout = Layout::row_major(&Tree::flat([rows, 1]).map_err(refused)?).map_err(refused)?;
                Placed::zeroed(py, operand, layout.into())
            };
            let (a, b) = (one(m)?, one(n)?);
            match operand {
                Element::F32 => multiplied::<f32>(py, &a, &b, result, (1.0, beta as f32), threads)?,
                Element::F64 => multiplied::<f64>(py, &a, &b, result, (1.0, beta), threads)?,
                _ => multiplied::<i8>(py, &a, &b, result, whole((1.0, beta))?, threads)?,
            }
        }
    }
    Ok(made.clone())
}

/// The factors of a GEMM of integers.
fn whole((alpha, beta): (f64, f64)) -> PyResult<(i32, i32)> {
    let one = |factor: f64| match factor as i32 {
        whole if f64::from(whole) == factor => Ok(whole),
        _ => Err(PyValueError::new_err(format!("{factor} is no integer of 32 bits, as factors of integers are"))),
    };
    Ok((one(alpha)?, one(beta)?))
}

fn multiplied<S: Numbers + Send + Sync>(
    py: Python<'_>,
    a: &Placed,
    b: &Placed,
    c: &Placed,
    (alpha, beta): (S::Sum, S::Sum),
    threads: Option<usize>,
) -> PyResult<()>
where
    S::Sum: Send + Sync,
{
    on_threads(py, threads, || {
        let mma = cpu::cpu_mma::<S>(threads.unwrap_or(0))?;
        // SAFETY: `gemm` holds a guard and has checked that C is writable, on the CPU, injective,
        // and disjoint from the operands; the types are those of the elements.
        let (left, right, mut sums) = unsafe {
            (
                a.memory.view::<S>(a.origin, &a.offsets),
                b.memory.view::<S>(b.origin, &b.offsets),
                c.memory.view_mut::<S::Sum>(c.origin, &c.offsets),
            )
        };
        cpu::gemm(&mma, alpha, &left, &right, beta, &mut sums)
    })
}
