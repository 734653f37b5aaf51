//! Operands that an author stages, beside plain loops: tiles of every small shape, fewer elements
//! than the block has threads among them, once and iteration by iteration, whichever mode lies side
//! by side.

use super::run::{Case, kernel};
use super::{agrees, numbers};
use tilewright_kernel::machine::Machine;
use tilewright_tile::Program;

/// The strides of a matrix whose second mode lies side by side, or the first.
fn strides(rows: &str, columns: &str, along_columns: bool) -> String {
    if along_columns { format!("({columns},1)") } else { format!("(1,{rows})") }
}

fn product([m, n, k]: [i64; 3], warps: i64, turned: bool, along: [bool; 2]) -> String {
    let (of_a, of_b) = (strides("M", "K", along[0]), strides("K", "N", along[1]));
    let operands = |iteration: &str| {
        format!(
            "stage(a, ({m},{k}), (block.x, {iteration}), (0,1)), stage(b, ({k},{n}), ({iteration}, block.y), (0,1))"
        )
    };
    let zero = format!("broadcast(f32(0), ({m},{n}))");
    let body = match turned {
        true => format!("loop k < ceil(K/{k}) with sum = {zero} {{ next dot({}, sum) }} -> sum", operands("k")),
        false => format!("sum = dot({}, {zero})", operands("0")),
    };
    format!(
        "
tile staged {{
    input  a: bf16 (M{{div=8}},K{{div=8}}):{of_a}
    input  b: bf16 (K{{div=8}},N{{div=8}}):{of_b}
    output d: f32 (M,N):(N,1)
    grid ceil(M/{m}), ceil(N/{n})
    warps {warps}
    {body}
    store(d, (block.x, block.y), sum)
}}"
    )
}

#[test]
fn tiles_of_every_shape_are_staged() {
    let mut small = 0;
    for (tile, warps) in [
        ([16, 8, 16], 1),
        ([32, 32, 16], 4),
        ([32, 32, 16], 2),
        ([16, 64, 16], 8),
        ([128, 8, 16], 8),
        ([64, 16, 32], 4),
        ([16, 16, 256], 1),
    ] {
        for turned in [false, true] {
            let ways = if turned { [[true, true], [false, false]] } else { [[false, true], [true, false]] };
            for along in ways {
                let [m, n, k] = tile;
                // Tiles stand out over the edges; there are three iterations, or one.
                let sizes = [m + 8, n + 8, if turned { 2 * k + 8 } else { k - 8 }].map(|size| size as usize);
                let [rows, columns, depth] = sizes;
                let a = numbers(1, rows * depth, 1.0);
                let b = numbers(2, depth * columns, 1.0);
                let of_a = |i: usize, l: usize| a[if along[0] { i * depth + l } else { l * rows + i }];
                let of_b = |l: usize, j: usize| b[if along[1] { l * columns + j } else { j * depth + l }];
                let mut wanted = Vec::new();
                for i in 0..rows {
                    for j in 0..columns {
                        wanted.push((0..depth).map(|l| of_a(i, l) * of_b(l, j)).sum());
                    }
                }
                let text = product(tile, warps, turned, along);
                let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
                let case = Case::new(
                    &[("M", rows as i64), ("N", columns as i64), ("K", depth as i64)],
                    &[("a", a.clone()), ("b", b.clone())],
                );
                agrees(&program, &case, &wanted, 1e-4);
                small += i64::from((m * k).min(k * n) / 8 < 32 * warps);
            }
        }
    }
    // In most of them some warps have nothing to copy.
    assert!(small >= 20, "{small}");
}

/// An operand that threads read from shared memory has the layout of its product, also where the
/// other product of the loop would rather divide its rows in another way.
#[test]
fn wide_operands_are_read_as_their_products_take_them() {
    let text = "
tile wide {
    input  k: bf16 (T,256):(256,1)
    input  q: bf16 (S,256):(256,1)
    output d: f32 (T,256):(256,1)
    grid ceil(T/128)
    warps 8
    keys = load(k, (128,256), (block.x, 0))
    loop j < ceil(S/64) with sum = broadcast(f32(0), (128,256)) {
        scores = dot(keys, transpose(load(q, (64,256), (j, 0)), (1,0)), broadcast(f32(0), (128,64)))
        next dot(bf16(scores), load(q, (64,256), (j, 0)), sum)
    } -> sum
    store(d, (block.x, 0), sum)
}";
    let (t, s) = (20, 70);
    let small = |seed: u64, count: usize| numbers(seed, count, 1.0).into_iter().map(f64::round).collect::<Vec<_>>();
    let (k, q) = (small(1, t * 256), small(2, s * 256));
    let mut wanted = vec![0.0; t * 256];
    for (k, wanted) in k.chunks(256).zip(wanted.chunks_mut(256)) {
        for q in q.chunks(256) {
            let score: f64 = k.iter().zip(q).map(|(k, q)| k * q).sum();
            wanted.iter_mut().zip(q).for_each(|(sum, q)| *sum += score * q);
        }
    }
    let case = Case::new(&[("T", t as i64), ("S", s as i64)], &[("k", k), ("q", q)]);
    // The tiles of both operands take more room than every card has.
    let h200 = Machine::named("H200@sm_80").unwrap();
    let compiled = text.parse::<Program>().unwrap().compile(&h200).unwrap();
    assert_eq!(kernel(&compiled, &case, "d"), wanted);
}
