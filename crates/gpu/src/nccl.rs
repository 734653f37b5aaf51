//! NCCL, where there is one: bytes from devices to devices.
//!
//! Law: nothing of this crate needs NCCL. It is opened by name at run time, like the driver, and a
//! transfer is given to it only where the memory holds it on both sides. All devices are of this
//! process.
//!
//! NCCL's use of NVLink multicast is decided when it is opened, by a variable of the environment.
//! It has to be off, `NCCL_NVLS_ENABLE=0`: it is not on every machine, and where it is refused a
//! transfer hangs.
//!
//! Reason for unsafe code: a library is loaded, its symbols are taken for functions, and addresses
//! of device memory are passed to them.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

use libloading::Library;

use crate::device::Device;
use crate::driver::StreamHandle;
use crate::error::GpuError;
use crate::memory::Memory;
use crate::stream::Stream;

/// The name of the library.
const LIBRARY: &str = "libnccl.so.2";
/// ncclUint8.
const BYTES: c_int = 1;

type Comm = *mut c_void;
type InitAll = unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> c_int;
type Destroy = unsafe extern "C" fn(Comm) -> c_int;
type Group = unsafe extern "C" fn() -> c_int;
type Send = unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, StreamHandle) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, StreamHandle) -> c_int;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// Devices of this process that send each other bytes through NCCL.
pub struct Nccl {
    devices: Vec<Device>,
    comms: Vec<Comm>,
    destroy: Destroy,
    start: Group,
    end: Group,
    send: Send,
    receive: Receive,
    error_text: ErrorText,
}

/// Bytes that go from one device to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The number of the device that has them.
    pub from: usize,
    /// The number of the device that gets them.
    pub to: usize,
    /// Where they are in the memory that is sent.
    pub read: u64,
    /// Where they go in the memory that is written.
    pub write: u64,
    /// How many.
    pub bytes: u64,
}

/// Why NCCL moved nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum NcclError {
    /// There is no library, or it lacks a function.
    Missing(Box<str>),
    /// A transfer that the memory does not hold, or an environment that NCCL must not see.
    Unfit(&'static str),
    /// The library answered with this status, which means this.
    Status(i32, Box<str>),
    /// The driver refused.
    Gpu(GpuError),
}

impl fmt::Display for NcclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NcclError::Missing(why) => write!(f, "NCCL cannot be opened: {why}"),
            NcclError::Unfit(what) => write!(f, "NCCL is not asked for this: {what}"),
            NcclError::Status(status, text) => write!(f, "NCCL answered with status {status}: {text}"),
            NcclError::Gpu(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NcclError {}

impl From<GpuError> for NcclError {
    fn from(error: GpuError) -> NcclError {
        NcclError::Gpu(error)
    }
}

impl Nccl {
    /// Opens the library for devices of this process, each of which is there once.
    ///
    /// Errors: there is no library; `NCCL_NVLS_ENABLE` is not 0; NCCL refuses the devices.
    pub fn open(devices: &[Device]) -> Result<Nccl, NcclError> {
        if std::env::var("NCCL_NVLS_ENABLE").as_deref() != Ok("0") {
            return Err(NcclError::Unfit("set NCCL_NVLS_ENABLE=0 before, so that it leaves NVLink multicast alone"));
        }
        // SAFETY: the initialisers of the library may run in any program. It is never unloaded, for
        // threads of its own run in it.
        let library = unsafe { Library::new(LIBRARY) }.map_err(|why| NcclError::Missing(why.to_string().into()))?;
        let library: &'static Library = Box::leak(Box::new(library));
        let missing = |why: libloading::Error| NcclError::Missing(why.to_string().into());
        // SAFETY: the symbols are the functions of these names, with the parameters of the header.
        let (init, destroy, start, end, send, receive, error_text) = unsafe {
            (
                *library.get::<InitAll>("ncclCommInitAll").map_err(missing)?,
                *library.get::<Destroy>("ncclCommDestroy").map_err(missing)?,
                *library.get::<Group>("ncclGroupStart").map_err(missing)?,
                *library.get::<Group>("ncclGroupEnd").map_err(missing)?,
                *library.get::<Send>("ncclSend").map_err(missing)?,
                *library.get::<Receive>("ncclRecv").map_err(missing)?,
                *library.get::<ErrorText>("ncclGetErrorString").map_err(missing)?,
            )
        };
        let numbers: Vec<c_int> = devices.iter().filter_map(|device| c_int::try_from(device.ordinal()).ok()).collect();
        let count = c_int::try_from(devices.len()).map_err(|_| NcclError::Unfit("there are too many devices"))?;
        let mut nccl =
            Nccl { devices: devices.to_vec(), comms: Vec::new(), destroy, start, end, send, receive, error_text };
        let mut comms = vec![std::ptr::null_mut(); devices.len()];
        // SAFETY: as many handles are written, and numbers read, as there are devices.
        nccl.answer(unsafe { init(comms.as_mut_ptr(), count, numbers.as_ptr()) })?;
        nccl.comms = comms;
        Ok(nccl)
    }

    /// Gives transfers to a stream of each device, all of them as one, and returns at once. Device
    /// `i` sends from `from[i]`, and what it gets goes to `to[i]`.
    ///
    /// Errors: memory that does not hold a transfer, or is of another device; NCCL refuses.
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
        for transfer in transfers {
            let (from, to) = (from.get(transfer.from), to.get(transfer.to));
            let holds = |memory: u64, at: u64| at.checked_add(transfer.bytes).is_some_and(|end| end <= memory);
            let read = from.is_some_and(|from| holds(from.bytes(), transfer.read));
            if !(read && to.is_some_and(|to| holds(to.bytes(), transfer.write)) && transfer.from != transfer.to) {
                return Err(NcclError::Unfit("the memory does not hold a transfer"));
            }
        }
        // SAFETY: the call takes nothing.
        self.answer(unsafe { (self.start)() })?;
        let mut done = Ok(());
        for transfer in transfers {
            if done.is_ok() {
                done = self.one(transfer, streams, from, to);
            }
        }
        // A group that was begun is ended, whatever went wrong in it.
        // SAFETY: the call takes nothing.
        let ended = self.answer(unsafe { (self.end)() });
        done.and(ended)
    }

    fn one(
        &self,
        transfer: &Transfer,
        streams: &[&Stream],
        from: &[&Memory],
        to: &[&mut Memory],
    ) -> Result<(), NcclError> {
        let absent = NcclError::Unfit("there is no such device");
        let (Some(source), Some(target)) = (from.get(transfer.from), to.get(transfer.to)) else {
            return Err(absent);
        };
        let side = |rank: usize| Some((*self.comms.get(rank)?, streams.get(rank)?.handle()));
        let (Some((sender, send_stream)), Some((receiver, receive_stream))) = (side(transfer.from), side(transfer.to))
        else {
            return Err(absent);
        };
        let bytes = usize::try_from(transfer.bytes).map_err(|_| NcclError::Unfit("a transfer is too large"))?;
        let (read, write) = (source.address() + transfer.read, target.address() + transfer.write);
        // SAFETY: the bytes are memory of the device whose handle and stream these are, as was
        // checked above; ranks are those of the devices.
        self.answer(unsafe {
            (self.send)(read as *const c_void, bytes, BYTES, transfer.to as c_int, sender, send_stream)
        })?;
        // SAFETY: as above.
        self.answer(unsafe {
            (self.receive)(write as *mut c_void, bytes, BYTES, transfer.from as c_int, receiver, receive_stream)
        })
    }

    fn answer(&self, status: c_int) -> Result<(), NcclError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the text of a status is a constant of the library, ended by a zero.
        let text = unsafe {
            let text = (self.error_text)(status);
            if text.is_null() { c"unknown" } else { CStr::from_ptr(text) }
        };
        Err(NcclError::Status(status, text.to_string_lossy().into()))
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        for comm in &self.comms {
            // SAFETY: each handle is given back once.
            let _ = unsafe { (self.destroy)(*comm) };
        }
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nccl({} devices)", self.devices.len())
    }
}
