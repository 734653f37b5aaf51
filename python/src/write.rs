//! `tw.write`: a layout in the spelling of another system. `tw.same`: whether two layouts of any
//! systems are one function.

use std::str::FromStr as _;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tilewright::same::{Same, same as compare};
use tilewright_kernel::{Element, Route};
use tilewright_layout::Refusal as _;
use tilewright_notation::{Environment, evaluate};
use tilewright_read::{Meaning, Options, System, expression};

use crate::read::Reading;
use crate::{convert, notes, refusal};

/// What an argument means: a value, something that `tw.read` gave, an expression, or a text of
/// another system.
///
/// Errors: the text is neither an expression nor a layout of another system (`LayoutError`); the
/// object stands for no value (`TypeError`).
fn meaning(object: &Bound<'_, PyAny>, options: &Options) -> PyResult<Meaning> {
    let py = object.py();
    if let Ok(reading) = object.cast::<Reading>() {
        return Ok(reading.get().reading.meaning.clone());
    }
    let Ok(text) = object.cast::<PyString>() else {
        return convert::value(object).map(Meaning::Value);
    };
    let source = text.to_str()?;
    let mut environment = Environment::new();
    environment.keep_notes();
    match evaluate(source, &mut environment) {
        Ok(value) => {
            notes::of_program(py, &environment.take_notes())?;
            Ok(Meaning::Value(value))
        }
        // An expression that the algebra refuses is no text of another system.
        Err(error) if !error.code.starts_with("E02") => Err(refusal::of_program(py, &error, source)),
        Err(error) => match expression(source, options) {
            Ok(reading) => Ok(reading.meaning),
            // What no reader knows is an expression that is wrong.
            Err(refused) if refused.code() == "E1301" => Err(refusal::of_program(py, &error, source)),
            Err(refused) => Err(refusal::of(py, &refused)),
        },
    }
}

/// A layout in the spelling of another system: cute-cpp, cute-dsl, triton, gluon, tilelang, tirx,
/// torch or jax.
///
/// `layout` is a value, an expression, a text of another system, or what `tw.read` gave. `shape` is
/// the shape of the tensor, or of the tile whose elements threads hold; `bits` is the width of an
/// element, where a text does not say it. What is written reads back as the same function; what the
/// system cannot say is refused with the reason.
#[pyfunction]
#[pyo3(signature = (layout, system, /, *, shape = None, bits = None))]
pub fn write(layout: &Bound<'_, PyAny>, system: &str, shape: Option<Vec<i64>>, bits: Option<i64>) -> PyResult<String> {
    let system = System::from_str(system).map_err(PyValueError::new_err)?;
    let options = Options { element_bits: bits, shape, system: None };
    let meaning = meaning(layout, &options)?;
    tilewright_read::write(&meaning, system, &options).map_err(|refused| refusal::of(layout.py(), &refused))
}

/// What a comparison of two layouts found. It is true where they are one function.
#[pyclass(frozen, module = "tilewright")]
pub struct Comparison {
    found: Same,
}

#[pymethods]
impl Comparison {
    /// What was compared, such as "128 threads hold 32 values each of the 64x64 tile".
    #[getter]
    fn compared(&self) -> &str {
        &self.found.compared
    }

    /// Where the two differ first, as a sentence; None where they are one function.
    #[getter]
    fn difference(&self) -> Option<&str> {
        self.found.difference.as_deref()
    }

    /// What moves the data from the first to the second: "registers", "shuffles" or "shared
    /// memory"; None where nothing moves, or the planner knows no way.
    #[getter]
    fn route(&self) -> Option<&'static str> {
        self.found.movement.map(|movement| match movement.route {
            Route::Registers => "registers",
            Route::Lanes => "shuffles",
            Route::Shared => "shared memory",
        })
    }

    /// About how many instructions each warp executes for it; None where `route` is.
    #[getter]
    fn instructions(&self) -> Option<u32> {
        self.found.movement.map(|movement| movement.instructions)
    }

    fn __bool__(&self) -> bool {
        self.found.difference.is_none()
    }

    fn __str__(&self) -> String {
        self.found.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{}>", self.found)
    }
}

/// Whether two layouts of any systems are one function, and what moves data from one to the other.
///
/// Each is a value, an expression, a text of another system, or what `tw.read` gave. Layouts of
/// threads and values are compared at every thread and value, others at every coordinate. `shape`
/// is the shape of the tile whose elements threads hold, and `bits` the width of an element: 8, 16,
/// 32 or 64.
#[pyfunction]
#[pyo3(signature = (left, right, /, *, shape = None, bits = 32))]
pub fn same(
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
    shape: Option<Vec<i64>>,
    bits: i64,
) -> PyResult<Comparison> {
    let py = left.py();
    let element = match bits {
        8 => Element::U8,
        16 => Element::F16,
        32 => Element::F32,
        64 => Element::F64,
        other => return Err(PyValueError::new_err(format!("bits is 8, 16, 32 or 64, and not {other}"))),
    };
    let options = Options { element_bits: None, shape: shape.clone(), system: None };
    let (left, right) = (meaning(left, &options)?, meaning(right, &options)?);
    let found = py.detach(|| compare(&left, &right, shape.as_deref(), element));
    found.map(|found| Comparison { found }).map_err(|refused| refusal::of(py, &refused))
}
