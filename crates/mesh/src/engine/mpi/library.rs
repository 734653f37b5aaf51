//! The MPI library: its functions and handles, looked up by name.
//!
//! Law: the library must be Open MPI 4 or 5, whose handles and constants are below. Its version
//! text identifies it, and other libraries are refused. It is opened once in a process, and never
//! unloaded.
//!
//! Reason for unsafe code: a library is loaded, and its symbols are used as functions and handles.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::error::MeshError;

/// The file names of the library.
const LIBRARIES: [&str; 2] = ["libmpi.so.40", "libmpi.so"];
/// The supported beginnings of its version text.
const KNOWN: [&str; 2] = ["Open MPI v4.", "Open MPI v5."];

/// MPI_THREAD_FUNNELED: all calls are made by one thread.
const FUNNELED: c_int = 1;

pub(super) type Handle = *mut c_void;

/// MPI_Status of Open MPI.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Status {
    pub(super) source: c_int,
    pub(super) tag: c_int,
    pub(super) error: c_int,
    pub(super) cancelled: c_int,
    pub(super) count: usize,
}

type LibraryVersion = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
type Flag = unsafe extern "C" fn(*mut c_int) -> c_int;
type InitThread = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
type OfComm = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type SetHandler = unsafe extern "C" fn(Handle, Handle) -> c_int;
pub(super) type Send = unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
pub(super) type Receive = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
pub(super) type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut Status) -> c_int;
pub(super) type Probe = unsafe extern "C" fn(c_int, c_int, Handle, *mut c_int, *mut Status) -> c_int;
pub(super) type Count = unsafe extern "C" fn(*const Status, Handle, *mut c_int) -> c_int;
pub(super) type Finalize = unsafe extern "C" fn() -> c_int;

/// The functions and handles that are used.
pub(super) struct Functions {
    pub(super) world: Handle,
    pub(super) byte: Handle,
    pub(super) send: Send,
    pub(super) receive: Receive,
    pub(super) test: Test,
    pub(super) probe: Probe,
    pub(super) count: Count,
    pub(super) finalize: Finalize,
}

/// Whether an engine of this process has initialised MPI, which is possible only once.
static OPENED: AtomicBool = AtomicBool::new(false);

fn absent(what: impl Into<Box<str>>) -> MeshError {
    MeshError::Engine { what: what.into() }
}

/// A library that was opened, and the rank of this process.
pub(super) struct Opened {
    pub(super) functions: Functions,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// The version text of the library.
    pub(super) version: String,
}

impl Opened {
    /// Initialises MPI in this process.
    ///
    /// Errors: those of [`super::Mpi::open`].
    pub(super) fn new() -> Result<Opened, MeshError> {
        let mut why = String::new();
        let opened = LIBRARIES.iter().find_map(|name| {
            // SAFETY: the initialisers of the library may run in any program. Parts of the library
            // look up its symbols among the global symbols of the program, so they are loaded as
            // global.
            unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_GLOBAL) }
                .map_err(|error| why = format!("{name}: {error}"))
                .ok()
        });
        let Some(library) = opened else { return Err(absent(format!("there is no MPI: {why}"))) };
        // The library is never unloaded, because its own threads may run in it.
        let library: &'static Library = Box::leak(Box::new(library));
        let missing = |error: libloading::Error| absent(format!("this MPI lacks a function: {error}"));
        // SAFETY: the function has this name and these parameters in every MPI since version 3, and
        // may be called before MPI is initialised.
        let version = unsafe {
            let version = *library.get::<LibraryVersion>(b"MPI_Get_library_version\0").map_err(missing)?;
            let mut text = [0_u8; 8192];
            let mut length = 0;
            version(text.as_mut_ptr().cast(), &mut length);
            let length = usize::try_from(length).unwrap_or(0).min(text.len());
            String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned()
        };
        let version = version.lines().next().unwrap_or_default().trim_end_matches('\0').to_owned();
        if !KNOWN.iter().any(|known| version.starts_with(known)) {
            return Err(absent(format!("this MPI is `{version}`, and Open MPI 4 or 5 is wanted")));
        }
        if OPENED.swap(true, Ordering::SeqCst) {
            return Err(absent("MPI was opened before in this process, and can be but once"));
        }
        // SAFETY: in Open MPI 4 and 5 the functions have these parameters, and handles are the
        // addresses of these symbols.
        let (functions, initialized, init, rank, size, set_handler, errors) = unsafe {
            (
                Functions {
                    world: *library.get::<Handle>(b"ompi_mpi_comm_world\0").map_err(missing)?,
                    byte: *library.get::<Handle>(b"ompi_mpi_byte\0").map_err(missing)?,
                    send: *library.get::<Send>(b"MPI_Isend\0").map_err(missing)?,
                    receive: *library.get::<Receive>(b"MPI_Irecv\0").map_err(missing)?,
                    test: *library.get::<Test>(b"MPI_Test\0").map_err(missing)?,
                    probe: *library.get::<Probe>(b"MPI_Iprobe\0").map_err(missing)?,
                    count: *library.get::<Count>(b"MPI_Get_count\0").map_err(missing)?,
                    finalize: *library.get::<Finalize>(b"MPI_Finalize\0").map_err(missing)?,
                },
                *library.get::<Flag>(b"MPI_Initialized\0").map_err(missing)?,
                *library.get::<InitThread>(b"MPI_Init_thread\0").map_err(missing)?,
                *library.get::<OfComm>(b"MPI_Comm_rank\0").map_err(missing)?,
                *library.get::<OfComm>(b"MPI_Comm_size\0").map_err(missing)?,
                *library.get::<SetHandler>(b"MPI_Comm_set_errhandler\0").map_err(missing)?,
                *library.get::<Handle>(b"ompi_mpi_errors_return\0").map_err(missing)?,
            )
        };
        let (mut begun, mut level, mut own, mut all) = (0, 0, 0, 0);
        // SAFETY: pointers to the results are valid; no arguments of the program are passed.
        let answers = unsafe {
            let asked = initialized(&mut begun);
            if begun != 0 {
                return Err(absent("this program has initialised MPI itself"));
            }
            let started = init(std::ptr::null_mut(), std::ptr::null_mut(), FUNNELED, &mut level);
            let world = functions.world;
            [asked, started, set_handler(world, errors), rank(world, &mut own), size(world, &mut all)]
        };
        let (Ok(rank), Ok(ranks)) = (usize::try_from(own), usize::try_from(all)) else {
            return Err(absent("MPI does not say which process this is"));
        };
        if let Some(status) = answers.iter().find(|status| **status != 0) {
            return Err(absent(format!("MPI does not begin: it answered with status {status}")));
        }
        Ok(Opened { functions, rank, ranks, version })
    }
}
