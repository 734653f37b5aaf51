//! Memory: what is written comes back, patterns fill it, it runs out, and nothing leaks.

use std::error::Error;

use half::bf16;
use tilewright_gpu::{Device, DeviceTensor, Element, Graph, Launch, Stream};
use tilewright_layout::{Composed, Layout};
use tilewright_tensor::Tensor;

use crate::{Outcome, ensure, refused, scale, vector};

fn round_trip<T: Element + PartialEq>(stream: &Stream, value: impl Fn(i64) -> T) -> Result<(), Box<dyn Error>> {
    for layout in ["(37,61):(61,1)", "(3,5):(1,4)", "7:-2", "((2,2),3):((1,6),2)", "1:0", "(1000,999):(1,1001)"] {
        let host = Tensor::from_fn(layout.parse::<Layout>()?, &value)?;
        let back = DeviceTensor::from_tensor(stream, &host)?.read(stream)?;
        ensure(back.as_slice() == host.as_slice(), || format!("{layout} of {} came back otherwise", T::TYPE))?;
    }
    Ok(())
}

pub fn round_trips(device: &Device) -> Outcome {
    let stream = device.stream()?;
    round_trip(&stream, |index| index as u8)?;
    round_trip(&stream, |index| index as i16)?;
    round_trip(&stream, |index| bf16::from_f32(index as f32))?;
    round_trip(&stream, |index| index as f32)?;
    round_trip(&stream, |index| index as f64)?;
    round_trip(&stream, |index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64))?;
    let swizzled: Composed = "S<3,3,3> o 0 o (64,64):(64,1)".parse()?;
    let host = Tensor::from_fn(swizzled, |index| index as u16)?;
    let back = DeviceTensor::from_tensor(&stream, &host)?.read(&stream)?;
    ensure(back.as_slice() == host.as_slice(), || "a swizzled tensor came back otherwise".into())?;
    Ok("six types, seven layouts".into())
}

fn fill<T: Element + PartialEq>(stream: &Stream, value: T) -> Result<(), Box<dyn Error>> {
    for count in [1, 2, 3, 1000, 1 << 20] {
        let tensor = vector(stream, count, value)?;
        let there = tensor.read(stream)?;
        ensure(there.as_slice().iter().all(|found| *found == value), || format!("{count} of {}", T::TYPE))?;
    }
    Ok(())
}

pub fn fills(device: &Device) -> Outcome {
    let stream = device.stream()?;
    fill(&stream, 0xa5_u8)?;
    fill(&stream, 0xa55a_u16)?;
    fill(&stream, 0xdead_beef_u32)?;
    fill(&stream, -1.5e300_f64)?;
    Ok("1 to 2^20 elements of 1, 2, 4 and 8 bytes".into())
}

pub fn out_of_memory(device: &Device) -> Outcome {
    let words = refused(device.allocate(device.attributes().memory_bytes + 1), "E0805")?;
    refused(device.allocate(u64::MAX), "E0805")?;
    drop(device.allocate(1 << 20)?);
    Ok(words)
}

pub fn leaks(device: &Device) -> Outcome {
    let free = device.free_bytes()?;
    for _ in 0..200 {
        let (stream, scale) = (device.stream()?, scale(device)?);
        let mut x = vector(&stream, 1 << 22, 1.0_f32)?;
        let (launch, count) = (Launch::new([1 << 14, 1, 1], [256, 1, 1]), 1_u32 << 22);
        let arguments = [(&mut x).into(), 1.0_f32.into(), count.into()];
        let graph = Graph::capture(&stream, |capture| capture.launch(&scale, &launch, &arguments))?;
        graph.launch(&stream)?;
        device.event()?;
    }
    let now = device.free_bytes()?;
    ensure(now + (64 << 20) > free, || format!("{free} bytes were free, and {now} are"))?;
    Ok(format!("{free} bytes were free before 200 rounds of 16 MiB, {now} are after"))
}
