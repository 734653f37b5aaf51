//! Tile programs: computations without layouts.
//!
//! Python writes a program as text, with the Python location of each line. Errors are reported at
//! these locations.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::measured::DevicePlanner;
use tilewright_draw::explain::figures::tiles;
use tilewright_draw::{Figure, Style};
use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::Location;
use tilewright_layout::Refusal;
use tilewright_tile::{self as tile, Compiled, Explanation, Reason, TileError, Unchecked};

use super::named::Found;
use super::program::{Program, borrowed, of_check, sizes_of};
use super::{bench, library, operand};
use crate::interrupt::interruptible;
use crate::picture::Picture;
use crate::refusal;

/// A tile program, and its kernel.
#[pyclass(frozen, module = "tilewright")]
pub struct TileProgram {
    compiled: Compiled,
    /// The kernel.
    #[pyo3(get)]
    program: Py<Program>,
}

/// The exception for a refusal of a tile program.
pub fn refused(py: Python<'_>, error: &TileError) -> PyErr {
    let help = in_python(error.reason()).map(str::to_string).or_else(|| error.help());
    refusal::of_run(py, error.code(), &error.reason().to_string(), help.as_deref(), error.place())
}

/// A hint for an expression that Python writes differently from the language of tile programs.
fn in_python(reason: &Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::Broadcast { .. } => {
            "a broadcast makes other extents of extents of 1 alone; reshape the tile first, as in \
             `a.reshape((1, 64)).broadcast((4, 64))`"
        }
        Reason::Element { operation, .. } if operation == "a product" => {
            "convert both operands, as in `x.to(\"bf16\")`"
        }
        Reason::Element { operation, .. } if operation == "the accumulator of a dot" => {
            "begin with an accumulator of f32, as in `tw.tile.full((16, 16), 0.0)`"
        }
        Reason::Element { operation, .. } if operation == "a tensor" => return None,
        Reason::Element { operation, .. } if operation.starts_with("a store") => {
            "convert the tile before it is stored, as in `a.to(\"bf16\")`"
        }
        Reason::Element { .. } => "convert it, as in `a.to(\"f32\")`",
        Reason::Number { .. } => {
            "integers are whole and have ends; to compute with others convert the tile first, as in \
             `a.to(\"f32\") * 0.5`"
        }
        Reason::Unknown { what: "function", .. } => "`dir(tw.tile)` lists the functions of tiles",
        Reason::Unknown { what: "value" | "value of this program", .. } | Reason::Gone { .. } => {
            "a tile belongs to the body of the loop that makes it; carry it out: `s = tw.tile.carry(s)`, `for i in \
             tw.tile.range(n, s):`, and `s += ..` or `s.set(..)` in the body"
        }
        Reason::Iteration { .. } | Reason::Iterations { .. } => {
            "a carried tile keeps its shape and its type: convert or broadcast before `s.set(..)`, or begin with \
             another tile"
        }
        Reason::Role { tried: "declared again", .. } => return None,
        Reason::Role { tried, .. } if tried.starts_with("left unwritten") => {
            "store a tile to it, as in `y.store((tw.tile.block.x, 0), a)`, or leave the parameter out"
        }
        Reason::Role { .. } => {
            "annotate it as tw.Input to read it, as tw.Output to write it, as tw.InOut to change what is there"
        }
        Reason::Blocks { .. } | Reason::NoGrid { .. } => {
            "say how many tiles there are along each axis, as in `@tw.tile(grid=\"ceil(M/4)\")`"
        }
        Reason::Warps { .. } => "say another number, or leave `warps` out: then the plan chooses",
        Reason::Room { what, .. } if what.starts_with("warps") => "take larger tiles, or fewer warps, as in `warps=4`",
        Reason::Room { what, .. } if !what.starts_with("bytes") => "take smaller tiles, or more warps, as in `warps=8`",
        Reason::StoredTwice { .. } => {
            "leave one of both out, or combine them, as in `y.atomic_add(at, a)` of a tw.InOut"
        }
        Reason::Atom { .. } => "leave the atom out, and the passes choose one; `.explain()` says which",
        _ => return None,
    })
}

/// A location in Python: the file, the line and the column, and the end of the expression.
type Said = (String, u32, u32, Option<(u32, u32)>);

/// Parses a program, assigns layouts, and builds the kernel: for a machine, or one that runs on
/// every machine.
///
/// Errors: a refusal of the language, at the location of its line; there is no such machine.
#[pyfunction]
#[pyo3(signature = (text, places, machine = None))]
pub fn read_tiles(py: Python<'_>, text: &str, places: Vec<Said>, machine: Option<&str>) -> PyResult<TileProgram> {
    let machine = machine.map(|name| library::machine(py, name)).transpose()?;
    let places: Vec<Location> =
        places.iter().map(|(file, line, column, end)| Location::new(file, *line, *column, *end)).collect();
    compiled(py, || tile::Program::read_from(&places, text), machine)
}

/// Parses a program, and compiles it.
pub fn compiled(
    py: Python<'_>,
    read: impl FnOnce() -> Result<tile::Program, TileError> + Send,
    machine: Option<Machine>,
) -> PyResult<TileProgram> {
    let compiled = py.detach(|| {
        let program = read()?;
        program.compile(machine.as_ref())
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

    /// The number of warps per block.
    #[getter]
    fn warps(&self) -> i64 {
        self.compiled.warps()
    }

    /// The gradient by these inputs, or by all, as programs that are launched in order.
    fn gradient(
        &self,
        py: Python<'_>,
        of: Vec<String>,
        atomic: bool,
        merge: i64,
        machine: Option<&str>,
    ) -> PyResult<Vec<TileProgram>> {
        let machine = machine.map(|name| library::machine(py, name)).transpose()?;
        let options = tile::GradientOptions { of, atomic, blocks_merged: merge, ..Default::default() };
        let gradient = self.compiled.source().gradient(&options).map_err(|error| refused(py, &error))?;
        let programs = gradient.programs().iter();
        programs.map(|program| compiled(py, || Ok(program.clone()), machine.clone())).collect()
    }

    /// Runs the kernel on the interpreter, on given contents or on those of a check, and compares
    /// its outputs with the meaning of the program.
    fn check(
        &self,
        py: Python<'_>,
        sizes: &Bound<'_, PyDict>,
        contents: Vec<(String, PyReadonlyArray1<'_, u8>)>,
    ) -> PyResult<Found> {
        let sizes = sizes_of(sizes)?;
        let slice = |(name, bytes): &(String, PyReadonlyArray1<'_, u8>)| {
            let bytes = bytes.as_slice().map_err(|error| PyValueError::new_err(error.to_string()))?;
            PyResult::Ok((name.clone(), bytes.to_vec()))
        };
        let contents = contents.iter().map(slice).collect::<PyResult<Vec<_>>>()?;
        let given: Vec<(&str, &[u8])> =
            contents.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        match interruptible(py, || {
            self.compiled.check(tile::CheckOptions { sizes: &borrowed(&sizes), contents: &given })
        })? {
            Ok(report) => {
                let outputs = report.outputs.iter();
                let outputs = outputs.map(|own| (own.tensor.clone(), own.compared, own.farthest, own.rounding));
                Ok((report.checked.schedules.len(), report.checked.run.counts.total(), outputs.collect()))
            }
            Err(Unchecked::Program(error)) => Err(refused(py, &error)),
            Err(Unchecked::Interpreter(error)) => Err(of_check(py, &error)),
            Err(wrong) => Err(refusal::of_run(py, "", &wrong.to_string(), None, None)),
        }
    }

    /// Runs the program on a device, for which it is compiled: at the sizes `checked`, where its
    /// outputs are compared with the meaning of the program, and at the sizes that are timed.
    fn bench<'py>(
        &self,
        py: Python<'py>,
        checked: &Bound<'py, PyDict>,
        sizes: &Bound<'py, PyDict>,
        device: usize,
        repeats: i64,
    ) -> PyResult<(String, Bound<'py, PyDict>)> {
        let (checked, sizes) = (sizes_of(checked)?, sizes_of(sizes)?);
        let program = self.compiled.source();
        bench::on_device(py, device, repeats, |device, repeats| {
            let compiled = DevicePlanner::new(device)?.tile(program, &borrowed(&sizes)).map_err(Unchecked::Program)?;
            tilewright::bench::tile(device, &compiled, &borrowed(&checked), &borrowed(&sizes), repeats)
        })
    }

    /// The layout of each value, the cost of the next best one, and the conversions; and the
    /// pictures, each with the names of its values.
    fn explain(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, Picture)>)> {
        let explained = py.detach(|| self.compiled.explain()).map_err(|error| refused(py, &error))?;
        Ok((explained.to_string(), drawn(py, &explained)?))
    }
}

/// The pictures of the threads of each element, one for all values with the same shape and layout;
/// and of the layouts of values in shared memory.
fn drawn(py: Python<'_>, explained: &Explanation) -> PyResult<Vec<(String, Picture)>> {
    // Scalars, and values that no thread holds, have no picture of threads.
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

/// A picture of a figure that is drawn again for every style.
fn picture<E: Refusal>(
    py: Python<'_>,
    title: String,
    draw: impl Fn(Style) -> Result<Figure<'static>, E> + Send + Sync + 'static,
) -> PyResult<Picture> {
    draw(Style::default()).map_err(|error| refusal::of(py, &error))?;
    Ok(Picture::of(title, move |style| draw(style).unwrap_or_default()))
}

/// The name of an element type.
#[pyfunction]
pub fn element_name(element: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(operand::element(element)?.name())
}
