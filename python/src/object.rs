//! The base class of all values.
//!
//! Law: an object holds one value of the language and never changes. `repr` is a Python expression
//! for it, `str` its text in the language; both read back. Equal objects have equal hashes.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright_draw::Theme;
use tilewright_layout::AnyTree;
use tilewright_notation::Value;

use crate::convert::{self, program, program_with, python};
use crate::function;
use crate::kernel::number::Flag;
use crate::kernel::trace;
use crate::layout::Layout;
use crate::maps::{BitMatrix, LinearLayout, Morphism, Swizzle, Tiler};
use crate::numbers::{Expr, Step, Xor};
use crate::picture;
use crate::refusal;

/// A value of the language: a layout, a tiler, a swizzle, a map over bits, a morphism, or a number
/// that is no integer.
#[pyclass(frozen, subclass, module = "tilewright", name = "Value")]
pub struct Object {
    /// The value.
    pub value: Value,
    /// The kernel on which it depends; `trace::OUTSIDE` for values outside of kernels.
    trace: u64,
}

impl From<Value> for Object {
    /// While a kernel is traced, a size known at launch belongs to that kernel, because another
    /// kernel may have a size with the same name. So does every value that depends on a size or on
    /// an index.
    fn from(value: Value) -> Object {
        let trace = match trace::owner() {
            trace::OUTSIDE => trace::OUTSIDE,
            own if is_number(&value) || !value.parameters().is_empty() => own,
            _ => trace::OUTSIDE,
        };
        Object { value, trace }
    }
}

/// Whether a value is a number that is not a Python integer.
fn is_number(value: &Value) -> bool {
    matches!(value, Value::Tree(AnyTree::Launch(_)))
}

/// Whether a value depends on a parameter without a name: the index of a thread, a block or an
/// iteration.
pub fn has_index(value: &Value) -> bool {
    value.parameters().iter().any(|parameter| parameter.name().is_none())
}

impl Object {
    /// Whether it is a number of a kernel, or a kernel is being traced. Its value is then unknown.
    pub fn is_traced(&self) -> bool {
        self.trace != trace::OUTSIDE || trace::is_tracing() || trace::is_writing_tiles()
    }

    /// Whether it may be used here. A value that depends on the numbers of a kernel may be used
    /// only in that kernel.
    pub fn is_own(&self) -> bool {
        self.trace == trace::OUTSIDE || self.trace == trace::owner()
    }

    /// Refuses values that depend on the numbers of a kernel outside of that kernel.
    pub fn check_owner(&self, py: Python<'_>) -> PyResult<()> {
        match self.is_own() {
            true => Ok(()),
            false => Err(refusal::of_kernel(py, &trace::of_another(self.trace, trace::owner()))),
        }
    }

    /// The value as an operand.
    ///
    /// Errors: it depends on the numbers of a kernel other than the one that is traced.
    pub fn own(&self, py: Python<'_>) -> PyResult<&Value> {
        self.check_owner(py).map(|()| &self.value)
    }
}

#[pymethods]
impl Object {
    /// The kind of the value, in words.
    #[getter]
    fn kind(&self) -> &'static str {
        self.value.kind()
    }

    fn __str__(&self) -> String {
        self.value.to_string()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("{}('{}')", slf.get_type().name()?, slf.get().value))
    }

    fn __hash__(&self) -> u64 {
        match &self.value {
            Value::Layout(layout) => {
                let mut hasher = DefaultHasher::new();
                layout.hash(&mut hasher);
                hasher.finish()
            }
            value => hash_of(&value.to_string()),
        }
    }

    fn __eq__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> Py<PyAny> {
        match other.cast::<Object>() {
            Ok(other) => pyo3::types::PyBool::new(py, self.value == other.get().value).to_owned().into_any().unbind(),
            Err(_) => py.NotImplemented(),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().into_any(), (slf.get().value.to_string(),)))
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf.clone()
    }

    /// The picture of the value in a notebook; None if it has none.
    fn _repr_svg_(&self) -> Option<String> {
        picture::of_value(self).map(|figure| figure.svg(Theme::Auto))
    }

    /// The same for documents with other pictures.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self._repr_svg_().map(|svg| picture::image(py, &svg)).transpose()
    }

    /// The composition: `(a @ b)(c) == a(b(c))`.
    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        composed(slf.py(), slf.get().own(slf.py())?.clone(), convert::value(other)?)
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        composed(slf.py(), convert::value(other)?, slf.get().own(slf.py())?.clone())
    }

    /// The names of sizes known at launch, each once.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let parameters = self.own(py)?.parameters().into_iter();
        let parameters = parameters.map(|parameter| {
            let number: tilewright_layout::symbolic::Expr = parameter.into();
            python(py, Value::from(number))
        });
        PyTuple::new(py, parameters.collect::<PyResult<Vec<_>>>()?)
    }

    /// The value with numbers substituted for sizes: `L.substitute(M=64)`.
    #[pyo3(signature = (**numbers))]
    fn substitute<'py>(&self, py: Python<'py>, numbers: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        python(py, function::substituted(py, self.own(py)?, numbers)?)
    }
}

/// Whether a value depends on an index of a kernel: that of a thread, a block or an iteration.
#[pyfunction]
pub fn is_index(value: &Bound<'_, Object>) -> bool {
    value.get().trace != trace::OUTSIDE && has_index(&value.get().value)
}

/// The text of a value, for the kernel or the tile program that is being traced.
///
/// Errors: it depends on the numbers of another one.
#[pyfunction]
pub fn own_text(value: &Bound<'_, Object>) -> PyResult<String> {
    Ok(value.get().own(value.py())?.to_string())
}

/// The names of the sizes known at launch that a value depends on, or a condition of them.
#[pyfunction]
pub fn sizes_in(value: &Bound<'_, PyAny>) -> Vec<String> {
    if let Ok(flag) = value.cast::<Flag>() {
        return flag.get().sizes.clone();
    }
    value.cast::<Object>().map_or(Vec::new(), |value| value.get().sizes())
}

impl Object {
    /// The names of the sizes on which it depends.
    pub fn sizes(&self) -> Vec<String> {
        self.value.parameters().iter().filter_map(|parameter| parameter.name().map(str::to_string)).collect()
    }
}

/// The hash of a text.
pub fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn composed(py: Python<'_>, a: Value, b: Value) -> PyResult<Bound<'_, PyAny>> {
    function::called(py, "composition", &[a, b])
}

/// The value of a program of the language; keyword arguments are names for it.
#[pyfunction]
#[pyo3(signature = (program, /, **names))]
pub fn evaluate<'py>(
    py: Python<'py>,
    program: &str,
    names: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    python(py, program_with(py, program, names)?)
}

impl Object {
    /// The object as an instance of a class.
    pub fn of<T>(self, class: T) -> PyClassInitializer<T>
    where
        T: PyClass<BaseType = Object>,
    {
        PyClassInitializer::from(self).add_subclass(class)
    }
}

/// The object of a value that is not a plain Python value.
pub fn new(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    macro_rules! of_class {
        ($($kind:pat => $class:ident,)*) => {
            match &value {
                $($kind => Ok(Bound::new(py, Object::from(value).of($class))?.into_any()),)*
                // Integers, tuples and similar values are plain Python objects.
                _ => Err(PyTypeError::new_err("this value has no class")),
            }
        };
    }
    of_class! {
        Value::Layout(_) => Layout,
        Value::Tiler(_) => Tiler,
        Value::Swizzle(_) => Swizzle,
        Value::Matrix(_) => BitMatrix,
        Value::Linear(_) => LinearLayout,
        Value::Morphism(_) => Morphism,
        Value::Tree(AnyTree::Launch(_)) => Expr,
        Value::Tree(AnyTree::Coordinate(_)) => Step,
        Value::Tree(AnyTree::Xor(_)) => Xor,
    }
}

/// The value of a text, which must be of a class.
pub fn read(py: Python<'_>, text: &str, class: &str, fits: impl Fn(&Value) -> bool) -> PyResult<Object> {
    let value = program(py, text)?;
    match fits(&value) {
        true => Ok(Object::from(value)),
        false => {
            Err(PyTypeError::new_err(format!("{class}('{text}'): the value of the text is of kind {}", value.kind())))
        }
    }
}
