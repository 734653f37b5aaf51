//! Times batch mode: a hundred thousand compositions, one a line.

use std::fmt::Write as _;
use std::time::Instant;

use tilewright_notation::run_batch;

fn main() -> std::io::Result<()> {
    let mut input = String::new();
    for line in 0..100_000 {
        let (a, b) = (2 + line % 7, 1 + line % 5);
        let _ = writeln!(input, "composition((6,{a}):(8,{b}), (4,3):(3,1))");
    }
    let mut times = Vec::new();
    for _ in 0..7 {
        let mut out = Vec::with_capacity(8 << 20);
        let start = Instant::now();
        run_batch(input.as_bytes(), &mut out)?;
        times.push(start.elapsed());
    }
    times.sort();
    if let Some(median) = times.get(times.len() / 2) {
        println!("100000 compositions\t{median:?}");
    }
    Ok(())
}
