//! Kernels and tile programs of the libraries, by name.
//!
//! Law: the command `tilewright kernel` lists, shows, writes, checks, costs and times kernels in
//! the same way, with the same names and at the same sizes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_planners::{self as planners, Entry, EntryOptions, PlanError, Planned, Unchecked};
use tilewright_tile::{self as tile, LIBRARY};

use super::bench;
use super::library;
use super::operand;
use super::program::{Program, Sizes, borrowed, of_check, sizes_of};
use super::tiles::{self, TileProgram};
use crate::interrupt::interruptible;
use crate::refusal;

enum NamedKind {
    Planned(&'static Entry),
    Tile(&'static tile::Entry),
}

/// A kernel of a library.
#[pyclass(frozen, module = "tilewright")]
pub struct NamedKernel {
    kind: NamedKind,
    /// The name.
    #[pyo3(get)]
    name: String,
}

/// The name of a tile program, made distinct from that of a kernel with the same name.
fn tile_name(entry: &tile::Entry) -> String {
    match planners::named(entry.name) {
        Ok(_) => format!("{}.tile", entry.name),
        Err(_) => entry.name.to_string(),
    }
}

/// All kernels of the libraries, and all tile programs.
#[pyfunction]
pub fn named_kernels() -> Vec<NamedKernel> {
    let planned = planners::library().iter();
    let planned = planned.map(|entry| NamedKernel { kind: NamedKind::Planned(entry), name: entry.name.to_string() });
    planned
        .chain(LIBRARY.iter().map(|entry| NamedKernel { kind: NamedKind::Tile(entry), name: tile_name(entry) }))
        .collect()
}

/// The results of a check: schedules, instructions, and for each tensor the number of elements, the
/// largest difference, and the tolerance for rounding.
pub type Found = (usize, u64, Vec<(String, u64, f64, f64)>);

#[pymethods]
impl NamedKernel {
    /// A description.
    #[getter]
    fn summary(&self) -> String {
        match self.kind {
            NamedKind::Planned(entry) => entry.summary.to_string(),
            NamedKind::Tile(entry) => entry.summary(),
        }
    }

    /// Its sizes, and their defaults for checks and for costs.
    #[getter]
    fn sizes(&self) -> Vec<(&'static str, i64, i64)> {
        let (sizes, large) = match self.kind {
            NamedKind::Planned(entry) => (entry.sizes, entry.large),
            NamedKind::Tile(entry) => (entry.sizes, entry.large),
        };
        sizes.iter().zip(large).map(|((name, small), large)| (*name, *small, *large)).collect()
    }

    /// The supported element types; None for a tile program, whose text gives them.
    #[getter]
    fn types(&self) -> Vec<&'static str> {
        match self.kind {
            NamedKind::Planned(entry) => entry.types.iter().map(|own| own.name()).collect(),
            NamedKind::Tile(_) => Vec::new(),
        }
    }

    /// The text of a tile program.
    #[getter]
    fn text(&self) -> Option<&'static str> {
        match self.kind {
            NamedKind::Planned(_) => None,
            NamedKind::Tile(entry) => Some(entry.text),
        }
    }

    /// The tile program, for a machine.
    fn tiles(&self, py: Python<'_>, machine: Option<&str>) -> PyResult<Option<TileProgram>> {
        let NamedKind::Tile(entry) = self.kind else { return Ok(None) };
        let machine = machine.map(|name| library::machine(py, name)).transpose()?;
        tiles::compiled(py, || tile::Program::read(entry.name, entry.text), machine).map(Some)
    }

    /// The plan of a kernel for a machine, its launches, and the sizes of a launch.
    fn planned(
        &self,
        py: Python<'_>,
        sizes: &Bound<'_, PyDict>,
        element: Option<Bound<'_, PyAny>>,
        machine: &str,
        large: bool,
    ) -> PyResult<(Vec<String>, Vec<Program>, Sizes)> {
        let planned = self.plan(py, sizes, element, machine, large)?;
        let fixed: Sizes = planned.sizes().iter().map(|(name, size)| ((*name).to_string(), *size)).collect();
        let program = |kernel: &tilewright_kernel::Kernel| Program {
            kernel: kernel.clone(),
            plan: planned.plan().to_vec(),
            fixed: fixed.clone(),
        };
        Ok((planned.plan().to_vec(), planned.launches().map(program).collect(), fixed))
    }

    /// Runs a planned kernel on the interpreter, and compares its outputs with the definition.
    fn check(
        &self,
        py: Python<'_>,
        sizes: &Bound<'_, PyDict>,
        element: Option<Bound<'_, PyAny>>,
        machine: &str,
    ) -> PyResult<(usize, u64, u64, f64)> {
        let planned = self.plan(py, sizes, element, machine, false)?;
        match interruptible(py, || planned.check())? {
            Ok(report) => {
                let runs = std::iter::once(&report.checked).chain(&report.second);
                let total = runs.map(|checked| checked.run.counts.total()).sum();
                Ok((report.checked.schedules.len(), total, report.compared as u64, report.worst))
            }
            Err(Unchecked::Interpreter(error)) => Err(of_check(py, &error)),
            Err(wrong) => Err(refusal::of_run(py, "", &wrong.to_string(), None, None)),
        }
    }

    /// Runs a planned kernel on a device, compares its outputs with the definition, and times it.
    fn bench<'py>(
        &self,
        py: Python<'py>,
        sizes: &Bound<'py, PyDict>,
        element: Option<Bound<'py, PyAny>>,
        device: usize,
        repeats: i64,
    ) -> PyResult<(String, Bound<'py, PyDict>)> {
        // Wrong arguments are refused before a device is opened.
        self.plan(py, sizes, element.clone(), "H200", true)?;
        let planned = self.plan(py, sizes, element, &format!("device:{device}"), true)?;
        bench::on_device(py, device, repeats, |device, repeats| tilewright::bench::kernel(device, &planned, repeats))
    }

    fn __repr__(&self) -> String {
        format!("<kernel {}: {}>", self.name, self.summary())
    }
}

impl NamedKernel {
    fn plan(
        &self,
        py: Python<'_>,
        sizes: &Bound<'_, PyDict>,
        element: Option<Bound<'_, PyAny>>,
        machine: &str,
        large: bool,
    ) -> PyResult<Planned> {
        let NamedKind::Planned(entry) = self.kind else {
            return Err(PyValueError::new_err(format!("{} is a tile program", self.name)));
        };
        let sizes = sizes_of(sizes)?;
        let element = element.map(|element| operand::element(&element)).transpose()?;
        let sizes = borrowed(&sizes);
        let planner = &*library::planner(py, machine)?;
        let planned = entry.plan(planner, EntryOptions { sizes: &sizes, element, large });
        planned.map_err(|error: PlanError| refusal::of(py, &error))
    }
}

/// How many blocks fill a machine: one for each scheduler of each multiprocessor.
#[pyfunction]
pub fn blocks_of_machine(py: Python<'_>, machine: &str) -> PyResult<u32> {
    Ok(library::machine(py, machine)?.schedulers())
}

/// The target of the kernels for a machine, by the name of either.
#[pyfunction]
pub fn target_of_machine(py: Python<'_>, machine: &str) -> PyResult<&'static str> {
    Ok(library::machine(py, machine)?.target.name())
}
