//! Times the algebra: `cargo run --release -p tilewright-layout --example throughput`.
//!
//! One line a case: its name, a tab, and the median of nanoseconds a call. Each sample times a batch of calls; inputs and
//! results pass through `black_box`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tilewright_layout::{Layout, Tiler};

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

fn report<T>(name: &str, mut call: impl FnMut() -> T) {
    println!("{name}\t{:.1}", median(|| drop(black_box(call()))));
}

fn layout(text: &str) -> Layout {
    text.parse().expect("the cases are layouts")
}

fn main() {
    let (a, b) = (layout("(6,2):(8,2)"), layout("(4,3):(3,1)"));
    let large_a = layout("((8,16),(64,2),(1,2)):((64,512),(1,8192),(0,16384))");
    let large_b = layout("((4,8,4),(2,2,8)):((64,1,32),(8,512,1024))");
    let matrix = layout("(128,64):(64,1)");
    let tiler: Tiler = Tiler::modes([Tiler::from(layout("16:1")), Tiler::from(layout("8:1"))]).expect("a small tiler");
    let divided = matrix.zipped_divide(&tiler).expect("the tiles divide the matrix");

    report("compose (6,2):(8,2) o (4,3):(3,1)", || black_box(&a).compose(black_box(&b)));
    report("compose large", || black_box(&large_a).compose(black_box(&large_b)));
    report("complement (6,2):(8,2) in 65536", || black_box(&b).complement(black_box(&65536)));
    report("complement large in 65536", || black_box(&large_a).complement(black_box(&65536)));
    report("coalesce (6,2):(8,2)", || black_box(&a).coalesce());
    report("coalesce large", || black_box(&large_a).coalesce());
    report("zipped_divide (128,64):(64,1) by [16:1;8:1]", || black_box(&matrix).zipped_divide(black_box(&tiler)));
    report("right_inverse (128,64):(64,1)", || black_box(&matrix).right_inverse());
    report("right_inverse zipped", || black_box(&divided).right_inverse());
    report("right_inverse large", || black_box(&large_a).right_inverse());
    report("left_inverse zipped", || black_box(&divided).left_inverse());
    report("eval zipped at 12345", || black_box(&divided).eval(black_box(&12345)));
    report("eval large at 12345", || black_box(&large_a).eval(black_box(&12345)));
    let text = divided.to_string();
    report("parse zipped", || black_box(text.as_str()).parse::<Layout>());
    let mut line: Vec<u8> = Vec::new();
    report("print zipped", || {
        line.clear();
        black_box(&divided).write_to(&mut line);
    });
    let large_text = large_a.to_string();
    report("parse large", || black_box(large_text.as_str()).parse::<Layout>());
    report("print large", || {
        line.clear();
        black_box(&large_a).write_to(&mut line);
    });
    report("clone large", || black_box(&large_a).clone());
}
