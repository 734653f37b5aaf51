//! Claims: whether two values are one function, whether the law of an operation holds, and how a
//! value comes about.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_explain::check::{self, Answer, Finding};
use tilewright_notation::{Environment, Value, call, derive};

use crate::convert;
use crate::refusal;

/// Whether a claim holds, the claim, and what shows it or where it fails; none where it is open.
type Told = (Option<bool>, String, String);

fn told(finding: Finding) -> Told {
    match finding.answer {
        Answer::Holds(how) => (Some(true), finding.law, how),
        Answer::Fails(place) => (Some(false), finding.law, place),
        Answer::Open(how) => (None, finding.law, how),
    }
}

/// Whether two values are the same function.
#[pyfunction]
pub fn check_equal(py: Python<'_>, left: &Bound<'_, PyAny>, right: &Bound<'_, PyAny>) -> PyResult<Told> {
    let (left, right): (Value, Value) = (convert::value(left)?, convert::value(right)?);
    Ok(told(py.detach(|| check::equal(&left, &right))))
}

/// Whether the law of the last operation of a program holds.
#[pyfunction]
pub fn check_call(py: Python<'_>, program: &str) -> PyResult<Told> {
    let made = call(program, &mut Environment::new()).map_err(|error| refusal::of_program(py, &error, program))?;
    let Some(made) = made else {
        return Err(PyValueError::new_err("there is no operation to check; give a second value to compare with"));
    };
    match py.detach(|| check::of_call(&made)) {
        Some(finding) => Ok(told(finding)),
        None => {
            let function = made.function;
            Err(PyValueError::new_err(format!("no law of '{function}' can be checked on these arguments")))
        }
    }
}

/// How the value of a program comes about, line by line, as far as it does.
#[pyfunction]
pub fn derivation(program: &str) -> String {
    let mut text = derive(program, &mut Environment::new()).to_string();
    text.truncate(text.trim_end().len());
    text
}
