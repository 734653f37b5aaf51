//! NCCL's library: its functions, found by name, and its version.
//!
//! Law: every function is found before any is called, and a version without sends and receives is
//! refused. A group that was started is ended, whatever fails in it.
//!
//! Reason for unsafe code: a library is loaded, and its symbols are cast to functions.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;

use super::NcclError;
use crate::driver::StreamHandle;

/// The name of the library.
const LIBRARY: &str = "libnccl.so.2";
/// The first version with sends and receives, in the library's notation.
const MINIMUM: c_int = 2_700;
/// ncclUint8.
const BYTES: c_int = 1;
/// The most bytes of one send. Larger transfers are split into pieces, one after the other.
pub(super) const PIECE: u64 = 1 << 30;

pub(super) type Comm = *mut c_void;

/// ncclUniqueId.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct UniqueId(pub(super) [u8; 128]);

type Version = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetId = unsafe extern "C" fn(*mut UniqueId) -> c_int;
type InitRank = unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int;
type InitAll = unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> c_int;
type OfComm = unsafe extern "C" fn(Comm) -> c_int;
type AsyncError = unsafe extern "C" fn(Comm, *mut c_int) -> c_int;
type Group = unsafe extern "C" fn() -> c_int;
type Send = unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, StreamHandle) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, StreamHandle) -> c_int;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// The functions of the library, and its version.
#[derive(Clone, Copy)]
pub(super) struct Library {
    version: c_int,
    pub(super) get_id: GetId,
    pub(super) init_rank: InitRank,
    pub(super) init_all: InitAll,
    pub(super) destroy: OfComm,
    pub(super) abort: OfComm,
    pub(super) async_error: AsyncError,
    start: Group,
    end: Group,
    send: Send,
    receive: Receive,
    error_text: ErrorText,
}

/// One end of a transfer: bytes at a device address, the rank of the other end, and the handle and
/// the stream of this end.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) other: usize,
    pub(super) comm: Comm,
    pub(super) stream: StreamHandle,
}

impl Library {
    /// Opens the library.
    ///
    /// Errors: `NCCL_NVLS_ENABLE` is not 0; the library is missing, lacks a function, or is too
    /// old.
    pub(super) fn open() -> Result<Library, NcclError> {
        if std::env::var("NCCL_NVLS_ENABLE").as_deref() != Ok("0") {
            return Err(NcclError::Unfit("set NCCL_NVLS_ENABLE=0 before, so that it does not use NVLink multicast"));
        }
        // SAFETY: a program may run the initialisers of this library. It is never unloaded, because
        // threads of its own run in it.
        let library = unsafe { libloading::Library::new(LIBRARY) };
        let library = library.map_err(|why| NcclError::Missing(why.to_string().into()))?;
        let library: &'static libloading::Library = Box::leak(Box::new(library));
        // SAFETY: the symbols are the functions of these names, with the parameters of the header.
        unsafe {
            Library::start(|symbol| {
                let found = library.get::<*mut c_void>(symbol.as_bytes()).ok()?;
                NonNull::new(*found)
            })
        }
    }

    /// The library whose functions `find` returns by name.
    ///
    /// # Safety
    ///
    /// The functions have the parameters of NCCL's header, and stay loaded.
    ///
    /// Errors: it lacks a function, or is too old.
    pub(super) unsafe fn start(find: impl Fn(&'static str) -> Option<NonNull<c_void>>) -> Result<Library, NcclError> {
        let found =
            |symbol: &'static str| find(symbol).ok_or_else(|| NcclError::Missing(format!("it lacks {symbol}").into()));
        macro_rules! function {
            ($symbol:literal as $kind:ty) => {{
                let found = found($symbol)?;
                // SAFETY: the caller's promise.
                unsafe { std::mem::transmute::<*mut c_void, $kind>(found.as_ptr()) }
            }};
        }
        // The version comes first: an old library lacks some of the other functions.
        let get_version = function!("ncclGetVersion" as Version);
        let mut version = 0;
        // SAFETY: the answer is written to a variable.
        let status = unsafe { get_version(&mut version) };
        if status != 0 {
            return Err(NcclError::Status(status, "it does not say its version".into()));
        }
        if version < MINIMUM {
            let [own, wanted] = [version, MINIMUM].map(|version| text_of(version).into());
            return Err(NcclError::TooOld { own, wanted });
        }
        Ok(Library {
            version,
            get_id: function!("ncclGetUniqueId" as GetId),
            init_rank: function!("ncclCommInitRank" as InitRank),
            init_all: function!("ncclCommInitAll" as InitAll),
            destroy: function!("ncclCommDestroy" as OfComm),
            abort: function!("ncclCommAbort" as OfComm),
            async_error: function!("ncclCommGetAsyncError" as AsyncError),
            start: function!("ncclGroupStart" as Group),
            end: function!("ncclGroupEnd" as Group),
            send: function!("ncclSend" as Send),
            receive: function!("ncclRecv" as Receive),
            error_text: function!("ncclGetErrorString" as ErrorText),
        })
    }

    /// The version, as `2.27.3`.
    pub(super) fn version(&self) -> String {
        text_of(self.version)
    }

    /// Converts a status to a result.
    pub(super) fn answer(&self, status: c_int) -> Result<(), NcclError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the description of a status is a constant of the library, terminated by a zero.
        let text = unsafe {
            let text = (self.error_text)(status);
            if text.is_null() { c"unknown" } else { CStr::from_ptr(text) }
        };
        Err(NcclError::Status(status, text.to_string_lossy().into()))
    }

    /// Issues sends and receives on their streams, as one group.
    ///
    /// # Safety
    ///
    /// Addresses, handles and streams are alive and belong to one device, and each address has all
    /// bytes of its transfer. Nothing else writes to receive buffers until the stream is done.
    pub(super) unsafe fn transfer(&self, sends: &[End], receives: &[End]) -> Result<(), NcclError> {
        // SAFETY: the call has no parameters.
        self.answer(unsafe { (self.start)() })?;
        let ends = sends.iter().map(|end| (end, true)).chain(receives.iter().map(|end| (end, false)));
        let mut done = Ok(());
        for (end, is_sent) in ends {
            let mut at = 0;
            while at < end.bytes && done.is_ok() {
                let count = (end.bytes - at).min(PIECE);
                let other = c_int::try_from(end.other).map_err(|_| NcclError::Unfit("there are too many devices"));
                // SAFETY: the caller's promise.
                done = other.and_then(|other| unsafe { self.piece(end, at, count, other, is_sent) });
                at += count;
            }
        }
        // SAFETY: the call has no parameters.
        let ended = self.answer(unsafe { (self.end)() });
        done.and(ended)
    }

    /// # Safety
    ///
    /// As [`Library::transfer`].
    unsafe fn piece(&self, end: &End, at: u64, count: u64, other: c_int, is_sent: bool) -> Result<(), NcclError> {
        let (address, count) = (end.address + at, count as usize);
        // SAFETY: the caller's promise.
        self.answer(unsafe {
            if is_sent {
                (self.send)(address as *const c_void, count, BYTES, other, end.comm, end.stream)
            } else {
                (self.receive)(address as *mut c_void, count, BYTES, other, end.comm, end.stream)
            }
        })
    }
}

/// A version as text: 2708 is 2.7.8, and 22703 is 2.27.3.
fn text_of(version: c_int) -> String {
    let (major, minor) =
        if version < 10_000 { (version / 1000, version / 100 % 10) } else { (version / 10_000, version / 100 % 100) };
    format!("{major}.{minor}.{}", version % 100)
}
