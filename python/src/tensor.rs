//! The class of tensors: memory with a layout.
//!
//! Law: the element of a tensor at a coordinate is the element of its memory at the offset of its
//! layout. Slices, tiles and compositions are tensors of the same memory; only functions that say
//! so copy elements.
//!
//! * `placed`, `empty`: tensors with elements, and those without
//! * `element`: types of elements
//! * `memory`: addresses, owners and concurrent accesses
//! * `views`: functions of the algebra that give tensors of the same elements
//! * `exchange`: import and export of arrays of other packages
//! * `index`: elements and parts by coordinates and ranges
//! * `copies`, `reductions`, `products`: operations on elements; `work`: their division into parts

mod copies;
mod element;
mod empty;
mod exchange;
mod index;
mod memory;
mod placed;
mod products;
mod reductions;
mod views;
mod work;

use std::sync::Arc;

use dlpark::python::{ExportRequest, export_dlpack};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat};
use tilewright_layout::{AnyLayout, AnyTree, Extent, Layout, Tree};
use tilewright_notation::{self as notation, Value};
use tilewright_tensor::Offsets;

use crate::convert::{self, python};
use crate::foreign::Array;
use crate::function;
use crate::refusal;
pub use copies::copy;
pub use element::Element;
use empty::Empty;
use exchange::Exported;
pub use exchange::settle;
use index::At;
use memory::Guard;
use placed::Placed;
pub use products::gemm;

/// Elements in memory under a layout, or none.
///
/// `Tensor(array)` is the tensor of an array of NumPy, PyTorch or another package, without copying;
/// `Tensor(array, layout)` is its memory under another layout.
#[pyclass(frozen, module = "tilewright", name = "Tensor")]
pub struct Tensor(TensorBody);

#[expect(clippy::large_enum_variant, reason = "most tensors have elements, and a box is an allocation for each")]
enum TensorBody {
    Placed(Placed),
    Empty(Empty),
}

impl From<Placed> for Tensor {
    fn from(placed: Placed) -> Tensor {
        Tensor(TensorBody::Placed(placed))
    }
}

impl From<Empty> for Tensor {
    fn from(empty: Empty) -> Tensor {
        Tensor(TensorBody::Empty(empty))
    }
}

impl Tensor {
    /// The memory, as an argument of kernels.
    ///
    /// Errors: as [`Placed::array`].
    pub fn array(&self) -> PyResult<Array> {
        match &self.0 {
            TensorBody::Placed(placed) => placed.array(),
            TensorBody::Empty(empty) => Exported::empty(empty).array(None),
        }
    }

    /// The layout of the elements; None if there are none.
    pub fn layout(&self) -> Option<&AnyLayout> {
        match &self.0 {
            TensorBody::Placed(placed) => Some(&placed.layout),
            TensorBody::Empty(_) => None,
        }
    }

    /// The PyTorch tensor that owns the memory; None if there is none.
    pub fn lender<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &self.0 {
            TensorBody::Placed(placed) => placed.memory.lender(py),
            TensorBody::Empty(_) => None,
        }
    }

    /// The result of a function of the language with this tensor among its arguments, the first of
    /// `arguments` if it is empty: if it is a layout of some of the elements, a tensor.
    ///
    /// Errors: those of the function; as [`Placed::called`].
    pub fn called<'py>(
        &self,
        py: Python<'py>,
        row: &'static notation::Function,
        arguments: &[Value],
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            TensorBody::Placed(placed) => placed.called(py, row, arguments),
            TensorBody::Empty(empty) => match empty.told(py, row.name, arguments.get(1..).unwrap_or_default())? {
                Some(value) => python(py, value),
                None => Ok(Bound::new(py, Tensor::from(empty.clone()))?.into_any()),
            },
        }
    }

    /// The tensor in its exported form.
    fn exported(&self) -> PyResult<Exported> {
        match &self.0 {
            TensorBody::Placed(placed) => Exported::of(placed),
            TensorBody::Empty(empty) => Ok(Exported::empty(empty)),
        }
    }

    fn element(&self) -> Element {
        match &self.0 {
            TensorBody::Placed(placed) => placed.memory.element(),
            TensorBody::Empty(empty) => empty.element,
        }
    }

    /// The number of indices of each mode.
    fn sizes(&self) -> Vec<i64> {
        match &self.0 {
            TensorBody::Placed(placed) => placed.sizes(),
            TensorBody::Empty(empty) => empty.shape.clone(),
        }
    }

    /// A new tensor of zeros, the last mode fastest.
    fn zeros_of(py: Python<'_>, element: Element, sizes: &[i64]) -> PyResult<Tensor> {
        if sizes.contains(&0) {
            return Ok(Empty::of(sizes.to_vec(), element).into());
        }
        let refused = |error| refusal::of_layout(py, error);
        let layout = Layout::row_major(&Tree::flat(sizes.iter().copied()).map_err(refused)?).map_err(refused)?;
        Ok(Placed::zeroed(py, element, layout.into())?.into())
    }
}

/// Whether a function of the language accepts a tensor as its layout.
pub fn takes(row: &notation::Function) -> bool {
    views::VIEWS.contains(&row.name) || views::QUERIES.contains(&row.name)
}

#[pymethods]
impl Tensor {
    #[new]
    #[pyo3(signature = (array, layout = None))]
    fn from_array(array: &Bound<'_, PyAny>, layout: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
        let py = array.py();
        match array.cast::<Tensor>() {
            Ok(tensor) => tensor.get().under(layout),
            Err(_) => exchange::of_array(py, array)?.under(layout),
        }
    }

    /// The type of the elements, by NumPy's name.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.element().name()
    }

    /// Where the elements lie.
    #[getter(layout)]
    fn get_layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            TensorBody::Placed(placed) => python(py, placed.layout.clone().into()),
            TensorBody::Empty(empty) => Err(empty.refused("t.layout")),
        }
    }

    /// The extents, as an integer or nested tuples.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            TensorBody::Placed(placed) => python(py, placed.layout.shape().into()),
            TensorBody::Empty(empty) => python(py, empty.shape_value(py)?),
        }
    }

    /// The strides, nested as the shape, in elements.
    #[getter]
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            TensorBody::Placed(placed) => match placed.layout.stride() {
                Some(stride) => python(py, stride.into()),
                None => python(py, placed.asked(py, "stride", &[])?),
            },
            TensorBody::Empty(empty) => python(py, empty.strides_value(py)?),
        }
    }

    /// `cpu` or `cuda:0`.
    #[getter]
    fn device(&self) -> String {
        match &self.0 {
            TensorBody::Placed(placed) => placed.memory.device_name(),
            TensorBody::Empty(empty) => memory::device_name(empty.device),
        }
    }

    /// Whether the memory is to be read only.
    #[getter]
    fn readonly(&self) -> bool {
        match &self.0 {
            TensorBody::Placed(placed) => placed.memory.readonly(),
            TensorBody::Empty(empty) => empty.readonly,
        }
    }

    /// The address of the element at offset 0; where the layout has no offset 0, where it would be;
    /// 0 without elements.
    #[getter]
    fn data_ptr(&self) -> usize {
        match &self.0 {
            TensorBody::Placed(placed) => placed.memory.address(placed.origin),
            TensorBody::Empty(_) => 0,
        }
    }

    fn __len__(&self) -> usize {
        match &self.0 {
            TensorBody::Placed(placed) => placed.offsets.rank(),
            TensorBody::Empty(empty) => empty.shape.len(),
        }
    }

    fn __repr__(&self) -> String {
        let device = self.device();
        let place = if device == "cpu" { String::new() } else { format!(", on {device}") };
        let lies = match &self.0 {
            TensorBody::Placed(placed) => placed.layout.to_string(),
            TensorBody::Empty(empty) => format!("shape {}", empty.text()),
        };
        format!("Tensor({} of {lies}{place})", self.dtype())
    }

    /// The element at a coordinate, `t[1, 2]` or `t[7]`, or the tensor of what is left open by
    /// `None` or a range, `t[None, 2]` or `t[1:3, ::2]`.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let placed = match &self.0 {
            TensorBody::Placed(placed) => placed,
            TensorBody::Empty(empty) => return Ok(Bound::new(py, Tensor::from(empty.part(key)?))?.into_any()),
        };
        match placed.at(key)? {
            At::Element(offset) => {
                let _guard = Guard::new(&[(placed.one(offset), false)])?;
                placed.memory.element().number(py, &placed.memory.read(offset)?)
            }
            At::Part(open) => Ok(Bound::new(py, Tensor::from(open))?.into_any()),
            At::Empty(empty) => Ok(Bound::new(py, Tensor::from(empty))?.into_any()),
        }
    }

    /// Writes the element at a coordinate, or all that are left open: a number to each, or the
    /// elements of a tensor or an array.
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let open = match &self.0 {
            TensorBody::Empty(empty) => Tensor::from(empty.part(key)?),
            TensorBody::Placed(placed) => match placed.at(key)? {
                At::Element(offset) => {
                    let bytes = placed.memory.element().bytes_of(value)?;
                    let _guard = Guard::new(&[(placed.one(offset), true)])?;
                    return placed.memory.write(offset, &bytes);
                }
                At::Part(open) => open.into(),
                At::Empty(empty) => empty.into(),
            },
        };
        if value.is_instance_of::<PyFloat>() || value.hasattr("__index__")? && !is_array(value)? {
            return open.fill(value);
        }
        let source = match value.cast::<Tensor>() {
            Ok(source) => source.clone(),
            Err(_) => Bound::new(value.py(), Tensor::from_array(value, None)?)?,
        };
        copies::copied_tensors(value.py(), source.get(), &open, None, None)
    }

    fn __iter__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a tensor is not iterated over: for i in range(tw.size(t)): t[i]"))
    }

    /// The same memory under another layout; as it is without one.
    ///
    /// Errors: the layout reaches beyond the memory.
    #[pyo3(signature = (layout = None))]
    fn under(&self, layout: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
        match (layout, &self.0) {
            (None, TensorBody::Placed(placed)) => Ok(placed.again().into()),
            (None, TensorBody::Empty(empty)) => Ok(empty.clone().into()),
            (Some(_), TensorBody::Empty(empty)) => Err(empty.refused("a view under another layout")),
            (Some(layout), TensorBody::Placed(placed)) => match convert::value(layout)?.operand_layout() {
                Some(other) => Ok(Placed::new(layout.py(), Arc::clone(&placed.memory), placed.origin, other)?.into()),
                None => Err(PyTypeError::new_err("the second argument is a layout")),
            },
        }
    }

    /// Makes every element the given number.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let bytes = self.element().bytes_of(value)?;
        match &self.0 {
            TensorBody::Empty(empty) => empty.check_writable(),
            TensorBody::Placed(placed) => {
                placed.check_written(py)?;
                let guard = Guard::new(&[(placed.addresses(py)?, true)])?;
                copies::filled(py, placed, &bytes, &guard)
            }
        }
    }

    /// A new tensor with the same elements under another layout of as many elements, or of the same
    /// shape, the last mode the fastest; and of another type.
    #[pyo3(signature = (layout = None, dtype = None, *, threads = None, progress = None))]
    fn relayout(
        &self,
        py: Python<'_>,
        layout: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tensor> {
        let element = dtype.map_or(Ok(self.element()), Element::named)?;
        let layout = match layout {
            Some(layout) => convert::value(layout)?
                .operand_layout()
                .ok_or_else(|| PyTypeError::new_err("the first argument is a layout"))?,
            None => match &self.0 {
                TensorBody::Empty(empty) => return Ok(Empty::of(empty.shape.clone(), element).into()),
                TensorBody::Placed(placed) => {
                    match function::value(py, "row_major", &[placed.layout.shape().into()])? {
                        Value::Layout(layout) => layout,
                        other => return Err(PyTypeError::new_err(format!("{other} is no layout"))),
                    }
                }
            },
        };
        // Checked before memory for the elements is allocated.
        let first = self.sizes().iter().product();
        if let Some(second) = layout.size().known()
            && first != second
        {
            return Err(refusal::of(py, &tilewright_tensor::TensorError::Sizes { first, second }));
        }
        let made = Tensor::from(Placed::zeroed(py, element, layout)?);
        copies::copied_tensors(py, self, &made, threads, progress)?;
        Ok(made)
    }

    /// The sums over some modes, or over all: of integers in 64 bits, of 16-bit floats in 32.
    #[pyo3(signature = (mode = None, *, threads = None, progress = None))]
    fn sum<'py>(
        &self,
        py: Python<'py>,
        mode: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reductions::reduced(py, self, reductions::Reduction::Sum, mode, threads, progress)
    }

    /// The greatest elements over some modes, or over all; NaN where one is NaN.
    #[pyo3(signature = (mode = None, *, threads = None, progress = None))]
    fn max<'py>(
        &self,
        py: Python<'py>,
        mode: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reductions::reduced(py, self, reductions::Reduction::Max, mode, threads, progress)
    }

    /// The least elements over some modes, or over all; NaN where one is NaN.
    #[pyo3(signature = (mode = None, *, threads = None, progress = None))]
    fn min<'py>(
        &self,
        py: Python<'py>,
        mode: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reductions::reduced(py, self, reductions::Reduction::Min, mode, threads, progress)
    }

    /// The same memory as an array of NumPy, one axis a mode.
    ///
    /// Types that NumPy has not are those of the package `ml_dtypes` where it is installed, else
    /// unsigned integers of as many bits.
    ///
    /// Errors: a mode has several strides, the layout is composed, or the memory is not on the CPU
    /// (`BufferError`).
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, element) = (slf.py(), slf.get().element());
        // Checked before NumPy does, because its error would not say what is wrong.
        slf.get().exported()?.interface(py)?;
        let array = py.import("numpy")?.getattr("asarray")?.call1((slf,))?;
        if element.code().is_some() {
            return Ok(array);
        }
        let named = py.import("ml_dtypes").and_then(|types| types.getattr(element.name()));
        let bits = if element.bytes() == 1 { "uint8" } else { "uint16" };
        array.call_method1("view", (named.unwrap_or(bits.into_pyobject(py)?.into_any()),))
    }

    /// How NumPy reads the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.exported()?.interface(py)
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        export_dlpack(&self.exported()?, py, ExportRequest::parse(stream, max_version, dl_device, copy)?)
    }

    fn __dlpack_device__(&self) -> (u32, i32) {
        let device = match &self.0 {
            TensorBody::Placed(placed) => placed.memory.device(),
            TensorBody::Empty(empty) => empty.device,
        };
        (device.device_type.0, device.device_id)
    }
}

/// Whether two ranges of addresses overlap.
fn is_overlapping(first: [usize; 2], second: [usize; 2]) -> bool {
    first[0] < second[1] && second[0] < first[1]
}

/// Whether an object exports its memory, and so is not a single number.
fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<Tensor>()
        || object.getattr("shape").is_ok_and(|shape| shape.len().is_ok_and(|rank| rank > 0)))
}

/// A tensor of zeros in memory of its own, under a layout, or a shape with its last mode the
/// fastest.
#[pyfunction]
#[pyo3(signature = (layout, dtype = None))]
pub fn zeros(layout: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
    let py = layout.py();
    let element = dtype.map_or(Ok(Element::F32), Element::named)?;
    let layout = match convert::value(layout)? {
        Value::Layout(layout) => layout,
        Value::Int(0) => return Tensor::zeros_of(py, element, &[0]),
        Value::Tree(AnyTree::Integer(shape))
            if shape.leaves().contains(&0) && !shape.leaves().iter().any(|n| *n < 0) =>
        {
            let sizes = shape.modes().map(|mode| mode.leaves().iter().product()).collect::<Vec<i64>>();
            return Tensor::zeros_of(py, element, &sizes);
        }
        shape => match function::value(py, "row_major", &[shape])? {
            Value::Layout(layout) => layout,
            other => return Err(PyTypeError::new_err(format!("{other} is no layout"))),
        },
    };
    Ok(Placed::zeroed(py, element, layout)?.into())
}
