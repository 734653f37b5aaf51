//! Calls of the driver's functions.
//!
//! Law: a call gives the function what its parameters ask for, and returns what the driver wrote,
//! or, where the driver refused, the symbol and the number.
//!
//! Why each call is sound:
//!
//! * Pointers to where an answer goes point to a local variable, and the driver writes there before
//!   the function returns. So does what a pointer to host memory points to: a copy is followed by a
//!   synchronisation of its stream before the borrow ends, also when the copy itself was refused.
//! * Handles are alive by the invariant of the [room](super); a null handle is an error of the
//!   driver.
//! * Device addresses are numbers. A wrong one is an error of the device, not of this process.
//! * A launch reads one value for each parameter of the kernel. [`Entry`] knows the sizes from the
//!   driver, and a launch with other sizes is refused before the call.
//! * The driver reads a text up to its zero, and machine code as far as its tables say, which lies
//!   in the bytes of a [`MachineCode`].
//! * What a kernel does with its arguments is decided by its text, which is trusted; see
//!   [`Module`](crate::Module).
//!
//! Reason for unsafe code: functions of C.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use smallvec::SmallVec;

use super::status::{Status, code};
use super::table::{
    Code, ContextHandle, DeviceHandle, EventHandle, FunctionHandle, Functions, GraphHandle, LaunchAttribute,
    LaunchConfig, LinkHandle, ModuleHandle, ReplayHandle, StreamHandle, TensorMapBytes,
};
use crate::machine_code::MachineCode;

/// The functions of a driver.
pub(crate) struct Driver {
    functions: Functions,
    version: i32,
}

/// That the driver refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) symbol: &'static str,
    pub(crate) code: Code,
}

/// A kernel and the sizes of its parameters in bytes.
pub(crate) struct Entry {
    handle: FunctionHandle,
    sizes: Box<[usize]>,
}

impl Entry {
    /// The sizes of the parameters in bytes, in order.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}

/// An argument of a launch.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    /// The first so many bytes.
    Bytes([u8; 8], usize),
    Map(&'a TensorMapBytes),
}

/// How many threads a launch has, and how they are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchSizes {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) shared_bytes: u32,
    /// May begin before the kernel before it has ended.
    pub(crate) overlaps: bool,
    /// All blocks are resident at once.
    pub(crate) cooperative: bool,
}

/// What compiling gave: the machine code, and the log.
pub(crate) struct Compiled<T> {
    pub(crate) result: Result<T, Refused>,
    pub(crate) info: String,
    pub(crate) errors: String,
}

/// What was captured: a graph, unless the capture was broken off.
pub(crate) type Captured = Option<GraphHandle>;

/// The parameters of `cuTensorMapEncodeTiled`; see [`crate::tensor_map`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TiledMap {
    pub(crate) element: c_int,
    pub(crate) address: u64,
    pub(crate) extents: SmallVec<[u64; 5]>,
    /// Of all dimensions but the first.
    pub(crate) strides: SmallVec<[u64; 5]>,
    pub(crate) boxed: SmallVec<[c_uint; 5]>,
    pub(crate) swizzle: c_int,
    pub(crate) promotion: c_int,
    pub(crate) fill: c_int,
}

/// Calls a function of the table.
macro_rules! call {
    ($driver:expr, $field:ident($($argument:expr),* $(,)?)) => {{
        let entry = $driver.functions.$field;
        // SAFETY: as the head of the file says of all calls.
        let code = unsafe { (entry.function)($($argument),*) };
        if code == code::SUCCESS { Ok(()) } else { Err(Refused { symbol: entry.symbol, code }) }
    }};
}

/// Numbers of `CUjit_option`.
mod jit {
    pub(super) const INFO_LOG: i32 = 3;
    pub(super) const INFO_LOG_BYTES: i32 = 4;
    pub(super) const ERROR_LOG: i32 = 5;
    pub(super) const ERROR_LOG_BYTES: i32 = 6;
    pub(super) const VERBOSE: i32 = 12;
    /// `CU_JIT_INPUT_PTX`.
    pub(super) const INPUT_PTX: i32 = 1;
}

/// Numbers of `CUlaunchAttributeID`.
mod attribute {
    pub(super) const COOPERATIVE: u32 = 2;
    pub(super) const CLUSTER: u32 = 4;
    pub(super) const OVERLAPS: u32 = 6;
}

/// The bytes of each log of the compiler.
const LOG_BYTES: usize = 16 << 10;

/// The logs of the compiler, and the options that ask for them.
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

    fn read<T>(self, result: Result<T, Refused>) -> Compiled<T> {
        let text = |log: &[u8]| {
            let text = CStr::from_bytes_until_nul(log).map(CStr::to_string_lossy).unwrap_or_default();
            text.trim().to_owned()
        };
        Compiled { result, info: text(&self.info), errors: text(&self.errors) }
    }
}

impl Driver {
    pub(super) fn new(functions: Functions, version: i32) -> Driver {
        Driver { functions, version }
    }

    /// The version of CUDA that the driver was made for, as it counts: 13000 is 13.0.
    pub(crate) fn version(&self) -> i32 {
        self.version
    }

    pub(super) fn init(&self) -> Result<(), Refused> {
        call!(self, init(0))
    }

    /// What the driver says about a number.
    pub(crate) fn status(&self, code: Code) -> Status {
        let text = |ask: &dyn Fn(*mut *const c_char) -> Result<(), Refused>| {
            let mut text: *const c_char = std::ptr::null();
            ask(&raw mut text).ok()?;
            // SAFETY: where it is not null, the driver gave a text that is never freed.
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

    /// The context of this thread; none where there is none.
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

    pub(crate) fn synchronize_context(&self) -> Result<(), Refused> {
        call!(self, synchronize_context())
    }

    // Memory.

    /// The bytes that are free and those that there are.
    pub(crate) fn memory_left(&self) -> Result<(u64, u64), Refused> {
        let (mut free, mut total) = (0, 0);
        call!(self, memory_left(&raw mut free, &raw mut total))?;
        Ok((free as u64, total as u64))
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64, Refused> {
        let mut address = 0;
        call!(self, allocate(&raw mut address, bytes))?;
        Ok(address)
    }

    pub(crate) fn free(&self, address: u64) -> Result<(), Refused> {
        call!(self, free(address))
    }

    /// Copies to the device, and returns when that has been done.
    pub(crate) fn to_device(&self, address: u64, from: &[u8], stream: StreamHandle) -> Result<(), Refused> {
        let copied = call!(self, to_device(address, from.as_ptr().cast(), from.len(), stream));
        let done = self.synchronize_stream(stream);
        copied.and(done)
    }

    /// Copies to the host, and returns when that has been done.
    pub(crate) fn to_host(&self, into: &mut [u8], address: u64, stream: StreamHandle) -> Result<(), Refused> {
        let copied = call!(self, to_host(into.as_mut_ptr().cast(), address, into.len(), stream));
        let done = self.synchronize_stream(stream);
        copied.and(done)
    }

    pub(crate) fn on_device(&self, into: u64, from: u64, bytes: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, on_device(into, from, bytes, stream))
    }

    pub(crate) fn set_bytes(&self, at: u64, value: u8, count: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, set_bytes(at, value, count, stream))
    }

    pub(crate) fn set_pairs(&self, at: u64, value: u16, count: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, set_pairs(at, value, count, stream))
    }

    pub(crate) fn set_words(&self, at: u64, value: u32, count: usize, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, set_words(at, value, count, stream))
    }

    // Streams, events and graphs.

    pub(crate) fn create_stream(&self) -> Result<StreamHandle, Refused> {
        /// It does not wait for the null stream, which others may use.
        const NON_BLOCKING: c_uint = 1;
        let mut stream = StreamHandle(0);
        call!(self, create_stream(&raw mut stream, NON_BLOCKING))?;
        Ok(stream)
    }

    pub(crate) fn destroy_stream(&self, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, destroy_stream(stream))
    }

    pub(crate) fn synchronize_stream(&self, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, synchronize_stream(stream))
    }

    pub(crate) fn query_stream(&self, stream: StreamHandle) -> Result<bool, Refused> {
        ready(call!(self, query_stream(stream)))
    }

    pub(crate) fn wait_event(&self, stream: StreamHandle, event: EventHandle) -> Result<(), Refused> {
        call!(self, wait_event(stream, event, 0))
    }

    pub(crate) fn begin_capture(&self, stream: StreamHandle) -> Result<(), Refused> {
        /// What other threads do meanwhile is their own affair.
        const THREAD_LOCAL: c_int = 1;
        call!(self, begin_capture(stream, THREAD_LOCAL))
    }

    pub(crate) fn end_capture(&self, stream: StreamHandle) -> Result<Captured, Refused> {
        let mut graph = GraphHandle(0);
        call!(self, end_capture(stream, &raw mut graph))?;
        Ok((graph != GraphHandle(0)).then_some(graph))
    }

    pub(crate) fn create_event(&self) -> Result<EventHandle, Refused> {
        let mut event = EventHandle(0);
        call!(self, create_event(&raw mut event, 0))?;
        Ok(event)
    }

    pub(crate) fn destroy_event(&self, event: EventHandle) -> Result<(), Refused> {
        call!(self, destroy_event(event))
    }

    pub(crate) fn record_event(&self, event: EventHandle, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, record_event(event, stream))
    }

    pub(crate) fn synchronize_event(&self, event: EventHandle) -> Result<(), Refused> {
        call!(self, synchronize_event(event))
    }

    pub(crate) fn query_event(&self, event: EventHandle) -> Result<bool, Refused> {
        ready(call!(self, query_event(event)))
    }

    /// Milliseconds between two events.
    pub(crate) fn elapsed(&self, first: EventHandle, last: EventHandle) -> Result<f32, Refused> {
        let mut milliseconds = 0.0;
        call!(self, elapsed(&raw mut milliseconds, first, last))?;
        Ok(milliseconds)
    }

    pub(crate) fn instantiate_graph(&self, graph: GraphHandle) -> Result<ReplayHandle, Refused> {
        let mut replay = ReplayHandle(0);
        call!(self, instantiate_graph(&raw mut replay, graph, 0))?;
        Ok(replay)
    }

    pub(crate) fn launch_graph(&self, replay: ReplayHandle, stream: StreamHandle) -> Result<(), Refused> {
        call!(self, launch_graph(replay, stream))
    }

    pub(crate) fn destroy_replay(&self, replay: ReplayHandle) -> Result<(), Refused> {
        call!(self, destroy_replay(replay))
    }

    pub(crate) fn destroy_graph(&self, graph: GraphHandle) -> Result<(), Refused> {
        call!(self, destroy_graph(graph))
    }

    // Modules.

    /// Loads PTX text.
    pub(crate) fn load_text(&self, text: &CStr) -> Compiled<ModuleHandle> {
        self.load_image(text.as_ptr().cast())
    }

    /// Loads machine code, all of whose parts lie in the bytes given.
    pub(crate) fn load_machine_code(&self, code: &MachineCode) -> Compiled<ModuleHandle> {
        self.load_image(code.bytes().as_ptr().cast())
    }

    fn load_image(&self, image: *const c_void) -> Compiled<ModuleHandle> {
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

    /// Compiles PTX text to machine code.
    pub(crate) fn compile(&self, text: &CStr) -> Compiled<Vec<u8>> {
        let mut logs = Logs::new();
        let result = self.link(text, &mut logs);
        logs.read(result)
    }

    fn link(&self, text: &CStr, logs: &mut Logs) -> Result<Vec<u8>, Refused> {
        let mut link = LinkHandle(0);
        let count = logs.options.len() as c_uint;
        let (options, values) = (logs.options.as_mut_ptr(), logs.values.as_mut_ptr());
        call!(self, create_link(count, options, values, &raw mut link))?;
        let complete = || {
            // The driver reads the text and its zero, and writes neither.
            let (data, bytes) = (text.as_ptr().cast_mut().cast::<c_void>(), text.to_bytes_with_nul().len());
            let name = c"kernel".as_ptr();
            call!(self, add_to_link(link, jit::INPUT_PTX, data, bytes, name, 0, null_mut(), null_mut()))?;
            let (mut image, mut bytes) = (null_mut::<c_void>(), 0);
            call!(self, complete_link(link, &raw mut image, &raw mut bytes))?;
            if image.is_null() {
                return Ok(Vec::new());
            }
            // SAFETY: the driver keeps so many bytes there until the link is destroyed.
            Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec())
        };
        let compiled = complete();
        let destroyed = call!(self, destroy_link(link));
        compiled.and_then(|image| destroyed.map(|()| image))
    }

    /// A kernel of a module and the sizes of its parameters.
    pub(crate) fn entry(&self, module: ModuleHandle, name: &CString) -> Result<Entry, Refused> {
        let mut handle = FunctionHandle(0);
        call!(self, module_function(&raw mut handle, module, name.as_ptr()))?;
        let mut sizes = Vec::new();
        // A number past the last is refused: the only way to learn how many there are.
        loop {
            let (mut offset, mut size) = (0, 0);
            match call!(self, parameter_info(handle, sizes.len(), &raw mut offset, &raw mut size)) {
                Ok(()) => sizes.push(size),
                Err(Refused { code: 1, .. }) => return Ok(Entry { handle, sizes: sizes.into() }),
                Err(refused) => return Err(refused),
            }
        }
    }

    // Kernels.

    pub(crate) fn function_attribute(&self, entry: &Entry, attribute: i32) -> Result<i32, Refused> {
        let mut value = 0;
        call!(self, function_attribute(&raw mut value, attribute, entry.handle))?;
        Ok(value)
    }

    pub(crate) fn set_function_attribute(&self, entry: &Entry, attribute: i32, value: i32) -> Result<(), Refused> {
        call!(self, set_function_attribute(entry.handle, attribute, value))
    }

    /// Launches a kernel. None where the values are not as many and as large as its parameters.
    pub(crate) fn launch(
        &self,
        entry: &Entry,
        sizes: &LaunchSizes,
        stream: StreamHandle,
        values: &[Value<'_>],
    ) -> Option<Result<(), Refused>> {
        let fits = |(value, size): (&Value<'_>, &usize)| match value {
            Value::Bytes(bytes, count) => count == size && *count <= bytes.len(),
            Value::Map(map) => size_of_val(*map) == *size,
        };
        if values.len() != entry.sizes.len() || !values.iter().zip(&entry.sizes).all(fits) {
            return None;
        }
        let mut pointers: SmallVec<[*mut c_void; 32]> = SmallVec::with_capacity(values.len());
        // The driver copies the values before the call returns, and does not write to them.
        pointers.extend(values.iter().map(|value| match value {
            Value::Bytes(bytes, _) => bytes.as_ptr().cast_mut().cast::<c_void>(),
            Value::Map(map) => (&raw const **map).cast_mut().cast::<c_void>(),
        }));
        let (attributes, count) = attributes(sizes);
        let config = config(sizes, stream, &attributes, count);
        Some(call!(self, launch(&raw const config, entry.handle, pointers.as_mut_ptr(), null_mut())))
    }

    pub(crate) fn resident_blocks(&self, entry: &Entry, threads: i32, shared_bytes: usize) -> Result<i32, Refused> {
        let mut blocks = 0;
        call!(self, resident_blocks(&raw mut blocks, entry.handle, threads, shared_bytes))?;
        Ok(blocks)
    }

    pub(crate) fn resident_clusters(&self, entry: &Entry, sizes: &LaunchSizes) -> Result<i32, Refused> {
        let mut clusters = 0;
        let (attributes, count) = attributes(sizes);
        let config = config(sizes, StreamHandle(0), &attributes, count);
        call!(self, resident_clusters(&raw mut clusters, entry.handle, &raw const config))?;
        Ok(clusters)
    }

    /// A tensor map. None where the lists differ in length: one entry a dimension, one stride
    /// fewer.
    pub(crate) fn encode_tiled(&self, map: &TiledMap) -> Option<Result<TensorMapBytes, Refused>> {
        let rank = map.extents.len();
        if rank == 0 || map.boxed.len() != rank || map.strides.len() + 1 != rank {
            return None;
        }
        let mut bytes = TensorMapBytes([0; 16]);
        // Every element of the box.
        let steps: SmallVec<[c_uint; 5]> = SmallVec::from_elem(1, rank);
        let encoded = call!(
            self,
            encode_tiled(
                &raw mut bytes,
                map.element,
                rank as c_uint,
                map.address,
                map.extents.as_ptr(),
                map.strides.as_ptr(),
                map.boxed.as_ptr(),
                steps.as_ptr(),
                0,
                map.swizzle,
                map.promotion,
                map.fill,
            )
        );
        Some(encoded.map(|()| bytes))
    }
}

/// A refusal that only says that something is not done yet.
fn ready(answer: Result<(), Refused>) -> Result<bool, Refused> {
    match answer {
        Ok(()) => Ok(true),
        Err(Refused { code: code::NOT_READY, .. }) => Ok(false),
        Err(refused) => Err(refused),
    }
}

/// The attributes of a launch, and how many of them count.
fn attributes(sizes: &LaunchSizes) -> ([LaunchAttribute; 3], u32) {
    let mut list = [LaunchAttribute { id: 0, padding: 0, value: [0; 16] }; 3];
    let mut count = 0;
    let mut set = |id: u32, values: &[u32]| {
        let Some(place) = list.get_mut(count) else { return };
        place.id = id;
        place.value.iter_mut().zip(values).for_each(|(place, value)| *place = *value);
        count += 1;
    };
    if let Some(cluster) = sizes.cluster {
        set(attribute::CLUSTER, &cluster);
    }
    if sizes.overlaps {
        set(attribute::OVERLAPS, &[1]);
    }
    if sizes.cooperative {
        set(attribute::COOPERATIVE, &[1]);
    }
    (list, count as u32)
}

fn config(sizes: &LaunchSizes, stream: StreamHandle, attributes: &[LaunchAttribute; 3], count: u32) -> LaunchConfig {
    LaunchConfig {
        grid: sizes.grid,
        block: sizes.block,
        shared_bytes: sizes.shared_bytes,
        stream,
        attributes: attributes.as_ptr(),
        attribute_count: count,
    }
}
