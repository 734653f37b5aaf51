//! Exceptions: refusals in Python.
//!
//! Law: an exception has the code, the message and the hint of the refusal, unchanged unless they
//! contain Rust. Its text is the refusal as the command prints it.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_gpu::GpuError;
use tilewright_kernel::Reason;
use tilewright_kernel::program::Location;
use tilewright_layout::{LayoutError, Refusal};
use tilewright_notation::Diagnostic;

use crate::kernel::place;
use crate::kernel::trace::RefusedStatement;

/// The exception's class, which is written in Python.
mod raised {
    pyo3::import_exception!(tilewright._errors, GpuError);
    pyo3::import_exception!(tilewright._errors, KernelError);
    pyo3::import_exception!(tilewright._errors, LayoutError);
}

/// A hint in terms of Python, instead of Rust or the command.
fn in_python(help: &str) -> String {
    let mut told = help
        .replace("'tilewright functions' lists them", "tw.functions() lists them")
        .replace("`k.threads(", "`tw.threads(")
        .replace("`k.grid`", "`tw.grid`");
    // `tilewright explain E0107` is a function in Python.
    const ASKED: &str = "`tilewright explain ";
    while let Some(begin) = told.find(ASKED) {
        let from = begin + ASKED.len();
        let Some(length) = told.get(from..).and_then(|rest| rest.find('`')) else { break };
        let code = told[from..from + length].to_string();
        told.replace_range(begin..=from + length, &format!("`tw.explain(\"{code}\")`"));
    }
    told
}

/// The exception of a refused program.
#[cold]
pub fn of_program(py: Python<'_>, diagnostic: &Diagnostic, source: &str) -> PyErr {
    let raised = || -> PyResult<PyErr> {
        // Python counts characters, not bytes.
        let character = |byte: usize| {
            let byte = (0..=byte.min(source.len())).rev().find(|at| source.is_char_boundary(*at)).unwrap_or(0);
            source.get(..byte).map_or(0, |before| before.chars().count())
        };
        let mut diagnostic = diagnostic.clone();
        diagnostic.help = diagnostic.help.as_deref().map(in_python);
        let fields = PyDict::new(py);
        fields.set_item("code", diagnostic.code)?;
        fields.set_item("message", &diagnostic.message)?;
        fields.set_item("help", &diagnostic.help)?;
        fields.set_item("source", source)?;
        fields.set_item("span", (character(diagnostic.span.start), character(diagnostic.span.end)))?;
        let witness = diagnostic.witness.as_ref().map(|place| crate::convert::of_integers(py, place));
        fields.set_item("witness", witness.transpose()?)?;
        raise(py, diagnostic.render(source, false).trim_end(), &fields)
    };
    raised().unwrap_or_else(|error| error)
}

/// The exception of a refused call.
#[cold]
pub fn of_call(py: Python<'_>, refused: &tilewright_notation::Refused) -> PyErr {
    of_program(py, &refused.diagnostic, &refused.source)
}

/// The exception of a refusal without a location.
#[cold]
pub fn of(py: Python<'_>, refusal: &dyn Refusal) -> PyErr {
    let raised = || -> PyResult<PyErr> {
        let (message, help) = (refusal.to_string(), refusal.help().map(|help| in_python(&help)));
        let told = help.as_ref().map_or(String::new(), |help| format!("\n = help: {help}"));
        let fields = PyDict::new(py);
        fields.set_item("code", refusal.code())?;
        fields.set_item("message", &message)?;
        fields.set_item("help", help)?;
        raise(py, &format!("error[{}]: {message}{told}", refusal.code()), &fields)
    };
    raised().unwrap_or_else(|error| error)
}

/// As [`of`], for an error of the layout algebra.
#[cold]
pub fn of_layout(py: Python<'_>, error: LayoutError) -> PyErr {
    of(py, &error)
}

/// The exception of a statement of a kernel.
#[cold]
pub fn of_kernel(py: Python<'_>, refused: &RefusedStatement) -> PyErr {
    let (code, message, help, at) = match refused {
        RefusedStatement::Kernel(error) => {
            let help = match error.reason() {
                // In Python's notation.
                Reason::Elements { wanted, .. } => Some(format!("convert with `.to(\"{wanted}\")`")),
                _ => error.help(),
            };
            (error.code(), error.reason().to_string(), help, Some(error.source().location))
        }
        RefusedStatement::Here(message, help, at) => ("", message.clone(), Some(help.clone()), *at),
    };
    let at = match at {
        Some(at) => Ok(at),
        None => place::caller(py),
    };
    at.and_then(|at| kernel_error(py, code, &message, help.as_deref(), Some(at))).unwrap_or_else(|error| error)
}

/// The exception for an operation of Python, given by its method's name, that would make a constant
/// of a traced value.
#[cold]
pub fn of_traced(object: &Bound<'_, PyAny>, operation: &str) -> PyErr {
    let py = object.py();
    let refused = || py.import("tilewright._traced")?.call_method1("refusal", (object, operation));
    refused().map_or_else(|error| error, PyErr::from_value)
}

/// The exception for findings of the interpreter, for sizes and arrays that a kernel does not
/// accept, and for kernels that cannot be planned.
#[cold]
pub fn of_run(py: Python<'_>, code: &str, message: &str, help: Option<&str>, at: Option<Location>) -> PyErr {
    kernel_error(py, code, message, help, at).unwrap_or_else(|error| error)
}

fn kernel_error(
    py: Python<'_>,
    code: &str,
    message: &str,
    help: Option<&str>,
    at: Option<Location>,
) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    fields.set_item("code", code)?;
    fields.set_item("help", help.filter(|help| !help.is_empty()).map(in_python))?;
    if let Some(at) = at {
        fields.set_item("place", (at.file(), at.line(), at.column(), at.end()))?;
    }
    Ok(PyErr::from_value(py.get_type::<raised::KernelError>().call((message,), Some(&fields))?))
}

/// The exception of the driver, or of a device.
#[cold]
pub fn of_gpu(py: Python<'_>, error: &GpuError) -> PyErr {
    let raised = || -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        fields.set_item("code", error.code())?;
        fields.set_item("help", Refusal::help(error))?;
        Ok(PyErr::from_value(py.get_type::<raised::GpuError>().call((error.to_string(),), Some(&fields))?))
    };
    raised().unwrap_or_else(|error| error)
}

fn raise(py: Python<'_>, text: &str, fields: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(py.get_type::<raised::LayoutError>().call((text,), Some(fields))?))
}

/// The page about an error code, as Markdown; None if there is no such code.
#[pyfunction]
pub fn page(code: &str) -> Option<&'static str> {
    let pages = [
        tilewright_layout::explanation,
        tilewright_notation::explanation,
        tilewright_layout::morphism::explanation,
        tilewright_layout::atoms::explanation,
        tilewright_layout::analysis::explanation,
        tilewright_draw::explanation,
        tilewright_tensor::explanation,
        tilewright_kernel::explanation,
        tilewright_planners::explanation,
        tilewright_gpu::explanation,
        tilewright_tile::explanation,
        tilewright_mesh::explanation,
        tilewright_sanitize::explanation,
    ];
    pages.into_iter().find_map(|page| page(code))
}
