//! `tw.write`: a layout in the notation of another system. `tw.same`: whether two layouts of any
//! systems are the same function.

use std::str::FromStr as _;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tilewright::same::{Same, same as compare};
use tilewright_kernel::{Element, Route};
use tilewright_layout::Refusal as _;
use tilewright_notation::{Environment, evaluate};
use tilewright_read::{Meaning, Options, System, Unit, common_unit, expression};

use crate::read::Reading;
use crate::{convert, notes, refusal};

/// The value of an argument: a value, a result of `tw.read`, an expression, or a text of another
/// system; and the unit of its values, if a text contains it.
///
/// Errors: the text is neither an expression nor a layout of another system (`LayoutError`); the
/// object has no value (`TypeError`).
fn meaning(object: &Bound<'_, PyAny>, options: &Options) -> PyResult<(Meaning, Unit)> {
    let py = object.py();
    if let Ok(reading) = object.cast::<Reading>() {
        let reading = &reading.get().reading;
        return Ok((reading.meaning.clone(), reading.unit));
    }
    let Ok(text) = object.cast::<PyString>() else {
        return convert::value(object).map(|value| (Meaning::Value(value), Unit::None));
    };
    let source = text.to_str()?;
    let mut environment = Environment::new();
    environment.keep_notes();
    match evaluate(source, &mut environment) {
        Ok(value) => {
            notes::of_program(py, &environment.take_notes())?;
            Ok((Meaning::Value(value), Unit::None))
        }
        // An expression that the algebra refuses is not a text of another system.
        Err(error) if !error.code.starts_with("E02") => Err(refusal::of_program(py, &error, source)),
        Err(error) => match expression(source, options) {
            Ok(reading) => Ok((reading.meaning, reading.unit)),
            // A text that no reader recognises is a wrong expression.
            Err(refused) if refused.code() == "E1301" => Err(refusal::of_program(py, &error, source)),
            Err(refused) => Err(refusal::of(py, &refused)),
        },
    }
}

/// A layout in the spelling of another system: cute-cpp, cute-dsl, triton, gluon, tilelang, tirx,
/// torch or jax.
///
/// `layout` is a value, an expression, a text of another system, or a result of `tw.read`. `shape`
/// is the shape of the tensor, or of the tile whose elements threads have; `bits` is the width of
/// an element, if a text does not give it. The written text reads back as the same function; a
/// layout that the system cannot express is refused with the reason.
#[pyfunction]
#[pyo3(signature = (layout, system, /, *, shape = None, bits = None))]
pub fn write(layout: &Bound<'_, PyAny>, system: &str, shape: Option<Vec<i64>>, bits: Option<i64>) -> PyResult<String> {
    let system = System::from_str(system).map_err(PyValueError::new_err)?;
    let options = Options { element_bits: bits, shape, ..Options::default() };
    let (meaning, _) = meaning(layout, &options)?;
    tilewright_read::write(&meaning, system, &options).map_err(|refused| refusal::of(layout.py(), &refused))
}

/// The result of a comparison of two layouts. It is true if they are the same function.
#[pyclass(frozen, module = "tilewright")]
pub struct Comparison {
    found: Same,
}

#[pymethods]
impl Comparison {
    /// The compared layouts, such as "128 threads hold 32 values each of the 64x64 tile".
    #[getter]
    fn compared(&self) -> &str {
        &self.found.compared
    }

    /// The first difference, as a sentence; None if they are the same function.
    #[getter]
    fn difference(&self) -> Option<&str> {
        self.found.difference.as_deref()
    }

    /// The way to move data from the first to the second: "registers", "shuffles" or "shared
    /// memory"; None if nothing moves, or the planner finds no way.
    #[getter]
    fn route(&self) -> Option<&'static str> {
        self.found.movement.map(|movement| match movement.route {
            Route::Registers => "registers",
            Route::Lanes => "shuffles",
            Route::Shared => "shared memory",
        })
    }

    /// The approximate number of instructions per warp for it; None if `route` is None.
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

/// Whether two layouts of any systems are the same function, and how to move data from one to the
/// other.
///
/// Each is a value, an expression, a text of another system, or a result of `tw.read`. Layouts of
/// threads and values are compared at every thread and value, others at every coordinate. `shape`
/// is the shape of the tile whose elements threads have, and `bits` the width of an element: 8, 16,
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
    let options = Options { shape: shape.clone(), ..Options::default() };
    let ((left, first), (right, second)) = (meaning(left, &options)?, meaning(right, &options)?);
    // Layouts of bytes and of elements cannot be compared. Elements of different widths can.
    common_unit(first, second).map_err(|refused| refusal::of(py, &refused))?;
    let found = py.detach(|| compare(&left, &right, shape.as_deref(), element));
    found.map(|found| Comparison { found }).map_err(|refused| refusal::of(py, &refused))
}
