//! How many instructions of threads a core executes in a second, unchecked and checked: kernels
//! that are bound by memory, as NVRTC and Triton compiled them, and one that computes.
//!
//! ```text
//! cargo run --release -p tilewright-sanitize --example speed              # all
//! cargo run --release -p tilewright-sanitize --example speed -- stencil   # those of this name
//! ```
//!
//! An instruction of a thread is one that it executes, so one of a whole warp counts 32 times. The
//! time is that of the processor, and all of `sanitize` is in it: PTX is read, memory and shadow
//! are made, results are copied out. `kernels.ptx` is `kernels.cu` by NVRTC for sm_80; the files of
//! Triton are three of the corpus. The command fails if a kernel is below 40 million a second.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewright_sanitize::{Argument, KernelLaunch, LaunchError, Options, sanitize};

/// The least that is asked for, in instructions of threads a second and core.
const WANTED: f64 = 40e6;

const CUDA: &str = include_str!("kernels.ptx");
const PRODUCT: &str = include_str!("triton_product.ptx");
const SOFTMAX: &str = include_str!("triton_softmax.ptx");
const ATTENTION: &str = include_str!("triton_attention.ptx");

/// A kernel: its text, its entry, the extents of the grid and of a block, bytes of shared memory,
/// and its arguments.
struct Case {
    text: &'static str,
    entry: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u64,
    arguments: &'static str,
}

const fn cuda(entry: &'static str, grid: [u32; 3], block: [u32; 3], arguments: &'static str) -> Case {
    Case { text: CUDA, entry, grid, block, shared: 0, arguments }
}

const CASES: [Case; 11] = [
    cuda("compute", [32, 1, 1], [256, 1, 1], "out:f32[8192]"),
    cuda("add", [2048, 1, 1], [256, 1, 1], "in:f32[524288]=random in:f32[524288]=random out:f32[524288]"),
    cuda("add_vectors", [512, 1, 1], [256, 1, 1], "in:f32[524288]=random in:f32[524288]=random out:f32[524288]"),
    cuda("stencil", [1024, 1, 1], [256, 1, 1], "in:f32[262144]=random out:f32[262144] i32=262144"),
    cuda("transpose", [16, 16, 1], [32, 8, 1], "in:f32[512,512]=random out:f32[512,512] i32=512"),
    cuda("sum_tree", [512, 1, 1], [256, 1, 1], "in:f32[131072]=random out:f32[512]"),
    cuda("sum_shuffles", [64, 1, 1], [256, 1, 1], "in:f32[524288]=random inout:f32[1]=zeros i32=524288"),
    cuda("product", [8, 8, 1], [16, 16, 1], "in:f32[128,128]=random in:f32[128,128]=random out:f32[128,128] i32=128"),
    Case {
        text: PRODUCT,
        entry: "matmul",
        grid: [8, 8, 1],
        block: [128, 1, 1],
        shared: 12288,
        arguments: "in:f16[256,256]=random in:f16[256,256]=random out:f16[256,256] i32=256 i32=256 i32=256 i64=0 i64=0",
    },
    Case {
        text: SOFTMAX,
        entry: "softmax",
        grid: [256, 1, 1],
        block: [128, 1, 1],
        shared: 16,
        arguments: "in:f32[256,1000]=random out:f32[256,1000] i32=1000 i64=0 i64=0",
    },
    Case {
        text: ATTENTION,
        entry: "attention",
        grid: [2, 8, 1],
        block: [128, 1, 1],
        shared: 24576,
        arguments: "in:f16[8,128,64]=random in:f16[8,128,64]=random in:f16[8,128,64]=random out:f16[8,128,64] i32=128 f32=0.125 i64=0 i64=0",
    },
];

/// The time that this thread had on a core, where the system tells of it: others that share the
/// machine do not count. The system counts anew when a thread gives way.
fn busy(begin: Instant) -> Duration {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|own| own.parse().ok());
    nanoseconds.map_or_else(|| begin.elapsed(), Duration::from_nanos)
}

/// Instructions of threads a second.
fn rate(case: &Case, checks: bool, start: Instant) -> Result<f64, LaunchError> {
    let mut launch = KernelLaunch::new(case.entry, case.grid, case.block).shared(case.shared);
    for (number, argument) in case.arguments.split(' ').enumerate() {
        launch = launch.argument(Argument::read("", argument, number as u64)?);
    }
    let begin = busy(start);
    let report = sanitize(case.text, &launch, &Options { cores: Some(1), checks, ..Options::default() })?;
    let seconds = (busy(start) - begin).as_secs_f64();
    assert!(report.is_clean(), "{}: {report}", case.entry);
    Ok(report.thread_instructions as f64 / seconds.max(1e-9))
}

fn main() -> Result<ExitCode, LaunchError> {
    let start = Instant::now();
    let filter = std::env::args().nth(1);
    let mut slow = 0;
    println!("million instructions of threads a second and core:   unchecked   checked");
    for case in CASES.iter().filter(|case| filter.as_ref().is_none_or(|name| case.entry.contains(name.as_str()))) {
        let best = |checks| (0..3).try_fold(0.0, |best: f64, _| rate(case, checks, start).map(|own| best.max(own)));
        let (free, checked) = (best(false)?, best(true)?);
        println!("{:<52} {:>9.1} {:>9.1}", case.entry, free / 1e6, checked / 1e6);
        slow += u32::from(checked < WANTED);
    }
    println!("{slow} are below {:.0} million checked", WANTED / 1e6);
    Ok(if slow == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
