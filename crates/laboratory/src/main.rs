//! `tilewright-lab`: measurements and checks for the developers of Tilewright.
//!
//! Users have the command `tilewright`. This program measures and checks the library and a machine
//! as a whole: tables that compare it with other libraries, GEMMs of random types, sizes and
//! layouts compared with sums in double precision, and plans for thousands of devices. Its output
//! and exit codes follow the rules of the command `tilewright`.

mod bench;
mod random;
mod scale;

use std::process::ExitCode;

use clap::{ColorChoice, Parser, Subcommand};
use tilewright_cli::shared::{Failure, Terminal, answered};

/// Measure and check the library: for its developers.
#[derive(Debug, Parser)]
#[command(name = "tilewright-lab", version, max_term_width = 100)]
struct Args {
    /// When to use colour; `auto` asks whether the output is a terminal, and respects NO_COLOR.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,

    /// Answer with JSON objects, one on each line.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure performance on this machine, compared with other installed libraries.
    #[command(after_help = "\
Examples:
  tilewright-lab bench copy
  tilewright-lab bench copy --size 256 --threads 1
  tilewright-lab bench gemm --quick
  tilewright-lab bench gemm --path avx2 --type f32 --threads 1")]
    Bench {
        #[command(subcommand)]
        table: bench::Table,
    },

    /// Check GEMMs of random types, sizes, layouts and plans.
    #[command(after_help = "\
Examples:
  tilewright-lab random 40
  tilewright-lab random 250 --first 1000 --device
  tilewright-lab random 8 --m 24 --machine H100

A number gives one problem and its plan, so a failure is repeated by `random 1 --first NUMBER`. Small
problems run in the interpreter, which compares every element. On a device larger ones run, and
random elements are compared; every byte beside the outputs must be as it was.")]
    Random {
        #[command(flatten)]
        options: random::RandomOptions,
    },

    /// Show how the volumes and times of resharding plans of one matrix grow with the number of
    /// devices.
    #[command(after_help = "\
Examples:
  tilewright-lab scale
  tilewright-lab scale --size 4096 --devices 8,64
  tilewright-lab scale --devices 8,64,512 -o scale.svg")]
    Scale {
        #[command(flatten)]
        options: scale::ScaleOptions,
    },
}

fn run(command: &Command, terminal: &mut Terminal) -> Result<(), Failure> {
    match command {
        Command::Bench { table } => bench::run(table, terminal),
        Command::Random { options } => random::run(options, terminal),
        Command::Scale { options } => scale::run(options, terminal),
    }
}

fn main() -> ExitCode {
    answered(|args: &Args| Terminal::new(args.color, args.json), |args, terminal| run(&args.command, terminal))
}
