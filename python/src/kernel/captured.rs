//! The globals and closure variables that a Python function reads.
//!
//! Law: a later call reuses a traced kernel as long as each name is bound to the same object, and
//! no global shadows a builtin that the function uses. A name is looked up in the scope in which
//! the function would find it, which costs some nanoseconds for each name.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The scope of a name.
enum Place {
    /// In the globals of a module.
    Dict(Py<PyDict>),
    /// In a closure.
    Cell(Py<PyAny>),
}

/// Names outside of a function, and their objects.
#[pyclass(frozen, module = "tilewright")]
pub struct Captured {
    names: Vec<(Place, Py<PyString>, Py<PyAny>)>,
    /// Names that are not globals.
    unbound: Vec<(Py<PyDict>, Py<PyString>)>,
}

#[pymethods]
impl Captured {
    /// Names, each with a dict or a cell, and its object; and names that a dict must not have.
    #[new]
    fn new(
        names: Vec<(Bound<'_, PyAny>, Bound<'_, PyString>, Bound<'_, PyAny>)>,
        unbound: Vec<(Bound<'_, PyDict>, Bound<'_, PyString>)>,
    ) -> Captured {
        let names = names.into_iter().map(|(place, name, value)| {
            let place = match place.cast_into::<PyDict>() {
                Ok(dict) => Place::Dict(dict.unbind()),
                Err(cell) => Place::Cell(cell.into_inner().unbind()),
            };
            (place, name.unbind(), value.unbind())
        });
        let unbound = unbound.into_iter().map(|(dict, name)| (dict.unbind(), name.unbind()));
        Captured { names: names.collect(), unbound: unbound.collect() }
    }

    /// Whether each name is bound to the same object.
    fn unchanged(&self, py: Python<'_>) -> PyResult<bool> {
        for (place, name, value) in &self.names {
            let same = match place {
                Place::Dict(dict) => dict.bind(py).get_item(name)?.is_some_and(|now| now.is(value)),
                Place::Cell(cell) => {
                    let now = cell.bind(py).getattr(intern!(py, "cell_contents"));
                    now.is_ok_and(|now| now.is(value))
                }
            };
            if !same {
                return Ok(false);
            }
        }
        for (dict, name) in &self.unbound {
            if dict.bind(py).contains(name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
