//! Memory of the device.

use super::{Driver, Refused};
use crate::driver::table::{CopyLines, ON_DEVICE, PitchedSide, StreamHandle};

impl Driver {
    /// The number of free bytes, and the number of all bytes.
    pub(crate) fn memory_left(&self) -> Result<(u64, u64), Refused> {
        let (mut free, mut total) = (0, 0);
        call!(self, memory_left(&raw mut free, &raw mut total))?;
        Ok((free as u64, total as u64))
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64, Refused> {
        let mut address = 0;
        call!(self, allocate(&raw mut address, bytes))?;
        Ok(address)
    }

    pub(crate) fn free(&self, address: u64) -> Result<(), Refused> {
        call!(self, free(address))
    }

    /// Copies to the device, and returns when the copy is done.
    pub(crate) fn to_device(&self, address: u64, from: &[u8], stream: StreamHandle) -> Result<(), Refused> {
        let copied = call!(self, to_device(address, from.as_ptr().cast(), from.len(), stream));
        let done = self.synchronize_stream(stream);
        copied.and(done)
    }

    /// Copies to the host, and returns when the copy is done.
    pub(crate) fn to_host(&self, into: &mut [u8], address: u64, stream: StreamHandle) -> Result<(), Refused> {
        let copied = call!(self, to_host(into.as_mut_ptr().cast(), address, into.len(), stream));
        let done = self.synchronize_stream(stream);
        copied.and(done)
    }

    pub(crate) fn on_device(&self, into: u64, from: u64, bytes: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, on_device(into, from, bytes, stream))
    }

    /// Copies `count` lines of `bytes` bytes. Each side is given by its first address and the
    /// distance between lines.
    pub(crate) fn copy_lines(
        &self,
        (into, into_step): (u64, usize),
        (from, from_step): (u64, usize),
        (bytes, count): (usize, usize),
        stream: StreamHandle,
    ) -> Result<(), Refused> {
        let side = |device, step| PitchedSide { kind: ON_DEVICE, device, step, ..PitchedSide::default() };
        let copy = CopyLines { from: side(from, from_step), to: side(into, into_step), bytes, count };
        call!(self, copy_lines(&raw const copy, stream))
    }

    pub(crate) fn set_bytes(&self, at: u64, value: u8, count: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, set_bytes(at, value, count, stream))
    }

    pub(crate) fn set_pairs(&self, at: u64, value: u16, count: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, set_pairs(at, value, count, stream))
    }

    pub(crate) fn set_words(&self, at: u64, value: u32, count: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, set_words(at, value, count, stream))
    }
}
