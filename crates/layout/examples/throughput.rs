//! Times the algebra: `cargo run --release -p tilewright-layout --example throughput`.
//!
//! One line a case: its name, a tab, and the median of nanoseconds a call. Each sample times a
//! batch of calls; inputs and results pass through `black_box`.
//!
//! `--list` prints the names of the cases, and `--once CASE [CALLS]` makes this many calls of one
//! case and measures nothing: that is for instruction counters, see `scripts/instructions`.

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewright_layout::symbolic::{Declarations, Expr};
use tilewright_layout::{Coordinate, Layout, Tiler, Xor};

/// What is done with the cases.
enum Run {
    Time,
    List,
    Once { case: String, calls: u64, found: bool },
}

impl Run {
    fn from_arguments() -> Option<Run> {
        let mut arguments = std::env::args().skip(1);
        match arguments.next().as_deref() {
            None => Some(Run::Time),
            Some("--list") => Some(Run::List),
            Some("--once") => {
                let case = arguments.next()?;
                let calls = arguments.next().map_or(Ok(1), |calls| calls.parse()).ok()?;
                Some(Run::Once { case, calls, found: false })
            }
            Some(_) => None,
        }
    }

    fn case<T>(&mut self, name: &str, mut call: impl FnMut() -> T) {
        match self {
            Run::Time => line(format_args!("{name}\t{:.1}", median(|| drop(black_box(call()))))),
            Run::List => line(format_args!("{name}")),
            Run::Once { case, calls, found } if case == name => {
                *found = true;
                for _ in 0..*calls {
                    drop(black_box(call()));
                }
            }
            Run::Once { .. } => {}
        }
    }
}

/// Prints a line; the reader may have closed the pipe.
fn line(text: std::fmt::Arguments<'_>) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// The median of nanoseconds a call, over samples of about a millisecond each, after a warm-up.
fn median(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u64;
    while start.elapsed() < Duration::from_millis(50) {
        call();
        calls += 1;
    }
    let batch = (calls / 50).max(1);
    let mut samples: Vec<f64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..batch {
                call();
            }
            start.elapsed().as_nanos() as f64 / batch as f64
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn layout(text: &str) -> Layout {
    text.parse().expect("the cases are layouts")
}

fn main() -> ExitCode {
    let Some(mut run) = Run::from_arguments() else {
        eprintln!("usage: throughput [--list | --once CASE [CALLS]]");
        return ExitCode::from(2);
    };
    let (a, b) = (layout("(6,2):(8,2)"), layout("(4,3):(3,1)"));
    let large_a = layout("((8,16),(64,2),(1,2)):((64,512),(1,8192),(0,16384))");
    let large_b = layout("((4,4),(2,16)):((1,4),(16,32))");
    let xor = |text: &str| text.parse::<Layout<Xor>>().expect("the cases are layouts");
    let xor_a = xor("((8,16),(64,2),(1,2)):((^64,^512),(^1,^8192),(^0,^16384))");
    let (xor_tile, tile_a, tile_b) = (xor("(8,8):(^1,^9)"), layout("(8,8):(8,1)"), layout("(4,16):(1,4)"));
    let refused_b = layout("((4,8,4),(2,2,8)):((64,1,32),(8,512,1024))");
    let matrix = layout("(128,64):(64,1)");
    let tiler: Tiler = Tiler::modes([Tiler::from(layout("16:1")), Tiler::from(layout("8:1"))]).expect("a small tiler");
    let xor_tiler: Tiler = "[4:1;2:1]".parse().expect("a small tiler");
    let divided = matrix.zipped_divide(&tiler).expect("the tiles divide the matrix");
    large_a.compose(&large_b).expect("the composite exists");
    large_a.compose(&refused_b).expect_err("no layout is the composite");

    run.case("compose (6,2):(8,2) o (4,3):(3,1)", || black_box(&a).compose(black_box(&b)));
    run.case("compose large", || black_box(&large_a).compose(black_box(&large_b)));
    run.case("compose XOR large", || black_box(&xor_a).compose(black_box(&large_b)));
    run.case("compose XOR (8,8):(^1,^9) o (4,16):(1,4)", || black_box(&xor_tile).compose(black_box(&tile_b)));
    run.case("compose (8,8):(8,1) o (4,16):(1,4)", || black_box(&tile_a).compose(black_box(&tile_b)));
    run.case("compose large (refused: no composite)", || black_box(&large_a).compose(black_box(&refused_b)));
    let mut names = Declarations::new();
    names.gather("M{div=128}").expect("facts");
    let launch_a = names.layout("((8,M/8),(64,2),(1,2)):((64,512),(1,64*M),(0,128*M))").expect("a layout");
    let launch_b = names.layout("((4,4),(2,M/8)):((1,4),(16,32))").expect("a layout");
    let known_a = Layout::<Expr>::from(&large_a);
    let known_b = Layout::<Expr>::from(&large_b);
    launch_a.compose(&launch_b).expect("the composite exists");
    run.case("compose large (extents known at launch)", || black_box(&launch_a).compose(black_box(&launch_b)));
    run.case("compose large (expressions that are numbers)", || black_box(&known_a).compose(black_box(&known_b)));
    run.case("complement (6,2):(8,2) in 65536", || black_box(&b).complement(black_box(&65536)));
    run.case("complement large in 65536", || black_box(&large_a).complement(black_box(&65536)));
    let steps = |text: &str| text.parse::<Layout<Coordinate>>().expect("the cases are layouts");
    let identity = steps("(6,2):(1@0,1@1)");
    let large_identity = steps("((8,16),(64,2),(1,2)):((1@0@0,1@1@0),(1@0@1,1@1@1),(1@0@2,1@1@2))");
    // As many modes that do not merge as the identity has.
    let apart = layout("((8,16),(64,2),(1,2)):((4,512),(128,65536),(0,262144))");
    let transpose = steps("(2,4):(1@1,1@0)");
    let large_steps = steps("((4,4),(2,16)):((1@0,4@0),(16@0,1@1))");
    run.case("compose (6,2):(1@0,1@1) o (4,3):(3,1)", || black_box(&identity).compose(black_box(&b)));
    run.case("compose large, no modes of which merge", || black_box(&apart).compose(black_box(&large_b)));
    run.case("compose large identity", || black_box(&large_identity).compose(black_box(&large_b)));
    run.case("compose (6,2):(8,2) o (2,4):(1@1,1@0)", || black_box(&a).compose(black_box(&transpose)));
    run.case("compose large o steps", || black_box(&large_a).compose(black_box(&large_steps)));
    run.case("coalesce (6,2):(1@0,1@1)", || black_box(&identity).coalesce());
    run.case("coalesce large identity", || black_box(&large_identity).coalesce());
    run.case("coalesce (6,2):(8,2)", || black_box(&a).coalesce());
    run.case("coalesce large", || black_box(&large_a).coalesce());
    run.case("coalesce XOR large", || black_box(&xor_a).coalesce());
    run.case("zipped_divide XOR (8,8):(^1,^9) by [4:1;2:1]", || {
        black_box(&xor_tile).zipped_divide(black_box(&xor_tiler))
    });
    run.case("eval XOR large at 12345", || black_box(&xor_a).eval(black_box(&12345)));
    run.case("right_inverse XOR (8,8):(^1,^9)", || black_box(&xor_tile).right_inverse());
    run.case("zipped_divide (128,64):(64,1) by [16:1;8:1]", || black_box(&matrix).zipped_divide(black_box(&tiler)));
    run.case("right_inverse (128,64):(64,1)", || black_box(&matrix).right_inverse());
    run.case("right_inverse zipped", || black_box(&divided).right_inverse());
    run.case("right_inverse large", || black_box(&large_a).right_inverse());
    run.case("left_inverse zipped", || black_box(&divided).left_inverse());
    run.case("eval zipped at 12345", || black_box(&divided).eval(black_box(&12345)));
    run.case("eval large at 12345", || black_box(&large_a).eval(black_box(&12345)));
    let (divided_prepared, large_prepared) = (divided.evaluator(), large_a.evaluator());
    run.case("eval prepared zipped at 12345", || black_box(&divided_prepared).eval(black_box(12345)));
    run.case("eval prepared large at 12345", || black_box(&large_prepared).eval(black_box(12345)));
    run.case("prepare large", || black_box(&large_a).evaluator());
    let text = divided.to_string();
    run.case("parse zipped", || black_box(text.as_str()).parse::<Layout>());
    let mut line: Vec<u8> = Vec::new();
    run.case("print zipped", || {
        line.clear();
        black_box(&divided).write_to(&mut line);
        black_box(line.as_slice());
    });
    let large_text = large_a.to_string();
    run.case("parse large", || black_box(large_text.as_str()).parse::<Layout>());
    run.case("print large", || {
        line.clear();
        black_box(&large_a).write_to(&mut line);
        black_box(line.as_slice());
    });
    run.case("clone large", || black_box(&large_a).clone());

    if let Run::Once { case, found: false, .. } = &run {
        eprintln!("throughput: no case is named {case:?}; --list prints the names");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
