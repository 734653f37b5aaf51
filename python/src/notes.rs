//! Notes: warnings, or errors in strict mode.
//!
//! Law: a note of the language becomes the warning `OutsideDomain`, at the line of the caller.
//! Within `with tilewright.strict():` it becomes the error E0217. Calls inside the domain cost only
//! a comparison of names.

use pyo3::prelude::*;
use tilewright_notation::{Note, Value, remarks};

/// Reports the notes of a call of a function; an empty name is the application of a map.
pub fn about(py: Python<'_>, function: &str, arguments: &[&Value], value: &Value) -> PyResult<()> {
    for (_, message) in remarks(function, arguments, value) {
        tell(py, &message)?;
    }
    Ok(())
}

/// Reports the notes of a program.
pub fn of_program(py: Python<'_>, notes: &[Note]) -> PyResult<()> {
    // In a Python string, a name that is taken for a size is intended.
    notes.iter().filter(|note| note.is_refused_when_strict()).try_for_each(|note| tell(py, &note.message))
}

/// Warns of the possible meanings of a swizzle over elements of this many bits.
pub fn of_width(py: Python<'_>, layout: &Value, bits: i64) -> PyResult<()> {
    let Value::Layout(layout) = layout else { return Ok(()) };
    match tilewright_draw::explain::requests::bytes_or_elements(layout, bits) {
        Some(message) => py.import("tilewright._notes")?.getattr("say")?.call1((message,)).map(|_| ()),
        None => Ok(()),
    }
}

/// Warns, or raises in strict mode.
#[cold]
pub fn tell(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import("tilewright._notes")?.getattr("tell")?.call1((message,)).map(|_| ())
}
