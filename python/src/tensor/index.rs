//! Elements and parts of a tensor by coordinates: `t[1, 2]`, `t[None, 3]`, `t[1:3, ::2]`.
//!
//! Law: a coordinate without open modes gives an element. A coordinate with open modes gives the
//! tensor of the elements at all coordinates that agree with it. Ranges are those of Python: from a
//! beginning to before an end, in steps; negative numbers count from the end.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};
use tilewright_layout::{AnyCoord, AnyLayout, AnyTree, Coord, Extent, Layout, Slot, Tree};
use tilewright_notation::Value;
use tilewright_tensor::Offsets;

use super::empty::Empty;
use super::placed::Placed;
use crate::convert;
use crate::function;
use crate::refusal;

/// The result of indexing.
#[expect(clippy::large_enum_variant, reason = "most tensors have elements, and a box is an allocation for each")]
pub(super) enum At {
    /// An element, given by its offset in memory.
    Element(i64),
    /// The tensor of the open modes.
    Part(Placed),
    /// A tensor without elements, because a range is empty.
    Empty(Empty),
}

impl Placed {
    /// The offset in memory at a coordinate without open modes, or the tensor of the open modes.
    pub(super) fn at(&self, key: &Bound<'_, PyAny>) -> PyResult<At> {
        let py = key.py();
        let (ranged, key) = match self.ranged(key)? {
            Ranged::Empty(empty) => return Ok(At::Empty(empty)),
            Ranged::Some(ranged, key) => (ranged, key),
        };
        let this = ranged.as_ref().unwrap_or(self);
        let coordinate = convert::value(&key)?;
        let outside = || {
            let shape = this.offsets.shape();
            PyIndexError::new_err(format!("coordinate {coordinate} is outside the shape {shape}"))
        };
        let closed = match &coordinate {
            Value::Int(index) => Some(Tree::leaf(*index)),
            Value::Tree(AnyTree::Integer(tree)) => Some(tree.clone()),
            Value::Coord(AnyCoord::Integer(coord)) if is_inside(coord, &this.offsets.shape()) => None,
            Value::Coord(AnyCoord::Integer(_)) => return Err(outside()),
            other => {
                let kind = other.kind();
                return Err(PyTypeError::new_err(format!("a coordinate is integers, None and ranges, not a {kind}")));
            }
        };
        if let Some(tree) = closed {
            let offset = this.offsets.offset_at(&tree).map_err(|_| outside())?;
            return Ok(At::Element(this.origin + offset));
        }
        // The beginning of a slice through an outer map is within the map.
        if !matches!(this.layout, AnyLayout::Integer(_)) {
            return match this.asked(py, "slice", &[coordinate])? {
                Value::Layout(layout) => this.seen(py, layout, 0).map(At::Part),
                other => Err(PyTypeError::new_err(format!("a slice is a layout, not a {}", other.kind()))),
            };
        }
        let Value::List(parts) = this.asked(py, "slice_and_offset", &[coordinate])? else {
            return Err(PyTypeError::new_err("a slice is a layout and an offset"));
        };
        match parts.as_slice() {
            [Value::Layout(layout), Value::Int(offset)] => this.seen(py, layout.clone(), *offset).map(At::Part),
            _ => Err(PyTypeError::new_err("a slice is a layout and an offset")),
        }
    }

    /// The tensor of the ranges in a coordinate, such as `2:5`, and the coordinate with `None` in
    /// their place. Indices that count from the end are converted.
    fn ranged<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Ranged<'py>> {
        let py = key.py();
        let rank = self.offsets.rank();
        let items: Vec<Bound<'py, PyAny>> = match key.cast::<PyTuple>() {
            Ok(items) => items.iter().collect(),
            Err(_) => vec![key.clone()],
        };
        let ellipsis = |item: &Bound<'py, PyAny>| item.is(py.Ellipsis());
        if !items.iter().any(|item| ellipsis(item) || item.cast::<PySlice>().is_ok() || is_negative(item)) {
            return Ok(Ranged::Some(None, key.clone()));
        }
        // `...` is replaced by as many whole modes as are left.
        let mut spread = Vec::with_capacity(rank);
        for item in &items {
            match ellipsis(item) {
                true => spread.extend((items.len()..=rank).map(|_| py.None().into_bound(py))),
                false => spread.push(item.clone()),
            }
        }
        let linear = spread.len() == 1 && rank != 1;
        if linear && spread.iter().all(is_negative) {
            let index = spread.first().map_or(Ok(0), |index| index.extract::<i64>())?;
            return Ok(Ranged::Some(None, (index + self.offsets.size()).into_pyobject(py)?.into_any()));
        }
        if spread.len() != rank {
            let given = spread.len();
            return Err(PyIndexError::new_err(format!("{given} indices, for a tensor of {rank} modes")));
        }
        let (mut starts, mut tiler, mut coordinate) = (Vec::new(), Vec::new(), Vec::new());
        let mut any = false;
        for (number, item) in spread.iter().enumerate() {
            let size = self.layout.mode(number).and_then(|mode| mode.size().known()).unwrap_or(1);
            let mut start = 0;
            let mut taken = Value::open();
            match item.cast::<PySlice>() {
                Ok(range) => {
                    let at = range.indices(isize::try_from(size).unwrap_or(isize::MAX))?;
                    if at.slicelength == 0 {
                        return self.nothing(&spread).map(Ranged::Empty);
                    }
                    coordinate.push(py.None().into_bound(py));
                    if (at.start, at.step, at.slicelength as i64) != (0, 1, size) {
                        any = true;
                        start = at.start as i64;
                        let mode = Layout::mode_of(at.slicelength as i64, at.step as i64);
                        taken = mode.map_err(|error| refusal::of_layout(py, error))?.into();
                    }
                }
                Err(_) if is_negative(item) => {
                    coordinate.push((item.extract::<i64>()? + size).into_pyobject(py)?.into_any());
                }
                Err(_) => coordinate.push(item.clone()),
            }
            starts.push(Value::from(start));
            tiler.push(taken);
        }
        let key = match rank {
            1 => coordinate.remove(0),
            _ => PyTuple::new(py, coordinate)?.into_any(),
        };
        if !any {
            return Ok(Ranged::Some(None, key));
        }
        Ok(Ranged::Some(Some(self.within(py, starts, tiler)?), key))
    }

    /// The part at indices and ranges, of which at least one is empty.
    fn nothing(&self, items: &[Bound<'_, PyAny>]) -> PyResult<Empty> {
        let (element, readonly, device) = (self.memory.element(), self.memory.readonly(), self.memory.device());
        let whole = Empty { shape: self.sizes(), element, readonly, device };
        match items {
            [only] => whole.part(only),
            [first, ..] => whole.part(PyTuple::new(first.py(), items)?.as_any()),
            [] => Ok(whole),
        }
    }

    /// The tensor of the parts that a tiler takes of each mode, beginning at these indices.
    pub(super) fn within(&self, py: Python<'_>, starts: Vec<Value>, tiler: Vec<Value>) -> PyResult<Placed> {
        let tuple = |values| Value::tuple(values).map_err(|error| refusal::of_layout(py, error));
        let (moved, beyond) = match self.asked(py, "domain_offset", &[tuple(starts)?])? {
            Value::List(parts) => match parts.as_slice() {
                [moved @ Value::Layout(_), Value::Int(beyond)] => (moved.clone(), *beyond),
                _ => return Err(PyTypeError::new_err("a layout seen from a coordinate on is a layout and an offset")),
            },
            moved => (moved, 0),
        };
        match function::value(py, "composition", &[moved, tuple(tiler)?])? {
            Value::Layout(layout) => self.seen(py, layout, beyond),
            other => Err(PyTypeError::new_err(format!("a range of a layout is a layout, not a {}", other.kind()))),
        }
    }
}

/// The tensor of the ranges of a key, if it has ranges, and the key without them.
#[expect(clippy::large_enum_variant, reason = "most tensors have elements, and a box is an allocation for each")]
enum Ranged<'py> {
    Some(Option<Placed>, Bound<'py, PyAny>),
    Empty(Empty),
}

/// Whether an index counts from the end.
fn is_negative(index: &Bound<'_, PyAny>) -> bool {
    index.cast_exact::<PyInt>().is_ok() && index.extract::<i64>().is_ok_and(|index| index < 0)
}

/// Whether every index of a coordinate is inside its mode.
fn is_inside(coord: &Coord, shape: &Tree<i64>) -> bool {
    if coord.is_leaf() {
        let size = shape.leaves().iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
        return match coord.leaves() {
            [Slot::At(index)] => size.is_some_and(|size| (0..size).contains(index)),
            _ => true,
        };
    }
    !shape.is_leaf()
        && coord.rank() == shape.rank()
        && coord.modes().zip(shape.modes()).all(|(coord, mode)| is_inside(&coord, &mode))
}
