//! NCCL, if it is installed: transfers between devices.
//!
//! Law: nothing in this crate needs NCCL. It is opened by name at run time, like the driver. It
//! gets a transfer only if the memory contains all of its bytes. The devices are those of this
//! process ([`Nccl`]), or one of each of several processes ([`NcclProcess`]).
//!
//! When NCCL is opened, an environment variable decides whether it uses NVLink multicast. That must
//! be off, `NCCL_NVLS_ENABLE=0`: not every machine has it, and on a machine that refuses it a
//! transfer hangs.
//!
//! Reason for unsafe code: handles and addresses of device memory are passed to functions of the
//! library.
#![allow(unsafe_code)]

mod library;
mod process;

use std::ffi::c_int;
use std::fmt;

use library::{Comm, End, Library};
use tilewright_layout::Refusal;

pub use process::{NcclId, NcclProcess};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::Memory;
use crate::stream::Stream;

/// Devices of this process that exchange bytes through NCCL.
pub struct Nccl {
    devices: Vec<Device>,
    comms: Vec<Comm>,
    library: Library,
}

/// A transfer of bytes from one device to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The number of the sending device.
    pub from: usize,
    /// The number of the receiving device.
    pub to: usize,
    /// The offset in the memory that is sent.
    pub read: u64,
    /// The offset in the memory that is received in.
    pub write: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// Why NCCL did not transfer anything.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum NcclError {
    /// There is no library, or it lacks a function.
    Missing(Box<str>),
    /// The library is too old.
    TooOld {
        /// Its version.
        own: Box<str>,
        /// The first supported version.
        wanted: Box<str>,
    },
    /// The memory does not contain the transfer, or the environment is not suitable for NCCL.
    Unfit(&'static str),
    /// The library returned this status, with this description.
    Status(i32, Box<str>),
    /// The driver refused.
    Gpu(GpuError),
}

impl fmt::Display for NcclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NcclError::Missing(why) => write!(f, "NCCL cannot be opened: {why}"),
            NcclError::TooOld { own, wanted } => write!(f, "NCCL is {own}, and {wanted} or later is needed"),
            NcclError::Unfit(what) => write!(f, "NCCL is not called for this: {what}"),
            NcclError::Status(status, text) => write!(f, "NCCL answered with status {status}: {text}"),
            NcclError::Gpu(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NcclError {}

tilewright_layout::from_variants!(NcclError: Gpu(GpuError));

impl Refusal for NcclError {
    /// Errors of NCCL have no page of their own. They use the page about refusals by the driver.
    fn code(&self) -> &'static str {
        "E0807"
    }

    fn help(&self) -> Option<String> {
        None
    }
}

impl Nccl {
    /// Opens the library for devices of this process, which must be distinct.
    ///
    /// Errors: the library is missing, is too old, or lacks a function; `NCCL_NVLS_ENABLE` is not
    /// 0; NCCL refuses the devices.
    pub fn open(devices: &[Device]) -> Result<Nccl, NcclError> {
        Nccl::by(Library::open()?, devices)
    }

    fn by(library: Library, devices: &[Device]) -> Result<Nccl, NcclError> {
        let numbers: Vec<c_int> = devices.iter().filter_map(|device| c_int::try_from(device.ordinal()).ok()).collect();
        let count = c_int::try_from(devices.len()).map_err(|_| NcclError::Unfit("there are too many devices"))?;
        let mut nccl = Nccl { devices: devices.to_vec(), comms: Vec::new(), library };
        let mut comms = vec![std::ptr::null_mut(); devices.len()];
        // SAFETY: the library writes as many handles, and reads as many numbers, as there are
        // devices.
        library.answer(unsafe { (library.init_all)(comms.as_mut_ptr(), count, numbers.as_ptr()) })?;
        nccl.comms = comms;
        Ok(nccl)
    }

    /// The version of the library, as `2.27.3`.
    pub fn version(&self) -> String {
        self.library.version()
    }

    /// Enqueues transfers on a stream of each device, as one group, and returns at once. Device `i`
    /// sends from `from[i]`, and receives in `to[i]`.
    ///
    /// Errors: memory that does not contain a transfer, or is of another device; NCCL refuses.
    pub fn transfer(
        &self,
        streams: &[&Stream],
        from: &[&Memory],
        to: &mut [&mut Memory],
        transfers: &[Transfer],
    ) -> Result<(), NcclError> {
        let count = self.devices.len();
        if [streams.len(), from.len(), to.len()] != [count; 3] {
            return Err(NcclError::Unfit("each device has one stream and two memories"));
        }
        let owned = self.devices.iter().zip(streams).zip(from).zip(to.iter());
        for (((device, stream), from), to) in owned {
            device.context().same(stream.context(), "the stream")?;
            device.context().same(from.context(), "the memory that is sent")?;
            device.context().same(to.context(), "the memory that is written")?;
        }
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for transfer in transfers {
            let (read, written) = (from.get(transfer.from), to.get(transfer.to));
            let read = read.filter(|memory| holds(memory, transfer.read, transfer.bytes));
            let written = written.filter(|memory| holds(memory, transfer.write, transfer.bytes));
            let side = |rank: usize| Some((*self.comms.get(rank)?, streams.get(rank)?.handle()));
            let sides = side(transfer.from).zip(side(transfer.to)).filter(|_| transfer.from != transfer.to);
            let (Some(read), Some(written), Some((sender, receiver))) = (read, written, sides) else {
                return Err(NcclError::Unfit("the memory does not hold a transfer"));
            };
            let end = |address: u64, other: usize, (comm, stream)| End {
                address,
                bytes: transfer.bytes,
                other,
                comm,
                stream,
            };
            sends.push(end(read.address() + transfer.read, transfer.to, sender));
            receives.push(end(written.address() + transfer.write, transfer.from, receiver));
        }
        // SAFETY: the bytes are memory of the device with this handle and stream, as was checked
        // above; ranks are those of the devices.
        unsafe { self.library.transfer(&sends, &receives) }
    }
}

/// Whether the memory contains `bytes` bytes from an offset on.
fn holds(memory: &Memory, at: u64, bytes: u64) -> bool {
    at.checked_add(bytes).is_some_and(|end| end <= memory.bytes())
}

impl Drop for Nccl {
    fn drop(&mut self) {
        for comm in &self.comms {
            // SAFETY: each handle is destroyed once.
            let _ = unsafe { (self.library.destroy)(*comm) };
        }
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nccl({} devices, NCCL {})", self.devices.len(), self.version())
    }
}

#[cfg(test)]
mod tests;
