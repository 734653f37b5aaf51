//! Kernels that are planned from layouts, sizes and types.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_kernel::Kernel;
use tilewright_kernels::gemm::{Problem, Product};
use tilewright_kernels::{self as kernels, PlanError, Planned, Statistic};
use tilewright_layout::Layout;

use super::operand;
use super::program::Program;
use crate::refusal;

fn planned(py: Python<'_>, planned: Result<Planned, PlanError>) -> PyResult<Program> {
    let planned = planned.map_err(|error| refusal::of(py, &error))?;
    Ok(launched(&planned, planned.kernel()))
}

/// One launch of a plan.
fn launched(planned: &Planned, kernel: &Kernel) -> Program {
    let fixed = planned.sizes().iter().map(|(name, size)| ((*name).to_string(), *size)).collect();
    Program { kernel: kernel.clone(), plan: planned.plan().to_vec(), fixed }
}

/// A kernel that copies elements from one layout to another, and converts them.
#[pyfunction]
pub fn plan_relayout(
    from: &Bound<'_, PyAny>,
    source: &Bound<'_, PyAny>,
    to: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
) -> PyResult<Program> {
    let (source, destination) = (operand::element(source)?, operand::element(destination)?);
    planned(from.py(), kernels::relayout(&operand::layout(from)?, source, &operand::layout(to)?, destination))
}

/// A kernel that takes the softmax of rows.
#[pyfunction]
pub fn plan_softmax(columns: i64, element: &Bound<'_, PyAny>) -> PyResult<Program> {
    planned(element.py(), kernels::softmax(columns, operand::element(element)?))
}

/// A kernel that divides rows by the root of their mean square.
#[pyfunction]
pub fn plan_rms_norm(columns: i64, element: &Bound<'_, PyAny>, epsilon: f64) -> PyResult<Program> {
    planned(element.py(), kernels::rms_norm(columns, operand::element(element)?, epsilon))
}

/// A kernel that takes the mean from rows, and divides them by the root of their variance.
#[pyfunction]
pub fn plan_layer_norm(columns: i64, element: &Bound<'_, PyAny>, epsilon: f64) -> PyResult<Program> {
    planned(element.py(), kernels::layer_norm(columns, operand::element(element)?, epsilon))
}

/// The kernels that compute a statistic along modes of a tensor, in the order of their launches:
/// what one leaves behind its inputs is what the next one reads.
#[pyfunction]
pub fn plan_reduce(
    statistic: &str,
    layout: &Bound<'_, PyAny>,
    element: &Bound<'_, PyAny>,
    modes: Vec<usize>,
) -> PyResult<Vec<Program>> {
    let statistic = match statistic {
        "sum" => Statistic::Sum,
        "mean" => Statistic::Mean,
        "norm" => Statistic::Norm,
        "max" => Statistic::Maximum,
        "argmax" => Statistic::ArgMaximum,
        _ => {
            let text = format!("there is no statistic '{statistic}'; there are sum, mean, norm, max, argmax");
            return Err(PyValueError::new_err(text));
        }
    };
    let layout: Layout = operand::layout(layout)?;
    let planned = kernels::reduce(statistic, (&layout, operand::element(element)?), &modes);
    let planned = planned.map_err(|error| refusal::of(element.py(), &error))?;
    Ok(planned.launches().map(|kernel| launched(&planned, kernel)).collect())
}

/// A kernel that multiplies A (M,K) by the transposed B (N,K); with products of four warps and bulk
/// copies, where `group`.
#[pyfunction]
pub fn plan_product(
    factors: &Bound<'_, PyAny>,
    result: &Bound<'_, PyAny>,
    m: i64,
    n: i64,
    k: i64,
    group: bool,
) -> PyResult<Program> {
    let (py, factors, result) = (factors.py(), operand::element(factors)?, operand::element(result)?);
    if group && factors == result {
        // What takes one kernel and no memory of its own.
        let product = Problem::new(factors, [m, n, k]).and_then(|problem| Product::new(&problem));
        if let Ok(product) = product
            && let ([kernel], 0) = (product.kernels().as_slice(), product.workspace())
        {
            let plan = product.plan().to_string().lines().map(str::to_string).collect();
            return Ok(Program { kernel: (*kernel).clone(), plan, fixed: Vec::new() });
        }
        return planned(py, kernels::group_product(factors, [m, n, k]));
    }
    planned(py, kernels::product(factors, result, [m, n, k]))
}
