//! Streams and memory of other libraries in the same process.
//!
//! Law: what is borrowed is used as if it were made here, and is given back by its owner alone. So
//! kernels work on the tensors, and in the order of the streams, of a library that shares the
//! primary context of the device.
//!
//! Reason for unsafe code: nothing can check that an address or a handle is what its owner says.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::parameter::{Argument, Place};
use crate::stream::Stream;

impl Stream {
    /// A stream of another library by its handle, a `CUstream`; 0 is the default stream. It is
    /// neither waited for nor given back when the result is dropped.
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
    /// `bytes` bytes from an address on.
    ///
    /// # Safety
    ///
    /// The bytes are memory that kernels on this device may touch, as long as any launch that is
    /// given the result may run; what is passed as `&mut` may be written.
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
