//! `tilewright bench`: tables of what is reached here, beside others that are installed.

mod copy;

use clap::Subcommand;
use tilewright::tensor;

use crate::terminal::{Failure, Terminal};

/// The tables.
#[derive(Debug, Subcommand)]
pub enum Table {
    /// Copies between layouts, in GB/s of elements moved: the best of some runs.
    ///
    /// `share` is that of a plain copy of as many bytes, measured in turn. NumPy is asked if `python3` has it, the crates `ndarray` and `hptt` if there is a command
    /// `tilewright-peers`.
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
}

pub fn run(table: &Table, terminal: &mut Terminal) -> Result<(), Failure> {
    match table {
        Table::Copy { size, seconds, threads } => {
            let threads: Vec<usize> = threads.iter().copied().map(usize::from).collect();
            copy::run(usize::from(*size), *seconds, &threads, terminal)
        }
    }
}

fn failed(error: tensor::TensorError) -> Failure {
    Failure::Usage(error.to_string())
}
