//! Tensors in device memory.
//!
//! Law: as a [`Tensor`], it owns its memory, which extends from offset 0, or the smallest offset,
//! to the largest one, and its layout is injective. Copies to and from the host transfer all of
//! that memory, including gaps between elements, so both sides have the same layout.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use tilewright_layout::{Layout, Tree};
use tilewright_tensor::{Offsets, Tensor, TensorError};

use crate::context::Context;
use crate::element::Element;
use crate::error::GpuError;
use crate::memory::Memory;
use crate::parameter::{Argument, Place};
use crate::stream::Stream;

/// A tensor in device memory: elements under a layout.
///
/// ```no_run
/// use tilewright_gpu::{Device, DeviceTensor};
/// use tilewright_layout::Layout;
/// use tilewright_tensor::Tensor;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open(0)?;
/// let stream = device.stream()?;
/// let rows: Layout = "(2,3):(3,1)".parse()?;
/// let host = Tensor::from_vec(vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], rows)?;
/// let tensor = DeviceTensor::from_tensor(&stream, &host)?;
/// assert_eq!(tensor.read(&stream)?.get([1, 0])?, &4.0);
/// # Ok(())
/// # }
/// ```
pub struct DeviceTensor<T, L = Layout> {
    memory: Memory,
    elements: usize,
    origin: usize,
    layout: L,
    kind: PhantomData<T>,
}

impl<T: Element, L: Offsets> DeviceTensor<T, L> {
    /// A tensor with uninitialised elements.
    fn room(stream: &Stream, layout: L) -> Result<DeviceTensor<T, L>, GpuError> {
        if !matches!(layout.injective(), Ok(true)) {
            let layout_text = layout.to_string().into();
            return Err(TensorError::Shared { pair: layout.collision(), layout: layout_text }.into());
        }
        let (least, greatest) = layout.range()?;
        let first = least.min(0);
        let refused = |elements| TensorError::Memory { elements, bytes: size_of::<T>() };
        let elements = greatest.checked_sub(first).and_then(|last| last.checked_add(1));
        let elements = elements.ok_or(refused(i64::MAX))?;
        let bytes = u64::try_from(elements).ok().and_then(|count| count.checked_mul(size_of::<T>() as u64));
        let bytes = bytes.ok_or(refused(elements))?;
        let elements_here = usize::try_from(elements).map_err(|_| refused(elements))?;
        let origin = usize::try_from(first.unsigned_abs()).map_err(|_| refused(elements))?;
        let memory = Memory::in_context(stream.context(), bytes)?;
        Ok(DeviceTensor { memory, elements: elements_here, origin, layout, kind: PhantomData })
    }

    /// A tensor whose elements all have one value, as [`Tensor::filled`].
    ///
    /// Errors: two coordinates have the same offset, or may have (E0402); too little memory is free
    /// (E0805).
    pub fn filled(stream: &Stream, layout: L, value: T) -> Result<DeviceTensor<T, L>, GpuError> {
        let mut tensor = DeviceTensor::room(stream, layout)?;
        tensor.fill(stream, value)?;
        Ok(tensor)
    }

    /// A copy of a host tensor, under the same layout.
    ///
    /// Errors: too little memory is free (E0805).
    pub fn from_tensor(stream: &Stream, host: &Tensor<T, L>) -> Result<DeviceTensor<T, L>, GpuError> {
        let mut tensor = DeviceTensor::room(stream, host.layout().clone())?;
        tensor.write(stream, host)?;
        Ok(tensor)
    }

    /// Sets every element of the memory, including those between the elements of the layout.
    ///
    /// Errors: the stream is of another device (E0814).
    pub fn fill(&mut self, stream: &Stream, value: T) -> Result<(), GpuError> {
        self.memory.fill(stream, bytemuck::bytes_of(&value))
    }

    /// Copies a host tensor to this one.
    ///
    /// Errors: the host tensor has another layout, or another part of it in memory (E0818); the
    /// stream is of another device (E0814); a kernel failed (E0807).
    pub fn write(&mut self, stream: &Stream, host: &Tensor<T, L>) -> Result<(), GpuError> {
        self.same(host)?;
        self.memory.write(stream, 0, bytemuck::cast_slice(host.as_slice()))
    }

    /// A copy of the tensor on the host, under the same layout.
    ///
    /// Errors: the host has too little memory (E0404); the stream is of another device (E0814); a
    /// kernel failed (E0807).
    pub fn read(&self, stream: &Stream) -> Result<Tensor<T, L>, GpuError> {
        let mut elements: Vec<T> = Vec::new();
        let refused = |_| TensorError::Memory { elements: self.elements as i64, bytes: size_of::<T>() };
        elements.try_reserve_exact(self.elements).map_err(refused)?;
        elements.resize(self.elements, T::zeroed());
        self.memory.read(stream, 0, bytemuck::cast_slice_mut(&mut elements))?;
        Ok(Tensor::from_vec_with_origin(elements, self.origin, self.layout.clone())?)
    }

    /// Copies the tensor to a host tensor.
    ///
    /// Errors: as [`DeviceTensor::write`].
    pub fn read_into(&self, stream: &Stream, host: &mut Tensor<T, L>) -> Result<(), GpuError> {
        self.same(host)?;
        self.memory.read(stream, 0, bytemuck::cast_slice_mut(host.as_mut_slice()))
    }

    fn same(&self, host: &Tensor<T, L>) -> Result<(), GpuError> {
        if self.layout == *host.layout() && self.origin == host.origin() && self.elements == host.as_slice().len() {
            return Ok(());
        }
        let part = |layout: &L, elements, origin| {
            format!("{layout}, over {elements} elements of memory with offset 0 at element {origin}").into()
        };
        Err(GpuError::Layouts {
            device: part(&self.layout, self.elements, self.origin),
            host: part(host.layout(), host.as_slice().len(), host.origin()),
        })
    }

    fn place(&self, writable: bool) -> Place<'_> {
        Place {
            context: self.memory.context(),
            range: (self.memory.address(), self.memory.bytes()),
            address: self.address(),
            writable,
            element: Some(T::TYPE),
            layout: Some(&self.layout),
        }
    }
}

impl<T, L: Offsets> DeviceTensor<T, L> {
    /// The layout of the elements.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// The extents.
    pub fn shape(&self) -> Tree<i64> {
        self.layout.shape()
    }

    /// The number of coordinates.
    pub fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The memory of the tensor.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The memory of the tensor, to be written without regard to the layout.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// The device address of the element at offset 0. If the layout does not have offset 0, the
    /// address that it would have.
    pub fn address(&self) -> u64 {
        // Within the allocation.
        self.memory.address().wrapping_add((self.origin * size_of::<T>()) as u64)
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        self.memory.context()
    }
}

impl<'a, T: Element, L: Offsets> From<&'a DeviceTensor<T, L>> for Argument<'a> {
    fn from(tensor: &'a DeviceTensor<T, L>) -> Self {
        tensor.place(false).into()
    }
}

impl<'a, T: Element, L: Offsets> From<&'a mut DeviceTensor<T, L>> for Argument<'a> {
    fn from(tensor: &'a mut DeviceTensor<T, L>) -> Self {
        tensor.place(true).into()
    }
}

impl<T: Element, L: Offsets> fmt::Debug for DeviceTensor<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceTensor({} {}, device {})", T::TYPE, self.layout, self.memory.context().ordinal())
    }
}
