//! Modules: compiled kernels on a device.
//!
//! Law: a module is the kernels of one image, PTX text or machine code. The driver compiles a text
//! for the device as a whole program when it is loaded, and keeps the machine code in its own
//! cache on disk (`CUDA_CACHE_PATH`), so that the next process only reads it. The driver's linker
//! would return machine code that could be kept elsewhere, but it compiles for calls from other
//! texts: kernels then need more registers, and the reallocation of registers has no effect.
//!
//! *What is trusted.* What a kernel does with its arguments is decided by its text. The arguments
//! are checked, but nothing keeps a kernel from memory of the device that it was not given, as
//! nothing keeps a program from files: load the text of those whom you trust.

use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_kernel::program::scalar::COUNTS;

use crate::context::Context;
use crate::device::Device;
use crate::driver::{CompilerOutput, ModuleHandle, Order, Refused};
use crate::error::GpuError;
use crate::machine_code::MachineCode;
use crate::ptx::Target;
use crate::status::code;
use crate::stream::Stream;

/// How a module is made.
///
/// ```
/// use tilewright_gpu::ModuleOptions;
///
/// // Refused if the compiler notes that it gave up speed.
/// let options = ModuleOptions::default().refuse_notes();
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default)]
pub struct ModuleOptions {
    refuse_notes: bool,
}

impl ModuleOptions {
    /// Refuses text about which the compiler reports that wgmma are serialised or registers not
    /// reallocated: notes C75xx and C76xx. The driver reports nothing about a text whose machine
    /// code is in its cache.
    pub fn refuse_notes(self) -> ModuleOptions {
        ModuleOptions { refuse_notes: true }
    }
}

/// A module in a context.
pub(crate) struct LoadedModule {
    context: Arc<Context>,
    handle: ModuleHandle,
    /// The counters of the module, by the order of the launches that share a counter.
    counts: Mutex<HashMap<Order, u32>>,
}

impl LoadedModule {
    /// The counter of the module for launches on a stream. Launches that may run concurrently have
    /// different counters. None if all counters are in use.
    ///
    /// Errors: the driver does not report the capture on the stream.
    pub(crate) fn count_on(&self, stream: &Stream) -> Result<Option<u32>, GpuError> {
        let order = self.context.call(|driver| driver.order_of(stream.handle()))?;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let next = counts.len() as u32;
        if next < COUNTS || counts.contains_key(&order) {
            return Ok(Some(*counts.entry(order).or_insert(next)));
        }
        Ok(None)
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn handle(&self) -> ModuleHandle {
        self.handle
    }
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        self.context.give_back(|driver| {
            // Kernels may still run. A later synchronization reports whether they failed.
            let _ = driver.synchronize_context();
            driver.unload_module(self.handle)
        });
    }
}

/// Loaded kernels. They stay loaded as long as the module or one of its functions lives.
pub struct Module {
    loaded: Arc<LoadedModule>,
    notes: Box<str>,
}

impl Module {
    /// Loads PTX text, or machine code (a cubin), on a device.
    ///
    /// Errors: the image is for another architecture (E0804); the driver does not support its
    /// version (E0802); it does not compile (E0808), or with notes that the options refuse (E0810);
    /// it is neither PTX nor a cubin (E0809).
    pub fn load(device: &Device, image: &[u8], options: &ModuleOptions) -> Result<Module, GpuError> {
        let module = match image.starts_with(b"\x7fELF") {
            true => load_code(device, image)?,
            false => load_text(device, image)?,
        };
        if options.refuse_notes {
            let notes: Vec<Box<str>> = speed_notes(&module.notes).map(Into::into).collect();
            if !notes.is_empty() {
                return Err(GpuError::Notes { notes });
            }
        }
        Ok(module)
    }

    pub(crate) fn loaded(&self) -> &Arc<LoadedModule> {
        &self.loaded
    }

    /// The compiler's notes: registers, spills, and skipped optimisations. None if the driver's
    /// cache had the machine code.
    pub fn notes(&self) -> &str {
        &self.notes
    }
}

impl Device {
    /// A module of PTX text or machine code; see [`Module`].
    ///
    /// Errors: as [`Module::load`].
    pub fn load(&self, image: &[u8], options: &ModuleOptions) -> Result<Module, GpuError> {
        Module::load(self, image, options)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module(device {})", self.loaded.context.ordinal())
    }
}

fn load_text(device: &Device, text: &[u8]) -> Result<Module, GpuError> {
    let flawed = |what| GpuError::MachineCode { what, bytes: text.len() };
    let words = std::str::from_utf8(text).map_err(|_| flawed("it is no ELF file, and no text either"))?;
    let target = Target::of(words);
    target.map_or(Ok(()), |target| target.check(device))?;
    let text = CString::new(text).map_err(|_| flawed("it is no ELF file, and a text with a zero in it"))?;
    let CompilerOutput { result, info, errors } = device.context().attempt(|driver| driver.load_text(&text))?;
    match result {
        Ok(handle) => Ok(module(device, handle, info)),
        Err(known) => Err(match refused(device, known, Some(words)) {
            GpuError::Driver { status, .. } => GpuError::Compile { errors: errors.into(), notes: info.into(), status },
            error => error,
        }),
    }
}

fn load_code(device: &Device, image: &[u8]) -> Result<Module, GpuError> {
    let code = MachineCode::new(image.to_vec())?;
    let CompilerOutput { result, info, .. } = device.context().attempt(|driver| driver.load_machine_code(&code))?;
    result.map(|handle| module(device, handle, info)).map_err(|known| refused(device, known, None))
}

fn module(device: &Device, handle: ModuleHandle, notes: String) -> Module {
    let context = device.context().clone();
    Module { loaded: Arc::new(LoadedModule { context, handle, counts: Mutex::default() }), notes: notes.into() }
}

/// A refusal of an image by the driver.
fn refused(device: &Device, refused: Refused, text: Option<&str>) -> GpuError {
    if refused.code == code::NO_BINARY_FOR_GPU {
        return GpuError::Architecture {
            target: text.and_then(Target::of).map(|target| target.name().into()),
            device: device.name().into(),
            capability: device.capability(),
        };
    }
    device.context().explain(refused)
}

/// The compiler's notes that say that code is slower than written.
fn speed_notes(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter(|line| line.contains("(C75") || line.contains("(C76"))
}
