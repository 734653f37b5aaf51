//! Notes beside answers: warnings, or refusals where the caller is strict.
//!
//! Law: what has a note in the language gives the warning `OutsideDomain` here, about the line that
//! asked; within `with tilewright.strict():` it raises the error E0217. Who asks for nothing
//! outside pays a comparison of names.

use pyo3::prelude::*;
use tilewright_notation::{Note, Value, remarks};

/// Tells what is to be said about the value of a function; an empty name is a map that is applied.
pub fn about(py: Python<'_>, function: &str, arguments: &[&Value], value: &Value) -> PyResult<()> {
    for (_, message) in remarks(function, arguments, value) {
        tell(py, &message)?;
    }
    Ok(())
}

/// Tells the notes of a program.
pub fn of_program(py: Python<'_>, notes: &[Note]) -> PyResult<()> {
    // A name that is taken for a number is what a text in Python is meant to say.
    notes.iter().filter(|note| note.is_refused_when_strict()).try_for_each(|note| tell(py, &note.message))
}

/// Warns of what a swizzle over elements of so many bits may mean.
pub fn of_width(py: Python<'_>, layout: &Value, bits: i64) -> PyResult<()> {
    let Value::Layout(layout) = layout else { return Ok(()) };
    match tilewright_draw::explain::requests::bytes_or_elements(layout, bits) {
        Some(message) => py.import("tilewright._notes")?.getattr("say")?.call1((message,)).map(|_| ()),
        None => Ok(()),
    }
}

/// Warns, or raises where the caller is strict.
#[cold]
pub fn tell(py: Python<'_>, message: &str) -> PyResult<()> {
    py.import("tilewright._notes")?.getattr("tell")?.call1((message,)).map(|_| ())
}
