//! How long the server takes to answer hover in a file of 5,000 lines, and how long an editor waits
//! for the layouts of each tile program of the library.
//!
//!     cargo run --release -p tilewright-lsp --example answer_time

use std::hint::black_box;
use std::time::{Duration, Instant};

use tilewright_lsp::{Assigned, Position, Text, Tile, layout_at};
use tilewright_tile::LIBRARY;

/// A file of 5,000 lines in which every fifth has a layout.
fn file() -> String {
    let mut source = String::from(
        "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>\n",
    );
    for line in 1..5_000 {
        source.push_str(match line % 20 {
            0 => "sA: Sw<3,4,3> o smem_ptr[16b](unset) o (_64,(_8,_8)):(_8,(_1,_512))\n",
            5 => "    layout = cute.make_layout((64, 64), stride=(64, 1))\n",
            10 => "%3 = tt.load %p : tensor<128x64x!tt.ptr<f16>, #mma>\n",
            15 => "using L = cute::Layout<cute::tuple<cute::C<128>, cute::C<64>>, cute::tuple<cute::C<64>, cute::C<1>>>;\n",
            _ => "    for (int i = 0; i < n; ++i) { c[i] = f(a[i], b[i]); } // a comment (see 3:4)\n",
        });
    }
    source
}

fn main() {
    let text = Text::new(file());
    let (mut longest, mut all, mut found) = (Duration::ZERO, Duration::ZERO, 0);
    let lines = (0..text.lines()).step_by(5);
    let count = lines.len() as u32;
    for line in lines {
        let since = Instant::now();
        found += usize::from(black_box(layout_at(&text, Position { line, character: 30 })).is_some());
        let took = since.elapsed();
        longest = longest.max(took);
        all += took;
    }
    println!("hover in {} lines: {count} places, {found} layouts", text.lines());
    println!(
        "  mean {:.2} ms, longest {:.2} ms",
        all.as_secs_f64() * 1e3 / f64::from(count),
        longest.as_secs_f64() * 1e3
    );
    let since = Instant::now();
    black_box(text.changed(text.span(text.line(2_500)), "changed"));
    println!("a change of a line: {:.2} ms", since.elapsed().as_secs_f64() * 1e3);
    println!("tile programs: read as typed, layouts beside it");
    for entry in LIBRARY {
        let since = Instant::now();
        let tile = Tile::new(Text::new(entry.text.to_owned()));
        let read = since.elapsed();
        let since = Instant::now();
        let assigned = tile.program().map(|program| Assigned::of(program, None, tile.text()).is_ok());
        let (read, took) = (read.as_secs_f64() * 1e3, since.elapsed().as_secs_f64() * 1e3);
        println!("  {:<24} {read:>7.2} ms {took:>9.1} ms {}", entry.name, assigned == Some(true));
    }
}
