//! The classes of numbers that are not integers: sizes known at launch, and the strides of
//! coordinate and XOR layouts.
//!
//! Law: arithmetic on them is that of the layout algebra.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};
use tilewright_layout::{self as layout, AnyTree, LayoutError, Stride};
use tilewright_notation::{Environment, Value, evaluate};

use crate::convert::{self, python};
use crate::kernel::number;
use crate::object::{Object, has_index, hash_of, read};
use crate::refusal;

/// A size known at launch: `Expr("M{div=8}")`. `+`, `-`, `*`, `//` and `%` make others.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct Expr;

#[pymethods]
impl Expr {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<PyClassInitializer<Self>> {
        let fits = |value: &Value| matches!(value, Value::Tree(AnyTree::Launch(number)) if number.is_leaf());
        Ok(read(py, text, "Expr", fits)?.of(Expr))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "a + b")
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "b + a")
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "a - b")
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "b - a")
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "a * b")
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "b * a")
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "floor_div(a, b)")
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "floor_div(b, a)")
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "mod(a, b)")
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        formula(slf.as_super(), other, "mod(b, a)")
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let none = PyInt::new(slf.py(), 0);
        formula(slf.as_super(), none.as_any(), "b - a")
    }

    /// In a kernel a condition of each thread. Elsewhere, whether both are the same expression.
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        comparison: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.as_super().get());
        if own.is_traced() {
            return number::compared(slf.as_any(), other, comparison);
        }
        let same = other.cast::<Object>().ok().map(|other| own.value == other.get().value);
        Ok(match (comparison, same) {
            (CompareOp::Eq, Some(same)) => PyBool::new(py, same).to_owned().into_any(),
            (CompareOp::Ne, Some(same)) => PyBool::new(py, !same).to_owned().into_any(),
            _ => py.NotImplemented().into_bound(py),
        })
    }

    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<u64> {
        match slf.as_super().get() {
            own if own.is_traced() => Err(refusal::of_traced(slf.as_any(), "__hash__")),
            own => Ok(hash_of(&own.value.to_string())),
        }
    }

    /// The text in the language. An index of a kernel has none, because reading it back would give
    /// another one.
    fn __str__(slf: &Bound<'_, Self>) -> PyResult<String> {
        match &slf.as_super().get().value {
            value if slf.as_super().get().is_traced() && has_index(value) => {
                Err(refusal::of_traced(slf.as_any(), "__str__"))
            }
            value => Ok(value.to_string()),
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        match &slf.as_super().get().value {
            value if slf.as_super().get().is_traced() && has_index(value) => format!("<index {value} of a kernel>"),
            value => format!("Expr('{value}')"),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        match slf.as_super().get() {
            own if own.is_traced() => Err(refusal::of_traced(slf.as_any(), "__reduce__")),
            own => Ok((slf.get_type().into_any(), (own.value.to_string(),))),
        }
    }
}

/// A coordinate stride: `E(0)`, `2 * E(1, 0)`, `Step("2@0")`. Sums of strides go in several modes
/// at once.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct Step;

#[pymethods]
impl Step {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<PyClassInitializer<Self>> {
        let fits = |value: &Value| matches!(value, Value::Tree(AnyTree::Coordinate(step)) if step.is_leaf());
        Ok(read(py, text, "Step", fits)?.of(Step))
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        sum(slf.as_super(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        sum(slf.as_super(), other)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        multiple(slf.as_super(), other)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        multiple(slf.as_super(), other)
    }
}

/// A value as a coordinate stride; an integer is a stride in a codomain that is not a tuple.
fn step(value: &Value) -> Option<layout::CoordinateStep> {
    let steps = match value {
        Value::Int(number) => AnyTree::from(*number).coordinate(),
        Value::Tree(tree) => tree.coordinate(),
        _ => None,
    };
    steps.filter(|steps| steps.is_leaf())?.leaves().first().cloned()
}

/// The sum of two strides.
fn sum<'py>(object: &Bound<'py, Object>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let other = convert::value(other)?;
    match (step(object.get().own(py)?), step(&other)) {
        (Some(a), Some(b)) => stepped(py, a.plus(&b)),
        _ => Ok(py.NotImplemented().into_bound(py)),
    }
}

/// A multiple of a stride.
fn multiple<'py>(object: &Bound<'py, Object>, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let count = match convert::value(count)? {
        Value::Int(count) => Some(layout::symbolic::Expr::from(count)),
        Value::Tree(tree) if tree.is_leaf() => tree.number().map(|number| number.into_owned()),
        _ => None,
    };
    match (step(object.get().own(py)?), count) {
        (Some(step), Some(count)) => stepped(py, step.times(&count)),
        _ => Ok(py.NotImplemented().into_bound(py)),
    }
}

fn stepped(py: Python<'_>, step: Option<layout::CoordinateStep>) -> PyResult<Bound<'_, PyAny>> {
    match step {
        Some(step) => python(py, step.into()),
        None => Err(refusal::of_layout(py, LayoutError::Overflow { op: "a step" })),
    }
}

/// An XOR stride: `Xor(9)`, written `^9` in the language.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct Xor;

#[pymethods]
impl Xor {
    #[new]
    fn new(py: Python<'_>, bits: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let fits = |value: &Value| matches!(value, Value::Tree(AnyTree::Xor(step)) if step.is_leaf());
        if let Ok(text) = bits.cast::<PyString>() {
            return Ok(read(py, text.to_str()?, "Xor", fits)?.of(Xor));
        }
        let step = layout::Xor::new(bits.extract()?).map_err(|error| refusal::of_layout(py, error))?;
        match Value::from(layout::Tree::leaf(step)) {
            value if fits(&value) => Ok(Object::from(value).of(Xor)),
            _ => Err(PyTypeError::new_err("a step of no bits is the number 0")),
        }
    }

    /// Its bits.
    #[getter]
    fn bits(slf: &Bound<'_, Self>) -> u64 {
        match &slf.as_super().get().value {
            Value::Tree(AnyTree::Xor(step)) => step.leaves().first().map_or(0, |step| step.bits()),
            _ => 0,
        }
    }
}

/// The value of a formula of two numbers, `a` and `b`; `NotImplemented` if the other object is not
/// a number.
fn formula<'py>(number: &Bound<'py, Object>, other: &Bound<'py, PyAny>, formula: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = number.py();
    number.get().check_owner(py)?;
    let other = match convert::value(other) {
        Ok(other @ Value::Int(_)) => other,
        Ok(Value::Tree(other)) if other.is_leaf() => Value::Tree(other),
        _ => return Ok(py.NotImplemented().into_bound(py)),
    };
    let mut environment = Environment::new();
    environment.bind("a", number.get().value.clone());
    environment.bind("b", other);
    let value = evaluate(formula, &mut environment).map_err(|error| refusal::of_program(py, &error, formula))?;
    python(py, value)
}
