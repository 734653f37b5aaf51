//! Conversion from Python's integers, tuples and texts to values of the language, and back.
//!
//! Law: shapes, strides and coordinates are plain Python objects: an integer is an integer, a tuple
//! is a tuple with the same nesting, and `None` is `_`. So `(8,)` is a tuple with one extent, and
//! `(8)` is the extent. A string is a program of the language. A value that is converted to Python
//! and back is unchanged.

use std::cell::RefCell;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyCoord, AnyTree, Coord, Layout, LayoutError, Leaf, Limit, MAX_DEPTH, Profile, Slot, Tree};
use tilewright_notation::{Environment, Value, evaluate};

use crate::kernel::tiled::{TiledCopy, TiledMma};
use crate::object::{self, Object};
use crate::{notes, refusal};

/// The elements of a sequence. `Vec::extract` reserves memory for the length that the sequence
/// reports, and aborts the process if there is not enough, as for `range(2**50)`. So this function
/// first requests the memory in a way that can fail.
///
/// Errors: there is not enough memory (`MemoryError`); as `Vec::extract`.
pub fn list<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    let length = object.len().unwrap_or(0);
    if Vec::<T>::new().try_reserve_exact(length).is_err() {
        return Err(PyMemoryError::new_err(format!("there is no memory for the {length} elements of a sequence")));
    }
    object.extract()
}

/// The elements of the sequences of a sequence.
///
/// Errors: as [`list`].
pub fn lists<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Vec<T>>> {
    list::<Bound<'py, PyAny>>(object)?.iter().map(list).collect()
}

/// The value of an object.
///
/// Errors: the object has no value (`TypeError`); the language refuses it.
pub fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = object.py();
    if let Ok(number) = object.cast_exact::<PyInt>() {
        return integer(number).map(Value::from);
    }
    if let Ok(known) = object.cast::<Object>() {
        known.get().check_owner(py)?;
        return Ok(known.get().value.clone());
    }
    if let Ok(tiled) = object.cast::<TiledCopy>() {
        return tiled.get().value(py);
    }
    if let Ok(tiled) = object.cast::<TiledMma>() {
        return tiled.get().value(py);
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        // Most tuples contain integers.
        if let Some(tree) = integers(items, depth) {
            return Ok(tree.into());
        }
        return tuple(py, items.iter_borrowed().map(|item| nested(&item, depth + 1)), depth);
    }
    if let Ok(items) = object.cast::<PyList>() {
        return tuple(py, items.iter().map(|item| nested(&item, depth + 1)), depth);
    }
    if object.is_none() {
        return Ok(Value::open());
    }
    if let Ok(text) = object.cast::<PyString>() {
        return program(py, text.to_str()?);
    }
    // Integers of other libraries; a boolean is not a number here.
    if !object.is_instance_of::<PyBool>()
        && let Ok(number) = object.call_method0(pyo3::intern!(py, "__index__"))
        && let Ok(number) = number.cast::<PyInt>()
    {
        return integer(number).map(Value::from);
    }
    let kind = object.get_type();
    let kind = kind.name()?;
    Err(PyTypeError::new_err(format!(
        "expected a value of tilewright, an integer, a nested tuple of integers, None or text, not {kind}"
    )))
}

/// The value of a 64-bit integer, or of nested tuples of them; None for another object.
pub fn plain(object: &Bound<'_, PyAny>) -> Option<Value> {
    if let Ok(number) = object.cast_exact::<PyInt>() {
        return number.extract::<i64>().ok().map(Value::from);
    }
    Some(integers(object.cast_exact::<PyTuple>().ok()?, 0)?.into())
}

/// The tree of nested tuples of integers. None for any other tuple, and if the tuple is not a tree.
fn integers(items: &Bound<'_, PyTuple>, depth: usize) -> Option<Tree<i64>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let number = |item: &Bound<'_, PyAny>| item.cast_exact::<PyInt>().ok()?.extract::<i64>().ok();
    let first = items.iter_borrowed().next()?;
    if number(&first).is_some()
        && let Some(flat) = items.iter_borrowed().map(|item| number(&item)).collect::<Option<SmallVec<[i64; 8]>>>()
    {
        return Tree::flat(flat).ok();
    }
    let modes = items.iter_borrowed().map(|item| match item.cast_exact::<PyTuple>() {
        Ok(nested) => integers(&nested, depth + 1),
        Err(_) => number(&item).map(Tree::leaf),
    });
    Tree::tuple(&modes.collect::<Option<SmallVec<[Tree<i64>; 4]>>>()?).ok()
}

/// The layout of a shape and strides that are 64-bit integers, or tuples of them with the same
/// nesting. None for anything else, and if they do not make a layout.
pub fn pairs(shape: &Bound<'_, PyAny>, stride: &Bound<'_, PyAny>) -> Option<Layout> {
    let mut written = WrittenLayout::default();
    written.write(shape, stride, 0)?;
    let profile = LAST.with_borrow_mut(|last| match last {
        Some((nodes, profile)) if *nodes == written.nodes => Some(profile.clone()),
        last => {
            let profile = nested_as(&mut written.nodes.iter().copied())?;
            *last = Some((written.nodes, profile.clone()));
            Some(profile)
        }
    })?;
    Layout::from_tree(Tree::new(profile, written.leaves).ok()?).ok()
}

/// The nodes of a profile in preorder, as in [`Profile::nodes`].
type Nodes = SmallVec<[u16; 16]>;

thread_local! {
    /// The last profile, because consecutive layouts often have the same nesting.
    static LAST: RefCell<Option<(Nodes, Profile)>> = const { RefCell::new(None) };
}

/// The profile with these nodes.
fn nested_as(nodes: &mut impl ExactSizeIterator<Item = u16>) -> Option<Profile> {
    let rest = nodes.len();
    let node = usize::from(nodes.next()?);
    if node == 0 {
        return Some(Profile::leaf());
    }
    let mut modes = Vec::new();
    while rest - nodes.len() < node {
        modes.push(nested_as(nodes)?);
    }
    Profile::tuple(&modes).ok()
}

/// Collects pairs of extents and strides of a layout, and the nodes of its profile.
#[derive(Default)]
struct WrittenLayout {
    nodes: Nodes,
    leaves: SmallVec<[Leaf; 8]>,
}

impl WrittenLayout {
    fn write(&mut self, shape: &Bound<'_, PyAny>, stride: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
        let at = self.nodes.len();
        self.nodes.push(0);
        if let Ok(extent) = shape.cast_exact::<PyInt>() {
            let (extent, stride) = (extent.extract().ok()?, stride.cast_exact::<PyInt>().ok()?.extract().ok()?);
            self.leaves.push(Leaf { extent, stride });
            return Some(());
        }
        let (shape, stride) = (shape.cast_exact::<PyTuple>().ok()?, stride.cast_exact::<PyTuple>().ok()?);
        if shape.len() != stride.len() || depth > MAX_DEPTH {
            return None;
        }
        for (extent, stride) in shape.iter_borrowed().zip(stride.iter_borrowed()) {
            self.write(&extent, &stride, depth + 1)?;
        }
        *self.nodes.get_mut(at)? = u16::try_from(self.nodes.len() - at).ok()?;
        Some(())
    }
}

/// An integer of 64 bits.
fn integer(number: &Bound<'_, PyInt>) -> PyResult<i64> {
    number.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(number.py()) {
        true => refusal::of_layout(number.py(), LayoutError::Overflow { op: "an integer" }),
        false => error,
    })
}

fn tuple(py: Python<'_>, items: impl Iterator<Item = PyResult<Value>>, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        // A list may contain itself.
        return Err(refusal::of_layout(py, LayoutError::TooLarge { limit: Limit::Depth, value: depth }));
    }
    let items = items.collect::<PyResult<Vec<Value>>>()?;
    Value::tuple(items).map_err(|error| refusal::of_layout(py, error))
}

/// The value of a program.
pub fn program(py: Python<'_>, source: &str) -> PyResult<Value> {
    noted(py, source, Environment::new())
}

/// The value of a program; its notes become warnings.
fn noted(py: Python<'_>, source: &str, mut environment: Environment) -> PyResult<Value> {
    environment.keep_notes();
    let value = evaluate(source, &mut environment).map_err(|error| refusal::of_program(py, &error, source))?;
    notes::of_program(py, &environment.take_notes())?;
    Ok(value)
}

/// The value of a program with names.
pub fn program_with(py: Python<'_>, source: &str, names: Option<&Bound<'_, PyDict>>) -> PyResult<Value> {
    let mut environment = Environment::new();
    for (name, bound) in names.into_iter().flatten() {
        environment.bind(name.extract::<String>()?, value(&bound)?);
    }
    noted(py, source, environment)
}

/// A value as a Python object.
pub fn python<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Int(number) => Ok(number.into_pyobject(py)?.into_any()),
        Value::Bool(truth) => Ok(PyBool::new(py, truth).to_owned().into_any()),
        Value::Tree(tree) => of_tree(py, tree),
        Value::Coord(coord) => match &coord {
            AnyCoord::Integer(coord) => of_coord(py, coord, &|index| Value::from(*index)),
            AnyCoord::Launch(coord) => of_coord(py, coord, &|index: &Expr| Value::from(index.clone())),
        },
        Value::List(items) => {
            let items = items.into_iter().map(|item| python(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, items)?.into_any())
        }
        value => object::new(py, value),
    }
}

/// A tree as nested tuples.
fn of_tree(py: Python<'_>, tree: AnyTree) -> PyResult<Bound<'_, PyAny>> {
    match tree {
        AnyTree::Integer(tree) => of_integers(py, &tree),
        tree if tree.is_leaf() => object::new(py, Value::Tree(tree)),
        tree => {
            let modes = (0..tree.rank()).filter_map(|mode| tree.mode(mode));
            let modes = modes.map(|mode| of_tree(py, mode)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, modes)?.into_any())
        }
    }
}

pub fn of_integers<'py>(py: Python<'py>, tree: &Tree<i64>) -> PyResult<Bound<'py, PyAny>> {
    match (tree.depth(), tree.leaves()) {
        (0, [only]) => Ok(only.into_pyobject(py)?.into_any()),
        (1, leaves) => Ok(PyTuple::new(py, leaves)?.into_any()),
        _ => {
            let modes = tree.modes().map(|mode| of_integers(py, &mode)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, modes)?.into_any())
        }
    }
}

fn of_coord<'py, N: tilewright_layout::Extent>(
    py: Python<'py>,
    coord: &Coord<N>,
    index: &dyn Fn(&N) -> Value,
) -> PyResult<Bound<'py, PyAny>> {
    if coord.is_leaf() {
        return match coord.leaves() {
            [Slot::At(at)] => python(py, index(at)),
            _ => Ok(py.None().into_bound(py)),
        };
    }
    let modes = coord.modes().map(|mode| of_coord(py, &mode, index)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, modes)?.into_any())
}
