//! Analyses that `scripts/peer-analysis` runs beside those of the Python package `tensor-layouts`:
//! one line for each, with tabs between
//!
//! ```text
//! what   layout   bytes of an element   elements at once   nanoseconds   degree of each warp, or the lines of memory that it touches
//! ```

use std::time::Instant;

use tilewright_layout::analysis::{Access, AnalysisError, Banks, Storage, bank_conflicts, footprint, global_access};
use tilewright_layout::{Composed, Layout};

/// A question, the thread-value layout that it is about, the bytes of an element, and how many
/// elements are accessed at once.
const CASES: [(&str, &str, i64, i64); 12] = [
    ("banks", "(32,1):(1,0)", 4, 1),
    ("banks", "(32,1):(32,0)", 4, 1),
    ("banks", "((128,64),1):((64,1),0)", 4, 1),
    ("banks", "S<5,0,5> o 0 o ((32,32),1):((32,1),0)", 4, 1),
    ("banks", "((64,32),1):((32,1),0)", 2, 1),
    ("lines", "((128,64),1):((64,1),0)", 4, 1),
    ("lines", "((64,128),1):((1,64),0)", 4, 1),
    ("footprint", "(128,64):(72,1)", 2, 1),
    // Several values at once, and wide elements: here the hardware has phases.
    ("banks", "(32,8):(8,1)", 2, 8),
    ("banks", "S<3,3,3> o 0 o ((8,128),8):((64,512),1)", 2, 8),
    ("banks", "(32,1):(1,0)", 8, 1),
    // A whole tile of accesses of 16 bytes.
    ("banks", "S<3,3,3> o 0 o ((128,8),8):((64,8),1)", 2, 8),
];

fn main() -> Result<(), AnalysisError> {
    for (what, text, bytes, vector) in CASES {
        let storage = || match text.parse::<Layout>() {
            Ok(layout) => Ok(Storage::from(&layout)),
            Err(_) => text.parse::<Composed>().map(|map| Storage::from(&map)),
        };
        let run = || -> Result<String, AnalysisError> {
            let storage = storage()?;
            if what == "footprint" {
                let found = footprint(&storage)?;
                return Ok(format!("{},{},{}", found.span(), found.offsets, found.holes()));
            }
            let access = Access::thread_values(storage.shape(), bytes * 8, vector)?;
            let list: Vec<String> = if what == "banks" {
                let report = bank_conflicts(&storage, &access, Banks::NVIDIA)?;
                // The worst phase of each warp.
                let groups = report.phases().chunk_by(|a, b| a.group == b.group);
                groups.map(|phases| phases.iter().map(|p| p.degree).max().unwrap_or(0).to_string()).collect()
            } else {
                let report = global_access(&storage, &access)?;
                report.requests().iter().map(|request| request.lines.to_string()).collect()
            };
            Ok(list.join(","))
        };
        let answer = run()?;
        // The fastest of many, as other programs only ever add to a time.
        let mut least = u128::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            let again = run()?;
            least = least.min(start.elapsed().as_nanos());
            assert_eq!(again, answer);
        }
        println!("{what}\t{text}\t{bytes}\t{vector}\t{least}\t{answer}");
    }
    Ok(())
}
