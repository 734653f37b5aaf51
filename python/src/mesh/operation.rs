//! Elementwise functions, reductions and softmax: the plan, and its simulation in this process.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_mesh::{self as mesh, ArgmaxPlan, Machine, MapPlan, Plan, ReducePlan, Reduction, SoftmaxPlan};

use super::{Resharding, Sharded, refused};

/// The plan of an operation on sharded tensors: reshards of operands, the combination of partial
/// results, and reshards of results.
#[pyclass(frozen, module = "tilewright")]
pub struct Operation {
    plan: Planned,
}

enum Planned {
    Map(MapPlan),
    Reduce(ReducePlan),
    Argmax(Box<ArgmaxPlan>),
    Softmax(SoftmaxPlan),
}

fn machine(py: Python<'_>, text: Option<&str>) -> PyResult<Machine> {
    text.map_or(Ok(Machine::HGX_H200), str::parse).map_err(refused(py))
}

/// The plan of [`Sharded::map`].
pub(super) fn mapped(
    py: Python<'_>,
    operands: &[PyRef<'_, Sharded>],
    to: &Sharded,
    bytes: i64,
    on: Option<&str>,
) -> PyResult<Operation> {
    let machine = machine(py, on)?;
    let operands: Vec<_> = operands.iter().map(|operand| &operand.layout).collect();
    let plan = mesh::map(&operands, &to.layout, bytes, &machine).map_err(refused(py))?;
    Ok(Operation { plan: Planned::Map(plan) })
}

/// The plan of [`Sharded::reduce`].
pub(super) fn reduced(
    py: Python<'_>,
    [from, to]: [&Sharded; 2],
    over: &[usize],
    by: &str,
    bytes: i64,
    on: Option<&str>,
) -> PyResult<Operation> {
    let machine = machine(py, on)?;
    let (from, to) = (&from.layout, &to.layout);
    let by = match by {
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "max" => Reduction::Max,
        "argmax" => {
            let plan = py.detach(|| mesh::argmax(from, over, to, bytes, &machine)).map_err(refused(py))?;
            return Ok(Operation { plan: Planned::Argmax(Box::new(plan)) });
        }
        other => {
            let what = format!("a reduction is \"sum\", \"mean\", \"max\" or \"argmax\", not {other:?}");
            return Err(PyValueError::new_err(what));
        }
    };
    let plan = py.detach(|| mesh::reduce(from, over, by, to, bytes, &machine)).map_err(refused(py))?;
    Ok(Operation { plan: Planned::Reduce(plan) })
}

/// The plan of [`Sharded::softmax`].
pub(super) fn softmaxed(
    py: Python<'_>,
    [from, to]: [&Sharded; 2],
    over: &[usize],
    bytes: i64,
    on: Option<&str>,
) -> PyResult<Operation> {
    let machine = machine(py, on)?;
    let plan = py.detach(|| mesh::softmax(&from.layout, over, &to.layout, bytes, &machine));
    Ok(Operation { plan: Planned::Softmax(plan.map_err(refused(py))?) })
}

impl Operation {
    fn plans(&self) -> Vec<&Plan> {
        match &self.plan {
            Planned::Map(plan) => plan.operands().iter().chain([plan.result()]).collect(),
            Planned::Reduce(plan) => [plan.operand(), plan.parts()].into_iter().chain(plan.result()).collect(),
            Planned::Argmax(plan) => plan.moves().into_iter().chain(plan.result()).collect(),
            Planned::Softmax(plan) => plan.moves().to_vec(),
        }
    }

    fn text(&self) -> String {
        match &self.plan {
            Planned::Map(plan) => plan.to_string(),
            Planned::Reduce(plan) => plan.to_string(),
            Planned::Argmax(plan) => plan.to_string(),
            Planned::Softmax(plan) => plan.to_string(),
        }
    }
}

#[pymethods]
impl Operation {
    /// The reshards, in order. Of a map those of the operands and of the result; of a reduction
    /// those of the operand, of the partial results, and of the result if its layout differs; of a
    /// softmax those of the operand, of pairs of a maximum and a sum, and of the result.
    #[getter]
    fn moves(&self) -> Vec<Resharding> {
        self.plans().into_iter().map(|plan| Resharding { plan: plan.clone() }).collect()
    }

    /// The time of the links by the model, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.plans().into_iter().map(Plan::seconds).sum()
    }

    /// The memory of the result on each device, from that of the operand, computed in this process
    /// in f64; indices are integers.
    ///
    /// An elementwise function is not simulated: `ValueError`.
    fn simulate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::convert::lists)] memory: Vec<Vec<f64>>,
    ) -> PyResult<Vec<Vec<f64>>> {
        let indices = |all: Vec<Vec<i64>>| -> Vec<Vec<f64>> {
            all.into_iter().map(|own| own.into_iter().map(|index| index as f64).collect()).collect()
        };
        let done = py.detach(|| match &self.plan {
            Planned::Map(_) => None,
            Planned::Reduce(plan) => Some(plan.simulate(&memory)),
            Planned::Argmax(plan) => Some(plan.simulate(&memory).map(indices)),
            Planned::Softmax(plan) => Some(plan.simulate(&memory)),
        });
        let done = done.ok_or_else(|| PyValueError::new_err("which function of elements this is is not known"))?;
        done.map_err(refused(py))
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("<plan of {}>", self.text().lines().next().unwrap_or_default())
    }
}
