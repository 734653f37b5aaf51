//! `tilewright bench`: tables of what is reached here, beside others that are installed.

mod copy;
mod gemm;

use clap::Subcommand;
use tilewright::tensor;

use crate::terminal::{Failure, Terminal};

/// The tables.
#[derive(Debug, Subcommand)]
pub enum Table {
    /// Copies between layouts, in GB/s of elements moved: the best of some runs.
    ///
    /// `share` is that of a plain copy of as many bytes, measured in turn. NumPy and PyTorch are asked if `python3` has them, the crate `ndarray` if there is a command
    /// `tilewright-peers`, which `cargo install --path bench` builds, and HPTT if that was built with `--features hptt`.
    Copy {
        /// The size of each case.
        #[arg(long, value_name = "MEBIBYTES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
        size: u16,
        /// The seconds that each case takes at the least.
        #[arg(long, value_name = "SECONDS", default_value_t = 0.3)]
        seconds: f64,
        /// The numbers of threads, separated by commas.
        #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u16).range(1..=1024))]
        threads: Vec<u16>,
    },

    /// Products of matrices, in GFLOP/s: the best of some runs, on one thread and on two.
    ///
    /// `share` is that of the multiply-adds that the instructions of the atom were found to do in the same run. NumPy is asked if `python3` has it, the crates
    /// `gemm` and `matrixmultiply` if there is a command `tilewright-peers`, which `cargo install --path bench` builds.
    Gemm {
        /// Fewer shapes.
        #[arg(long)]
        quick: bool,
        /// Which micro-kernel: the number of the atom, the fastest first.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        atom: usize,
        /// The seconds that each case takes at the least.
        #[arg(long, value_name = "SECONDS", default_value_t = 0.3)]
        seconds: f64,
    },
}

pub fn run(table: &Table, terminal: &mut Terminal) -> Result<(), Failure> {
    match table {
        Table::Copy { size, seconds, threads } => {
            let threads: Vec<usize> = threads.iter().copied().map(usize::from).collect();
            copy::run(usize::from(*size), *seconds, &threads, terminal)
        }
        Table::Gemm { quick, atom, seconds } => gemm::run(*quick, *atom, *seconds, terminal),
    }
}

fn failed(error: tensor::TensorError) -> Failure {
    Failure::Usage(error.to_string())
}
