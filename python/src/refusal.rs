//! Exceptions: what is refused, as Python raises it.
//!
//! Law: an exception holds the code, the sentence and the help of the refusal, unchanged; its text
//! is the refusal as the command prints it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright_layout::{LayoutError, Refusal};
use tilewright_notation::{Diagnostic, Refused};

/// The exception's class, which is written in Python.
mod raised {
    pyo3::import_exception!(tilewright._errors, LayoutError);
}

/// The exception of what is refused in a program.
#[cold]
pub fn of_program(py: Python<'_>, diagnostic: &Diagnostic, source: &str) -> PyErr {
    let raised = || -> PyResult<PyErr> {
        // Python counts characters.
        let character = |byte: usize| {
            let byte = (0..=byte.min(source.len())).rev().find(|at| source.is_char_boundary(*at)).unwrap_or(0);
            source.get(..byte).map_or(0, |before| before.chars().count())
        };
        let fields = PyDict::new(py);
        fields.set_item("code", diagnostic.code)?;
        fields.set_item("message", &diagnostic.message)?;
        fields.set_item("help", &diagnostic.help)?;
        fields.set_item("source", source)?;
        fields.set_item("span", (character(diagnostic.span.start), character(diagnostic.span.end)))?;
        let witness = PyTuple::new(py, &diagnostic.witness)?;
        fields.set_item("witness", (!witness.is_empty()).then_some(witness))?;
        raise(py, diagnostic.render(source, false).trim_end(), &fields)
    };
    raised().unwrap_or_else(|error| error)
}

/// The exception of a call that is refused.
#[cold]
pub fn of_call(py: Python<'_>, refused: &Refused) -> PyErr {
    of_program(py, &refused.diagnostic, &refused.source)
}

/// The exception of a refusal that points at no text.
#[cold]
pub fn of(py: Python<'_>, refusal: &dyn Refusal) -> PyErr {
    let raised = || -> PyResult<PyErr> {
        let (message, help) = (refusal.to_string(), refusal.help());
        let told = help.as_ref().map_or(String::new(), |help| format!("\n = help: {help}"));
        let fields = PyDict::new(py);
        fields.set_item("code", refusal.code())?;
        fields.set_item("message", &message)?;
        fields.set_item("help", help)?;
        raise(py, &format!("error[{}]: {message}{told}", refusal.code()), &fields)
    };
    raised().unwrap_or_else(|error| error)
}

/// As [`of`], of the algebra.
#[cold]
pub fn of_layout(py: Python<'_>, error: LayoutError) -> PyErr {
    of(py, &error)
}

fn raise(py: Python<'_>, text: &str, fields: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(py.get_type::<raised::LayoutError>().call((text,), Some(fields))?))
}

/// The page about an error code, as Markdown; none where there is no such code.
#[pyfunction]
pub fn page(code: &str) -> Option<&'static str> {
    let pages = [
        tilewright_layout::explanation,
        tilewright_notation::explanation,
        tilewright_morphism::explanation,
        tilewright_atoms::explanation,
        tilewright_analysis::explanation,
        tilewright_draw::explanation,
        tilewright_tensor::explanation,
    ];
    pages.into_iter().find_map(|page| page(code))
}
