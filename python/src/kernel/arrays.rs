//! Arrays of Python as tensors of a kernel.
//!
//! Law: an array may be passed for a tensor if its elements have the offsets of the kernel's
//! layout. Sizes known at launch are read from the array: extents first, then strides.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;
use tilewright_kernel::program::memory::{Buffer, Role};
use tilewright_kernel::{Element, LaunchArguments};
use tilewright_layout::symbolic::{Expr, Parameter, Symbolic};
use tilewright_layout::{AnyLayout, Extent, Layout};
use tilewright_notation::Value;

use super::program::{Program, Sizes, borrowed, of_setup};
use crate::convert::python;
use crate::foreign::Array;
use crate::refusal;

/// The exception for an array that a kernel does not accept.
fn refused(py: Python<'_>, what: &str, help: &str) -> PyErr {
    refusal::of_run(py, "E1003", what, Some(help), None)
}

impl Program {
    /// The sizes at which these arrays fit the tensors of the kernel. `given` are the sizes that
    /// are already known.
    ///
    /// Errors: a wrong number of arrays; an array of a wrong type, or a read-only one that is
    /// written; a size that no array determines; an array with another layout than the tensor of
    /// the kernel.
    pub fn fit(&self, py: Python<'_>, arrays: &[Array], given: &[(String, i64)]) -> PyResult<Sizes> {
        let program = self.kernel.program();
        self.check_elements(py, arrays)?;
        let (sizes, other_rank) = self.sizes_told(arrays, given);
        let known = |size: &str| sizes.iter().any(|(own, _)| own == size);
        let all_known = program.sizes.iter().filter_map(Parameter::name).all(known);
        if let (false, Some((buffer, array))) = (all_known, other_rank) {
            let (name, layout, lies) = (&buffer.name, &buffer.layout, array.text());
            return Err(refused(
                py,
                &format!(
                    "`{name}` is {layout} in the kernel, and the array, with another number of axes, lies as {lies}"
                ),
                "pass an array of as many axes, or the sizes by their names",
            ));
        }
        // A size without a value is refused here, and facts are checked.
        let layouts = program.layouts(&borrowed(&sizes)).map_err(|error| of_setup(py, &error))?;
        for ((buffer, array), layout) in program.tensors().zip(arrays).zip(&layouts) {
            if !lies(array, layout) {
                let (name, declared, lies) = (&buffer.name, &buffer.layout, array.text());
                return Err(refused(
                    py,
                    &format!(
                        "`{name}` is {declared} in the kernel, at these sizes {layout}, and the array lies as {lies}"
                    ),
                    &format!(
                        "pass an array that lies so, perhaps {}, or declare the layout that it has",
                        array.copied_by
                    ),
                ));
            }
        }
        Ok(sizes)
    }

    /// Refuses a wrong number of arrays, an array of a wrong type, and a read-only array that is
    /// written.
    pub fn check_elements(&self, py: Python<'_>, arrays: &[Array]) -> PyResult<()> {
        let program = self.kernel.program();
        let (count, given) = (program.tensors().count(), arrays.len());
        if count != given {
            let what = format!("`{}` takes {count} arrays, and {given} are given", program.name);
            return Err(refused(py, &what, ""));
        }
        for (buffer, array) in program.tensors().zip(arrays) {
            let name = &buffer.name;
            if buffer.element != array.element {
                let what = format!("`{name}` has elements of type {}, and {} is given", buffer.element, array.element);
                return Err(refused(py, &what, "convert the array, or write the kernel for its type"));
            }
            if buffer.role != Role::Input && array.read_only {
                return Err(refused(py, &format!("`{name}` is written, and the array may only be read"), ""));
            }
        }
        Ok(())
    }

    /// The sizes that the arrays determine, after the given ones; and the first tensor whose array
    /// has another rank, and so determines nothing.
    fn sizes_told<'a>(
        &'a self,
        arrays: &'a [Array],
        given: &[(String, i64)],
    ) -> (Sizes, Option<(&'a Buffer, &'a Array)>) {
        let mut sizes: Sizes = given.to_vec();
        let mut other_rank = None;
        // Extents first: if the array has another layout than the kernel expects, a stride would
        // give the wrong size.
        for strides in [false, true] {
            for (buffer, array) in self.kernel.program().tensors().zip(arrays) {
                let Some(layout) = declared(buffer) else { continue };
                if layout.rank() != array.shape.len() {
                    other_rank = other_rank.or(Some((buffer, array)));
                    continue;
                }
                let modes = (0..layout.rank()).filter_map(|mode| layout.mode(mode));
                for (mode, value) in modes.zip(if strides { &array.strides } else { &array.shape }) {
                    let [leaf] = mode.leaves() else { continue };
                    let of = if strides { &leaf.stride } else { &leaf.extent };
                    let parameters = of.parameters();
                    let [parameter] = parameters.as_slice() else { continue };
                    let known = |name: &str| sizes.iter().any(|(own, _)| own == name);
                    let Some(own) = parameter.name().filter(|own| !known(own)) else { continue };
                    if Expr::from(parameter.clone()) == *of {
                        sizes.push((own.to_string(), *value));
                    }
                }
            }
        }
        (sizes, other_rank)
    }

    /// Refuses arrays that are smaller than the tensors of the kernel at these sizes.
    pub fn check_memory(&self, py: Python<'_>, arrays: &[Array], sizes: &[(String, i64)]) -> PyResult<()> {
        let program = self.kernel.program();
        let launch = program
            .launch(LaunchArguments { sizes: &borrowed(sizes), numbers: Some(&|_, _| Some(0)) })
            .map_err(|error| of_setup(py, &error))?;
        for ((buffer, array), bytes) in program.tensors().zip(arrays).zip(&launch.bytes) {
            let there = array.span().unwrap_or(0).unsigned_abs() * u64::from(array.element.bytes());
            if buffer.role != Role::Input && array.read_only {
                let what = format!("`{}` is written, and the array may only be read", buffer.name);
                return Err(refused(py, &what, ""));
            }
            if there < *bytes || !holds(buffer.element, array.element) {
                let what = format!(
                    "`{}` has {bytes} bytes of {}, and the array has {there} of {}",
                    buffer.name, buffer.element, array.element
                );
                return Err(refusal::of_run(py, "E1003", &what, None, None));
            }
        }
        Ok(())
    }
}

/// The layout with which a tensor was declared; None if it is composed with a swizzle.
fn declared(buffer: &Buffer) -> Option<Layout<Expr>> {
    buffer.layout.parse().ok()
}

/// Whether a planned kernel for one element type accepts an array of another. A copy kernel does if
/// its runs are contiguous in both arrays, because it moves several elements as one unsigned
/// integer of the same number of bits.
fn holds(kernel: Element, array: Element) -> bool {
    let moved = matches!(kernel, Element::U16 | Element::U32 | Element::U64) && kernel.bytes() > array.bytes();
    kernel == array || moved
}

/// Whether an array has the offsets of a layout, mode by mode; or is contiguous, with as many
/// elements as the layout covers.
fn lies(array: &Array, layout: &AnyLayout) -> bool {
    if let Some(own) = &array.layout {
        return own.same_function(layout).is_ok_and(|same| same.proved());
    }
    let of_array = || -> Option<Layout> {
        let modes = array.shape.iter().zip(&array.strides);
        let modes: Vec<Layout> =
            modes.map(|(extent, stride)| Layout::mode_of(*extent, *stride)).collect::<Result<_, _>>().ok()?;
        Layout::tuple(&modes).ok()
    };
    if let Some(layout) = layout.integer()
        && layout.rank() == array.shape.len()
        && let Some(own) = of_array()
    {
        let same = |mode: usize| match (layout.mode(mode), own.mode(mode)) {
            (Some(a), Some(b)) => matches!((a.coalesce(), b.coalesce()), (Ok(a), Ok(b)) if a == b),
            _ => false,
        };
        let sizes = |layout: &Layout| layout.modes().map(|mode| mode.size()).collect::<Vec<i64>>();
        return sizes(layout) == sizes(&own) && (0..layout.rank()).all(same);
    }
    let reached = layout.cosize().ok().and_then(|cosize| cosize.known());
    matches!((&array.shape[..], &array.strides[..]), ([extent], [1]) if reached == Some(*extent))
}

/// The axes of an array: the element type, extents, strides, the CUDA device, and the number of
/// elements between a multiple of 16 bytes and the first one.
type Axes<'py> = (&'static str, Bound<'py, PyTuple>, Bound<'py, PyTuple>, Option<usize>, i64);

/// The element type of an array, the extents and strides of its axes, the ordinal of its CUDA
/// device, and the number of elements between a multiple of 16 bytes and the first one; 0 on the
/// host, where nothing depends on it.
///
/// Errors: it is no array, or has a negative stride.
#[pyfunction]
pub fn array_axes<'py>(array: &Bound<'py, PyAny>) -> PyResult<Axes<'py>> {
    let (py, read) = (array.py(), Array::of(array)?);
    read.check_ascending()?;
    let (shape, strides) = (PyTuple::new(py, &read.shape)?, PyTuple::new(py, &read.strides)?);
    Ok((read.element.name(), shape, strides, read.device, read.before()))
}

/// Whether an array is empty.
///
/// Errors: it is no array.
#[pyfunction]
pub fn is_empty(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Array::of(array)?.is_empty())
}

/// The key of arrays for a kernel: their element types, extents and strides, as bytes.
#[pyfunction]
pub fn array_key<'py>(py: Python<'py>, arrays: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyBytes>> {
    let mut key: SmallVec<[u8; 256]> = SmallVec::new();
    for array in arrays.iter_borrowed() {
        let read = Array::of(&array)?;
        key.push(read.element as u8);
        key.push(u8::try_from(read.shape.len()).unwrap_or(u8::MAX));
        for number in read.shape.iter().chain(&read.strides) {
            key.extend(number.to_le_bytes());
        }
        if let Some(layout) = &read.layout {
            let text = layout.to_string();
            key.extend(text.len().to_le_bytes());
            key.extend(text.bytes());
        }
    }
    Ok(PyBytes::new(py, &key))
}

/// The element type of an array, and its layout.
#[pyfunction]
pub fn array_layout<'py>(array: &Bound<'py, PyAny>) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
    let read = Array::of(array)?;
    read.check_ascending()?;
    if let Some(layout) = read.layout {
        return Ok((read.element.name(), python(array.py(), Value::Layout(*layout))?));
    }
    let modes = read.shape.iter().zip(&read.strides);
    let modes: Vec<Layout> = modes
        .map(|(extent, stride)| Layout::mode_of(*extent, *stride))
        .collect::<Result<_, _>>()
        .map_err(|error| refusal::of_layout(array.py(), error))?;
    let layout = match modes.as_slice() {
        [only] => Ok(only.clone()),
        several => Layout::tuple(several),
    };
    let layout = layout.map_err(|error| refusal::of_layout(array.py(), error))?;
    Ok((read.element.name(), python(array.py(), Value::Layout(AnyLayout::from(layout)))?))
}
