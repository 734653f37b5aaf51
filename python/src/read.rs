//! `tw.read`: reads layouts in the notation of other systems.

use std::str::FromStr as _;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_mesh::MeshError;
use tilewright_read::{Meaning, Options, System, Unit, document};

use crate::convert::python;
use crate::refusal;

/// A parsed text of another system: its meaning, its unit, and its location.
#[pyclass(frozen, module = "tilewright")]
pub struct Reading {
    pub(crate) reading: tilewright_read::Reading,
}

#[pymethods]
impl Reading {
    /// The name before the text, or None.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.reading.name.as_deref()
    }

    /// The line of the text, counted from 1.
    #[getter]
    fn line(&self) -> usize {
        self.reading.place.line
    }

    /// The column at which it begins, counted from 1.
    #[getter]
    fn column(&self) -> usize {
        self.reading.place.column
    }

    /// The system of the text, such as "cute-cpp".
    #[getter]
    fn system(&self) -> &'static str {
        self.reading.system.name()
    }

    /// Its kind, such as "layout" or "tiled copy".
    #[getter]
    fn what(&self) -> &'static str {
        self.reading.what
    }

    /// Its meaning: a layout, a swizzle, a linear layout, a tuple; the text of a sharded tensor.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.reading.meaning {
            Meaning::Value(value) => python(py, value.clone()),
            _ => Ok(self.reading.to_string().into_pyobject(py)?.into_any()),
        }
    }

    /// The unit of the values of the layout, such as "elements of 16 bits".
    #[getter]
    fn unit(&self) -> String {
        self.reading.unit.to_string()
    }

    /// The width of an element in bits, if the text gives it, or None.
    #[getter]
    fn bits(&self) -> Option<i64> {
        match self.reading.unit {
            Unit::Elements { bits } => bits,
            _ => None,
        }
    }

    /// The conversions, and the assumptions about the system of the text.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.reading.notes.clone()
    }

    /// The layouts inside of it by their names, such as those of a tiled copy.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parts = PyDict::new(py);
        for part in &self.reading.parts {
            parts.set_item(&part.name, python(py, part.value.clone())?)?;
        }
        Ok(parts)
    }

    fn __str__(&self) -> String {
        self.reading.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{} of {}: {}>", self.reading.what, self.reading.system.title(), self.reading)
    }
}

/// The layouts in a text of other systems: types, prints, dumps, logs.
///
/// `bits` is the width of an element and `shape` the shape of the tensor, if the text does not give
/// them; `mesh` is the mesh of a sharding that does not give it, such as "dp=2:4,tp=4:1"; `system`
/// is the system of the text, if it is ambiguous. Parts that are refused are left out if others
/// could be read; otherwise the refusal is raised.
#[pyfunction]
#[pyo3(signature = (text, /, *, bits = None, shape = None, mesh = None, system = None))]
pub fn read(
    py: Python<'_>,
    text: &str,
    bits: Option<i64>,
    shape: Option<Vec<i64>>,
    mesh: Option<&str>,
    system: Option<&str>,
) -> PyResult<Vec<Reading>> {
    let system = system.map(System::from_str).transpose().map_err(PyValueError::new_err)?;
    let mesh = mesh.map(str::parse).transpose().map_err(|error: MeshError| PyValueError::new_err(error.to_string()))?;
    let options = Options { element_bits: bits, shape, mesh, system };
    let mut refused = None;
    let mut readings = Vec::new();
    for item in py.detach(|| document(text, &options)).items {
        match item.answer {
            Ok(reading) => readings.push(Reading { reading }),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    match refused {
        Some(why) if readings.is_empty() => Err(refusal::of(py, &why)),
        _ => Ok(readings),
    }
}
