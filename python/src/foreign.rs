//! Arrays of other libraries: addresses and layouts of their elements.
//!
//! Supported are: tensors of PyTorch, on the host and on CUDA devices, including bf16 and fp8, by
//! their own methods, which take a tenth of the time of a protocol; CUDA arrays by
//! `__cuda_array_interface__` (CuPy, Numba, JAX); and NumPy arrays and other objects with
//! `__array_interface__`. Nothing is copied. Strides are counted in elements, so strides that are
//! not multiples of an element are refused.
//!
//! An [`Array`] is a snapshot with an address; it does not borrow the memory. The caller that reads
//! or writes the memory keeps the object alive.
//!
//! Reason for unsafe code: the descriptions of memory and streams by other libraries are trusted.
#![allow(unsafe_code)]

use std::ffi::c_void;

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLTensor};
use dlpark::python::consumer::exchange::ExchangeApi;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::{SmallVec, smallvec};
use tilewright_gpu::{BorrowedMemory, Device, Stream};
use tilewright_kernel::Element;
use tilewright_layout::AnyLayout;

use crate::kernel::operand;
use crate::tensor::{Tensor, settle};
use crate::writes;

/// The memory of an array of another library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The address of the element at index 0 of every axis.
    pub address: u64,
    /// The extent of each axis.
    pub shape: SmallVec<[i64; 6]>,
    /// The stride of each axis, in elements.
    pub strides: SmallVec<[i64; 6]>,
    /// The type of the elements.
    pub element: Element,
    /// The ordinal of the CUDA device; None for the host.
    pub device: Option<usize>,
    /// Whether it is read-only.
    pub read_only: bool,
    /// The offsets of the elements, in memory as one axis, for tensors of this package whose modes
    /// strides cannot describe.
    pub layout: Option<Box<AnyLayout>>,
    /// The current stream of its library, if the library reported it.
    pub stream: Option<usize>,
    /// An expression that makes a row-major copy of it, by a function of its library.
    pub copied_by: &'static str,
}

impl Array {
    /// The memory of an object.
    ///
    /// Errors: it is not an array (`TypeError`); its element type, or its strides, are not
    /// supported (`ValueError`).
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Array> {
        let mut array = Array::read(object)?;
        settle(&array.shape, &mut array.strides);
        Ok(array)
    }

    fn read(object: &Bound<'_, PyAny>) -> PyResult<Array> {
        let py = object.py();
        if let Some(array) = Array::of_torch(object)? {
            return Ok(array);
        }
        if let Ok(tensor) = object.cast::<Tensor>() {
            return tensor.get().array();
        }
        if let Ok(interface) = object.getattr(pyo3::intern!(py, "__cuda_array_interface__")) {
            return Array::of_interface(object, &interface, true);
        }
        if let Ok(interface) = object.getattr(pyo3::intern!(py, "__array_interface__")) {
            return Array::of_interface(object, &interface, false);
        }
        let kind = object.get_type();
        Err(PyTypeError::new_err(format!(
            "expected an array of NumPy, a tensor of PyTorch or of this package, or an array with \
             __cuda_array_interface__, not {}",
            kind.name()?
        )))
    }

    /// An object of PyTorch's own tensor class, not of a derived class, on a CUDA device. None for
    /// another tensor, and if it has no memory.
    pub fn of_plain_cuda_tensor(tensor: &Bound<'_, PyAny>) -> Option<Array> {
        let read = Array::of_exchange(tensor).or_else(|| Array::of_torch(tensor).ok().flatten());
        let mut array = read.filter(|array| array.device.is_some())?;
        settle(&array.shape, &mut array.strides);
        Some(array)
    }

    fn of_torch(object: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
        let py = object.py();
        let Some(class) = torch(py)? else { return Ok(None) };
        if !object.is_instance(class)? {
            return Ok(None);
        }
        if let Some(array) = Array::of_exchange(object) {
            return Ok(Some(array));
        }
        let numbers = |name| -> PyResult<SmallVec<[i64; 6]>> {
            let tuple = object.call_method0(name)?;
            tuple.cast::<PyTuple>()?.iter_borrowed().map(|number| number.extract::<i64>()).collect()
        };
        let ordinal = object.call_method0(pyo3::intern!(py, "get_device"))?.extract::<i64>()?;
        Ok(Some(Array {
            address: object.call_method0(pyo3::intern!(py, "data_ptr"))?.extract()?,
            shape: numbers(pyo3::intern!(py, "size"))?,
            strides: numbers(pyo3::intern!(py, "stride"))?,
            element: torch_element(&object.getattr(pyo3::intern!(py, "dtype"))?)?,
            device: usize::try_from(ordinal).ok(),
            read_only: false,
            layout: None,
            stream: None,
            copied_by: TORCH_COPY,
        }))
    }

    /// A PyTorch tensor by the function table of DLPack: one call instead of five. None if there is
    /// no table, or if kernels cannot use its answer.
    fn of_exchange(object: &Bound<'_, PyAny>) -> Option<Array> {
        static TABLE: PyOnceLock<Option<Table>> = PyOnceLock::new();
        let table = TABLE.get_or_init(object.py(), || ExchangeApi::from_object(object.as_borrowed()).ok()?.map(Table));
        let read = |tensor: &DLTensor, stream: *mut c_void| {
            let axes = usize::try_from(tensor.ndim).ok()?;
            let DLDevice { device_type, device_id } = tensor.device;
            let device = match device_type {
                DLDeviceType::CPU => None,
                DLDeviceType::CUDA => Some(usize::try_from(device_id).ok()?),
                _ => return None,
            };
            let element = exchanged_element(tensor.dtype)?;
            let (shape, strides): (SmallVec<[i64; 6]>, SmallVec<[i64; 6]>) = match axes {
                0 => (SmallVec::new(), SmallVec::new()),
                _ if tensor.shape.is_null() || tensor.strides.is_null() => return None,
                // SAFETY: the table guarantees that these arrays have this many numbers during this
                // call.
                _ => unsafe {
                    let numbers = |from: *mut i64| std::slice::from_raw_parts(from, axes);
                    (numbers(tensor.shape).into(), numbers(tensor.strides).into())
                },
            };
            Some(Array {
                address: (tensor.data as u64).wrapping_add(tensor.byte_offset),
                shape,
                strides,
                element,
                device,
                read_only: false,
                layout: None,
                stream: device.map(|_| stream as usize),
                copied_by: TORCH_COPY,
            })
        };
        // Tensors that it refuses are read, or refused, in the other way.
        table.as_ref()?.0.with_tensor_view_no_sync(object.as_borrowed(), read).ok()?
    }

    fn of_interface(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>, cuda: bool) -> PyResult<Array> {
        let interface = interface.cast::<PyDict>()?;
        let wanted = |name: &str| {
            let missing = || PyTypeError::new_err(format!("the interface of the array has no '{name}'"));
            interface.get_item(name)?.ok_or_else(missing)
        };
        let (address, read_only) = wanted("data")?.extract::<(u64, bool)>()?;
        let read_only = read_only || writes::is_immutable(object);
        let shape: SmallVec<[i64; 6]> = wanted("shape")?.extract::<Vec<i64>>()?.into();
        let text = wanted("typestr")?.extract::<String>()?;
        if text.starts_with('>') {
            return Err(PyValueError::new_err(format!(
                "the bytes of elements '{text}' are in the order of another machine: array.astype(array.dtype.newbyteorder('=')) \
                 has them in that of this one"
            )));
        }
        let element = match named(&text) {
            Some(element) => element,
            // Types that NumPy knows only by name: bf16 and fp8.
            None => operand::element(&object.getattr("dtype")?)?,
        };
        let bytes = i64::from(element.bytes());
        let strides = match interface.get_item("strides")? {
            Some(strides) if !strides.is_none() => strides.extract::<Vec<i64>>()?,
            _ => {
                // Contiguous, the last axis fastest.
                let step = |after: &[i64]| after.iter().fold(bytes, |step, extent| step.saturating_mul(*extent));
                (1..=shape.len()).map(|axis| step(&shape[axis..])).collect()
            }
        };
        // Strides of axes of extent 1, and of empty arrays, are ignored.
        let is_odd = |(extent, stride): &(&i64, &i64)| **extent > 1 && **stride % bytes != 0;
        let odd = shape.iter().zip(&strides).find(is_odd).filter(|_| !shape.contains(&0));
        if let Some((_, odd)) = odd {
            return Err(PyValueError::new_err(format!(
                "a stride of {odd} bytes is no number of elements of {bytes} bytes: copy the array first"
            )));
        }
        let ordinal = || match object.getattr("device").and_then(|device| device.getattr("id")) {
            Ok(id) => id.extract::<usize>(),
            Err(_) => Ok(0),
        };
        Ok(Array {
            address,
            shape,
            strides: strides.into_iter().map(|stride| stride / bytes).collect(),
            element,
            device: if cuda { Some(ordinal()?) } else { None },
            read_only,
            layout: None,
            stream: None,
            copied_by: if cuda { "`cupy.ascontiguousarray(x)`" } else { "`numpy.ascontiguousarray(x)`" },
        })
    }

    /// Whether the array is empty.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The number of elements from the first to the last in memory; None if a stride is negative.
    pub fn span(&self) -> Option<i64> {
        if self.is_empty() {
            return Some(0);
        }
        let mut last = 0_i64;
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            if *extent < 1 || (*stride < 0 && *extent > 1) {
                return None;
            }
            last = last.checked_add((extent - 1).checked_mul(*stride)?)?;
        }
        last.checked_add(1)
    }

    /// Whether the memory from the first element to the last may be shared with another array.
    pub fn may_share(&self, other: &Array) -> bool {
        let reach = |array: &Array| {
            let bytes = array.span()?.unsigned_abs().checked_mul(array.element.bytes().into())?;
            Some((array.address, array.address.checked_add(bytes)?))
        };
        match (reach(self), reach(other)) {
            (Some((first, end)), Some((begin, last))) => self.device == other.device && first < last && begin < end,
            _ => true,
        }
    }

    /// The alignment of the memory in elements, for copies of 16 bytes: the largest power of two,
    /// up to 16 bytes, that divides the address of the first one. It is 16 on the host, where
    /// nothing depends on it.
    pub fn alignment(&self) -> i64 {
        match self.before() {
            0 => 16,
            before => 1 << before.trailing_zeros().min(4),
        }
    }

    /// The number of elements between a multiple of 16 bytes and the first one; 0 on the host.
    pub fn before(&self) -> i64 {
        match self.device {
            Some(_) => (self.address % 16 / u64::from(self.element.bytes())).cast_signed(),
            None => 0,
        }
    }

    /// Whether elements are contiguous, the last axis fastest.
    pub fn is_dense(&self) -> bool {
        let mut step = 1_i64;
        self.layout.is_none()
            && self.shape.iter().zip(&self.strides).rev().all(|(extent, stride)| {
                let fits = *stride == step || *extent <= 1;
                step = step.saturating_mul(*extent);
                fits
            })
    }

    /// The rows along the last axis as a matrix. None if their distances differ, or if the array
    /// has no axes.
    pub fn rows(mut self) -> Option<Array> {
        let (length, leading) = self.shape.split_last()?;
        let steps = self.strides.get(..leading.len())?;
        let follows = |axis: usize| steps[axis] == steps[axis + 1].saturating_mul(leading[axis + 1]);
        if self.layout.is_some() || !(1..leading.len()).all(|axis| follows(axis - 1)) {
            return None;
        }
        let rows = leading.iter().fold(1_i64, |rows, extent| rows.saturating_mul(*extent));
        let strides: SmallVec<[i64; 6]> = smallvec![steps.last().copied().unwrap_or(1), *self.strides.last()?];
        self.shape = smallvec![rows, *length];
        self.strides = strides;
        settle(&self.shape, &mut self.strides);
        Some(self)
    }

    /// Refuses an array with a negative stride (`ValueError`).
    pub fn check_ascending(&self) -> PyResult<()> {
        if self.span().is_some() {
            return Ok(());
        }
        let text = self.text();
        Err(PyValueError::new_err(format!(
            "an array that lies as {text} is no tensor of a kernel, for an axis goes backwards: copy the array first"
        )))
    }

    /// The memory as one axis that begins this many elements before the first one.
    ///
    /// The caller guarantees that they are in the same allocation.
    pub fn since(self, before: i64) -> Array {
        let bytes = before.unsigned_abs() * u64::from(self.element.bytes());
        let extent = self.span().unwrap_or(0).saturating_add(before);
        let (shape, strides) = ([extent].into_iter().collect(), [1].into_iter().collect());
        Array { address: self.address.saturating_sub(bytes), shape, strides, ..self }
    }

    /// The shape and the strides, as the text of a layout.
    pub fn text(&self) -> String {
        if let Some(layout) = &self.layout {
            return layout.to_string();
        }
        let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        format!("({}):({})", list(&self.shape), list(&self.strides))
    }

    /// The memory for a launch: from this many elements before the first one up to the last.
    pub fn memory(&self, device: &Device, before: i64) -> BorrowedMemory {
        let (elements, bytes) = (self.span().unwrap_or(0).saturating_add(before), u64::from(self.element.bytes()));
        let address = self.address.saturating_sub(before.unsigned_abs() * bytes);
        // SAFETY: PyTorch, or the owner of the array, says that these bytes are its memory on the
        // device; the caller keeps the object alive until the launch is on the stream of the
        // object's library, which orders the release of the memory after it.
        unsafe { BorrowedMemory::new(device, address, elements.unsigned_abs() * bytes) }
    }
}

/// An expression that makes a row-major copy of a PyTorch tensor.
const TORCH_COPY: &str = "`x.contiguous()`";

/// PyTorch's table of functions.
struct Table(ExchangeApi);

// SAFETY: a table is constant and lives as long as the process (DLPack, `DLPackExchangeAPI`). Its
// functions are called by threads that hold the interpreter's lock.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// The element type of a DLPack type.
fn exchanged_element(found: DLDataType) -> Option<Element> {
    const TYPES: [(DLDataType, Element); 15] = [
        (DLDataType::F32, Element::F32),
        (DLDataType::BF16, Element::Bf16),
        (DLDataType::F16, Element::F16),
        (DLDataType::F64, Element::F64),
        (DLDataType::I64, Element::I64),
        (DLDataType::I32, Element::I32),
        (DLDataType::I16, Element::I16),
        (DLDataType::I8, Element::I8),
        (DLDataType::U64, Element::U64),
        (DLDataType::U32, Element::U32),
        (DLDataType::U16, Element::U16),
        (DLDataType::U8, Element::U8),
        (DLDataType::BOOL, Element::U8),
        (DLDataType::F8E4M3FN, Element::E4M3),
        (DLDataType::F8E5M2, Element::E5M2),
    ];
    TYPES.iter().find(|(own, _)| own.matches(found)).map(|(_, element)| *element)
}

/// The element type of a dtype of PyTorch.
fn torch_element(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
    static KNOWN: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = dtype.py();
    let known = KNOWN.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(number) = known.get_item(dtype)? {
        return Ok(Element::ALL[number.extract::<usize>()?]);
    }
    let element = operand::element(dtype)?;
    let number = Element::ALL.iter().position(|own| *own == element).unwrap_or(0);
    known.set_item(dtype, number)?;
    Ok(element)
}

/// The element type of a little-endian `typestr`.
fn named(text: &str) -> Option<Element> {
    match text.trim_start_matches(['<', '|', '=']) {
        "f8" => Some(Element::F64),
        "f4" => Some(Element::F32),
        "f2" => Some(Element::F16),
        "i8" => Some(Element::I64),
        "i4" => Some(Element::I32),
        "i2" => Some(Element::I16),
        "i1" => Some(Element::I8),
        "u8" => Some(Element::U64),
        "u4" => Some(Element::U32),
        "u2" => Some(Element::U16),
        "u1" | "b1" => Some(Element::U8),
        _ => None,
    }
}

/// Whether an object is a tensor of PyTorch.
pub fn is_torch(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match torch(object.py())? {
        Some(class) => object.is_instance(class),
        None => Ok(false),
    }
}

/// PyTorch's class of tensors; None if PyTorch was not imported.
pub fn torch<'py>(py: Python<'py>) -> PyResult<Option<&'py Bound<'py, PyType>>> {
    static TENSOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if let Some(class) = TENSOR.get(py) {
        return Ok(Some(class.bind(py)));
    }
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(module) = modules.get_item("torch") else { return Ok(None) };
    // While PyTorch is being imported, there are no tensors yet.
    let Ok(class) = module.getattr("Tensor") else { return Ok(None) };
    let class = class.cast_into::<PyType>()?.unbind();
    Ok(Some(TENSOR.get_or_init(py, || class).bind(py)))
}

/// The current stream of PyTorch on a device; the default stream if PyTorch was not imported.
pub fn current_stream(py: Python<'_>, device: usize) -> PyResult<usize> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if torch(py)?.is_none() {
        return Ok(0);
    }
    let current = CURRENT.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("torch")?.getattr("_C")?.getattr("_cuda_getCurrentRawStream")?.unbind())
    })?;
    current.bind(py).call1((device,))?.extract()
}

/// A stream of another library by its handle.
pub fn stream(device: &Device, handle: usize) -> Stream {
    // SAFETY: the handle is PyTorch's current stream of this device, or the default stream; its
    // streams live as long as the process.
    unsafe { Stream::borrowed(device, handle) }
}
