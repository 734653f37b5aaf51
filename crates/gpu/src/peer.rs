//! Memory of another device, or a part of memory, as kernels on a device access it.
//!
//! Law: connected devices may access each other's memory, at its own addresses, after peer access
//! was enabled. Such access uses a view: the memory belongs to its device, and outlives the view.
//! Only an [`Event`](crate::Event) orders streams of two devices, so a reader of memory that
//! another device writes must wait for one.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::device::Device;
use crate::error::{GpuError, MemoryFlaw};
use crate::memory::Memory;
use crate::parameter::{Argument, Place};
use crate::stream::Stream;

/// Memory that kernels on a device read: of that device, or of another one.
///
/// ```no_run
/// use tilewright_gpu::Device;
///
/// # fn main() -> Result<(), tilewright_gpu::GpuError> {
/// let (here, there) = (Device::open(0)?, Device::open(1)?);
/// let memory = there.allocate(1024)?;
/// let seen = memory.seen_by(&here)?; // an input of kernels that run here
/// assert_eq!(seen.bytes(), 1024);
/// assert_eq!(seen.part(256, 512)?.address(), memory.address() + 256);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PeerMemory<'a> {
    context: Arc<Context>,
    memory: &'a Memory,
    range: (u64, u64),
}

/// Memory that kernels on a device write: of that device, or of another one.
pub struct PeerMemoryMut<'a> {
    context: Arc<Context>,
    memory: &'a mut Memory,
    range: (u64, u64),
}

impl Memory {
    /// This memory for kernels on a device that read it: its own device, or one that is connected
    /// with it.
    ///
    /// Errors: the devices are not connected (E0807).
    pub fn seen_by(&self, device: &Device) -> Result<PeerMemory<'_>, GpuError> {
        let context = reaching(device, self.context())?;
        Ok(PeerMemory { context, memory: self, range: (self.address(), self.bytes()) })
    }

    /// This memory for kernels on a device that write it.
    ///
    /// Errors: as [`Memory::seen_by`].
    pub fn written_by(&mut self, device: &Device) -> Result<PeerMemoryMut<'_>, GpuError> {
        let context = reaching(device, self.context())?;
        let range = (self.address(), self.bytes());
        Ok(PeerMemoryMut { context, memory: self, range })
    }
}

/// The context of a device, after enabling access of its kernels to the memory of another context.
fn reaching(device: &Device, owner: &Arc<Context>) -> Result<Arc<Context>, GpuError> {
    let context = device.context();
    if context.same(owner, "the memory").is_err() {
        context.reach(owner)?;
    }
    Ok(context.clone())
}

/// `bytes` bytes of a range, from offset `at` on.
fn part((address, all): (u64, u64), at: u64, bytes: u64) -> Result<(u64, u64), GpuError> {
    match at.checked_add(bytes) {
        Some(end) if end <= all => Ok((address.wrapping_add(at), bytes)),
        end => {
            let flaw = MemoryFlaw::Small { bytes: all, wanted: end.unwrap_or(u64::MAX) };
            Err(GpuError::Memory { kernel: "a part of memory".into(), parameter: "memory".into(), flaw })
        }
    }
}

impl PeerMemory<'_> {
    /// The address, which is the same on both devices.
    pub fn address(&self) -> u64 {
        self.range.0
    }

    /// The bytes.
    pub fn bytes(&self) -> u64 {
        self.range.1
    }

    /// `bytes` bytes from offset `at` on.
    ///
    /// Errors: the part is not inside of the memory (E0813).
    pub fn part(self, at: u64, bytes: u64) -> Result<Self, GpuError> {
        Ok(PeerMemory { range: part(self.range, at, bytes)?, ..self })
    }
}

impl PeerMemoryMut<'_> {
    /// The address, which is the same on both devices.
    pub fn address(&self) -> u64 {
        self.range.0
    }

    /// The bytes.
    pub fn bytes(&self) -> u64 {
        self.range.1
    }

    /// `bytes` bytes from offset `at` on.
    ///
    /// Errors: the part is not inside of the memory (E0813).
    pub fn part(self, at: u64, bytes: u64) -> Result<Self, GpuError> {
        Ok(PeerMemoryMut { range: part(self.range, at, bytes)?, ..self })
    }

    /// Copies all bytes of another memory of the same size, with the copy engines of the device of
    /// both views.
    ///
    /// Errors: the sizes differ (E0813); the stream or the source is of another device (E0814).
    pub fn copy_from(&mut self, stream: &Stream, from: &PeerMemory<'_>) -> Result<(), GpuError> {
        self.context.same(stream.context(), "the stream")?;
        self.context.same(&from.context, "the memory that is copied")?;
        if from.bytes() != self.bytes() {
            let flaw = MemoryFlaw::Small { bytes: from.bytes(), wanted: self.bytes() };
            return Err(GpuError::Memory { kernel: "a copy".into(), parameter: "source".into(), flaw });
        }
        let Ok(bytes) = usize::try_from(self.bytes()) else { return Ok(()) };
        stream.enqueue(|driver, handle| driver.on_device(self.address(), from.address(), bytes, handle))
    }
}

/// Lines of bytes to copy: their number, their size, and the distances between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// The number of lines.
    pub count: u64,
    /// The bytes of each line.
    pub bytes: u64,
    /// The distance between lines in the source, in bytes.
    pub read: u64,
    /// The distance between lines in the destination, in bytes.
    pub written: u64,
}

impl Lines {
    /// The number of bytes from the first line to the end of the last, for a distance between
    /// lines; None if it overflows.
    fn reach(&self, step: u64) -> Option<u64> {
        self.count.checked_sub(1)?.checked_mul(step)?.checked_add(self.bytes)
    }
}

impl PeerMemoryMut<'_> {
    /// Copies lines with the copy engines of the device that holds both views. The first line
    /// begins at the first byte of each view.
    ///
    /// Errors: destination lines that overlap, or lines that are not inside of the memory (E0813);
    /// the stream or the memory is of another device (E0814).
    pub fn copy_lines(&mut self, stream: &Stream, from: &PeerMemory<'_>, lines: Lines) -> Result<(), GpuError> {
        self.context.same(stream.context(), "the stream")?;
        self.context.same(&from.context, "the memory that is copied")?;
        let small = |parameter: &str, bytes: u64, wanted: Option<u64>| {
            let flaw = MemoryFlaw::Small { bytes, wanted: wanted.unwrap_or(u64::MAX) };
            GpuError::Memory { kernel: "a copy of lines".into(), parameter: parameter.into(), flaw }
        };
        let Lines { count, bytes, read, written } = lines;
        if bytes == 0 || count == 0 {
            return Ok(());
        }
        let apart = count < 2 || read.min(written) >= bytes;
        for (side, step, held) in [("source", read, from.bytes()), ("destination", written, self.bytes())] {
            if !apart || lines.reach(step).is_none_or(|reach| reach > held) {
                return Err(small(side, held, lines.reach(step)));
            }
        }
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        // The distance is ignored for a single line, but must be at least its length.
        let (to, source) = ((self.address(), number(written.max(bytes))), (from.address(), number(read.max(bytes))));
        let sizes = (number(bytes), number(count));
        stream.enqueue(|driver, handle| driver.copy_lines(to, source, sizes, handle))
    }
}

impl<'a> From<&'a PeerMemory<'_>> for Argument<'a> {
    fn from(seen: &'a PeerMemory<'_>) -> Self {
        let (context, range, address) = (&seen.context, seen.range, seen.address());
        Place { context, range, address, writable: false, element: None, layout: None }.into()
    }
}

impl<'a> From<&'a mut PeerMemoryMut<'_>> for Argument<'a> {
    fn from(seen: &'a mut PeerMemoryMut<'_>) -> Self {
        let (context, range, address) = (&seen.context, seen.range, seen.address());
        Place { context, range, address, writable: true, element: None, layout: None }.into()
    }
}

impl fmt::Debug for PeerMemory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PeerMemory { context, memory, range: (address, bytes) } = self;
        write!(f, "PeerMemory({bytes} bytes at {address:#x} of {memory:?}, device {})", context.ordinal())
    }
}

impl fmt::Debug for PeerMemoryMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PeerMemoryMut { context, memory, range: (address, bytes) } = self;
        write!(f, "PeerMemoryMut({bytes} bytes at {address:#x} of {memory:?}, device {})", context.ordinal())
    }
}
