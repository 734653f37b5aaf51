//! Runs and checks the PTX of any compiler on the host.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilewright_layout::interrupt;
use tilewright_sanitize::costs::SourceTexts;
use tilewright_sanitize::ptx::{Scalar, parse};
use tilewright_sanitize::{
    Argument, Array, Direction, Element, KernelLaunch, LaunchError, MapArray, MapSwizzle, MapView, Options, sanitize,
};

use crate::interrupt::interruptible;

fn refused(error: &LaunchError) -> PyErr {
    PyValueError::new_err(error.message.clone())
}

/// A parameter of a kernel: its name, its type such as `u64` or `f32`, and its bytes.
type ParameterOfEntry = (String, String, u64);

/// The entries of a text of PTX, each with its parameters.
///
/// Errors: the text cannot be read.
#[pyfunction]
pub fn ptx_entries(ptx: &str) -> PyResult<Vec<(String, Vec<ParameterOfEntry>)>> {
    let module = parse(ptx).map_err(|error| PyValueError::new_err(format!("PTX {error}")))?;
    let parameters = |own: &tilewright_sanitize::ptx::PtxFunction<'_>| {
        own.parameters.iter().map(|own| (own.name.to_string(), name_of(own.element).to_string(), own.bytes)).collect()
    };
    let entries = module.functions.iter().filter(|own| own.is_entry);
    Ok(entries.map(|own| (own.name.to_string(), parameters(own))).collect())
}

/// The name of a PTX type; bit types and unsigned types have the same names.
fn name_of(own: Scalar) -> &'static str {
    match (own.is_float(), own.is_signed(), own.bytes()) {
        (true, _, 2) => "f16",
        (true, _, 4) => "f32",
        (true, ..) => "f64",
        (_, true, 1) => "i8",
        (_, true, 2) => "i16",
        (_, true, 4) => "i32",
        (_, true, _) => "i64",
        (_, _, 1) => "u8",
        (_, _, 2) => "u16",
        (_, _, 4) => "u32",
        _ => "u64",
    }
}

/// An argument as Python passes it.
#[derive(FromPyObject)]
enum GivenArgument {
    /// A tensor map: a name, `in`, `out` or `inout`, a type, the extents, the bytes, the extents of
    /// a box, and the bytes of its swizzle.
    Map(String, String, String, Vec<u64>, Vec<u8>, Vec<u32>, u32),
    Array(String, String, String, Vec<u64>, Vec<u8>),
    /// The bytes of a number.
    Value(Vec<u8>),
}

impl GivenArgument {
    fn argument(self) -> PyResult<Argument> {
        let array = |name: String, direction: String, element: String, shape: Vec<u64>, bytes: Vec<u8>| {
            let unknown = |what: &str, given: &str| PyTypeError::new_err(format!("there is no {what} {given:?}"));
            let direction = match direction.as_str() {
                "in" => Direction::In,
                "out" => Direction::Out,
                "inout" => Direction::InOut,
                other => return Err(unknown("direction", other)),
            };
            let element = Element::read(&element).ok_or_else(|| unknown("type", &element))?;
            Ok(Array { name, direction, element, shape, bytes })
        };
        Ok(match self {
            GivenArgument::Array(name, direction, element, shape, bytes) => {
                Argument::Array(array(name, direction, element, shape, bytes)?)
            }
            GivenArgument::Value(bytes) => Argument::Value(bytes),
            GivenArgument::Map(name, direction, element, shape, bytes, extents, swizzle) => {
                let swizzle = match swizzle {
                    0 => MapSwizzle::None,
                    32 => MapSwizzle::Bytes32,
                    64 => MapSwizzle::Bytes64,
                    128 => MapSwizzle::Bytes128,
                    other => {
                        return Err(PyValueError::new_err(format!(
                            "a swizzle has 0, 32, 64 or 128 bytes, not {other}"
                        )));
                    }
                };
                let array = MapArray::Own(array(name, direction, element, shape, bytes)?);
                Argument::Map { array, view: MapView::tiled(extents, swizzle) }
            }
        })
    }
}

/// The report as JSON and as text; whether nothing was found; the bytes of each array that may be
/// written, by the index of its argument; and the costs of source lines, as text.
type Ran<'py> = (String, String, bool, Vec<(usize, Bound<'py, PyBytes>)>, Option<String>);

/// Runs an entry of a text of PTX on the host.
///
/// Errors: the text cannot be read, the launch does not fit it; ctrl-C.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the parts of a launch, as Python has them")]
pub fn sanitize_ptx<'py>(
    py: Python<'py>,
    ptx: String,
    entry: String,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: Option<[u32; 3]>,
    shared_bytes: u64,
    arguments: Vec<Bound<'py, PyAny>>,
    run: (u32, u64, u64, bool),
) -> PyResult<Ran<'py>> {
    let arguments = arguments.into_iter().map(|own| own.extract::<GivenArgument>()?.argument());
    let arguments = arguments.collect::<PyResult<Vec<_>>>()?;
    let launch = KernelLaunch { entry, grid, block, cluster, shared_bytes, arguments };
    let (schedules, seed, limit, costs) = run;
    let stop = interrupt::is_requested;
    let options = Options { schedules, seed, limit, costs, stop: Some(&stop), ..Options::default() };
    let report = interruptible(py, || sanitize(&ptx, &launch, &options))?.map_err(|error| refused(&error))?;
    let results = report.results.iter().map(|own| (own.argument, PyBytes::new(py, &own.bytes))).collect();
    let table = report.costs.as_ref().map(|costs| {
        let mut sources = SourceTexts::default();
        costs.table(&ptx, |file, line| sources.line(file, line))
    });
    Ok((report.to_json(), report.to_string(), report.is_clean(), results, table))
}
