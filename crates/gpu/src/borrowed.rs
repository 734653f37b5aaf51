//! Streams and memory of other libraries in the same process.
//!
//! Law: a borrowed stream or memory is used like one of this crate, and only its owner frees it. So
//! kernels work on the tensors, and in the order of the streams, of a library that shares the
//! primary context of the device.
//!
//! Reason for unsafe code: nothing can check that an address or a handle is valid and belongs to
//! its owner.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::parameter::{Argument, Place};
use crate::stream::Stream;

impl Stream {
    /// Borrows a stream of another library by its handle, a `CUstream`; 0 is the default stream.
    /// When the result is dropped, the stream is neither synchronized nor destroyed.
    ///
    /// # Safety
    ///
    /// The handle is 0, or that of a stream of the primary context of this device that lives at
    /// least as long as the result.
    pub unsafe fn borrowed(device: &Device, handle: usize) -> Stream {
        // SAFETY: the caller's promise.
        Stream::of_handle(device.context(), unsafe { StreamHandle::foreign(handle) })
    }
}

/// Memory of another library on a device.
///
/// ```no_run
/// use tilewright_gpu::{BorrowedMemory, Device};
///
/// # fn main() -> Result<(), tilewright_gpu::GpuError> {
/// let device = Device::open(0)?;
/// let own = device.allocate(1024)?;
/// // SAFETY: `own` is this memory, and lives longer.
/// let borrowed = unsafe { BorrowedMemory::new(&device, own.address(), own.bytes()) };
/// assert_eq!(borrowed.bytes(), 1024);
/// # Ok(())
/// # }
/// ```
pub struct BorrowedMemory {
    context: Arc<Context>,
    address: u64,
    bytes: u64,
}

impl BorrowedMemory {
    /// Borrows `bytes` bytes from an address on.
    ///
    /// # Safety
    ///
    /// Kernels on this device may access these bytes as long as any launch that gets the result may
    /// run. If the result is passed as `&mut`, they may be written.
    pub unsafe fn new(device: &Device, address: u64, bytes: u64) -> BorrowedMemory {
        BorrowedMemory { context: device.context().clone(), address, bytes }
    }

    /// The address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn place(&self, writable: bool) -> Place<'_> {
        let (context, range) = (&self.context, (self.address, self.bytes));
        Place { context, range, address: self.address, writable, element: None, layout: None }
    }
}

impl<'a> From<&'a BorrowedMemory> for Argument<'a> {
    fn from(memory: &'a BorrowedMemory) -> Self {
        memory.place(false).into()
    }
}

impl<'a> From<&'a mut BorrowedMemory> for Argument<'a> {
    fn from(memory: &'a mut BorrowedMemory) -> Self {
        memory.place(true).into()
    }
}

impl fmt::Debug for BorrowedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BorrowedMemory({} bytes at {:#x})", self.bytes, self.address)
    }
}
