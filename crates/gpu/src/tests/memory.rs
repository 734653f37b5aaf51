//! Memory, tensors, streams and events.

use half::bf16;
use tilewright_layout::{Composed, Layout};
use tilewright_tensor::Tensor;

use super::fake::{books, current, driver, set_current};
use crate::device::Device;
use crate::device_tensor::DeviceTensor;
use crate::element::Element;
use crate::stream::Stream;

fn device() -> (Device, Stream) {
    let device = Device::of(driver(), 0).unwrap();
    let stream = device.stream().unwrap();
    (device, stream)
}

fn nothing_is_left() {
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

#[test]
fn bytes_are_written_and_read_where_they_are() {
    let (device, stream) = device();
    let mut memory = device.allocate(16).unwrap();
    memory.fill_bytes(&stream, 9).unwrap();
    memory.write(&stream, 3, &[1, 2, 3]).unwrap();
    let mut all = [0; 16];
    memory.read(&stream, 0, &mut all).unwrap();
    assert_eq!(all, [9, 9, 9, 1, 2, 3, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
    let mut copy = device.allocate(16).unwrap();
    copy.copy_from(&stream, &memory).unwrap();
    let mut part = [0; 4];
    copy.read(&stream, 2, &mut part).unwrap();
    assert_eq!(part, [9, 1, 2, 3]);
    // Indices past the end: by one, and up to the largest number.
    for at in [13, 17, u64::MAX] {
        assert_eq!(memory.read(&stream, at, &mut part).unwrap_err().code(), "E0813");
        assert_eq!(memory.write(&stream, at, &part).unwrap_err().code(), "E0813");
    }
    let other = device.allocate(15).unwrap();
    assert_eq!(memory.copy_from(&stream, &other).unwrap_err().code(), "E0813");
    drop((memory, copy, other, device.allocate(0).unwrap(), stream, device));
    nothing_is_left();
}

#[test]
fn memory_runs_out_and_is_there_again() {
    let (device, stream) = device();
    let half = device.allocate(1 << 23).unwrap();
    let error = device.allocate(1 << 23).unwrap_err();
    assert_eq!(error.code(), "E0805");
    let free = (1 << 24) - (1 << 23) - 256;
    let said = format!("8388608 bytes of device memory were asked for, but {free} of 16777216 are free");
    assert_eq!(error.to_string(), said);
    assert_eq!(device.free_bytes().unwrap(), free);
    for bytes in [u64::MAX, 1 << 63, i64::MAX as u64] {
        assert_eq!(device.allocate(bytes).unwrap_err().code(), "E0805");
    }
    drop(half);
    assert!(device.allocate(1 << 23).is_ok());
    drop((stream, device));
    nothing_is_left();
}

#[test]
fn bytes_are_repeated() {
    let (device, stream) = device();
    for (count, pattern) in [(0, 3), (2, 3), (3, 3), (11, 3), (12, 3), (16, 1), (16, 16), (9, 30), (13, 0)] {
        let mut memory = device.allocate(16).unwrap();
        memory.fill_bytes(&stream, 99).unwrap();
        let pattern: Vec<u8> = (0..pattern).collect();
        memory.repeat(&stream, count, &pattern).unwrap();
        let mut all = [0; 16];
        memory.read(&stream, 0, &mut all).unwrap();
        for (at, byte) in all.into_iter().enumerate() {
            let within = (at as u64) < count && !pattern.is_empty();
            assert_eq!(byte, if within { pattern[at % pattern.len()] } else { 99 }, "{count} {pattern:?}");
        }
        // Values that do not fit are not written.
        assert_eq!(memory.repeat(&stream, 17, &[1]).unwrap_err().code(), "E0813");
    }
    drop((stream, device));
    nothing_is_left();
}

/// Every element is read back, whatever the layout and the type; so are gaps.
fn round_trip<T: Element + PartialEq>(value: impl Fn(i64) -> T, other: T) {
    let (device, stream) = device();
    for layout in ["(4,6):(6,1)", "(3,2):(1,4)", "7:-2", "((2,2),3):((1,6),2)", "1:0"] {
        let layout: Layout = layout.parse().unwrap();
        let host = Tensor::from_fn(layout.clone(), &value).unwrap();
        let mut tensor = DeviceTensor::from_tensor(&stream, &host).unwrap();
        assert_eq!((tensor.size(), tensor.shape()), (host.size(), host.shape()));
        assert_eq!(tensor.address() - tensor.memory().address(), (host.origin() * size_of::<T>()) as u64);
        assert_eq!(tensor.read(&stream).unwrap().as_slice(), host.as_slice(), "{layout}");
        tensor.fill(&stream, other).unwrap();
        let mut into = host.try_clone().unwrap();
        tensor.read_into(&stream, &mut into).unwrap();
        assert!(into.as_slice().iter().all(|element| *element == other), "{layout}");
        let filled = DeviceTensor::filled(&stream, layout, other).unwrap();
        assert_eq!(filled.read(&stream).unwrap().as_slice(), into.as_slice());
    }
    drop((stream, device));
    nothing_is_left();
}

#[test]
fn tensors_come_back_as_they_went() {
    round_trip(|index| index as u8, 255);
    round_trip(|index| index as i16, -2);
    round_trip(|index| bf16::from_f64(index as f64), bf16::from_f64(0.5));
    round_trip(|index| index as f32, -1.5);
    round_trip(|index| index as f64, 1e300);
    round_trip(|index| index as u64, u64::MAX - 7);
}

#[test]
fn tensors_may_be_swizzled_and_must_be_injective() {
    let (_device, stream) = device();
    let swizzled: Composed = "S<2,0,2> o 0 o (4,4):(4,1)".parse().unwrap();
    let host = Tensor::from_fn(swizzled, |index| index as i32).unwrap();
    let tensor = DeviceTensor::from_tensor(&stream, &host).unwrap();
    let back = tensor.read(&stream).unwrap();
    for index in 0..16 {
        assert_eq!(back.get(index).unwrap(), &(index as i32));
    }
    let twice: Layout = "(2,2):(1,1)".parse().unwrap();
    assert_eq!(DeviceTensor::filled(&stream, twice, 0_u8).unwrap_err().code(), "E0402");
    let huge: Layout = "2:9223372036854775806".parse().unwrap();
    assert_eq!(DeviceTensor::filled(&stream, huge, 0_f64).unwrap_err().code(), "E0404");
}

#[test]
fn tensors_of_other_layouts_are_refused() {
    let (_device, stream) = device();
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let mut tensor = DeviceTensor::filled(&stream, layout("(2,3):(3,1)"), 0_u8).unwrap();
    for other in ["(3,2):(2,1)", "(2,3):(1,2)", "6:1", "(2,3):(4,1)"] {
        let mut host = Tensor::filled(layout(other), 1_u8).unwrap();
        assert_eq!(tensor.write(&stream, &host).unwrap_err().code(), "E0818", "{other}");
        assert_eq!(tensor.read_into(&stream, &mut host).unwrap_err().code(), "E0818", "{other}");
        assert_eq!(host.as_slice()[0], 1);
    }
    // The same layout over more memory.
    let wide = Tensor::from_vec(vec![1_u8; 7], layout("(2,3):(3,1)")).unwrap();
    let error = tensor.write(&stream, &wide).unwrap_err().to_string();
    assert!(error.contains("over 7 elements of memory"), "{error}");
    assert_eq!(tensor.read(&stream).unwrap().as_slice(), [0; 6]);
}

#[test]
fn events_measure_time() {
    let (device, stream) = device();
    let (begin, end) = (device.event().unwrap(), device.event().unwrap());
    stream.record(&begin).unwrap();
    stream.record(&end).unwrap();
    stream.wait(&begin).unwrap();
    // Handles of the fake driver are 8 apart, which it returns as milliseconds.
    assert_eq!(end.seconds_since(&begin).unwrap(), 0.008);
    assert!(!end.is_done().unwrap() && stream.is_done().unwrap());
    drop((begin, end, stream, device));
    nothing_is_left();
}

/// A context that other code made current is current again after each call.
#[test]
fn contexts_of_others_stay_current() {
    let (device, stream) = device();
    set_current(0);
    let memory = device.allocate(8).unwrap();
    let ours = current();
    assert_ne!(ours, 0);
    set_current(0xaaaa);
    let mut more = device.allocate(8).unwrap();
    more.write(&stream, 0, &[1; 8]).unwrap();
    drop(more);
    assert_eq!(current(), 0xaaaa);
    drop((memory, stream, device));
    assert_eq!(current(), 0xaaaa);
    nothing_is_left();
}

/// Types that may be sent to other threads implement `Send`.
#[test]
fn things_may_move_between_threads() {
    fn moves<T: Send + Sync>() {}
    moves::<Device>();
    moves::<Stream>();
    moves::<crate::Event>();
    moves::<crate::Memory>();
    moves::<DeviceTensor<f32>>();
    moves::<crate::Module>();
    moves::<crate::Function>();
    moves::<crate::Graph<'_>>();
    moves::<crate::EncodedTensorMap<'_>>();
}
