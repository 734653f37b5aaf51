//! Tile programs: what is computed, without a layout.
//!
//! Python writes a program as a text, with the place in Python that each line comes from; what is
//! refused is refused there.

use pyo3::prelude::*;
use tilewright_kernel::program::Location;
use tilewright_layout::Refusal;
use tilewright_tile::{self as tile, Compiled, TileError};

use super::operand;
use super::program::Program;
use crate::refusal;

/// A tile program, and the kernel that it became.
#[pyclass(frozen, module = "tilewright")]
pub struct TileProgram {
    compiled: Compiled,
    /// The kernel.
    #[pyo3(get)]
    program: Py<Program>,
}

fn refused(py: Python<'_>, error: &TileError) -> PyErr {
    refusal::of_run(py, error.code(), &error.reason().to_string(), error.help().as_deref(), error.place())
}

/// A place in Python: the file, the line and the column, and where the expression ends.
type Said = (String, u32, u32, Option<(u32, u32)>);

/// Reads a program, assigns layouts, and makes the kernel.
///
/// Errors: what the language refuses, at the place that its line comes from.
#[pyfunction]
pub fn read_tiles(py: Python<'_>, text: &str, places: Vec<Said>) -> PyResult<TileProgram> {
    let places: Vec<Location> =
        places.iter().map(|(file, line, column, end)| Location::new(file, *line, *column, *end)).collect();
    let compiled = py.detach(|| tile::Program::read_from(&places, text)?.compile());
    let compiled = compiled.map_err(|error| refused(py, &error))?;
    let program = Program { kernel: compiled.kernel().clone(), plan: Vec::new(), fixed: Vec::new() };
    Ok(TileProgram { compiled, program: Py::new(py, program)? })
}

#[pymethods]
impl TileProgram {
    /// The text, as the language prints it.
    #[getter]
    fn text(&self) -> String {
        self.compiled.source().to_string()
    }

    /// How many warps a block has.
    #[getter]
    fn warps(&self) -> i64 {
        self.compiled.warps()
    }

    /// The layout of each value, what the next best would have cost, and the conversions.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        let explained = py.detach(|| self.compiled.explain());
        Ok(explained.map_err(|error| refused(py, &error))?.to_string())
    }
}

/// The name of a type of elements.
#[pyfunction]
pub fn element_name(element: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(operand::element(element)?.name())
}
