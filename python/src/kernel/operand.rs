//! Arguments of statements.
//!
//! Law: an element type is named as in NumPy, PyTorch or the library of kernels. A coordinate is an
//! integer, a size known at launch, or a tuple of these, with `None` for modes that are kept. An
//! operand of arithmetic is a value of the kernel, a Python number or an index.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use tilewright_kernel::{Element, Num, Reduction};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyTree, Coord, Layout, Slot, Tiler, Tree};
use tilewright_notation::Value;

use super::coordinates::Coordinates;
use super::fragment::Fragment;
use super::number::{Flag, Number};
use super::pipeline::{Cursor, Pipeline, Stage};
use super::predicates::Predicates;
use super::tile::Tile;
use super::trace::{Handle, ObjectKind, RefusedStatement, Room, Thing, run};
use super::traced;
use super::view::View;
use crate::convert;
use crate::object::{Object, has_index};
use crate::refusal;

/// The object of a handle, of its Python class.
pub fn object(py: Python<'_>, handle: Handle) -> PyResult<Bound<'_, PyAny>> {
    Ok(match handle.kind() {
        ObjectKind::View => traced::object(py, View { handle })?.into_any(),
        ObjectKind::Fragment => traced::object(py, Fragment { handle })?.into_any(),
        ObjectKind::Coordinates => traced::object(py, Coordinates { handle })?.into_any(),
        ObjectKind::Predicates => traced::object(py, Predicates { handle })?.into_any(),
        ObjectKind::Number => traced::object(py, Number { handle })?.into_any(),
        ObjectKind::Flag => traced::object(py, Flag { handle, known: None, sizes: Vec::new() })?.into_any(),
        ObjectKind::Tile => traced::object(py, Tile { handle })?.into_any(),
        ObjectKind::Pipeline => traced::object(py, Pipeline { handle })?.into_any(),
        ObjectKind::Cursor => traced::object(py, Cursor { handle })?.into_any(),
        ObjectKind::Stage => traced::object(py, Stage { handle })?.into_any(),
    })
}

/// Makes a value of the kernel with the location of the caller, and returns its object.
pub fn made<'py>(
    py: Python<'py>,
    make: impl for<'k> FnOnce(&Room<'k>) -> Result<Thing<'k>, RefusedStatement>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = run(py, move |room| Ok(room.keep(make(room)?)))?;
    object(py, made)
}

/// An operand of arithmetic.
#[derive(Debug, Clone)]
pub enum Operand {
    /// A fragment, a tile or a number of the kernel.
    Of(Handle),
    /// A Python floating-point number, in the type of the other operand.
    Value(f64),
    /// A Python integer, in the type of the other operand.
    Whole(i128),
    /// An index, of type i32.
    Index(Expr),
}

impl Operand {
    /// An object as an operand; None if it is not one.
    pub fn of(object: &Bound<'_, PyAny>) -> Option<Operand> {
        if let Ok(number) = object.cast_exact::<PyFloat>() {
            return Some(Operand::Value(number.value()));
        }
        if let Ok(fragment) = object.cast::<Fragment>() {
            return Some(Operand::Of(fragment.get().handle));
        }
        if let Ok(number) = object.cast::<Number>() {
            return Some(Operand::Of(number.get().handle));
        }
        if let Ok(tile) = object.cast::<Tile>() {
            return Some(Operand::Of(tile.get().handle));
        }
        // A string in arithmetic is an error, as in Python.
        if object.is_instance_of::<PyBool>() || object.is_instance_of::<PyString>() {
            return None;
        }
        if object.is_instance_of::<PyInt>() {
            // No integer type has integers of more than 128 bits.
            let whole = object.extract::<i128>().map(Operand::Whole);
            return whole.or_else(|_| object.extract::<f64>().map(Operand::Value)).ok();
        }
        if object.is_instance_of::<PyFloat>() {
            return object.extract::<f64>().ok().map(Operand::Value);
        }
        // NumPy scalars are numbers of their own type.
        if let Ok(scalar) = object.getattr(intern!(object.py(), "dtype")).and_then(|_| object.call_method0("item")) {
            return if scalar.get_type().is(object.get_type()) { None } else { Operand::of(&scalar) };
        }
        index(object).ok().map(Operand::Index)
    }

    /// The operand as an index; an integer is an index.
    pub fn index(&self) -> Option<Expr> {
        match self {
            Operand::Index(index) => Some(index.clone()),
            Operand::Whole(whole) => i64::try_from(*whole).ok().map(Expr::from),
            _ => None,
        }
    }

    /// The operand as a number, in arithmetic with another number whose type Python numbers take.
    pub fn beside<'k>(&self, room: &Room<'k>, other: Num<'k>) -> Result<Num<'k>, RefusedStatement> {
        match self {
            Operand::Of(handle) => room.number(*handle),
            Operand::Value(_) | Operand::Whole(_) => self.number(room, other.element()),
            Operand::Index(index) => Ok(room.build.index(index)?),
        }
    }

    /// The operand as a number of a type.
    pub fn number<'k>(&self, room: &Room<'k>, element: Element) -> Result<Num<'k>, RefusedStatement> {
        match self {
            Operand::Of(handle) => room.number(*handle),
            Operand::Value(value) => {
                if element.is_float() || (value.fract() == 0.0 && value.abs() < EXACT) {
                    return Operand::constant(room, element, *value as i128, *value);
                }
                let help =
                    "convert the number of the kernel: `x.to(\"f32\")`, or `tw.number(i).to(\"f32\")` of an index";
                Err(RefusedStatement::here(format!("{value} is no number of type {element}"), help))
            }
            Operand::Whole(whole) => Operand::constant(room, element, *whole, *whole as f64),
            Operand::Index(index) => Ok(room.build.index(index)?),
        }
    }

    /// A constant, which an integer type must represent exactly.
    fn constant<'k>(room: &Room<'k>, element: Element, whole: i128, value: f64) -> Result<Num<'k>, RefusedStatement> {
        if element.is_float() {
            return Ok(room.build.number_of(element, value));
        }
        let bits = element.bits() - u32::from(element.is_signed_integer());
        let least = if element.is_signed_integer() { -(1_i128 << bits) } else { 0 };
        if whole < least || whole >= 1_i128 << bits {
            let what = format!("{whole} is no number of type {element}, which has {least} to {}", (1_i128 << bits) - 1);
            return Err(RefusedStatement::here(what, "convert the number of the kernel, as by `.to(\"i64\")`"));
        }
        if whole.abs() < EXACT as i128 {
            return Ok(room.build.number_of(element, whole as f64));
        }
        // The builder takes constants as f64, which represents each 64-bit half exactly.
        let half = |value: i128| room.build.number_of(element, value as f64);
        Ok(half(whole >> 32) * half(1 << 32) + half(whole & 0xffff_ffff))
    }
}

/// f64 represents all smaller integers exactly.
const EXACT: f64 = (1_u64 << 53) as f64;

/// An object as an operand; an error if it is not one.
pub fn operand(object: &Bound<'_, PyAny>) -> PyResult<Operand> {
    if let Ok(known) = object.cast::<Object>() {
        known.get().check_owner(object.py())?;
    }
    Operand::of(object).ok_or_else(|| {
        let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("expected a number, a number of the kernel or an index, not {kind}"))
    })
}

/// A type of elements: `"f32"`, `"float32"`, `numpy.float32`, `torch.float32`.
pub fn element(object: &Bound<'_, PyAny>) -> PyResult<Element> {
    let text = match object.cast::<PyString>() {
        Ok(text) => text.to_string(),
        Err(_) => match object.getattr("name").or_else(|_| object.getattr("__name__")) {
            Ok(name) if name.is_instance_of::<PyString>() => name.extract::<String>()?,
            _ => object.str()?.to_string(),
        },
    };
    named_element(&text).ok_or_else(|| {
        let known: Vec<&str> = Element::ALL.iter().map(|element| element.name()).collect();
        PyValueError::new_err(format!("there is no type of elements '{text}'; there are {}", known.join(", ")))
    })
}

/// The element type with a name of the library, of NumPy or of PyTorch.
pub fn named_element(text: &str) -> Option<Element> {
    let text = text.strip_prefix("torch.").unwrap_or(text);
    Element::named(text).or(match text {
        "float64" => Some(Element::F64),
        "float32" => Some(Element::F32),
        "float16" => Some(Element::F16),
        "bfloat16" => Some(Element::Bf16),
        "float8_e4m3fn" => Some(Element::E4M3),
        "float8_e5m2" => Some(Element::E5M2),
        "int64" => Some(Element::I64),
        "int32" => Some(Element::I32),
        "int16" => Some(Element::I16),
        "int8" => Some(Element::I8),
        "uint64" => Some(Element::U64),
        "uint32" => Some(Element::U32),
        "uint16" => Some(Element::U16),
        "uint8" | "bool" => Some(Element::U8),
        _ => None,
    })
}

/// The reduction with a name: `"sum"`, `"product"`, `"minimum"` or `"maximum"`.
pub fn reduction(text: &str) -> PyResult<Reduction> {
    match text {
        "sum" => Ok(Reduction::Sum),
        "product" => Ok(Reduction::Product),
        "minimum" | "min" => Ok(Reduction::Minimum),
        "maximum" | "max" => Ok(Reduction::Maximum),
        _ => Err(PyValueError::new_err(format!(
            "there is no reduction '{text}'; there are sum, product, minimum, maximum"
        ))),
    }
}

/// An index: an integer, or a number known at launch.
pub fn index(object: &Bound<'_, PyAny>) -> PyResult<Expr> {
    let value = convert::value(object)?;
    match &value {
        Value::Int(number) => Ok(Expr::from(*number)),
        Value::Tree(AnyTree::Launch(tree)) if tree.is_leaf() => Ok(tree.leaves()[0].clone()),
        _ => Err(PyTypeError::new_err(format!("an index is an integer or a number of the launch, not {value}"))),
    }
}

/// A coordinate, with `None` for modes that are kept.
pub fn coordinate(object: &Bound<'_, PyAny>) -> PyResult<Coord<Expr>> {
    let value = convert::value(object)?;
    let slot = |index: &Expr| Slot::At(index.clone());
    match &value {
        Value::Int(number) => Ok(Tree::leaf(Slot::At(Expr::from(*number)))),
        Value::Tree(AnyTree::Integer(tree)) => Ok(tree.map(|index| Slot::At(Expr::from(*index)))),
        Value::Tree(AnyTree::Launch(tree)) => Ok(tree.map(slot)),
        Value::Coord(coord) => Ok(coord.launch().into_owned()),
        _ => Err(PyTypeError::new_err(format!("a coordinate is made of indices, tuples and None, not {value}"))),
    }
}

/// A coordinate of integers.
pub fn known_coordinate(object: &Bound<'_, PyAny>) -> PyResult<Coord> {
    let value = convert::value(object)?;
    match &value {
        Value::Int(number) => Ok(Tree::leaf(Slot::At(*number))),
        Value::Tree(AnyTree::Integer(tree)) => Ok(tree.map(|index| Slot::At(*index))),
        Value::Coord(coord) => coord.integer().cloned().ok_or_else(|| {
            PyTypeError::new_err(format!(
                "registers have no addresses: {value} must be known when the kernel is written"
            ))
        }),
        _ => Err(PyTypeError::new_err(format!(
            "registers have no addresses: {value} is no coordinate that is known when the kernel is written"
        ))),
    }
}

/// The error that a value is not known while a kernel is traced. It names the sizes on which the
/// value depends, which could become constants of the kernel.
fn unknown(py: Python<'_>, what: &str, value: &Value) -> PyErr {
    let error =
        PyTypeError::new_err(format!("expected {what} whose numbers are known, not the {} {value}", value.kind()));
    let parameters = value.parameters();
    let names: Vec<&str> = parameters.iter().filter_map(|parameter| parameter.name()).collect();
    match error.value(py).setattr("sizes", names) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// A shape, which may contain numbers known at launch.
pub fn launch_tree(object: &Bound<'_, PyAny>) -> PyResult<Tree<Expr>> {
    let value = convert::value(object)?;
    let tree = match &value {
        Value::Int(number) => Some(Tree::leaf(Expr::from(*number))),
        Value::Tree(tree) => tree.launch(),
        _ => None,
    };
    tree.ok_or_else(|| PyTypeError::new_err(format!("expected numbers, or tuples of them, not {value}")))
}

/// The modes of a tiler and of a tile coordinate that apply to a tensor: all of them, or those
/// whose entry in a projection is not None.
pub fn projected<'py>(
    tiler: &Bound<'py, PyAny>,
    coord: &Bound<'py, PyAny>,
    proj: Option<&Bound<'py, PyTuple>>,
) -> PyResult<(String, Coord<Expr>)> {
    let py = tiler.py();
    let Some(proj) = proj else { return Ok((text(tiler)?, coordinate(coord)?)) };
    let kept = |of: &Bound<'py, PyAny>, what: &str| -> PyResult<Bound<'py, PyAny>> {
        let of = of.cast::<PyTuple>().map_err(|_| PyTypeError::new_err(format!("with proj, {what} is a tuple")))?;
        if of.len() != proj.len() {
            return Err(PyValueError::new_err(format!("proj and {what} have as many modes each")));
        }
        let modes = of.iter().zip(proj.iter()).filter(|(_, keep)| !keep.is_none());
        Ok(PyTuple::new(py, modes.map(|(mode, _)| mode).collect::<Vec<_>>())?.into_any())
    };
    Ok((text(&kept(tiler, "the tiler")?)?, coordinate(&kept(coord, "the coordinate")?)?))
}

/// A layout without parameters.
pub fn layout(object: &Bound<'_, PyAny>) -> PyResult<Layout> {
    let value = convert::value(object)?;
    let layout = value.operand_layout();
    layout.and_then(|layout| layout.integer().cloned()).ok_or_else(|| unknown(object.py(), "a layout", &value))
}

/// A shape without parameters.
pub fn shape(object: &Bound<'_, PyAny>) -> PyResult<Tree<i64>> {
    let value = convert::value(object)?;
    value.integer_tree().ok_or_else(|| unknown(object.py(), "a shape", &value))
}

/// A tiler without parameters.
pub fn tiler(object: &Bound<'_, PyAny>) -> PyResult<Tiler> {
    let value = convert::value(object)?;
    match value.to_tiler() {
        Some(tiler) => tiler.map_err(|error| refusal::of_layout(object.py(), error)),
        None => Err(PyTypeError::new_err(format!("expected a tiler, not the {} {value}", value.kind()))),
    }
}

/// A value as text of the language, for the builder.
pub fn text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = object.cast::<PyString>() {
        // The kernel collects facts about sizes, as in `M{div=4}`.
        return Ok(text.to_string());
    }
    let value = convert::value(object)?;
    if has_index(&value) {
        let help = "cut the tensor at the index: `x[None, k]`, `x.local_tile(shape, (k, 0))`";
        let refused = RefusedStatement::here(
            "layouts and shapes depend on sizes alone, and this one on an index of the kernel",
            help,
        );
        return Err(refusal::of_kernel(object.py(), &refused));
    }
    Ok(value.to_string())
}
