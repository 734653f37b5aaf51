//! `tilewright-lab bench gemm`: GEMMs, in operations per second.

use std::io::Write;
use std::process::Command;
use std::time::Instant;

use tilewright::Layout;
use tilewright::atoms::{Arch, MmaAtom, TiledMma};
use tilewright::tensor::{self, Tensor, TensorView};
use tilewright_cli::shared::{Failure, ProductNumber, Progress, Random, Sum, Terminal, peak};

use super::failed;

/// The memory order of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Row-major.
    Rows,
    /// Column-major.
    Columns,
    /// Row-major tiles of 64 x 64.
    Tiles,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Rows => "rows",
            Form::Columns => "columns",
            Form::Tiles => "tiles",
        }
    }
}

/// A GEMM of the table: M, N and K, and the memory order of A and B. C is row-major.
#[derive(Debug, Clone, Copy)]
struct Case {
    extents: [usize; 3],
    forms: [Form; 2],
}

const fn case(m: usize, n: usize, k: usize, a: Form, b: Form) -> Case {
    Case { extents: [m, n, k], forms: [a, b] }
}

const CASES: [Case; 15] = {
    use Form::{Columns, Rows, Tiles};
    [
        case(64, 64, 64, Rows, Rows),
        case(96, 96, 96, Rows, Rows),
        case(128, 128, 128, Rows, Rows),
        case(128, 128, 128, Columns, Columns),
        case(256, 256, 256, Rows, Rows),
        case(512, 512, 512, Rows, Rows),
        case(512, 512, 512, Columns, Rows),
        case(1024, 1024, 1024, Rows, Rows),
        case(1024, 1024, 1024, Rows, Columns),
        case(1024, 1024, 1024, Tiles, Tiles),
        case(1023, 1025, 1027, Rows, Rows),
        case(8192, 64, 512, Rows, Rows),
        case(64, 8192, 512, Rows, Rows),
        case(2048, 2048, 2048, Rows, Rows),
        case(4096, 4096, 4096, Rows, Rows),
    ]
};

/// The instructions of a micro-kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Path {
    /// Vectors of 64 bytes.
    Avx512,
    /// Vectors of 32 bytes, and fused multiply-adds.
    Avx2,
    /// The baseline instructions, which every machine of the architecture has.
    Portable,
}

impl Path {
    fn arch(self) -> Arch {
        match self {
            Path::Avx512 => Arch::Avx512,
            Path::Avx2 => Arch::Avx2,
            Path::Portable => Arch::Portable,
        }
    }

    /// The command that measures the crates `gemm` and `matrixmultiply`, compiled for these
    /// instructions at most; None if there is none.
    fn crates(self) -> Option<&'static str> {
        match self {
            Path::Avx512 => Some("tilewright-peers"),
            Path::Avx2 => Some("tilewright-peers-avx2"),
            Path::Portable => None,
        }
    }

    /// The processor type that OpenBLAS is told to assume; None if it detects the type itself.
    fn core(self) -> Option<&'static str> {
        match self {
            Path::Avx512 => None,
            Path::Avx2 => Some("Haswell"),
            Path::Portable => Some("Prescott"),
        }
    }
}

/// Types of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    F32,
    F64,
}

/// Prints the tables.
pub fn run(
    quick: bool,
    path: Option<Path>,
    kinds: &[Kind],
    threads: &[usize],
    seconds: f64,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let cases = if quick { CASES.get(..8).unwrap_or(&CASES) } else { &CASES };
    for &threads in threads {
        for kind in kinds {
            match kind {
                Kind::F32 => table::<f32>("f32", cases, path, threads, seconds, terminal)?,
                Kind::F64 => table::<f64>("f64", cases, path, threads, seconds, terminal)?,
            }
        }
    }
    Ok(())
}

/// The other libraries, in the order of the columns.
const PEERS: [&str; 3] = ["gemm", "matrixmultiply", "numpy"];

/// The layout of an operand, `(rows, columns)`.
fn layout(form: Form, rows: usize, columns: usize) -> Result<Layout, Failure> {
    let text = match form {
        Form::Rows => format!("({rows},{columns}):({columns},1)"),
        Form::Columns => format!("({rows},{columns}):(1,{rows})"),
        Form::Tiles => format!("((64,{}),(64,{})):((64,{}),(1,4096))", rows / 64, columns / 64, 64 * columns),
    };
    text.parse().map_err(|error: tilewright::LayoutError| error.into())
}

/// The rates of a GEMM of this library and of the instructions alone, in operations per second.
fn rates<S: ProductNumber<Sum = S> + Sum>(
    case: &Case,
    (atom, mma): (&MmaAtom, &TiledMma),
    pool: &rayon::ThreadPool,
    least: f64,
) -> Result<[f64; 2], Failure> {
    let ([m, n, k], [a_form, b_form]) = (case.extents, case.forms);
    let work = 2.0 * (m * n * k) as f64;
    let mut random = Random(1);
    let a = Tensor::from_fn(layout(a_form, m, k)?, |_| S::random(&mut random)).map_err(failed)?;
    let b = Tensor::from_fn(layout(b_form, k, n)?, |_| S::random(&mut random)).map_err(failed)?;
    // The library takes B as (N,K).
    let transposed = b.layout().select(&[1, 0]).map_err(|error| failed(error.into()))?;
    let b_view = TensorView::new(b.as_slice(), transposed).map_err(failed)?;
    let mut c = Tensor::zeroed(layout(Form::Rows, m, n)?).map_err(failed)?;
    let mut c_view = c.view_mut();
    let (Some(one), Some(zero)) = (S::factor(1.0), S::factor(0.0)) else {
        return Err(Failure::Usage("one and zero".into()));
    };

    // A run takes some milliseconds; it is one GEMM if that takes longer.
    let inner = (2e8 / work).ceil().max(1.0);
    let mut outcome = Ok(());
    let (seconds, limit) = pool.install(|| {
        let begin = Instant::now();
        let (mut best, mut limit, mut runs) = (f64::INFINITY, 0.0, 0);
        while runs < 3 || begin.elapsed().as_secs_f64() < least {
            limit = peak::<S>(atom).max(limit);
            let start = Instant::now();
            for _ in 0..inner as usize {
                outcome = tensor::gemm(mma, one, &a.view(), &b_view, zero, &mut c_view);
            }
            best = start.elapsed().as_secs_f64().min(best);
            runs += 1;
        }
        (best, limit)
    });
    outcome.map_err(failed)?;
    Ok([inner * work / seconds, limit])
}

/// Writes the row of a case: the rate of this library, its share of the peak, and the rates of the
/// other libraries.
fn write_row(
    case: &Case,
    [ours, limit]: [f64; 2],
    others: &[(String, f64)],
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let ([m, n, k], [a, b]) = (case.extents, case.forms);
    let (sizes, forms) = (format!("{m} x {n} x {k}"), format!("{}, {}", a.name(), b.name()));
    write!(terminal.out, "{sizes:>18} {forms:>16} {:>10.1} {:>6.2}", ours / 1e9, ours / limit)?;
    for peer in PEERS {
        match others.iter().find(|(name, _)| name == peer) {
            Some((_, rate)) => write!(terminal.out, " {:>14.1}", rate / 1e9)?,
            None => write!(terminal.out, " {:>14}", "-")?,
        }
    }
    writeln!(terminal.out)?;
    Ok(terminal.out.flush()?)
}

/// Writes the table of one type and one number of threads.
fn table<S: ProductNumber<Sum = S> + Sum>(
    kind: &str,
    cases: &[Case],
    path: Option<Path>,
    threads: usize,
    least: f64,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let atoms = tensor::cpu_atoms::<S>().map_err(failed)?;
    let Some(atom) = atoms.iter().find(|atom| path.is_none_or(|path| atom.arch() == path.arch())) else {
        let known: Vec<_> = atoms.iter().map(|atom| atom.name()).collect();
        return Err(Failure::Usage(format!(
            "this machine does not have these instructions; there are {}",
            known.join(", ")
        )));
    };
    let mma = tensor::cpu_mma_of(atom.clone(), threads).map_err(failed)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Failure::Usage(error.to_string()))?;
    writeln!(terminal.out, "{kind}, {threads} thread{}, {}", if threads == 1 { "" } else { "s" }, atom.name())?;
    write!(terminal.out, "{:>18} {:>16} {:>10} {:>6}", "M x N x K", "A, B", "tilewright", "share")?;
    for peer in PEERS {
        write!(terminal.out, " {peer:>14}")?;
    }
    writeln!(terminal.out)?;
    terminal.out.flush()?;
    // The logarithms of the rate of this library over the best rate of the others.
    let mut ratios = Vec::new();
    let mut progress = Progress::new("measuring", cases.len() as u64);
    for case in cases {
        let [ours, limit] = rates::<S>(case, (atom, &mma), &pool, least)?;
        let others = match case.forms.contains(&Form::Tiles) {
            true => Vec::new(),
            false => peers(kind, path.unwrap_or(Path::Avx512), threads, case, least),
        };
        progress.hide();
        write_row(case, [ours, limit], &others, terminal)?;
        let best = others.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        if best > 0.0 {
            ratios.push((ours / best).ln());
        }
        progress.step(1);
    }
    progress.end();
    if !ratios.is_empty() {
        let mean = (ratios.iter().sum::<f64>() / ratios.len() as f64).exp();
        writeln!(terminal.out, "our rate over that of the best other, in geometric mean: {mean:.2}")?;
    }
    writeln!(terminal.out)?;
    Ok(())
}

/// The rates of the installed libraries.
fn peers(kind: &str, path: Path, threads: usize, case: &Case, least: f64) -> Vec<(String, f64)> {
    let ([m, n, k], forms) = (case.extents.map(|extent| extent.to_string()), case.forms.map(Form::name));
    let (threads, least) = (threads.to_string(), least.to_string());
    let [a, b] = forms;
    let crates = path.crates().map(|name| {
        let mut crates = Command::new(name);
        crates.args(["gemm", kind, &threads, &least, &m, &n, &k, a, b]);
        crates
    });
    let mut numpy = Command::new("python3");
    numpy.args(["-c", NUMPY, kind, &least, &m, &n, &k, a, b]);
    for name in ["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"] {
        numpy.env(name, &threads);
    }
    // `OPENBLAS_CORETYPE` can make OpenBLAS assume an older processor, and `OPENBLAS_L2_SIZE`
    // another cache.
    for name in ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"] {
        numpy.env_remove(name);
    }
    if let Some(core) = path.core() {
        numpy.env("OPENBLAS_CORETYPE", core);
    }
    let mut rates = Vec::new();
    for mut command in crates.into_iter().chain([numpy]) {
        let Ok(output) = command.output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        for line in text.lines() {
            if let Some((name, rate)) = line.split_once(' ')
                && let Ok(rate) = rate.parse()
            {
                rates.push((name.into(), rate));
            }
        }
    }
    rates
}

/// The NumPy program: the best of several runs, in operations per second.
const NUMPY: &str = "\
import sys, time, numpy
kind, least, m, n, k, a, b = {'f32': 'float32', 'f64': 'float64'}[sys.argv[1]], float(sys.argv[2]), *map(int, sys.argv[3:6]), *sys.argv[6:8]
order = {'rows': 'C', 'columns': 'F'}
random = numpy.random.default_rng(1)
A = numpy.asarray(random.random((m, k)), kind, order[a])
B = numpy.asarray(random.random((k, n)), kind, order[b])
C = numpy.empty((m, n), kind)
work = 2 * m * n * k
inner = max(1, int(-(-2e8 // work)))
begin, best, runs = time.perf_counter(), 1e9, 0
while runs < 3 or time.perf_counter() - begin < least:
    start = time.perf_counter()
    for _ in range(inner):
        numpy.matmul(A, B, out=C)
    best = min(best, time.perf_counter() - start)
    runs += 1
print('numpy', inner * work / best)
";
