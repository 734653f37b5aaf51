//! `tilewright gemm`: a GEMM, checked and timed.
//!
//! Law: C = alpha * A * B + beta * C with A of M x K and B of K x N, as in mathematics; the
//! library's B is the transpose, given by a layout.

mod chosen;
mod convolution;
mod device;
mod list;
mod measured;
mod number;
mod on_device;
mod task;
mod tune;
mod verify;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use half::{bf16, f16};
use serde_json::json;
use tilewright::Layout;
use tilewright::atoms::MmaAtom;
use tilewright::planners::gemm::Problem;
use tilewright::tensor::npy::{self, NpyFile};
use tilewright::tensor::{self, Numbers, Tensor, TensorView};

use crate::json::Json;
use crate::output::{self, Failure};
use crate::progress::Progress;
use crate::terminal::Terminal;
pub(crate) use device::measured_object;
pub use number::{ProductNumber, Random, Sum};
use verify::{Tally, Terms};

/// The examples after the help of the command.
pub const EXAMPLES: &str = "\
Examples:
  tilewright gemm --m 1023 --n 1025 --k 1027
  tilewright gemm --type bf16 --threads 1
  tilewright gemm --a a.npy --b b.npy -o c.npy
  tilewright gemm 4096 4096 4096 --device --type bf16
  tilewright gemm 4095 4097 4100 --plan --type bf16 --layout-b row --epilogue 'gelu(x + bias) + c'

A is M x K, B is K x N. Matrices that are not read from files are random, the same in each run.
C is compared with sums in double precision, within the error bound that every order of summation
keeps: at all elements, or at evenly spaced ones where all would take long.

With --device, the first GPU runs a kernel that is planned from sizes, types and layouts; --plan
prints the plan on any machine. There B is K-major unless --layout-b says otherwise. The epilogue is
an expression of the accumulator x, and of c (M,N), bias (N) and column (M).";

/// The largest number of threads.
const MAX_THREADS: i64 = 1024;

/// The default number of repetitions.
const REPEAT: u32 = 5;

/// The operands of a GEMM, and how it is computed.
#[derive(Debug, Args)]
pub struct GemmOptions {
    /// M, N and K, instead of the options of these names.
    #[arg(value_name = "SIZE", num_args = 3, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["m", "n", "k", "a", "b"])]
    sizes: Vec<u32>,
    /// Rows of A and of C.
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    m: Option<u32>,
    /// Columns of B and of C.
    #[arg(long, value_name = "COLUMNS", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    n: Option<u32>,
    /// Columns of A and rows of B.
    #[arg(long, value_name = "TERMS", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    k: Option<u32>,
    /// The type of A and B. The default is that of the files, or f32 without files, or bf16 on a
    /// device. The accumulator is f32 for 16-bit floats and i32 for 8-bit integers.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<ElementKind>,
    /// The number of threads. The default, also written 0, is one for each core.
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(0..=MAX_THREADS))]
    threads: Option<u16>,
    /// C = alpha A B + beta C.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    alpha: f64,
    /// As in --alpha; C holds random numbers before.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    beta: f64,
    /// The `.npy` file of A. Without it A is random.
    #[arg(long, value_name = "FILE")]
    a: Option<PathBuf>,
    /// The `.npy` file of B. Without it B is random.
    #[arg(long, value_name = "FILE")]
    b: Option<PathBuf>,
    /// The `.npy` file to which C is written.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The micro-kernel, by the name of its atom. The default is the fastest one.
    #[arg(long, value_name = "NAME")]
    atom: Option<String>,
    /// The number of repetitions, 5 by default. The best time counts.
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    // This is last, because the heading of a group applies until the next heading.
    #[command(flatten)]
    device: on_device::DeviceRunOptions,
}

/// The types that can be multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ElementKind {
    F32,
    F64,
    F16,
    Bf16,
    I8,
    /// f32 rounded to 19 bits; on a device.
    Tf32,
    /// 8-bit float with 4 exponent bits; on a device.
    E4m3,
    /// 8-bit float with 5 exponent bits; on a device.
    E5m2,
    /// Unsigned 8-bit integer; on a device.
    U8,
    /// Signed 4-bit integer, two in a byte along K; on a device.
    S4,
    /// Unsigned 4-bit integer, two in a byte along K; on a device.
    U4,
    /// MXFP8: e4m3 with a power of two as the scale of each 32 elements along K; on an RTX 5090
    /// or a GB10.
    Mxf8,
    /// MXFP4: e2m1 with such scales.
    Mxf4,
    /// NVFP4: e2m1 with a scale of e4m3 for each 16 elements along K.
    Nvf4,
}

pub fn run(options: &GemmOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    if options.device.is_asked() {
        return device::run(options, terminal);
    }
    if let Some(option) = options.device.other() {
        return Err(Failure::Usage(format!("{option} is for a GEMM on a device: add --device or --plan")));
    }
    if let Some(file) = &options.output {
        // A file that cannot be written is reported before the work.
        output::check_npy(file)?;
    }
    let kind = match options.kind {
        Some(kind) => kind,
        None => match [&options.a, &options.b].into_iter().flatten().next() {
            Some(path) => kind_of(path)?,
            None => ElementKind::F32,
        },
    };
    match kind {
        ElementKind::F32 => multiply::<f32>(options, kind, terminal),
        ElementKind::F64 => multiply::<f64>(options, kind, terminal),
        ElementKind::F16 => multiply::<f16>(options, kind, terminal),
        ElementKind::Bf16 => multiply::<bf16>(options, kind, terminal),
        ElementKind::I8 => multiply::<i8>(options, kind, terminal),
        ElementKind::Tf32
        | ElementKind::E4m3
        | ElementKind::E5m2
        | ElementKind::U8
        | ElementKind::S4
        | ElementKind::U4
        | ElementKind::Mxf8
        | ElementKind::Mxf4
        | ElementKind::Nvf4 => {
            Err(Failure::Usage("this type is multiplied on a device: add --device or --plan".into()))
        }
    }
}

/// The GEMM that the options describe, as for a device.
pub fn problem(options: &GemmOptions) -> Result<Problem, Failure> {
    Ok(task::problem(options)?.problem)
}

impl ElementKind {
    /// The name, as an argument of `--type`.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl GemmOptions {
    /// M, N and K, if they are given.
    fn extents(&self) -> [Option<u32>; 3] {
        match self.sizes[..] {
            [m, n, k] => [m, n, k].map(Some),
            _ => [self.m, self.n, self.k],
        }
    }
}

/// The type of the elements in a file.
fn kind_of(path: &Path) -> Result<ElementKind, Failure> {
    let header = NpyFile::open(path).map_err(|error| Failure::of_npy(path, &error))?.header().clone();
    match (header.kind(), header.size()) {
        (npy::Kind::Float, 2) => Ok(ElementKind::F16),
        (npy::Kind::Float, 4) => Ok(ElementKind::F32),
        (npy::Kind::Float, 8) => Ok(ElementKind::F64),
        (npy::Kind::Signed, 1) => Ok(ElementKind::I8),
        _ => {
            let found = header.descr();
            Err(Failure::file(
                path,
                format_args!("elements '{found}' are not multiplied, but '<f2', '<f4', '<f8' and '|i1'"),
            ))
        }
    }
}

/// A refusal of the library as a failure.
fn refused(error: impl Into<tensor::TensorError>) -> Failure {
    error.into().into()
}

/// A matrix from a file, or of random numbers, in row-major order.
fn matrix<S: ProductNumber>(
    name: char,
    path: Option<&Path>,
    wanted: [Option<u32>; 2],
    random: &mut Random,
) -> Result<Tensor<S>, Failure> {
    let tensor = match path {
        Some(path) => S::read(path)?,
        None => {
            let [rows, columns] = wanted.map(|extent| extent.unwrap_or(1024));
            let layout = row_major(rows.into(), columns.into())?;
            Tensor::from_fn(layout, |_| S::random(random)).map_err(refused)?
        }
    };
    let found = extents(&tensor);
    match found {
        Some(found)
            if found
                .iter()
                .zip(wanted)
                .all(|(found, wanted)| wanted.is_none_or(|wanted| *found == i64::from(wanted))) =>
        {
            Ok(tensor)
        }
        Some([rows, columns]) => {
            let [r, c] = wanted.map(|extent| extent.map_or("any".into(), |extent| extent.to_string()));
            Err(Failure::Value(format!("{name} is {rows} x {columns}, where {r} x {c} is expected")))
        }
        None => Err(Failure::Value(format!("{name} has shape {}, which is no matrix", tensor.shape()))),
    }
}

/// The layout of a compact row-major matrix.
fn row_major(rows: i64, columns: i64) -> Result<Layout, Failure> {
    Layout::strided((rows, columns), (columns, 1)).map_err(|error| refused(tensor::TensorError::Layout(error)))
}

/// The extents of a matrix; None for other ranks.
fn extents<S>(tensor: &Tensor<S>) -> Option<[i64; 2]> {
    match tensor.shape().leaves() {
        [rows, columns] if tensor.rank() == 2 => Some([*rows, *columns]),
        _ => None,
    }
}

/// The shortest of the times, in seconds, that some runs report.
fn best_time(runs: u32, progress: &mut Progress, mut run: impl FnMut() -> f64) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        best = best.min(run());
        progress.step(1);
    }
    best
}

/// The rate of an atom's instructions on registers only, on all threads of the current pool, in
/// multiplications and additions per second, over about a millisecond.
///
/// The clock of a processor changes with its load and that of its neighbours, so that one
/// measurement says little. The peak is the largest of many, measured between the runs with which
/// it is compared.
pub fn peak<S: Numbers>(atom: &MmaAtom) -> f64 {
    let rates = rayon::broadcast(|_| {
        let (start, mut multiplications) = (Instant::now(), 0);
        while start.elapsed().as_micros() < 1000 {
            multiplications += tensor::multiply_adds::<S>(atom, 2_000).unwrap_or(0);
        }
        2.0 * multiplications as f64 / start.elapsed().as_secs_f64()
    });
    // Threads that share a core are measured one after another, each as if it had the core alone.
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    rates.iter().sum::<f64>() * cores.min(rates.len()) as f64 / rates.len() as f64
}

fn multiply<S: ProductNumber>(options: &GemmOptions, kind: ElementKind, terminal: &mut Terminal) -> Result<(), Failure>
where
    S::Sum: Sum,
{
    let mut random = Random(1);
    let [size_m, size_n, size_k] = options.extents();
    let a: Tensor<S> = matrix('A', options.a.as_deref(), [size_m, size_k], &mut random)?;
    let [m, k] = extents(&a).unwrap_or([1, 1]);
    let b: Tensor<S> = matrix('B', options.b.as_deref(), [u32::try_from(k).ok(), size_n], &mut random)?;
    let n = extents(&b).map_or(1, |[_, n]| n);
    let (alpha, beta) = (factor::<S>("--alpha", options.alpha)?, factor::<S>("--beta", options.beta)?);
    let old = Tensor::from_fn(row_major(m, n)?, |_| {
        S::Sum::factor(if S::Sum::IS_EXACT { f64::from(random.bits() as i16) } else { random.real() }).unwrap_or(beta)
    });
    let old = old.map_err(refused)?;
    let mut c = old.try_clone().map_err(refused)?;

    let threads = match options.threads.unwrap_or(0) {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        threads => usize::from(threads),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Failure::Usage(format!("{threads} threads: {error}")))?;
    let atom = atom::<S>(options.atom.as_deref())?;
    let mma = tensor::cpu_mma_of(atom.clone(), threads).map_err(refused)?;

    // The library's B is (N,K).
    let transposed = b.layout().select(&[1, 0]).map_err(|error| refused(tensor::TensorError::Layout(error)))?;
    let b_view = TensorView::new(b.as_slice(), transposed).map_err(refused)?;
    let tilings = tensor::tilings(&mma, &a.view(), &b_view, &mut c.view_mut()).map_err(refused)?;
    if !terminal.json {
        writeln!(terminal.out, "atom     {}, {threads} thread{}", atom.name(), if threads == 1 { "" } else { "s" })?;
        writeln!(terminal.out, "{tilings}")?;
        terminal.out.flush()?;
    }

    let mut limit: f64 = 0.0;
    let repeat = options.repeat.unwrap_or(REPEAT);
    let mut progress = Progress::new("multiplying", u64::from(repeat));
    let mut outcome = Ok(());
    let seconds = best_time(repeat, &mut progress, || {
        // If C is read, each run begins with the original contents.
        c.as_mut_slice().copy_from_slice(old.as_slice());
        limit = limit.max(pool.install(|| peak::<S>(&atom)));
        let start = Instant::now();
        outcome = pool.install(|| tensor::gemm(&mma, alpha, &a.view(), &b_view, beta, &mut c.view_mut()));
        start.elapsed().as_secs_f64()
    });
    progress.end();
    outcome.map_err(refused)?;
    let tally = verified(&a, &b, &c, &old, [alpha, beta])?;
    let rates = Rates { seconds, rate: 2.0 * m as f64 * n as f64 * k as f64 / seconds, limit };
    if terminal.json {
        let layouts = [a.layout(), b_view.layout(), c.layout()];
        let mut object = object::<S>(options, kind, [m, n, k], layouts);
        let plan: Vec<String> = tilings.to_string().lines().map(str::to_owned).collect();
        crate::json::extend(&mut object, json!({ "atom": atom.name(), "threads": threads, "plan": plan }));
        crate::json::extend(&mut object, rates.json());
        crate::json::extend(&mut object, tally.json::<S::Sum>(m * n));
        terminal.object(&object)?;
    } else {
        writeln!(terminal.out, "{}", tally.verdict::<S::Sum>(m * n))?;
        writeln!(terminal.out, "{}", rates.text())?;
    }
    if let Some(path) = &options.output {
        npy::write(path, &c.view()).map_err(|error| Failure::of_npy(path, &error))?;
        terminal.wrote(path)?;
    }
    Ok(())
}

/// The micro-kernel with this name, or the fastest one.
fn atom<S: ProductNumber>(name: Option<&str>) -> Result<MmaAtom, Failure> {
    let atoms = tensor::cpu_atoms::<S>().map_err(refused)?;
    let found = match name {
        None => atoms.first(),
        Some(name) => atoms.iter().find(|atom| atom.name().eq_ignore_ascii_case(name)),
    };
    found.cloned().ok_or_else(|| {
        let known = atoms.iter().map(|atom| atom.name()).collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("no such atom for this type here; there are {known}"))
    })
}

/// The rates of a GEMM.
struct Rates {
    /// The best time.
    seconds: f64,
    /// Operations a second.
    rate: f64,
    /// The rate of the instructions, measured in the same run.
    limit: f64,
}

impl Rates {
    fn json(&self) -> Json {
        let Rates { seconds, rate, limit } = self;
        json!({
            "best_us": seconds * 1e6,
            "gflops": rate / 1e9,
            "peak_gflops": limit / 1e9,
            "of_peak": rate / limit,
            "checked": true,
        })
    }

    fn text(&self) -> String {
        let Rates { seconds, rate, limit } = self;
        format!(
            "time     {:.3} ms, {:.1} GFLOP/s, {:.2} of the peak of {:.1} that these instructions reach here",
            seconds * 1e3,
            rate / 1e9,
            rate / limit,
            limit / 1e9
        )
    }
}

/// The GEMM as a JSON object, with the layouts of A, of B as (N,K), and of C.
fn object<S: ProductNumber>(
    options: &GemmOptions,
    kind: ElementKind,
    [m, n, k]: [i64; 3],
    [a, b, c]: [&Layout; 3],
) -> Json
where
    S::Sum: Sum,
{
    let (operands, sums) = (kind.name(), S::Sum::NAME);
    let described =
        |element: &str, layout: &Layout| json!({ "type": element, "layout": layout.to_string(), "offset": 0 });
    json!({
        "m": m, "n": n, "k": k,
        "types": { "operands": operands, "tf32": false, "accumulator": sums, "result": sums },
        "layouts": { "A": described(&operands, a), "B": described(&operands, b), "D": described(sums, c) },
        "alpha": options.alpha,
        "beta": options.beta,
    })
}

/// The largest number of multiplications that are spent on checking a GEMM.
const CHECKED: i64 = 1 << 27;

/// Compares C with sums in double precision, at all or at evenly spaced elements.
fn verified<S: ProductNumber>(
    a: &Tensor<S>,
    b: &Tensor<S>,
    c: &Tensor<S::Sum>,
    old: &Tensor<S::Sum>,
    scales: [S::Sum; 2],
) -> Result<Tally, Failure>
where
    S::Sum: Sum,
{
    let (Some([m, k]), Some([_, n])) = (extents(a), extents(b)) else {
        return Err(Failure::Usage("no matrices".into()));
    };
    let places = (CHECKED / k).clamp(1, m * n);
    let step = m * n / places;
    let (mut tally, mut products) = (Tally::default(), Vec::with_capacity(k as usize));
    let mut progress = Progress::new("verifying", places as u64);
    for place in (0..m * n).step_by(step as usize) {
        let (i, j) = (place % m, place / m);
        products.clear();
        for t in 0..k {
            products.push((a.get([i, t]).map_err(refused)?.value(), b.get([t, j]).map_err(refused)?.value()));
        }
        let terms = Terms::of_products(products.iter().copied());
        let found = *c.get([i, j]).map_err(refused)?;
        let outcome = found.judge(&terms, scales, *old.get([i, j]).map_err(refused)?);
        if let Err(wrong) = tally.count(outcome) {
            progress.end();
            return Err(Failure::Value(format!("C({i},{j}) is {}, but {wrong}", found.number())));
        }
        progress.step(1);
    }
    progress.end();
    Ok(tally)
}

/// Parses a scalar of the type of the accumulators.
fn factor<S: ProductNumber>(option: &str, value: f64) -> Result<S::Sum, Failure>
where
    S::Sum: Sum,
{
    S::Sum::factor(value).ok_or_else(|| {
        let (sums, range) = (S::Sum::NAME, S::Sum::RANGE);
        Failure::Usage(format!("{option} {value:?}: sums are added up in {sums}, so it must be {range}"))
    })
}
