//! `tilewright relayout`: moves the elements of a NumPy array to another layout.
//!
//! Law: the memory that this needs does not grow with the file, unless a layout has an outer map or
//! its strides are not nested. The output replaces the old file only when it is complete.

mod device;

use std::io::Write;
use std::path::{Path, PathBuf};

use bytemuck::cast_slice;
use clap::Args;
use half::f16;
use tilewright::kernel::machine::Machine;
use tilewright::planners::Computation;
use tilewright::tensor::npy::{self, Kind, NpyFile, Order, Stream};
use tilewright::tensor::{AnyOffsets, CopyOptions, Offsets, Plan, Tensor, TensorError, TensorView};
use tilewright::{Layout, Tree, Value, planners};

use crate::machine;
use crate::output::{self, Failure};
use crate::progress::Progress;
use crate::reader::Reader;
use crate::show::drawable;
use crate::terminal::Terminal;
use tilewright::explain::map;

/// The examples after the help of the command.
pub const EXAMPLES: &str = "\
Examples:
  tilewright relayout a.npy --to '(1024,1024):(1,1024)' -o columns.npy
  tilewright relayout a.npy --to '((128,8),(64,16)):((64,131072),(1,8192))' -o tiles.npy
  tilewright relayout a.npy --to 'S<3,4,3> o 0 o (8,128):(128,1)' --explain

Element i of the array, counted with the first axis fastest, goes to the offset that the layout
has at i. The output is the memory under the layout, from offset 0 on; what lies between is 0.
It is put in its place when it is complete.";

/// The source and the destination.
#[derive(Debug, Args)]
pub struct RelayoutOptions {
    /// The `.npy` file that is read.
    #[arg(value_name = "INPUT.npy")]
    input: PathBuf,
    /// The layout that the elements go to.
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true)]
    to: String,
    /// The layout of the elements in the file; else the shape of the array, in the order that the
    /// file has.
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true)]
    from: Option<String>,
    /// The `.npy` file that is written: the memory under the layout, from offset 0 on.
    #[arg(short, long, value_name = "OUTPUT.npy", required_unless_present_any = ["explain", "device"])]
    output: Option<PathBuf>,
    /// The shape of the array that is written; else it has one axis.
    #[arg(long, value_name = "SHAPE", allow_hyphen_values = true, requires = "output")]
    shape: Option<String>,
    /// Let the index of an element alone say where it goes, whatever the axes of the array are.
    #[arg(long)]
    by_index: bool,
    /// Print how the elements are moved.
    #[arg(long)]
    explain: bool,
    /// Also run on the first GPU: compare the result, and report the time beside the driver's copy
    /// of equally many bytes.
    #[arg(long)]
    device: bool,
    /// The GPU to plan for: A100, RTX 3090, A10, Orin, RTX 4090, L4, H100, H200, B200, RTX
    /// 5090 or GB10, or `device` for the first one here. With --explain its kernel is printed, too;
    /// with --device that kernel is what runs.
    #[arg(long, value_name = "NAME", conflicts_with = "tune")]
    machine: Option<String>,
    /// Measure this many plans on the device, those first that the planner takes for the fastest.
    /// The fastest one is kept in a file, which --device reads afterwards.
    #[arg(long, value_name = "PLANS", num_args = 0..=1, default_missing_value = "24", requires = "device", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    tune: Option<u32>,
    /// The most threads that share the work; else as many as there are processors.
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

pub fn run(options: &RelayoutOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    if options.machine.is_some() && !options.explain && !options.device {
        return Err(Failure::Usage("--machine is for a move on a GPU: add --explain or --device".into()));
    }
    let gpu = options.machine.as_deref().map(machine::named).transpose()?;
    let gpu = gpu.as_ref();
    if let Some(file) = &options.output {
        output::check_npy(file)?;
    }
    let file = NpyFile::open(&options.input).map_err(|error| Failure::of_npy(&options.input, &error))?;
    let header = file.header();
    match (header.kind(), header.size()) {
        (Kind::Signed, 1) => relayout::<i8>(file, (options, gpu), terminal),
        (Kind::Signed, 2) => relayout::<i16>(file, (options, gpu), terminal),
        (Kind::Signed, 4) => relayout::<i32>(file, (options, gpu), terminal),
        (Kind::Signed, 8) => relayout::<i64>(file, (options, gpu), terminal),
        (Kind::Unsigned, 1) => relayout::<u8>(file, (options, gpu), terminal),
        (Kind::Unsigned, 2) => relayout::<u16>(file, (options, gpu), terminal),
        (Kind::Unsigned, 4) => relayout::<u32>(file, (options, gpu), terminal),
        (Kind::Unsigned, 8) => relayout::<u64>(file, (options, gpu), terminal),
        (Kind::Float, 2) => relayout::<f16>(file, (options, gpu), terminal),
        (Kind::Float, 4) => relayout::<f32>(file, (options, gpu), terminal),
        (Kind::Float, 8) => relayout::<f64>(file, (options, gpu), terminal),
        (Kind::Complex, 8) => relayout::<[f32; 2]>(file, (options, gpu), terminal),
        (Kind::Complex, 16) => relayout::<[f64; 2]>(file, (options, gpu), terminal),
        (Kind::Bool, 1) => relayout::<bool>(file, (options, gpu), terminal),
        _ => Err(Failure::file(&options.input, format_args!("elements of type '{}' are not moved", header.descr()))),
    }
}

/// Moves the elements of a file on the CPU, and on the named GPU if requested.
fn relayout<T: npy::NpyElement>(
    file: NpyFile,
    (options, gpu): (&RelayoutOptions, Option<&Machine>),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let order = match file.header().order() {
        Order::C => "C",
        Order::Fortran => "Fortran",
    };
    let shape = file.header().shape().to_string();
    let to = place(&options.to, "--to")?;
    let from = options.from.as_ref().map(|from| place(from, "--from")).transpose()?;
    if let Some(Streamed { stream, output, shape }) = streamed::<T>(&file, from.as_ref(), &to, options)? {
        let mut bar = Progress::new("moved", 1000);
        let mut told = 0;
        let moved = stream.run::<T>(file, output, &shape, |done, all| {
            let now = 1000 * done / all.max(1);
            bar.step(now - told);
            told = now;
        });
        bar.end();
        moved.map_err(|error| Failure::of_npy(output, &error))?;
        return terminal.wrote(output);
    }
    let tensor: Tensor<T> = file.read().map_err(|error| Failure::of_npy(&options.input, &error))?;
    let natural = tensor.layout().clone();
    let array = format!("the array, of shape {shape} in {order} order");
    let from = from.unwrap_or(AnyOffsets::Plain(natural));
    let view = TensorView::new(tensor.as_slice(), from.clone())
        .map_err(|error| Failure::refused_about(format_args!("{array}, does not hold --from {from}"), &error))?;
    copy_to(&view, tensor.as_slice(), &to, &array, (options, gpu), terminal)
}

/// The largest number of bytes of input and output together that are in memory at once. Larger
/// files are streamed, if that is possible.
const MAX_HELD: u64 = 1 << 28;

/// How a large file is moved in pieces, its destination, and the shape of the result.
struct Streamed<'o> {
    stream: Stream,
    output: &'o Path,
    shape: Tree<i64>,
}

/// The plan for a large file in pieces. None if the file is moved at once, which reports errors of
/// the layouts.
fn streamed<'o, T: npy::NpyElement>(
    file: &NpyFile,
    from: Option<&AnyOffsets>,
    to: &AnyOffsets,
    options: &'o RelayoutOptions,
) -> Result<Option<Streamed<'o>>, Failure> {
    let Some(output) = options.output.as_deref().filter(|_| !options.device && !options.explain) else {
        return Ok(None);
    };
    let (Ok(range), Some(bytes)) = (to.range(), file.header().bytes()) else { return Ok(None) };
    let reach = range.1.saturating_add(1);
    let written = u64::try_from(reach).unwrap_or(0).saturating_mul(size_of::<T>() as u64);
    if !file.is_seekable() || bytes.saturating_add(written) <= MAX_HELD || range.0 < 0 {
        return Ok(None);
    }
    let natural = match file.header().order() {
        Order::C => Layout::row_major(file.header().shape()),
        Order::Fortran => Layout::compact(file.header().shape()),
    };
    let natural = AnyOffsets::Plain(natural.map_err(|error| Failure::refused(&error))?);
    let sizes = |shape: Tree<i64>| shape.modes().map(|mode| map::size(&mode)).collect::<Vec<_>>();
    let source = from.unwrap_or(&natural);
    let in_file = source.range().is_ok_and(|range| {
        range.0 >= 0 && u64::try_from(range.1).is_ok_and(|last| last < bytes / size_of::<T>().max(1) as u64)
    });
    let is_alike = sizes(source.shape()) == sizes(to.shape()) || options.by_index;
    if source.size() != to.size() || !is_alike || !in_file {
        return Ok(None);
    }
    let shape = match &options.shape {
        None => Tree::flat([reach]),
        Some(text) => text.parse(),
    };
    let shape = shape.map_err(|error| Failure::refused_about("--shape", &error))?;
    if shape.leaves().iter().try_fold(1_i64, |all, extent| all.checked_mul(*extent)) != Some(reach) {
        return Ok(None);
    }
    let elements = usize::try_from(MAX_HELD).unwrap_or(usize::MAX) / size_of::<T>().max(1);
    Ok(Stream::new(source, to, elements).map(|stream| Streamed { stream, output, shape }))
}

fn copy_to<T: npy::NpyElement>(
    view: &TensorView<'_, T, AnyOffsets>,
    source: &[T],
    to: &AnyOffsets,
    array: &str,
    (options, gpu): (&RelayoutOptions, Option<&Machine>),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let refused = |error| Failure::refused_about(format_args!("--to {to}"), &(error as TensorError)).without_help();
    if to.size() != view.size() {
        let (has, wanted) = (view.size(), to.size());
        return Err(Failure::Value(format!("--to {to} has {wanted} elements, but {array}, has {has} of them to move")));
    }
    let sizes = |shape: Tree<i64>| shape.modes().map(|mode| map::size(&mode)).collect::<Vec<_>>();
    let (axes, modes) = (sizes(view.shape()), sizes(to.shape()));
    if axes != modes && !options.by_index {
        return Err(Failure::Value(format!(
            "--to {to} has modes of sizes {modes:?}, but {array}, is moved by axes of sizes {axes:?}; \
             write --by-index if only the index of an element counts, first axis fastest"
        )));
    }
    let range = to.range().map_err(refused)?;
    if range.0 < 0 {
        return Err(Failure::Value(format!("--to {to} reaches offset {}, but a file begins at offset 0", range.0)));
    }
    let threads = options.threads.map(usize::from);
    let plan = Plan::new(view.layout(), to, size_of::<T>(), CopyOptions { threads, ..CopyOptions::default() });
    let plan = plan.map_err(refused)?;
    if options.explain {
        writeln!(terminal.out, "{plan}")?;
    }
    let on_gpu = || -> Result<Computation, Failure> {
        let element = device::element(T::KIND, size_of::<T>())
            .ok_or_else(|| Failure::Value(format!("elements of {} bytes are not moved on a device", size_of::<T>())))?;
        let (from, to) = (Box::new(placed(view.layout())?), Box::new(placed(to)?));
        Ok(Computation::Relayout { from, source: element, to, destination: element })
    };
    if let Some(machine) = gpu.filter(|_| options.explain && !options.device) {
        let planned = on_gpu()?.plan(machine).map_err(|error| Failure::refused(&error))?;
        writeln!(terminal.out, "on {}:", machine.name)?;
        for line in planned.plan() {
            writeln!(terminal.out, "  {line}")?;
        }
    }
    if options.output.is_none() && !options.device {
        return Ok(());
    }
    // All memory of the layout: gaps between its elements are 0.
    let reach = range.1.saturating_add(1);
    let shape = match &options.shape {
        None => Tree::flat([reach]),
        Some(text) => text.parse(),
    };
    let shape = shape.map_err(|error| Failure::refused_about("--shape", &error))?;
    let rows =
        Layout::row_major(&shape).map_err(|error| Failure::refused_about(format_args!("--shape {shape}"), &error))?;
    if rows.size() != reach {
        let size = rows.size();
        let elements = if size == 1 { "element" } else { "elements" };
        return Err(Failure::Value(format!("--shape {shape} has {size} {elements}, but --to {to} takes {reach}")));
    }
    let mut memory: Tensor<T> = Tensor::zeroed(rows).map_err(refused)?;
    let mut dst = tilewright::tensor::TensorViewMut::new(memory.as_mut_slice(), to.clone()).map_err(refused)?;
    plan.run(view, &mut dst).map_err(refused)?;
    if options.device {
        let asked = device::DeviceCopyOptions { machine: gpu, tune: options.tune };
        device::run(&on_gpu()?, asked, cast_slice(source), cast_slice(memory.as_slice()), terminal)?;
    }
    let Some(output) = &options.output else { return Ok(()) };
    npy::write(output, &memory.view()).map_err(|error| Failure::of_npy(output, &error))?;
    terminal.wrote(output)
}

/// The layout in the form that kernels need.
fn placed(layout: &impl Offsets) -> Result<planners::Place, Failure> {
    let composed = layout.composed().map_err(|error| Failure::refused(&error))?;
    planners::Place::try_from(&composed).map_err(|error| Failure::refused(&error))
}

/// An expression as a layout; a shape means its compact layout.
fn place(source: &str, option: &str) -> Result<AnyOffsets, Failure> {
    let value = drawable(Reader::default().value(source)?);
    if let Value::Layout(layout) = &value
        && let Ok(offsets) = AnyOffsets::try_from(layout)
    {
        return Ok(offsets);
    }
    Err(Failure::Value(format!(
        "{option} takes a layout whose values are numbers, such as (4,8):(8,1), not {value}, of kind {}",
        value.kind()
    )))
}
