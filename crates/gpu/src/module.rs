//! Modules: compiled kernels on a device.
//!
//! Law: a module is the kernels of one image, PTX text or machine code. Text is compiled for the
//! device, by the driver; what was compiled once is found in the [`Cache`] under the text, the
//! device and the driver. Whether it came from there cannot be seen but in [`Module::origin`] and
//! the time.
//!
//! *What is trusted.* What a kernel does with its arguments is decided by its text. The arguments
//! are checked, but nothing keeps a kernel from memory of the device that it was not given, as
//! nothing keeps a program from files: load the text of those whom you trust.
//!
//! Text is compiled in two ways. Machine code that can be cached comes from the driver's linker,
//! which compiles a text as one of several. Some instructions of Hopper are slower then, or have no
//! effect, and kernels that multiply by `mma.sync` get more instructions and more spills. So a text
//! with such instructions, or with notes of the compiler, is compiled by loading it on its own; the
//! driver then keeps it in its own cache.

use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_kernel::program::scalar::COUNTS;

use crate::cache::{Cache, CacheEntry};
use crate::context::Context;
use crate::device::Device;
use crate::driver::{CompilerOutput, ModuleHandle, Order, Refused};
use crate::error::GpuError;
use crate::machine_code::MachineCode;
use crate::ptx::Target;
use crate::status::code;
use crate::stream::Stream;

/// Instructions whose kernels are slower if the driver's linker compiles them.
///
/// It ignores register reallocation, which makes kernels twenty times slower if accumulators do not
/// fit. It reports that when it compiles, but not when it has the code in its own cache. And it
/// compiles for calls from other texts: attention by `mma.sync` then has up to 18 % more code, and
/// spills more (ptxas 13.5, with `-c` and without).
const COMPILED_ALONE: [&[u8]; 2] = [b"setmaxnreg", b"mma.sync"];

/// How a module is made.
///
/// ```
/// use tilewright_gpu::{Cache, ModuleOptions};
///
/// // Compiled anew, and refused if the compiler notes that it gave up speed.
/// let options = ModuleOptions::default().cache(Cache::none()).refuse_notes();
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default)]
pub struct ModuleOptions {
    cache: Cache,
    refuse_notes: bool,
}

impl ModuleOptions {
    /// Keeps machine code there.
    pub fn cache(self, cache: Cache) -> ModuleOptions {
        ModuleOptions { cache, ..self }
    }

    /// Refuses text about which the compiler reports that wgmma are serialised or registers not
    /// reallocated: notes C75xx and C76xx.
    pub fn refuse_notes(self) -> ModuleOptions {
        ModuleOptions { refuse_notes: true, ..self }
    }
}

/// Where the machine code of a module came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was given.
    Given,
    /// The driver compiled the text.
    Compiled,
    /// The cache had it.
    Cached,
}

/// A module in a context.
pub(crate) struct LoadedModule {
    context: Arc<Context>,
    handle: ModuleHandle,
    /// The counters of the module that ordered launches share.
    counts: Mutex<HashMap<Order, u32>>,
}

impl LoadedModule {
    /// The counter of the module for launches on a stream: none that launches have which may run
    /// concurrently. None if all are taken.
    ///
    /// Errors: the driver does not tell what is recorded on the stream.
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

/// Kernels that were loaded. They stay as long as the module or one of its functions.
pub struct Module {
    loaded: Arc<LoadedModule>,
    origin: Origin,
    notes: Box<str>,
}

impl Module {
    /// Loads PTX text, or machine code (a cubin), on a device.
    ///
    /// Errors: it is for another kind of device (E0804); the driver does not know its version
    /// (E0802); it does not compile (E0808), or with notes that were to be refused (E0810); bytes
    /// that are neither (E0809).
    pub fn load(device: &Device, image: &[u8], options: &ModuleOptions) -> Result<Module, GpuError> {
        let loader = Loader { device, options };
        let module = if image.starts_with(b"\x7fELF") {
            let code = MachineCode::new(image.to_vec())?;
            loader.load_code(&code, Origin::Given, None)?.map_err(|refused| loader.refused(refused, None))?
        } else {
            loader.load_text(image)?
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

    /// Where the machine code came from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The compiler's notes: registers, spills, and skipped optimisations. The notes of machine
    /// code from the cache are those of its compilation.
    pub fn notes(&self) -> &str {
        &self.notes
    }
}

impl Device {
    /// A module of PTX text or machine code: see [`Module`].
    ///
    /// Errors: as [`Module::load`].
    pub fn load(&self, image: &[u8], options: &ModuleOptions) -> Result<Module, GpuError> {
        Module::load(self, image, options)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({:?}, device {})", self.origin, self.loaded.context.ordinal())
    }
}

struct Loader<'a> {
    device: &'a Device,
    options: &'a ModuleOptions,
}

impl Loader<'_> {
    fn load_text(&self, text: &[u8]) -> Result<Module, GpuError> {
        let flawed = |what| GpuError::MachineCode { what, bytes: text.len() };
        let words = std::str::from_utf8(text).map_err(|_| flawed("it is no ELF file, and no text either"))?;
        let target = Target::of(words);
        target.map_or(Ok(()), |target| target.check(self.device))?;
        let text = CString::new(text).map_err(|_| flawed("it is no ELF file, and a text with a zero in it"))?;
        if self.options.cache.folder().is_some()
            && let Some(module) = self.load_kept(&text)?
        {
            return Ok(module);
        }
        let loaded = self.device.context().attempt(|driver| driver.load_text(&text))?;
        let CompilerOutput { result, info, errors } = loaded;
        match result {
            Ok(handle) => Ok(self.module(handle, Origin::Compiled, info)),
            Err(refused) => Err(match self.refused(refused, Some(words)) {
                GpuError::Driver { status, .. } => {
                    GpuError::Compile { errors: errors.into(), notes: info.into(), status }
                }
                error => error,
            }),
        }
    }

    /// The module of a text from machine code in the cache, or put there; None if that is
    /// impossible, or costs speed.
    fn load_kept(&self, text: &CString) -> Result<Option<Module>, GpuError> {
        if COMPILED_ALONE.iter().any(|word| has(text.to_bytes(), word)) {
            return Ok(None);
        }
        let (cache, context) = (&self.options.cache, self.device.context());
        let (major, minor) = self.device.capability();
        let version = self.device.driver_version();
        let mut key = format!("{major}.{minor} {} {version}\n", self.device.name()).into_bytes();
        key.extend_from_slice(text.to_bytes());
        // An entry that the driver refuses is compiled again.
        if let Some(CacheEntry { code, notes }) = cache.get(&key)
            && let Ok(code) = MachineCode::new(code)
            && let Ok(module) = self.load_code(&code, Origin::Cached, Some(&notes))?
        {
            return Ok(Some(module));
        }
        let CompilerOutput { result, info, .. } = context.attempt(|driver| driver.compile(text))?;
        let code = match result.map(MachineCode::new) {
            Ok(Ok(code)) if !info.is_empty() && speed_notes(&info).next().is_none() => code,
            // Loading the text says what is wrong with it.
            _ => return Ok(None),
        };
        let Ok(module) = self.load_code(&code, Origin::Compiled, Some(&info))? else { return Ok(None) };
        cache.put(&key, &CacheEntry { code: code.bytes().to_vec(), notes: info });
        Ok(Some(module))
    }

    /// Loads machine code; what the driver says to that is left to the caller.
    fn load_code(
        &self,
        code: &MachineCode,
        origin: Origin,
        notes: Option<&str>,
    ) -> Result<Result<Module, Refused>, GpuError> {
        let CompilerOutput { result, info, .. } =
            self.device.context().attempt(|driver| driver.load_machine_code(code))?;
        Ok(result.map(|handle| self.module(handle, origin, notes.map_or(info, str::to_owned))))
    }

    fn module(&self, handle: ModuleHandle, origin: Origin, notes: String) -> Module {
        let context = self.device.context().clone();
        Module {
            loaded: Arc::new(LoadedModule { context, handle, counts: Mutex::default() }),
            origin,
            notes: notes.into(),
        }
    }

    /// A refusal of an image by the driver.
    fn refused(&self, refused: Refused, text: Option<&str>) -> GpuError {
        if refused.code == code::NO_BINARY_FOR_GPU {
            return GpuError::Architecture {
                target: text.and_then(Target::of).map(|target| target.name().into()),
                device: self.device.name().into(),
                capability: self.device.capability(),
            };
        }
        self.device.context().explain(refused)
    }
}

/// Whether a text has a word.
fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

/// The compiler's notes that something is slower than it was written.
fn speed_notes(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter(|line| line.contains("(C75") || line.contains("(C76"))
}
