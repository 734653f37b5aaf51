//! Coordinates of a tensor without its memory: identity tensors.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright_kernel::{Build, Coordinates as KernelCoordinates};
use tilewright_layout::atoms::CopyEnd;
use tilewright_layout::{AnyTree, Slot, Tree};
use tilewright_notation::Value;

use super::operand;
use super::tiled::{TiledCopy, TiledMma};
use super::trace::{Handle, RefusedStatement, Thing, run, shown};
use super::traced::Traced;
use super::view::{digits, mma_operand};
use crate::convert::python;

/// The coordinates of a tensor, or of a part of one: element `i` is a tuple of indices.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Coordinates {
    pub handle: Handle,
}

/// The coordinates of a tensor of a shape.
#[pyfunction]
pub fn coordinates<'py>(shape: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, shape) = (shape.py(), operand::launch_tree(shape)?);
    operand::made(py, move |room| Ok(Thing::Coordinates(room.build.coordinates(&shape)?)))
}

/// Whether each number of a coordinate is less than that of another coordinate.
#[pyfunction]
pub fn elem_less<'py>(at: &Bound<'py, PyAny>, bound: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, at, bound) = (at.py(), operand::launch_tree(at)?, operand::launch_tree(bound)?);
    operand::made(py, move |room| Ok(Thing::Flag(room.build.elem_less(&at, &bound)?)))
}

impl Coordinates {
    fn cut<'py>(
        &self,
        py: Python<'py>,
        cut: impl for<'k> FnOnce(&'k Build, KernelCoordinates<'k>) -> Result<KernelCoordinates<'k>, RefusedStatement>
        + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        operand::made(py, move |room| Ok(Thing::Coordinates(cut(room.build, room.coordinates(own)?)?)))
    }

    fn partition<'py>(&self, copy: &Bound<'py, TiledCopy>, end: CopyEnd) -> PyResult<Bound<'py, PyAny>> {
        let (by, thread) = (copy.get().copy.clone(), copy.get().thread.clone());
        self.cut(copy.py(), move |_, own| match &thread {
            None => Ok(own.partition(&by, end)?),
            Some(thread) => Ok(own.partition_at(&by, end, thread)?),
        })
    }
}

#[pymethods]
impl Coordinates {
    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        python(py, Value::from(AnyTree::from(run(py, move |room| Ok(room.coordinates(own)?.shape()))?)))
    }

    /// The coordinate of an index, or at a coordinate of the part; a part if `None` keeps modes.
    fn __getitem__<'py>(&self, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, at) = (at.py(), self.handle, operand::coordinate(at)?);
        if at.leaves().contains(&Slot::All) {
            return self.cut(py, move |build, own| Ok(own.slice(digits(build, &own.shape(), &at)?)?));
        }
        let found: Tree<_> = run(py, move |room| {
            let own = room.coordinates(own)?;
            let at = digits(room.build, &own.shape(), &at)?;
            Ok(own.slice(at)?.at(0)?)
        })?;
        python(py, Value::from(AnyTree::from(found)))
    }

    /// As for a tensor.
    #[pyo3(signature = (tiler, coord, proj = None))]
    fn local_tile<'py>(
        &self,
        tiler: &Bound<'py, PyAny>,
        coord: &Bound<'py, PyAny>,
        proj: Option<&Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, (tiler, coord)) = (tiler.py(), operand::projected(tiler, coord, proj)?);
        self.cut(py, move |_, own| Ok(own.local_tile(&tiler, coord)?))
    }

    /// As for a tensor.
    fn zipped_divide<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let text = operand::text(tiler)?;
        self.cut(tiler.py(), move |_, own| Ok(own.zipped_divide(&text)?))
    }

    /// As for a tensor.
    fn compose<'py>(&self, by: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let text = operand::text(by)?;
        self.cut(by.py(), move |_, own| Ok(own.compose(&text)?))
    }

    /// As for a tensor.
    fn partition_source<'py>(&self, copy: &Bound<'py, TiledCopy>) -> PyResult<Bound<'py, PyAny>> {
        self.partition(copy, CopyEnd::Source)
    }

    /// As for a tensor.
    fn partition_destination<'py>(&self, copy: &Bound<'py, TiledCopy>) -> PyResult<Bound<'py, PyAny>> {
        self.partition(copy, CopyEnd::Destination)
    }

    /// As for a tensor.
    fn partition_mma<'py>(&self, mma: &Bound<'py, TiledMma>, operand: &str) -> PyResult<Bound<'py, PyAny>> {
        let (by, thread, operand) = (mma.get().mma.clone(), mma.get().thread.clone(), mma_operand(operand)?);
        self.cut(mma.py(), move |_, own| match &thread {
            None => Ok(own.partition_mma(&by, operand)?),
            Some(thread) => Ok(own.partition_mma_at(&by, operand, thread)?),
        })
    }

    fn __repr__(&self) -> String {
        let own = self.handle;
        shown(own, move |room| Ok(format!("<identity tensor {}>", room.coordinates(own)?.shape())))
    }
}
