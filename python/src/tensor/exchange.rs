//! Import of memory from arrays of other packages, and export to them, without copying.
//!
//! Law: a tensor of an array has at each coordinate the element that the array has at the same
//! indices, with one mode for each axis, and keeps the array alive; an array of a tensor likewise.
//! An array that its owner makes read-only is read-only here, and the reverse.
//!
//! Reason for unsafe code: addresses come from other packages, and are given to them.
//! `__array_interface__` and DLPack guarantee that they are those of living elements.
#![allow(unsafe_code)]

use std::sync::Arc;

use dlpark::ffi::{DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::metadata::Dynamic;
use dlpark::python::{CudaStreamRequest, DlpackExporter, ExportRequest, from_dlpack};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright_layout::{AnyLayout, Layout, LayoutError, Tree};
use tilewright_tensor::Offsets;

use super::Tensor;
use super::element::Element;
use super::empty::Empty;
use super::memory::{self, Memory, Owner};
use super::placed::Placed;
use crate::foreign::{self, Array};
use crate::kernel::operand;
use crate::refusal;
use crate::writes;

/// The tensor of an array, with one mode for each axis.
///
/// Errors: the object is not an array, or does not export its memory (`TypeError`); its elements
/// have an unsupported type; its strides are not whole numbers of elements (`ValueError`).
pub fn of_array(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if let Ok(interface) = object.getattr(pyo3::intern!(py, "__array_interface__")) {
        return of_interface(object, &interface);
    }
    if object.hasattr(pyo3::intern!(py, "__dlpack__"))? {
        return of_exchanged(object);
    }
    // Bytes, `array.array` and similar objects, as NumPy views them.
    if let Ok(view) = py.get_type::<pyo3::types::PyMemoryView>().call1((object,)) {
        let array = py.import("numpy")?.getattr("asarray")?.call1((view,))?;
        let interface = array.getattr(pyo3::intern!(py, "__array_interface__"))?;
        return of_interface(&array, &interface);
    }
    let kind = object.get_type();
    let kind = kind.name()?;
    Err(PyTypeError::new_err(format!("{kind} is no array: it has neither __array_interface__ nor __dlpack__")))
}

/// As [`of_array`], by NumPy's interface.
fn of_interface(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let interface = interface.cast::<PyDict>()?;
    let part = |name: &str| {
        interface.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("__array_interface__ has no {name}")))
    };
    // The types of `ml_dtypes` have a name, but no code of their own in the interface.
    let named = object.getattr("dtype").and_then(|dtype| Element::named(&dtype.getattr("name")?));
    let element = match named {
        Ok(element) => element,
        Err(_) => Element::named(&part("typestr")?)?,
    };
    let code: String = part("typestr")?.extract()?;
    if code.starts_with('>') && element.bytes() > 1 {
        return Err(PyTypeError::new_err(format!(
            "the bytes of elements '{code}' are in the order of another machine"
        )));
    }
    let shape: Vec<i64> = part("shape")?.extract()?;
    let (address, readonly): (usize, bool) = part("data")?.extract()?;
    let readonly = readonly || writes::is_immutable(object);
    if shape.contains(&0) {
        return Ok(Empty { readonly, ..Empty::of(shape, element) }.into());
    }
    let bytes = element.bytes() as i64;
    let strides = match interface.get_item("strides")?.filter(|strides| !strides.is_none()) {
        Some(strides) => strides.extract::<Vec<i64>>()?,
        None => compact(&shape).iter().map(|stride| stride * bytes).collect(),
    };
    // The stride of an axis of extent 1 has no effect.
    let odd = |(extent, stride): &(&i64, &i64)| **extent > 1 && **stride % bytes != 0;
    if let Some((_, stride)) = shape.iter().zip(&strides).find(odd) {
        return Err(PyValueError::new_err(format!(
            "a stride of {stride} bytes is no whole number of elements of {bytes} bytes: copy the array"
        )));
    }
    let mut strides: Vec<i64> = strides.iter().map(|stride| stride / bytes).collect();
    settle(&shape, &mut strides);
    let layout = strided(object.py(), &shape, &strides)?;
    let owner = Owner::Object(Some(object.clone().unbind()));
    let range = hull(object.py(), &layout)?;
    // SAFETY: the interface of NumPy guarantees that every element of the array is at its address
    // as long as the array is alive, which `owner` ensures.
    let memory = unsafe { Memory::lent(address, range, element, readonly, DLDevice::CPU, owner) }?;
    Ok(Placed::new(object.py(), Arc::new(memory), 0, layout.into())?.into())
}

/// As [`of_array`], by DLPack.
fn of_exchanged(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let lender = foreign::is_torch(object)?.then(|| object.clone().unbind());
    if lender.is_some() {
        writes::check_resolved(object)?;
    }
    let lent = from_dlpack(object.as_borrowed(), None, None)?;
    let readonly = lent.flags().contains(DlpackFlags::READ_ONLY) || writes::is_immutable(object);
    let (layout, element, address, device) = {
        let tensor = lent.validate().map_err(|error| PyBufferError::new_err(error.to_string()))?;
        let found = tensor.dtype();
        let element = Element::of_exchanged(found).ok_or_else(|| {
            let (code, bits, lanes) = (found.code.0, found.bits, found.lanes);
            PyTypeError::new_err(format!(
                "elements of DLPack's type {code}, {bits} bits, {lanes} lanes are not known here"
            ))
        })?;
        if tensor.shape().contains(&0) {
            let device = tensor.device();
            return Ok(Empty { readonly, device, ..Empty::of(tensor.shape().to_vec(), element) }.into());
        }
        let mut strides = match tensor.strides() {
            Some(strides) => strides.to_vec(),
            None => compact(tensor.shape()),
        };
        settle(tensor.shape(), &mut strides);
        let layout = strided(object.py(), tensor.shape(), &strides)?;
        let offset =
            usize::try_from(tensor.byte_offset()).map_err(|_| PyBufferError::new_err("an offset past 64 bits"))?;
        (layout, element, (tensor.data_ptr() as usize).wrapping_add(offset), tensor.device())
    };
    let range = hull(object.py(), &layout)?;
    let owner = Owner::Lent(lent.into_deleter(), lender);
    // SAFETY: DLPack guarantees that every element of the tensor is at its address until the
    // deleter is called, which `owner` keeps.
    let memory = unsafe { Memory::lent(address, range, element, readonly, device, owner) }?;
    Ok(Placed::new(object.py(), Arc::new(memory), 0, layout.into())?.into())
}

/// The strides of an array whose last axis is the fastest; an extent of 0 counts as 1.
pub fn compact(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1_i64; shape.len()];
    let mut step = 1_i64;
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    strides
}

/// Gives axes of extent 1 the strides of a compact array, because other packages accept no others;
/// these strides have no effect.
pub fn settle(shape: &[i64], strides: &mut [i64]) {
    let mut step = 1_i64;
    for (stride, extent) in strides.iter_mut().zip(shape).rev() {
        if *extent == 1 {
            *stride = step;
        }
        step = stride.saturating_abs().saturating_mul(*extent);
    }
}

/// The layout with one mode for each axis.
fn strided(py: Python<'_>, shape: &[i64], strides: &[i64]) -> PyResult<Layout> {
    let refused = |error: LayoutError| refusal::of_layout(py, error);
    let tree = |numbers: &[i64]| Tree::flat(numbers.iter().copied()).map_err(refused);
    Layout::new(&tree(shape)?, &tree(strides)?).map_err(refused)
}

/// The smallest and the largest offset.
fn hull(py: Python<'_>, layout: &Layout) -> PyResult<[i64; 2]> {
    let (first, last) = layout.range().map_err(|error| refusal::of_layout(py, error))?;
    Ok([first, last])
}

/// A tensor in exported form: an extent and a stride for each axis, and the address of the first
/// element.
pub struct Exported {
    /// Keeps the memory alive while it is exported; None if there are no elements.
    memory: Option<Arc<Memory>>,
    element: Element,
    device: DLDevice,
    readonly: bool,
    extents: Vec<i64>,
    strides: Vec<i64>,
    address: usize,
}

impl Exported {
    /// The axes of a tensor, one for each mode.
    ///
    /// Errors: the elements of a mode do not have equal distances, as in swizzled or tiled layouts
    /// (`BufferError`).
    pub fn of(tensor: &Placed) -> PyResult<Exported> {
        let AnyLayout::Integer(layout) = &tensor.layout else {
            return Err(PyBufferError::new_err(format!(
                "other packages have one stride an axis, and {} has none: relayout() makes a tensor that has",
                tensor.layout
            )));
        };
        let (mut extents, mut strides) = (Vec::new(), Vec::new());
        for (number, mode) in layout.modes().enumerate() {
            let plain = mode.coalesce().map_err(|error| Python::attach(|py| refusal::of_layout(py, error)))?;
            let (extent, stride) = match plain.leaves() {
                [] => (1, 0),
                [leaf] => (leaf.extent, leaf.stride),
                _ => {
                    return Err(PyBufferError::new_err(format!(
                        "mode {number}, {mode}, has several strides, and an axis has one: flatten() makes each its own \
                         axis, relayout() moves the elements"
                    )));
                }
            };
            extents.push(extent);
            strides.push(stride);
        }
        settle(&extents, &mut strides);
        Ok(Exported::in_memory(tensor, extents, strides))
    }

    /// A tensor without elements.
    pub fn empty(Empty { shape, element, readonly, device }: &Empty) -> Exported {
        let (element, readonly, device) = (*element, *readonly, *device);
        Exported {
            memory: None,
            element,
            device,
            readonly,
            extents: shape.clone(),
            strides: compact(shape),
            address: 0,
        }
    }

    fn in_memory(tensor: &Placed, extents: Vec<i64>, strides: Vec<i64>) -> Exported {
        let memory = &tensor.memory;
        let (element, device, readonly) = (memory.element(), memory.device(), memory.readonly());
        let address = memory.address(tensor.origin);
        Exported { memory: Some(Arc::clone(memory)), element, device, readonly, extents, strides, address }
    }

    /// The tensor as an array for kernels.
    ///
    /// Errors: kernels do not have this element type, or cannot access the memory (`TypeError`).
    pub fn array(self, layout: Option<Box<AnyLayout>>) -> PyResult<Array> {
        let (name, DLDevice { device_type, device_id }) = (self.element.name(), self.device);
        let element = operand::named_element(name)
            .ok_or_else(|| PyTypeError::new_err(format!("kernels have no elements of type {name}")))?;
        let device = match (self.device, device_type) {
            (DLDevice::CPU, _) => None,
            (_, DLDeviceType::CUDA) => usize::try_from(device_id).ok(),
            _ => {
                let device = memory::device_name(self.device);
                return Err(PyTypeError::new_err(format!(
                    "kernels run on the host or on CUDA devices, not on {device}"
                )));
            }
        };
        Ok(Array {
            address: self.address as u64,
            shape: self.extents.into(),
            strides: self.strides.into(),
            element,
            device,
            read_only: self.readonly,
            layout,
            stream: None,
            copied_by: "`x.relayout()`",
        })
    }

    /// The value of `__array_interface__`.
    ///
    /// Errors: the memory is not on the CPU (`BufferError`).
    pub fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.device != DLDevice::CPU {
            let device = memory::device_name(self.device);
            return Err(PyBufferError::new_err(format!("the memory is on {device}, where NumPy does not read")));
        }
        let element = self.element;
        let bytes = element.bytes() as i64;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        let code = element.code().map_or_else(|| format!("|V{bytes}"), str::to_owned);
        interface.set_item("typestr", code)?;
        interface.set_item("shape", PyTuple::new(py, &self.extents)?)?;
        interface.set_item("strides", PyTuple::new(py, self.strides.iter().map(|stride| stride * bytes))?)?;
        interface.set_item("data", (self.address, self.readonly))?;
        Ok(interface)
    }

    /// All memory that a tensor's layout covers as one axis, for layouts that strides cannot
    /// describe.
    ///
    /// Errors: there are elements before offset 0 (`BufferError`).
    pub fn all(tensor: &Placed) -> PyResult<Exported> {
        let range = tensor.offsets.range().map_err(|error| Python::attach(|py| refusal::of(py, &error)))?;
        let (0.., greatest) = range else {
            return Err(PyBufferError::new_err(format!("{} has elements before offset 0", tensor.layout)));
        };
        Ok(Exported::in_memory(tensor, vec![greatest + 1], vec![1]))
    }

    fn managed<M: ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let owner = Box::new(self.memory.clone());
        let made = Dynamic::new(self.extents.as_slice(), self.strides.as_slice()).initialize_as::<M>(owner);
        let mut made = made.map_err(|error| PyBufferError::new_err(error.to_string()))?;
        made.set_data(self.address as *mut _).set_dtype(self.element.exchanged()).set_device(self.device);
        made.set_flags(self.flags()).map_err(|error| PyBufferError::new_err(error.to_string()))?;
        // SAFETY: every element with these extents and strides is at its address as long as the
        // memory is alive, which the header ensures; the flags say whether it may be written.
        Ok(unsafe { made.finish() })
    }
}

impl DlpackExporter for Exported {
    fn device(&self) -> DLDevice {
        self.device
    }

    fn flags(&self) -> DlpackFlags {
        if self.readonly { DlpackFlags::READ_ONLY } else { DlpackFlags::empty() }
    }

    fn prepare_export(&self, _py: Python<'_>, request: &ExportRequest<'_>) -> PyResult<()> {
        // No work is pending on the device here: imported memory was ready on the stream with which
        // it came.
        if self.device != DLDevice::CPU {
            let _: CudaStreamRequest = request.cuda_stream()?;
        }
        Ok(())
    }

    fn export_legacy(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.managed()
    }

    fn export_versioned(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.managed()
    }
}
