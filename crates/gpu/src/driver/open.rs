//! Opens the driver's library, which is found at run time.
//!
//! Law: a driver is open if its library was found, its version is at least [`MINIMUM_VERSION`], it
//! has every function of the table, and it was initialised. The error says which of these fails. An
//! open driver stays open: the library is never unloaded, because threads of its own run in it.
//!
//! Reason for unsafe code: a library is loaded, and its symbols are cast to functions.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use libloading::Library;

use super::calls::Driver;
use super::process;
use super::table::Functions;
use crate::error::GpuError;
use crate::status::{Code, code};

/// The oldest supported driver, in the driver's notation: 12040 is that of CUDA 12.4. It is the
/// first that reports the parameters of a kernel; without them, a wrong list of arguments would go
/// unnoticed.
pub const MINIMUM_VERSION: i32 = 12_040;

/// The names of the driver's library.
#[cfg(not(windows))]
const LIBRARIES: &[&str] = &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"];
#[cfg(windows)]
const LIBRARIES: &[&str] = &["nvcuda.dll"];

impl Driver {
    /// The driver of this machine, opened by the first call.
    pub(crate) fn open() -> Result<Arc<Driver>, GpuError> {
        // This comes before the lock, which a thread of the parent may have held during the fork.
        if process::is_forked() {
            return Err(GpuError::Forked);
        }
        static OPEN: Mutex<Option<Arc<Driver>>> = Mutex::new(None);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = &*open {
            return Ok(driver.clone());
        }
        let mut reasons = Vec::new();
        for name in LIBRARIES {
            // SAFETY: a program may run the initialisers of the driver's library. It is never
            // unloaded.
            match unsafe { Library::new(*name) } {
                Err(reason) => reasons.push(named_reason(name, &reason)),
                Ok(library) => {
                    let library: &'static Library = Box::leak(Box::new(library));
                    let find = |symbol: &'static str| {
                        // SAFETY: the address is only inspected.
                        let address = unsafe { library.get::<*mut c_void>(symbol) }.ok()?;
                        NonNull::new(*address)
                    };
                    // SAFETY: the symbols of the driver's library are the functions of those names.
                    let driver = Arc::new(unsafe { Driver::start(find) }?);
                    process::watch();
                    *open = Some(driver.clone());
                    return Ok(driver);
                }
            }
        }
        Err(GpuError::NoDriver { reasons })
    }

    /// Initialises the driver whose functions `find` returns.
    ///
    /// # Safety
    ///
    /// As [`Functions::resolve`].
    pub(crate) unsafe fn start(find: impl Fn(&'static str) -> Option<NonNull<c_void>>) -> Result<Driver, GpuError> {
        const VERSION: &str = "cuDriverGetVersion";
        let old = |found, missing| GpuError::OldDriver { found, needed: MINIMUM_VERSION, missing };
        let mut version: c_int = 0;
        let get_version = find(VERSION).ok_or(old(0, Some(VERSION)))?;
        // SAFETY: the caller's promise, and the parameters of the header.
        let answer = unsafe {
            let get_version =
                std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn(*mut c_int) -> Code>(get_version);
            get_version(&raw mut version)
        };
        // The stub library of the toolkit, which is meant for linking only, answers with this code.
        if answer == code::STUB_LIBRARY {
            return Err(GpuError::NoDriver { reasons: vec!["the library found is a stub for linking".into()] });
        }
        if answer != code::SUCCESS || version < MINIMUM_VERSION {
            return Err(old(version, None));
        }
        // SAFETY: the caller's promise.
        let functions = unsafe { Functions::resolve(find) }.map_err(|missing| old(version, Some(missing)))?;
        let driver = Driver::new(functions, version);
        match driver.init() {
            Ok(()) => Ok(driver),
            Err(refused) if refused.code == code::NO_DEVICE => Err(GpuError::NoDevice { ordinal: None, count: 0 }),
            Err(refused) if refused.code == code::STUB_LIBRARY => {
                Err(GpuError::NoDriver { reasons: vec!["the library found is a stub for linking".into()] })
            }
            Err(refused) => Err(driver.refusal(refused)),
        }
    }
}

/// Why a library cannot be opened: the system's message, with the name of the library.
fn named_reason(name: &str, error: &libloading::Error) -> String {
    let words = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    if words.contains(name) { words } else { format!("{name}: {words}") }
}
