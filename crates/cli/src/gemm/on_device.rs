//! The options of a product on a device.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tilewright::kernel::Kernel;
use tilewright::kernel::machine::Machine;
use tilewright::kernel::ptx;
use tilewright::tensor::npy;

use super::convolution::Convolution;
use crate::output::Failure;

/// The options of a device run.
#[derive(Debug, Args)]
#[command(next_help_heading = "On a device")]
pub struct DeviceRunOptions {
    /// Run the GEMM on the first GPU, check the result, and time it beside cuBLAS where cuBLAS is
    /// installed.
    #[arg(long)]
    pub device: bool,
    /// Print the plan: the kernels, tiles and schedule of the GEMM. Needs no device.
    #[arg(long)]
    pub plan: bool,
    /// The GPU to plan for: A100, RTX 3090, A10, Orin, RTX 4090, L4, H100, H200, B200, RTX
    /// 5090 or GB10, or `device` for the first one here; else the first GPU, or an H200 where there
    /// is none. With --device, a later GPU runs the plan of an earlier one, from the text for that
    /// one.
    #[arg(long, value_name = "NAME", conflicts_with = "tune")]
    pub machine: Option<String>,
    /// Write the PTX of each kernel of the plan into this folder, as `1-product_groups.ptx`.
    #[arg(long, value_name = "FOLDER", requires = "plan")]
    ptx: Option<PathBuf>,
    /// Carry out this plan, not the one of the model: the line of a plan (`Plan::line`), such as
    /// `rows=128 columns=128 warpgroups=1 stages=6 split_k=1 tail=0 cluster=1 raster_band=8
    /// blocks_per_sm=1 blocks=132 swapped=false programmatic_launch=false ping_pong=false warps=2x2
    /// producer=true`.
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["tune", "list"])]
    pub chosen: Option<String>,
    /// Run the kernels of the plan in the interpreter, on random numbers, and compare each element
    /// of the result with the definition. It takes about a second for 10 million products.
    #[arg(long, requires = "plan", conflicts_with = "list")]
    pub check: bool,
    /// Measure this many plans on the device, beginning with those that the model ranks fastest.
    /// The fastest plan is kept in a file, which --device and --plan read afterwards.
    #[arg(long, value_name = "PLANS", num_args = 0..=1, default_missing_value = "24", requires = "device", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub tune: Option<u32>,
    /// Let the device idle for this many milliseconds before each round of 2 ms or one GEMM, so
    /// that it stays cool and its clock high. Without this, rounds of 20 ms follow one another.
    #[arg(long, value_name = "MILLISECONDS", requires = "device", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rest: Option<u32>,
    /// The batch size: this many GEMMs of these sizes, consecutive in memory.
    #[arg(long, value_name = "COUNT", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// Grouped GEMM: the rows of A and D form groups, and B is (K,N,G), a matrix for each group.
    /// Give the rows of each group, `512,0,96`, or the number of groups of random sizes.
    #[arg(long, value_name = "ROWS", allow_hyphen_values = true, value_parser = Groups::read, conflicts_with = "batch")]
    pub groups: Option<Groups>,
    /// Several GEMMs in one launch: M, N and K of each, `512x1024x64,16x4096x4096`. All have the
    /// same types, epilogue, and layouts by name.
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true, value_parser = ProblemSizes::read, conflicts_with_all = ["sizes", "m", "n", "k", "batch", "groups", "tune", "keep", "scales"])]
    pub list: Option<ProblemSizes>,
    /// The type of D. The default is the type of A and B; i32 for 8-bit integers, bf16 for 8-bit
    /// floats.
    #[arg(long, value_name = "TYPE")]
    pub result: Option<Stored>,
    /// The layout of A, (M,K): `row` (row-major), `column` (column-major), or a layout, with an
    /// offset or without: `3 o (64,32):(32,1)`.
    #[arg(long, value_name = "LAYOUT", default_value = "row")]
    pub layout_a: String,
    /// The layout of B, (K,N): `column` is K-major.
    #[arg(long, value_name = "LAYOUT", default_value = "column")]
    pub layout_b: String,
    /// The layout of D, (M,N).
    #[arg(long, value_name = "LAYOUT", default_value = "row")]
    pub layout_d: String,
    /// The epilogue: an expression of the accumulator `x`, and of `c`, (M,N), `bias`, (N), and
    /// `column`, (M), as in `gelu(x + bias) + c`. With --pairs, `y` is the accumulator of the
    /// second column.
    #[arg(long, value_name = "EXPRESSION")]
    pub epilogue: Option<String>,
    /// Gated GEMM: two columns of B make one column of D, which has N/2 columns. The two columns
    /// are neighbours, or are in the two halves of B. The epilogue combines them: `silu(x) * y`.
    #[arg(long, value_name = "WHICH", requires = "epilogue")]
    pub pairs: Option<Paired>,
    /// Also reduce D in the epilogue: `row` or `column`, `sum` or `max`, and an expression of the
    /// element `d`, as in `row max abs(d)`. May be given several times.
    #[arg(long, value_name = "WHAT")]
    pub keep: Vec<String>,
    /// Block-scaled e4m3 or e5m2: an f32 scale for each 1 x 128 elements of A and 128 x 128 of B.
    #[arg(long)]
    pub scales: bool,
    /// B has weights of four bits: words of eight along K, (K/8,N), and a scale for each 128 along
    /// K. A is bf16 or f16. Layouts of B count words.
    #[arg(long, conflicts_with_all = ["batch", "groups", "list", "pairs", "scales", "images"])]
    pub int4: bool,
    /// Accumulate e4m3 and e5m2 in wgmma alone, which keeps 13 bits of the mantissa. Without this,
    /// the accumulator is added to an f32 accumulator after each 128 elements of K.
    #[arg(long, conflicts_with = "scales")]
    pub fast: bool,
    /// Batch-invariant: a row of D has the same bits for every M, so the plan has no split-K, and A
    /// along the rows of tiles. The time that the model gives it is printed beside that of the plan
    /// without this.
    #[arg(long, conflicts_with = "list")]
    pub invariant: bool,
    #[command(flatten)]
    pub convolution: Convolution,
}

impl DeviceRunOptions {
    pub fn is_asked(&self) -> bool {
        self.device || self.plan
    }

    /// Writes the PTX of each kernel, in launch order, if asked for.
    pub(super) fn write_ptx(&self, kernels: &[&Kernel], machine: &Machine) -> Result<(), Failure> {
        let Some(folder) = &self.ptx else { return Ok(()) };
        std::fs::create_dir_all(folder).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::file(folder, "it is no folder"),
            _ => Failure::file(folder, error),
        })?;
        for (number, kernel) in kernels.iter().enumerate() {
            let path = folder.join(format!("{}-{}.ptx", number + 1, kernel.name()));
            let text = ptx::write(kernel.program(), machine.target).map_err(|error| Failure::refused(&error))?;
            npy::replace(&path, |out| out.write_all(text.as_bytes())).map_err(|error| Failure::file(&path, error))?;
        }
        Ok(())
    }

    /// An option that only a device has, if one was given.
    pub fn other(&self) -> Option<&'static str> {
        let described = [
            ("--layout-a", &self.layout_a, "row"),
            ("--layout-b", &self.layout_b, "column"),
            ("--layout-d", &self.layout_d, "row"),
        ];
        described
            .into_iter()
            .find(|(_, given, usual)| given != usual)
            .map(|(option, ..)| option)
            .or(self.epilogue.as_ref().map(|_| "--epilogue"))
            .or(self.result.as_ref().map(|_| "--result"))
            .or(self.pairs.map(|_| "--pairs"))
            .or(self.keep.first().map(|_| "--keep"))
            .or(self.scales.then_some("--scales"))
            .or(self.int4.then_some("--int4"))
            .or(self.fast.then_some("--fast"))
            .or(self.invariant.then_some("--invariant"))
            .or(self.convolution.option())
            .or(self.machine.as_ref().map(|_| "--machine"))
            .or(self.chosen.as_ref().map(|_| "--chosen"))
            .or((self.batch > 1).then_some("--batch"))
            .or(self.groups.as_ref().map(|_| "--groups"))
            .or(self.list.as_ref().map(|_| "--list"))
    }
}

/// The types of D.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Stored {
    F64,
    F32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    I32,
}

/// Which columns of B make a column of D.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Paired {
    Neighbours,
    Halves,
}

/// Rows in groups: how many each has, or how many groups there are.
#[derive(Debug, Clone)]
pub enum Groups {
    Sizes(Vec<i64>),
    Count(i64),
}

impl Groups {
    pub fn read(text: &str) -> Result<Groups, String> {
        let sizes: Option<Vec<i64>> =
            text.split(',').map(|part| part.trim().parse::<u32>().ok().map(i64::from)).collect();
        match sizes.as_deref() {
            Some([count]) if *count > 0 => Ok(Groups::Count(*count)),
            Some(sizes @ [_, _, ..]) => Ok(Groups::Sizes(sizes.to_vec())),
            _ => Err("the rows of each group, `512,0,96`, or how many groups".to_string()),
        }
    }

    pub fn count(&self) -> i64 {
        match self {
            Groups::Sizes(sizes) => sizes.len() as i64,
            Groups::Count(count) => *count,
        }
    }
}

/// M, N and K of each problem of a list: `512x1024x64,16x4096x4096`.
#[derive(Debug, Clone)]
pub struct ProblemSizes(pub Vec<[i64; 3]>);

impl ProblemSizes {
    pub fn read(text: &str) -> Result<ProblemSizes, String> {
        let one = |part: &str| {
            let numbers: Option<Vec<i64>> = part
                .trim()
                .split('x')
                .map(|size| size.parse::<u32>().ok().filter(|size| *size > 0).map(i64::from))
                .collect();
            numbers.and_then(|numbers| <[i64; 3]>::try_from(numbers).ok())
        };
        let sizes: Option<Vec<[i64; 3]>> = text.split(',').map(one).collect();
        sizes
            .map(ProblemSizes)
            .ok_or_else(|| "M, N and K of each problem, at least 1: `512x1024x64,16x4096x4096`".to_string())
    }
}
