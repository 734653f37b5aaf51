//! Memory as a device sees it: another device's, or a part of one's own.
//!
//! Law: connected devices may access each other's memory, at its own addresses, once one has
//! enabled peer access. Such access goes through a view: the memory belongs to its device, and
//! outlives the view. Streams of two devices are ordered only by an [`Event`](crate::Event), so a
//! reader of what another device writes must wait for one.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::device::Device;
use crate::error::{GpuError, MemoryFlaw};
use crate::memory::Memory;
use crate::parameter::{Argument, Place};
use crate::stream::Stream;

/// Memory that kernels on a device read: its own, or another device's.
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

/// Memory that kernels on a device write: its own, or another device's.
pub struct PeerMemoryMut<'a> {
    context: Arc<Context>,
    memory: &'a mut Memory,
    range: (u64, u64),
}

impl Memory {
    /// This memory as kernels on a device see it, to be read: on its own device, or on one that is
    /// connected with it.
    ///
    /// Errors: the devices are not connected (E0807).
    pub fn seen_by(&self, device: &Device) -> Result<PeerMemory<'_>, GpuError> {
        let context = reaching(device, self.context())?;
        Ok(PeerMemory { context, memory: self, range: (self.address(), self.bytes()) })
    }

    /// This memory as kernels on a device see it, to be written.
    ///
    /// Errors: as [`Memory::seen_by`].
    pub fn written_by(&mut self, device: &Device) -> Result<PeerMemoryMut<'_>, GpuError> {
        let context = reaching(device, self.context())?;
        let range = (self.address(), self.bytes());
        Ok(PeerMemoryMut { context, memory: self, range })
    }
}

/// The context of a device, whose kernels may touch the memory of another context from now on.
fn reaching(device: &Device, owner: &Arc<Context>) -> Result<Arc<Context>, GpuError> {
    let context = device.context();
    if context.same(owner, "the memory").is_err() {
        context.reach(owner)?;
    }
    Ok(context.clone())
}

/// `bytes` bytes of a range from `at` on.
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

    /// `bytes` bytes from `at` on.
    ///
    /// Errors: there are not that many (E0813).
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

    /// `bytes` bytes from `at` on.
    ///
    /// Errors: there are not that many (E0813).
    pub fn part(self, at: u64, bytes: u64) -> Result<Self, GpuError> {
        Ok(PeerMemoryMut { range: part(self.range, at, bytes)?, ..self })
    }

    /// Copies all bytes of memory of the same size, by the copy engines of the device that both are
    /// seen by.
    ///
    /// Errors: the sizes differ (E0813); the stream or what is copied is of another device
    /// (E0814).
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

/// Lines of bytes that are copied: how many, of how many bytes, and the steps from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// How many lines there are.
    pub count: u64,
    /// The bytes of each run.
    pub bytes: u64,
    /// The distance between runs in the source.
    pub read: u64,
    /// From one to the next in the memory that is written.
    pub written: u64,
}

impl Lines {
    /// How many bytes they reach over with this step from one to the next.
    fn reach(&self, step: u64) -> Option<u64> {
        self.count.checked_sub(1)?.checked_mul(step)?.checked_add(self.bytes)
    }
}

impl PeerMemoryMut<'_> {
    /// Copies lines, from the first bytes on of both sides, by the copy engines of the device that
    /// both are seen by.
    ///
    /// Errors: destination lines that overlap, or that are not inside a side (E0813); the stream or
    /// the memory is of another device (E0814).
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
        // Steps of one line do not count, and have to be as long as it.
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
