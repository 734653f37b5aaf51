//! Kernels that are planned from layouts, sizes and types.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tilewright::measured::{AskedPlanner, DevicePlanner};
use tilewright_kernel::machine::{Machine, UnknownMachine};
use tilewright_kernel::program::operation::BlockScaled;
use tilewright_kernel::ptx::Target;
use tilewright_kernel::{Kernel, LaunchArguments};
use tilewright_layout::Layout;
use tilewright_planners::gemm::{self, Fused, Matrix, Pairs, Problem, ProductTensor, Scales};
use tilewright_planners::{Computation, Expression, Norm, Place, PlanError, Planned, Planner, RowMatrix, Statistic};

use super::operand;
use super::program::{Program, of_setup};
use crate::device::opened;
use crate::refusal;

/// Launches in their order, with the tensors that each reads and writes.
///
/// Tensors are numbered: the inputs, in the order of the arguments of the Python function, then the
/// result, then the workspaces.
#[pyclass(frozen, module = "tilewright")]
pub struct Plan {
    /// The decisions of the plan, one per line.
    #[pyo3(get)]
    lines: Vec<String>,
    /// Each kernel, and the numbers of its tensors.
    launches: Vec<(Py<Program>, Vec<usize>)>,
    /// Workspaces: the element type, and the number of elements.
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
    /// The plan of some kernels, with the bytes of each workspace. `tensors` is the number of
    /// tensors that the caller passes.
    fn of(
        py: Python<'_>,
        tensors: usize,
        lines: Vec<String>,
        launches: Vec<(Program, Vec<usize>)>,
        bytes: &[i64],
    ) -> PyResult<Plan> {
        // Copy kernels treat several elements as one wider integer, so a workspace has the
        // narrowest type with which a kernel accesses it.
        let element = |workspace: usize| {
            let known = launches.iter().filter_map(|(program, numbers)| {
                let at = numbers.iter().position(|number| *number == tensors + workspace)?;
                program.kernel.program().tensors().nth(at).map(|buffer| buffer.element)
            });
            known.min_by_key(|element| element.bytes())
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

/// The machine with a name: a card of the table; `device:1` for a GPU of this computer as its
/// driver describes it; or a target, which means a card that runs its code.
///
/// Errors: there is no machine of this name.
pub fn machine(py: Python<'_>, name: &str) -> PyResult<Machine> {
    if let Some(ordinal) = name.strip_prefix("device:").and_then(|number| number.parse().ok()) {
        let machine = opened(py, ordinal)?.device.machine();
        return machine.map_err(|error| refusal::of_gpu(py, &error));
    }
    if let Some(target) = Target::named(name) {
        return Ok(Machine::of_target(target));
    }
    name.parse().map_err(|unknown: UnknownMachine| {
        let targets = Target::names();
        PyValueError::new_err(format!("{unknown}, and the targets {targets}"))
    })
}

/// The planner for the machine with a name. For a GPU of this computer, such as `device:1`, it uses
/// the plans that were measured on it first, and then the model.
///
/// Errors: as [`machine`].
pub fn planner(py: Python<'_>, name: &str) -> PyResult<Box<dyn Planner>> {
    if let Some(ordinal) = name.strip_prefix("device:").and_then(|number| number.parse().ok()) {
        let opened = opened(py, ordinal)?;
        let planner = DevicePlanner::new(&opened.device).map_err(|error| refusal::of_gpu(py, &error))?;
        return Ok(Box::new(AskedPlanner::new(planner, &opened.problems)));
    }
    Ok(Box::new(machine(py, name)?))
}

/// The plan of one kernel, or of two, where the second reads the output of the first.
fn planned(py: Python<'_>, planned: Result<Planned, PlanError>) -> PyResult<Plan> {
    let planned = planned.map_err(|error| refusal::of(py, &error))?;
    let sizes = planned.sizes().iter().map(|(name, size)| ((*name).to_string(), *size)).collect();
    planned_at(py, &planned, sizes)
}

/// The plan of a function of rows, for any number of rows.
fn of_any_rows(py: Python<'_>, work: &Computation, machine: &str) -> PyResult<Plan> {
    let planned = planner(py, machine)?.computation(work).map_err(|error| refusal::of(py, &error))?;
    planned_at(py, &planned, Vec::new())
}

/// A plan whose launches have these sizes, in addition to those that the caller passes.
fn planned_at(py: Python<'_>, planned: &Planned, sizes: Vec<(String, i64)>) -> PyResult<Plan> {
    let program =
        |kernel: &Kernel| Program { kernel: kernel.clone(), plan: planned.plan().to_vec(), fixed: sizes.clone() };
    // The caller passes the inputs and the result. Partial results of blocks follow them.
    let between = planned.between();
    let result = between.start;
    let shares = result + 1..=result + between.len();
    let mut bytes: Vec<i64> = Vec::new();
    if !between.is_empty() {
        let named: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let launch =
            planned.kernel().program().launch(LaunchArguments { sizes: &named, numbers: Some(&|_, _| Some(0)) });
        let launch = launch.map_err(|error| of_setup(py, &error))?;
        bytes.extend(launch.bytes.get(between).unwrap_or_default().iter().map(|bytes| bytes.cast_signed()));
    }
    let first = (0..result).chain(shares.clone());
    let launches = match planned.second() {
        None => vec![(program(planned.kernel()), first.chain([result]).collect())],
        Some(second) => {
            vec![(program(planned.kernel()), first.collect()), (program(second), shares.chain([result]).collect())]
        }
    };
    Plan::of(py, result + 1, planned.plan().to_vec(), launches, &bytes)
}

/// A tensor of a relayout: the type, the layout, and the number of elements before its first one.
type PlacedArgument<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, i64);

/// A kernel that copies elements from one layout to another, and converts them.
#[pyfunction]
pub fn plan_relayout(
    py: Python<'_>,
    from: PlacedArgument<'_>,
    to: PlacedArgument<'_>,
    machine: &str,
) -> PyResult<Plan> {
    let place = |(element, layout, before): &PlacedArgument<'_>| {
        let place = Place::from(&operand::layout(layout)?).at(*before).map_err(|error| refusal::of(py, &error))?;
        PyResult::Ok((place, operand::element(element)?))
    };
    let ((from, source), (to, destination)) = (place(&from)?, place(&to)?);
    planned(py, planner(py, machine)?.relayout((from, source), (to, destination)))
}

/// A matrix with contiguous rows: the number of elements of a row and their type, the alignment of
/// its tensors in elements, the approximate number of rows, and the row strides of the matrix and
/// of the result.
type OfRows<'py> = (i64, Bound<'py, PyAny>, i64, i64, i64, i64);

fn of_rows((columns, element, alignment, rows, x, y): &OfRows<'_>) -> PyResult<RowMatrix> {
    let matrix = RowMatrix::new(*columns, operand::element(element)?).aligned(*alignment);
    Ok(matrix.with_rows(*rows).pitched(*x, *y))
}

/// A kernel that takes the softmax of rows.
#[pyfunction]
pub fn plan_softmax(py: Python<'_>, matrix: OfRows<'_>, machine: &str) -> PyResult<Plan> {
    of_any_rows(py, &Computation::Softmax { matrix: of_rows(&matrix)? }, machine)
}

/// A kernel for RMS norm of rows, optionally with weights.
#[pyfunction]
pub fn plan_rms_norm(py: Python<'_>, matrix: OfRows<'_>, epsilon: f64, weights: bool, machine: &str) -> PyResult<Plan> {
    let norm = Norm { epsilon, weights, bias: false };
    of_any_rows(py, &Computation::RmsNorm { matrix: of_rows(&matrix)?, norm }, machine)
}

/// A kernel for layer norm of rows, optionally with weights and a bias.
#[pyfunction]
pub fn plan_layer_norm(
    py: Python<'_>,
    matrix: OfRows<'_>,
    epsilon: f64,
    weights: bool,
    bias: bool,
    machine: &str,
) -> PyResult<Plan> {
    let norm = Norm { epsilon, weights, bias };
    of_any_rows(py, &Computation::LayerNorm { matrix: of_rows(&matrix)?, norm }, machine)
}

/// The kernels that compute a statistic along modes of a tensor.
#[pyfunction]
pub fn plan_reduce(
    statistic: &str,
    layout: &Bound<'_, PyAny>,
    element: &Bound<'_, PyAny>,
    modes: Vec<usize>,
    alignment: i64,
    machine: &str,
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
    let (py, tensor) = (element.py(), (&layout, operand::element(element)?));
    planned(py, planner(py, machine)?.reduce(statistic, tensor, &modes, Some(alignment)))
}

/// A matrix of a GEMM, or a batch: the type; the extents and the strides of rows, columns and
/// matrices; and the number of elements before its first one.
type Given = (String, [i64; 3], [i64; 3], i64);

fn matrix(py: Python<'_>, (element, extents, strides, before): &Given) -> PyResult<Matrix> {
    let element = operand::named_element(element)
        .ok_or_else(|| PyValueError::new_err(format!("there is no type of elements '{element}'")))?;
    let matrix = Matrix::strided(element, *extents, *strides).and_then(|matrix| matrix.at(*before));
    matrix.map_err(|error| refusal::of(py, &error))
}

/// The block-scaled format with a name.
fn block_scaled(name: &str) -> PyResult<BlockScaled> {
    Ok(match name {
        "mxf8_e4m3" => BlockScaled::Mxf8E4M3,
        "mxf8_e5m2" => BlockScaled::Mxf8E5M2,
        "mxf4" => BlockScaled::Mxf4,
        "nvf4" => BlockScaled::Nvf4,
        _ => {
            let text = format!("a block-scaled format is mxf8_e4m3, mxf8_e5m2, mxf4 or nvf4, not '{name}'");
            return Err(PyValueError::new_err(text));
        }
    })
}

/// The options of a GEMM apart from its matrices.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct GemmOptions {
    /// An epilogue function of the accumulator, `x`, or of both accumulators of a pair, `x` and
    /// `y`, and of further tensors.
    function: Option<String>,
    /// The further tensors of the function, by name.
    inputs: Vec<(String, Given)>,
    /// Which columns of B form a pair: "neighbours" or "halves".
    pairs: Option<String>,
    /// The scales of the blocks of A and of B.
    scales: Option<(Given, Given)>,
    /// The scales of 4-bit weights, whose words are B.
    int4: Option<Given>,
    /// The block-scaled format to which the scales belong; None for other scales.
    format: Option<String>,
    /// The reductions of rows and columns, as text.
    keep: Vec<String>,
    /// Whether operands of f32 are rounded to tf32.
    tf32: bool,
    /// Whether each byte of A and of B contains two 4-bit integers.
    packed: bool,
    /// Whether accumulators of 8-bit operands are not promoted to f32.
    fast: bool,
    /// Whether rows of D have the same bits for every M.
    invariant: bool,
}

impl GemmOptions {
    /// The problem of the GEMM.
    fn problem(&self, py: Python<'_>, [a, b, d]: [&Given; 3]) -> PyResult<Problem> {
        let refuse = |error: PlanError| refusal::of(py, &error);
        let (a, b, d) = (matrix(py, a)?, matrix(py, b)?, matrix(py, d)?);
        let pairs = match self.pairs.as_deref() {
            None => None,
            Some("neighbours") => Some(Pairs::Neighbours),
            Some("halves") => Some(Pairs::Halves),
            Some(other) => {
                let text = format!("pairs are \"neighbours\" or \"halves\", not '{other}'");
                return Err(PyValueError::new_err(text));
            }
        };
        let fused = match &self.function {
            None => None,
            Some(text) => {
                let sums: &[&str] = if pairs.is_some() { &["x", "y"] } else { &["x"] };
                let inputs = self.inputs.iter().map(|(name, _)| name.as_str());
                let names: Vec<&str> = sums.iter().copied().chain(inputs).collect();
                let expression = Expression::parse(text, &names).map_err(refuse)?;
                let inputs = self.inputs.iter().map(|(_, given)| matrix(py, given)).collect::<PyResult<_>>()?;
                Some(Fused { expression, inputs })
            }
        };
        if let Some(scales) = &self.int4 {
            if pairs.is_some() || self.scales.is_some() || self.packed {
                return Err(PyTypeError::new_err(
                    "weights of four bits have neither pairs, nor scales of blocks, nor packed",
                ));
            }
            let problem = Problem::of_int4(a, b, matrix(py, scales)?, d).map_err(refuse)?;
            return self
                .completed(py, fused.map_or(Ok(problem.clone()), |fused| problem.fused(fused)).map_err(refuse)?);
        }
        let problem = match (pairs, fused) {
            (Some(_), None) => {
                return Err(PyTypeError::new_err(
                    "of pairs a function of both sums is written: function=\"silu(x) * y\"",
                ));
            }
            (Some(pairs), Some(fused)) => Problem::gated(a, b, d, pairs, fused).map_err(refuse)?,
            (None, fused) => {
                let problem = match (&self.format, &self.scales) {
                    (Some(format), Some((of_a, of_b))) => {
                        let scales = Scales { a: matrix(py, of_a)?, b: matrix(py, of_b)? };
                        Problem::block_scaled(block_scaled(format)?, a, b, d, scales)
                    }
                    _ => Problem::of(a, b, d),
                };
                let problem = problem.map_err(refuse)?;
                fused.map_or(Ok(problem.clone()), |fused| problem.fused(fused)).map_err(refuse)?
            }
        };
        self.completed(py, problem)
    }

    /// The problem, completed by the options that do not depend on its kind.
    fn completed(&self, py: Python<'_>, mut problem: Problem) -> PyResult<Problem> {
        let refuse = |error: PlanError| refusal::of(py, &error);
        if let (Some((of_a, of_b)), None) = (&self.scales, &self.format) {
            let scales = Scales { a: matrix(py, of_a)?, b: matrix(py, of_b)? };
            problem = problem.scaled(scales).map_err(refuse)?;
        }
        for text in &self.keep {
            problem = text.parse().and_then(|by| problem.reducing(by)).map_err(refuse)?;
        }
        let problem = if self.packed { problem.in_nibbles().map_err(refuse)? } else { problem };
        let problem = if self.tf32 { problem.in_tf32() } else { problem };
        let problem = if self.fast { problem.fast() } else { problem };
        if self.invariant { problem.batch_invariant().map_err(refuse) } else { Ok(problem) }
    }
}

/// Whether a GEMM of weights of four bits takes less time on a machine, by the model, if the
/// weights are first written in the type of A. `sizes` are M, N and K.
#[pyfunction]
pub fn is_faster_unpacked(py: Python<'_>, element: &str, sizes: [i64; 3], machine: &str) -> PyResult<bool> {
    let [m, n, k] = sizes;
    let contiguous = |element: &str, [rows, columns]: [i64; 2]| {
        matrix(py, &(element.to_string(), [rows, columns, 1], [columns, 1, 0], 0))
    };
    let (a, d, words) = (contiguous(element, [m, k])?, contiguous(element, [m, n])?, contiguous("i32", [n, k / 8])?);
    let scales = matrix(py, &(element.to_string(), [n, k / 128, 1], [1, n, 0], 0))?;
    let machine = self::machine(py, machine)?;
    let problem = Problem::of_int4(a, words, scales, d);
    let found = problem.and_then(|problem| gemm::is_faster_unpacked(&problem, &machine));
    found.map_err(|error| refusal::of(py, &error))
}

/// The kernels that multiply A (M,K) by B (N,K) into D (M,N), or batches of them. Tensors are A, B,
/// the inputs of the epilogue, the scales of A and of B, D, and the reductions.
#[pyfunction]
pub fn plan_product(py: Python<'_>, a: Given, b: Given, d: Given, asked: GemmOptions, machine: &str) -> PyResult<Plan> {
    let problem = asked.problem(py, [&a, &b, &d])?;
    let planner = planner(py, machine)?;
    let product = planner.gemm(&problem).map_err(|error| refusal::of(py, &error))?;
    let scales = 2 + asked.inputs.len();
    // 4-bit weights have scales for B only.
    let (of_b, result) = match (&asked.scales, &asked.int4) {
        (Some(_), _) => (scales + 1, scales + 2),
        (_, Some(_)) => (scales, scales + 1),
        _ => (scales, scales),
    };
    let tensors = result + 1 + asked.keep.len();
    let number = |operand: &ProductTensor| {
        Ok(match operand {
            ProductTensor::A => 0,
            ProductTensor::B => 1,
            ProductTensor::Input(number) => 2 + number,
            ProductTensor::ScalesA => scales,
            ProductTensor::ScalesB => of_b,
            ProductTensor::D => result,
            ProductTensor::Reduction(number) => result + 1 + number,
            ProductTensor::Workspace(number) => tensors + number,
            // The GEMM has no groups of rows.
            other => {
                let text = format!("this product takes tensors that are not passed: {other:?}");
                return Err(PyValueError::new_err(text));
            }
        })
    };
    let launches = product.steps().iter().map(|step| {
        let fixed = step.sizes().iter().map(|(name, size)| ((*name).to_string(), *size)).collect();
        let program = Program { kernel: step.kernel().clone(), plan: product.lines().to_vec(), fixed };
        Ok((program, step.operands().iter().map(number).collect::<PyResult<_>>()?))
    });
    Plan::of(py, tensors, product.lines().to_vec(), launches.collect::<PyResult<_>>()?, product.workspaces())
}
