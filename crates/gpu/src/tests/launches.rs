//! Launches: what is refused before the driver is called, what the driver is called with, and
//! errors that are reported later.

use std::sync::Arc;

use tilewright_layout::Layout;
use tilewright_layout::atoms::{SwizzleMode, TensorMap};

use super::allocations;
use super::fake::{Launched, books, driver_with};
use crate::device::Device;
use crate::device_tensor::DeviceTensor;
use crate::driver::Driver;
use crate::element::ElementType;
use crate::error::GpuError;
use crate::function::Function;
use crate::graph::Graph;
use crate::launch::Launch;
use crate::module::ModuleOptions;
use crate::parameter::{Access, Argument, Parameter};
use crate::peer::Lines;
use crate::stream::Stream;
use crate::tensor_map::{EncodedTensorMap, Outside, Promotion};

pub(super) const TEXT: &str = ".version 8.0 .target sm_80
    .entry scale(.param .u64 x, .param .f32 factor, .param .u32 count) {}
    .entry add(.param .u64 x, .param .u64 y, .param .u64 out) {}
    .entry load(.param .align 64 .b8 map[128], .param .u16 half) {}
    .entry trap() {}
    .entry empty(.param .u64 x, .param .u32 count) {}";

pub(super) fn opened() -> (Device, Stream) {
    opened_with(|_| {})
}

fn opened_with(change: impl FnOnce(&mut super::fake::Books)) -> (Device, Stream) {
    opened_at(&driver_with(change).unwrap(), 0)
}

/// One of the devices of a driver.
fn opened_at(driver: &Arc<Driver>, ordinal: usize) -> (Device, Stream) {
    let device = Device::of(driver.clone(), ordinal).unwrap();
    let stream = device.stream().unwrap();
    (device, stream)
}

pub(super) fn function(device: &Device, name: &str, parameters: &[Parameter]) -> Function {
    let options = ModuleOptions::default();
    device.load(TEXT.as_bytes(), &options).unwrap().function(name, parameters).unwrap()
}

pub(super) fn scale(device: &Device) -> Function {
    let parameters = [
        Parameter::write("x", ElementType::F32).at_least(24).aligned(16),
        Parameter::scalar("factor", ElementType::F32),
        Parameter::scalar("count", ElementType::U32),
    ];
    function(device, "scale", &parameters)
}

fn vector(stream: &Stream, count: i64, value: f32) -> DeviceTensor<f32> {
    DeviceTensor::filled(stream, Layout::mode_of(count, 1).unwrap(), value).unwrap()
}

fn last() -> Launched {
    books(|books| books.last.clone()).expect("a launch")
}

#[test]
fn a_kernel_gets_its_arguments() {
    let (device, stream) = opened();
    let scale = scale(&device);
    let mut x = vector(&stream, 6, 1.5);
    let launch = Launch::new([3, 2, 1], [32, 4, 2]).cluster([3, 1, 1]).shared_bytes(100).overlapping().cooperative();
    scale.launch(&stream, &launch, &[(&mut x).into(), 2.0_f32.into(), 5_u32.into()]).unwrap();
    assert_eq!(x.read(&stream).unwrap().as_slice(), [3.0, 3.0, 3.0, 3.0, 3.0, 1.5]);
    let launched = last();
    assert_eq!((launched.grid, launched.block, launched.shared_bytes), ([3, 2, 1], [32, 4, 2], 100));
    // Cluster, programmatic serialisation, cooperative: the attribute numbers of the driver's
    // header.
    assert_eq!(launched.attributes, [(4, [3, 1, 1]), (6, [1, 0, 0]), (2, [1, 0, 0])]);
    let arguments = [&x.address().to_ne_bytes()[..], &2.0_f32.to_ne_bytes(), &5_u32.to_ne_bytes()];
    assert_eq!(launched.arguments, arguments);
    drop((x, scale, stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

/// The error, and a check that the driver was not called.
fn refused(result: Result<(), GpuError>) -> (String, String) {
    let error = result.unwrap_err();
    assert_eq!(books(|books| books.launches), 0, "{error}");
    (error.code().into(), error.to_string())
}

#[test]
fn arguments_are_compared_with_the_list() {
    let (device, stream) = opened();
    let scale = scale(&device);
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let mut x = vector(&stream, 6, 1.0);
    let wrong = |arguments: &[Argument<'_>], code: &str, part: &str| {
        let (found, text) = refused(scale.launch(&stream, &launch, arguments));
        assert!(found == code && text.contains(part), "{text}");
    };
    let (factor, count) = (Argument::from(2.0_f32), Argument::from(6_u32));
    wrong(&[], "E0812", "scale has 3 parameters, but the list has 0 arguments");
    wrong(&[(&mut x).into(), factor], "E0812", "2 arguments");
    wrong(
        &[(&x).into(), factor, count],
        "E0812",
        "memory of f32 that is written, but there is memory of f32 that may only",
    );
    wrong(
        &[(&mut x).into(), count, count],
        "E0812",
        "parameter 1 of scale, `factor`, is a number of type f32, but there is a number of type u32",
    );
    wrong(&[factor, factor, count], "E0812", "parameter 0");
    wrong(&[(&mut x).into(), factor, 6_i32.into()], "E0812", "type s32");
    let mut integers = DeviceTensor::filled(&stream, "6:1".parse::<Layout>().unwrap(), 0_u32).unwrap();
    wrong(&[(&mut integers).into(), factor, count], "E0812", "memory of u32");
    let mut short = vector(&stream, 5, 1.0);
    wrong(&[(&mut short).into(), factor, count], "E0813", "`x` of scale takes 24 bytes, but the memory has 20");
    // Element 0 is one element after the beginning of the memory.
    let mut shifted =
        DeviceTensor::filled(&stream, "(2,7):(-1,1)".parse::<Layout>().unwrap().coalesce().unwrap(), 0.0_f32);
    assert_eq!(shifted.as_mut().unwrap_err().code(), "E0402");
    let mut shifted = DeviceTensor::filled(&stream, "(2,4):(-1,2)".parse::<Layout>().unwrap(), 0.0_f32).unwrap();
    wrong(&[(&mut shifted).into(), factor, count], "E0813", "which is no multiple of 16");
    let mut untyped = device.allocate(24).unwrap();
    assert!(scale.launch(&stream, &launch, &[(&mut untyped).into(), factor, count]).is_ok());
}

#[test]
fn memory_that_is_written_is_an_argument_once() {
    let (device, stream) = opened();
    let list = [
        Parameter::read("x", ElementType::F32),
        Parameter::read("y", ElementType::F32),
        Parameter::write("out", ElementType::F32),
    ];
    let add = function(&device, "add", &list);
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let (x, mut out) = (vector(&stream, 6, 1.0), vector(&stream, 6, 1.0));
    let out = Argument::from(&mut out);
    let (code, text) = refused(add.launch(&stream, &launch, &[(&x).into(), out, out]));
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("E0815", "`y` and `out` of add share memory, and one of them is written")
    );
    assert_eq!(refused(add.launch(&stream, &launch, &[out, (&x).into(), out])).0, "E0815");
    assert!(add.launch(&stream, &launch, &[(&x).into(), (&x).into(), out]).is_ok());
}

#[test]
fn memory_of_another_device_is_read_where_it_is_seen() {
    let driver = driver_with(|books| books.devices = 2).unwrap();
    let ((device, stream), (second, other)) = (opened_at(&driver, 0), opened_at(&driver, 1));
    let list = [
        Parameter::read("x", ElementType::F32),
        Parameter::read("y", ElementType::F32),
        Parameter::write("out", ElementType::F32),
    ];
    let add = function(&device, "add", &list);
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let (own, remote, mut out) = (vector(&stream, 6, 1.0), vector(&other, 6, 2.0), vector(&stream, 6, 0.0));
    // The memory may be read, but not written.
    let seen = remote.memory().seen_by(&device).unwrap();
    let refused = refused(add.launch(&stream, &launch, &[(&own).into(), (&own).into(), (&seen).into()]));
    assert_eq!(refused.0, "E0812");
    // Peer access is enabled once, although it is requested twice.
    for _ in 0..2 {
        let (own, remote) = (own.memory().seen_by(&device).unwrap(), remote.memory().seen_by(&device).unwrap());
        add.launch(&stream, &launch, &[(&own).into(), (&remote).into(), (&mut out).into()]).unwrap();
    }
    let address = remote.memory().address();
    books(|books| {
        let last = books.last.as_ref().unwrap();
        assert_eq!((books.peers.len(), last.arguments[1].as_slice()), (1, address.to_ne_bytes().as_slice()));
    });
    let enable_calls = || books(|books| books.trace.iter().filter(|call| **call == "cuCtxEnablePeerAccess").count());
    assert_eq!(enable_calls(), 1);
    // After a device is closed and opened again, peer access must be enabled again.
    drop((remote, other, second));
    let (_again, other) = opened_at(&driver, 1);
    vector(&other, 6, 2.0).memory().seen_by(&device).unwrap();
    assert_eq!(enable_calls(), 2);
}

#[test]
fn lines_and_parts_of_memory_of_another_device() {
    let driver = driver_with(|books| books.devices = 2).unwrap();
    let ((device, stream), (second, other)) = (opened_at(&driver, 0), opened_at(&driver, 1));
    let (mut here, mut there) = (device.allocate(64).unwrap(), second.allocate(64).unwrap());
    let numbers: Vec<u8> = (0..64).collect();
    there.write(&other, 0, &numbers).unwrap();
    here.write(&stream, 0, &[255; 64]).unwrap();
    // Three lines of 4 bytes: read 16 bytes apart, and written adjacently after the first 8 bytes.
    let lines = Lines { count: 3, bytes: 4, read: 16, written: 4 };
    let from = there.seen_by(&device).unwrap().part(2, 40).unwrap();
    here.written_by(&device).unwrap().part(8, 12).unwrap().copy_lines(&stream, &from, lines).unwrap();
    let mut bytes = [0; 64];
    here.read(&stream, 0, &mut bytes).unwrap();
    assert_eq!(bytes[8..20], [2, 3, 4, 5, 18, 19, 20, 21, 34, 35, 36, 37]);
    assert!(bytes[..8].iter().chain(&bytes[20..]).all(|byte| *byte == 255));
    // A copy to the memory of the other device, in one piece.
    let own = here.seen_by(&device).unwrap().part(8, 4).unwrap();
    there.written_by(&device).unwrap().part(60, 4).unwrap().copy_from(&stream, &own).unwrap();
    there.read(&other, 0, &mut bytes).unwrap();
    assert_eq!(bytes[60..], [2, 3, 4, 5]);
    // Copies that do not fit, that overlap, or whose memory is on another device are refused.
    let refused = |lines: Lines| {
        let from = there.seen_by(&device).unwrap();
        let mut into = device.allocate(12).unwrap();
        into.written_by(&device).unwrap().copy_lines(&stream, &from, lines).unwrap_err().code()
    };
    for lines in [Lines { count: 4, ..lines }, Lines { read: 31, ..lines }, Lines { written: 3, ..lines }] {
        assert_eq!(refused(lines), "E0813", "{lines:?}");
    }
    assert_eq!(there.seen_by(&device).unwrap().part(60, 5).unwrap_err().code(), "E0813");
    let (seen, mut own) = (there.seen_by(&second).unwrap(), device.allocate(64).unwrap());
    let mut into = own.written_by(&device).unwrap();
    assert_eq!(into.copy_from(&stream, &seen).unwrap_err().code(), "E0814");
    assert_eq!(into.copy_lines(&other, &seen, lines).unwrap_err().code(), "E0814");
}

#[test]
fn things_of_another_device_are_refused() {
    let driver = driver_with(|books| books.devices = 2).unwrap();
    let ((device, stream), (second, other)) = (opened_at(&driver, 0), opened_at(&driver, 1));
    let scale = scale(&device);
    let launch = Launch::new([1, 1, 1], [1, 1, 1]);
    let (mut x, mut remote) = (vector(&stream, 6, 0.0), vector(&other, 6, 0.0));
    let numbers = [2.0_f32.into(), 6_u32.into()];
    let (code, text) = refused(scale.launch(&stream, &launch, &[(&mut remote).into(), numbers[0], numbers[1]]));
    assert_eq!((code.as_str(), text.as_str()), ("E0814", "an argument is of device 1, but device 0 is wanted"));
    assert_eq!(refused(scale.launch(&other, &launch, &[(&mut x).into(), numbers[0], numbers[1]])).0, "E0814");
    assert_eq!(x.read(&other).unwrap_err().code(), "E0814");
    let event = second.event().unwrap();
    assert_eq!(stream.record(&event).unwrap_err().code(), "E0814");
    // Streams can wait for events of any device.
    stream.wait(&event).unwrap();
    assert_eq!(event.seconds_since(&device.event().unwrap()).unwrap_err().code(), "E0814");
    // The same device, opened again, counts as the same.
    let (_again, stream) = opened_at(&driver, 0);
    assert!(scale.launch(&stream, &launch, &[(&mut x).into(), numbers[0], numbers[1]]).is_ok());
}

#[test]
fn sizes_are_within_their_limits() {
    let (device, stream) = opened();
    let trap = function(&device, "trap", &[]);
    let refuse = |launch: Launch, part: &str| {
        let error = trap.launch(&stream, &launch, &[]).unwrap_err();
        assert_eq!(books(|books| books.launches), 0, "{error}");
        assert!(error.code() == "E0816" && error.to_string().contains(part), "{error}");
    };
    let one = [1, 1, 1];
    for mode in 0..3 {
        let mut extents = one;
        extents[mode] = 0;
        refuse(Launch::new(extents, one), "an extent of the grid is 0");
        refuse(Launch::new(one, extents), "an extent of the block is 0");
        refuse(Launch::new(one, one).cluster(extents), "an extent of the cluster is 0");
    }
    refuse(Launch::new([1 << 31, 1, 1], one), "the grid along x is 2147483648, and 2147483647 is the most");
    refuse(Launch::new([1, 65536, 1], one), "the grid along y is 65536");
    refuse(Launch::new([1, 1, 65536], one), "the grid along z is 65536");
    refuse(Launch::new(one, [1025, 1, 1]), "the block along x is 1025");
    refuse(Launch::new(one, [1, 1025, 1]), "the block along y is 1025");
    refuse(Launch::new(one, [1, 1, 65]), "the block along z is 65");
    // The kernel of the fake has at most 512 threads, and declares 1024 bytes of shared memory.
    refuse(Launch::new(one, [513, 1, 1]), "threads of a block is 513, and 512 is the most");
    refuse(Launch::new(one, [32, 17, 1]), "threads of a block is 544");
    refuse(Launch::new(one, one).shared_bytes(232_448 - 1023), "shared memory of a block is 232449, and 232448");
    refuse(Launch::new(one, one).shared_bytes(u32::MAX), "shared memory");
    refuse(Launch::new([34, 1, 1], one).cluster([17, 1, 1]), "blocks of a cluster is 17, and 16 is the most");
    refuse(Launch::new([4, 3, 1], one).cluster([2, 2, 1]), "clusters of 2 do not divide the 3 blocks along y");
    refuse(Launch::new(one, one).cluster([u32::MAX, u32::MAX, u32::MAX]), "blocks of a cluster");
    drop((trap, stream, device));
    for (attribute, launch, part) in [
        (120, Launch::new(one, one).cluster(one), "the device has no clusters"),
        (95, Launch::new(one, one).cooperative(), "the device has no cooperative launches"),
    ] {
        let (device, stream) = opened_with(|books| books.attributes.extend([(attribute, 0)]));
        let error = function(&device, "trap", &[]).launch(&stream, &launch, &[]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// More than 48 KiB of shared memory, and more than eight blocks of a cluster, are enabled once,
/// when they are first requested.
#[test]
fn what_a_kernel_must_be_allowed_is_allowed_once() {
    let (device, stream) = opened();
    let add = function(
        &device,
        "empty",
        &[Parameter::read("x", ElementType::U8), Parameter::scalar("count", ElementType::U32)],
    );
    let x = device.allocate(1).unwrap();
    let arguments = [(&x).into(), 1_u32.into()];
    let launch = |shared: u32, cluster: u32| {
        let launch = Launch::new([16, 1, 1], [32, 1, 1]).shared_bytes(shared).cluster([cluster, 1, 1]);
        add.launch(&stream, &launch, &arguments).unwrap();
        books(|books| {
            (books.trace.iter().filter(|call| **call == "cuFuncSetAttribute").count(), books.attributes.clone())
        })
    };
    // The kernel declares 1024 bytes itself.
    assert_eq!(launch(47 << 10, 8).0, 0);
    let (count, attributes) = launch(50_000, 8);
    assert_eq!((count, attributes.get(&1008)), (1, Some(&50_000)));
    assert_eq!(launch(49_999, 8).0, 1);
    let (count, attributes) = launch(231_424, 16);
    assert_eq!((count, attributes.get(&1008), attributes.get(&1014)), (3, Some(&231_424), Some(&1)));
    assert_eq!(launch(231_424, 16).0, 3);
}

#[test]
fn occupancy_is_the_drivers() {
    let (device, _stream) = opened();
    let trap = function(&device, "trap", &[]);
    assert_eq!(trap.resident_blocks(&Launch::new([1, 1, 1], [16, 8, 1])).unwrap(), 16);
    assert_eq!(trap.resident_clusters(&Launch::new([4, 1, 1], [32, 1, 1]).cluster([2, 1, 1])).unwrap(), 66);
    assert_eq!(trap.resident_clusters(&Launch::new([4, 1, 1], [32, 1, 1])).unwrap(), 132);
    assert_eq!(trap.resident_blocks(&Launch::new([1, 1, 1], [0, 1, 1])).unwrap_err().code(), "E0816");
    assert_eq!((trap.resources().registers, trap.resources().block_threads, trap.resources().cluster), (32, 512, None));
}

/// In the steady state, a launch allocates no host memory.
#[test]
fn a_launch_allocates_nothing() {
    let (device, stream) = opened();
    let list = [Parameter::write("x", ElementType::F32), Parameter::scalar("count", ElementType::U32)];
    let empty = function(&device, "empty", &list);
    let mut x = vector(&stream, 6, 1.0);
    let launch = Launch::new([64, 1, 1], [256, 1, 1]).cluster([2, 1, 1]);
    let arguments = [(&mut x).into(), 6_u32.into()];
    let launches = |count| (0..count).for_each(|_| empty.launch(&stream, &launch, &arguments).unwrap());
    launches(10);
    assert_eq!(allocations::during(|| launches(1000)), 0);
    assert!(allocations::during(|| drop(vec![1])) > 0);
}

#[test]
fn a_kernel_that_fails_is_named_later() {
    let (device, stream) = opened();
    let (trap, scale) = (function(&device, "trap", &[]), scale(&device));
    let mut x = vector(&stream, 6, 1.0);
    trap.launch(&stream, &Launch::new([7, 1, 1], [32, 1, 1]), &[]).unwrap();
    scale
        .launch(&stream, &Launch::new([1, 1, 1], [64, 1, 1]), &[(&mut x).into(), 1.0_f32.into(), 6_u32.into()])
        .unwrap();
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.code(), "E0807");
    let text = error.to_string();
    let launches = "trap, grid (7,1,1), block (32,1,1), 0 bytes of shared memory; scale, grid (1,1,1), block (64,1,1)";
    assert!(text.contains("CUDA_ERROR_OF_A_TEST (719)") && text.contains(launches), "{text}");
    // After that, the driver is not called, and every call returns an error with the reason.
    let calls = books(|books| books.trace.len());
    for error in [
        stream.synchronize().unwrap_err(),
        x.read(&stream).unwrap_err(),
        device.allocate(8).unwrap_err(),
        scale
            .launch(&stream, &Launch::new([1, 1, 1], [1, 1, 1]), &[(&mut x).into(), 1.0_f32.into(), 6_u32.into()])
            .unwrap_err(),
    ] {
        assert_eq!(error.code(), "E0806");
        assert!(error.to_string().contains("trap, grid (7,1,1)"), "{error}");
    }
    assert_eq!(books(|books| books.trace.len()), calls);
    // When everything is freed, the device can be opened again.
    let driver = device.context().driver().version();
    drop((trap, scale, x, stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
    assert_eq!(driver, 13_000);
}

/// Modules that are dropped after a launch are unloaded when the launch has completed; the fake
/// driver checks this.
#[test]
fn kernels_that_run_keep_their_code() {
    let (device, stream) = opened();
    let mut x = vector(&stream, 6, 1.0);
    for _ in 0..8 {
        let arguments = [(&mut x).into(), 2.0_f32.into(), 6_u32.into()];
        scale(&device).launch(&stream, &Launch::new([1, 1, 1], [32, 1, 1]), &arguments).unwrap();
    }
    {
        let (scale, arguments) = (scale(&device), [(&mut x).into(), 0.5_f32.into(), 6_u32.into()]);
        let launch = Launch::new([1, 1, 1], [32, 1, 1]);
        let graph = Graph::capture(&stream, |capture| capture.launch(&scale, &launch, &arguments)).unwrap();
        graph.launch(&stream).unwrap();
    }
    assert_eq!(x.read(&stream).unwrap().as_slice(), [128.0; 6]);
}

/// Launches that were already synchronised with, in whatever way, are not named in errors.
#[test]
fn launches_that_are_done_are_forgotten() {
    let waits: [fn(&Stream, &DeviceTensor<f32>); 3] = [
        |stream, _| stream.synchronize().unwrap(),
        |stream, x| drop(x.read(stream).unwrap()),
        |stream, _| assert!(stream.is_done().unwrap()),
    ];
    for wait in waits {
        let (device, stream) = opened();
        let (trap, scale) = (function(&device, "trap", &[]), scale(&device));
        let mut x = vector(&stream, 6, 1.0);
        let launch = Launch::new([1, 1, 1], [32, 1, 1]);
        scale.launch(&stream, &launch, &[(&mut x).into(), 1.0_f32.into(), 6_u32.into()]).unwrap();
        wait(&stream, &x);
        trap.launch(&stream, &launch, &[]).unwrap();
        let text = stream.synchronize().unwrap_err().to_string();
        assert!(text.contains("Not known to be done: trap, grid (1,1,1)") && !text.contains("scale"), "{text}");
    }
}

#[test]
fn the_last_launches_of_many_are_named() {
    let (device, stream) = opened();
    let trap = function(&device, "trap", &[]);
    for number in 1..=10 {
        trap.launch(&stream, &Launch::new([number, 1, 1], [1, 1, 1]), &[]).unwrap();
    }
    let GpuError::LaunchFailed { refused: None, unfinished, status } = stream.synchronize().unwrap_err() else {
        panic!()
    };
    assert_eq!((unfinished.launches.len(), unfinished.earlier, status.code()), (4, 6, 719));
    assert!(unfinished.launches[0].contains("grid (7,1,1)") && unfinished.launches[3].contains("grid (10,1,1)"));
}

#[test]
fn graphs_replay_their_launches() {
    let (device, stream) = opened();
    let scale = scale(&device);
    let mut x = vector(&stream, 6, 1.0);
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    {
        let arguments = [(&mut x).into(), 2.0_f32.into(), 6_u32.into()];
        let graph =
            Graph::capture(&stream, |capture| (0..3).try_for_each(|_| capture.launch(&scale, &launch, &arguments)))
                .unwrap();
        assert_eq!((graph.len(), books(|books| books.launches)), (3, 0));
        graph.launch(&stream).unwrap();
        graph.launch(&stream).unwrap();
    }
    assert_eq!(x.read(&stream).unwrap().as_slice(), [64.0; 6]);
    // A failure inside of a capture ends the capture.
    let refused = Graph::capture(&stream, |capture| capture.launch(&scale, &launch, &[]));
    assert_eq!(refused.unwrap_err().code(), "E0812");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = Graph::capture(&stream, |_| panic!("as the test wants"));
    }));
    assert!(caught.is_err());
    assert!(Graph::capture(&stream, |_| Ok(())).unwrap().is_empty());
    drop((x, scale, stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

#[test]
fn tensor_maps_are_arguments() {
    let (device, stream) = opened();
    let list = [Parameter::tensor_map("map", Access::Write), Parameter::scalar("half", ElementType::U16)];
    let load = function(&device, "load", &list);
    let rows: Layout = "(1024,512):(512,1)".parse().unwrap();
    let mut tensor = DeviceTensor::filled(&stream, rows.clone(), 0_u16).unwrap();
    let (tile, shared) = ("(128,64)".parse().unwrap(), "(128,64):(64,1)".parse().unwrap());
    let swizzle = SwizzleMode::Bytes128;
    let boxes = TensorMap::new(&rows, &tile, &shared, 16, swizzle).unwrap();
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let (promotion, outside) = (Promotion::default(), Outside::default());
    {
        let read = EncodedTensorMap::new(&tensor, &boxes, swizzle, promotion, outside).unwrap();
        let (code, text) = refused(load.launch(&stream, &launch, &[(&read).into(), 3_u16.into()]));
        assert!(code == "E0812" && text.contains("a tensor map of memory that may only be read"), "{text}");
    }
    let address = tensor.address();
    let map = EncodedTensorMap::new_mut(&mut tensor, &boxes, swizzle, promotion, outside).unwrap();
    let encoded = books(|books| books.encoded.clone()).unwrap();
    assert_eq!(encoded, (address, vec![512, 1024], vec![1024], vec![64, 128]));
    load.launch(&stream, &launch, &[(&map).into(), 3_u16.into()]).unwrap();
    assert_eq!(last().arguments, [[1_u64.to_ne_bytes(); 16].concat(), 3_u16.to_ne_bytes().to_vec()]);
    // Another tensor, with the same boxes, is too small.
    let small = DeviceTensor::filled(&stream, "(1023,512):(512,1)".parse::<Layout>().unwrap(), 0_u16).unwrap();
    let error = EncodedTensorMap::new(&small, &boxes, swizzle, promotion, outside).unwrap_err();
    assert!(error.code() == "E0817" && error.to_string().contains("reach to byte 1048576"), "{error}");
    drop(map);
    drop((small, tensor, load, stream, device));
    let (_device, stream) = opened_with(|books| books.attributes.extend([(127, 0)]));
    let tensor = DeviceTensor::filled(&stream, rows, 0_u16).unwrap();
    let error = EncodedTensorMap::new(&tensor, &boxes, swizzle, promotion, outside).unwrap_err();
    assert!(error.to_string().contains("the device has none"), "{error}");
}
