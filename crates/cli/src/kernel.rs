//! `tilewright kernel`: the kernels of the library, listed, shown, written as PTX, checked and
//! timed.

pub(crate) mod bench;
mod cost;
mod explain;
mod tiles;

use std::fmt::{Display, Write as _};
use std::num::{IntErrorKind, ParseIntError};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use tilewright::bench::BenchResult;
use tilewright::gpu::Device;
use tilewright::kernel::interpret::{AccessCount, CheckError, Class};
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx::{self, Target};
use tilewright::kernel::{Coverage, Element, Kernel, Program, Written};
use tilewright::planners::{self, Entry, EntryOptions, PlanError, Planned, Planner, Report, Unchecked};
use tilewright::tile::GradientOptions;

use self::tiles::Tile;
use crate::json::Json;
use crate::machine;
use crate::output::{Failure, write_file};
use crate::terminal::Terminal;

/// The examples after the help of the command.
pub const EXAMPLES: &str = "\
Examples:
  tilewright kernel list
  tilewright kernel show transpose M=4096 N=4096 --type bf16
  tilewright kernel emit product --arch sm_90a -o product.ptx
  tilewright kernel check transpose M=300 N=200
  tilewright kernel bench transpose --type bf16

A check runs the whole grid on an interpreter, under several orders of the warps: every access of
every thread stays inside its tensor, reads what was written, and meets no other thread's access
unordered; every element of the output is written once and is what the definition says. It speaks
of the sizes that were run. Exit status 1: something was found.";

/// The subcommands for a kernel.
#[derive(Debug, Subcommand)]
pub enum KernelAction {
    /// List the kernels, with their sizes and types.
    List,
    /// Show the plan of a kernel: its tiles and schedule, and what a launch takes.
    Show {
        #[command(flatten)]
        kernel: Choice,
    },
    /// Write a kernel as PTX.
    Emit {
        #[command(flatten)]
        kernel: Choice,
        /// The target: sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100, sm_120 or sm_121, planned for an
        /// A100, an RTX 3090, an Orin, an RTX 4090, an H200, a B200, an RTX 5090 or a GB10; or
        /// sm_90, planned for an H200 without wgmma. The default is sm_80, or the target of
        /// --machine.
        #[arg(long, value_name = "ARCH", value_parser = machine::target, conflicts_with = "machine")]
        arch: Option<Target>,
        /// Index of the kernel in a plan with two launches: 1 or 2.
        #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true)]
        launch: i64,
        /// The file to write. The default is standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Run a kernel in the interpreter: check every access of every thread, and compare the result
    /// with the definition.
    Check {
        #[command(flatten)]
        kernel: Choice,
    },
    /// Count what a kernel costs, without running it: registers, shared memory, occupancy, the
    /// wavefronts and sectors of its accesses, and lower bounds of its time.
    Cost {
        #[command(flatten)]
        kernel: Choice,
    },
    /// Explain a tile program: the layout assigned to each value, the cost of the next best layout,
    /// and the conversions between layouts. -o FILE.ptx writes the kernel, -o FILE.html a page with
    /// pictures, and -o FILE.svg with --value the picture of one value.
    Explain {
        /// The file of the program, or the name of a library program: softmax,
        /// layer_norm_residual, rms_norm_gate, product, attention, attention_e4m3, int4_product,
        /// top_rows, histogram, chunk_sums, sums_before, prefix_sum, prefix_rows, gather_rows,
        /// scatter_rows, route, expert_counts, expert_starts, expert_places, expert_product,
        /// combine_rows.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Sizes, as M=1024: shows the launch at these sizes; with --check, checks these sizes;
        /// with --json, prints the arguments of a launch.
        #[arg(value_name = "SIZE=NUMBER", value_parser = size)]
        sizes: Vec<(String, i64)>,
        /// The target: sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100, sm_120 or sm_121, planned for an
        /// A100, an RTX 3090, an Orin, an RTX 4090, an H200, a B200, an RTX 5090 or a GB10; or
        /// sm_90, planned for an H200 without wgmma. The default is sm_80, or the target of
        /// --machine.
        #[arg(long, value_name = "ARCH", value_parser = machine::target, conflicts_with = "machine")]
        arch: Option<Target>,
        /// The GPU to plan for: A100, RTX 3090, A10, Orin, RTX 4090, L4, H100, H200, B200,
        /// RTX 5090 or GB10, or `device` for the first one here.
        #[arg(long, value_name = "NAME")]
        machine: Option<String>,
        #[command(flatten)]
        options: explain::KernelExplainOptions,
    },
    /// Derive the gradient of a tile program by its inputs, as tile programs. The first reads the
    /// inputs and d_Y for each output Y, and writes d_X for each input X; where blocks share a tile
    /// of an input, another program adds the parts that each block wrote, in a fixed order.
    Gradient {
        /// The file of the program, or the name of a library program.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The inputs whose gradients are wanted, separated by commas. The default is all of
        /// floating-point types.
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        of: Vec<String>,
        /// Add what several blocks or threads contribute to one element by atomics, in an order
        /// that differs between runs. Gathers need it. Such derivatives are of f32, and must be 0
        /// before.
        #[arg(long)]
        atomic: bool,
        /// How many blocks one block of the gradient executes where blocks share a tile of an
        /// input: 1 or more.
        #[arg(long, value_name = "BLOCKS", default_value_t = 32, allow_negative_numbers = true)]
        merge: i64,
        /// The directory to write the programs to, each as NAME.tile. The default is standard
        /// output.
        #[arg(short, long, value_name = "DIRECTORY")]
        output: Option<PathBuf>,
    },
    /// Run a kernel on the first GPU, compare its output with the definition, and time it beside
    /// the driver's copy of equally many bytes.
    Bench {
        #[command(flatten)]
        kernel: Choice,
        /// How often kernel and copy alternate; the median is printed.
        #[arg(long, value_name = "NUMBER", default_value_t = bench::ROUNDS, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        rounds: u16,
    },
}

/// A kernel at sizes.
#[derive(Debug, Args)]
pub struct Choice {
    /// A name from `tilewright kernel list`, or the file of a tile program, `NAME.tile`.
    name: String,
    /// Sizes, as M=1024. The defaults are the small sizes that `list` prints, and those of a large
    /// array for `cost` and `bench`.
    #[arg(value_name = "SIZE=NUMBER", value_parser = size)]
    sizes: Vec<(String, i64)>,
    /// The type of the elements, as f32 or bf16. The default is the first that the kernel takes.
    #[arg(long = "type", value_name = "TYPE")]
    element: Option<String>,
    /// The GPU to plan for: A100, RTX 3090, A10, Orin, RTX 4090, L4, H100, H200, B200, RTX
    /// 5090 or GB10, or `device` for the first one here. The default is an H200, and the device for
    /// `bench`.
    #[arg(long, alias = "target", value_name = "NAME")]
    machine: Option<String>,
}

fn size(text: &str) -> Result<(String, i64), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, number) = parts.ok_or("a size is a name and a number, as M=1024")?;
    let value = number.trim().parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => format!("'{number}' does not fit in 64 bits"),
        _ => format!("'{number}' is no number"),
    })?;
    Ok((name.trim().to_owned(), value))
}

impl Choice {
    /// The machine for which to plan.
    fn machine(&self) -> Result<Machine, Failure> {
        machine::named(self.machine.as_deref().unwrap_or("H200"))
    }

    /// The kernel with default sizes where none are given: small ones for a check, or large ones
    /// for a measurement.
    pub(crate) fn planned(&self, planner: &dyn Planner, large: bool) -> Result<(&'static Entry, Planned), Failure> {
        let entry = planners::named(&self.name)?;
        let sizes: Vec<(&str, i64)> = self.sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let element = self.element.as_deref().map(|name| {
            Element::named(name).ok_or_else(|| PlanError::Unknown {
                what: "type",
                given: name.to_owned(),
                known: entry.types.iter().map(|known| known.name()).collect::<Vec<_>>().join(", "),
            })
        });
        let element = element.transpose()?;
        let planned = entry.plan(planner, EntryOptions { sizes: &sizes, element, large })?;
        Ok((entry, planned))
    }
}

pub fn run(action: &KernelAction, terminal: &mut Terminal) -> Result<(), Failure> {
    match action {
        KernelAction::List => list(terminal),
        KernelAction::Show { kernel } => match Tile::chosen(kernel)? {
            Some(tile) => tiles::show(&tile, &machine::to_write_for(kernel.machine.as_deref(), None)?, terminal),
            None => show(kernel, terminal),
        },
        KernelAction::Emit { kernel, arch, launch, output } => match Tile::chosen(kernel)? {
            Some(_) if *launch != 1 => Err(of_launch(*launch, 1)),
            tile => {
                let machine = machine::to_write_for(kernel.machine.as_deref(), *arch)?;
                match tile {
                    Some(tile) => {
                        let (name, compiled) = (tile.program.name(), tile.compile(&machine)?);
                        emitted(name, compiled.kernel(), machine.target, output.as_deref(), terminal)
                    }
                    None => emit(kernel, &machine, *launch, output.as_deref(), terminal),
                }
            }
        },
        KernelAction::Check { kernel } => match Tile::chosen(kernel)? {
            Some(tile) => {
                let machine = machine::to_write_for(kernel.machine.as_deref(), None)?;
                tiles::check(&tile, &kernel.sizes, &machine, terminal)
            }
            None => check(kernel, terminal),
        },
        KernelAction::Cost { kernel } => {
            let machine = kernel.machine()?;
            if let Some(tile) = Tile::chosen(kernel)? {
                return tiles::cost(&tile, &kernel.sizes, &machine, terminal);
            }
            let (entry, planned) = kernel.planned(&machine, true)?;
            cost::run(entry, &planned, &machine, terminal)
        }
        KernelAction::Explain { file, sizes, arch, machine, options } => {
            let machine = machine::to_write_for(machine.as_deref(), *arch)?;
            explain::run(file, sizes, &machine, options, terminal)
        }
        KernelAction::Gradient { file, of, atomic, merge, output } => {
            let options = GradientOptions {
                of: of.clone(),
                atomic: *atomic,
                blocks_merged: *merge,
                ..GradientOptions::default()
            };
            tiles::gradient(&Tile::read(file)?, &options, output.as_deref(), terminal)
        }
        KernelAction::Bench { kernel, rounds } => {
            let (name, measured) = measured(kernel, &Device::open(0)?, *rounds, terminal)?;
            bench::print(&name, &measured, terminal)
        }
    }
}

/// Checks a kernel of the library or a tile program on a device, and times it over `rounds` rounds.
/// Returns its name and the measurement.
pub(crate) fn measured(
    kernel: &Choice,
    device: &Device,
    rounds: u16,
    terminal: &mut Terminal,
) -> Result<(String, BenchResult), Failure> {
    let machine = kernel.machine.as_deref().map(machine::named).transpose()?;
    if let Some(tile) = Tile::chosen(kernel)? {
        let measured = tiles::measured(&tile, &kernel.sizes, machine, (device, rounds), terminal)?;
        return Ok((tile.program.name().to_owned(), measured));
    }
    let (entry, planned) = match machine {
        Some(machine) => kernel.planned(&machine, true)?,
        None => kernel.planned(&machine::of_device(device, terminal)?, true)?,
    };
    Ok((entry.name.to_owned(), tilewright::bench::kernel(device, &planned, rounds)?))
}

fn list(terminal: &mut Terminal) -> Result<(), Failure> {
    let width = planners::library().iter().map(|entry| entry.name.len()).chain([tiles::width()]).max().unwrap_or(0);
    for entry in planners::library() {
        let types: Vec<&str> = entry.types.iter().map(|known| known.name()).collect();
        let more = |object: &mut Json| {
            let planned = entry.plan(&Machine::of_target(Target::Sm90a), EntryOptions::default())?;
            object["arch"] = json!(ptx::least(planned.kernel().program())?.name());
            object["launches"] = json!(planned.launches().count());
            Ok(())
        };
        listed((entry.name, entry.summary, ""), entry.sizes, &types, width, more, terminal)?;
    }
    tiles::list(width, terminal)
}

/// Lists a kernel with its default sizes and its types; `kind` stands behind them. `more` adds to
/// the object of it.
fn listed(
    (name, summary, kind): (&str, &str, &str),
    sizes: &[(&str, i64)],
    types: &[&str],
    width: usize,
    more: impl Fn(&mut Json) -> Result<(), Failure>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json {
        let mut object = json!({ "name": name, "summary": summary, "sizes": bench::object_of(sizes), "types": types });
        more(&mut object)?;
        return Ok(terminal.object(&object)?);
    }
    let (sizes, types) = (sizes_text(sizes), types.join(", "));
    Ok(terminal.text(&format!("{name:<width$}  {summary}\n{:width$}  {sizes}; {types}{kind}\n", ""))?)
}

/// Sizes as text: `M=1024 N=512`.
fn sizes_text(sizes: &[(impl Display, i64)]) -> String {
    sizes.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(" ")
}

/// The sizes and resources of a launch.
fn launch(program: &Program) -> Json {
    let tensors: Vec<Json> = program
        .tensors()
        .map(|buffer| json!({ "name": buffer.name, "type": buffer.element.name(), "layout": buffer.layout }))
        .collect();
    let grid: Vec<String> = program.grid.iter().map(ToString::to_string).collect();
    json!({ "tensors": tensors, "grid": grid, "threads": program.threads, "shared_bytes": program.shared_bytes })
}

/// The coverage of each output, which is proved for all sizes.
fn outputs<'k>(shown: impl IntoIterator<Item = &'k Coverage>) -> Vec<Json> {
    let object = |output: &Coverage| {
        let because = match &output.written {
            Written::Once => None,
            Written::Unproved { because, .. } => Some(because),
        };
        json!({ "tensor": output.tensor, "written_once": because.is_none(), "because": because })
    };
    shown.into_iter().map(object).collect()
}

/// The coverage for all launches of a kernel of the library.
fn outputs_of(planned: &Planned) -> Vec<Json> {
    outputs(planned.launches().flat_map(|kernel| kernel.outputs()))
}

fn show(kernel: &Choice, terminal: &mut Terminal) -> Result<(), Failure> {
    let (entry, planned) = kernel.planned(&kernel.machine()?, false)?;
    if terminal.json {
        let mut object = json!({ "name": entry.name, "plan": planned.plan(), "outputs": outputs_of(&planned) });
        crate::json::extend(&mut object, launch(planned.kernel().program()));
        if let Some(second) = planned.second() {
            object["second"] = launch(second.program());
        }
        return Ok(terminal.object(&object)?);
    }
    Ok(terminal.text(&shown(&format!("{}: {}", entry.name, entry.summary), planned.plan(), planned.launches()))?)
}

/// A title, a plan, and for each launch its tensors, its grid, and what is shown of its outputs.
fn shown<'k>(title: &str, plan: &[String], launches: impl Iterator<Item = &'k Kernel>) -> String {
    let mut text = format!("{title}\n");
    for line in plan {
        let _ = writeln!(text, "  {line}");
    }
    for kernel in launches {
        let program = kernel.program();
        let _ = writeln!(text);
        for buffer in program.tensors() {
            let _ = writeln!(text, "  {:<12} {} {}", buffer.name, buffer.element, buffer.layout);
        }
        let [x, y, z] = &program.grid;
        let _ = writeln!(text, "  grid         ({x},{y},{z}) of {} threads", program.threads);
        let _ = writeln!(text, "  shared       {} bytes a block", program.shared_bytes);
        for output in kernel.outputs() {
            let _ = writeln!(text, "  {:<12} {}", output.tensor, output.written);
        }
    }
    text
}

/// The error for a launch that a kernel does not have.
fn of_launch(launch: i64, count: usize) -> Failure {
    let known = match count {
        1 => "no others than launch 1, for these sizes".to_owned(),
        count => format!("launches 1 to {count}"),
    };
    PlanError::Unknown { what: "launch", given: launch.to_string(), known }.into()
}

fn emit(
    kernel: &Choice,
    machine: &Machine,
    launch: i64,
    output: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let (entry, planned) = kernel.planned(machine, false)?;
    let before = launch.checked_sub(1).and_then(|before| usize::try_from(before).ok());
    let launched = before.and_then(|before| planned.launches().nth(before));
    let launched = launched.ok_or_else(|| of_launch(launch, planned.launches().count()))?;
    emitted(entry.name, launched, machine.target, output, terminal)
}

/// Writes a kernel as PTX: to a file, or to standard output.
fn emitted(
    name: &str,
    kernel: &Kernel,
    arch: Target,
    output: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let text = ptx::write(kernel.program(), arch)?;
    match output {
        Some(file) => write_file(file, text.as_bytes(), terminal),
        None if terminal.json => Ok(terminal.object(&json!({ "name": name, "arch": arch.name(), "ptx": text }))?),
        None => Ok(terminal.text(&text)?),
    }
}

fn check(kernel: &Choice, terminal: &mut Terminal) -> Result<(), Failure> {
    let (entry, planned) = kernel.planned(&kernel.machine()?, false)?;
    match planned.check() {
        Ok(report) => passed(entry, &planned, &report, terminal),
        Err(Unchecked::Interpreter(error)) => Err(unchecked(&error, terminal)?),
        Err(wrong) => Err(Failure::Value(wrong.to_string())),
    }
}

/// Prints the interpreter's finding or refusal.
fn unchecked(error: &CheckError, terminal: &mut Terminal) -> Result<Failure, Failure> {
    let findings = match error {
        CheckError::Setup(error) => return Ok(Failure::refused(error)),
        CheckError::Findings(findings) => findings,
    };
    for finding in findings.iter() {
        if terminal.json {
            terminal.object(&json!({ "finding": finding.code(), "message": finding.to_string() }))?;
        } else {
            terminal.text(&format!("found[{}]: {finding}\n", finding.code()))?;
        }
    }
    Ok(Failure::No)
}

/// The result of a check without findings.
const NOTHING_FOUND: &str = "no access outside a tensor, no race, nothing unwritten read, each output written once";

fn object_of(access: &AccessCount) -> Json {
    json!({
        "statement": access.source.statement,
        "tensor": access.buffer,
        "requests": access.requests,
        "bytes": access.bytes,
        "wavefronts": access.wavefronts,
        "least_wavefronts": access.least_wavefronts,
        // Sectors of TMA copies are not counted.
        "sectors": (access.class != Class::Bulk).then_some(access.sectors),
        "at_most": access.at_most,
    })
}

fn passed(entry: &Entry, planned: &Planned, report: &Report, terminal: &mut Terminal) -> Result<(), Failure> {
    // Both launches, if there are two.
    let runs: Vec<_> = std::iter::once(&report.checked).chain(&report.second).map(|checked| &checked.run).collect();
    let schedules = report.checked.schedules.len();
    let accesses: Vec<AccessCount> =
        runs.iter().flat_map(|run| AccessCount::by_statement(&run.counts.accesses)).collect();
    let executed = |class: Class| runs.iter().map(|run| run.counts.executed(class)).sum::<u64>();
    let total: u64 = runs.iter().map(|run| run.counts.total()).sum();
    if terminal.json {
        let executed: serde_json::Map<String, Json> = Class::ALL
            .iter()
            .filter(|class| executed(**class) > 0)
            .map(|class| (class.name().to_owned(), Json::from(executed(*class))))
            .collect();
        let object = json!({
            "name": entry.name,
            "plan": planned.plan(),
            "sizes": bench::object_of(planned.sizes()),
            "schedules": schedules,
            "instructions": total,
            "executed": executed,
            "accesses": accesses.iter().map(object_of).collect::<Vec<_>>(),
            "compared": report.compared,
            "worst": report.worst,
            "outputs": outputs_of(planned),
        });
        return Ok(terminal.object(&object)?);
    }
    let mut text = String::new();
    let _ = writeln!(text, "{}", entry.name);
    for line in planned.plan() {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    for line in AccessCount::table(&accesses).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "\n  {total} instructions of warps under each of {schedules} schedules:");
    let _ = writeln!(text, "  {NOTHING_FOUND}");
    let _ = writeln!(
        text,
        "  {} elements compared with the definition; {}",
        report.compared,
        if report.worst == 0.0 {
            "all equal".to_owned()
        } else {
            format!("the farthest at {:.3} of the bound that rounding gives", report.worst)
        }
    );
    let alone = planned.sizes().is_empty();
    let _ = match alone {
        true => writeln!(text, "  for one set of numbers; this kernel is built for these sizes alone"),
        false => writeln!(text, "  for these sizes and one set of numbers; other sizes were not run"),
    };
    let _ = writeln!(text, "\n  shown when the kernel was built: no access outside a tensor, for all sizes");
    for output in planned.launches().flat_map(|kernel| kernel.outputs()) {
        let _ = match &output.written {
            Written::Once => writeln!(text, "  {}: {}", output.tensor, output.written),
            Written::Unproved { because, .. } => {
                writeln!(text, "  {}: {}: {because}", output.tensor, checked_at(planned))
            }
        };
    }
    Ok(terminal.text(&text)?)
}

/// The sizes at which it was checked that one thread writes each element of an output, for outputs
/// without a proof.
fn checked_at(planned: &Planned) -> String {
    match planned.sizes().is_empty() {
        true => "each element was written by one thread in this run, at all sizes that this kernel has; not shown"
            .to_owned(),
        false => {
            let sizes = sizes_text(planned.sizes());
            format!("each element was written by one thread at {sizes}; not shown for other sizes")
        }
    }
}
