//! Pipelines: stages of shared memory that producer warps fill and consumer warps read.

use std::rc::Rc;

use pyo3::prelude::*;
use tilewright_layout::AnyTree;
use tilewright_notation::Value;

use super::operand;
use super::trace::{Handle, Thing, run};
use super::traced::Traced;
use super::view::View;
use crate::convert::python;

/// A ring of stages, each of which is free after a given number of releases.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Pipeline {
    pub handle: Handle,
}

/// A ring of this many stages, each of which is free after `releases` releases: one by each warp
/// that uses it.
#[pyfunction]
pub fn pipeline<'py>(py: Python<'py>, stages: i64, releases: u32) -> PyResult<Bound<'py, PyAny>> {
    operand::made(py, move |room| Ok(Thing::Pipeline(room.build.pipeline(stages, releases)?)))
}

#[pymethods]
impl Pipeline {
    /// The cursor of a role in the ring, at the first stage. The producers need one, and the
    /// consumers another.
    fn cursor<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        operand::made(py, move |room| Ok(Thing::Cursor(Rc::new(room.pipeline(own)?.cursor()?))))
    }
}

/// The stage and phase of the producers, or of the consumers, of a ring.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Cursor {
    pub handle: Handle,
}

#[pymethods]
impl Cursor {
    /// The current stage.
    fn stage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        operand::made(py, move |room| Ok(Thing::Stage(Rc::new(room.cursor(own)?.stage()?))))
    }

    /// Advances to the next stage, and after the last one to the first.
    fn advance(&self, py: Python<'_>) -> PyResult<()> {
        let own = self.handle;
        run(py, move |room| Ok(room.cursor(own)?.advance()?))
    }
}

/// An iteration of a ring.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Stage {
    pub handle: Handle,
}

#[pymethods]
impl Stage {
    /// The stage: the index in tensors of shared memory that have a mode of stages.
    #[getter]
    fn index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        python(py, Value::from(AnyTree::from(run(py, move |room| Ok(room.stage(own)?.index().clone()))?)))
    }

    /// Waits until the stage is free: for producers.
    fn acquire(&self, py: Python<'_>) -> PyResult<()> {
        let own = self.handle;
        run(py, move |room| Ok(room.stage(own)?.acquire()?))
    }

    /// Waits until the stage is full: for consumers.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let own = self.handle;
        run(py, move |room| Ok(room.stage(own)?.wait()?))
    }

    /// Issues bulk copies of a tile of a tensor into shared memory, by one thread (`with
    /// tw.single():`), that complete on the barrier of this stage.
    fn load(&self, source: &Bound<'_, View>, destination: &Bound<'_, View>) -> PyResult<()> {
        let (own, from, to) = (self.handle, source.get().handle, destination.get().handle);
        run(source.py(), move |room| Ok(room.stage(own)?.load(&room.view(from)?, &room.view(to)?)?))
    }

    /// Arrives for the copies that were issued into this stage, by the thread that issued them.
    fn publish(&self, py: Python<'_>) -> PyResult<()> {
        let own = self.handle;
        run(py, move |room| Ok(room.stage(own)?.publish()?))
    }

    /// Releases the stage for this warp.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let own = self.handle;
        run(py, move |room| Ok(room.stage(own)?.release()?))
    }
}
