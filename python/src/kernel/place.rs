//! The location of a statement in Python source.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tilewright_kernel::program::Location;

/// The location of the Python expression outside of this package that is being evaluated. On Python
/// 3.10, which has no columns, it is the line.
pub fn caller(py: Python<'_>) -> PyResult<Location> {
    static PLACE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let place =
        PLACE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("tilewright._place")?.getattr("place")?.unbind()))?;
    let (file, line, column, end) = place.bind(py).call0()?.extract::<(String, u32, u32, Option<(u32, u32)>)>()?;
    Ok(Location::new(&file, line, column, end))
}
