//! Products of numbers that are rounded to tf32, and sums of 16 bits in memory, beside plain loops.

use super::places::exactly;
use super::run::Case;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::{self, Target};
use tilewright_tile::{GradientOptions, Program};

fn read(text: &str) -> Program {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    program
}

/// The nearest number of f32 whose 13 lowest bits are 0; of two, the one of greater magnitude.
fn tf32(x: f64) -> f64 {
    let own = x as f32;
    if !own.is_finite() {
        return x;
    }
    let below = f32::from_bits(own.to_bits() >> 13 << 13);
    let above = f32::from_bits((own.to_bits() >> 13 << 13) + (1 << 13));
    // Behind the greatest number comes an infinity, as far away as one more number would be.
    let next = if above.is_infinite() {
        f64::from(below) * 2.0 - f64::from(f32::from_bits(below.to_bits() - (1 << 13)))
    } else {
        f64::from(above)
    };
    let (down, up) = ((f64::from(own) - f64::from(below)).abs(), (next - f64::from(own)).abs());
    f64::from(if down < up { below } else { above })
}

#[test]
fn numbers_are_rounded_to_tf32_as_the_hardware_does() {
    let program = read(
        "tile rounded {\n input x: f32 N:1\n output y: f32 N:1\n grid ceil(N/128)\n \
         store(y, (block.x), tf32(load(x, (128), (block.x))))\n}",
    );
    let bits = |at: u32| at.wrapping_mul(0x9e37_79b9);
    let mut x: Vec<f64> = (0..300).map(|at| f64::from(f32::from_bits(bits(at)))).filter(|x| !x.is_nan()).collect();
    // Half way between two, a little less and a little more; the ends; below the normal numbers.
    for base in [0x3f80_0000_u32, 0xbf80_2000, 0x0000_0000, 0x8000_2000, 0x7f7f_e000, 0x0080_0000] {
        x.extend([0, 1, 0xfff, 0x1000, 0x1001, 0x1fff].map(|more| f64::from(f32::from_bits(base + more))));
    }
    x.extend([f64::INFINITY, f64::NEG_INFINITY, f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE)]);
    let wanted: Vec<f64> = x.iter().map(|x| tf32(*x)).collect();
    let meant = tilewright_tile::interpret::run(&program, &[("N", x.len() as i64)], &[("x", x.clone())]).unwrap();
    for (found, (wanted, x)) in meant[0].1.iter().zip(wanted.iter().zip(&x)) {
        assert_eq!(found.unwrap().to_bits(), wanted.to_bits(), "of {x:e}");
    }
    let compiled = program.compile(None).unwrap();
    let found = super::run::kernel(&compiled, &Case::new(&[("N", x.len() as i64)], &[("x", x.clone())]), "y");
    for (found, (wanted, x)) in found.iter().zip(wanted.iter().zip(&x)) {
        assert_eq!(found.to_bits(), wanted.to_bits(), "of {x:e}");
    }
    assert!(ptx::write(compiled.kernel().program(), Target::Sm80).unwrap().contains("cvt.rna.tf32.f32"));
}

/// Multiples of 1/8 from -1 to 1 but 0, and 2^-15 more, which tf32 does not have.
fn numbers(seed: usize, count: usize) -> Vec<f64> {
    let eighths = |at: usize| ((at * 37 + seed * 11) % 16) as f64 - 8.0;
    (0..count)
        .map(|at| (if eighths(at) < 0.0 { eighths(at) } else { eighths(at) + 1.0 }) / 8.0 + 2.0_f64.powi(-15))
        .collect()
}

fn product(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let term = |row: usize, column: usize, at: usize| tf32(a[row * k + at]) * tf32(b[at * n + column]);
    (0..m * n).map(|own| (0..k).map(|at| term(own / n, own % n, at)).sum()).collect()
}

#[test]
fn products_of_tf32_are_those_of_rounded_numbers() {
    // Tiles of powers of two and others along K; one warp and more; both orders of B in memory.
    for (tile, warps, strides) in
        [([32, 16, 32], 1, "(N,1)"), ([64, 32, 24], 4, "(N,1)"), ([16, 8, 8], 1, "(1,K)"), ([64, 64, 16], 8, "(1,K)")]
    {
        let [m, n, k] = tile;
        let program = read(&format!(
            "tile product {{
                 input a: f32 (M,K):(K,1)
                 input b: f32 (K,N):{strides}
                 output d: f32 (M,N):(N,1)
                 grid ceil(M/{m}), ceil(N/{n})
                 warps {warps}
                 loop k < ceil(K/{k}) with sum = broadcast(f32(0), ({m},{n})) {{
                     x = tf32(load(a, ({m},{k}), (block.x, k)))
                     next dot(x, tf32(load(b, ({k},{n}), (k, block.y))), sum)
                 }} -> sum
                 store(d, (block.x, block.y), sum)
             }}"
        ));
        for sizes in [[64, 64, 48], [37, 21, 51]] {
            let [rows, columns, depth] = sizes;
            let (a, b) = (numbers(1, rows * depth), numbers(2, depth * columns));
            let wanted = product(&a, &b, sizes);
            let stored = match strides {
                "(N,1)" => b.clone(),
                _ => (0..columns * depth).map(|at| b[at % depth * columns + at / depth]).collect(),
            };
            let sizes = [("M", rows as i64), ("N", columns as i64), ("K", depth as i64)];
            exactly(&program, &Case::new(&sizes, &[("a", a), ("b", stored)]), &[("d", wanted)]);
        }
        let h200: Machine = "H200".parse().unwrap();
        let compiled = program.compile(&h200).unwrap();
        let text = ptx::write(compiled.kernel().program(), Target::Sm90a).unwrap();
        assert!(text.contains("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), "{text}");
        assert!(text.contains("cvt.rna.tf32.f32"));
    }
}

#[test]
fn derivatives_of_products_of_tf32_are_such_products() {
    let program = read(
        "tile product {
             input a: f32 (32,32):(32,1)
             input b: f32 (32,16):(16,1)
             output d: f32 (32,16):(16,1)
             grid 1
             x = tf32(load(a, (32,32), (0, 0)))
             y = tf32(load(b, (32,16), (0, 0)))
             store(d, (0, 0), dot(x, y, broadcast(f32(0), (32,16))))
         }",
    );
    let gradient = program.gradient(&GradientOptions::default()).unwrap();
    let (a, b, d) = (numbers(3, 32 * 32), numbers(4, 32 * 16), numbers(5, 32 * 16));
    let turned = |x: &[f64], columns: usize| -> Vec<f64> {
        let rows = x.len() / columns;
        (0..x.len()).map(|at| x[at % rows * columns + at / rows]).collect()
    };
    let wanted =
        [("d_a", product(&d, &turned(&b, 16), [32, 32, 16])), ("d_b", product(&turned(&a, 32), &d, [32, 16, 32]))];
    let inputs = [("a", a), ("b", b), ("d_d", d)];
    exactly(&gradient.programs()[0], &Case::new(&[], &inputs), &wanted);
}

#[test]
fn sums_of_16_bits_are_added_in_memory() {
    for element in ["bf16", "f16"] {
        let program = read(&format!(
            "tile added {{
                 input x: {element} (M,32):(32,1)
                 input rows: i32 (M,1):(1,1)
                 inout y: {element} (N,32):(32,1)
                 inout all: {element} 32:1
                 grid ceil(M/8)
                 a = load(x, (8,32), (block.x, 0))
                 r = load(rows, (8,1), (block.x, 0), -1)
                 atomic_add(y, (r, 0), a)
                 atomic_add(all, (0), reshape({element}(reduce_sum(f32(a), 0)), (32)))
             }}"
        ));
        let (m, n) = (19, 5);
        let rows: Vec<f64> = (0..m).map(|at| f64::from(at * 7 % 6)).collect();
        let x: Vec<f64> = (0..m * 32).map(|at| f64::from(at * 5 % 7) - 3.0).collect();
        let mut y = vec![0.5; n * 32];
        let mut all = vec![-4.0; 32];
        for (row, own) in x.chunks(32).enumerate() {
            for (at, x) in own.iter().enumerate() {
                if rows[row] < n as f64 {
                    y[rows[row] as usize * 32 + at] += x;
                }
                all[at] += x;
            }
        }
        let inputs = [("x", x), ("rows", rows), ("y", vec![0.5; n * 32]), ("all", vec![-4.0; 32])];
        exactly(&program, &Case::new(&[("M", m.into()), ("N", n as i64)], &inputs), &[("y", y), ("all", all)]);
        let compiled = program.compile(None).unwrap();
        let text = ptx::write(compiled.kernel().program(), Target::Sm90a).unwrap();
        assert!(text.contains(&format!("red.global.add.noftz.{element}")), "{text}");
        // Processors before Hopper have no such addition of bf16.
        match ptx::write(compiled.kernel().program(), Target::Sm80) {
            Ok(text) => assert!(element == "f16" && text.contains("red.global.add.noftz.f16")),
            Err(error) => {
                assert!(element == "bf16" && error.to_string().contains("an atomic addition of bf16"), "{error}")
            }
        }
    }
    // Each addition is rounded, to even: 256 + 1 is 256, and 258 + 1 is 260, where one unit is 2.
    let program =
        read("tile one {\n input x: bf16 2:1\n inout y: bf16 2:1\n grid 1\n atomic_add(y, (0), load(x, (2), (0)))\n}");
    let case = Case::new(&[], &[("x", vec![1.0, 1.0]), ("y", vec![256.0, 258.0])]);
    exactly(&program, &case, &[("y", vec![256.0, 260.0])]);
}
