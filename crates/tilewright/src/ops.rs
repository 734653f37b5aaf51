//! Operators of neural networks as tile programs, and their launch on a device.
//!
//! An operator is a struct of options. Its methods return the kernels of its forward and backward
//! passes for a machine. [`on_device`] compiles them, and a launch passes tensors by name.
//!
//! ```no_run
//! use tilewright::Layout;
//! use tilewright::gpu::{Device, DeviceTensor};
//! use tilewright::ops::{self, Operator, RmsNorm};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let norm = RmsNorm { length: 1024, weight: true, ..RmsNorm::default() };
//! let device = Device::open(0)?;
//! let stream = device.stream()?;
//!
//! // Contiguous rows of 1024 elements; the launch determines the number of rows.
//! let forward = ops::on_device(&norm.kernels(false, &device.machine()?)?, &device)?;
//! let mut forward = forward.at(&[("M", 512), ("x_pitch", 1024), ("y_pitch", 1024)])?;
//!
//! let rows: Layout = "(512,1024):(1024,1)".parse()?;
//! let x = DeviceTensor::filled(&stream, rows.clone(), 3.0_f32)?;
//! let weight = DeviceTensor::filled(&stream, "1024:1".parse::<Layout>()?, 2.0_f32)?;
//! let mut y = DeviceTensor::filled(&stream, rows, 0.0_f32)?;
//! forward.launch(&stream, &[("x", (&x).into()), ("weight", (&weight).into()), ("y", (&mut y).into())])?;
//! assert!((y.read(&stream)?.get([0, 0])? - 2.0).abs() < 1e-5);
//! # Ok(())
//! # }
//! ```
//!
//! The backward pass of the same norm has two kernels. The first writes a workspace that the second
//! reads; the caller does not see it:
//!
//! ```no_run
//! # use tilewright::gpu::{Device, DeviceTensor, GpuError, Stream};
//! # use tilewright::ops::{self, Operator, RmsNorm};
//! # fn backward(device: &Device, stream: &Stream, norm: &RmsNorm) -> Result<(), Box<dyn std::error::Error>> {
//! # let tensor = |layout: &str| -> Result<DeviceTensor<f32>, GpuError> {
//! #     DeviceTensor::filled(stream, layout.parse()?, 0.0)
//! # };
//! # let [x, d_y] = [tensor("(512,1024):(1024,1)")?, tensor("(512,1024):(1024,1)")?];
//! # let [weight, mut d_weight] = [tensor("1024:1")?, tensor("1024:1")?];
//! # let mut d_x = tensor("(512,1024):(1024,1)")?;
//! let backward = ops::on_device(&norm.kernels(true, &device.machine()?)?, device)?;
//! for tensor in backward.tensors() {
//!     println!("{tensor}"); // `x`, an input of f32 (M,1024):(x_pitch,1); ..
//! }
//! let mut backward = backward.at(&[("M", 512), ("x_pitch", 1024), ("y_pitch", 1024)])?;
//! backward.launch(
//!     stream,
//!     &[
//!         ("x", (&x).into()),
//!         ("weight", (&weight).into()),
//!         ("d_y", (&d_y).into()),
//!         ("d_x", (&mut d_x).into()),
//!         ("d_weight", (&mut d_weight).into()),
//!     ],
//! )?;
//! # Ok(())
//! # }
//! ```

use tilewright_gpu::{Device, DeviceSequence, GpuError, ModuleOptions};
pub use tilewright_ops::*;

/// The kernels of an operator, compiled for a device. Compile once and launch many times. The
/// driver keeps what it compiled, so the next process of the user only loads it.
///
/// ```no_run
/// use tilewright::gpu::Device;
/// use tilewright::ops::{self, Operator, Softmax};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let softmax = Softmax { length: 4096, ..Softmax::default() };
/// let device = Device::open(0)?;
/// let forward = ops::on_device(&softmax.kernels(false, &device.machine()?)?, &device)?;
/// assert_eq!(forward.sizes(), ["M", "x_pitch", "y_pitch"]);
/// # Ok(())
/// # }
/// ```
///
/// Errors: as [`OperatorKernels::joined`] and [`Device::compile_kernels`].
pub fn on_device(kernels: &OperatorKernels, device: &Device) -> Result<DeviceSequence, GpuError> {
    device.compile_kernels(kernels.joined()?, &ModuleOptions::default())
}
