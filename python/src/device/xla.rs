//! A handler of XLA's foreign function interface, which JAX calls, that launches kernels.
//!
//! Law: a call is prepared while JAX traces it: its kernels are compiled, and all arguments of each
//! launch are known except the addresses. The handler gets the addresses from XLA, and launches on
//! XLA's stream. It needs no lock of the interpreter, and its launches can be captured into a
//! graph.
//!
//! Reason for unsafe code: XLA passes structures by address. They are declared here as in version
//! 0.3 of the interface; later minor versions only append fields.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;
use tilewright_kernel::Element;

use super::{Launcher, Ready, bits_of_all, locked};
use crate::foreign::Array;
use crate::kernel::program::sizes_of;

/// One launch of a call.
struct PreparedLaunch {
    ready: Arc<Mutex<Ready>>,
    /// The index of the buffer of each array, and the bytes from the buffer's beginning to the
    /// array.
    places: Vec<(usize, u64)>,
    /// The arrays without their addresses.
    arrays: Vec<Array>,
    numbers: Vec<(String, Element, u64)>,
}

/// The launches of a call, on a device.
struct PreparedCall {
    device: usize,
    launches: Vec<PreparedLaunch>,
}

/// The prepared calls, by index. A compiled JAX function may run as long as the process exists, so
/// the calls are kept as long.
static CALLS: Mutex<Vec<Arc<PreparedCall>>> = Mutex::new(Vec::new());

/// A launch as Python passes it: the kernel; its arrays, each with the number of elements before
/// its first one; the buffer of each, and the bytes from its beginning to the array; and the sizes.
type LaunchOfPython<'py> = (Bound<'py, Launcher>, Vec<(Bound<'py, PyAny>, i64)>, Vec<(usize, u64)>, Bound<'py, PyDict>);

/// Prepares a call for a device, and returns its number.
///
/// Errors: as [`Launcher::launch`].
#[pyfunction]
pub fn prepare_xla_call(
    py: Python<'_>,
    device: usize,
    launches: Vec<LaunchOfPython<'_>>,
    numbers: &Bound<'_, PyDict>,
) -> PyResult<i64> {
    let mut prepared = Vec::new();
    for (launcher, arrays, places, sizes) in launches {
        let launcher = launcher.get();
        let arrays = arrays.iter().map(|(array, before)| {
            let array = Array::of(array)?;
            Ok(if *before == 0 { array } else { array.since(*before) })
        });
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        let bits = bits_of_all(&launcher.numbers, Some(numbers))?;
        let ready = launcher.ready(py, device, &arrays, &sizes_of(&sizes)?, &bits)?;
        let numbers = bits.iter().map(|(name, element, bits)| ((*name).to_string(), *element, *bits)).collect();
        prepared.push(PreparedLaunch { ready, places, arrays, numbers });
    }
    let mut calls = locked(&CALLS);
    calls.push(Arc::new(PreparedCall { device, launches: prepared }));
    i64::try_from(calls.len() - 1).map_err(|_| PyTypeError::new_err("there are too many calls"))
}

/// The address of the handler.
#[pyfunction]
pub fn xla_handler() -> usize {
    execute as *const () as usize
}

/// The first fields of every structure.
#[repr(C)]
struct Head {
    struct_size: usize,
    extension_start: *mut Extension,
}

#[repr(C)]
struct Extension {
    struct_size: usize,
    kind: c_int,
    next: *mut Extension,
}

/// The type of the extension by which XLA asks for the version of a handler.
const METADATA: c_int = 1;
/// The flag that the handler launches the same work each time, so that it may be captured into a
/// graph.
const COMMAND_BUFFER_COMPATIBLE: u32 = 1;
const MAJOR: c_int = 0;
const MINOR: c_int = 3;

#[repr(C)]
struct ApiVersion {
    head: Head,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    version: ApiVersion,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct ErrorArguments {
    head: Head,
    message: *const c_char,
    code: c_int,
}

const INVALID_ARGUMENT: c_int = 3;
const INTERNAL: c_int = 13;

#[repr(C)]
struct StreamArguments {
    head: Head,
    context: *mut c_void,
    stream: *mut c_void,
}

#[repr(C)]
struct OrdinalArguments {
    head: Head,
    context: *mut c_void,
    ordinal: i32,
}

/// The table of XLA's functions, up to those that are called.
#[repr(C)]
struct Api {
    head: Head,
    version: ApiVersion,
    internal: *const c_void,
    create_error: unsafe extern "C" fn(*mut ErrorArguments) -> *mut c_void,
    before_stream: [*const c_void; 3],
    stream: unsafe extern "C" fn(*mut StreamArguments) -> *mut c_void,
    before_ordinal: [*const c_void; 12],
    ordinal: unsafe extern "C" fn(*mut OrdinalArguments) -> *mut c_void,
}

#[repr(C)]
struct Buffer {
    head: Head,
    kind: c_int,
    data: *mut c_void,
    rank: i64,
    extents: *mut i64,
}

/// The arguments, or the results.
#[repr(C)]
struct Buffers {
    head: Head,
    count: i64,
    kinds: *const c_int,
    buffers: *const *const Buffer,
}

#[repr(C)]
struct Text {
    start: *const u8,
    length: usize,
}

#[repr(C)]
struct ScalarAttribute {
    kind: c_int,
    value: *const c_void,
}

#[repr(C)]
struct Attributes {
    head: Head,
    count: i64,
    kinds: *const c_int,
    names: *const *const Text,
    values: *const *const c_void,
}

const SCALAR: c_int = 3;
const SIGNED_64: c_int = 5;

#[repr(C)]
struct Frame {
    head: Head,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    arguments: Buffers,
    results: Buffers,
    attributes: Attributes,
}

/// The stage in which a handler does its work; earlier stages prepare it.
const EXECUTE: c_int = 3;

/// The handler. Its attribute `call` is the index of a prepared call.
///
/// # Safety
///
/// XLA calls it with a frame that is valid during the call.
unsafe extern "C" fn execute(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the frame and what it leads to are valid during the call, by the contract of XLA.
    let frame = unsafe { &mut *frame };
    let mut extension = frame.head.extension_start;
    while !extension.is_null() {
        // SAFETY: as above; an extension of this kind is the beginning of this structure.
        unsafe {
            if (*extension).kind == METADATA {
                let metadata = &mut *(*extension.cast::<MetadataExtension>()).metadata;
                metadata.version.major = MAJOR;
                metadata.version.minor = MINOR;
                metadata.traits = COMMAND_BUFFER_COMPATIBLE;
                return ptr::null_mut();
            }
            extension = (*extension).next;
        }
    }
    if frame.stage != EXECUTE {
        return ptr::null_mut();
    }
    // SAFETY: as above.
    let api = unsafe { &*frame.api };
    match launched(frame, api) {
        Ok(()) => ptr::null_mut(),
        Err((code, message)) => {
            let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
            let head = Head { struct_size: size_of::<ErrorArguments>(), extension_start: ptr::null_mut() };
            let mut arguments = ErrorArguments { head, message: message.as_ptr(), code };
            // SAFETY: the function copies the message.
            unsafe { (api.create_error)(&mut arguments) }
        }
    }
}

/// Launches the kernels of the call of a frame.
///
/// Errors: the code and the message of XLA.
fn launched(frame: &Frame, api: &Api) -> Result<(), (c_int, String)> {
    let number = call_of(&frame.attributes).ok_or((INVALID_ARGUMENT, "the attribute `call` is missing".to_string()))?;
    let found = usize::try_from(number).ok().and_then(|number| locked(&CALLS).get(number).cloned());
    let call = found.ok_or((INVALID_ARGUMENT, format!("there is no call {number}: it is of another process")))?;
    let head = || Head { struct_size: size_of::<StreamArguments>(), extension_start: ptr::null_mut() };
    // A null pointer means that there is no error.
    let failed = |what: &str, error: *mut c_void| match error.is_null() {
        true => Ok(()),
        false => Err((INTERNAL, format!("XLA does not say {what}"))),
    };
    if api.head.struct_size >= size_of::<Api>() {
        let mut asked = OrdinalArguments { head: head(), context: frame.context, ordinal: -1 };
        asked.head.struct_size = size_of::<OrdinalArguments>();
        // SAFETY: the function is there, as the size of the table says, and fills the structure.
        failed("on which device it runs", unsafe { (api.ordinal)(&mut asked) })?;
        if i32::try_from(call.device) != Ok(asked.ordinal) {
            let what = format!("the kernels are those of device {}, and run on device {}", call.device, asked.ordinal);
            return Err((INVALID_ARGUMENT, what));
        }
    }
    let mut asked = StreamArguments { head: head(), context: frame.context, stream: ptr::null_mut() };
    // SAFETY: the function fills the structure.
    failed("on which stream it runs", unsafe { (api.stream)(&mut asked) })?;
    let addresses: SmallVec<[u64; 12]> =
        [&frame.arguments, &frame.results].into_iter().flat_map(addresses_of).collect();
    for launch in &call.launches {
        let mut arrays: SmallVec<[Array; 8]> = SmallVec::new();
        for (array, (buffer, offset)) in launch.arrays.iter().zip(&launch.places) {
            let address = addresses.get(*buffer).ok_or((INVALID_ARGUMENT, format!("there is no buffer {buffer}")))?;
            arrays.push(Array { address: address + offset, ..array.clone() });
        }
        let numbers: SmallVec<[(&str, Element, u64); 4]> =
            launch.numbers.iter().map(|(name, element, bits)| (name.as_str(), *element, *bits)).collect();
        let taken = arrays.iter().map(|array| (array, 0));
        let launched = locked(&launch.ready).launch(asked.stream as usize, taken, &numbers);
        launched.map_err(|error| (INTERNAL, error.to_string()))?;
    }
    Ok(())
}

/// The index of the call in an attribute.
fn call_of(attributes: &Attributes) -> Option<i64> {
    (0..usize::try_from(attributes.count).ok()?).find_map(|at| {
        // SAFETY: the arrays have `count` elements, by the contract of XLA; a scalar of this type
        // is an integer of 64 bits.
        unsafe {
            let name = &**attributes.names.add(at);
            let name = std::slice::from_raw_parts(name.start, name.length);
            if name != b"call" || *attributes.kinds.add(at) != SCALAR {
                return None;
            }
            let number = &*(*attributes.values.add(at)).cast::<ScalarAttribute>();
            (number.kind == SIGNED_64).then(|| *number.value.cast::<i64>())
        }
    })
}

/// The addresses of buffers.
fn addresses_of(buffers: &Buffers) -> SmallVec<[u64; 8]> {
    let count = usize::try_from(buffers.count).unwrap_or(0);
    // SAFETY: the array has `count` elements, each of which is a buffer: the only kind there is.
    (0..count).map(|at| unsafe { (**buffers.buffers.add(at)).data as u64 }).collect()
}
