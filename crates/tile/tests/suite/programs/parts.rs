//! Quotients and remainders of blocks and iterations as indices, beside plain loops; and products
//! whose rows in memory are not aligned.

use super::places::exactly;
use super::run::Case;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Refusal;
use tilewright_tile::{GradientOptions, Program};

fn read(text: &str) -> Program {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    program
}

fn counted(count: usize) -> Vec<f64> {
    (0..count).map(|at| (at * 37 % 101) as f64 - 50.0).collect()
}

#[test]
fn tiles_are_at_parts_of_blocks_and_iterations() {
    // Three blocks share a row; two iterations a part of it. Blocks are stored by both parts.
    let program = read(
        "tile grouped {
             input x: f32 (H,64):(64,1)
             output y: f32 (H,3,64):(192,64,1)
             output z: f32 (B,16):(16,1)
             grid B
             a = load(x, (1,64), (block.x / 3, 0))
             store(y, (block.x // 3, block.x % 3, 0), reshape(a, (1,1,64)) + f32(index(block.x % 3 * 10)))
             loop i < 8 with s = broadcast(f32(0), (1,16)) {
                 b = load(x, (1,16), (block.x / 3, i / 2))
                 c = load(x, (1,16), (block.x % 3, [i % 2 * 5 + 1]))
                 next s * 2 + b - c * f32(index(i / 2 + i % 4))
             } -> s
             store(z, (block.x, 0), s)
         }",
    );
    assert!(program.to_string().contains("block.x / 3, block.x % 3, 0"), "{program}");
    assert!(program.to_string().contains("[i0 % 2*5 + 1]"), "{program}");
    for heads in [3, 5] {
        let blocks = 3 * heads;
        let x = counted(heads * 64);
        let y = (0..blocks * 64).map(|at| x[at / 64 / 3 * 64 + at % 64] + (at / 64 % 3 * 10) as f64).collect();
        let mut z = Vec::new();
        for block in 0..blocks {
            for at in 0..16 {
                let of = |sum: f64, i: usize| {
                    let b = x[block / 3 * 64 + i / 2 * 16 + at];
                    let c = x[block % 3 * 64 + i % 2 * 5 + 1 + at];
                    sum * 2.0 + b - c * (i / 2 + i % 4) as f64
                };
                z.push((0..8).fold(0.0, of));
            }
        }
        let case = Case::new(&[("H", heads as i64), ("B", blocks as i64)], &[("x", x)]);
        exactly(&program, &case, &[("y", y), ("z", z)]);
    }
}

#[test]
fn multiples_are_divided_exactly_and_sums_are_refused() {
    let text = |at: &str| {
        format!(
            "tile t {{\n input x: f32 (M,64):(64,1)\n output y: f32 (M,64):(64,1)\n grid M\n \
                 store(y, (block.x, 0), load(x, (1,64), ({at}, 0)))\n}}"
        )
    };
    for (at, printed) in [
        ("block.x*8 / 4", "block.x*2"),
        ("(block.x*8 + 4) / 4", "block.x*2 + 1"),
        ("block.x / 4 / 2", "block.x / 8"),
        ("(block.x*8 + 5) % 4", "1"),
        ("block.x / 1", "block.x"),
        ("7 / 2", "3"),
    ] {
        assert!(read(&text(at)).to_string().contains(&format!("(1,64), ({printed}, 0)")), "{at}");
    }
    for at in ["(block.x + 1) / 4", "block.x*2 / 4", "block.x / 0", "(block.x % 4) / 2", "block.x / block.y"] {
        let error = text(at).parse::<Program>().unwrap_err();
        assert_eq!(error.code(), "E1204", "{error}");
    }
}

#[test]
fn derivatives_of_tiles_that_blocks_share_by_a_quotient_are_added_by_atomics() {
    let program = read(
        "tile shared {
             input x: f32 (H,32):(32,1)
             output y: f32 (B,32):(32,1)
             grid B
             a = load(x, (1,32), (block.x / 4, 0))
             store(y, (block.x, 0), a * a)
         }",
    );
    let error = program.gradient(&GradientOptions::default()).unwrap_err();
    assert!(error.to_string().contains("a quotient or a remainder of an index"), "{error}");
    let gradient = program.gradient(&GradientOptions { atomic: true, ..GradientOptions::default() }).unwrap();
    let (x, d_y) = (counted(64), counted(8 * 32));
    let mut wanted = vec![0.0; 64];
    for (at, d) in d_y.iter().enumerate() {
        let own = at / 32 / 4 * 32 + at % 32;
        wanted[own] += 2.0 * d * x[own];
    }
    let inputs = [("x", x), ("d_y", d_y), ("d_x", vec![0.0; 64])];
    exactly(&gradient.programs()[0], &Case::new(&[("H", 2), ("B", 8)], &inputs), &[("d_x", wanted)]);
}

#[test]
fn operands_with_rows_of_any_extent_are_multiplied() {
    // No multiple of 16 bytes lies between rows, so neither TMA nor asynchronous copies load them.
    let program = read(
        "tile product {
             input a: bf16 (M,K):(K,1)
             input b: bf16 (K,N):(N,1)
             output d: f32 (M,N):(N,1)
             grid ceil(M/64), ceil(N/64)
             loop k < ceil(K/64) with sum = broadcast(f32(0), (64,64)) {
                 next dot(load(a, (64,64), (block.x, k)), load(b, (64,64), (k, block.y)), sum)
             } -> sum
             store(d, (block.x, block.y), sum)
         }",
    );
    let machines: [Option<Machine>; 3] = [None, Some("H200".parse().unwrap()), Some("A100".parse().unwrap())];
    for [m, n, k] in [[45, 37, 51], [64, 65, 129], [1, 1, 1]] {
        let number = |at: usize| ((at * 29 % 17) as f64 - 8.0) / 8.0;
        let (a, b): (Vec<f64>, Vec<f64>) =
            ((0..m * k).map(number).collect(), (0..k * n).map(|at| number(at + 3)).collect());
        let term = |own: usize, at: usize| a[own / n * k + at] * b[at * n + own % n];
        let wanted: Vec<f64> = (0..m * n).map(|own| (0..k).map(|at| term(own, at)).sum()).collect();
        let sizes = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
        let case = Case::new(&sizes, &[("a", a.clone()), ("b", b.clone())]);
        exactly(&program, &case, &[("d", wanted.clone())]);
        for machine in &machines {
            let compiled = program.compile(machine.as_ref()).unwrap();
            let found = super::run::kernel(&compiled, &case, "d");
            assert_eq!(found, wanted);
        }
    }
}
