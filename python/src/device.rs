//! Kernels on devices.
//!
//! Law: a launch is checked as in Rust: types, layouts, sizes and facts, then the limits of the
//! driver. The result of the check is cached by shapes and strides, so that the next launch with
//! the same shapes and strides only reads the addresses. The launches of library functions are
//! cached in [`Calls`]. If all written arrays are empty, nothing is launched.

mod calls;
mod xla;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilewright::measured::AskedProblems;
use tilewright_gpu::{Argument, Device, DeviceKernel, GpuError, ModuleOptions, SizedKernel, Stream};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::scalar::Scalar;
use tilewright_kernel::{Element, LaunchArguments};

pub use calls::{Calls, CudaAllocator, note_recorder, repeat_call};
pub use xla::{prepare_xla_call, xla_handler};

use crate::foreign::{self, Array};
use crate::kernel::program::{Program, bits_of, sizes_of};
use crate::refusal;
use crate::writes::Writes;

/// The largest number of sets of shapes for which a prepared kernel is kept.
const KEPT: usize = 64;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device and the streams of other libraries on it.
pub(crate) struct Opened {
    pub(crate) device: Device,
    /// The problems that were planned for the device in this process.
    pub(crate) problems: AskedProblems,
    /// The streams by their handles; there are few.
    streams: Mutex<Vec<(usize, Arc<Stream>)>>,
}

/// The device with an ordinal, which is opened once.
pub(crate) fn opened(py: Python<'_>, ordinal: usize) -> PyResult<Arc<Opened>> {
    static DEVICES: OnceLock<Mutex<HashMap<usize, Arc<Opened>>>> = OnceLock::new();
    let devices = DEVICES.get_or_init(Mutex::default);
    if let Some(known) = locked(devices).get(&ordinal) {
        return Ok(known.clone());
    }
    let device = py.detach(|| Device::open(ordinal)).map_err(|error| refusal::of_gpu(py, &error))?;
    let opened = Arc::new(Opened { device, problems: AskedProblems::default(), streams: Mutex::default() });
    Ok(locked(devices).entry(ordinal).or_insert(opened).clone())
}

/// The device with an ordinal.
///
/// Errors: there is no driver (E0801), or no such device (E0803).
pub fn device(py: Python<'_>, ordinal: usize) -> PyResult<Device> {
    opened(py, ordinal).map(|opened| opened.device.clone())
}

impl Opened {
    /// The stream with a handle.
    fn stream(&self, handle: usize) -> Arc<Stream> {
        let mut streams = locked(&self.streams);
        if let Some((_, known)) = streams.iter().find(|(own, _)| *own == handle) {
            return known.clone();
        }
        let made = Arc::new(foreign::stream(&self.device, handle));
        streams.push((handle, made.clone()));
        made
    }
}

/// A kernel prepared for arrays with certain shapes and strides.
struct Ready {
    device: usize,
    /// The shapes and strides of the arrays, and the given sizes.
    arrays: Vec<Array>,
    given: Vec<(String, i64)>,
    writes: Vec<bool>,
    kernel: SizedKernel,
    opened: Arc<Opened>,
}

impl Ready {
    /// Launches the kernel on arrays with the shapes and strides for which it was prepared. Each
    /// array begins this many elements before its first element.
    fn launch<'a>(
        &mut self,
        stream: usize,
        arrays: impl Iterator<Item = (&'a Array, i64)>,
        bits: &[(&str, Element, u64)],
    ) -> Result<(), GpuError> {
        let stream = self.opened.stream(stream);
        for (name, element, bits) in bits {
            self.kernel.set_number(name, *element, *bits)?;
        }
        let mut memory: SmallVec<[_; 6]> =
            arrays.map(|(array, before)| array.memory(&self.opened.device, before)).collect();
        let arguments = memory.iter_mut().zip(&self.writes);
        let arguments: SmallVec<[Argument<'_>; 6]> =
            arguments.map(|(memory, writes)| if *writes { memory.into() } else { (&*memory).into() }).collect();
        self.kernel.launch(&stream, &arguments)
    }
}

/// The scalar arguments of a launch: the name, type and bits of each.
type Bits<'a> = SmallVec<[(&'a str, Element, u64); 4]>;

/// The bits of the scalar arguments of a kernel, from the values given by name.
///
/// Errors: a scalar is missing (`TypeError`), or is not a number of its type.
fn bits_of_all<'a>(known: &'a [(String, Element)], given: Option<&Bound<'_, PyDict>>) -> PyResult<Bits<'a>> {
    let bits = known.iter().map(|(name, element)| {
        let value = given.map(|given| given.get_item(name)).transpose()?.flatten();
        let missing = || PyTypeError::new_err(format!("the number '{name}' is not given"));
        Ok((name.as_str(), *element, bits_of(&value.ok_or_else(missing)?, *element)?))
    });
    bits.collect()
}

/// The current stream of the library of the arrays.
fn stream_of(py: Python<'_>, device: usize, arrays: &[Array]) -> PyResult<usize> {
    match arrays.iter().find_map(|array| array.stream) {
        Some(handle) => Ok(handle),
        None => foreign::current_stream(py, device),
    }
}

/// Launches a kernel on devices.
#[pyclass(frozen, module = "tilewright")]
pub struct Launcher {
    program: Py<Program>,
    numbers: Vec<(String, Element)>,
    writes: Vec<bool>,
    compiled: Mutex<HashMap<usize, Arc<DeviceKernel>>>,
    ready: Mutex<Vec<Arc<Mutex<Ready>>>>,
}

/// Whether two arrays have the same shape and strides.
fn alike(a: &Array, b: &Array) -> bool {
    a.element == b.element
        && a.shape == b.shape
        && a.strides == b.strides
        && a.read_only == b.read_only
        && a.layout == b.layout
}

#[pymethods]
impl Launcher {
    #[new]
    fn new(program: Bound<'_, Program>) -> Launcher {
        let own = program.get().kernel.program();
        let scalars = own.scalars.iter();
        let numbers = scalars.filter_map(|scalar| match scalar {
            Scalar::Given { name, element } => Some((name.clone(), *element)),
            _ => None,
        });
        Launcher {
            numbers: numbers.collect(),
            writes: own.tensors().map(|buffer| buffer.role != Role::Input).collect(),
            compiled: Mutex::default(),
            ready: Mutex::default(),
            program: program.unbind(),
        }
    }

    /// Launches the kernel on arrays of one CUDA device, on the current stream of PyTorch there,
    /// and returns immediately. For arrays of the host it does nothing and returns False. An array
    /// with a number is passed from this many elements before its first one on.
    #[pyo3(signature = (arrays, numbers = None, sizes = None, grid = None))]
    fn launch(
        &self,
        py: Python<'_>,
        arrays: &Bound<'_, PyAny>,
        numbers: Option<&Bound<'_, PyDict>>,
        sizes: Option<&Bound<'_, PyDict>>,
        grid: Option<[u32; 3]>,
    ) -> PyResult<bool> {
        let (mut read, mut objects): (SmallVec<[Array; 6]>, SmallVec<[Bound<'_, PyAny>; 6]>) = Default::default();
        let rules = Writes::now(py)?;
        for array in arrays.try_iter()? {
            let array = array?;
            let (object, before) = match array.cast_exact::<PyTuple>() {
                Ok(pair) => (pair.get_item(0)?, Some(pair.get_item(1)?.extract()?)),
                Err(_) => (array, None),
            };
            rules.check(&object, self.writes.get(objects.len()).copied().unwrap_or(false))?;
            let array = Array::of(&object)?;
            read.push(match before {
                Some(before) => array.since(before),
                None => array,
            });
            objects.push(object);
        }
        if read.iter().any(Array::is_empty) && self.is_over_nothing(py, &read)? {
            return Ok(true);
        }
        let Some(device) = read.first().and_then(|array| array.device) else {
            return match read.iter().position(|array| array.device.is_some()) {
                None => Ok(false),
                Some(at) => Err(self.mixed(0, at, &read)),
            };
        };
        if let Some(at) = read.iter().position(|array| array.device != Some(device)) {
            return Err(self.mixed(0, at, &read));
        }
        let given = sizes.map_or(Ok(Vec::new()), sizes_of)?;
        let bits = bits_of_all(&self.numbers, numbers)?;
        self.launch_read(py, device, &read, &given, &bits, grid)?;
        let written = objects.iter().zip(&self.writes).filter(|(_, writes)| **writes);
        written.map(|(object, _)| object).try_for_each(|object| rules.mark(object))?;
        Ok(true)
    }

    /// The written arrays.
    #[getter]
    fn writes(&self) -> Vec<bool> {
        self.writes.clone()
    }

    /// Compiles the kernel for a device, and returns the registers per thread, the bytes of local
    /// memory, and the warnings of the compiler.
    #[pyo3(signature = (device = 0))]
    fn compile(&self, py: Python<'_>, device: usize) -> PyResult<String> {
        let kernel = self.compiled(py, &*opened(py, device)?, device)?;
        Ok(kernel.module().notes().to_string())
    }
}

impl Launcher {
    /// Whether all written arrays are empty. It is called if some array is empty.
    ///
    /// Errors: as `Program::check_elements`; a written array is not empty (`ValueError`).
    fn is_over_nothing(&self, py: Python<'_>, read: &[Array]) -> PyResult<bool> {
        let program = self.program.get();
        program.check_elements(py, read)?;
        let names: Vec<&str> = program.kernel.program().tensors().map(|buffer| buffer.name.as_str()).collect();
        let written = read.iter().zip(&self.writes).position(|(array, writes)| *writes && !array.is_empty());
        let Some(written) = written else { return Ok(true) };
        let empty = read.iter().position(Array::is_empty).unwrap_or(0);
        Err(PyValueError::new_err(format!(
            "`{}` is empty, and `{}`, which is written, is not: no thread of `{}` has an element of both",
            names.get(empty).unwrap_or(&""),
            names.get(written).unwrap_or(&""),
            program.kernel.name()
        )))
    }

    /// The prepared kernel for arrays on a device, with the sizes that do not come from arrays.
    fn ready(
        &self,
        py: Python<'_>,
        device: usize,
        read: &[Array],
        given: &[(String, i64)],
        bits: &[(&str, Element, u64)],
    ) -> PyResult<Arc<Mutex<Ready>>> {
        let fits = |ready: &Arc<Mutex<Ready>>| {
            let ready = locked(ready);
            ready.device == device
                && ready.given == *given
                && ready.arrays.len() == read.len()
                && ready.arrays.iter().zip(read).all(|(known, array)| alike(known, array))
        };
        if let Some(known) = locked(&self.ready).iter().rfind(|known| fits(known)) {
            return Ok(known.clone());
        }
        // Another thread may wait here for the interpreter's lock, so no other lock is held.
        let made = Arc::new(Mutex::new(self.ready_for(py, device, read, given, bits)?));
        let mut ready = locked(&self.ready);
        if ready.len() >= KEPT {
            ready.remove(0);
        }
        ready.push(made.clone());
        Ok(made)
    }

    /// Launches the kernel on arrays of a device, with the sizes that do not come from arrays and
    /// with the scalar arguments.
    fn launch_read(
        &self,
        py: Python<'_>,
        device: usize,
        read: &[Array],
        given: &[(String, i64)],
        bits: &[(&str, Element, u64)],
        grid: Option<[u32; 3]>,
    ) -> PyResult<()> {
        let stream = stream_of(py, device, read)?;
        let ready = self.ready(py, device, read, given, bits)?;
        // Exceptions are created without holding a lock, because creating one may let another
        // thread run, which would wait for the lock.
        let blocks = locked(&ready).kernel.sizes().grid();
        if let Some(grid) = grid.filter(|grid| *grid != blocks) {
            let name = self.program.get().kernel.name();
            let what = format!("`{name}` has {blocks:?} blocks for these arrays, and {grid:?} are asked for");
            let help = Some("leave the grid out: it follows from the layouts");
            return Err(refusal::of_run(py, "E0908", &what, help, None));
        }
        let launched = locked(&ready).launch(stream, read.iter().map(|array| (array, 0)), bits);
        launched.map_err(|error| refusal::of_gpu(py, &error))
    }

    /// The error for arrays that are on different devices.
    fn mixed(&self, one: usize, other: usize, arrays: &[Array]) -> PyErr {
        let program = self.program.get().kernel.program();
        let names: Vec<&str> = program.tensors().map(|buffer| buffer.name.as_str()).collect();
        let place = |at: usize| match arrays.get(at).and_then(|array| array.device) {
            Some(ordinal) => format!("`{}` is on device {ordinal}", names.get(at).unwrap_or(&"")),
            None => format!("`{}` is on the host", names.get(at).unwrap_or(&"")),
        };
        PyTypeError::new_err(format!("{}, and {}: all arrays of a launch are on one", place(one), place(other)))
    }

    fn compiled(&self, py: Python<'_>, opened: &Opened, device: usize) -> PyResult<Arc<DeviceKernel>> {
        if let Some(known) = locked(&self.compiled).get(&device) {
            return Ok(known.clone());
        }
        let kernel = &self.program.get().kernel;
        let compiled = py.detach(|| opened.device.compile(kernel, &ModuleOptions::default()));
        let compiled = Arc::new(compiled.map_err(|error| refusal::of_gpu(py, &error))?);
        Ok(locked(&self.compiled).entry(device).or_insert(compiled).clone())
    }

    /// The prepared kernel for arrays with these shapes.
    fn ready_for(
        &self,
        py: Python<'_>,
        device: usize,
        arrays: &[Array],
        given: &[(String, i64)],
        bits: &[(&str, Element, u64)],
    ) -> PyResult<Ready> {
        let program = self.program.get();
        let sizes = if program.plan.is_empty() {
            program.fit(py, arrays, given)?
        } else {
            let sizes = program.with_fixed(given.to_vec());
            program.check_memory(py, arrays, &sizes)?;
            sizes
        };
        let opened = opened(py, device)?;
        let compiled = self.compiled(py, &opened, device)?;
        let named: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let number = |name: &str, element: Element| {
            bits.iter().find(|(own, of, _)| *own == name && *of == element).map(|(_, _, bits)| *bits)
        };
        let kernel = compiled
            .at(LaunchArguments { sizes: &named, numbers: Some(&number) })
            .map_err(|error| refusal::of_gpu(py, &error))?;
        let (arrays, given, writes) = (arrays.to_vec(), given.to_vec(), self.writes.clone());
        Ok(Ready { device, arrays, given, writes, kernel, opened })
    }
}

/// The name of a device, and the number of devices; an error without a driver.
#[pyfunction]
#[pyo3(signature = (ordinal = 0))]
pub fn device_name(py: Python<'_>, ordinal: usize) -> PyResult<String> {
    Ok(opened(py, ordinal)?.device.name().to_string())
}

/// The number of devices: 0 without a driver.
///
/// Errors: the process was forked after the driver was opened (E0821).
#[pyfunction]
pub fn device_count(py: Python<'_>) -> PyResult<usize> {
    match Device::count() {
        Err(error @ GpuError::Forked) => Err(refusal::of_gpu(py, &error)),
        count => Ok(count.unwrap_or(0)),
    }
}
