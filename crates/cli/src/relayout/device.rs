//! `tilewright relayout --device`: the same relayout on a GPU, by a planned kernel.
//!
//! Law: the memory that the kernel writes equals, byte by byte, that of the copy on the CPU.
//! Printed figures were measured in this run; the driver's copy of equally many bytes is timed for
//! comparison.

use std::fmt::Write as _;

use serde_json::json;
use tilewright::gpu::{Argument, Device, GpuError, ModuleOptions, Stream};
use tilewright::kernel::Element;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx::Target;
use tilewright::measured::{MeasuredPlans, Planning, Ranked, tune};
use tilewright::planners::{Computation, Planned, Planner};
use tilewright::tensor::npy::Kind;

use crate::kernel::bench::{ROUND, ROUNDS, copied, median, timed};
use crate::machine;
use crate::output::Failure;
use crate::terminal::Terminal;

/// The element type with which a kernel moves elements of a file; None if no type has this size.
pub fn element(kind: Kind, size: usize) -> Option<Element> {
    Some(match (kind, size) {
        (_, 1) => Element::U8,
        (_, 2) => Element::U16,
        (_, 4) => Element::U32,
        (_, 8) => Element::U64,
        _ => return None,
    })
}

/// The options of a copy on the first GPU.
#[derive(Debug, Clone, Copy)]
pub struct DeviceCopyOptions<'m> {
    /// The machine to plan for; else this GPU.
    pub machine: Option<&'m Machine>,
    /// The number of plans to measure, if asked for.
    pub tune: Option<u32>,
}

/// The kernel of a relayout: the fastest measured plan, now or earlier on this device, if it is
/// planned for this device; otherwise the planner's choice.
fn planned(
    device: &Device,
    work: &Computation,
    asked: DeviceCopyOptions<'_>,
    terminal: &mut Terminal,
) -> Result<Planned, Failure> {
    let own = device.machine()?;
    let refused = |error| Failure::refused(&error);
    if let Some(count) = asked.tune {
        let plans = MeasuredPlans::from_environment();
        let (ranking, kept) = tune(device, &plans, work, count as usize)?;
        if !terminal.json {
            for Ranked { plan, seconds, .. } in &ranking {
                let line = Computation::line(plan);
                terminal.text(&format!("{:>10.2} us: {line}\n", seconds * 1e6))?;
            }
            terminal.text(&format!("{}\n", machine::said_of_kept(&kept)))?;
        }
        let fastest = ranking.into_iter().next().map(|own| own.plan);
        return fastest.ok_or_else(|| Failure::Value("there is no plan to measure".into()));
    }
    let machine = asked.machine.unwrap_or(&own);
    let planned =
        if *machine == own { machine::of_device(device, terminal)?.computation(work) } else { work.plan(machine) };
    planned.map_err(refused)
}

/// Copies `source` on the first GPU, compares the result with `wanted`, and prints the time.
pub fn run(
    work: &Computation,
    asked: DeviceCopyOptions<'_>,
    source: &[u8],
    wanted: &[u8],
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let device = Device::open(0)?;
    let Computation::Relayout { source: element, .. } = work else {
        return Err(Failure::Value(format!("{} is no move", work.name())));
    };
    let planned = planned(&device, work, asked, terminal)?;
    let stream = device.stream()?;
    // Text that is compiled alone is as fast as the compiler makes it.
    let compiled = device.compile(planned.kernel(), &ModuleOptions::default())?;
    let kernel = compiled.at(planned.sizes())?;
    let bytes = compiled.program().launch(planned.sizes()).map_err(|error| Failure::refused(&error))?.bytes;

    let mut input = device.allocate(bytes[0].max(source.len() as u64))?;
    input.write(&stream, 0, source)?;
    // Gaps of the file are zeros. Without gaps, no old contents remain.
    let mut output = device.allocate(bytes[1].max(wanted.len() as u64))?;
    let everywhere = planned.defined() * element.bytes() as usize == wanted.len();
    output.fill_bytes(&stream, if everywhere { 0xa5 } else { 0 })?;
    kernel.launch(&stream, &[Argument::from(&input), Argument::from(&mut output)])?;
    let mut left = vec![0; wanted.len()];
    output.read(&stream, 0, &mut left)?;
    if let Some(at) = left.iter().zip(wanted).position(|(a, b)| a != b) {
        let element = at / element.bytes() as usize;
        return Err(Failure::Value(format!("element {element} of the output is another than on the processor")));
    }

    let mut go = || kernel.launch(&stream, &[Argument::from(&input), Argument::from(&mut output)]);
    let seconds = median_seconds(&device, &stream, planned.bytes(), &mut go)?;
    let compared = wanted.len() / element.bytes() as usize;
    report(&planned, &device, compiled.target(), seconds, compared, terminal)
}

/// The seconds of a launch, and of the driver's copy of equally many bytes: medians over
/// alternating rounds.
fn median_seconds(
    device: &Device,
    stream: &Stream,
    bytes: i64,
    go: &mut impl FnMut() -> Result<(), GpuError>,
) -> Result<[f64; 2], Failure> {
    let half = copied(bytes);
    let copied = device.allocate(half)?;
    let mut copy = device.allocate(half)?;
    let once = timed(device, stream, 3, &mut *go)?;
    let count = ((ROUND / once) as usize).clamp(1, 10_000);
    let (mut kernels, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        kernels.push(timed(device, stream, count, &mut *go)?);
        copies.push(timed(device, stream, count, || copy.copy_from(stream, &copied))?);
    }
    Ok([median(kernels), median(copies)])
}

fn report(
    planned: &Planned,
    device: &Device,
    target: Target,
    [seconds, copy_seconds]: [f64; 2],
    compared: usize,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let rate = |seconds: f64| planned.bytes() as f64 / seconds / 1e12;
    if terminal.json {
        let object = json!({
            "plan": planned.plan(),
            "device": device.name(),
            "arch": target.name(),
            "bytes": planned.bytes(),
            "median_us": seconds * 1e6,
            "tb_per_s": rate(seconds),
            "copy_tb_per_s": rate(copy_seconds),
            "checked": true,
            "compared": compared,
        });
        return Ok(terminal.object(&object)?);
    }
    let mut text = String::new();
    for line in planned.plan() {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}, {}", device.name(), target.name());
    let _ = writeln!(text, "{:.1} us, the median of {ROUNDS} rounds", seconds * 1e6);
    let _ = writeln!(
        text,
        "{:.3} TB/s of {} bytes; the driver's copy of equally many {:.3} TB/s: {:.3}",
        rate(seconds),
        planned.bytes(),
        rate(copy_seconds),
        copy_seconds / seconds
    );
    let _ = writeln!(text, "all {compared} elements of the output as on the processor");
    Ok(terminal.text(&text)?)
}
