//! Kernels that are planned from layouts, sizes and types.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_kernel::Kernel;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::ptx::Target;
use tilewright_kernels::gemm::{Fused, Matrix, Operand, Problem, Product};
use tilewright_kernels::{self as kernels, Expression, PlanError, Planned, Statistic};
use tilewright_layout::Layout;

use super::operand;
use super::program::{Program, of_setup};
use crate::refusal;

/// Launches in their order, and what each reads and writes.
///
/// Tensors are numbered: those that the work takes, in the order in which its function of Python
/// names them, the result last, and then the workspaces.
#[pyclass(frozen, module = "tilewright")]
pub struct Plan {
    /// What was chosen, a line for each decision.
    #[pyo3(get)]
    lines: Vec<String>,
    /// Each kernel, and the numbers of its tensors.
    launches: Vec<(Py<Program>, Vec<usize>)>,
    /// Memory besides the tensors: the type of the elements, and how many there are.
    #[pyo3(get)]
    workspaces: Vec<(&'static str, i64)>,
}

#[pymethods]
impl Plan {
    /// Each kernel, and the numbers of its tensors.
    #[getter]
    fn launches(&self, py: Python<'_>) -> Vec<(Py<Program>, Vec<usize>)> {
        self.launches.iter().map(|(program, tensors)| (program.clone_ref(py), tensors.clone())).collect()
    }

    fn __str__(&self) -> String {
        self.lines.join("\n")
    }

    fn __repr__(&self) -> String {
        format!("<plan of {} launches: {}>", self.launches.len(), self.lines.first().map_or("", String::as_str))
    }
}

impl Plan {
    /// The plan of some kernels, and of how many bytes each workspace is. `tensors` is how many the
    /// caller passes.
    fn of(
        py: Python<'_>,
        tensors: usize,
        lines: Vec<String>,
        launches: Vec<(Program, Vec<usize>)>,
        bytes: &[i64],
    ) -> PyResult<Plan> {
        // A workspace has the type in which the first kernel that has it knows it.
        let element = |workspace: usize| {
            launches.iter().find_map(|(program, numbers)| {
                let at = numbers.iter().position(|number| *number == tensors + workspace)?;
                program.kernel.program().tensors().nth(at).map(|buffer| buffer.element)
            })
        };
        let workspaces = bytes.iter().enumerate().filter_map(|(number, bytes)| {
            let element = element(number)?;
            let size = i64::from(element.bytes());
            Some((element.name(), bytes.saturating_add(size - 1) / size))
        });
        let workspaces = workspaces.collect();
        let launches = launches.into_iter().map(|(program, numbers)| Ok((Py::new(py, program)?, numbers)));
        Ok(Plan { lines, launches: launches.collect::<PyResult<_>>()?, workspaces })
    }
}

/// The target of a name; by itself, that of Hopper.
fn target(name: &str) -> PyResult<Target> {
    let known = || Target::ALL.map(Target::name).join(", ");
    Target::named(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no target '{name}'; there are {}", known())))
}

/// A plan of one kernel, or of two, of which the second reads what the first one leaves.
fn planned(py: Python<'_>, planned: Result<Planned, PlanError>, name: &str) -> PyResult<Plan> {
    let planned = planned.map_err(|error| refusal::of(py, &error))?.on(target(name)?);
    let sizes: Vec<(String, i64)> = planned.sizes().iter().map(|(name, size)| ((*name).to_string(), *size)).collect();
    let program =
        |kernel: &Kernel| Program { kernel: kernel.clone(), plan: planned.plan().to_vec(), fixed: sizes.clone() };
    let first = planned.kernel().program();
    let count = first.tensors().count();
    let Some(second) = planned.second() else {
        let launches = vec![(program(planned.kernel()), (0..count).collect())];
        return Plan::of(py, count, planned.plan().to_vec(), launches, &[]);
    };
    // The caller has the inputs and the result; shares are between.
    let inputs = first.tensors().take_while(|buffer| buffer.role == Role::Input).count();
    let result = inputs;
    let shares: Vec<usize> = (result + 1..=count).collect();
    let named: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    let launch = first.launch_with(&named, |_, _| Some(0)).map_err(|error| of_setup(py, &error))?;
    let bytes: Vec<i64> = launch.bytes.iter().skip(inputs).map(|bytes| bytes.cast_signed()).collect();
    let launches = vec![
        (program(planned.kernel()), (0..inputs).chain(shares.iter().copied()).collect()),
        (program(second), shares.into_iter().chain([result]).collect()),
    ];
    Plan::of(py, inputs + 1, planned.plan().to_vec(), launches, &bytes)
}

/// A kernel that copies elements from one layout to another, and converts them.
#[pyfunction]
pub fn plan_relayout(
    from: &Bound<'_, PyAny>,
    source: &Bound<'_, PyAny>,
    to: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    target: &str,
) -> PyResult<Plan> {
    let (source, destination) = (operand::element(source)?, operand::element(destination)?);
    let found = kernels::relayout(&operand::layout(from)?, source, &operand::layout(to)?, destination);
    planned(from.py(), found, target)
}

/// A kernel that takes the softmax of rows.
#[pyfunction]
pub fn plan_softmax(columns: i64, element: &Bound<'_, PyAny>, target: &str) -> PyResult<Plan> {
    planned(element.py(), kernels::softmax(columns, operand::element(element)?), target)
}

/// A kernel that divides rows by the root of their mean square.
#[pyfunction]
pub fn plan_rms_norm(columns: i64, element: &Bound<'_, PyAny>, epsilon: f64, target: &str) -> PyResult<Plan> {
    planned(element.py(), kernels::rms_norm(columns, operand::element(element)?, epsilon), target)
}

/// A kernel that takes the mean from rows, and divides them by the root of their variance.
#[pyfunction]
pub fn plan_layer_norm(columns: i64, element: &Bound<'_, PyAny>, epsilon: f64, target: &str) -> PyResult<Plan> {
    planned(element.py(), kernels::layer_norm(columns, operand::element(element)?, epsilon), target)
}

/// The kernels that compute a statistic along modes of a tensor.
#[pyfunction]
pub fn plan_reduce(
    statistic: &str,
    layout: &Bound<'_, PyAny>,
    element: &Bound<'_, PyAny>,
    modes: Vec<usize>,
    target: &str,
) -> PyResult<Plan> {
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
    planned(element.py(), kernels::reduce(statistic, (&layout, operand::element(element)?), &modes), target)
}

/// A matrix of a product, or a batch of them: the type, the extents and the steps of rows, columns
/// and matrices, and how many elements of its tensor come before it.
type Given = (String, [i64; 3], [i64; 3], i64);

fn matrix(py: Python<'_>, (element, extents, strides, before): &Given) -> PyResult<Matrix> {
    let element = operand::named_element(element)
        .ok_or_else(|| PyValueError::new_err(format!("there is no type of elements '{element}'")))?;
    let matrix = Matrix::strided(element, *extents, *strides).and_then(|matrix| matrix.at(*before));
    matrix.map_err(|error| refusal::of(py, &error))
}

/// The kernels that multiply A (M,K) by B (N,K) into D (M,N), or batches of them. `function` is of
/// the sum, `x`, and of the elements of further tensors, by their names.
#[pyfunction]
#[pyo3(signature = (a, b, d, function, inputs, tf32, target))]
#[expect(clippy::too_many_arguments, reason = "what a product is")]
pub fn plan_product(
    py: Python<'_>,
    a: Given,
    b: Given,
    d: Given,
    function: Option<&str>,
    inputs: Vec<(String, Given)>,
    tf32: bool,
    target: &str,
) -> PyResult<Plan> {
    let refuse = |error: PlanError| refusal::of(py, &error);
    let problem = Problem::of(matrix(py, &a)?, matrix(py, &b)?, matrix(py, &d)?).map_err(refuse)?;
    let problem = if tf32 { problem.in_tf32() } else { problem };
    let problem = match function {
        None => problem,
        Some(text) => {
            let names: Vec<&str> = ["x"].into_iter().chain(inputs.iter().map(|(name, _)| name.as_str())).collect();
            let expression = Expression::parse(text, &names).map_err(refuse)?;
            let inputs = inputs.iter().map(|(_, given)| matrix(py, given)).collect::<PyResult<_>>()?;
            problem.fused(Fused { expression, inputs }).map_err(refuse)?
        }
    };
    if self::target(target)? != Target::Sm90a {
        return before_hopper(py, &problem, target);
    }
    let product = py.detach(|| Product::new(&problem)).map_err(refuse)?;
    let tensors = inputs.len() + 3;
    let number = |operand: &Operand| match operand {
        Operand::A => Ok(0),
        Operand::B => Ok(1),
        Operand::Input(number) => Ok(2 + number),
        Operand::D => Ok(tensors - 1),
        Operand::Workspace(number) => Ok(tensors + number),
        other => Err(PyValueError::new_err(format!("this product takes tensors that are not passed: {other:?}"))),
    };
    let launches = product.steps().iter().map(|step| {
        let program = Program { kernel: step.kernel().clone(), plan: product.lines().to_vec(), fixed: Vec::new() };
        Ok((program, step.operands().iter().map(number).collect::<PyResult<_>>()?))
    });
    Plan::of(py, tensors, product.lines().to_vec(), launches.collect::<PyResult<_>>()?, product.workspaces())
}

/// The kernel for devices without products of four warps: of rows one after another, alone.
fn before_hopper(py: Python<'_>, problem: &Problem, target: &str) -> PyResult<Plan> {
    let [m, n, k] = problem.sizes();
    let plain = Problem::of(
        Matrix::rows(problem.factors(), [m, k]).map_err(|error| refusal::of(py, &error))?,
        Matrix::rows(problem.factors(), [n, k]).map_err(|error| refusal::of(py, &error))?,
        Matrix::rows(problem.result(), [m, n]).map_err(|error| refusal::of(py, &error))?,
    );
    if !plain.is_ok_and(|plain| plain == *problem) {
        return Err(PyValueError::new_err(format!(
            "for {target}, products are of matrices with rows one after another, without a function, a batch or tf32: \
             {problem} needs sm_90a"
        )));
    }
    planned(py, kernels::product(problem.factors(), problem.result(), [m, n, k]), target)
}
