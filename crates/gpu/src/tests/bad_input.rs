//! Bad input of each kind: each is an error, nothing leaks, and the process continues.

use tilewright_kernel::Kernel;
use tilewright_layout::Layout;

use super::fake::{begin, books, driver_with};
use super::launches::{function, opened, scale};
use crate::device::Device;
use crate::device_tensor::DeviceTensor;
use crate::element::ElementType;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::module::ModuleOptions;
use crate::parameter::Parameter;
use crate::stream::Stream;

/// A correct launch of each kind, which shows that the refusals before did no harm. Then everything
/// is freed.
fn goes_on(device: Device, stream: Stream) {
    let mut x = DeviceTensor::filled(&stream, Layout::mode_of(6, 1).unwrap(), 1.5_f32).unwrap();
    let arguments = [(&mut x).into(), 2.0_f32.into(), 6_u32.into()];
    scale(&device).launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]), &arguments).unwrap();
    assert_eq!(x.read(&stream).unwrap().as_slice(), [3.0; 6]);
    drop((x, stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

/// Before a launch, the number of threads that the registers of a kernel allow is checked. A
/// shortage that the driver detects only at the launch is an error of the launch.
#[test]
fn more_registers_than_there_are() {
    let (device, stream) = opened();
    let list = [Parameter::read("x", ElementType::U8), Parameter::scalar("count", ElementType::U32)];
    let heavy = function(&device, "empty", &list);
    let x = device.allocate(16).unwrap();
    let arguments = [(&x).into(), 1_u32.into()];
    let most = heavy.resources().block_threads;
    let wide = Launch::new([1, 1, 1], [most + 1, 1, 1]);
    let error = heavy.launch(&stream, &wide, &arguments).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("513, and 512 is the most")), ("E0816", true), "{error}");
    // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.
    books(|books| books.fail = Some((books.trace.len() + 1, 701)));
    let trace = books(|books| books.trace.len());
    let error = heavy.launch(&stream, &Launch::new([1, 1, 1], [most, 1, 1]), &arguments).unwrap_err();
    let called = books(|books| (books.trace[trace + 1], books.fail.take()));
    assert_eq!(called.0, "cuLaunchKernelEx");
    assert_eq!(error.code(), "E0807");
    let text = error.to_string();
    assert!(text.contains("empty") && text.contains("block (512,1,1)") && text.contains("(701)"), "{text}");
    drop((heavy, x));
    goes_on(device, stream);
}

#[test]
fn more_shared_memory_than_there_is() {
    let (device, stream) = opened();
    let trap = function(&device, "trap", &[]);
    for bytes in [232_448 - 1023, 1 << 20, u32::MAX] {
        let launch = Launch::new([1, 1, 1], [32, 1, 1]).shared_bytes(bytes);
        let error = trap.launch(&stream, &launch, &[]).unwrap_err();
        assert_eq!(error.code(), "E0816");
        assert!(error.to_string().contains("shared memory of a block"), "{error}");
    }
    // A kernel that is written with layouts is refused where it is built.
    let error = Kernel::build("large", |k| {
        k.threads(32)?;
        k.shared::<f32>("65536:1").map(drop)
    });
    let text = error.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("shared memory"), "{text}");
    drop(trap);
    goes_on(device, stream);
}

/// The kernel y = x on bytes, with a thread for each element.
fn copied() -> Kernel {
    let written = Kernel::build("copied", |k| {
        let (x, y) = (k.input::<u8>("x", "N:1")?, k.output::<u8>("y", "N:1")?);
        k.threads(128)?;
        let part = x.local_tile(128, k.block("x")?)?.thread_part()?.load_predicated()?;
        y.local_tile(128, k.block("x")?)?.thread_part()?.store_predicated(&part)
    });
    written.unwrap()
}

/// A size above 32 bits: the grid and the scalar arguments of the launch follow it, and memory of
/// another size is refused. A size that no grid covers is refused too.
#[test]
fn sizes_above_two_to_the_31() {
    let driver = driver_with(|books| books.bytes = 1 << 24).unwrap();
    let device = Device::of(driver, 0).unwrap();
    let stream = device.stream().unwrap();
    let kernel = device.compile(&copied(), &ModuleOptions::default()).unwrap();
    let memory = device.allocate(1 << 20).unwrap();
    for count in [(1_i64 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) + 5, (1 << 38) - 128] {
        let sized = kernel.at(&[("N", count)]).unwrap();
        let launch = kernel.program().launch(&[("N", count)]).unwrap();
        assert_eq!(i64::from(launch.grid[0]), (count + 127) / 128, "{count}");
        let mut other = device.allocate(1 << 20).unwrap();
        let error = sized.launch(&stream, &[(&memory).into(), (&mut other).into()]).unwrap_err();
        assert_eq!(error.code(), "E0813");
        assert!(error.to_string().contains(&count.to_string()), "{error}");
    }
    let beyond = |count: i64| kernel.at(&[("N", count)]).map(drop).unwrap_err().code();
    assert_eq!([beyond(1 << 39), beyond(i64::MAX)], ["E1002"; 2]);
    assert_eq!(books(|books| books.launches), 0);
    // No device has this much memory.
    let many = DeviceTensor::filled(&stream, Layout::mode_of((1 << 33) + 1, 1).unwrap(), 1.0_f32);
    assert_eq!(many.err().map(|error| error.code()), Some("E0805"));
    drop((kernel, memory));
    goes_on(device, stream);
}

#[test]
fn a_kernel_for_another_architecture() {
    let (device, stream) = opened();
    let options = ModuleOptions::default();
    let load = |text: &str| device.load(text.as_bytes(), &options).map(drop).unwrap_err();
    for target in ["sm_100a", "sm_80a", "sm_90 elsewhere"] {
        let error = load(&format!(".version 8.0 .target {target}"));
        assert_eq!(error.code(), "E0804", "{target}: {error}");
        assert!(error.to_string().contains("compute capability 9.0"), "{error}");
    }
    goes_on(device, stream);
}

#[test]
fn a_driver_that_is_too_old() {
    for version in [0, 11_080, 12_030] {
        let error = driver_with(|books| books.version = version).err().unwrap();
        assert_eq!(error.code(), "E0802", "{version}: {error}");
        assert!(error.to_string().contains("12.4 is needed"), "{error}");
        books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
    }
    // The version of the PTX is later than the driver supports.
    let (device, stream) = opened();
    let error = device.load(b".version 99.9 .target sm_90a future", &ModuleOptions::default());
    assert_eq!(error.map(drop).unwrap_err().code(), "E0802");
    goes_on(device, stream);
}

#[test]
fn more_device_memory_than_is_free() {
    let (device, stream) = opened();
    let half = device.allocate(1 << 23).unwrap();
    let whole: Layout = "4194304:1".parse().unwrap();
    let refused: [GpuError; 2] = [
        device.allocate(1 << 24).unwrap_err(),
        DeviceTensor::filled(&stream, whole.clone(), 1.0_f32).map(drop).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.code(), "E0805", "{error}");
        assert!(error.to_string().contains("16777216 bytes of device memory were asked for"), "{error}");
    }
    drop(half);
    drop(DeviceTensor::filled(&stream, whole, 1.0_f32).map(drop));
    goes_on(device, stream);
}

#[test]
fn a_lost_device() {
    let (device, stream) = opened();
    let trap = function(&device, "trap", &[]);
    trap.launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]), &[]).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert!(error.code() == "E0807" && error.to_string().contains("trap"), "{error}");
    let one = Layout::mode_of(1, 1).unwrap();
    let errors = [
        stream.synchronize().unwrap_err(),
        device.allocate(1).unwrap_err(),
        device.stream().map(drop).unwrap_err(),
        DeviceTensor::filled(&stream, one, 0_u8).map(drop).unwrap_err(),
        trap.launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]), &[]).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), "E0806", "{error}");
        assert!(error.to_string().contains("trap"), "{error}");
    }
    drop((trap, stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
    // The process continues: the device is opened again.
    begin();
    let (device, stream) = opened();
    goes_on(device, stream);
}
