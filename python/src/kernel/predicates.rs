//! Predicates of elements, for `copy(.., pred=)`.

use pyo3::prelude::*;
use tilewright_layout::AnyLayout;
use tilewright_notation::Value;

use super::number::Condition;
use super::operand;
use super::trace::{Handle, Thing, run, shown};
use super::traced::Traced;
use crate::convert::python;

/// Predicates under a layout, one for each element of a part or for each vector of an instruction.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Predicates {
    pub handle: Handle,
}

/// Predicates without values yet, under a layout; elements with equal offsets share one.
#[pyfunction]
pub fn predicates<'py>(layout: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, layout) = (layout.py(), operand::layout(layout)?);
    operand::made(py, move |room| Ok(Thing::Predicates(room.build.predicates(&layout)?)))
}

#[pymethods]
impl Predicates {
    /// The layout: from coordinates to registers.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        let layout = run(py, move |room| Ok(room.predicates(own)?.layout().clone()))?;
        python(py, Value::Layout(AnyLayout::from(layout)))
    }

    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        let shape = run(py, move |room| Ok(room.predicates(own)?.shape()))?;
        python(py, Value::from(tilewright_layout::AnyTree::from(shape)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let own = self.handle;
        run(py, move |room| Ok(room.predicates(own)?.layout().size() as usize))
    }

    /// The predicate at a coordinate or index; several predicates if `None` keeps modes.
    fn __getitem__<'py>(&self, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, at) = (at.py(), self.handle, operand::known_coordinate(at)?);
        let open = at.leaves().contains(&tilewright_layout::Slot::All);
        operand::made(py, move |room| {
            let part = room.predicates(own)?.slice(at)?;
            Ok(if open { Thing::Predicates(part) } else { Thing::Flag(part.at(0)?) })
        })
    }

    /// Sets the predicates at a coordinate or index.
    fn __setitem__(&self, at: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, own, at) = (at.py(), self.handle, operand::known_coordinate(at)?);
        let value = Condition::asked(value)?;
        run(py, move |room| Ok(room.predicates(own)?.slice(at)?.fill(value.flag(room)?)?))
    }

    /// Sets every predicate to this value.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (own, condition) = (self.handle, Condition::asked(value)?);
        run(value.py(), move |room| Ok(room.predicates(own)?.fill(condition.flag(room)?)?))
    }

    fn __repr__(&self) -> String {
        let own = self.handle;
        shown(own, move |room| Ok(format!("<predicate {}>", room.predicates(own)?.layout())))
    }
}
