//! Claims: whether two values are the same function, whether the law of an operation holds, and the
//! derivation of a value.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_draw::explain::check::{self, Answer, Finding};
use tilewright_draw::explain::figures::{Section, sections};
use tilewright_draw::{Figure, Style};
use tilewright_notation::{Environment, Value, call, derive, evaluate_pair};

use crate::convert;
use crate::interrupt::interruptible;
use crate::picture::Picture;
use crate::refusal;

/// Whether a claim holds (None if it is undecided), the claim, and its proof or counterexample.
type Verdict = (Option<bool>, String, String);

fn verdict(finding: Finding) -> Verdict {
    match finding.answer {
        Answer::Holds(how) => (Some(true), finding.law, how),
        Answer::Fails(place) => (Some(false), finding.law, place),
        Answer::Open(how) => (None, finding.law, how),
    }
}

/// Whether two values are the same function.
#[pyfunction]
pub fn check_equal(py: Python<'_>, left: &Bound<'_, PyAny>, right: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    let texts = (left.extract::<String>(), right.extract::<String>());
    let (left, right): (Value, Value) = match &texts {
        // Both texts have the same parameters.
        (Ok(left), Ok(right)) => {
            let pair = evaluate_pair(left, right, &Environment::new());
            let [left, right] = pair
                .map_err(|failed| {
                    let (side, error) = *failed;
                    refusal::of_program(py, &error, if side == 0 { left } else { right })
                })?
                .values;
            (left, right)
        }
        _ => (convert::value(left)?, convert::value(right)?),
    };
    Ok(verdict(interruptible(py, || check::equal(&left, &right))?))
}

/// Whether the law of the last operation of a program holds.
#[pyfunction]
pub fn check_call(py: Python<'_>, program: &str) -> PyResult<Verdict> {
    let made = call(program, &mut Environment::new()).map_err(|error| refusal::of_program(py, &error, program))?;
    let Some(made) = made else {
        return Err(PyValueError::new_err("there is no operation to check; give a second value to compare with"));
    };
    match interruptible(py, || check::of_call(&made))? {
        Some(finding) => Ok(verdict(finding)),
        None => {
            let function = made.function;
            Err(PyValueError::new_err(format!("no law of '{function}' can be checked on these arguments")))
        }
    }
}

/// An operation of a derivation: its indentation, its formula, its explanation, and its picture, if
/// it has one.
type DerivedOperation = (usize, String, Vec<String>, Option<Picture>);

/// The derivation of the value of a program, operation by operation.
///
/// Errors: the program is refused.
#[pyfunction]
pub fn operations(py: Python<'_>, program: &str) -> PyResult<Vec<DerivedOperation>> {
    convert::program(py, program)?;
    let derivation = Arc::new(derive(program, &mut Environment::new()));
    let all = sections(&derivation, Style::default()).into_iter().enumerate();
    let operation = |(number, section): (usize, Section)| {
        let drawn = !section.figures.is_empty();
        let derivation = Arc::clone(&derivation);
        let draws = move |style| {
            let own = sections(&derivation, style).into_iter().nth(number);
            own.and_then(|own| own.figures.into_iter().reduce(Figure::above)).unwrap_or_default()
        };
        let picture = drawn.then(|| Picture::of(String::new(), draws));
        (section.indent, section.formula, section.lines, picture)
    };
    Ok(all.map(operation).collect())
}

/// The derivation of the value of a program, line by line, up to the first refusal.
#[pyfunction]
pub fn derivation(program: &str) -> String {
    let mut text = derive(program, &mut Environment::new()).to_string();
    text.truncate(text.trim_end().len());
    text
}
