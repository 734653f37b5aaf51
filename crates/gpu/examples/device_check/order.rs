//! Launches that follow one another: in graphs, in two streams, and overlapping.

use tilewright_gpu::{Device, ElementType, Graph, Launch, Parameter};

use crate::{HOPPER, Outcome, ensure, function, refused, scale, vector};

pub fn graphs(device: &Device) -> Outcome {
    let (stream, scale) = (device.stream()?, scale(device)?);
    let count = 1_u32 << 20;
    let mut x = vector(&stream, i64::from(count), 1.0_f32)?;
    let launch = Launch::new([count / 256, 1, 1], [256, 1, 1]);
    let seconds = {
        let arguments = [(&mut x).into(), 2.0_f32.into(), count.into()];
        let graph =
            Graph::capture(&stream, |capture| (0..10).try_for_each(|_| capture.launch(&scale, &launch, &arguments)))?;
        let (begin, end) = (device.event()?, device.event()?);
        stream.record(&begin)?;
        graph.launch(&stream)?;
        graph.launch(&stream)?;
        stream.record(&end)?;
        end.seconds_since(&begin)?
    };
    let found = x.read(&stream)?;
    ensure(found.as_slice().iter().all(|found| *found == 1048576.0), || "not 2^20".into())?;
    ensure(seconds > 0.0, || format!("{seconds} s"))?;
    let unmeasured = device.event()?;
    refused(unmeasured.seconds_since(&device.event()?), "E0819")?;
    Ok(format!("20 launches of 4 MiB in two replays, {:.1} us each", seconds / 20.0 * 1e6))
}

pub fn streams(device: &Device) -> Outcome {
    let (first, second, scale) = (device.stream()?, device.stream()?, scale(device)?);
    let (count, mut launched) = (1_u32 << 22, device.event()?);
    let mut x = vector(&first, i64::from(count), 1.0_f32)?;
    let launch = Launch::new([count / 256, 1, 1], [256, 1, 1]);
    for _ in 0..8 {
        for (stream, other) in [(&first, &second), (&second, &first)] {
            scale.launch(stream, &launch, &[(&mut x).into(), 2.0_f32.into(), count.into()])?;
            stream.record(&launched)?;
            other.wait(&launched)?;
            launched = device.event()?;
        }
    }
    let found = x.read(&first)?;
    ensure(found.as_slice().iter().all(|found| *found == 65536.0), || "not 2^16".into())?;
    Ok("16 launches, one after another".into())
}

pub fn overlapping(device: &Device) -> Outcome {
    let (stream, chain) =
        (device.stream()?, function(device, HOPPER, "chain", &[Parameter::write("x", ElementType::U32)])?);
    let launch = Launch::new([1, 1, 1], [1, 1, 1]).overlapping();
    for _ in 0..100 {
        let mut x = vector(&stream, 1, 0_u32)?;
        (0..31).try_for_each(|_| chain.launch(&stream, &launch, &[(&mut x).into()]))?;
        let found = *x.read(&stream)?.get(0)?;
        ensure(found == (1 << 31) - 1, || format!("{found:#x}"))?;
    }
    Ok("100 chains of 31 launches".into())
}
