//! GEMM of sharded matrices: the plan, and its simulation in this process.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_mesh::{self as mesh, Machine, ProductPlan, Role};

use super::{Resharding, Sharded, refused};

/// The plan of a GEMM of two sharded matrices: the dimension that each axis of the mesh shards, and
/// the reshards before and after.
#[pyclass(frozen, module = "tilewright")]
pub struct Product {
    plan: ProductPlan,
}

/// The role of an axis of a mesh in a GEMM, in a word.
fn word(role: Role) -> &'static str {
    match role {
        Role::Rows => "rows",
        Role::Columns => "columns",
        Role::Depth => "depth",
        Role::Same => "same",
    }
}

/// The plan of [`Sharded::multiply`], for layouts of A, B and D.
pub(super) fn planned(
    py: Python<'_>,
    [a, b, d]: [&Sharded; 3],
    bytes: i64,
    rate: f64,
    machine: Option<&str>,
) -> PyResult<Product> {
    if !(rate > 0.0 && rate.is_finite()) {
        return Err(PyValueError::new_err(format!("the rate of a device is a positive number, not {rate}")));
    }
    let machine: Machine = machine.map_or(Ok(Machine::HGX_H200), str::parse).map_err(refused(py))?;
    let plan = py.detach(|| mesh::multiply(&a.layout, &b.layout, &d.layout, bytes, rate, &machine));
    Ok(Product { plan: plan.map_err(refused(py))? })
}

#[pymethods]
impl Product {
    /// The dimension that each axis of the mesh shards: "rows", "columns", "depth", whose partial
    /// sums are added, or "same", if all devices along it compute the same.
    #[getter]
    fn roles(&self) -> Vec<&'static str> {
        self.plan.roles().iter().map(|role| word(*role)).collect()
    }

    /// M, N and K.
    #[getter]
    fn sizes(&self) -> [i64; 3] {
        self.plan.sizes()
    }

    /// M, N and K of the local GEMM of each device.
    #[getter]
    fn local_sizes(&self) -> [i64; 3] {
        self.plan.local_sizes()
    }

    /// The reshards: of A and B before the GEMM, of D after it.
    #[getter]
    fn moves(&self) -> Vec<Resharding> {
        self.plan.moves().into_iter().map(|plan| Resharding { plan: plan.clone() }).collect()
    }

    /// The time of links and devices by the model, without overlap, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.plan.seconds()
    }

    /// The memory of D on each device, from that of A and B, computed in this process in f64.
    fn simulate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::convert::lists)] a: Vec<Vec<f64>>,
        #[pyo3(from_py_with = crate::convert::lists)] b: Vec<Vec<f64>>,
    ) -> PyResult<Vec<Vec<f64>>> {
        py.detach(|| self.plan.simulate(&a, &b)).map_err(refused(py))
    }

    fn __str__(&self) -> String {
        self.plan.to_string()
    }

    fn __repr__(&self) -> String {
        let [m, n, k] = self.plan.sizes();
        let axes = self.plan.moves()[0].from().mesh().axes();
        let does = axes.iter().zip(self.roles()).map(|(axis, role)| format!("{}: {role}", axis.name));
        format!("<product of {m} x {n} x {k}, {}>", does.collect::<Vec<_>>().join(", "))
    }
}
