//! Layouts evaluated at arrays of indices, without a loop in Python.
//!
//! Law: `L(array)` contains at each position the value of `L` at the array's index there. `L(i, j)`
//! for arrays contains the values at the broadcast coordinates.

use numpy::ndarray::{ArrayD, Dimension, IxDyn};
use numpy::{
    IntoPyArray, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use tilewright_layout::{AnyLayout, Evaluator, Extent, LayoutError};

use crate::object::Object;
use crate::{notes, refusal};

/// The offsets at arrays of indices; None if no index is an array.
pub fn at<'py>(layout: &AnyLayout, coordinate: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !coordinate.iter_borrowed().any(|index| is_array(&index)) {
        return Ok(None);
    }
    let py = coordinate.py();
    if let (1, Ok(only)) = (coordinate.len(), coordinate.get_item(0)) {
        let indices = integers(&only)?;
        let shape = indices.shape().to_vec();
        if let Some(size) = layout.size().known() {
            outside(py, indices.as_array().iter().copied(), size, "the layout")?;
        }
        // The last axis is the fastest; the memory of the array may have another order.
        let values = match indices.as_array().as_slice() {
            Some(indices) => offsets(layout, indices.iter().copied()),
            None => offsets(layout, indices.as_array().iter().copied()),
        };
        return array(py, &shape, values?).map(Some);
    }
    let rank = layout.rank();
    if coordinate.len() != rank {
        let count = coordinate.len();
        return Err(PyValueError::new_err(format!("{count} arrays of indices, for a layout of {rank} modes")));
    }
    let spread = py.import("numpy")?.getattr("broadcast_arrays")?.call1(coordinate)?;
    let indices = spread.try_iter()?.map(|indices| integers(&indices?)).collect::<PyResult<Vec<_>>>()?;
    let views: Vec<_> = indices.iter().map(|indices| indices.as_array()).collect();
    let shape = views.first().map_or(Vec::new(), |view| view.raw_dim().slice().to_vec());
    let mut columns: Vec<_> = views.iter().map(|view| view.iter().copied()).collect();
    let count = views.first().map_or(0, |view| view.len());
    for (mode, indices) in views.iter().enumerate() {
        if let Some(size) = layout.mode(mode).and_then(|mode| mode.size().known()) {
            outside(py, indices.iter().copied(), size, &format!("mode {mode}"))?;
        }
    }
    let point = (0..count).map(|_| columns.iter_mut().map(|column| column.next().unwrap_or(0)).collect::<Vec<i64>>());
    array(py, &shape, offsets_at(layout, point)?).map(Some)
}

/// Reports an index outside of a layout or of a mode.
fn outside(py: Python<'_>, mut indices: impl Iterator<Item = i64>, size: i64, of: &str) -> PyResult<()> {
    match indices.find(|index| !(0..size).contains(index)) {
        None => Ok(()),
        Some(index) => {
            notes::tell(py, &format!("index {index} is outside the {size} of {of}, which goes on in its last leaf"))
        }
    }
}

/// All offsets, in the order of the indices.
pub fn all<'py>(py: Python<'py>, layout: &AnyLayout) -> PyResult<Bound<'py, PyAny>> {
    let Some(size) = layout.size().known() else { return Err(unfit(layout)) };
    let mut values: Vec<i64> = Vec::new();
    let length = usize::try_from(size).map_err(|_| PyMemoryError::new_err("too many offsets"))?;
    values.try_reserve_exact(length).map_err(|error| PyMemoryError::new_err(error.to_string()))?;
    fill(&mut values, layout, 0..size)?;
    Ok(PyArray1::from_vec(py, values).into_any())
}

/// Whether an object is a NumPy array. If NumPy is not imported, it is not.
fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let plain = object.is_exact_instance_of::<PyInt>() || object.is_none() || object.cast::<Object>().is_ok();
    !plain
        && object.hasattr(pyo3::intern!(object.py(), "__array_interface__")).unwrap_or(false)
        && object.cast::<PyUntypedArray>().is_ok()
}

/// An array of integers, converted to 64 bits.
fn integers<'py>(object: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, i64>> {
    let array = object.cast::<PyUntypedArray>()?;
    let kind = array.dtype().kind();
    if !matches!(kind, b'i' | b'u') {
        let dtype = array.dtype();
        return Err(PyTypeError::new_err(format!("indices are integers of up to 64 bits with a sign, not {dtype}")));
    }
    let same = object.call_method1("astype", ("int64", "K", "safe", true, false))?;
    Ok(same.cast_into::<numpy::PyArrayDyn<i64>>()?.try_readonly()?)
}

fn array<'py>(py: Python<'py>, shape: &[usize], values: Vec<i64>) -> PyResult<Bound<'py, PyAny>> {
    let array = ArrayD::from_shape_vec(IxDyn(shape), values);
    let array = array.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(array.into_pyarray(py).into_any())
}

/// The offsets at indices.
fn offsets(layout: &AnyLayout, indices: impl ExactSizeIterator<Item = i64>) -> PyResult<Vec<i64>> {
    let mut values = Vec::with_capacity(indices.len());
    fill(&mut values, layout, indices)?;
    Ok(values)
}

fn fill(values: &mut Vec<i64>, layout: &AnyLayout, indices: impl Iterator<Item = i64>) -> PyResult<()> {
    let filled = match layout {
        AnyLayout::Integer(layout) => {
            let evaluator = layout.evaluator();
            extend(values, indices, |index| evaluator.eval(index))
        }
        AnyLayout::Composed(map) => extend(values, indices, |index| map.eval(&index)),
        AnyLayout::Xor(layout) => extend(values, indices, |index| Ok(layout.eval(&index)?.bits() as i64)),
        other => return Err(unfit(other)),
    };
    filled.map_err(|error| Python::attach(|py| refusal::of_layout(py, error)))
}

fn extend(
    values: &mut Vec<i64>,
    indices: impl Iterator<Item = i64>,
    value: impl Fn(i64) -> Result<i64, LayoutError>,
) -> Result<(), LayoutError> {
    for index in indices {
        values.push(value(index)?);
    }
    Ok(())
}

/// The offsets at coordinates, one index per mode.
fn offsets_at(layout: &AnyLayout, points: impl Iterator<Item = Vec<i64>>) -> PyResult<Vec<i64>> {
    let refused = |error: LayoutError| Python::attach(|py| refusal::of_layout(py, error));
    if let AnyLayout::Integer(layout) = layout {
        // Offsets are sums over the modes.
        let modes: Vec<Evaluator> = layout.modes().map(|mode| mode.evaluator()).collect();
        let at = |point: Vec<i64>| {
            modes.iter().zip(point).try_fold(0_i64, |sum, (mode, index)| {
                sum.checked_add(mode.eval(index)?).ok_or(LayoutError::Overflow { op: "eval" })
            })
        };
        return points.map(at).collect::<Result<_, _>>().map_err(refused);
    }
    // Other layouts are evaluated at the index of the coordinate, which must be inside.
    let Some(sizes) = (0..layout.rank()).map(|mode| layout.mode(mode)?.size().known()).collect::<Option<Vec<i64>>>()
    else {
        return Err(unfit(layout));
    };
    let mut indices = Vec::new();
    for point in points {
        let (mut index, mut step) = (0_i64, 1_i64);
        for (at, size) in point.iter().zip(&sizes) {
            if !(0..*size).contains(at) {
                return Err(PyValueError::new_err(format!("the index {at} lies outside of a mode of size {size}")));
            }
            // The size of the layout is representable.
            index = index.saturating_add(at.saturating_mul(step));
            step = step.saturating_mul(*size);
        }
        indices.push(index);
    }
    offsets(layout, indices.into_iter())
}

/// The reason why a layout has no array of offsets.
fn unfit(layout: &AnyLayout) -> PyErr {
    PyTypeError::new_err(format!(
        "an array of offsets needs known numbers and integer values, not a {}",
        layout.kind().name()
    ))
}
