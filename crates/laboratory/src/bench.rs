//! `tilewright bench`: tables of measured performance, compared with other installed libraries.

mod copy;
mod gemm;

use clap::Subcommand;
use tilewright::tensor;
use tilewright_cli::shared::{Failure, Terminal};

/// The tables.
#[derive(Debug, Subcommand)]
pub enum Table {
    /// Copies between layouts, in GB/s of elements moved: the best of several runs.
    ///
    /// `share` is relative to a plain copy of as many bytes, measured alternately with the runs.
    /// NumPy and PyTorch are measured if `python3` has them, the crate `ndarray` if there is a
    /// command `tilewright-peers`, which `cargo install --path bench` builds, and HPTT if that was
    /// built with `--features hptt`.
    Copy {
        /// The size of the arrays of each case, in mebibytes.
        #[arg(long, value_name = "MEBIBYTES", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=4096))]
        size: u16,
        /// The least time for each case, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 0.3)]
        seconds: f64,
        /// The numbers of threads, separated by commas.
        #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,2", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
        threads: Vec<u16>,
    },

    /// GEMMs, in GFLOP/s: the best of several runs.
    ///
    /// `share` is relative to the peak: the multiply-adds of the same instructions on registers
    /// only, on as many threads. The peak is the best of many short slices, measured alternately
    /// with the runs. NumPy is measured if `python3` has it, the crates `gemm` and `matrixmultiply`
    /// if there is a command `tilewright-peers`, which `cargo install --path bench` builds.
    ///
    /// With `--path avx2` the others are limited to the same instructions: NumPy's OpenBLAS by
    /// `OPENBLAS_CORETYPE`, the crate `gemm` by a command `tilewright-peers-avx2`, which `cargo
    /// install --path bench --no-default-features --features avx2` builds without AVX-512.
    /// `matrixmultiply`, which cannot be limited, is not measured. With `--path portable` OpenBLAS
    /// is limited to SSE3, and neither crate, which cannot be limited below AVX2, is measured.
    Gemm {
        /// Measure fewer shapes.
        #[arg(long)]
        quick: bool,
        /// The instructions of the micro-kernel; the fastest that this machine supports if omitted.
        #[arg(long, value_name = "INSTRUCTIONS")]
        path: Option<gemm::Path>,
        /// The types of numbers, separated by commas.
        #[arg(long = "type", value_name = "TYPES", value_delimiter = ',', default_value = "f32,f64")]
        kinds: Vec<gemm::Kind>,
        /// The numbers of threads, separated by commas.
        #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,2", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
        threads: Vec<u16>,
        /// The least time for each case, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 0.3)]
        seconds: f64,
    },
}

pub fn run(table: &Table, terminal: &mut Terminal) -> Result<(), Failure> {
    let counts = |threads: &[u16]| threads.iter().copied().map(usize::from).collect::<Vec<_>>();
    match table {
        Table::Copy { size, seconds, threads } => copy::run(usize::from(*size), *seconds, &counts(threads), terminal),
        Table::Gemm { quick, path, kinds, threads, seconds } => {
            gemm::run(*quick, *path, kinds, &counts(threads), *seconds, terminal)
        }
    }
}

fn failed(error: tensor::TensorError) -> Failure {
    error.into()
}
