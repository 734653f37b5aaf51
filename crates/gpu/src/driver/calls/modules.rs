//! Modules, and their compilation.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};

use super::{Driver, EntryPoint, Refused};
use crate::driver::table::{FunctionHandle, ModuleHandle};
use crate::machine_code::MachineCode;

/// The result of a compilation: machine code and log.
pub(crate) struct CompilerOutput<T> {
    pub(crate) result: Result<T, Refused>,
    pub(crate) info: String,
    pub(crate) errors: String,
}

/// Numbers of `CUjit_option`.
mod jit {
    pub(super) const INFO_LOG: i32 = 3;
    pub(super) const INFO_LOG_BYTES: i32 = 4;
    pub(super) const ERROR_LOG: i32 = 5;
    pub(super) const ERROR_LOG_BYTES: i32 = 6;
    pub(super) const VERBOSE: i32 = 12;
}

/// The number of bytes of each log of the compiler.
const LOG_BYTES: usize = 16 << 10;

/// The logs of the compiler, and the options that request them.
struct Logs {
    info: Vec<u8>,
    errors: Vec<u8>,
    options: [c_int; 5],
    values: [*mut c_void; 5],
}

impl Logs {
    fn new() -> Logs {
        let (mut info, mut errors) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        // The last byte stays zero.
        let bytes = std::ptr::without_provenance_mut(LOG_BYTES - 1);
        let options = [jit::INFO_LOG, jit::INFO_LOG_BYTES, jit::ERROR_LOG, jit::ERROR_LOG_BYTES, jit::VERBOSE];
        let values =
            [info.as_mut_ptr().cast(), bytes, errors.as_mut_ptr().cast(), bytes, std::ptr::without_provenance_mut(1)];
        Logs { info, errors, options, values }
    }

    fn read<T>(self, result: Result<T, Refused>) -> CompilerOutput<T> {
        let text = |log: &[u8]| {
            let text = CStr::from_bytes_until_nul(log).map(CStr::to_string_lossy).unwrap_or_default();
            text.trim().to_owned()
        };
        CompilerOutput { result, info: text(&self.info), errors: text(&self.errors) }
    }
}

impl Driver {
    /// Loads PTX text.
    pub(crate) fn load_text(&self, text: &CStr) -> CompilerOutput<ModuleHandle> {
        self.load_image(text.as_ptr().cast())
    }

    /// Loads machine code, all parts of which are inside the given bytes.
    pub(crate) fn load_machine_code(&self, code: &MachineCode) -> CompilerOutput<ModuleHandle> {
        self.load_image(code.bytes().as_ptr().cast())
    }

    fn load_image(&self, image: *const c_void) -> CompilerOutput<ModuleHandle> {
        let mut logs = Logs::new();
        let mut module = ModuleHandle(0);
        let count = logs.options.len() as c_uint;
        let (options, values) = (logs.options.as_mut_ptr(), logs.values.as_mut_ptr());
        let loaded = call!(self, load_module(&raw mut module, image, count, options, values));
        logs.read(loaded.map(|()| module))
    }

    pub(crate) fn unload_module(&self, module: ModuleHandle) -> Result<(), Refused> {
        call!(self, unload_module(module))
    }

    /// A kernel of a module and the sizes of its parameters.
    pub(crate) fn entry(&self, module: ModuleHandle, name: &CString) -> Result<EntryPoint, Refused> {
        let mut handle = FunctionHandle(0);
        call!(self, module_function(&raw mut handle, module, name.as_ptr()))?;
        let mut sizes = Vec::new();
        // The driver refuses an index past the last parameter. There is no other way to get their
        // number.
        loop {
            let (mut offset, mut size) = (0, 0);
            match call!(self, parameter_info(handle, sizes.len(), &raw mut offset, &raw mut size)) {
                Ok(()) => sizes.push(size),
                Err(Refused { code: 1, .. }) => return Ok(EntryPoint { handle, sizes: sizes.into() }),
                Err(refused) => return Err(refused),
            }
        }
    }
}
