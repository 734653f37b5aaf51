//! The functions of the language, as functions and as methods.
//!
//! Law: there is one table, the language's. Each row is a callable object of the module, and a
//! method of each class whose values its first argument may be. Arguments are passed by position or
//! by the names of the signature. `None` is `_`; for an optional argument it means that the
//! argument is missing.

use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use tilewright_layout::symbolic::Values;
use tilewright_notation::{self as notation, Value};

use crate::convert::{self, python};
use crate::kernel::coordinates::Coordinates;
use crate::kernel::view::View;
use crate::layout::Layout;
use crate::maps::{BitMatrix, LinearLayout, Morphism, Swizzle};
use crate::tensor::{self, Tensor};
use crate::{notes, refusal};

// A function of the language. Its documentation is that of its row, so the class has none.
#[pyclass(frozen, module = "tilewright")]
pub struct Function {
    row: &'static notation::Function,
    /// Whether the first argument is the object on which it is called.
    method: bool,
}

#[pymethods]
impl Function {
    #[getter]
    fn __name__(&self) -> &'static str {
        self.row.name
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.row.name
    }

    #[getter]
    fn __doc__(&self) -> String {
        let row = self.row;
        format!(
            "{}: {}.\n\nExample, in the language:\n\n    {}\n    {}",
            row.signature, row.summary, row.example, row.result
        )
    }

    /// The signature, for `inspect.signature`; None if there are several signatures.
    #[getter]
    fn __text_signature__(&self) -> Option<String> {
        let mut ways: Vec<Vec<&str>> = self.row.ways().collect();
        ways.sort_by_key(Vec::len);
        let longest = ways.pop()?;
        let (least, Some(most)) = self.row.arity() else { return None };
        if longest.len() != most || !ways.iter().all(|way| longest.starts_with(way)) {
            return None;
        }
        let parameters = longest.iter().enumerate().map(|(place, name)| match (place, self.method) {
            (0, true) => "$self".to_owned(),
            _ if place >= least => format!("{}=None", keyword(name)),
            _ => keyword(name),
        });
        Some(format!("({})", parameters.collect::<Vec<_>>().join(", ")))
    }

    /// The signature in the language.
    #[getter]
    fn signature(&self) -> &'static str {
        self.row.signature
    }

    /// The result, in a sentence.
    #[getter]
    fn summary(&self) -> &'static str {
        self.row.summary
    }

    /// A program that calls it.
    #[getter]
    fn example(&self) -> &'static str {
        self.row.example
    }

    /// The text of the value of the example.
    #[getter]
    fn result(&self) -> &'static str {
        self.row.result
    }

    /// The heading of its section.
    #[getter]
    fn section(&self) -> &'static str {
        self.row.section
    }

    /// The signatures, as the names of the arguments.
    #[getter]
    fn ways(&self) -> Vec<Vec<String>> {
        self.row.ways().map(|way| way.into_iter().map(keyword).collect()).collect()
    }

    /// The fewest and the most arguments.
    #[getter]
    fn arity(&self) -> (usize, Option<usize>) {
        self.row.arity()
    }

    /// The classes that have it as a method.
    #[getter]
    fn classes(&self) -> Vec<&'static str> {
        CLASSES.iter().filter(|(_, takes)| takes(self.row)).map(|(class, _)| *class).collect()
    }

    fn __repr__(&self) -> String {
        format!("<function {} of tilewright>", self.row.signature)
    }

    fn __reduce__(&self) -> &'static str {
        self.row.name
    }

    #[pyo3(signature = (*arguments, **named))]
    fn __call__<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        if named.is_none() {
            // The most frequent calls: of a layout, or of layouts, integers and tuples.
            let mut own = [const { Value::Bool(false) }; FEW];
            if let Some(layouts) = plain(arguments, &mut own) {
                let given: [&Value; FEW] = std::array::from_fn(|at| match &layouts[at] {
                    Some(layout) => &layout.as_super().get().value,
                    None => &own[at],
                });
                let given = given.get(..arguments.len()).unwrap_or_default();
                let value = self.row.call_each(given).map_err(|refused| refusal::of_call(py, &refused))?;
                notes::about(py, self.row.name, given, &value)?;
                return python(py, value);
            }
        }
        if let Some(first) = arguments.iter_borrowed().next()
            && (first.is_instance_of::<View>() || first.is_instance_of::<Coordinates>())
        {
            return self.of_view(&first, arguments, named);
        }
        let (least, most) = self.row.arity();
        let mut given = Vec::with_capacity(arguments.len());
        // A tensor is passed as its layout, and the result becomes a view of its memory.
        let mut tensor = None;
        let mut read = |argument: &Bound<'py, PyAny>| match argument.cast::<Tensor>() {
            Ok(found) if tensor.is_none() => {
                tensor = Some(found.to_owned());
                // An empty tensor has no layout, and no function needs one.
                Ok(found.get().layout().map_or_else(Value::open, |layout| layout.clone().into()))
            }
            Ok(_) => {
                let name = self.row.name;
                Err(PyTypeError::new_err(format!("{name} of two tensors: give the layout of one, t.layout")))
            }
            Err(_) => convert::value(argument),
        };
        for argument in arguments.iter_borrowed() {
            given.push(read(&argument)?);
        }
        // A missing optional argument.
        while most.is_some() && given.len() > least && given.last() == Some(&Value::open()) {
            given.pop();
        }
        let mut names = Vec::new();
        for (name, value) in named.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?.to_str()?.trim_end_matches('_').to_owned();
            let required = self.row.ways().any(|way| way.iter().take(least).any(|parameter| *parameter == name));
            if required || !value.is_none() {
                names.push((name, read(&value)?));
            }
        }
        let names: Vec<(&str, Value)> = names.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        if let Some(tensor) = tensor {
            let placed = match names.is_empty() {
                true => Some(given),
                false => self.placed(&given, &names),
            };
            let Some(placed) = placed else {
                return Err(PyTypeError::new_err(format!("{}: no such arguments", self.row.signature)));
            };
            return tensor.get().called(py, self.row, &placed);
        }
        let value = self.row.call(&given, &names).map_err(|refused| refusal::of_call(py, &refused))?;
        if let Some(placed) = if names.is_empty() { Some(given) } else { self.placed(&given, &names) } {
            notes::about(py, self.row.name, &placed.iter().collect::<Vec<_>>(), &value)?;
        }
        python(py, value)
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        object: &Bound<'py, PyAny>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static METHOD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let _ = owner;
        if object.is_none() {
            return Ok(slf.clone().into_any());
        }
        let py = slf.py();
        let method =
            METHOD.get_or_try_init(py, || Ok::<_, PyErr>(py.import("types")?.getattr("MethodType")?.unbind()))?;
        method.bind(py).call1((slf, object))
    }
}

/// The number of arguments that most calls do not exceed.
const FEW: usize = 3;

/// The arguments, if there are few and all are layouts, integers and tuples of integers. The values
/// of those that are not layouts are stored.
fn plain<'a, 'py>(
    arguments: &'a Bound<'py, PyTuple>,
    own: &mut [Value; FEW],
) -> Option<[Option<Borrowed<'a, 'py, Layout>>; FEW]> {
    if arguments.len() > FEW {
        return None;
    }
    let mut layouts = [const { None }; FEW];
    for ((argument, layout), own) in arguments.iter_borrowed().zip(&mut layouts).zip(own) {
        match argument.cast_exact::<Layout>() {
            Ok(found) if found.as_super().get().is_own() => *layout = Some(found),
            // Such a value is refused later, when it is needed.
            Ok(_) => return None,
            Err(_) => *own = convert::plain(&argument)?,
        }
    }
    Some(layouts)
}

impl Function {
    /// All arguments in the order of the signature; None if no form of the function has these
    /// names.
    fn placed(&self, given: &[Value], names: &[(&str, Value)]) -> Option<Vec<Value>> {
        self.row.ways().find_map(|way| {
            let named = way
                .iter()
                .skip(given.len())
                .take(names.len())
                .map(|wanted| names.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone()));
            let named = named.collect::<Option<Vec<Value>>>().filter(|named| named.len() == names.len())?;
            Some(given.iter().cloned().chain(named).collect())
        })
    }
}

/// Functions of layouts that give a part of a kernel's tensor, and the corresponding methods.
const CUTS: [(&str, &str); 6] = [
    ("composition", "compose"),
    ("group", "group"),
    ("local_tile", "local_tile"),
    ("make_fragment_like", "fragment"),
    ("select", "select"),
    ("zipped_divide", "zipped_divide"),
];
/// Functions that return a property of a layout, which kernel tensors also have.
const TELLS: [&str; 7] = ["cosize", "depth", "get", "rank", "shape", "size", "stride"];

impl Function {
    /// The function applied to a tensor of a kernel.
    fn of_view<'py>(
        &self,
        view: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = view.py();
        let name = self.row.name;
        if let Some((_, method)) = CUTS.iter().find(|(function, _)| *function == name) {
            let others = arguments.get_slice(1, arguments.len());
            return view.call_method(*method, &others, named);
        }
        if TELLS.contains(&name) {
            // Coordinates have a shape but no memory.
            let told = if view.is_instance_of::<View>() { "layout" } else { "shape" };
            let layout = view.getattr(told)?;
            let others = arguments.iter().skip(1);
            let all: Vec<Bound<'py, PyAny>> = std::iter::once(layout).chain(others).collect();
            return self.__call__(&PyTuple::new(py, all)?, named);
        }
        let cuts: Vec<&str> = CUTS.iter().map(|(function, _)| *function).collect();
        Err(PyTypeError::new_err(format!(
            "{name} is a function of layouts, not of tensors of a kernel: those are cut by {}",
            cuts.join(", ")
        )))
    }
}

/// The name of an argument, if it is a keyword of Python.
fn keyword(name: &str) -> String {
    if name == "from" { format!("{name}_") } else { name.to_owned() }
}

/// A predicate: whether the values of a class may be the first argument of a function.
type Takes = fn(&notation::Function) -> bool;

/// The classes with methods, and the functions of each, by the letter of the first argument in the
/// table.
const CLASSES: [(&str, Takes); 6] = [
    ("Layout", |row| first(row, &["A", "M"]) || row.section == "Equality and fit"),
    ("Swizzle", |row| matches!(row.name, "bit_matrix" | "to_xor" | "composition" | "left_inverse" | "right_inverse")),
    ("BitMatrix", |row| first(row, &["M"]) || row.name == "composition"),
    ("LinearLayout", |row| first(row, &["F"]) || row.own_forms().1),
    ("Morphism", |row| first(row, &["f", "g"]) || row.own_forms().0),
    ("Tensor", |row| first(row, &["A"]) && tensor::takes(row)),
];

fn first(row: &notation::Function, letters: &[&str]) -> bool {
    row.ways().any(|way| way.first().is_some_and(|name| letters.contains(name)))
}

/// Adds the methods to the classes. Existing attributes, such as the property `shape`, are kept.
pub fn attach(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let classes = [
        py.get_type::<Layout>(),
        py.get_type::<Swizzle>(),
        py.get_type::<BitMatrix>(),
        py.get_type::<LinearLayout>(),
        py.get_type::<Morphism>(),
        py.get_type::<Tensor>(),
    ];
    for ((_, takes), class) in CLASSES.iter().zip(classes) {
        for row in notation::functions().iter().filter(|row| takes(row)) {
            if !class.hasattr(row.name)? {
                class.setattr(row.name, Function { row, method: true })?;
            }
        }
    }
    Ok(())
}

/// All functions of the language, by section.
#[pyfunction]
pub fn functions() -> Vec<Function> {
    notation::functions().iter().map(|row| Function { row, method: false }).collect()
}

/// The replacement of a name of CuTe that is no function; None if there is none.
#[pyfunction]
pub fn spelling(name: &str) -> Option<&'static str> {
    notation::spelling(name)
}

/// The value of a function of the language.
pub fn value(py: Python<'_>, name: &'static str, arguments: &[Value]) -> PyResult<Value> {
    let Some(row) = notation::function(name) else { return Err(PyTypeError::new_err(name)) };
    row.call(arguments, &[]).map_err(|refused| refusal::of_call(py, &refused))
}

/// As [`value`], as a Python object.
pub fn called<'py>(py: Python<'py>, name: &'static str, arguments: &[Value]) -> PyResult<Bound<'py, PyAny>> {
    python(py, value(py, name, arguments)?)
}

/// A value with numbers substituted for its parameters.
///
/// Errors: a name that is not one of its parameters; as [`Value::substitute`].
pub fn substituted(py: Python<'_>, value: &Value, numbers: Option<&Bound<'_, PyDict>>) -> PyResult<Value> {
    let mut values = Values::new();
    let parameters = value.parameters();
    for (name, number) in numbers.into_iter().flatten() {
        let name = name.extract::<String>()?;
        if !parameters.iter().any(|parameter| parameter.name() == Some(&name)) {
            return Err(PyValueError::new_err(format!("{value} has no number named '{name}'")));
        }
        match convert::value(&number)? {
            Value::Int(number) => values.set_named(&name, number),
            other => return Err(PyTypeError::new_err(format!("'{name}' is an integer, not a {}", other.kind()))),
        }
    }
    value.substitute(&values).map_err(|error| refusal::of_layout(py, error))
}
