//! The host time of a launch.
//!
//! ```text
//! cargo run --release -p tilewright-gpu --example launch_cost
//! ```
//!
//! Times single launches of an empty kernel with four arguments, from the call to its return, and
//! prints the median and the 95th percentile in microseconds. The stream is drained now and then,
//! outside of the timed part, so that no launch waits for room in its queue. Check: as many
//! launches of a kernel that increments a number, timed in the same way, after which the number
//! must equal their count.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewright_gpu::{
    Argument, Device, DeviceTensor, ElementType, Function, GpuError, Graph, Launch, ModuleOptions, Parameter, Stream,
};
use tilewright_layout::Layout;

const KERNELS: &str = include_str!("device_check/kernels.ptx");
/// How many launches are timed.
const LAUNCHES: usize = 20_000;
/// How many are given to the stream before it is emptied.
const QUEUED: usize = 256;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::from(2)
        }
    }
}

/// The times of single launches, sorted.
fn times(
    function: &Function,
    stream: &Stream,
    launch: &Launch,
    arguments: &[Argument<'_>],
) -> Result<Vec<Duration>, GpuError> {
    let mut times = Vec::with_capacity(LAUNCHES);
    while times.len() < LAUNCHES {
        for _ in 0..QUEUED.min(LAUNCHES - times.len()) {
            let begin = Instant::now();
            function.launch(stream, launch, arguments)?;
            times.push(begin.elapsed());
        }
        stream.synchronize()?;
    }
    times.sort();
    Ok(times)
}

fn print(name: &str, times: &[Duration]) {
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    };
    println!("{name:40} median {:.2} us, 95th percentile {:.2} us", at(0.5), at(0.95));
}

fn measure() -> Result<(), Box<dyn Error>> {
    let device = Device::open(0)?;
    println!("{device:?}, driver {}, {LAUNCHES} launches each", device.driver_version());
    let stream = device.stream()?;
    let module = device.load(KERNELS.as_bytes(), &ModuleOptions::default())?;
    let list = [
        Parameter::read("x", ElementType::F32),
        Parameter::write("y", ElementType::F32),
        Parameter::scalar("m", ElementType::U32),
        Parameter::scalar("n", ElementType::U32),
    ];
    let empty = module.function("empty", &list)?;
    let tick = module.function("tick", &[Parameter::write("x", ElementType::U32)])?;
    let vector = |count| Layout::mode_of(count, 1);
    let x = DeviceTensor::filled(&stream, vector(1024)?, 0.0_f32)?;
    let mut y = DeviceTensor::filled(&stream, vector(1024)?, 0.0_f32)?;
    let mut count = DeviceTensor::filled(&stream, vector(1)?, 0_u32)?;

    let launch = Launch::new([64, 1, 1], [256, 1, 1]);
    {
        let arguments = [(&x).into(), (&mut y).into(), 1024_u32.into(), 1_u32.into()];
        // The first launches load the code.
        times(&empty, &stream, &launch, &arguments)?;
        print("empty kernel", &times(&empty, &stream, &launch, &arguments)?);
        if device.capability() >= (9, 0) {
            let clusters = launch.cluster([2, 1, 1]).overlapping();
            print("empty kernel, clusters, overlapping", &times(&empty, &stream, &clusters, &arguments)?);
        }
        let graph = Graph::capture(&stream, |capture| {
            (0..QUEUED).try_for_each(|_| capture.launch(&empty, &launch, &arguments))
        })?;
        let mut replays = Vec::new();
        for _ in 0..100 {
            let begin = Instant::now();
            graph.launch(&stream)?;
            replays.push(begin.elapsed() / QUEUED as u32);
            stream.synchronize()?;
        }
        replays.sort();
        print("a launch of a graph of 256", &replays);
    }
    let one = Launch::new([1, 1, 1], [1, 1, 1]);
    let counted = times(&tick, &stream, &one, &[(&mut count).into()])?;
    print("kernel that counts", &counted);
    let found = *count.read(&stream)?.get(0)?;
    if found as usize != LAUNCHES {
        return Err(format!("{LAUNCHES} launches, but the kernel ran {found} times").into());
    }
    println!("checked: the kernel that counts ran {found} times");
    Ok(())
}
