//! `tilewright kernel bench`: a kernel of the library on a GPU, checked, and timed beside the
//! driver's own copy of as many bytes, in whole pages of 4 KiB.
//!
//! Law: what is printed was measured in this run. The output is poisoned before the kernel runs,
//! and compared with the definition; how many elements were compared is said. Kernel and copy take
//! turns, and the figure of each is the median over the turns. What is short is recorded into
//! graphs, kernel and copy alike: else the figure would be that of the host's calls.

use std::fmt::Write as _;

use serde_json::json;
use tilewright::gpu::{Argument, Cache, Device, GpuError, Graph, Memory, ModuleOptions, Stream};
use tilewright::kernel::ptx::Target;
use tilewright::kernels::{Entry, Planned, Unchecked, bits_at};

use crate::output::Failure;
use crate::terminal::Terminal;

/// How often kernel and copy take turns, where nothing is said.
pub(crate) const TURNS: u16 = 9;
/// How long a turn takes about, in seconds.
pub(crate) const TURN: f64 = 0.02;
/// What takes less, in seconds, is replayed from a graph of so many repetitions.
const SHORT: f64 = 50e-6;
const RECORDED: usize = 200;
/// The driver copies what is no whole number of so many bytes in up to twice the time.
const PAGE: u64 = 4096;
/// How many elements are compared with the definition at most.
const COMPARED: usize = 1 << 20;
/// How many numbers of the inputs the definition reads for that, about.
const READ: usize = 1 << 25;
/// Inputs repeat after so many elements: a prime, so that no row is like the next.
const PERIOD: usize = 1_048_573;

/// What a run on a device gave.
struct Measured {
    device: String,
    target: Target,
    timed: Timed,
    compared: usize,
    worst: f64,
}

pub fn run(entry: &Entry, planned: &Planned, turns: u16, terminal: &mut Terminal) -> Result<(), Failure> {
    let device = Device::open(0)?;
    let planned = &planned.clone().on(device.target()?);
    let measured = measured(&device, planned, turns)?;
    let rate = |seconds: f64| planned.bytes() as f64 / seconds / 1e12;
    let (kernel, copy) = (rate(measured.timed.seconds), rate(measured.timed.copy_seconds));
    let sizes: Vec<String> = planned.sizes().iter().map(|(name, size)| format!("{name}={size}")).collect();
    if terminal.json {
        let mut object = json!({
            "name": entry.name,
            "plan": planned.plan(),
            "device": measured.device,
            "arch": measured.target.name(),
            "bytes": planned.bytes(),
            "median_us": measured.timed.seconds * 1e6,
            "tb_per_s": kernel,
            "copy_tb_per_s": copy,
            "recorded": measured.timed.recorded,
            "checked": true,
            "compared": measured.compared,
            "of": planned.defined(),
            "worst": measured.worst,
        });
        if planned.operations() > 0 {
            object["tflop_per_s"] = json!(planned.operations() as f64 / measured.timed.seconds / 1e12);
        }
        return Ok(terminal.object(&object)?);
    }
    let mut text = String::new();
    let _ = writeln!(text, "{} {}", entry.name, sizes.join(" "));
    for line in planned.plan() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "  {}, {}", measured.device, measured.target.name());
    let graphs = measured.timed.graphs();
    let _ = writeln!(text, "  {:.1} us, the median of {turns} turns{graphs}", measured.timed.seconds * 1e6);
    let _ = writeln!(
        text,
        "  {kernel:.2} TB/s of {} bytes; the driver's copy of as many {copy:.2} TB/s: {:.3}",
        planned.bytes(),
        kernel / copy
    );
    if planned.operations() > 0 {
        let _ = writeln!(text, "  {:.1} TFLOP/s", planned.operations() as f64 / measured.timed.seconds / 1e12);
    }
    let how = if measured.worst == 0.0 {
        "all equal".to_owned()
    } else {
        format!("the farthest at {:.3} of the bound that rounding gives", measured.worst)
    };
    let _ =
        writeln!(text, "  {} of {} elements compared with the definition; {how}", measured.compared, planned.defined());
    Ok(terminal.text(&text)?)
}

/// The arguments of a launch: inputs, then outputs.
fn arguments<'a>(inputs: &'a [Memory], outputs: impl IntoIterator<Item = &'a mut Memory>) -> Vec<Argument<'a>> {
    inputs.iter().map(Argument::from).chain(outputs.into_iter().map(Argument::from)).collect()
}

/// How many bytes a copy has to read, and to write, which moves so many together: half of them, in
/// whole pages.
pub(crate) fn copied(bytes: i64) -> u64 {
    u64::try_from(bytes / 2).unwrap_or(1).max(1).next_multiple_of(PAGE)
}

/// The seconds of the middle of several turns.
pub(crate) fn median(mut turns: Vec<f64>) -> f64 {
    turns.sort_by(f64::total_cmp);
    turns.get(turns.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How long so many repetitions of some work take on a stream, each.
pub(crate) fn timed(
    device: &Device,
    stream: &Stream,
    count: usize,
    mut work: impl FnMut() -> Result<(), GpuError>,
) -> Result<f64, GpuError> {
    let (first, last) = (device.event()?, device.event()?);
    stream.record(&first)?;
    for _ in 0..count {
        work()?;
    }
    stream.record(&last)?;
    last.synchronize()?;
    Ok(last.seconds_since(&first)? / count as f64)
}

fn measured(device: &Device, planned: &Planned, turns: u16) -> Result<Measured, Failure> {
    let stream = device.stream()?;
    // The linker, from which machine code comes that can be kept, leaves threads other registers.
    let options = ModuleOptions::default().cache(Cache::none());
    let compiled = device.compile(planned.kernel(), &options)?;
    let kernel = compiled.at(planned.sizes())?;
    let second = planned.second().map(|second| device.compile(second, &options)).transpose()?;
    let second = second.as_ref().map(|second| second.at(planned.sizes())).transpose()?;
    let bytes = compiled.program().launch(planned.sizes()).map_err(|error| Failure::refused(&error))?.bytes;

    // Inputs repeat a block of numbers; the output is poisoned.
    let types = planned.inputs();
    let mut blocks = Vec::new();
    let mut inputs = Vec::new();
    for (index, element) in types.iter().enumerate() {
        let block = planned.numbers(index, *element, PERIOD);
        let bytes = bytes[index];
        let mut memory = device.allocate(bytes)?;
        memory.repeat(&stream, bytes, &block)?;
        blocks.push(block);
        inputs.push(memory);
    }
    // What blocks leave for the last one, or for a second launch, is poisoned, too.
    let mut left = Vec::new();
    for bytes in &bytes[planned.between()] {
        let mut memory = device.allocate(*bytes)?;
        memory.fill_bytes(&stream, 0xa5)?;
        left.push(memory);
    }
    let last = bytes.len() - 1;
    let result = match planned.second() {
        None => bytes[last],
        Some(second) => {
            let launch = second.program().launch(planned.sizes()).map_err(|error| Failure::refused(&error))?;
            launch.bytes.last().copied().unwrap_or(0)
        }
    };
    let mut output = device.allocate(result)?;
    output.fill_bytes(&stream, 0xa5)?;
    let mut launch = |output: &mut Memory| -> Result<(), GpuError> {
        match &second {
            None => kernel.launch(&stream, &arguments(&inputs, left.iter_mut().chain([output]))),
            Some(second) => {
                kernel.launch(&stream, &arguments(&inputs, &mut left))?;
                second.launch(&stream, &arguments(&left, [output]))
            }
        }
    };
    launch(&mut output)?;
    stream.synchronize()?;
    let (compared, worst) = compare(planned, &stream, &blocks, &output)?;

    let timed = in_turns(device, &stream, (planned.bytes(), turns), || launch(&mut output))?;
    Ok(Measured { device: device.name().to_owned(), target: compiled.target(), timed, compared, worst })
}

/// The medians of some turns.
pub(super) struct Timed {
    pub(super) seconds: f64,
    /// Of a copy of as many bytes.
    pub(super) copy_seconds: f64,
    /// How many launches a graph has, where they are too short to be set off one by one, else 0.
    pub(super) recorded: usize,
}

impl Timed {
    /// From what launches were replayed.
    pub(super) fn graphs(&self) -> String {
        match self.recorded {
            0 => String::new(),
            count => format!(", replayed from graphs of {count}"),
        }
    }
}

/// The medians of so many turns of some launches, and of a copy of as many bytes, in seconds.
pub(super) fn in_turns(
    device: &Device,
    stream: &Stream,
    (bytes, turns): (i64, u16),
    mut launch: impl FnMut() -> Result<(), GpuError>,
) -> Result<Timed, Failure> {
    let half = copied(bytes);
    let from = device.allocate(half)?;
    let mut to = device.allocate(half)?;
    let once = timed(device, stream, 3, &mut launch)?;
    let count = ((TURN / once) as usize).clamp(1, 10_000);
    let recorded = if once < SHORT { RECORDED } else { 0 };
    let (mut kernels, mut copies) = (Vec::new(), Vec::new());
    if recorded > 0 {
        let own = Graph::capture(stream, |_| (0..recorded).try_for_each(|_| launch()))?;
        let other = Graph::capture(stream, |_| (0..recorded).try_for_each(|_| to.copy_from(stream, &from)))?;
        let replays = count.div_ceil(recorded);
        for _ in 0..turns {
            for (graph, into) in [(&own, &mut kernels), (&other, &mut copies)] {
                into.push(timed(device, stream, replays, || graph.launch(stream))? / recorded as f64);
            }
        }
    } else {
        for _ in 0..turns {
            kernels.push(timed(device, stream, count, &mut launch)?);
            copies.push(timed(device, stream, count, || to.copy_from(stream, &from))?);
        }
    }
    Ok(Timed { seconds: median(kernels), copy_seconds: median(copies), recorded })
}

/// Compares elements of the output, spread over all of it, with the definition.
fn compare(planned: &Planned, stream: &Stream, blocks: &[Vec<u8>], output: &Memory) -> Result<(usize, f64), Failure> {
    let types = planned.inputs();
    let input = |tensor: usize, at: usize| bits_at(&blocks[tensor], types[tensor].bytes() as usize, at % PERIOD);
    let mut left = vec![0; usize::try_from(output.bytes()).unwrap_or(0)];
    output.read(stream, 0, &mut left)?;
    let (defined, together) = (planned.defined(), planned.together());
    // Whole rows, where those are said together; as many numbers are read at most.
    let runs = defined.div_ceil(together);
    let most = (READ / planned.effort()).clamp(64, COMPARED);
    let taken = runs.min(most.div_ceil(together));
    let mut definition = planned.definition(&input);
    let (mut worst, mut count) = (0.0_f64, 0);
    for number in 0..taken {
        // The first, the last, and steps of equal length between; all, where they are few.
        let run = if taken == runs || taken < 2 { number } else { number * ((runs - 1) / (taken - 1)) };
        let run = if number + 1 == taken { runs - 1 } else { run };
        for index in run * together..((run + 1) * together).min(defined) {
            let wanted = definition.wanted(index)?;
            let found = bits_at(&left, wanted.element.bytes() as usize, wanted.at);
            worst = worst.max(wanted.distance(found).map_err(|wrong: Unchecked| Failure::Value(wrong.to_string()))?);
            count += 1;
        }
    }
    Ok((count, worst))
}
