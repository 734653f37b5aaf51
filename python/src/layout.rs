//! The class of layouts of every kind: with integer, coordinate or XOR strides, with sizes known at
//! launch, or composed of several maps.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyIterator, PySlice, PyTuple};
use tilewright_layout::{AnyLayout, AnyTree, Leaf};
use tilewright_notation::Value;

use crate::convert::{self, program, python};
use crate::object::Object;
use crate::{array, function, maps, refusal};

/// A layout: a shape and strides of the same nesting, as a function from coordinates to
/// offsets.
///
/// `Layout((4, 8), (8, 1))`, `Layout("(4,8):(8,1)")` and `Layout((4, 8))`, the compact one whose
/// first mode is fastest.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct Layout;

impl Layout {
    fn of<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a AnyLayout> {
        match slf.as_super().get().own(slf.py())? {
            Value::Layout(layout) => Ok(layout),
            _ => Err(PyTypeError::new_err("this is no layout")),
        }
    }
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (shape, stride = None))]
    fn new(
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        stride: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if let Some(layout) = stride.and_then(|stride| convert::pairs(shape, stride)) {
            return Ok(Object::from(Value::from(AnyLayout::from(layout))).of(Layout));
        }
        let value = match (convert::value(shape)?, stride) {
            (shape @ Value::Layout(_), None) => shape,
            (shape, None) => function::value(py, "make_layout", &[shape])?,
            (shape, Some(stride)) => paired(py, &shape, &convert::value(stride)?)?,
        };
        Ok(Object::from(value).of(Layout))
    }

    /// The extents, as an integer or nested tuples.
    #[getter]
    fn shape<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), Layout::of(slf)?.shape().into())
    }

    /// The strides, nested as the shape.
    #[getter]
    fn stride<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match Layout::of(slf)?.stride() {
            Some(stride) => python(slf.py(), stride.into()),
            None => function::called(slf.py(), "stride", &[slf.as_super().get().value.clone()]),
        }
    }

    /// The number of modes.
    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(Layout::of(slf)?.rank())
    }

    /// The modes, each a layout.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        let layout = Layout::of(slf)?;
        let modes = (0..layout.rank()).filter_map(|mode| layout.mode(mode));
        let modes = modes.map(|mode| python(slf.py(), mode.into())).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(slf.py(), modes)?.try_iter()
    }

    /// A mode: `L[1]`, `L[-1]`, a mode of a mode `L[1, 0]`, or a range of modes `L[1:3]`.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, mode: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, layout) = (slf.py(), Layout::of(slf)?);
        let value = || slf.as_super().get().value.clone();
        if let Ok(range) = mode.cast::<PySlice>() {
            let at = range.indices(isize::try_from(layout.rank()).unwrap_or(isize::MAX))?;
            if at.step != 1 {
                let modes =
                    (0..at.slicelength as isize).map(|number| Value::from((at.start + number * at.step) as i64));
                return function::called(py, "select", &[value()].into_iter().chain(modes).collect::<Vec<_>>());
            }
            return function::called(py, "take", &[value(), (at.start as i64).into(), (at.stop as i64).into()]);
        }
        let path = match mode.cast::<PyTuple>() {
            Ok(path) => path.iter().map(|mode| convert::value(&mode)).collect::<PyResult<Vec<_>>>()?,
            Err(_) => vec![convert::value(mode)?],
        };
        let mut arguments = vec![value()];
        let mut within = Some(layout.clone());
        for mode in path {
            let rank = within.as_ref().map_or(0, AnyLayout::rank);
            let from_end = |number: i64| i64::try_from(rank).map_or(number, |rank| number + rank);
            let mode = match mode {
                Value::Int(number) if number < 0 && from_end(number) >= 0 => Value::from(from_end(number)),
                mode => mode,
            };
            within = match (&mode, within) {
                (Value::Int(number), Some(layout)) => usize::try_from(*number).ok().and_then(|at| layout.mode(at)),
                _ => None,
            };
            arguments.push(mode);
        }
        function::called(py, "get", &arguments)
    }

    /// The value at a coordinate, `L(5)` or `L(1, 2)`; if indices are `None`, the layout of these
    /// modes. Arrays of indices give an array of offsets.
    #[pyo3(signature = (*coordinate))]
    fn __call__<'py>(slf: &Bound<'py, Self>, coordinate: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(offset) = at_integers(Layout::of(slf)?, coordinate) {
            return Ok(offset.into_pyobject(py)?.into_any());
        }
        if let Some(offsets) = array::at(Layout::of(slf)?, coordinate)? {
            return Ok(offsets);
        }
        let indices = coordinate.iter_borrowed().map(|index| convert::value(&index)).collect::<PyResult<Vec<_>>>()?;
        maps::applied(slf.as_super(), &indices)
    }

    /// The offsets at all indices, in order, as a NumPy array of 64-bit integers.
    fn offsets<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array::all(slf.py(), Layout::of(slf)?)
    }
}

/// The offset at integers, which is the most frequent call: one integer for all modes, or one for
/// each, or a tuple for nested modes. None if the general evaluation is needed, as for an index
/// outside of its mode.
fn at_integers(layout: &AnyLayout, coordinate: &Bound<'_, PyTuple>) -> Option<i64> {
    let layout = layout.integer()?;
    let mut left = Left { nodes: layout.profile().nodes(), leaves: layout.leaves() };
    match coordinate.len() {
        1 => left.mode(&*coordinate.get_borrowed_item(0).ok()?),
        _ => left.tuple(coordinate),
    }
}

/// The remaining modes of a layout during the evaluation of a coordinate, as [`Profile::nodes`]
/// lists them.
///
/// [`Profile::nodes`]: tilewright_layout::Profile::nodes
struct Left<'a> {
    nodes: &'a [u16],
    leaves: &'a [Leaf],
}

impl Left<'_> {
    /// The offset of an index of the next mode, or of a tuple of them.
    fn mode(&mut self, index: &Bound<'_, PyAny>) -> Option<i64> {
        let Ok(index) = index.cast_exact::<PyInt>() else { return self.tuple(index.cast_exact::<PyTuple>().ok()?) };
        let node = usize::from(*self.nodes.first()?).max(1);
        let (own, nodes) = self.nodes.split_at_checked(node)?;
        let count = own.iter().filter(|node| **node == 0).count();
        let (own, leaves) = self.leaves.split_at_checked(count)?;
        *self = Left { nodes, leaves };
        // The digits of the index, first mode fastest.
        let mut rest: i64 = index.extract().ok().filter(|index| *index >= 0)?;
        let mut offset = 0_i64;
        for leaf in own {
            let digit = if rest < leaf.extent { std::mem::take(&mut rest) } else { rest % leaf.extent };
            rest /= leaf.extent;
            offset = offset.checked_add(digit.checked_mul(leaf.stride)?)?;
        }
        (rest == 0).then_some(offset)
    }

    /// The offset of one index for each submode of the next mode.
    fn tuple(&mut self, indices: &Bound<'_, PyTuple>) -> Option<i64> {
        let (node, nodes) = self.nodes.split_first()?;
        let behind = self.nodes.len().checked_sub(usize::from(*node))?;
        if *node == 0 {
            return None;
        }
        self.nodes = nodes;
        let mut offset = 0_i64;
        for index in indices.iter_borrowed() {
            if self.nodes.len() == behind {
                return None;
            }
            offset = offset.checked_add(self.mode(&index)?)?;
        }
        (self.nodes.len() == behind).then_some(offset)
    }
}

/// The layout of a shape and strides.
fn paired(py: Python<'_>, shape: &Value, stride: &Value) -> PyResult<Value> {
    let tree = |value: &Value| match value {
        Value::Int(number) => Some(AnyTree::from(*number)),
        Value::Tree(tree) => Some(tree.clone()),
        _ => None,
    };
    let (Some(extents), Some(strides)) = (tree(shape), tree(stride)) else {
        let odd = if tree(shape).is_none() { shape } else { stride };
        return Err(PyTypeError::new_err(format!("a shape and strides are numbers or tuples, not a {}", odd.kind())));
    };
    match AnyLayout::new(&extents, &strides) {
        Ok(layout) => Ok(layout.into()),
        // The program `shape:stride` reports the error with its location.
        Err(error) => program(py, &format!("{shape}:{stride}")).and_then(|_| Err(refusal::of_layout(py, error))),
    }
}
