//! CUDA devices, without the CUDA toolkit.
//!
//! The driver's library is found at run time. Nothing else is needed, neither to build this crate
//! nor to use it. Without a driver or without a device, calls return an error that says so, and
//! everything else still works.
//!
//! ```
//! use tilewright_gpu::{Device, DeviceTensor, ElementType, GpuError, Launch, ModuleOptions, Parameter};
//! use tilewright_layout::Layout;
//! use tilewright_tensor::Tensor;
//!
//! /// Each element of `x` times a factor, in place.
//! const SCALE: &str = r#"
//!     .version 8.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry scale(.param .u64 x, .param .f32 factor, .param .u32 count) {
//!         .reg .pred %out; .reg .b32 %i, %block, %threads, %count; .reg .b64 %x, %at; .reg .f32 %v, %f;
//!         ld.param.u64 %x, [x]; ld.param.f32 %f, [factor]; ld.param.u32 %count, [count];
//!         mov.u32 %i, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %threads, %ntid.x;
//!         mad.lo.u32 %i, %block, %threads, %i;
//!         setp.ge.u32 %out, %i, %count;
//!         @%out bra END;
//!         cvta.to.global.u64 %x, %x;
//!         mul.wide.u32 %at, %i, 4;
//!         add.u64 %x, %x, %at;
//!         ld.global.f32 %v, [%x];
//!         mul.f32 %v, %v, %f;
//!         st.global.f32 [%x], %v;
//!     END:
//!         ret;
//!     }"#;
//!
//! fn scaled() -> Result<Tensor<f32>, GpuError> {
//!     let device = Device::open(0)?;
//!     let stream = device.stream()?;
//!     let module = device.load(SCALE.as_bytes(), &ModuleOptions::default())?;
//!     let parameters = [
//!         Parameter::write("x", ElementType::F32).at_least(6 * 4),
//!         Parameter::scalar("factor", ElementType::F32),
//!         Parameter::scalar("count", ElementType::U32),
//!     ];
//!     let scale = module.function("scale", &parameters)?;
//!
//!     let rows: Layout = "(2,3):(3,1)".parse()?;
//!     let mut x = DeviceTensor::filled(&stream, rows, 1.5_f32)?;
//!     scale.launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]), &[(&mut x).into(), 2.0_f32.into(), 6_u32.into()])?;
//!     x.read(&stream)
//! }
//!
//! match scaled() {
//!     Ok(tensor) => assert_eq!(tensor.as_slice(), [3.0; 6]),
//!     // On a machine without a device.
//!     Err(error) => assert!(["E0801", "E0802", "E0803"].contains(&error.code()), "{error}"),
//! }
//! ```
//!
//! # Where things are
//!
//! * [`Device`], [`Stream`], [`Event`], [`Graph`]: devices, the order of work on them, and its
//!   time.
//! * [`Memory`] and [`DeviceTensor`]: bytes on a device, and elements under a layout;
//!   [`BorrowedMemory`] and [`Stream::borrowed`]: memory and streams of another library;
//!   [`PeerMemory`]: memory of another device, or a part of memory. With the feature `cudarc`,
//!   slices and streams of that crate are borrowed safely.
//! * [`DeviceKernel`], [`SizedKernel`]: kernels that were built from layouts, compiled by
//!   [`Device::compile`].
//! * [`DeviceSequence`], [`SizedSequence`]: tile programs that are launched one after another,
//!   compiled by [`Device::compile_sequence`]; tensors are passed by name.
//! * [`Module`], [`Function`], [`Parameter`]: kernels from PTX or machine code, and their
//!   parameters.
//! * [`devices`]: GEMM in one call, timings, and resharding between devices.
//! * [`Launch`], [`Argument`], [`EncodedTensorMap`]: the sizes and the arguments of a launch.
//!
//! A launch returns before the kernel has run. If a kernel fails, a later call reports it and names
//! the launches that were not known to be complete. The device is then lost (E0806).

mod attributes;
mod borrowed;
mod context;
mod cublas;
#[cfg(feature = "cudarc")]
pub mod cudarc;
mod device;
mod device_kernel;
mod device_sequence;
mod device_tensor;
pub mod devices;
mod driver;
mod element;
mod error;
mod event;
mod explanation;
mod function;
mod graph;
mod launch;
mod machine_code;
mod memory;
mod module;
mod nccl;
mod parameter;
mod peer;
mod pending;
mod ptx;
mod status;
mod stream;
mod tensor_map;
#[cfg(test)]
mod tests;

pub use attributes::Attributes;
pub use borrowed::BorrowedMemory;
pub use cublas::{Cublas, CublasError, CublasMatrix, CublasProduct};
pub use device::Device;
pub use device_kernel::{DeviceKernel, SizedKernel};
pub use device_sequence::{DeviceSequence, SizedSequence};
pub use device_tensor::DeviceTensor;
pub use driver::MINIMUM_VERSION;
pub use element::{Element, ElementType};
pub use error::{GpuError, MemoryFlaw, SizeFlaw, Unfinished};
pub use event::Event;
pub use explanation::explanation;
pub use function::Function;
pub use graph::{Capture, Graph};
pub use launch::{Launch, Resources};
pub use memory::Memory;
pub use module::{Module, ModuleOptions};
pub use nccl::{Nccl, NcclError, NcclId, NcclProcess, Transfer};
pub use parameter::{Access, Argument, Parameter, ParameterKind};
pub use peer::{Lines, PeerMemory, PeerMemoryMut};
pub use status::Status;
pub use stream::Stream;
pub use tensor_map::{EncodedTensorMap, Outside, Promotion};
