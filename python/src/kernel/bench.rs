//! Measurements on a device as Python objects.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::bench::{Against, BenchError, BenchResult};
use tilewright_gpu::Device;
use tilewright_planners::Unchecked;
use tilewright_tile as tile;

use super::program::{of_check, of_setup};
use super::tiles::refused;
use crate::{device, refusal};

/// Measures a kernel on a device. Returns the report, and its numbers by the names of the Python
/// attributes.
///
/// Errors: there is no such device; the kernel does not run there, or is wrong.
pub fn on_device<'py>(
    py: Python<'py>,
    ordinal: usize,
    repeats: i64,
    measure: impl FnOnce(&Device, u16) -> Result<BenchResult, BenchError> + Send,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let count = u16::try_from(repeats).ok().filter(|count| (1..=10_000).contains(count));
    let count = count.ok_or_else(|| PyValueError::new_err(format!("repeats is 1 to 10000, not {repeats}")))?;
    let device = device::device(py, ordinal)?;
    let measured = py.detach(|| measure(&device, count)).map_err(|error| of_bench(py, error))?;
    let numbers = PyDict::new(py);
    let sizes = |sizes: &[(String, i64)]| {
        let own = PyDict::new(py);
        sizes.iter().try_for_each(|(name, size)| own.set_item(name, size)).map(|()| own)
    };
    numbers.set_item("device", &measured.device)?;
    numbers.set_item("target", measured.target.name())?;
    numbers.set_item("plan", &measured.plan)?;
    numbers.set_item("sizes", sizes(&measured.sizes)?)?;
    numbers.set_item("bytes", measured.bytes)?;
    numbers.set_item("operations", measured.operations)?;
    numbers.set_item("repeats", measured.timing.repeats)?;
    numbers.set_item("seconds", measured.timing.seconds)?;
    numbers.set_item("copy_seconds", measured.timing.copy_seconds)?;
    numbers.set_item("graph_launches", measured.timing.recorded)?;
    numbers.set_item("bandwidth", measured.bandwidth())?;
    numbers.set_item("copy_bandwidth", measured.copy_bandwidth())?;
    numbers.set_item("compared", measured.compared)?;
    let checked = match &measured.against {
        Against::Meaning { sizes, .. } => sizes,
        _ => &measured.sizes,
    };
    numbers.set_item("checked_sizes", sizes(checked)?)?;
    Ok((measured.to_string(), numbers))
}

pub(super) fn of_bench(py: Python<'_>, error: BenchError) -> PyErr {
    match error {
        BenchError::Gpu(error) => refusal::of_gpu(py, &error),
        BenchError::Setup(error) => of_setup(py, &error),
        BenchError::Plan(error) => refusal::of(py, &error),
        BenchError::Kernel(Unchecked::Interpreter(error)) => of_check(py, &error),
        BenchError::Kernel(Unchecked::Layout(error)) => refusal::of(py, &error),
        BenchError::Tile(tile::Unchecked::Program(error)) => refused(py, &error),
        BenchError::Tile(tile::Unchecked::Interpreter(error)) => of_check(py, &error),
        wrong => refusal::of_run(py, "", &wrong.to_string(), None, None),
    }
}
