//! What other crates reach on this machine, for `tilewright-lab bench`.
//!
//! ```text
//! tilewright-peers gemm KIND THREADS SECONDS M N K A B
//! tilewright-peers copy KIND THREADS SECONDS AXES ORDER [AXES ORDER ..]
//! ```
//!
//! The first computes products of `KIND` (`f32` or `f64`) for about this many seconds and prints,
//! for each crate, its name and the operations a second of the best run. A is `M x K`, B is `K x
//! N`, each by `rows` or by `columns`; C lies by rows.
//!
//! The second moves arrays of `KIND` (`f32`, `f64`, `f16` or `u8`) of the given axes in C order to
//! arrays whose axis `k` is axis `ORDER[k]` of the first, and prints the number of the array, the
//! name of the crate and the bytes a second of the best run.
//!
//! The crate stands outside the workspace, so that only those who ask for peers compile them. HPTT
//! is C++, which needs CMake: it is the feature `hptt`.

mod copy;
mod gemm;

use std::time::Instant;

/// Does what the arguments of the process say.
pub fn run() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["gemm", rest @ ..] => gemm::run(rest),
        ["copy", rest @ ..] => copy::run(rest),
        _ => None,
    };
    if outcome.is_none() {
        eprintln!("usage: tilewright-peers gemm f32|f64 THREADS SECONDS M N K rows|columns rows|columns");
        eprintln!("       tilewright-peers copy f32|f64|f16|u8 THREADS SECONDS AXES ORDER [AXES ORDER ..]");
        std::process::exit(2);
    }
}

/// The seconds of the best of some runs, three at least, which take this many seconds together.
fn best(seconds: f64, mut run: impl FnMut()) -> f64 {
    let (begin, mut best, mut runs) = (Instant::now(), f64::INFINITY, 0);
    while runs < 3 || begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}
