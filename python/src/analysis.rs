//! Costs of memory accesses, and changes that lower them.
//!
//! Law: the numbers are those of the crate that the command uses; this module only names them in
//! Python.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tilewright_draw::explain::map::plain;
use tilewright_draw::explain::requests::{conflicts, sectors};
use tilewright_layout::analysis::{
    Access, AnalysisError, Banks, Proof, Remedy, Storage, bank_conflicts, footprint, global_access, permutation,
    phase_hits, request_units, suggest,
};
use tilewright_layout::{AnyLayout, Composed, Kind, Tree};
use tilewright_notation::Value;

use crate::convert::{self, python};
use crate::picture::Picture;
use crate::{notes, refusal};

fn refused(py: Python<'_>) -> impl Fn(AnalysisError) -> PyErr + '_ {
    move |error| refusal::of(py, &error)
}

/// The storage of the elements of a layout.
fn storage(py: Python<'_>, value: &Value) -> PyResult<Storage> {
    match value {
        Value::Layout(layout) if layout.kind() != Kind::Coordinate && layout.kind() != Kind::CoordinateComposed => {
            Storage::new(layout).map_err(refused(py))
        }
        value => match plain(value) {
            Some(layout) => Ok(Storage::from(&layout)),
            None => Err(PyTypeError::new_err(format!("expected a layout of offsets, not a {}", value.kind()))),
        },
    }
}

/// A tile without parameters.
fn tile(py: Python<'_>, value: &Value) -> PyResult<Composed> {
    match value {
        Value::Layout(AnyLayout::Composed(map)) => Ok(Composed::clone(map)),
        Value::Layout(AnyLayout::Xor(layout)) => {
            let composed = layout.bit_matrix().and_then(|matrix| matrix.to_composed(&layout.shape()));
            composed.map_err(|error| refusal::of_layout(py, error))
        }
        value => match plain(value) {
            Some(layout) => Ok(Composed::from(&layout)),
            None => Err(PyTypeError::new_err(format!("expected a layout of known offsets, not a {}", value.kind()))),
        },
    }
}

/// An access: a name such as `rows:8`, a layout from (thread, value) to an index, or None for the
/// layout's own modes as threads and values.
fn access(
    shape: &Tree<i64>,
    spec: Option<&Bound<'_, PyAny>>,
    bits: i64,
    vector: i64,
    py: Python<'_>,
) -> PyResult<Access> {
    let Some(spec) = spec else { return Access::thread_values(shape, bits, vector).map_err(refused(py)) };
    if let Ok(text) = spec.cast::<PyString>()
        && let Some(access) = Access::of_name(text.to_str()?, shape, bits, vector).map_err(refused(py))?
    {
        return Ok(access);
    }
    let value = convert::value(spec)?;
    match plain(&value) {
        Some(pattern) => Access::new(&value.to_string(), &pattern, bits, vector).map_err(refused(py)),
        None => {
            let known =
                "threads, rows, columns, ldmatrix.x4 and the like, or a layout from (thread, value) to an index";
            Err(PyTypeError::new_err(format!("an access is {known}, not a {}", value.kind())))
        }
    }
}

fn lanes(access: &Access, fields: &Bound<'_, PyDict>) -> PyResult<()> {
    fields.set_item("access", access.name())?;
    fields.set_item("threads", access.threads())?;
    fields.set_item("bytes", access.bytes())?;
    fields.set_item("instructions", access.instructions())
}

/// Bank conflicts of an access to shared memory, as fields.
#[pyfunction]
pub fn banks<'py>(
    layout: &Bound<'py, PyAny>,
    spec: Option<&Bound<'py, PyAny>>,
    bits: i64,
    vector: i64,
    count: i64,
    bytes: i64,
    phase: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = layout.py();
    let value = convert::value(layout)?;
    notes::of_width(py, &value, bits)?;
    let storage = storage(py, &value)?;
    let access = access(storage.shape(), spec, bits, vector, py)?;
    let banks = Banks::new(count, bytes).map_err(refused(py))?;
    let report = bank_conflicts(&storage, &access, banks).map_err(refused(py))?;
    let fields = PyDict::new(py);
    fields.set_item("layout", storage.text())?;
    lanes(&access, &fields)?;
    fields.set_item("degree", report.degree())?;
    fields.set_item("wavefronts", report.wavefronts())?;
    fields.set_item("ideal", report.ideal())?;
    fields.set_item("phases", report.phases().iter().map(|phase| phase.degree).collect::<Vec<_>>())?;
    let number = phase.unwrap_or_else(|| report.worst());
    known(number, report.phases().len(), "phase")?;
    let hits = phase_hits(&storage, &access, banks, number).map_err(refused(py))?;
    let draws = move |style| conflicts(&access, &report, number, &hits, banks, style);
    fields.set_item("picture", Picture::of(storage.text().to_owned(), draws))?;
    Ok(fields)
}

/// Sectors of an access to global memory, as fields.
#[pyfunction]
pub fn access_of<'py>(
    layout: &Bound<'py, PyAny>,
    spec: Option<&Bound<'py, PyAny>>,
    bits: i64,
    vector: i64,
    request: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = layout.py();
    let value = convert::value(layout)?;
    notes::of_width(py, &value, bits)?;
    let storage = storage(py, &value)?;
    let access = access(storage.shape(), spec, bits, vector, py)?;
    let report = global_access(&storage, &access).map_err(refused(py))?;
    let fields = PyDict::new(py);
    fields.set_item("layout", storage.text())?;
    lanes(&access, &fields)?;
    fields.set_item("sectors", report.sectors())?;
    fields.set_item("ideal", report.ideal())?;
    fields.set_item("lines", report.lines())?;
    fields.set_item("efficiency", report.efficiency())?;
    let number = request.unwrap_or_else(|| report.worst());
    known(number, report.requests().len(), "request")?;
    let units = request_units(&storage, &access, number).map_err(refused(py))?;
    let draws = move |style| sectors(&access, &report, number, &units, style);
    fields.set_item("picture", Picture::of(storage.text().to_owned(), draws))?;
    Ok(fields)
}

/// An error if a phase or request with this number does not exist.
fn known(number: usize, count: usize, what: &str) -> PyResult<()> {
    if number < count {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("there is no {what} {number}: there are {count}")))
}

/// Changes that make accesses to shared memory cheaper, as fields.
#[pyfunction]
pub fn suggestions<'py>(
    layout: &Bound<'py, PyAny>,
    specs: Vec<Bound<'py, PyAny>>,
    bits: i64,
    vector: i64,
    count: i64,
    bytes: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let py = layout.py();
    let tile = tile(py, &convert::value(layout)?)?;
    let shape = tile.shape();
    let specs = if specs.is_empty() { vec![None] } else { specs.iter().map(Some).collect() };
    let accesses =
        specs.into_iter().map(|spec| access(&shape, spec, bits, vector, py)).collect::<PyResult<Vec<_>>>()?;
    let banks = Banks::new(count, bytes).map_err(refused(py))?;
    let advice = py.detach(|| suggest(tile, &accesses, banks)).map_err(refused(py))?;
    let fields = PyDict::new(py);
    fields.set_item("wavefronts", advice.wavefronts())?;
    fields.set_item("ideal", advice.ideal())?;
    let mut found = Vec::new();
    for suggestion in &advice.suggestions {
        let told = PyDict::new(py);
        let (kind, change) = match &suggestion.remedy {
            Remedy::Swizzle(swizzle) => ("swizzle", python(py, (*swizzle).into())?),
            Remedy::Linear(matrix) => ("linear map", python(py, matrix.clone().into())?),
            Remedy::Padding { stride, elements } => ("padding", (*stride, *elements).into_pyobject(py)?.into_any()),
            Remedy::Threads { access, pattern } => {
                ("threads", (*access, python(py, pattern.clone().into())?).into_pyobject(py)?.into_any())
            }
            _ => continue,
        };
        told.set_item("kind", kind)?;
        told.set_item("change", change)?;
        told.set_item("layout", convert::python(py, convert::program(py, &suggestion.text())?)?)?;
        told.set_item("wavefronts", suggestion.wavefronts())?;
        told.set_item("extra", suggestion.extra)?;
        told.set_item(
            "proof",
            match suggestion.proof {
                Proof::Bound => "bound",
                Proof::Exhausted => "exhausted",
                Proof::Open => "open",
            },
        )?;
        found.push(told);
    }
    fields.set_item("suggestions", found)?;
    Ok(fields)
}

/// The footprint of a layout in memory, as fields.
#[pyfunction]
pub fn covered<'py>(layout: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = layout.py();
    let storage = storage(py, &convert::value(layout)?)?;
    let found = footprint(&storage).map_err(refused(py))?;
    let fields = PyDict::new(py);
    fields.set_item("layout", storage.text())?;
    fields.set_item("indices", found.indices)?;
    fields.set_item("offsets", found.offsets)?;
    fields.set_item("least", found.least)?;
    fields.set_item("greatest", found.greatest)?;
    fields.set_item("span", found.span())?;
    fields.set_item("holes", found.holes())?;
    fields.set_item("gaps", &found.gaps)?;
    fields.set_item("shared", found.shared)?;
    fields.set_item("contiguity", found.contiguity)?;
    fields.set_item("ascending", found.ascending)?;
    fields.set_item("alias", found.alias)?;
    fields.set_item("cycles", permutation(&storage).ok().map(|permuted| permuted.cycles().to_vec()))?;
    Ok(fields)
}
