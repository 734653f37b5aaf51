//! `tilewright sanitize`: runs and checks the PTX of any compiler without a GPU.
//!
//! Law: the exit status is 0 if nothing was found. It is 1 if there is a finding or a result
//! differs from the expected one, 2 if the launch does not fit the kernel, and 3 if the kernel did
//! not run to its end.

mod costs;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use tilewright::kernel::machine::Machine;
use tilewright::sanitize::costs::SourceTexts;
use tilewright::sanitize::{Argument, Ending, KernelLaunch, Options, Report, ResultArray, npy, sanitize};

use crate::machine;
use crate::output::{self, Failure};
use crate::terminal::Terminal;

/// The examples after the help of the command.
pub const EXAMPLES: &str = "\
Examples:
  tilewright sanitize add.ptx --entry add --grid 1024 --block 256 \\
      --arg in:f32[262144] --arg in:f32[262144] --arg out:f32[262144] --arg i32=262144
  tilewright sanitize mm.ptx --entry mm --grid 8,8 --block 128 --shared 16384 --schedules 4 \\
      --arg in:f16[512,512]=a.npy --arg in:f16[512,512]=b.npy --arg out:f16[512,512] \\
      --expect 2=c.npy --tolerance 1e-2

An argument is
  in:f32[64,64]        an array that the kernel reads, of random numbers; `=zeros`, `=ones`, `=nan`,
                       `=range` or `=FILE.npy` fill it otherwise
  out:bf16[4096]       an array that nobody has written before the kernel
  inout:i32[1]=zeros   an array that both write
  i32=64, f32=1e-5     a value; `null` is a pointer to nothing, `hex:00ff` bytes
  map:in:f16[512,512]:box=64x64:swizzle=128B
                       a tensor map of an array; `map:#0:box=64x64` of that of argument 0;
                       `steps=2x1` and `fill=nan` may follow
  map:in:f16[8,32,32,64]:im2col=128x64:lower=-1x-1:upper=-1x-1
                       one of 128 pixels of 64 channels each, from the lower to the upper corner
in the order of the parameters. Triton's kernels end with two pointers that are `null`.";

/// The kernel, its launch and what is done with it.
#[derive(Debug, Args)]
pub struct SanitizeOptions {
    /// The file of PTX, as the compiler wrote it.
    #[arg(value_name = "FILE.ptx")]
    file: PathBuf,
    /// The kernel; not needed where the file has one.
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// The blocks of the grid.
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    grid: [u32; 3],
    /// The threads of a block.
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    block: [u32; 3],
    /// The blocks of a cluster; else those that the kernel asks for.
    #[arg(long, value_name = "X,Y,Z", value_parser = extents)]
    cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u64,
    /// An argument, as the examples below show; once for each parameter.
    #[arg(long = "arg", value_name = "SPEC", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// A result that is compared with a file: the number of its argument, from 0, or its name.
    #[arg(long, value_name = "OUT=FILE.npy")]
    expect: Vec<String>,
    /// By how much a result may differ, absolutely or relative to what is expected.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, allow_negative_numbers = true, value_parser = tolerance)]
    tolerance: f64,
    /// A result that is written to a file.
    #[arg(long, value_name = "OUT=FILE.npy")]
    save: Vec<String>,
    /// Writes the findings as SARIF, for the lines of a pull request. Paths of sources are those of
    /// the current folder.
    #[arg(long, value_name = "FILE.sarif")]
    sarif: Option<PathBuf>,
    /// Count what each line of the source takes: instructions of warps, sectors of global memory,
    /// wavefronts of shared memory, with the fewest there could be in brackets.
    #[arg(long)]
    costs: bool,
    /// Write the costs as a page: source beside counts, with pictures of banks and sectors.
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Print lower bounds of the time on a GPU, from the costs: A100, RTX 3090, A10, Orin, RTX
    /// 4090, L4, H100, H200, B200, RTX 5090 or GB10, or `device` for the first one here.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// What random numbers and random schedules are made of.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// In how many schedules the kernel runs; their results are compared.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    schedules: u32,
    /// How many instructions of threads a schedule may execute.
    #[arg(long, value_name = "COUNT", default_value_t = 100_000_000_000)]
    limit: u64,
    /// On how many cores; else on all.
    #[arg(long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// Up to three numbers, separated by commas.
fn extents(text: &str) -> Result<[u32; 3], String> {
    let mut found = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > 3 {
        return Err("at most three numbers are expected, such as 8,8,1".to_string());
    }
    for (own, part) in found.iter_mut().zip(parts) {
        *own = part.trim().parse().map_err(|_| format!("`{part}` is no number"))?;
    }
    Ok(found)
}

/// A tolerance: with an infinite one all finite numbers would agree, and with a NaN none.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "a number of at least 0 is expected, such as 1e-2".to_owned())
}

/// The result that a text such as `2=FILE.npy` names, and the path.
fn named<'r>(text: &str, results: &'r [ResultArray]) -> Result<(&'r ResultArray, PathBuf), Failure> {
    let Some((name, path)) = text.split_once('=') else {
        return Err(Failure::Usage(format!("`{text}`: a result and a file are expected, such as 2=c.npy")));
    };
    let found = results.iter().find(|own| own.name == name || name.parse() == Ok(own.argument));
    let Some(found) = found else {
        let names: Vec<String> = results.iter().map(|own| format!("{} ({})", own.argument, own.name)).collect();
        return Err(Failure::Usage(format!("`{name}` is no result of the kernel; there are: {}", names.join(", "))));
    };
    Ok((found, PathBuf::from(path)))
}

/// Runs the command.
pub fn run(options: &SanitizeOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let machine = options.machine.as_deref().map(machine::named).transpose()?;
    if let Some(path) = &options.output {
        costs::check_page(path)?;
    }
    let text =
        std::fs::read(&options.file).map_err(|error| Failure::Usage(format!("{}: {error}", options.file.display())))?;
    let text = String::from_utf8_lossy(&text);
    let entry = match &options.entry {
        Some(entry) => entry.clone(),
        None => only_entry(&text)?,
    };
    let mut launch = KernelLaunch::new(entry.clone(), options.grid, options.block).shared(options.shared);
    launch.cluster = options.cluster;
    for (number, argument) in options.arguments.iter().enumerate() {
        let seed = options.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number as u64);
        let argument = Argument::read("", argument, seed).map_err(|error| Failure::Usage(error.message))?;
        launch = launch.argument(argument);
    }
    let interrupts = interrupts();
    let started = Instant::now();
    let shown = AtomicU32::new(0);
    let is_json = terminal.json;
    let stop = || {
        show_progress(started, &shown, is_json);
        interrupts.load(Ordering::Relaxed)
    };
    let report = sanitize(
        &text,
        &launch,
        &Options {
            schedules: options.schedules,
            seed: options.seed,
            limit: options.limit,
            cores: options.threads.map(usize::from),
            costs: options.costs || options.output.is_some() || machine.is_some(),
            stop: Some(&stop),
            ..Options::default()
        },
    );
    if shown.load(Ordering::Relaxed) > 0 {
        eprint!("\r\x1b[K");
    }
    let report = report.map_err(|error| Failure::Usage(error.message))?;
    for own in &options.save {
        let (result, path) = named(own, &report.results)?;
        let bytes = npy::write(result.element, &result.shape, &result.bytes);
        std::fs::write(&path, bytes).map_err(|error| Failure::file(&path, error))?;
    }
    if let Some(path) = &options.sarif {
        let root = std::env::current_dir().map_or(String::new(), |root| root.display().to_string());
        let log = report.to_sarif(&options.file.display().to_string(), &root);
        std::fs::write(path, log).map_err(|error| Failure::file(path, error))?;
    }
    let mut differences = Vec::new();
    for own in &options.expect {
        let (result, path) = named(own, &report.results)?;
        let (element, shape, bytes) = npy::read(&path).map_err(|error| Failure::Usage(error.message))?;
        if shape != result.shape {
            let why = format!("{own}: the file holds {shape:?}, and the result is {:?}", result.shape);
            return Err(Failure::Usage(why));
        }
        if let Some(difference) = result.difference(element, &bytes, options.tolerance) {
            differences.push((result.name.clone(), difference));
        }
    }
    if let (Some(path), Some(costs)) = (&options.output, &report.costs) {
        let page = costs::page(costs, &text, &options.file, machine.as_ref(), &entry);
        output::write_file(path, page.as_bytes(), terminal)?;
    }
    print(&report, &differences, (options, &text, machine.as_ref()), terminal)?;
    if report.ending != Ending::Complete {
        return Err(Failure::Partly);
    }
    match report.findings.is_empty() && differences.is_empty() {
        true => Ok(()),
        false => Err(Failure::No),
    }
}

fn print(
    report: &Report,
    differences: &[(String, tilewright::sanitize::Difference)],
    (options, ptx, machine): (&SanitizeOptions, &str, Option<&Machine>),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json {
        let mut object: serde_json::Value = serde_json::from_str(&report.to_json())
            .map_err(|error| Failure::Value(format!("the report cannot be written: {error}")))?;
        object["differences"] = differences
            .iter()
            .map(|(name, own)| {
                serde_json::json!({
                    "result": name,
                    "element": own.element,
                    "found": own.found.to_string(),
                    "expected": own.expected.to_string(),
                    "count": own.count,
                })
            })
            .collect();
        if let (Some(machine), Some(costs)) = (machine, &report.costs) {
            object["costs"]["machine"] = serde_json::json!(machine.name);
            object["costs"]["bounds"] = costs::bounds(costs, machine)
                .iter()
                .map(|own| serde_json::json!({ "by": own.what, "seconds": own.seconds }))
                .collect();
        }
        return Ok(terminal.object(&object)?);
    }
    let mut text: String = report.printed.iter().map(|line| format!("| {}\n", line.trim_end_matches('\n'))).collect();
    for (name, own) in differences {
        text += &format!(
            "`{name}`: {} elements differ from what is expected; element {} is {}, not {}\n",
            own.count, own.element, own.found, own.expected
        );
    }
    text += &format!("{report}\n");
    if let Some(costs) = &report.costs {
        if options.costs {
            let mut sources = SourceTexts::in_folder(options.file.parent().unwrap_or(Path::new("")));
            text += &costs.table(ptx, |file, line| sources.line(file, line));
        }
        if let Some(machine) = machine {
            text += &costs::bounds_text(costs, machine);
        }
    }
    Ok(terminal.text(&text)?)
}

/// The only entry of a file.
fn only_entry(text: &str) -> Result<String, Failure> {
    let module = tilewright::sanitize::ptx::parse(text).map_err(|error| Failure::Usage(format!("PTX {error}")))?;
    let names: Vec<&str> =
        module.functions.iter().filter(|own| own.is_entry && own.body.is_some()).map(|own| own.name).collect();
    match names.as_slice() {
        [name] => Ok((*name).to_string()),
        [] => Err(Failure::Usage("the file has no entry".to_string())),
        names => Err(Failure::Usage(format!("--entry is missing; the file has {}", names.join(", ")))),
    }
}

/// Set by Ctrl-C; a second Ctrl-C ends the program.
fn interrupts() -> &'static AtomicBool {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    // Without a handler, Ctrl-C ends the program at once, which is acceptable.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    &INTERRUPTED
}

/// Shows the elapsed seconds of a long run, on standard error if that is a terminal.
fn show_progress(started: Instant, shown: &AtomicU32, is_json: bool) {
    use std::io::IsTerminal;
    let elapsed = started.elapsed();
    if is_json || elapsed < Duration::from_secs(1) {
        return;
    }
    let seconds = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
    if shown.swap(seconds, Ordering::Relaxed) != seconds && std::io::stderr().is_terminal() {
        eprint!("\rrunning for {seconds} s; ctrl-C ends it");
    }
}
