//! Operators of models, by name and options.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use tilewright_ops::{OperatorError, OptionValue, Options, operator_kernels};

use super::library;
use super::program::Program;
use super::tiles::refused;

/// The exception for a refused operator.
fn of_operator(py: Python<'_>, error: &OperatorError) -> PyErr {
    match error {
        OperatorError::Tile(error) => refused(py, error),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// The value of an option, from a Python value.
fn value_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    // A boolean is also an integer, so it is tested first.
    if value.is_instance_of::<PyBool>() {
        Ok(OptionValue::Switch(value.extract()?))
    } else if value.is_instance_of::<PyInt>() {
        Ok(OptionValue::Integer(value.extract()?))
    } else if value.is_instance_of::<PyFloat>() {
        Ok(OptionValue::Number(value.extract()?))
    } else if value.is_instance_of::<PyString>() {
        Ok(OptionValue::Text(value.extract()?))
    } else {
        let kind = value.get_type().name()?;
        Err(PyTypeError::new_err(format!("the option '{name}' is a truth value, a number or a text, not {kind}")))
    }
}

/// The kernels of an operator, in the order in which they are launched, for a machine, and the text
/// of their tile programs. Tensors are joined by their names; sizes are given at each launch.
///
/// Errors: there is no such operator, option or machine (`ValueError`); the language of tile
/// programs refuses it (`LayoutError`).
#[pyfunction]
pub fn operator_programs(
    py: Python<'_>,
    name: &str,
    options: &Bound<'_, PyDict>,
    is_backward: bool,
    machine: &str,
) -> PyResult<(String, Vec<Program>)> {
    let machine = library::machine(py, machine)?;
    let named = options.iter().map(|(name, value)| {
        let name: String = name.extract()?;
        let value = value_of(&name, &value)?;
        Ok((name, value))
    });
    let options: Options = named.collect::<PyResult<Vec<_>>>()?.into_iter().collect();
    let made = py.detach(|| operator_kernels(name, &options, is_backward, &machine));
    let made = made.map_err(|error| of_operator(py, &error))?;
    let programs = made.kernels.into_iter().map(|kernel| Program {
        kernel,
        plan: vec![format!("the operator {name}")],
        fixed: Vec::new(),
    });
    Ok((made.text, programs.collect()))
}
