//! Tiles that begin at elements, beside plain loops.

use super::places::exactly;
use super::run::Case;
use tilewright_tile::{GradientOptions, Program};

fn counted(count: usize) -> Vec<f64> {
    (0..count).map(|at| (at * 37 % 101) as f64 - 50.0).collect()
}

#[test]
fn tiles_begin_at_any_element() {
    // Before the first element, within a vector, past the last one, and by steps that overlap.
    for (step, by) in [(64, -1), (16, 3), (4, 0), (1, -70), (5, 2), (8, -8), (2, 200)] {
        let sign = if by < 0 { "-" } else { "+" };
        let text = format!(
            "tile moved {{\n input x: f32 N:1\n output y: f32 (64,B):(1,64)\n grid B\n \
             a = load(x, (64), ([block.x*{step} {sign} {}]), 99)\n \
             store(y, (0, block.x), reshape(a, (64,1)))\n}}",
            i32::abs(by)
        );
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
        for (count, blocks) in [(1, 1), (100, 4), (257, 7)] {
            let x = counted(count);
            let element = |at: usize| {
                let from = (at % 64) as i64 + (at / 64) as i64 * step + i64::from(by);
                usize::try_from(from).ok().and_then(|from| x.get(from)).copied().unwrap_or(99.0)
            };
            let wanted = (0..64 * blocks).map(element).collect();
            let sizes = [("N", count as i64), ("B", blocks as i64)];
            exactly(&program, &Case::new(&sizes, &[("x", x.clone())]), &[("y", wanted)]);
        }
    }
}

#[test]
fn stores_begin_at_any_element_and_skip_what_is_outside() {
    // Tiles of 16 to places 16 apart, from element 3 on; rows by tiles, in a loop.
    let program: Program = "
    tile placed {
        input x: i32 (R,N):(N,1)
        inout y: i32 (R,M):(M,1)
        grid ceil(R/2)
        loop k < ceil(N/16) {
            store(y, (block.x, [k*16 + 3]), load(x, (2,16), (block.x, [k*16])) * 2)
        }
    }"
    .parse()
    .unwrap();
    for (rows, columns, width) in [(1, 16, 40), (5, 37, 30), (4, 64, 70)] {
        let x = counted(rows * columns);
        let before = vec![-7.0; rows * width];
        let mut wanted = before.clone();
        for (row, own) in x.chunks(columns).enumerate() {
            // Elements past the edge of x are 0, to the end of their tile.
            for at in 0..columns.div_ceil(16) * 16 {
                if at + 3 < width {
                    wanted[row * width + at + 3] = 2.0 * own.get(at).copied().unwrap_or(0.0);
                }
            }
        }
        let sizes = [("R", rows as i64), ("N", columns as i64), ("M", width as i64)];
        exactly(&program, &Case::new(&sizes, &[("x", x), ("y", before)]), &[("y", wanted)]);
    }
}

#[test]
fn a_convolution_reads_neighbours_along_two_modes() {
    let program: Program = "
    tile blurred {
        input x: f32 (H,W):(W,1)
        output y: f32 (H,W):(W,1)
        grid ceil(H/8), ceil(W/32)
        loop i < 3 with sum = broadcast(f32(0), (8,32)) {
            loop j < 3 with row = sum {
                next row + load(x, (8,32), ([block.x*8 + i - 1], [block.y*32 + j - 1]))
            } -> row
            next row
        } -> sum
        store(y, (block.x, block.y), sum)
    }"
    .parse()
    .unwrap();
    for (height, width) in [(8, 32), (9, 33), (1, 1), (20, 70)] {
        let x = counted(height * width);
        let at = |row: i64, column: i64| {
            let inside = (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
            if inside { x[row as usize * width + column as usize] } else { 0.0 }
        };
        let sum = |own: usize| {
            let (row, column) = ((own / width) as i64, (own % width) as i64);
            (0..9).map(|step| at(row + step / 3 - 1, column + step % 3 - 1)).sum::<f64>()
        };
        let wanted = (0..height * width).map(sum).collect();
        let sizes = [("H", height as i64), ("W", width as i64)];
        exactly(&program, &Case::new(&sizes, &[("x", x.clone())]), &[("y", wanted)]);
    }
}

#[test]
fn operands_of_products_may_begin_at_elements() {
    // Rows 5 further down, K-tiles that begin at column 2: 16-bit elements in no 16 bytes.
    let program: Program = "
    tile shifted {
        input a: bf16 (M,K):(K,1)
        input b: bf16 (K,16):(16,1)
        output d: f32 (M,16):(16,1)
        grid ceil(M/16)
        loop k < ceil(K/32) with sum = broadcast(f32(0), (16,16)) {
            next dot(load(a, (16,32), ([block.x*16 + 5], [k*32 + 2])), load(b, (32,16), ([k*32 + 2], 0)), sum)
        } -> sum
        store(d, (block.x, 0), sum)
    }"
    .parse()
    .unwrap();
    let (m, k, n) = (40, 70, 16);
    let [a, b] = [m * k, k * n].map(|count| counted(count).iter().map(|own| own % 8.0).collect::<Vec<f64>>());
    let mut wanted = Vec::new();
    for row in 0..m {
        for column in 0..n {
            let term = |at: usize| if row + 5 < m { a[(row + 5) * k + at] * b[at * n + column] } else { 0.0 };
            wanted.push((2..k).map(term).sum());
        }
    }
    let sizes = [("M", m as i64), ("K", k as i64)];
    exactly(&program, &Case::new(&sizes, &[("a", a), ("b", b)]), &[("d", wanted)]);
}

#[test]
fn tiles_at_elements_are_refused_where_they_have_no_meaning() {
    for (line, told) in [
        ("a = load(x, (8), ([block.x)", "`]`"),
        ("a = index([block.x])", "`block.x` or the iteration"),
        ("a = load(x, (8), ([block.x] + 1))", "`)`"),
        ("a = stage(h, (16,16), ([block.x], 0), (0,1))", "whole tiles"),
        ("store(y, ([3]), load(x, (8), (0)))\n store(y, ([3]), load(x, (8), (1)))", "store"),
    ] {
        let text = format!(
            "tile t {{\n input x: f32 8:1\n input h: bf16 (16,16):(16,1)\n output y: f32 16:1\n grid 1\n {line}\n}}"
        );
        let error = text.parse::<Program>().and_then(|program| program.verify()).unwrap_err();
        assert!(error.to_string().contains(told) && error.place().is_some(), "{line}: {error}");
    }
    let text = "tile t {\n input x: f32 64:1\n output y: f32 8:1\n grid 1\n store(y, (0), load(x, (8), ([3])))\n}";
    let refused = text.parse::<Program>().unwrap().gradient(&GradientOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("begins at an element") && refused.place().unwrap().line() == 5, "{refused}");
}
