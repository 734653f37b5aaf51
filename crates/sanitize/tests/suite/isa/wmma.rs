//! `wmma` against products of integers, by the places of its own fragments.

use tilewright_sanitize::isa::mma::{LANES, LaneWords, Operands};
use tilewright_sanitize::isa::tensor_core::{Factor, SumType};
use tilewright_sanitize::isa::wmma::{Wmma, WmmaMatrix};

use super::random::Random;

/// Registers that hold a matrix, by the place of each part.
fn registers(wmma: &Wmma, fragment: WmmaMatrix, element: impl Fn(usize, usize) -> u32) -> Vec<LaneWords> {
    let bits = wmma.bits(fragment);
    let packed = 32 / bits;
    let mut all = vec![[0; LANES]; wmma.registers(fragment)];
    for place in 0..all.len() * packed {
        for (lane, word) in all[place / packed].iter_mut().enumerate() {
            let (row, column) = wmma.place(fragment, lane, place);
            let mask = u32::MAX >> (32 - bits);
            *word |= (element(row, column) & mask) << (bits * (place % packed));
        }
    }
    all
}

fn check(shape: [usize; 3], operands: Operands, sums: SumType, range: i64, encode: impl Fn(i64) -> u32) {
    let wmma = Wmma::new(shape, operands, sums, false).unwrap();
    let [m, n, k] = shape;
    let mut random = Random::new((m * n + k) as u64);
    let mut draw = |count: usize| -> Vec<i64> {
        (0..count).map(|_| random.below(2 * range as u64) as i64 - if range > 1 { range } else { 0 }).collect()
    };
    let (a, b, c) = (draw(m * k), draw(k * n), draw(m * n));
    let sum = |value: i64| match (operands, sums) {
        (Operands::Floats(..), SumType::F16) => half::f16::from_f64(value as f64).to_bits().into(),
        (Operands::Floats(..), SumType::F32) => (value as f32).to_bits(),
        _ => value as u32,
    };
    let of_a = registers(&wmma, WmmaMatrix::A, |row, at| encode(a[row * k + at]));
    let of_b = registers(&wmma, WmmaMatrix::B, |at, column| encode(b[at * n + column]));
    let of_c = registers(&wmma, WmmaMatrix::C, |row, column| sum(c[row * n + column]));
    let wanted = registers(&wmma, WmmaMatrix::C, |row, column| {
        let term = |at: usize| match operands {
            Operands::XorPopc => (a[row * k + at] ^ b[at * n + column]) & 1,
            _ => a[row * k + at] * b[at * n + column],
        };
        sum(c[row * n + column] + (0..k).map(term).sum::<i64>())
    });
    let mut d = vec![[0; LANES]; of_c.len()];
    wmma.multiply(&of_a, &of_b, &of_c, &mut d);
    assert_eq!(d, wanted, "{shape:?} {operands:?}");
    // Each element is there, and as often as every other.
    for fragment in [WmmaMatrix::A, WmmaMatrix::B, WmmaMatrix::C] {
        let [rows, columns] = wmma.extents(fragment);
        let mut seen = vec![0; rows * columns];
        let places = wmma.registers(fragment) * 32 / wmma.bits(fragment);
        for place in 0..places {
            for lane in 0..LANES {
                let (row, column) = wmma.place(fragment, lane, place);
                seen[row * columns + column] += 1;
            }
        }
        assert!(seen.iter().all(|count| *count == seen[0] && *count > 0), "{shape:?} {fragment:?}");
    }
}

#[test]
fn fragments_multiply_as_matrices_do() {
    let f16 = |value: i64| u32::from(half::f16::from_f64(value as f64).to_bits());
    let bf16 = |value: i64| u32::from(half::bf16::from_f64(value as f64).to_bits());
    for shape in [[16, 16, 16], [32, 8, 16], [8, 32, 16]] {
        check(shape, Operands::Floats(Factor::F16, Factor::F16), SumType::F32, 5, f16);
        check(shape, Operands::Floats(Factor::F16, Factor::F16), SumType::F16, 5, f16);
        check(shape, Operands::Floats(Factor::Bf16, Factor::Bf16), SumType::F32, 5, bf16);
        let bytes = Operands::Integers { bits: 8, a_signed: true, b_signed: true };
        check(shape, bytes, SumType::F32, 128, |value| value as u32);
    }
    let tf32 = Operands::Floats(Factor::Tf32, Factor::Tf32);
    check([16, 16, 8], tf32, SumType::F32, 5, |value| (value as f32).to_bits());
    let halves = Operands::Integers { bits: 4, a_signed: true, b_signed: true };
    check([8, 8, 32], halves, SumType::F32, 8, |value| value as u32);
    check([8, 8, 128], Operands::XorPopc, SumType::F32, 1, |value| value as u32);
    assert!(Wmma::new([16, 16, 32], tf32, SumType::F32, false).is_none());
}

#[test]
fn products_of_f64_have_one_element_of_a_and_b_in_a_lane() {
    let wmma = Wmma::new([8, 8, 4], Operands::F64, SumType::F32, false).unwrap();
    let mut random = Random::new(75);
    let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| random.below(2001) as f64 - 1000.0).collect() };
    let (a, b, c) = (draw(32), draw(32), draw(64));
    let held = |fragment: WmmaMatrix, element: &dyn Fn(usize, usize) -> f64| -> Vec<LaneWords> {
        let mut all = vec![[0; LANES]; wmma.registers(fragment)];
        for (word, lanes) in all.iter_mut().enumerate() {
            for (lane, into) in lanes.iter_mut().enumerate() {
                let (row, column) = wmma.place(fragment, lane, word / 2);
                *into = (element(row, column).to_bits() >> (32 * (word % 2))) as u32;
            }
        }
        all
    };
    let of_a = held(WmmaMatrix::A, &|row, at| a[row * 4 + at]);
    let of_b = held(WmmaMatrix::B, &|at, column| b[at * 8 + column]);
    let of_c = held(WmmaMatrix::C, &|row, column| c[row * 8 + column]);
    let wanted = held(WmmaMatrix::C, &|row, column| {
        c[row * 8 + column] + (0..4).map(|at| a[row * 4 + at] * b[at * 8 + column]).sum::<f64>()
    });
    let mut d = vec![[0; LANES]; 4];
    wmma.multiply(&of_a, &of_b, &of_c, &mut d);
    assert_eq!(d, wanted);
}
