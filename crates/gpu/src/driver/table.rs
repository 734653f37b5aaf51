//! The driver's functions, as C declares them.
//!
//! Law: a [`Functions`] is complete. Every field is the function of the driver's library that is
//! exported under the symbol beside it, with the parameters that the driver's header declares for
//! that symbol. The suffixes `_v2` are part of the symbols: the driver keeps the old form of a
//! function under the old symbol forever, so a symbol determines the parameters. (That is why
//! `cuGetProcAddress` is not used: it chooses among these forms by a version, and here the symbol
//! has chosen.)
//!
//! Handles are numbers of pointer width, which C passes like pointers. So they may move between
//! threads, as the driver allows.
//!
//! Reason for unsafe code: an address is cast to a function.
//!
//! (CUDA driver API, `cuda.h` of CUDA 12.4.)
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use crate::status::Code;

/// A function, and the symbol under which it is exported.
#[derive(Clone, Copy)]
pub(crate) struct DriverSymbol<F> {
    pub(crate) symbol: &'static str,
    pub(crate) function: F,
}

/// `CUDA_MEMCPY2D`: lines of bytes. Each side has the distance between lines.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CopyLines {
    pub(crate) from: PitchedSide,
    pub(crate) to: PitchedSide,
    pub(crate) bytes: usize,
    pub(crate) count: usize,
}

/// One side of such a copy.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PitchedSide {
    pub(crate) x: usize,
    pub(crate) y: usize,
    /// `CUmemorytype`.
    pub(crate) kind: c_uint,
    pub(crate) host: usize,
    pub(crate) device: u64,
    pub(crate) array: usize,
    pub(crate) step: usize,
}

/// `CU_MEMORYTYPE_DEVICE`.
pub(crate) const ON_DEVICE: c_uint = 2;

macro_rules! handles {
    ($($(#[$about:meta])* $name:ident($inner:ty);)+) => {$(
        $(#[$about])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) struct $name(pub(super) $inner);
    )+};
}

handles! {
    /// `CUdevice`.
    DeviceHandle(c_int);
    /// `CUcontext`.
    ContextHandle(usize);
    /// `CUstream`.
    StreamHandle(usize);
    /// `CUevent`.
    EventHandle(usize);
    /// `CUmodule`.
    ModuleHandle(usize);
    /// `CUfunction`.
    FunctionHandle(usize);
    /// `CUgraph`.
    GraphHandle(usize);
    /// `CUgraphExec`.
    ReplayHandle(usize);
}

#[cfg(feature = "cudarc")]
impl ContextHandle {
    /// Whether it has the value of another library's handle.
    pub(crate) fn is(self, handle: usize) -> bool {
        self.0 == handle
    }
}

impl StreamHandle {
    /// The handle of a stream of another library; 0 is the default stream.
    ///
    /// # Safety
    ///
    /// The handle is 0, or a `CUstream` that lives as long as the result is used.
    pub(crate) unsafe fn foreign(handle: usize) -> StreamHandle {
        StreamHandle(handle)
    }
}

/// `CUlaunchAttribute`: the number of an attribute, and 64 bytes with its value.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_uint,
    pub(crate) padding: c_uint,
    pub(crate) value: [c_uint; 16],
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: StreamHandle,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUtensorMap`: 128 opaque bytes.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
pub(crate) struct TensorMapBytes(pub(crate) [u64; 16]);

macro_rules! functions {
    ($($field:ident: $symbol:literal($($kind:ty),* $(,)?);)+) => {
        /// The driver functions that this crate uses.
        pub(crate) struct Functions {
            $(pub(super) $field: DriverSymbol<unsafe extern "C" fn($($kind),*) -> Code>,)+
        }

        impl Functions {
            /// Casts the addresses that `find` returns to functions; or returns the first symbol
            /// that has no address.
            ///
            /// # Safety
            ///
            /// An address that `find` returns is that of the driver's function of that name, or of
            /// one with the same parameters, and stays valid as long as the program runs.
            pub(crate) unsafe fn resolve(
                find: impl Fn(&'static str) -> Option<NonNull<c_void>>,
            ) -> Result<Functions, &'static str> {
                Ok(Functions {$(
                    $field: {
                        let address = find($symbol).ok_or($symbol)?;
                        // SAFETY: the caller guarantees that the address is that of this function,
                        // whose parameters are those of the header.
                        let function = unsafe {
                            std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($kind),*) -> Code>(address)
                        };
                        DriverSymbol { symbol: $symbol, function }
                    },
                )+})
            }
        }

        /// All symbols.
        #[cfg(test)]
        pub(crate) const SYMBOLS: &[&str] = &[$($symbol),+];
    };
}

functions! {
    init: "cuInit"(c_uint);
    error_name: "cuGetErrorName"(Code, *mut *const c_char);
    error_words: "cuGetErrorString"(Code, *mut *const c_char);
    device_count: "cuDeviceGetCount"(*mut c_int);
    device: "cuDeviceGet"(*mut DeviceHandle, c_int);
    device_name: "cuDeviceGetName"(*mut c_char, c_int, DeviceHandle);
    device_attribute: "cuDeviceGetAttribute"(*mut c_int, c_int, DeviceHandle);
    device_memory: "cuDeviceTotalMem_v2"(*mut usize, DeviceHandle);
    retain_primary: "cuDevicePrimaryCtxRetain"(*mut ContextHandle, DeviceHandle);
    release_primary: "cuDevicePrimaryCtxRelease_v2"(DeviceHandle);
    current: "cuCtxGetCurrent"(*mut ContextHandle);
    set_current: "cuCtxSetCurrent"(ContextHandle);
    push_current: "cuCtxPushCurrent_v2"(ContextHandle);
    pop_current: "cuCtxPopCurrent_v2"(*mut ContextHandle);
    synchronize_context: "cuCtxSynchronize"();
    enable_peer: "cuCtxEnablePeerAccess"(ContextHandle, c_uint);
    memory_left: "cuMemGetInfo_v2"(*mut usize, *mut usize);
    allocate: "cuMemAlloc_v2"(*mut u64, usize);
    free: "cuMemFree_v2"(u64);
    to_device: "cuMemcpyHtoDAsync_v2"(u64, *const c_void, usize, StreamHandle);
    to_host: "cuMemcpyDtoHAsync_v2"(*mut c_void, u64, usize, StreamHandle);
    on_device: "cuMemcpyDtoDAsync_v2"(u64, u64, usize, StreamHandle);
    copy_lines: "cuMemcpy2DAsync_v2"(*const CopyLines, StreamHandle);
    set_bytes: "cuMemsetD8Async"(u64, u8, usize, StreamHandle);
    set_pairs: "cuMemsetD16Async"(u64, u16, usize, StreamHandle);
    set_words: "cuMemsetD32Async"(u64, c_uint, usize, StreamHandle);
    create_stream: "cuStreamCreateWithPriority"(*mut StreamHandle, c_uint, c_int);
    destroy_stream: "cuStreamDestroy_v2"(StreamHandle);
    synchronize_stream: "cuStreamSynchronize"(StreamHandle);
    query_stream: "cuStreamQuery"(StreamHandle);
    stream_number: "cuStreamGetId"(StreamHandle, *mut u64);
    capture_of: "cuStreamGetCaptureInfo_v2"(
        StreamHandle, *mut c_int, *mut u64, *mut GraphHandle, *mut *const c_void, *mut usize
    );
    wait_event: "cuStreamWaitEvent"(StreamHandle, EventHandle, c_uint);
    begin_capture: "cuStreamBeginCapture_v2"(StreamHandle, c_int);
    end_capture: "cuStreamEndCapture"(StreamHandle, *mut GraphHandle);
    create_event: "cuEventCreate"(*mut EventHandle, c_uint);
    destroy_event: "cuEventDestroy_v2"(EventHandle);
    record_event: "cuEventRecord"(EventHandle, StreamHandle);
    synchronize_event: "cuEventSynchronize"(EventHandle);
    query_event: "cuEventQuery"(EventHandle);
    elapsed: "cuEventElapsedTime"(*mut f32, EventHandle, EventHandle);
    instantiate_graph: "cuGraphInstantiateWithFlags"(*mut ReplayHandle, GraphHandle, u64);
    launch_graph: "cuGraphLaunch"(ReplayHandle, StreamHandle);
    destroy_replay: "cuGraphExecDestroy"(ReplayHandle);
    destroy_graph: "cuGraphDestroy"(GraphHandle);
    load_module: "cuModuleLoadDataEx"(*mut ModuleHandle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    unload_module: "cuModuleUnload"(ModuleHandle);
    module_function: "cuModuleGetFunction"(*mut FunctionHandle, ModuleHandle, *const c_char);
    function_attribute: "cuFuncGetAttribute"(*mut c_int, c_int, FunctionHandle);
    set_function_attribute: "cuFuncSetAttribute"(FunctionHandle, c_int, c_int);
    parameter_info: "cuFuncGetParamInfo"(FunctionHandle, usize, *mut usize, *mut usize);
    launch: "cuLaunchKernelEx"(*const LaunchConfig, FunctionHandle, *mut *mut c_void, *mut *mut c_void);
    resident_blocks: "cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut c_int, FunctionHandle, c_int, usize);
    resident_clusters: "cuOccupancyMaxActiveClusters"(*mut c_int, FunctionHandle, *const LaunchConfig);
    encode_tiled: "cuTensorMapEncodeTiled"(
        *mut TensorMapBytes, c_int, c_uint, u64, *const u64, *const u64, *const c_uint, *const c_uint,
        c_int, c_int, c_int, c_int
    );
}

#[cfg(test)]
mod tests {
    use std::mem::{align_of, offset_of};

    use super::*;

    /// Law: the structures have the sizes and offsets of the header, on a machine with 64-bit
    /// pointers.
    #[test]
    fn structures_are_those_of_the_header() {
        assert_eq!((size_of::<LaunchAttribute>(), offset_of!(LaunchAttribute, value)), (72, 8));
        assert_eq!((size_of::<LaunchConfig>(), offset_of!(LaunchConfig, stream)), (56, 32));
        assert_eq!(offset_of!(LaunchConfig, attributes), 40);
        assert_eq!((size_of::<TensorMapBytes>(), align_of::<TensorMapBytes>()), (128, 128));
    }
}
