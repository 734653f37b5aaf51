//! Memory of another device, as this one sees it.
//!
//! Law: devices that are connected may read and write each other's memory, by its own addresses,
//! once one has asked for it. What is seen so is a view: the memory stays its device's, and lives
//! longer. Streams of two devices know nothing of each other's order, so whoever reads what another
//! device writes waits for it before.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::Memory;
use crate::parameter::{Argument, Place};

/// Memory of one device, as an argument of kernels on another.
///
/// ```no_run
/// use tilewright_gpu::Device;
///
/// # fn main() -> Result<(), tilewright_gpu::GpuError> {
/// let (here, there) = (Device::open(0)?, Device::open(1)?);
/// let memory = there.allocate(1024)?;
/// let seen = memory.seen_by(&here)?; // an input of kernels that run here
/// assert_eq!(seen.bytes(), 1024);
/// # Ok(())
/// # }
/// ```
pub struct PeerMemory<'a> {
    context: Arc<Context>,
    memory: &'a Memory,
}

impl Memory {
    /// This memory as kernels on a device see it, to be read: on its own device, or on one that is
    /// connected with it.
    ///
    /// Errors: the devices are not connected (E0807).
    pub fn seen_by(&self, device: &Device) -> Result<PeerMemory<'_>, GpuError> {
        let context = device.context();
        if context.same(self.context(), "the memory").is_err() {
            context.reach(self.context())?;
        }
        Ok(PeerMemory { context: context.clone(), memory: self })
    }
}

impl PeerMemory<'_> {
    /// The address, which is the same on both devices.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// The bytes.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
}

impl<'a> From<&'a PeerMemory<'_>> for Argument<'a> {
    fn from(seen: &'a PeerMemory<'_>) -> Self {
        let (address, bytes) = (seen.address(), seen.bytes());
        let (context, range) = (&seen.context, (address, bytes));
        Place { context, range, address, writable: false, element: None, layout: None }.into()
    }
}

impl fmt::Debug for PeerMemory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerMemory({:?}, device {})", self.memory, self.context.ordinal())
    }
}
