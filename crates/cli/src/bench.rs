//! `tilewright bench`: a report of measurements on the first GPU, and a comparison of the reports
//! of several GPUs.
//!
//! Law: each figure of a report was measured in the run that wrote it, for a result that was
//! checked in that run. A case that fails stays in the report, with the reason.

mod report;
mod table;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use tilewright::gpu::Device;

use self::report::{CaseOutcome, Report};
use crate::gemm;
use crate::json::Json;
use crate::kernel;
use crate::output::{Failure, check_directory, write_file};
use crate::problem_line::{self, ProblemLine};
use crate::progress::Progress;
use crate::terminal::Terminal;

/// The examples after the help of the command.
pub const EXAMPLES: &str = "\
Examples:
  tilewright bench report -o my-card.json
  tilewright bench report -o my-card.json 'gemm 8192 8192 8192 --type bf16' 'softmax M=8192 N=4096'
  tilewright bench compare my-card.json other-card.json
  tilewright bench compare reports/*.json -o cards.html

A report is one file of JSON: the card, its driver, and for each case the time, the rate, the plan,
how many elements of the result were compared with the definition, and the largest error. It names
nothing else of the machine, so that it can be sent.

A case is written as for `tilewright gemm`, or as for `tilewright kernel bench`: the name of a
kernel or the file of a tile program, sizes and a type.";

/// The cases that a report measures if none is named: at most 2 GB of tensors each.
const CASES: [&str; 22] = [
    "copy N=134217728 --type f32",
    "add N=67108864 --type f32",
    "transpose M=16384 N=8192 --type bf16",
    "permute A=1 B=1 C=64 D=128 E=64 F=128 ORDER=15432 --type bf16",
    "sum_rows M=65536 N=1024 --type bf16",
    "sum_columns M=16384 N=4096 --type bf16",
    "softmax M=32768 N=4096 --type bf16",
    "rms_norm M=32768 N=4096 --type bf16",
    "layer_norm M=65536 N=768 --type bf16",
    "gemm 2048 2048 2048 --type bf16",
    "gemm 4096 4096 4096 --type bf16",
    "gemm 8192 8192 8192 --type bf16",
    "gemm 4096 4096 4096 --type f16",
    "gemm 4096 4096 4096 --type tf32",
    "gemm 4096 4096 4096 --type f32",
    "gemm 4096 4096 4096 --type i8",
    "gemm 4096 4096 4096 --type e4m3",
    "gemm 4096 14336 4096 --type bf16 --epilogue 'gelu(x + bias)'",
    "gemm 4095 4097 4100 --type bf16 --layout-b row",
    "gemm 16 8192 4096 --type bf16",
    "gemm 1 8192 4096 --type bf16",
    "prefix_rows M=16384",
];

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum BenchAction {
    /// Run cases on the first GPU, check their results, time them, and write a report.
    Report(ReportOptions),
    /// Print the reports of several GPUs as one table, a column for each; -o FILE.html or FILE.md
    /// writes it.
    Compare(CompareOptions),
}

/// What a report measures, and where it is written.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Cases, each in quotes. The default is a list of copies, rows, reductions and GEMMs.
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// A file with a case in each line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// How often a kernel and the driver's copy alternate; the median counts. GEMMs have rounds of
    /// their own.
    #[arg(long, value_name = "NUMBER", default_value_t = kernel::bench::ROUNDS, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// The file to write.
    #[arg(short, long, value_name = "FILE.json")]
    output: PathBuf,
}

/// The reports to compare.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Files that `tilewright bench report` wrote.
    #[arg(value_name = "REPORT", required = true)]
    reports: Vec<PathBuf>,
    /// The page to write: FILE.html, or FILE.md. The default is Markdown on standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(action: &BenchAction, terminal: &mut Terminal) -> Result<(), Failure> {
    match action {
        BenchAction::Report(options) => report(options, terminal),
        BenchAction::Compare(options) => compare(options, terminal),
    }
}

fn report(options: &ReportOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let named = problem_line::lines(&options.cases, options.list.as_deref())?;
    let lines = if named.is_empty() { CASES.map(str::to_owned).to_vec() } else { named };
    // A misspelt case, or a file that cannot be written, is refused before anything runs for
    // minutes.
    let read = lines.iter().map(|line| ProblemLine::read(line).map_err(|failure| failure.about(line)));
    let problems: Vec<ProblemLine> = read.collect::<Result<_, _>>()?;
    check_directory(&options.output)?;
    let device = Device::open(0)?;
    let mut progress = Progress::new("measuring", problems.len() as u64);
    let mut cases = Vec::new();
    for (line, problem) in lines.iter().zip(&problems) {
        let mut object = match measured(problem, &device, options.rounds, terminal) {
            Ok(object) => object,
            Err(failure) => failed(&failure)?,
        };
        object["case"] = json!(line);
        progress.hide();
        if !terminal.json {
            terminal.text(&format!("{line}\n  {}\n", CaseOutcome::read(&object).unwrap_or_default()))?;
        }
        cases.push(object);
        progress.step(1);
    }
    progress.end();
    let text = format!("{:#}\n", Report::object(&device, cases));
    write_file(&options.output, text.as_bytes(), terminal)
}

/// Checks and times a case.
fn measured(problem: &ProblemLine, device: &Device, rounds: u16, terminal: &mut Terminal) -> Result<Json, Failure> {
    match problem {
        ProblemLine::Gemm(options) => gemm::measured_object(options, device, terminal),
        ProblemLine::Kernel(choice) => {
            let (name, measured) = kernel::measured(choice, device, rounds, terminal)?;
            Ok(kernel::bench::object(&name, &measured))
        }
    }
}

/// A case that was refused, or whose result was wrong.
///
/// Errors: a stream of this process is closed, which affects all cases.
fn failed(failure: &Failure) -> Result<Json, Failure> {
    match failure {
        Failure::Io(error) => Err(Failure::Io(std::io::Error::new(error.kind(), error.to_string()))),
        other => {
            let error = other.json().and_then(|mut object| object.get_mut("error").map(Json::take)).unwrap_or_default();
            let message = error.get("message").and_then(Json::as_str).unwrap_or("it did not run to its end");
            Ok(json!({ "checked": false, "code": error.get("code"), "refused": message }))
        }
    }
}

fn compare(options: &CompareOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let reports: Vec<Report> = options.reports.iter().map(|path| Report::read(path)).collect::<Result<_, _>>()?;
    let Some(file) = &options.output else {
        if terminal.json {
            return reports.iter().try_for_each(|report| Ok(terminal.object(report.json())?));
        }
        return Ok(terminal.text(&table::markdown(&reports))?);
    };
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => write_file(file, table::page(&reports).as_bytes(), terminal),
        Some("md") => write_file(file, table::markdown(&reports).as_bytes(), terminal),
        _ => Err(Failure::Usage(format!("-o {}: end the name with .html or .md", file.display()))),
    }
}
