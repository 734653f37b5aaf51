//! Tile programs: what is computed, without a layout.
//!
//! Python writes a program as a text, with the place in Python that each line comes from; what is
//! refused is refused there.

use pyo3::prelude::*;
use tilewright_draw::{Figure, Style};
use tilewright_explain::figures::tiles;
use tilewright_kernel::program::Location;
use tilewright_layout::Refusal;
use tilewright_tile::{self as tile, Compiled, Explanation, TileError};

use super::program::Program;
use super::{library, operand};
use crate::picture::Picture;
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

/// Reads a program, assigns layouts, and makes the kernel: for a machine, or one that runs on every
/// machine.
///
/// Errors: what the language refuses, at the place that its line comes from; there is no such
/// target.
#[pyfunction]
#[pyo3(signature = (text, places, target = None))]
pub fn read_tiles(py: Python<'_>, text: &str, places: Vec<Said>, target: Option<&str>) -> PyResult<TileProgram> {
    let target = target.map(library::target).transpose()?;
    let places: Vec<Location> =
        places.iter().map(|(file, line, column, end)| Location::new(file, *line, *column, *end)).collect();
    let compiled = py.detach(|| {
        let program = tile::Program::read_from(&places, text)?;
        match target {
            Some(target) => program.compile_for(target),
            None => program.compile(),
        }
    });
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

    /// The layout of each value, what the next best would have cost, and the conversions; and the
    /// pictures, each with the names of its values.
    fn explain(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, Picture)>)> {
        let explained = py.detach(|| self.compiled.explain()).map_err(|error| refused(py, &error))?;
        Ok((explained.to_string(), drawn(py, &explained)?))
    }
}

/// Who holds each tile, one picture for values of one shape and layout; and where those in shared
/// memory lie.
fn drawn(py: Python<'_>, explained: &Explanation) -> PyResult<Vec<(String, Picture)>> {
    // What no thread holds has no picture of threads, nor has one number.
    let is_held = |own: &&tile::Choice| {
        own.held.size() > 1 && !explained.staged.iter().any(|staged| !staged.is_read && staged.name == own.name)
    };
    let mut alike: Vec<(String, &tile::Choice)> = Vec::new();
    for choice in explained.choices.iter().filter(is_held) {
        let same =
            |own: &&mut (String, &tile::Choice)| (&own.1.held, &own.1.ty.shape) == (&choice.held, &choice.ty.shape);
        match alike.iter_mut().find(same) {
            Some((names, _)) => *names = format!("{names}, {}", choice.name),
            None => alike.push((choice.name.clone(), choice)),
        }
    }
    let mut found = Vec::new();
    for (names, choice) in alike {
        let (shape, heading) = (choice.ty.shape.clone(), format!("{} by {}", choice.ty, choice.held));
        let layout = choice.held.layout().map_err(|reason| refused(py, &reason.into()))?;
        let figure = move |style: Style| tiles::held(&heading, &layout, &shape, style);
        found.push((names.clone(), picture(py, names, figure)?));
    }
    for staged in explained.staged.clone() {
        let title = format!("{}: {} in shared memory, {}", staged.name, staged.tensor, staged.layout);
        let figure = move |style: Style| tiles::staged(&staged.layout, staged.bits, style);
        found.push((format!("{} in shared memory", staged.name), picture(py, title, figure)?));
    }
    Ok(found)
}

/// A picture that has been drawn once, so that it can be drawn in every style.
fn picture<E: Refusal>(
    py: Python<'_>,
    title: String,
    draw: impl Fn(Style) -> Result<Figure<'static>, E> + Send + Sync + 'static,
) -> PyResult<Picture> {
    draw(Style::default()).map_err(|error| refusal::of(py, &error))?;
    Ok(Picture::of(title, move |style| draw(style).unwrap_or_default()))
}

/// The name of a type of elements.
#[pyfunction]
pub fn element_name(element: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(operand::element(element)?.name())
}
