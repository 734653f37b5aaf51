//! Tensors sharded over a mesh of devices, and plans between their layouts.

mod operation;
mod processes;
mod product;
mod resharding;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tilewright_layout::Tree;
use tilewright_mesh::{self as mesh, Machine, MeshError, ShardedLayout};

use crate::convert::python;
use crate::object::hash_of;
use crate::refusal;

pub use operation::Operation;
pub use processes::Processes;
pub use product::Product;
pub use resharding::Resharding;

fn refused(py: Python<'_>) -> impl Fn(MeshError) -> PyErr {
    move |error| refusal::of(py, &error)
}

/// Devices in a grid with named axes: `Mesh("dp=2,tp=4")`, the first axis fastest, or with strides
/// in ranks, `Mesh("dp=2:4,tp=4:1")`.
#[pyclass(frozen, eq, module = "tilewright")]
#[derive(PartialEq)]
pub struct Mesh {
    mesh: mesh::Mesh,
}

/// A text; or the `repr` of an object of JAX or PyTorch, or of each object of a list.
fn said(object: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    let shardings = ["PartitionSpec", "NamedSharding", "GSPMDSharding", "DTensorSpec"];
    if shardings.contains(&object.get_type().name()?.to_str()?) {
        return Ok(object.repr()?.to_str()?.to_owned());
    }
    let each = object.try_iter()?.map(|item| Ok(item?.repr()?.to_str()?.to_owned()));
    Ok(format!("[{}]", each.collect::<PyResult<Vec<String>>>()?.join(", ")))
}

#[pymethods]
impl Mesh {
    #[new]
    fn new(py: Python<'_>, axes: &str) -> PyResult<Mesh> {
        Ok(Mesh { mesh: axes.parse().map_err(refused(py))? })
    }

    /// The mesh with these axes, the last one fastest, as in JAX and PyTorch: `Mesh.row_major(dp=2,
    /// tp=4)`.
    #[staticmethod]
    #[pyo3(signature = (**axes))]
    fn row_major(py: Python<'_>, axes: Option<&Bound<'_, PyDict>>) -> PyResult<Mesh> {
        let axes = axes.into_iter().flatten();
        let axes = axes.map(|(name, extent)| Ok((name.extract::<String>()?, extent.extract::<i64>()?)));
        let axes = axes.collect::<PyResult<Vec<_>>>()?;
        let named: Vec<(&str, i64)> = axes.iter().map(|(name, extent)| (name.as_str(), *extent)).collect();
        Ok(Mesh { mesh: mesh::Mesh::row_major(&named).map_err(refused(py))? })
    }

    /// The name of each axis, and the number of devices along it.
    #[getter]
    fn axes(&self) -> Vec<(String, i64)> {
        self.mesh.axes().iter().map(|axis| (axis.name.clone(), axis.extent)).collect()
    }

    /// The number of devices.
    #[getter]
    fn size(&self) -> usize {
        self.mesh.size()
    }

    /// The rank of the device at a coordinate.
    fn rank(&self, #[pyo3(from_py_with = crate::convert::list)] coordinate: Vec<i64>) -> PyResult<usize> {
        let missing = || PyValueError::new_err(format!("{} has no device at {coordinate:?}", self.mesh));
        self.mesh.rank(&coordinate).ok_or_else(missing)
    }

    /// The coordinate of the device of a rank.
    fn coordinate(&self, rank: usize) -> PyResult<Vec<i64>> {
        match rank < self.mesh.size() {
            true => Ok(self.mesh.coordinate(rank)),
            false => Err(PyValueError::new_err(format!("{} has no device of rank {rank}", self.mesh))),
        }
    }

    /// A layout over the mesh, as text: `mesh.layout("((2,4),3):((1,1@tp),2) copied 2:1@dp")`.
    fn layout(&self, py: Python<'_>, text: &str) -> PyResult<Sharded> {
        Ok(Sharded { layout: ShardedLayout::parse(&self.mesh, text).map_err(refused(py))? })
    }

    /// The layout of a `PartitionSpec` of JAX, or of its text: `P('dp', None)`.
    fn of_partition_spec(
        &self,
        #[pyo3(from_py_with = crate::convert::list)] shape: Vec<i64>,
        spec: &Bound<'_, PyAny>,
    ) -> PyResult<Sharded> {
        let layout = ShardedLayout::of_partition_spec(&self.mesh, &shape, &said(spec)?);
        Ok(Sharded { layout: layout.map_err(refused(spec.py()))? })
    }

    /// The layout of placements of DTensor, one for each axis of the mesh, or of their text:
    /// `[Shard(0), Replicate()]`.
    fn of_placements(
        &self,
        #[pyo3(from_py_with = crate::convert::list)] shape: Vec<i64>,
        placements: &Bound<'_, PyAny>,
    ) -> PyResult<Sharded> {
        let layout = ShardedLayout::of_placements(&self.mesh, &shape, &said(placements)?);
        Ok(Sharded { layout: layout.map_err(refused(placements.py()))? })
    }

    /// The layout of a sharding of JAX or PyTorch, or of its printed text: `NamedSharding(..)`,
    /// `GSPMDSharding({devices=[2,4]<=[8]})`, `DTensorSpec(..)`, a `PartitionSpec` or placements. A
    /// mesh in it must have the axes of this one.
    fn of_sharding(
        &self,
        #[pyo3(from_py_with = crate::convert::list)] shape: Vec<i64>,
        sharding: &Bound<'_, PyAny>,
    ) -> PyResult<Sharded> {
        let layout = ShardedLayout::of_sharding(&self.mesh, &shape, &said(sharding)?);
        Ok(Sharded { layout: layout.map_err(refused(sharding.py()))? })
    }

    /// The mesh of a sharding of JAX or PyTorch, or of its printed text: the axes of a
    /// `NamedSharding` or `DTensorSpec`, the last one fastest; axes `d0`, `d1`, .. of a
    /// `GSPMDSharding`.
    #[staticmethod]
    fn from_sharding(sharding: &Bound<'_, PyAny>) -> PyResult<Mesh> {
        let mesh = mesh::Mesh::of_sharding(&said(sharding)?);
        Ok(Mesh { mesh: mesh.map_err(refused(sharding.py()))? })
    }

    fn __str__(&self) -> String {
        self.mesh.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Mesh('{}')", self.mesh)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.mesh.to_string())
    }
}

/// A layout whose value is a device and an offset in its memory.
#[pyclass(frozen, eq, module = "tilewright")]
#[derive(PartialEq)]
pub struct Sharded {
    layout: ShardedLayout,
}

#[pymethods]
impl Sharded {
    /// The devices.
    #[getter]
    fn mesh(&self) -> Mesh {
        Mesh { mesh: self.layout.mesh().clone() }
    }

    /// The extents of the tensor.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape: Tree<i64> = self.layout.shape();
        python(py, shape.into())
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The number of copies of each element.
    #[getter]
    fn copies(&self) -> i64 {
        self.layout.copies()
    }

    /// The number of partial sums of each element.
    #[getter]
    fn sums(&self) -> i64 {
        self.layout.sums()
    }

    /// The number of elements of a device with a full part.
    #[getter]
    fn local_size(&self) -> i64 {
        self.layout.local_size()
    }

    /// The number of elements on the device of a rank, if parts have unequal sizes.
    fn local_size_on(&self, rank: usize) -> i64 {
        self.layout.local_size_on(rank)
    }

    /// The size of the memory of a device, in elements.
    #[getter]
    fn reach(&self) -> i64 {
        self.layout.reach()
    }

    /// The size of the memory of the device of a rank, in elements.
    fn reach_on(&self, rank: usize) -> i64 {
        self.layout.reach_on(rank)
    }

    /// The local part of a device: the offset of its first element, and for each mode the first
    /// position and loops over positions, the innermost first: extent, and the strides of position
    /// and offset. None if it is empty.
    fn part(&self, rank: usize) -> Option<(i64, Vec<resharding::Mode>)> {
        resharding::part(&self.layout, rank)
    }

    /// The rank of each device with an element, and the offset there.
    fn places(&self, py: Python<'_>, element: i64) -> PyResult<Vec<(usize, i64)>> {
        self.layout.places(element).map_err(refused(py))
    }

    /// As a `PartitionSpec` of JAX, in text.
    fn partition_spec(&self, py: Python<'_>) -> PyResult<String> {
        self.layout.partition_spec().map_err(refused(py))
    }

    /// As placements of DTensor, in text.
    fn placements(&self, py: Python<'_>) -> PyResult<String> {
        self.layout.placements().map_err(refused(py))
    }

    /// The plan from this layout to another, for elements of this many bytes, on a machine such as
    /// "8 x 450 GB/s 5 us, 50 GB/s 10 us": nodes of eight devices, their links inside, and those
    /// between nodes; the default is nodes of eight H200.
    #[pyo3(signature = (to, bytes, machine = None))]
    fn reshard(&self, py: Python<'_>, to: &Sharded, bytes: i64, machine: Option<&str>) -> PyResult<Resharding> {
        let machine: Machine = machine.map_or(Ok(Machine::HGX_H200), str::parse).map_err(refused(py))?;
        let plan = py.detach(|| mesh::reshard(&self.layout, &to.layout, bytes, &machine));
        Ok(Resharding { plan: plan.map_err(refused(py))? })
    }

    /// The fastest plan of `D = A B` on a machine, for A under this layout, B under `b` and D under
    /// `to`, with elements of this many bytes. `rate` is the floating-point operations per second
    /// of a device, counting a multiply-add as two; `machine` is as in `reshard`.
    #[pyo3(signature = (b, to, bytes, rate = 7e14, machine = None))]
    fn multiply(
        &self,
        py: Python<'_>,
        b: &Sharded,
        to: &Sharded,
        bytes: i64,
        rate: f64,
        machine: Option<&str>,
    ) -> PyResult<Product> {
        product::planned(py, [self, b, to], bytes, rate, machine)
    }

    /// The plan of an elementwise function of tensors under this layout and `others`, with elements
    /// of this many bytes, and a result under `to`; `machine` is as in `reshard`.
    #[pyo3(signature = (others, to, bytes, machine = None))]
    fn map(
        own: PyRef<'_, Self>,
        #[pyo3(from_py_with = crate::convert::list)] others: Vec<PyRef<'_, Sharded>>,
        to: &Sharded,
        bytes: i64,
        machine: Option<&str>,
    ) -> PyResult<Operation> {
        let py = own.py();
        let operands: Vec<_> = [own].into_iter().chain(others).collect();
        operation::mapped(py, &operands, to, bytes, machine)
    }

    /// The plan of a reduction of modes, numbered from 0: `by` is "sum", "mean", "max" or "argmax".
    /// In the result these modes have one element, or are left out.
    #[pyo3(signature = (over, to, bytes, by = "sum", machine = None))]
    fn reduce(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::convert::list)] over: Vec<usize>,
        to: &Sharded,
        bytes: i64,
        by: &str,
        machine: Option<&str>,
    ) -> PyResult<Operation> {
        operation::reduced(py, [self, to], &over, by, bytes, machine)
    }

    /// The plan of a softmax along modes, numbered from 0.
    #[pyo3(signature = (over, to, bytes, machine = None))]
    fn softmax(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::convert::list)] over: Vec<usize>,
        to: &Sharded,
        bytes: i64,
        machine: Option<&str>,
    ) -> PyResult<Operation> {
        operation::softmaxed(py, [self, to], &over, bytes, machine)
    }

    fn __str__(&self) -> String {
        self.layout.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Mesh('{}').layout('{}')", self.layout.mesh(), self.layout)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.layout.to_string())
    }
}
