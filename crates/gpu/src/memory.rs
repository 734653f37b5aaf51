//! Device memory.
//!
//! Law: a [`Memory`] is one allocation of the driver. It is aligned to 256 bytes, and freed once,
//! when it is dropped. The driver then waits for the work that still uses it.
//!
//! Reads and writes are ordered on the given stream; a copy to or from the host is complete when
//! the call returns.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{GpuError, MemoryFlaw};
use crate::parameter::{Argument, Place};
use crate::status::code;
use crate::stream::Stream;

/// The alignment of an allocation of the driver, and of the memory that kernels accept, in bytes
/// (CUDA programming guide, device memory accesses).
pub(crate) const KERNEL_ALIGNMENT_BYTES: i64 = 256;

/// Memory on a device.
///
/// ```no_run
/// # fn main() -> Result<(), tilewright_gpu::GpuError> {
/// let device = tilewright_gpu::Device::open(0)?;
/// let stream = device.stream()?;
/// let mut memory = device.allocate(1024)?;
/// memory.fill_bytes(&stream, 7)?;
/// let mut bytes = [0; 16];
/// memory.read(&stream, 1008, &mut bytes)?;
/// assert_eq!(bytes, [7; 16]);
/// # Ok(())
/// # }
/// ```
pub struct Memory {
    context: Arc<Context>,
    address: u64,
    bytes: u64,
}

impl Memory {
    pub(crate) fn in_context(context: &Arc<Context>, bytes: u64) -> Result<Memory, GpuError> {
        let refused = |left| GpuError::OutOfMemory { bytes, left };
        // The driver does not allocate 0 bytes.
        let wanted = usize::try_from(bytes.max(1)).map_err(|_| refused(None))?;
        // Sizes that do not fit in a signed number are refused without a call of the driver.
        if i64::try_from(bytes).is_err() {
            return Err(refused(None));
        }
        match context.attempt(|driver| driver.allocate(wanted))? {
            Ok(address) => Ok(Memory { context: context.clone(), address, bytes }),
            Err(answer) if answer.code == code::OUT_OF_MEMORY => {
                Err(refused(context.call(|driver| driver.memory_left()).ok()))
            }
            Err(answer) => Err(context.explain(answer)),
        }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// `bytes` bytes from offset `at` on, for a kernel that reads them: a tensor inside of an
    /// allocation.
    ///
    /// ```no_run
    /// use tilewright_gpu::{Device, GpuError};
    ///
    /// # fn main() -> Result<(), GpuError> {
    /// let mut memory = Device::open(0)?.allocate(4096)?;
    /// let rows = memory.part_mut(1024, 2048)?; // the 1024 bytes before and after it remain
    /// # drop(rows);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the part is not inside of the memory (E0813).
    pub fn part(&self, at: u64, bytes: u64) -> Result<Argument<'_>, GpuError> {
        Ok(self.inside(at, bytes, false)?.into())
    }

    /// As [`Memory::part`], for a kernel that writes the bytes.
    ///
    /// Errors: as [`Memory::part`].
    pub fn part_mut(&mut self, at: u64, bytes: u64) -> Result<Argument<'_>, GpuError> {
        Ok(self.inside(at, bytes, true)?.into())
    }

    fn whole(&self, writable: bool) -> Place<'_> {
        let range = (self.address, self.bytes);
        Place { context: &self.context, range, address: self.address, writable, element: None, layout: None }
    }

    /// A part as an argument.
    pub(crate) fn inside(&self, at: u64, bytes: u64, writable: bool) -> Result<Place<'_>, GpuError> {
        match at.checked_add(bytes).filter(|end| *end <= self.bytes) {
            Some(_) => {
                let address = self.address + at;
                let range = (address, bytes);
                Ok(Place { context: &self.context, range, address, writable, element: None, layout: None })
            }
            None => Err(self.small("a launch", "memory", self.bytes, at.saturating_add(bytes))),
        }
    }

    /// Copies bytes from the host to the memory from offset `at` on.
    ///
    /// Errors: they do not fit (E0813); the stream is of another device (E0814); a kernel failed
    /// (E0807).
    pub fn write(&mut self, stream: &Stream, at: u64, from: &[u8]) -> Result<(), GpuError> {
        let address = self.place(stream, at, from.len() as u64)?;
        stream.finish(|driver, handle| driver.to_device(address, from, handle))
    }

    /// Copies bytes from offset `at` on to the host.
    ///
    /// Errors: the part is not inside of the memory (E0813); the stream is of another device
    /// (E0814); a kernel failed (E0807).
    pub fn read(&self, stream: &Stream, at: u64, into: &mut [u8]) -> Result<(), GpuError> {
        let address = self.place(stream, at, into.len() as u64)?;
        stream.finish(|driver, handle| driver.to_host(into, address, handle))
    }

    /// Copies all bytes of another memory of the same size, on the device.
    ///
    /// Errors: the sizes differ (E0813); the stream or the memory is of another device (E0814).
    pub fn copy_from(&mut self, stream: &Stream, from: &Memory) -> Result<(), GpuError> {
        self.context.same(&from.context, "the memory that is copied")?;
        if from.bytes != self.bytes {
            return Err(self.small("a copy on the device", "source", from.bytes, self.bytes));
        }
        let into = self.place(stream, 0, self.bytes)?;
        let Ok(bytes) = usize::try_from(self.bytes) else { return Ok(()) };
        stream.enqueue(|driver, handle| driver.on_device(into, from.address, bytes, handle))
    }

    /// Sets every byte to a value.
    ///
    /// Errors: the stream is of another device (E0814).
    pub fn fill_bytes(&mut self, stream: &Stream, value: u8) -> Result<(), GpuError> {
        self.fill(stream, &[value])
    }

    /// Fills the first `bytes` bytes with a repeated pattern. The last repetition may be partial.
    /// The pattern is copied from the host once, and then copied on the device.
    ///
    /// Errors: as [`Memory::write`]; the memory has fewer bytes (E0813). An empty pattern writes
    /// nothing.
    pub fn repeat(&mut self, stream: &Stream, bytes: u64, pattern: &[u8]) -> Result<(), GpuError> {
        let address = self.place(stream, 0, bytes)?;
        let total = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut done = pattern.len().min(total);
        if done == 0 {
            return Ok(());
        }
        self.write(stream, 0, &pattern[..done])?;
        // Each copy doubles the filled range, which consists of whole patterns until the last copy.
        while done < total {
            let more = done.min(total - done);
            let behind = address + done as u64;
            stream.enqueue(|driver, handle| driver.on_device(behind, address, more, handle))?;
            done += more;
        }
        Ok(())
    }

    /// Fills the memory with a pattern of 1, 2, 4, .. bytes, as many whole patterns as fit.
    pub(crate) fn fill(&mut self, stream: &Stream, pattern: &[u8]) -> Result<(), GpuError> {
        let address = self.place(stream, 0, self.bytes)?;
        let count = usize::try_from(self.bytes).unwrap_or(0).checked_div(pattern.len()).unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        match *pattern {
            [byte] => stream.enqueue(|driver, handle| driver.set_bytes(address, byte, count, handle)),
            [a, b] => {
                let pair = u16::from_ne_bytes([a, b]);
                stream.enqueue(|driver, handle| driver.set_pairs(address, pair, count, handle))
            }
            [a, b, c, d] => {
                let word = u32::from_ne_bytes([a, b, c, d]);
                stream.enqueue(|driver, handle| driver.set_words(address, word, count, handle))
            }
            _ => self.repeat(stream, (count * pattern.len()) as u64, pattern),
        }
    }

    /// The address of `bytes` bytes from offset `at` on, for use on a stream of this device.
    fn place(&self, stream: &Stream, at: u64, bytes: u64) -> Result<u64, GpuError> {
        self.context.same(stream.context(), "the stream")?;
        match at.checked_add(bytes) {
            // The end is inside of the allocation, so nothing overflows.
            Some(end) if end <= self.bytes => Ok(self.address.wrapping_add(at)),
            end => Err(self.small("a copy", "memory", self.bytes, end.unwrap_or(u64::MAX))),
        }
    }

    fn small(&self, kernel: &str, parameter: &str, bytes: u64, wanted: u64) -> GpuError {
        let flaw = MemoryFlaw::Small { bytes, wanted };
        GpuError::Memory { kernel: kernel.into(), parameter: parameter.into(), flaw }
    }
}

impl<'a> From<&'a Memory> for Argument<'a> {
    fn from(memory: &'a Memory) -> Self {
        memory.whole(false).into()
    }
}

impl<'a> From<&'a mut Memory> for Argument<'a> {
    fn from(memory: &'a mut Memory) -> Self {
        memory.whole(true).into()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.context.give_back(|driver| driver.free(self.address));
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes at {:#x})", self.bytes, self.address)
    }
}
