//! `tilewright-lab bench copy`: how fast data moves between layouts, compared with plain copies and
//! with other installed libraries.
//!
//! Every case moves as many bytes as the plain copy (`memcpy`) that is measured alternately with
//! it; rates count each byte once. The other libraries move the same strided array: they get its
//! axes in C order, and the permutation. They run in separate processes, which measure all cases of
//! a table first.

use std::io::Write;
use std::process::Command;
use std::time::Instant;

use tilewright::layout::Composed;
use tilewright::tensor::{CopyOptions, Offsets, Plan, Tensor, TensorView, TensorViewMut};
use tilewright::{Layout, Tree};
use tilewright_cli::shared::{Failure, Terminal};

use super::failed;

/// The kind of copy.
enum Move {
    /// From an array with these axes in C order to an array whose axis `k` is axis `order[k]` of
    /// the first.
    Permuted(Vec<usize>, Vec<usize>),
    /// From a row-major matrix to row-major tiles of 128 x 64.
    Blocked(usize),
    /// From a row-major matrix to tiles of 8 rows of 128 bytes, swizzled like operands in shared
    /// memory.
    Swizzled(usize),
}

/// The other libraries, in the order of the columns.
const PEERS: [&str; 4] = ["numpy", "torch", "ndarray", "hptt"];

/// The cases, of about `mebibytes` MiB each.
fn cases(bytes: usize, mebibytes: usize) -> Vec<(&'static str, Move)> {
    let elements = (mebibytes << 20) / bytes;
    let side = 1_usize << (elements.ilog2() / 2);
    let wide = elements / side;
    // The first axis is as long as the size of the case and the other axes allow.
    let permuted = |rest: &[usize], order: &[usize]| {
        let first = (elements / rest.iter().product::<usize>()).max(1);
        Move::Permuted([&[first], rest].concat(), order.to_vec())
    };
    vec![
        ("contiguous", Move::Permuted(vec![elements], vec![0])),
        ("square", Move::Permuted(vec![wide, side], vec![1, 0])),
        ("odd", Move::Permuted(vec![wide + 1, side - 3], vec![1, 0])),
        ("tall", Move::Permuted(vec![elements / 32, 32], vec![1, 0])),
        ("flat", Move::Permuted(vec![32, elements / 32], vec![1, 0])),
        ("rank 3 (2,0,1)", permuted(&[250, 240], &[2, 0, 1])),
        ("rank 3 (1,0,2)", permuted(&[250, 240], &[1, 0, 2])),
        ("rank 4 (3,2,1,0)", permuted(&[70, 60, 50], &[3, 2, 1, 0])),
        ("rank 4 (0,3,1,2)", permuted(&[60, 72, 56], &[0, 3, 1, 2])),
        ("rank 5 (4,2,1,3,0)", permuted(&[32, 29, 26, 24], &[4, 2, 1, 3, 0])),
        ("rank 6 (5,3,1,4,2,0)", permuted(&[17, 18, 15, 16, 14], &[5, 3, 1, 4, 2, 0])),
        ("to tiles of 128x64", Move::Blocked(side)),
        ("to swizzled tiles", Move::Swizzled(side)),
    ]
}

/// Measures all cases for elements of the given sizes and numbers of threads.
pub fn run(mebibytes: usize, least: f64, threads: &[usize], terminal: &mut Terminal) -> Result<(), Failure> {
    for &threads in threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Failure::Value(format!("{threads} threads: {error}")))?;
        for (kind, bytes) in [("f32", 4), ("f64", 8), ("f16", 2), ("u8", 1)] {
            writeln!(terminal.out, "{kind}, {threads} thread{}", if threads == 1 { "" } else { "s" })?;
            write!(terminal.out, "{:>22} {:>8} {:>10} {:>6}", "GB/s", "memcpy", "tilewright", "share")?;
            for peer in PEERS {
                write!(terminal.out, " {peer:>8}")?;
            }
            writeln!(terminal.out)?;
            terminal.out.flush()?;
            let cases = cases(bytes, mebibytes);
            let others = peers(kind, threads, least, &cases);
            for (number, (name, case)) in cases.iter().enumerate() {
                let [plain, ours] = pool.install(|| match bytes {
                    1 => measured::<u8>(case, threads, least),
                    2 => measured::<u16>(case, threads, least),
                    4 => measured::<u32>(case, threads, least),
                    _ => measured::<u64>(case, threads, least),
                })?;
                write!(terminal.out, "{name:>22} {plain:>8.2} {ours:>10.2} {:>6.2}", ours / plain)?;
                for peer in PEERS {
                    match others.iter().find(|other| other.case == number && other.name == peer) {
                        Some(Other { rate, .. }) => write!(terminal.out, " {rate:>8.2}")?,
                        None => write!(terminal.out, " {:>8}", "-")?,
                    }
                }
                writeln!(terminal.out)?;
                terminal.out.flush()?;
            }
            writeln!(terminal.out)?;
        }
    }
    Ok(())
}

/// The rates of the plain copy and of this library, in GB/s.
fn measured<T: Number>(case: &Move, threads: usize, least: f64) -> Result<[f64; 2], Failure> {
    let layout = |text: String| text.parse::<Layout>().map_err(|error| failed(error.into()));
    match case {
        Move::Permuted(axes, order) => {
            // A layout in the order of the axes of the first array; the second array has its own
            // order.
            let extents: Vec<i64> = axes.iter().map(|axis| *axis as i64).collect();
            let mut strides = vec![0; extents.len()];
            let mut step = 1;
            for axis in order.iter().rev() {
                if let (Some(stride), Some(extent)) = (strides.get_mut(*axis), extents.get(*axis)) {
                    *stride = step;
                    step *= extent;
                }
            }
            let shape = Tree::flat(extents).map_err(|error| failed(error.into()))?;
            let src = Layout::row_major(&shape).map_err(|error| failed(error.into()))?;
            let strides = Tree::flat(strides).map_err(|error| failed(error.into()))?;
            let dst = Layout::new(&shape, &strides).map_err(|error| failed(error.into()))?;
            timed::<T, _>(&src, &dst, threads, least)
        }
        Move::Blocked(side) => {
            let (rows, columns) = (side / 128, side / 64);
            let src = layout(format!("((128,{rows}),(64,{columns})):(({side},{}),(1,64))", 128 * side))?;
            let dst = layout(format!("((128,{rows}),(64,{columns})):((64,{}),(1,8192))", 128 * side))?;
            timed::<T, _>(&src, &dst, threads, least)
        }
        Move::Swizzled(side) => {
            let wide = 128 / size_of::<T>();
            let (rows, columns, base) = (side / 8, side / wide, (16 / size_of::<T>()).ilog2());
            let src = layout(format!("((8,{rows}),({wide},{columns})):(({side},{}),(1,{wide}))", 8 * side))?;
            let inner = layout(format!("((8,{rows}),({wide},{columns})):(({wide},{}),(1,{}))", 8 * side, 8 * wide))?;
            let dst: Result<Composed, _> = format!("S<3,{base},3> o 0 o {inner}").parse();
            timed::<T, _>(&src, &dst.map_err(|error| failed(error.into()))?, threads, least)
        }
    }
}

/// Integers with the same sizes as the element types.
trait Number: tilewright::tensor::npy::NpyElement + Send + Sync {}
impl Number for u8 {}
impl Number for u16 {}
impl Number for u32 {}
impl Number for u64 {}

fn timed<T: Number, D: Offsets>(src: &Layout, dst: &D, threads: usize, least: f64) -> Result<[f64; 2], Failure> {
    let linear = Layout::mode_of(src.size(), 1).map_err(|error| failed(error.into()))?;
    let from = Tensor::<T>::zeroed(linear.clone()).map_err(failed)?;
    let mut to = Tensor::<T>::zeroed(linear.clone()).map_err(failed)?;
    let options = CopyOptions { threads: Some(threads), ..CopyOptions::default() };
    let plan = Plan::new(src, dst, size_of::<T>(), options).map_err(failed)?;
    let view = TensorView::new(from.as_slice(), src.clone()).map_err(failed)?;
    let parts = from.as_slice().len().div_ceil(threads);
    let bytes = std::mem::size_of_val(from.as_slice()) as f64;
    let (mut best, mut runs) = ([f64::INFINITY; 2], 0);
    let begin = Instant::now();
    let mut outcome = Ok(());
    while runs < 4 || begin.elapsed().as_secs_f64() < least {
        let start = Instant::now();
        rayon::scope(|scope| {
            for (from, to) in from.as_slice().chunks(parts).zip(to.as_mut_slice().chunks_mut(parts)) {
                scope.spawn(move |_| to.copy_from_slice(from));
            }
        });
        let plain = start.elapsed().as_secs_f64();
        let mut target = TensorViewMut::new(to.as_mut_slice(), dst.clone()).map_err(failed)?;
        let start = Instant::now();
        outcome = outcome.and(plan.run(&view, &mut target));
        let ours = start.elapsed().as_secs_f64();
        // The first run of each includes the allocation of its memory by the system, so it is not
        // counted.
        if runs > 0 {
            best = [best[0].min(plain), best[1].min(ours)];
        }
        runs += 1;
    }
    outcome.map_err(failed)?;
    Ok(best.map(|seconds| bytes / seconds / 1e9))
}

/// The result of another library in a case.
struct Other {
    /// The index of the case.
    case: usize,
    name: String,
    /// The rate, in GB/s.
    rate: f64,
}

/// The rates of the installed libraries, in all cases that they support.
fn peers(kind: &str, threads: usize, least: f64, cases: &[(&str, Move)]) -> Vec<Other> {
    let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let (mut numbers, mut arrays) = (Vec::new(), Vec::new());
    for (number, (_, case)) in cases.iter().enumerate() {
        if let Move::Permuted(axes, order) = case {
            numbers.push(number);
            arrays.extend([list(axes), list(order)]);
        }
    }
    let (threads, least) = (threads.to_string(), least.to_string());
    let mut crates = Command::new("tilewright-peers");
    crates.args(["copy", kind, &threads, &least]).args(&arrays);
    let mut python = Command::new("python3");
    python.args(["-c", PYTHON, kind, &threads, &least]).args(&arrays);
    let mut others = Vec::new();
    for command in [&mut crates, &mut python] {
        let Ok(output) = command.output() else { continue };
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [number, name, rate] = words.as_slice()
                && let (Ok(number), Ok(rate)) = (number.parse::<usize>(), rate.parse::<f64>())
                && let Some(case) = numbers.get(number)
            {
                others.push(Other { case: *case, name: (*name).into(), rate: rate / 1e9 });
            }
        }
    }
    others
}

/// The Python program: for each array, the best of several runs of NumPy, which uses one thread,
/// and of PyTorch, in bytes per second.
const PYTHON: &str = "\
import sys, time
kind, threads, least, arrays = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
def measure(number, name, size, run):
    run()
    begin, best, runs = time.perf_counter(), 1e9, 0
    while runs < 3 or time.perf_counter() - begin < least:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        runs += 1
    print(number, name, size / best, flush=True)
cases = [[tuple(map(int, word.split(','))) for word in arrays[at:at + 2]] for at in range(0, len(arrays), 2)]
try:
    import numpy
    dtype = {'f32': 'float32', 'f64': 'float64', 'f16': 'float16', 'u8': 'uint8'}[kind]
    for number, (axes, order) in enumerate(cases):
        a, b = numpy.ones(axes, dtype), numpy.zeros(tuple(axes[k] for k in order), dtype)
        view = a.transpose(order)
        measure(number, 'numpy', a.nbytes, lambda: numpy.copyto(b, view))
except ImportError:
    pass
try:
    import torch
    torch.set_num_threads(threads)
    dtype = {'f32': torch.float32, 'f64': torch.float64, 'f16': torch.float16, 'u8': torch.uint8}[kind]
    for number, (axes, order) in enumerate(cases):
        a, b = torch.ones(axes, dtype=dtype), torch.zeros(tuple(axes[k] for k in order), dtype=dtype)
        view = a.permute(order)
        measure(number, 'torch', a.numel() * a.element_size(), lambda: b.copy_(view))
except ImportError:
    pass
";
