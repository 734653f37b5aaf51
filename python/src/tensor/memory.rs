//! The memory of tensors: allocated here, or owned by an array of another package.
//!
//! # Invariant
//!
//! Of a [`Memory`] on the CPU: for every offset from `first` to `last`, `base + offset` elements is
//! the address of an element in one allocation, aligned and initialised, which lives as long as
//! `owner` is kept. So a view under a layout whose offsets are in that range accesses nothing else.
//!
//! Nothing can prove that another thread does not write memory that Python shares while it is read
//! here. Concurrent accesses by tensors of this package are excluded by [`Guard`]; those by others
//! are up to the program, as for every array that two threads use.
//!
//! Reason for unsafe code: the addresses come from other packages as numbers, and a mutable slice
//! over the range of a strided array would claim elements that do not belong to it.
#![allow(unsafe_code)]

use std::sync::{Mutex, PoisonError};

use dlpark::AllocationDeleter;
use dlpark::ffi::DLDevice;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tilewright_layout::Layout;
use tilewright_tensor::{AnyOffsets, TensorView, TensorViewMut};

use super::element::Element;
use crate::writes::Writes;

/// The owner of the memory.
pub enum Owner {
    /// A Python object.
    Object(Option<Py<PyAny>>),
    /// Another package, by DLPack; and the object, if it is a PyTorch tensor.
    Lent(#[expect(dead_code, reason = "kept, never asked")] AllocationDeleter, Option<Py<PyAny>>),
    /// This package.
    Own(#[expect(dead_code, reason = "kept, never asked")] Box<tilewright_tensor::Tensor<u64>>),
}

/// Elements in memory.
pub struct Memory {
    base: *mut u8,
    first: i64,
    last: i64,
    element: Element,
    readonly: bool,
    device: DLDevice,
    owner: Owner,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // The last reference may be dropped by another package that holds the interpreter's lock
        // without this one knowing. The lock is acquired here, because otherwise the object would
        // be freed only at the next call.
        if let Owner::Object(object) | Owner::Lent(_, object) = &mut self.owner
            && let Some(object) = object.take()
        {
            Python::try_attach(|py| object.drop_ref(py));
        }
    }
}

// SAFETY: the memory may be used from any thread; writes are excluded by `Guard`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Zeros for offsets from `first` to `last`, one of which is 0.
    ///
    /// Errors: there is not enough memory.
    pub fn zeroed(py: Python<'_>, element: Element, first: i64, last: i64) -> PyResult<Memory> {
        let (first, last) = (first.min(0), last.max(0));
        let refused = |error| crate::refusal::of(py, &error);
        let bytes = last.checked_sub(first).and_then(|count| count.checked_add(1)?.checked_mul(element.bytes() as i64));
        let words = bytes.and_then(|bytes| bytes.checked_add(7)).map(|bytes| bytes / 8);
        let too_many = tilewright_tensor::TensorError::Memory { elements: last, bytes: element.bytes() };
        let words = words.ok_or_else(|| refused(too_many))?;
        let layout = Layout::mode_of(words, 1).map_err(|error| crate::refusal::of_layout(py, error))?;
        let mut words = Box::new(tilewright_tensor::Tensor::<u64>::zeroed(layout).map_err(refused)?);
        let base = words.as_mut_ptr().cast::<u8>().wrapping_offset(first as isize * -(element.bytes() as isize));
        Ok(Memory { base, first, last, element, readonly: false, device: DLDevice::CPU, owner: Owner::Own(words) })
    }

    /// Memory of another package: the element of offset 0 is at `address`.
    ///
    /// Errors: the address is not aligned to the numbers of an element (`ValueError`).
    ///
    /// # Safety
    /// The invariant at the head of this file, except for alignment.
    pub unsafe fn lent(
        address: usize,
        [first, last]: [i64; 2],
        element: Element,
        readonly: bool,
        device: DLDevice,
        owner: Owner,
    ) -> PyResult<Memory> {
        let alignment = element.alignment();
        if !address.is_multiple_of(alignment) {
            return Err(PyValueError::new_err(format!(
                "the first element is at address {address:#x}, which is no multiple of {alignment}: copy the array"
            )));
        }
        let base = std::ptr::with_exposed_provenance_mut(address);
        Ok(Memory { base, first, last, element, readonly, device, owner })
    }

    pub fn element(&self) -> Element {
        self.element
    }

    pub fn readonly(&self) -> bool {
        self.readonly
    }

    pub fn device(&self) -> DLDevice {
        self.device
    }

    /// The smallest and the largest offset of an element.
    pub fn range(&self) -> [i64; 2] {
        [self.first, self.last]
    }

    /// The address of the element at an offset.
    pub fn address(&self, offset: i64) -> usize {
        self.base.wrapping_offset(offset as isize * self.element.bytes() as isize) as usize
    }

    /// The bytes of the element at an offset.
    ///
    /// Errors: there is none, or it is on another device (`ValueError`).
    pub fn read(&self, offset: i64) -> PyResult<Vec<u8>> {
        let from = self.place(offset)?;
        // SAFETY: the offset is within the range, so by the invariant an element is there.
        Ok(unsafe { std::slice::from_raw_parts(from, self.element.bytes()) }.to_vec())
    }

    /// Writes the bytes of the element at an offset.
    ///
    /// Errors: as [`Memory::read`]; the memory is read-only; the number of bytes is not that of an
    /// element.
    pub fn write(&self, offset: i64, bytes: &[u8]) -> PyResult<()> {
        let to = self.place(offset)?;
        self.check_writable()?;
        if bytes.len() != self.element.bytes() {
            return Err(PyValueError::new_err("not the bytes of one element"));
        }
        // SAFETY: the offset is within the range, so by the invariant an element is there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn place(&self, offset: i64) -> PyResult<*mut u8> {
        self.check_here()?;
        if !(self.first..=self.last).contains(&offset) {
            return Err(PyValueError::new_err(format!("no element at offset {offset}")));
        }
        Ok(self.base.wrapping_offset(offset as isize * self.element.bytes() as isize))
    }

    /// The tensor of PyTorch that owns it, if one does.
    pub fn lender<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &self.owner {
            Owner::Lent(_, Some(object)) => Some(object.bind(py).clone()),
            _ => None,
        }
    }

    /// Refuses read-only memory, and memory that its owner does not allow to write at the moment;
    /// marks it as written.
    pub fn check_writable(&self) -> PyResult<()> {
        if self.readonly {
            return Err(PyValueError::new_err("the memory is to be read only"));
        }
        if !matches!(self.owner, Owner::Lent(_, Some(_))) {
            return Ok(());
        }
        Python::attach(|py| {
            let Some(lender) = self.lender(py) else { return Ok(()) };
            let rules = Writes::now(py)?;
            rules.check(&lender, true)?;
            rules.mark(&lender)
        })
    }

    /// Refuses memory that the processor cannot access.
    pub fn check_here(&self) -> PyResult<()> {
        if self.device == DLDevice::CPU {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "the memory is on {}, which the processor does not read; copy it to the CPU first",
            self.device_name()
        )))
    }

    /// `cpu`, `cuda:0`, or DLPack's number for another kind of device.
    pub fn device_name(&self) -> String {
        device_name(self.device)
    }

    /// A read-only view, with offset 0 of the layout at `origin`.
    ///
    /// # Safety
    /// A [`Guard`] of these offsets is held meanwhile, the offsets of the layout from `origin` on
    /// are within the range, the memory is on the CPU, and `T` has the size of an element, all bits
    /// of which are valid.
    pub unsafe fn view<'a, T>(&'a self, origin: i64, layout: &AnyOffsets) -> TensorView<'a, T, AnyOffsets> {
        debug_assert_eq!(size_of::<T>(), self.element.bytes());
        let base = self.base.cast::<T>().wrapping_offset(origin as isize);
        // SAFETY: the caller guarantees the offsets and the elements.
        unsafe { TensorView::from_raw(base, layout.clone()) }
    }

    /// A mutable view, with offset 0 of the layout at `origin`.
    ///
    /// # Safety
    /// As [`Memory::view`]; the memory is writable, the guard is one for writing, and the layout is
    /// injective.
    pub unsafe fn view_mut<'a, T>(&'a self, origin: i64, layout: &AnyOffsets) -> TensorViewMut<'a, T, AnyOffsets> {
        debug_assert!(size_of::<T>() == self.element.bytes() && !self.readonly);
        let base = self.base.cast::<T>().wrapping_offset(origin as isize);
        // SAFETY: the caller guarantees the offsets and the elements.
        unsafe { TensorViewMut::from_raw(base, layout.clone()) }
    }
}

/// `cpu`, `cuda:0`, or DLPack's number for another kind of device.
pub fn device_name(DLDevice { device_type, device_id }: DLDevice) -> String {
    match device_type.0 {
        1 => "cpu".to_owned(),
        2 => format!("cuda:{device_id}"),
        other => format!("device {other}:{device_id}"),
    }
}

/// The addresses that are in use.
struct Work {
    number: u64,
    from: usize,
    /// The end of the addresses, exclusive.
    to: usize,
    writing: bool,
}

static AT_WORK: Mutex<(u64, Vec<Work>)> = Mutex::new((0, Vec::new()));

/// Excludes other accesses of this package: writes to addresses that are read, and all accesses to
/// addresses that are written, until it is dropped.
pub struct Guard {
    number: u64,
}

impl Guard {
    /// Claims some addresses, each pair from the first up to the second, excluded.
    ///
    /// Errors: another thread uses them (`RuntimeError`).
    pub fn new(claims: &[([usize; 2], bool)]) -> PyResult<Guard> {
        let mut at_work = AT_WORK.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = |[from, to]: [usize; 2], writing: bool| {
            at_work.1.iter().any(|work| (work.writing || writing) && work.from < to && from < work.to)
        };
        if let Some((_, writing)) = claims.iter().find(|(range, writing)| busy(*range, *writing)) {
            let what = if *writing { "reads or writes" } else { "writes" };
            return Err(PyRuntimeError::new_err(format!("another thread {what} this memory: wait until it is done")));
        }
        let number = at_work.0;
        at_work.0 += 1;
        at_work.1.extend(claims.iter().map(|([from, to], writing)| Work {
            number,
            from: *from,
            to: *to,
            writing: *writing,
        }));
        Ok(Guard { number })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut at_work = AT_WORK.lock().unwrap_or_else(PoisonError::into_inner);
        at_work.1.retain(|work| work.number != self.number);
    }
}
