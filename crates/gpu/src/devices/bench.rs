//! Kernels of the library and tile programs, run on a device, checked, and timed.
//!
//! Law: every result was measured in this call. The outputs are poisoned before the kernel runs and
//! compared with the definition; the number of compared elements is reported. If an element
//! differs, there is an error and no time.
//!
//! ```
//! use tilewright::planners::{self, EntryOptions};
//! use tilewright::{bench, gpu::Device, kernel::Element};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // On a computer with a GPU.
//! if let Ok(device) = Device::open(0) {
//!     let options = EntryOptions { sizes: &[("M", 4096)], element: Some(Element::F32), large: true };
//!     let planned = planners::named("softmax")?.plan(&device.machine()?, options)?;
//!     let measured = bench::kernel(&device, &planned, bench::REPEATS)?;
//!     println!("{measured}");
//!     assert!(measured.compared > 0);
//! }
//! # Ok(())
//! # }
//! ```

mod round;
pub mod tensors;
mod timing;

use std::fmt;

use crate::{Argument, Device, GpuError, Memory, ModuleOptions, SizedKernel, Stream};
use tilewright_kernel::interpret::SetupError;
use tilewright_kernel::ptx::Target;
use tilewright_kernel::{Element, LaunchArguments};
use tilewright_layout::LayoutError;
use tilewright_planners::{self as planners, PlanError, Planned, bits_at};
use tilewright_tile::{self as tile, Compiled};

use crate::error::one_of;

pub use round::Round;
pub use timing::{LASTING, REPEATS, Timing, copied, median, timed};

/// The most elements that are compared with the definition.
const COMPARED: usize = 1 << 20;
/// The approximate number of input elements that the definition reads for that.
const READ: usize = 1 << 25;
/// Inputs repeat after this many elements. It is a prime, so that rows differ.
const PERIOD: usize = 1_048_573;

/// Sizes, each with its name.
pub type Sizes = Vec<(String, i64)>;

/// The result of a run on a device. `Display` prints it like the command.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BenchResult {
    /// The name of the device.
    pub device: String,
    /// The target that the kernel was compiled for.
    pub target: Target,
    /// The plan for the device, one line for each decision.
    pub plan: Vec<String>,
    /// The sizes that were timed.
    pub sizes: Sizes,
    /// The least number of bytes that must be read and written at these sizes: each element once.
    pub bytes: i64,
    /// The number of additions and multiplications; 0 if memory alone determines the time.
    pub operations: i64,
    /// The times.
    pub timing: Timing,
    /// The number of compared elements of the outputs.
    pub compared: u64,
    /// The reference, and the largest difference from it.
    pub against: Against,
}

/// The reference that elements were compared with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Against {
    /// The definition of a kernel, at the sizes that were timed.
    Definition {
        /// The number of output elements that the definition determines.
        defined: u64,
        /// The greatest difference, in units of the rounding bound; 0 if all bits are equal.
        worst: f64,
    },
    /// The interpreter of a tile program.
    Meaning {
        /// The sizes at which it was compared.
        sizes: Sizes,
        /// The largest difference, relative to the largest element.
        farthest: f64,
    },
}

impl BenchResult {
    /// The bandwidth of the kernel in bytes per second: the least bytes that must be moved, divided
    /// by its time.
    pub fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.timing.seconds
    }

    /// The bandwidth of the driver's copy, in bytes per second.
    pub fn copy_bandwidth(&self) -> f64 {
        self.bytes as f64 / self.timing.copy_seconds
    }
}

/// Sizes in the notation of the command line.
fn words(sizes: &Sizes) -> String {
    sizes.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for BenchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "  {}, {}", self.device, self.target.name())?;
        let Timing { seconds, recorded, repeats, .. } = self.timing;
        let graphs = if recorded > 0 { format!(", replayed from graphs of {recorded}") } else { String::new() };
        writeln!(f, "  {:.1} us, the median of {repeats} times{graphs}", seconds * 1e6)?;
        let (kernel, copy) = (self.bandwidth(), self.copy_bandwidth());
        writeln!(
            f,
            "  {:.2} TB/s of {} bytes; the driver's copy of equally many {:.2} TB/s: {:.3}",
            kernel / 1e12,
            self.bytes,
            copy / 1e12,
            kernel / copy
        )?;
        if self.operations > 0 {
            writeln!(f, "  {:.1} TFLOP/s", self.operations as f64 / seconds / 1e12)?;
        }
        match &self.against {
            Against::Definition { defined, worst } => {
                write!(f, "  {} of {defined} elements compared with the definition; ", self.compared)?;
                match *worst {
                    0.0 => write!(f, "all equal"),
                    worst => write!(f, "the farthest at {worst:.3} of the bound that rounding gives"),
                }
            }
            Against::Meaning { sizes, farthest } => write!(
                f,
                "  {} elements compared with the interpreter at {}; the farthest by {farthest:.1e} of the \
                 greatest",
                self.compared,
                words(sizes)
            ),
        }
    }
}

one_of! {
    /// Why nothing was measured.
    #[derive(Debug, Clone)]
    BenchError {
        /// An error of the driver, or of a launch.
        Gpu(GpuError),
        /// Sizes that the kernel does not accept.
        Setup(SetupError),
        /// No kernel can be planned.
        Plan(PlanError),
        /// A kernel of the library is refused, or its result differs from its definition.
        Kernel(planners::Unchecked),
        /// A tile program is refused, or its result differs from what the program means.
        Tile(tile::Unchecked),
    }
}

impl From<LayoutError> for BenchError {
    fn from(error: LayoutError) -> BenchError {
        BenchError::Kernel(planners::Unchecked::Layout(error))
    }
}

/// The arguments of a launch: inputs, then outputs.
fn arguments<'a>(inputs: &'a [Memory], outputs: impl IntoIterator<Item = &'a mut Memory>) -> Vec<Argument<'a>> {
    inputs.iter().map(Argument::from).chain(outputs.into_iter().map(Argument::from)).collect()
}

fn owned(sizes: &[(&str, i64)]) -> Sizes {
    sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

/// A kernel of the library with its tensors on a device. It can be launched any number of times.
pub(crate) struct LoadedEntry {
    kernel: SizedKernel,
    second: Option<SizedKernel>,
    target: Target,
    inputs: Vec<Memory>,
    /// Scratch memory between blocks, or between two launches.
    left: Vec<Memory>,
    output: Memory,
}

impl LoadedEntry {
    /// Runs the kernel once, and compares its output with the definition. Returns the number of
    /// compared elements and the greatest difference.
    ///
    /// Errors: those of the device; an element differs from the definition.
    pub(crate) fn checked(
        device: &Device,
        stream: &Stream,
        planned: &Planned,
    ) -> Result<(LoadedEntry, (u64, f64)), BenchError> {
        let compiled = device.compile(planned.kernel(), &ModuleOptions::default())?;
        let kernel = compiled.at(planned.sizes())?;
        let second = planned.second().map(|second| device.compile(second, &ModuleOptions::default())).transpose()?;
        let second = second.as_ref().map(|second| second.at(planned.sizes())).transpose()?;
        let bytes = compiled.program().launch(planned.sizes())?.bytes;

        // Inputs repeat a block of numbers; the output is poisoned.
        let mut blocks = Vec::new();
        let mut inputs = Vec::new();
        for (index, element) in planned.inputs().iter().enumerate() {
            let block = planned.numbers(index, *element, PERIOD);
            let bytes = bytes[index];
            let mut memory = device.allocate(bytes)?;
            memory.repeat(stream, bytes, &block)?;
            blocks.push(block);
            inputs.push(memory);
        }
        // Scratch memory is filled with poison, too.
        let mut left = Vec::new();
        for bytes in &bytes[planned.between()] {
            let mut memory = device.allocate(*bytes)?;
            memory.fill_bytes(stream, 0xa5)?;
            left.push(memory);
        }
        let last = bytes.len() - 1;
        let result = match planned.second() {
            None => bytes[last],
            Some(second) => second.program().launch(planned.sizes())?.bytes.last().copied().unwrap_or(0),
        };
        let mut output = device.allocate(result)?;
        output.fill_bytes(stream, 0xa5)?;
        let target = compiled.target();
        let mut loaded = LoadedEntry { kernel, second, target, inputs, left, output };
        loaded.launch(stream)?;
        stream.synchronize()?;
        let compared = compare(planned, stream, &blocks, &loaded.output)?;
        Ok((loaded, compared))
    }

    /// Launches the kernel, and returns at once.
    pub(crate) fn launch(&mut self, stream: &Stream) -> Result<(), GpuError> {
        let LoadedEntry { kernel, second, inputs, left, output, .. } = self;
        match second {
            None => kernel.launch(stream, &arguments(inputs, left.iter_mut().chain([output]))),
            Some(second) => {
                kernel.launch(stream, &arguments(inputs, &mut *left))?;
                second.launch(stream, &arguments(left, [output]))
            }
        }
    }
}

/// Runs a kernel of the library on a device, compares its output with the definition, and times it
/// `repeats` times, alternately with a copy of as many bytes. See the [module](self) for an
/// example.
///
/// Errors: those of the device; an element differs from the definition.
pub fn kernel(device: &Device, planned: &Planned, repeats: u16) -> Result<BenchResult, BenchError> {
    let stream = device.stream()?;
    let (mut loaded, (compared, worst)) = LoadedEntry::checked(device, &stream, planned)?;
    let timing = timing::beside_copy(device, &stream, (planned.bytes(), repeats), || loaded.launch(&stream))?;
    Ok(BenchResult {
        device: device.name().to_owned(),
        target: loaded.target,
        plan: planned.plan().to_vec(),
        sizes: owned(planned.sizes()),
        bytes: planned.bytes(),
        operations: planned.operations(),
        timing,
        compared,
        against: Against::Definition { defined: planned.defined() as u64, worst },
    })
}

/// Compares elements that are spread over the whole output with the definition.
fn compare(planned: &Planned, stream: &Stream, blocks: &[Vec<u8>], output: &Memory) -> Result<(u64, f64), BenchError> {
    let types = planned.inputs();
    let input = |tensor: usize, at: usize| bits_at(&blocks[tensor], types[tensor].bytes() as usize, at % PERIOD);
    let mut left = vec![0; usize::try_from(output.bytes()).unwrap_or(0)];
    output.read(stream, 0, &mut left)?;
    let (defined, together) = (planned.defined(), planned.together());
    // Whole rows, if the definition evaluates rows together; a limited number of elements is read.
    let runs = defined.div_ceil(together);
    let most = (READ / planned.effort()).clamp(64, COMPARED);
    let taken = runs.min(most.div_ceil(together));
    let mut definition = planned.definition(&input);
    let (mut worst, mut count) = (0.0_f64, 0);
    for number in 0..taken {
        // The first, the last, and others at equal distances; all of them, if there are few.
        let run = if taken == runs || taken < 2 { number } else { number * ((runs - 1) / (taken - 1)) };
        let run = if number + 1 == taken { runs - 1 } else { run };
        for index in run * together..((run + 1) * together).min(defined) {
            let wanted = definition.wanted(index)?;
            let found = bits_at(&left, wanted.element.bytes() as usize, wanted.at);
            worst = worst.max(wanted.distance(found)?);
            count += 1;
        }
    }
    Ok((count, worst))
}

/// Runs a tile program on a device, as compiled. At the sizes `checked`, the result is
/// compared with the interpreter. At `sizes`, `repeats` launches are timed, alternately with a copy
/// of as many bytes.
///
/// ```
/// use tilewright::{bench, gpu::Device, measured::DevicePlanner, tile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let entry = tile::LIBRARY[0];
/// let program = tile::Program::read(entry.name, entry.text)?;
/// // On a machine with a GPU.
/// if let Ok(device) = Device::open(0) {
///     let names = entry.sizes.iter().map(|(name, _)| *name);
///     let large: Vec<(&str, i64)> = names.zip(entry.large.iter().copied()).collect();
///     let compiled = DevicePlanner::new(&device)?.tile(&program, &large)?;
///     let measured = bench::tile(&device, &compiled, entry.sizes, &large, bench::REPEATS)?;
///     println!("{:.2e} bytes a second", measured.bandwidth());
/// }
/// # Ok(())
/// # }
/// ```
///
/// Errors: sizes are missing or not admitted; those of the device; an element differs from the
/// program.
pub fn tile(
    device: &Device,
    compiled: &Compiled,
    checked: &[(&str, i64)],
    sizes: &[(&str, i64)],
    repeats: u16,
) -> Result<BenchResult, BenchError> {
    let compared = on_device(device, compiled, checked)?;
    let (bytes, timing) = at_sizes(device, compiled, sizes, repeats)?;
    Ok(BenchResult {
        device: device.name().to_owned(),
        target: device.target()?,
        plan: Vec::new(),
        sizes: owned(sizes),
        bytes,
        operations: 0,
        timing,
        compared: compared.iter().map(|own| own.compared).sum(),
        against: Against::Meaning {
            sizes: owned(checked),
            farthest: compared.iter().map(|own| own.farthest).fold(0.0, f64::max),
        },
    })
}

/// Runs a kernel on the inputs of a check, and compares its output.
fn on_device(device: &Device, compiled: &Compiled, sizes: &[(&str, i64)]) -> Result<Vec<tile::Compared>, BenchError> {
    let (inputs, meant) = compiled.meant(sizes)?;
    let loaded = device.compile(compiled.kernel(), &ModuleOptions::default())?;
    let program = compiled.kernel().program();
    let given = |_: &str, element: Element| Some(tile::number_of_check(element));
    let arguments = LaunchArguments { sizes, numbers: Some(&given) };
    let bytes = program.launch(arguments)?.bytes;
    let stream = device.stream()?;
    let mut memories = Vec::new();
    for (buffer, bytes) in program.tensors().zip(&bytes) {
        let mut memory = device.allocate(*bytes)?;
        match inputs.iter().find(|(name, _)| *name == buffer.name) {
            Some((_, contents)) if !contents.is_empty() => memory.write(&stream, 0, contents)?,
            _ => memory.fill_bytes(&stream, 0xa5)?,
        }
        memories.push(memory);
    }
    loaded.at(arguments)?.launch(&stream, &memories.iter_mut().map(Argument::from).collect::<Vec<_>>())?;
    stream.synchronize()?;
    meant.compared(|tensor| {
        let at = program.tensors().position(|buffer| buffer.name == tensor).unwrap_or(0);
        let mut left = vec![0; bytes.get(at).map_or(0, |bytes| usize::try_from(*bytes).unwrap_or(0))];
        memories[at].read(&stream, 0, &mut left)?;
        Ok(left)
    })
}

/// The total size of the tensors, and the times of a launch and of a copy of as many bytes.
fn at_sizes(
    device: &Device,
    compiled: &Compiled,
    sizes: &[(&str, i64)],
    repeats: u16,
) -> Result<(i64, Timing), BenchError> {
    let loaded = device.compile(compiled.kernel(), &ModuleOptions::default())?;
    let given = |_: &str, element: Element| Some(tile::number_of_check(element));
    let arguments = LaunchArguments { sizes, numbers: Some(&given) };
    let bytes = compiled.kernel().program().launch(arguments)?.bytes;
    let stream = device.stream()?;
    let mut memories: Vec<Memory> = Vec::new();
    for bytes in &bytes {
        let mut memory = device.allocate(*bytes)?;
        // Zeros are valid numbers of every type, and valid coordinates of every tensor.
        memory.fill_bytes(&stream, 0)?;
        memories.push(memory);
    }
    let launched = loaded.at(arguments)?;
    let all = bytes.iter().fold(0_i64, |sum, bytes| sum.saturating_add_unsigned(*bytes));
    let timing = timing::beside_copy(device, &stream, (all, repeats), || {
        launched.launch(&stream, &memories.iter_mut().map(Argument::from).collect::<Vec<_>>())
    })?;
    Ok((all, timing))
}
