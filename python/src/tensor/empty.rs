//! Tensors without elements.
//!
//! Law: a layout has at least one index, so a tensor with an axis of extent 0 has a shape and no
//! layout. Its operations have the results of NumPy: sums are 0, there is no maximum, parts and
//! copies are empty, and writing has no effect.

use dlpark::ffi::DLDevice;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use tilewright_layout::{AnyTree, LayoutError, Tree};
use tilewright_notation::Value;

use super::element::Element;
use super::exchange::compact;
use crate::refusal;

/// The shape of a tensor without elements, in which an axis has extent 0.
#[derive(Clone)]
pub struct Empty {
    pub(super) shape: Vec<i64>,
    pub(super) element: Element,
    pub(super) readonly: bool,
    pub(super) device: DLDevice,
}

impl Empty {
    /// A writable empty tensor on the host.
    pub(super) fn of(shape: Vec<i64>, element: Element) -> Empty {
        Empty { shape, element, readonly: false, device: DLDevice::CPU }
    }

    /// The shape as a Python tuple.
    pub(super) fn text(&self) -> String {
        let extents = self.shape.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        if self.shape.len() == 1 { format!("({extents},)") } else { format!("({extents})") }
    }

    /// The error of an operation that needs elements.
    pub(super) fn refused(&self, what: &str) -> PyErr {
        PyValueError::new_err(format!(
            "a tensor of shape {} has no elements, and so no layout, which {what} needs",
            self.text()
        ))
    }

    /// Extents or strides, nested like the shape of a layout.
    fn tree(py: Python<'_>, numbers: &[i64]) -> PyResult<Value> {
        let tree = Tree::flat(numbers.iter().copied()).map_err(|error: LayoutError| refusal::of_layout(py, error))?;
        Ok(Value::Tree(AnyTree::Integer(tree)))
    }

    pub(super) fn shape_value(&self, py: Python<'_>) -> PyResult<Value> {
        Empty::tree(py, &self.shape)
    }

    pub(super) fn strides_value(&self, py: Python<'_>) -> PyResult<Value> {
        Empty::tree(py, &compact(&self.shape))
    }

    /// The result of a function of the language that returns a property of the tensor, or another
    /// tensor.
    ///
    /// Errors: the function needs a layout (`ValueError`); there is no such mode (`IndexError`).
    pub(super) fn told(&self, py: Python<'_>, name: &str, more: &[Value]) -> PyResult<Option<Value>> {
        let extent = |mode: &Value| match mode {
            Value::Int(mode) => usize::try_from(*mode).ok().and_then(|mode| self.shape.get(mode)).copied(),
            _ => None,
        };
        let none = || PyIndexError::new_err(format!("the shape {} has no such mode", self.text()));
        Ok(Some(match (name, more) {
            ("size" | "cosize", []) => Value::Int(0),
            ("rank", []) => Value::Int(self.shape.len() as i64),
            ("depth", []) => Value::Int(1),
            ("shape", []) => self.shape_value(py)?,
            ("size" | "shape", [mode]) => Value::Int(extent(mode).ok_or_else(none)?),
            ("flatten" | "coalesce" | "filter_zeros", []) => return Ok(None),
            _ => return Err(self.refused(name)),
        }))
    }

    /// The part at indices, ranges and whole modes, which is also empty.
    ///
    /// Errors: an index is outside its mode (`IndexError`), or is not an index (`TypeError`).
    pub(super) fn part(&self, key: &Bound<'_, PyAny>) -> PyResult<Empty> {
        let py = key.py();
        let mut items: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
            Ok(items) => items.iter().collect(),
            Err(_) => vec![key.clone()],
        };
        if let Some(at) = items.iter().position(|item| item.is(py.Ellipsis())) {
            let whole = (items.len()..=self.shape.len()).map(|_| py.None().into_bound(py));
            items.splice(at..=at, whole);
        }
        if items.len() != self.shape.len() {
            let (given, rank) = (items.len(), self.shape.len());
            return Err(PyIndexError::new_err(format!("{given} indices, for a tensor of {rank} modes")));
        }
        let mut shape = Vec::new();
        for (item, extent) in items.iter().zip(&self.shape) {
            if item.is_none() {
                shape.push(*extent);
            } else if let Ok(range) = item.cast::<PySlice>() {
                shape.push(range.indices(isize::try_from(*extent).unwrap_or(isize::MAX))?.slicelength as i64);
            } else {
                let index: i64 = item.extract().map_err(|_| {
                    PyTypeError::new_err("a coordinate of an empty tensor is integers, None and ranges")
                })?;
                if !(-extent..*extent).contains(&index) {
                    let text = self.text();
                    return Err(PyIndexError::new_err(format!("index {index} is outside the shape {text}")));
                }
            }
        }
        Ok(Empty { shape, ..self.clone() })
    }

    /// An error if the tensor is read-only.
    pub(super) fn check_writable(&self) -> PyResult<()> {
        if self.readonly { Err(PyValueError::new_err("the memory is to be read only")) } else { Ok(()) }
    }

    /// An error if the two sizes differ.
    pub(super) fn check_size(&self, py: Python<'_>, first: i64, second: i64) -> PyResult<()> {
        if first == second {
            return Ok(());
        }
        Err(refusal::of(py, &tilewright_tensor::TensorError::Sizes { first, second }))
    }
}
