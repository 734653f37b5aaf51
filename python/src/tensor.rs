//! The class of tensors: memory under a layout.
//!
//! Law: the element of a tensor at a coordinate is the one of its memory at the offset that its
//! layout has there. Slices, tiles and compositions are tensors of the same memory; nothing is
//! copied but by functions that say so.
//!
//! * `element`: types of elements
//! * `memory`: where they are, who keeps them, and who is at work on them
//! * `views`: which functions of the algebra give tensors of the same elements
//! * `exchange`: arrays of other packages, and as such
//! * `index`: elements and parts by coordinates and ranges
//! * `copies`, `reductions`, `products`: what reads and writes elements; `work`: its parts

mod copies;
mod element;
mod exchange;
mod index;
mod memory;
mod products;
mod reductions;
mod views;
mod work;

use std::sync::Arc;

use dlpark::python::{ExportRequest, export_dlpack};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat};
use tilewright_layout::{AnyLayout, Extent, Layout};
use tilewright_notation::{self as notation, Value};
use tilewright_tensor::{AnyOffsets, Offsets};

use crate::convert::{self, python};
use crate::foreign::Array;
use crate::function;
use crate::refusal;
pub use copies::copy;
pub use element::Element;
use exchange::Exported;
use memory::{Guard, Memory};
pub use products::gemm;

/// Elements in memory under a layout.
///
/// `Tensor(array)` is the tensor of an array of NumPy, PyTorch or another package, without copying;
/// `Tensor(array, layout)` is its memory under another layout.
#[pyclass(frozen, module = "tilewright", name = "Tensor")]
pub struct Tensor {
    memory: Arc<Memory>,
    /// The offset in memory of offset 0 of the layout.
    origin: i64,
    layout: AnyLayout,
    /// The same layout, as the walks over elements take it.
    offsets: AnyOffsets,
}

impl Tensor {
    /// The tensor of some memory under a layout, with offset 0 at `origin`.
    ///
    /// Errors: the layout says not where elements lie, or reaches beyond the memory.
    fn new(py: Python<'_>, memory: Arc<Memory>, origin: i64, layout: AnyLayout) -> PyResult<Tensor> {
        let offsets = AnyOffsets::try_from(&layout).map_err(|error| refusal::of(py, &error))?;
        let (least, greatest) = offsets.range().map_err(|error| refusal::of(py, &error))?;
        let [first, last] = memory.range();
        let within = |offset: i64| origin.checked_add(offset).is_some_and(|at| (first..=last).contains(&at));
        if !within(least) || !within(greatest) {
            return Err(PyValueError::new_err(format!(
                "{layout} has offsets from {least} to {greatest}, and the memory has elements at {} to {}",
                first.saturating_sub(origin),
                last.saturating_sub(origin)
            )));
        }
        Ok(Tensor { memory, origin, layout, offsets })
    }

    /// A tensor of zeros of its own.
    ///
    /// Errors: the layout reaches an element twice, or is not known not to; there is no such
    /// memory.
    fn zeroed(py: Python<'_>, element: Element, layout: AnyLayout) -> PyResult<Tensor> {
        let offsets = AnyOffsets::try_from(&layout).map_err(|error| refusal::of(py, &error))?;
        let (least, greatest) = offsets.range().map_err(|error| refusal::of(py, &error))?;
        let memory = Memory::zeroed(py, element, least, greatest)?;
        let tensor = Tensor { memory: Arc::new(memory), origin: 0, layout, offsets };
        tensor.check_written(py)?;
        Ok(tensor)
    }

    /// Refuses a tensor that is not to be written: whose memory is not, or with an element twice.
    fn check_written(&self, py: Python<'_>) -> PyResult<()> {
        self.memory.check_here()?;
        self.memory.check_writable()?;
        match self.offsets.injective() {
            Ok(true) => Ok(()),
            found => Err(refusal::of(
                py,
                &tilewright_tensor::TensorError::Shared {
                    pair: found.is_ok().then(|| self.offsets.collision()).flatten(),
                    layout: self.layout.to_string().into(),
                },
            )),
        }
    }

    /// The addresses from the first byte of an element to the end of the last.
    fn addresses(&self, py: Python<'_>) -> PyResult<[usize; 2]> {
        let (least, greatest) = self.offsets.range().map_err(|error| refusal::of(py, &error))?;
        let bytes = self.memory.element().bytes();
        Ok([self.memory.address(self.origin + least), self.memory.address(self.origin + greatest).wrapping_add(bytes)])
    }

    /// The same memory under a layout that is a function of this one's, `beyond` further on.
    fn seen(&self, py: Python<'_>, layout: AnyLayout, beyond: i64) -> PyResult<Tensor> {
        // A layout that only begins elsewhere is shown as the layout that it is.
        let (layout, begins) = match &layout {
            AnyLayout::Composed(composed) => match composed.to_layout() {
                Ok((plain, offset)) => (plain.into(), offset),
                Err(_) => (layout, 0),
            },
            _ => (layout, 0),
        };
        let origin = self.origin.checked_add(beyond).and_then(|origin| origin.checked_add(begins));
        let origin = origin.ok_or_else(|| PyValueError::new_err("an offset past 64 bits"))?;
        Tensor::new(py, Arc::clone(&self.memory), origin, layout)
    }

    /// The value of a function of the language with this tensor's layout among its arguments: where
    /// that is a layout of some of the elements, it is a tensor.
    ///
    /// Errors: those of the function; it takes no tensor; the layout would reach other elements.
    pub fn called<'py>(
        &self,
        py: Python<'py>,
        row: &'static notation::Function,
        arguments: &[Value],
    ) -> PyResult<Bound<'py, PyAny>> {
        if !takes(row) {
            let name = row.name;
            return Err(PyTypeError::new_err(format!(
                "{name} takes a layout, not a tensor: write {name}(t.layout, ..)"
            )));
        }
        let value = row.call(arguments, &[]).map_err(|refused| refusal::of_call(py, &refused))?;
        let Value::Layout(layout) = value else { return python(py, value) };
        views::check(self, row.name, arguments, &layout).map_err(|refused| match refused {
            views::Refused::Tensor(error) => refusal::of(py, &error),
            views::Refused::Call(text) => PyValueError::new_err(text),
        })?;
        Ok(Bound::new(py, self.seen(py, layout, 0)?)?.into_any())
    }

    /// The memory, as kernels take it: an axis a mode, or, where a mode has no stride, all of it
    /// with the layout.
    ///
    /// Errors: as [`Exported::array`]; there are elements before offset 0.
    pub fn array(&self) -> PyResult<Array> {
        match Exported::of(self) {
            Ok(exported) => exported.array(None),
            Err(_) => Exported::all(self)?.array(Some(Box::new(self.layout.clone()))),
        }
    }

    /// Where the elements lie.
    pub fn layout(&self) -> &AnyLayout {
        &self.layout
    }

    /// What the language's function of this name has for the layout and more arguments.
    fn asked(&self, py: Python<'_>, name: &'static str, more: &[Value]) -> PyResult<Value> {
        let arguments: Vec<Value> = [self.layout.clone().into()].into_iter().chain(more.iter().cloned()).collect();
        function::value(py, name, &arguments)
    }
}

/// Whether a function of the language takes a tensor for its layout.
pub fn takes(row: &notation::Function) -> bool {
    views::VIEWS.contains(&row.name) || views::QUERIES.contains(&row.name)
}

#[pymethods]
impl Tensor {
    #[new]
    #[pyo3(signature = (array, layout = None))]
    fn from_array(array: &Bound<'_, PyAny>, layout: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
        let py = array.py();
        let (memory, natural) = match array.cast::<Tensor>() {
            Ok(tensor) => return tensor.get().under(layout),
            Err(_) => exchange::of_array(array)?,
        };
        Tensor::new(py, Arc::new(memory), 0, natural)?.under(layout)
    }

    /// The type of the elements, by NumPy's name.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.memory.element().name()
    }

    /// Where the elements lie.
    #[getter(layout)]
    fn get_layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, self.layout.clone().into())
    }

    /// The extents, as an integer or nested tuples.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, self.layout.shape().into())
    }

    /// The strides, nested as the shape, in elements.
    #[getter]
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.layout.stride() {
            Some(stride) => python(py, stride.into()),
            None => python(py, self.asked(py, "stride", &[])?),
        }
    }

    /// `cpu` or `cuda:0`.
    #[getter]
    fn device(&self) -> String {
        self.memory.device_name()
    }

    /// Whether the memory is to be read only.
    #[getter]
    fn readonly(&self) -> bool {
        self.memory.readonly()
    }

    /// The address of the element at offset 0; where the layout has no offset 0, where it would be.
    #[getter]
    fn data_ptr(&self) -> usize {
        self.memory.address(self.origin)
    }

    fn __len__(&self) -> usize {
        self.offsets.rank()
    }

    fn __repr__(&self) -> String {
        let device = self.memory.device_name();
        let place = if device == "cpu" { String::new() } else { format!(", on {device}") };
        format!("Tensor({} of {}{place})", self.memory.element().name(), self.layout)
    }

    /// The element at a coordinate, `t[1, 2]` or `t[7]`, or the tensor of what is left open by
    /// `None` or a range, `t[None, 2]` or `t[1:3, ::2]`.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.at(key)? {
            Ok(offset) => {
                let _guard = Guard::new(&[(self.one(offset), false)])?;
                self.memory.element().number(py, &self.memory.read(offset)?)
            }
            Err(open) => Ok(Bound::new(py, open)?.into_any()),
        }
    }

    /// Writes the element at a coordinate, or all that are left open: a number to each, or the
    /// elements of a tensor or an array.
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.at(key)? {
            Ok(offset) => {
                let bytes = self.memory.element().bytes_of(value)?;
                let _guard = Guard::new(&[(self.one(offset), true)])?;
                self.memory.write(offset, &bytes)
            }
            Err(open) if value.is_instance_of::<PyFloat>() || value.hasattr("__index__")? && !is_array(value)? => {
                open.fill(value)
            }
            Err(open) => {
                let source = match value.cast::<Tensor>() {
                    Ok(source) => source.clone(),
                    Err(_) => Bound::new(value.py(), Tensor::from_array(value, None)?)?,
                };
                copies::copied(value.py(), source.get(), &open, None, None)
            }
        }
    }

    fn __iter__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a tensor is not iterated over: for i in range(tw.size(t)): t[i]"))
    }

    /// The same memory under another layout; as it is without one.
    ///
    /// Errors: the layout reaches beyond the memory.
    #[pyo3(signature = (layout = None))]
    fn under(&self, layout: Option<&Bound<'_, PyAny>>) -> PyResult<Tensor> {
        let Some(layout) = layout else { return Ok(self.again()) };
        let py = layout.py();
        match convert::value(layout)?.operand_layout() {
            Some(layout) => Tensor::new(py, Arc::clone(&self.memory), self.origin, layout),
            None => Err(PyTypeError::new_err("the second argument is a layout")),
        }
    }

    /// Makes every element the given number.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let bytes = self.memory.element().bytes_of(value)?;
        self.check_written(py)?;
        let guard = Guard::new(&[(self.addresses(py)?, true)])?;
        copies::filled(py, self, &bytes, &guard)
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
        let layout = match layout {
            Some(layout) => convert::value(layout)?
                .operand_layout()
                .ok_or_else(|| PyTypeError::new_err("the first argument is a layout"))?,
            None => match function::value(py, "row_major", &[self.layout.shape().into()])? {
                Value::Layout(layout) => layout,
                other => return Err(PyTypeError::new_err(format!("{other} is no layout"))),
            },
        };
        let element = dtype.map_or(Ok(self.memory.element()), Element::named)?;
        // Asked for before there is memory for the elements.
        if let (first, Some(second)) = (self.offsets.size(), layout.size().known())
            && first != second
        {
            return Err(refusal::of(py, &tilewright_tensor::TensorError::Sizes { first, second }));
        }
        let made = Tensor::zeroed(py, element, layout)?;
        copies::copied(py, self, &made, threads, progress)?;
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
        let (py, element) = (slf.py(), slf.get().memory.element());
        // Ask before NumPy does: its own error would not say what is wrong.
        Exported::of(slf.get())?.interface(py)?;
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
        Exported::of(self)?.interface(py)
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
        export_dlpack(&Exported::of(self)?, py, ExportRequest::parse(stream, max_version, dl_device, copy)?)
    }

    fn __dlpack_device__(&self) -> (u32, i32) {
        let device = self.memory.device();
        (device.device_type.0, device.device_id)
    }
}

impl Tensor {
    /// The tensor of the indices of a mode from `from` up to `to`, not included.
    fn part(&self, py: Python<'_>, mode: usize, from: i64, to: i64) -> PyResult<Tensor> {
        let rank = self.offsets.rank();
        let taken = Layout::mode_of(to - from, 1).map_err(|error| refusal::of_layout(py, error))?;
        let starts = (0..rank).map(|at| Value::from(if at == mode { from } else { 0 })).collect();
        let tiler = (0..rank).map(|at| if at == mode { taken.clone().into() } else { Value::open() }).collect();
        self.within(py, starts, tiler)
    }

    /// The number of indices of a mode.
    fn size_of(&self, mode: usize) -> i64 {
        self.layout.mode(mode).and_then(|mode| mode.size().known()).unwrap_or(1)
    }

    /// The number of indices of each mode.
    fn sizes(&self) -> Vec<i64> {
        (0..self.offsets.rank()).map(|mode| self.size_of(mode)).collect()
    }

    /// A new tensor of as many elements, one after another in the order of their indices.
    fn compact(&self, py: Python<'_>) -> PyResult<Tensor> {
        let layout = Layout::compact(&self.offsets.shape()).map_err(|error| refusal::of_layout(py, error))?;
        Tensor::zeroed(py, self.memory.element(), layout.into())
    }

    /// A new tensor of the same elements of another type, under the same layout.
    fn converted(&self, py: Python<'_>, element: Element) -> PyResult<Tensor> {
        let made = Tensor::zeroed(py, element, self.layout.clone())?;
        copies::copied(py, self, &made, None, None)?;
        Ok(made)
    }

    /// The addresses of one element.
    fn one(&self, offset: i64) -> [usize; 2] {
        let address = self.memory.address(offset);
        [address, address.wrapping_add(self.memory.element().bytes())]
    }

    /// The same tensor.
    fn again(&self) -> Tensor {
        let (layout, offsets) = (self.layout.clone(), self.offsets.clone());
        Tensor { memory: Arc::clone(&self.memory), origin: self.origin, layout, offsets }
    }
}

/// Whether two ranges of addresses have one in common.
fn is_overlapping(first: [usize; 2], second: [usize; 2]) -> bool {
    first[0] < second[1] && second[0] < first[1]
}

/// Whether an object lends its memory, so that it is no single number.
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
        shape => match function::value(py, "row_major", &[shape])? {
            Value::Layout(layout) => layout,
            other => return Err(PyTypeError::new_err(format!("{other} is no layout"))),
        },
    };
    Tensor::zeroed(py, element, layout)
}
