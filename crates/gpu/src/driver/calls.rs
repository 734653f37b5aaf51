//! Calls of the driver's functions.
//!
//! Law: a call passes the parameters of the function, and returns the driver's answer; or, if the
//! driver refused, the name of the function and the error number.
//!
//! Why each call is sound:
//!
//! * A pointer for an answer points to a local variable, and the driver writes there before the
//!   function returns. The same holds for a pointer to host memory: the stream of a copy is
//!   synchronised before the borrow ends, even if the copy was refused.
//! * Handles are alive by the invariant of the [module](super). The driver returns an error for a
//!   null handle.
//! * Device addresses are numbers. A wrong one causes an error on the device, not undefined
//!   behaviour in this process.
//! * A launch reads one value for each parameter of the kernel. [`EntryPoint`] has the sizes from
//!   the driver, and a launch with other sizes is refused before the call.
//! * The driver reads a text up to its terminating zero, and machine code as far as its tables say,
//!   which is inside the bytes of a [`MachineCode`](crate::machine_code::MachineCode).
//! * The text of a kernel decides what the kernel does with its arguments. The text is trusted; see
//!   [`Module`](crate::Module).
//!
//! Reason for unsafe code: functions of C.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use super::table::{ContextHandle, DeviceHandle, FunctionHandle, Functions};
use crate::error::GpuError;
use crate::status::{Code, Status, code};

/// Calls a function of the table.
macro_rules! call {
    ($driver:expr, $field:ident($($argument:expr),* $(,)?)) => {{
        let entry = $driver.functions.$field;
        let code = if $crate::driver::process::is_forked() {
            $crate::status::code::FORKED
        } else {
            // SAFETY: as the head of `calls.rs` says for all calls.
            unsafe { (entry.function)($($argument),*) }
        };
        $crate::driver::calls::answer(entry.symbol, code)
    }};
}

mod launches;
mod memory;
mod modules;
mod streams;

pub(crate) use launches::{LaunchSizes, TiledMap, Value};
pub(crate) use modules::CompilerOutput;
pub(crate) use streams::Order;

/// The functions of a driver.
pub(crate) struct Driver {
    functions: Functions,
    version: i32,
}

/// A refusal by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) symbol: &'static str,
    pub(crate) code: Code,
}

/// A kernel and the sizes of its parameters in bytes.
pub(crate) struct EntryPoint {
    handle: FunctionHandle,
    sizes: Box<[usize]>,
}

impl EntryPoint {
    /// The sizes of the parameters in bytes, in order.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}

/// Converts the return value of a function to a result.
fn answer(symbol: &'static str, code: Code) -> Result<(), Refused> {
    if code == code::SUCCESS { Ok(()) } else { Err(Refused { symbol, code }) }
}

impl Driver {
    pub(super) fn new(functions: Functions, version: i32) -> Driver {
        Driver { functions, version }
    }

    /// The version of CUDA that the driver supports, in its notation: 13000 is 13.0.
    pub(crate) fn version(&self) -> i32 {
        self.version
    }

    pub(super) fn init(&self) -> Result<(), Refused> {
        call!(self, init(0))
    }

    /// A refusal by the driver, as an error.
    pub(crate) fn refusal(&self, refused: Refused) -> GpuError {
        if refused.code == code::FORKED {
            return GpuError::Forked;
        }
        match refused.code {
            code::UNSUPPORTED_PTX_VERSION => GpuError::OldDriver { found: self.version(), needed: 0, missing: None },
            _ => GpuError::Driver { call: refused.symbol, status: self.status(refused.code) },
        }
    }

    /// The driver's name and description of an error number.
    pub(crate) fn status(&self, code: Code) -> Status {
        let text = |ask: &dyn Fn(*mut *const c_char) -> Result<(), Refused>| {
            let mut text: *const c_char = std::ptr::null();
            ask(&raw mut text).ok()?;
            // SAFETY: a pointer that is not null points to a string of the driver that is never
            // freed.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = text(&|place| call!(self, error_name(code, place)));
        let words = text(&|place| call!(self, error_words(code, place)));
        Status::new(code, name, words)
    }

    // Devices.

    pub(crate) fn device_count(&self) -> Result<i32, Refused> {
        let mut count = 0;
        call!(self, device_count(&raw mut count))?;
        Ok(count)
    }

    pub(crate) fn device(&self, ordinal: i32) -> Result<DeviceHandle, Refused> {
        let mut device = DeviceHandle(0);
        call!(self, device(&raw mut device, ordinal))?;
        Ok(device)
    }

    pub(crate) fn device_name(&self, device: DeviceHandle) -> Result<String, Refused> {
        let mut name = [0_u8; 256];
        // The last byte stays zero.
        call!(self, device_name(name.as_mut_ptr().cast(), 255, device))?;
        Ok(CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy).unwrap_or_default().into_owned())
    }

    pub(crate) fn device_attribute(&self, attribute: i32, device: DeviceHandle) -> Result<i32, Refused> {
        let mut value = 0;
        call!(self, device_attribute(&raw mut value, attribute, device))?;
        Ok(value)
    }

    pub(crate) fn device_memory(&self, device: DeviceHandle) -> Result<u64, Refused> {
        let mut bytes = 0;
        call!(self, device_memory(&raw mut bytes, device))?;
        Ok(bytes as u64)
    }

    // Contexts.

    pub(crate) fn retain_primary(&self, device: DeviceHandle) -> Result<ContextHandle, Refused> {
        let mut context = ContextHandle(0);
        call!(self, retain_primary(&raw mut context, device))?;
        Ok(context)
    }

    pub(crate) fn release_primary(&self, device: DeviceHandle) -> Result<(), Refused> {
        call!(self, release_primary(device))
    }

    /// The current context of this thread; None if there is none.
    pub(crate) fn current(&self) -> Result<Option<ContextHandle>, Refused> {
        let mut context = ContextHandle(0);
        call!(self, current(&raw mut context))?;
        Ok((context != ContextHandle(0)).then_some(context))
    }

    pub(crate) fn set_current(&self, context: ContextHandle) -> Result<(), Refused> {
        call!(self, set_current(context))
    }

    pub(crate) fn push_current(&self, context: ContextHandle) -> Result<(), Refused> {
        call!(self, push_current(context))
    }

    pub(crate) fn pop_current(&self) -> Result<(), Refused> {
        let mut context = ContextHandle(0);
        call!(self, pop_current(&raw mut context))
    }

    /// Lets the current context access the memory of another.
    pub(crate) fn enable_peer(&self, peer: ContextHandle) -> Result<(), Refused> {
        call!(self, enable_peer(peer, 0))
    }

    pub(crate) fn synchronize_context(&self) -> Result<(), Refused> {
        call!(self, synchronize_context())
    }
}
