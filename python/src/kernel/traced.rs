//! The base class of all traced values.
//!
//! Law: every operation of Python's data model on an object of such a class is either added to the
//! kernel or refused. The refusals are in `_traced.py`, which adds them to this class; classes in
//! Rust and in Python inherit them.

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A value of a function that is being traced.
#[pyclass(frozen, subclass, module = "tilewright")]
pub struct Traced;

#[pymethods]
impl Traced {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Traced {
        Traced
    }
}

/// An object of a class of traced values.
pub fn object<T: PyClass<BaseType = Traced>>(py: Python<'_>, value: T) -> PyResult<Bound<'_, T>> {
    Bound::new(py, PyClassInitializer::from(Traced).add_subclass(value))
}
