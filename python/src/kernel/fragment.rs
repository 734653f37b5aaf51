//! Fragments: elements in the registers of a thread.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tilewright_layout::AnyLayout;
use tilewright_notation::Value;

use super::number::{self, arithmetic};
use super::operand::{self, Operand};
use super::tile;
use super::tiled;
use super::trace::{Handle, ObjectKind, RefusedStatement, Thing, run, shown};
use super::traced::Traced;
use crate::convert::python;

/// Elements in the registers of a thread. Operators make new fragments; `set`, `fill`, `clear` and
/// `+=` write to this one, so that a value is carried from one iteration of a loop to the next.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Fragment {
    pub handle: Handle,
}

impl Fragment {
    /// Writes the result of an operator to this fragment.
    fn update<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, function: number::Binary) -> PyResult<()> {
        let own = slf.get().handle;
        let other = operand::operand(other)?;
        run(slf.py(), move |room| {
            let made = number::combined(room, &Operand::Of(own), &other, function)?;
            let values = room.fragment(made)?.numbers()?;
            Ok(room.fragment(own)?.set(&values)?)
        })
    }
}

arithmetic! { Fragment {
    fn __iadd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<()> {
        Fragment::update(slf, other, number::binary::add)
    }

    fn __isub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<()> {
        Fragment::update(slf, other, number::binary::subtract)
    }

    fn __imul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<()> {
        Fragment::update(slf, other, number::binary::multiply)
    }

    fn __itruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<()> {
        Fragment::update(slf, other, number::binary::divide)
    }

    /// The layout: from coordinates to registers.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        let layout = run(py, move |room| Ok(room.fragment(own)?.layout().clone()))?;
        python(py, Value::Layout(AnyLayout::from(layout)))
    }

    /// The shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let own = self.handle;
        python(py, Value::from(tilewright_layout::AnyTree::from(run(py, move |room| Ok(room.fragment(own)?.shape()))?)))
    }

    /// The type of the elements.
    #[getter]
    fn element(&self, py: Python<'_>) -> PyResult<&'static str> {
        let own = self.handle;
        run(py, move |room| Ok(room.fragment(own)?.element().name()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let own = self.handle;
        run(py, move |room| Ok(room.fragment(own)?.size()))
    }

    /// The part at a coordinate, in which `None` keeps a mode: the same registers.
    fn __getitem__<'py>(&self, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, at) = (at.py(), self.handle, operand::known_coordinate(at)?);
        operand::made(py, move |room| Ok(Thing::Fragment(room.fragment(own)?.slice(at)?)))
    }

    /// Writes a number, or the elements of a fragment, to the elements at a coordinate or index.
    fn __setitem__(&self, at: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, own, at, with) =
            (at.py(), self.handle, operand::known_coordinate(at)?, operand::operand(value)?);
        run(py, move |room| {
            let part = room.fragment(own)?.slice(at)?;
            match &with {
                Operand::Of(handle) if handle.kind() == ObjectKind::Fragment => Ok(part.assign(&room.fragment(*handle)?)?),
                with => Ok(part.fill(with.number(room, part.element())?)?),
            }
        })
    }

    /// The numbers of the elements, by index.
    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let own = self.handle;
        let numbers = run(py, move |room| {
            let numbers = room.fragment(own)?.numbers()?;
            Ok(numbers.into_iter().map(|number| room.keep(Thing::Number(number))).collect::<Vec<Handle>>())
        })?;
        PyList::new(py, numbers.into_iter().map(|made| operand::object(py, made)).collect::<PyResult<Vec<_>>>()?)
    }

    /// Writes the same number to each element.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (own, with) = (self.handle, operand::operand(value)?);
        run(value.py(), move |room| {
            let fragment = room.fragment(own)?;
            Ok(fragment.fill(with.number(room, fragment.element())?)?)
        })
    }

    /// Writes 0 to each element.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let own = self.handle;
        run(py, move |room| {
            room.fragment(own)?.clear();
            Ok(())
        })
    }

    /// Writes each element: those of another fragment, or of a list of numbers.
    fn set(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let own = self.handle;
        if let Ok(other) = values.cast::<Fragment>() {
            let other = other.get().handle;
            return run(values.py(), move |room| {
                let values = room.fragment(other)?.numbers()?;
                Ok(room.fragment(own)?.set(&values)?)
            });
        }
        let list = values.try_iter()?.map(|value| operand::operand(&value?)).collect::<PyResult<Vec<_>>>()?;
        run(values.py(), move |room| {
            let fragment = room.fragment(own)?;
            let each = list.iter().map(|value| value.number(room, fragment.element()));
            Ok(fragment.set(&each.collect::<Result<Vec<_>, RefusedStatement>>()?)?)
        })
    }

    /// A new fragment of the same shape: a function of the elements of this one and of others, at
    /// equal indices.
    #[pyo3(signature = (function, /, *others))]
    fn map<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
        others: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let own = slf.get().handle;
        let mut columns = vec![slf.get().numbers(py)?];
        for other in others {
            let other = other.cast::<Fragment>().map_err(|_| PyTypeError::new_err("the others are fragments"))?;
            columns.push(other.get().numbers(py)?);
        }
        if columns.iter().any(|column| column.len() != columns[0].len()) {
            return Err(PyTypeError::new_err("fragments of one `map` have as many elements each"));
        }
        let mut made = Vec::with_capacity(columns[0].len());
        for at in 0..columns[0].len() {
            let numbers = columns.iter().map(|column| column.get_item(at)).collect::<PyResult<Vec<_>>>()?;
            made.push(operand::operand(&function.call1(PyTuple::new(py, numbers)?)?)?);
        }
        operand::made(py, move |room| {
            let like = room.fragment(own)?;
            let values = made.iter().map(|value| value.number(room, like.element())).collect::<Result<Vec<_>, RefusedStatement>>()?;
            let element = values.first().map_or(like.element(), |value| value.element());
            let fragment = room.build.register(element, &like.shape().to_string())?;
            fragment.set(&values)?;
            Ok(Thing::Fragment(fragment))
        })
    }

    /// A new fragment of the same shape, converted to another type.
    fn to<'py>(&self, py: Python<'py>, element: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (own, element) = (self.handle, operand::element(element)?);
        operand::made(py, move |room| Ok(Thing::Fragment(room.fragment(own)?.to(element)?)))
    }

    /// The same registers under another layout of as many elements.
    fn with_layout<'py>(&self, layout: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, layout) = (layout.py(), self.handle, operand::layout(layout)?);
        operand::made(py, move |room| Ok(Thing::Fragment(room.fragment(own)?.with_layout(&layout)?)))
    }

    /// The same registers, with the modes of the source of a tiled copy.
    fn retile_source<'py>(&self, copy: &Bound<'py, tiled::TiledCopy>) -> PyResult<Bound<'py, PyAny>> {
        self.retiled(copy, tilewright_layout::atoms::CopyEnd::Source)
    }

    /// The same registers, with the modes of the destination of a tiled copy.
    fn retile_destination<'py>(&self, copy: &Bound<'py, tiled::TiledCopy>) -> PyResult<Bound<'py, PyAny>> {
        self.retiled(copy, tilewright_layout::atoms::CopyEnd::Destination)
    }

    /// The fragment as a tile in the registers of all threads.
    fn distributed<'py>(&self, held: &Bound<'py, tile::Distribution>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, held) = (held.py(), self.handle, held.get().held.clone());
        operand::made(py, move |room| Ok(Thing::Tile(room.fragment(own)?.distributed(&held)?)))
    }

    fn __repr__(&self) -> String {
        let own = self.handle;
        shown(own, move |room| {
            let fragment = room.fragment(own)?;
            Ok(format!("<fragment {} of {}>", fragment.layout(), fragment.element()))
        })
    }
} }

impl Fragment {
    fn retiled<'py>(
        &self,
        copy: &Bound<'py, tiled::TiledCopy>,
        end: tilewright_layout::atoms::CopyEnd,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own, copy) = (copy.py(), self.handle, copy.get().copy.clone());
        operand::made(py, move |room| Ok(Thing::Fragment(room.fragment(own)?.retile(&copy, end)?)))
    }
}
