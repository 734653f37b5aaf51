//! Sums of tensor cores against sums of integers that are cut bit by bit.

use tilewright_sanitize::isa::mma::{LANES, Mma, Operands};
use tilewright_sanitize::isa::tensor_core::{Factor, SumModel, SumType};

use super::random::Random;

/// A number as `significand * 2^(exponent - fraction)`, by the definition of a format.
struct Number {
    significand: i128,
    exponent: i32,
}

fn number(bits: u32, exponent: u32, fraction: u32) -> Number {
    let field = (bits >> fraction & ((1 << exponent) - 1)) as i32;
    let low = i128::from(bits & ((1 << fraction) - 1));
    let bias = (1 << (exponent - 1)) - 1;
    let significand = if field == 0 { low } else { low + (1 << fraction) };
    let sign = if bits >> (exponent + fraction) & 1 == 1 { -1 } else { 1 };
    Number { significand: sign * significand, exponent: field.max(1) - bias }
}

/// One block of the law: terms as pairs of an integer in units of `2^(exponent - fraction)`.
fn cut_sum(terms: &[(i128, i32, i32)], bits: i32, kept_after_point: i32) -> f32 {
    let highest = terms.iter().filter(|term| term.0 != 0).map(|term| term.1).max();
    let Some(highest) = highest else { return 0.0 };
    // Units of 2^(highest - bits); integers are divided toward 0.
    let kept = terms.iter().map(|(integer, exponent, fraction)| {
        let shift = exponent - fraction - (highest - bits);
        match shift {
            0.. => integer << shift,
            -120..0 => integer / (1_i128 << -shift),
            _ => 0,
        }
    });
    let total: i128 = kept.sum();
    // Cut to the bits that are kept, and the leading one.
    let drop = (128 - total.unsigned_abs().leading_zeros() as i32 - 1 - kept_after_point).max(0);
    let value = (total / (1 << drop) * (1 << drop)) as f64 * 2_f64.powi(highest - bits);
    value as f32
}

#[test]
fn terms_are_cut_below_the_highest_exponent() {
    let mut random = Random::new(40);
    let kinds = [
        (Factor::F16, 16, 5, 10, 16),
        (Factor::Bf16, 16, 8, 7, 16),
        (Factor::Tf32, 8, 8, 10, 32),
        (Factor::E4m3, 32, 4, 3, 8),
        (Factor::E5m2, 32, 5, 2, 8),
    ];
    for (factor, k, exponent, fraction, width) in kinds {
        for (depth, bits, kept) in [(4, 23, 23), (8, 24, 23), (16, 25, 23), (32, 13, 13)] {
            let mma = Mma::new([16, 8, k], Operands::Floats(factor, factor), SumType::F32, false).unwrap();
            let mma = mma.with_model(SumModel { depth, bits, kept });
            for _ in 0..20 {
                // Exponents around that of 1; a few subnormal numbers and zeros.
                let mut element = || {
                    let middle = (1_u64 << (exponent - 1)) - 1;
                    let field = match random.below(12) {
                        0 => 0,
                        _ => middle - 5.min(middle - 1) + random.below(9),
                    };
                    let low = if random.below(9) == 0 { 0 } else { random.bits() & ((1 << fraction) - 1) };
                    (random.below(2) << (exponent + fraction) | field << fraction | low) as u32
                };
                let rows: Vec<u32> = (0..16 * k).map(|_| element()).collect();
                let columns: Vec<u32> = (0..8 * k).map(|_| element()).collect();
                let old: Vec<f32> = (0..128).map(|_| (random.below(2000) as f32 - 1000.0) / 77.0).collect();
                // Into registers by the definition in the PTX ISA, element by element.
                let packed = 32 / width;
                let shift = if factor == Factor::Tf32 { 13 } else { 0 };
                let mut a = vec![[0; LANES]; 16 * k / packed / LANES];
                let mut b = vec![[0; LANES]; 8 * k / packed / LANES];
                for at in 0..k {
                    let (number, lane, part) = (at / (4 * packed), at / packed % 4, at % packed);
                    for row in 0..16 {
                        let bits = rows[row * k + at] << shift;
                        a[2 * number + row / 8][row % 8 * 4 + lane] |= bits << (part * width % 32);
                    }
                    for column in 0..8 {
                        b[number][column * 4 + lane] |= columns[column * k + at] << shift << (part * width % 32);
                    }
                }
                let place = |row: usize, column: usize| (row / 8 * 2 + column % 2, row % 8 * 4 + column / 2);
                let mut c = [[0; LANES]; 4];
                for (at, value) in old.iter().enumerate() {
                    let (register, lane) = place(at / 8, at % 8);
                    c[register][lane] = value.to_bits();
                }
                let mut d = [[0; LANES]; 4];
                mma.multiply(&a, &b, &c, &mut d);
                for row in 0..16 {
                    for column in 0..8 {
                        // Bytes begin at 0, with the lower halves of registers, and C is added at
                        // the end.
                        let bytes = width == 8;
                        let mut order: Vec<usize> = (0..k).collect();
                        if bytes {
                            order.sort_by_key(|at| at % 4 / 2);
                        }
                        let depth = if bytes { depth.min(k / 2) } else { depth };
                        let mut sum = if bytes { 0.0 } else { old[row * 8 + column] };
                        for first in (0..k).step_by(depth) {
                            let sum_of = number(sum.to_bits(), 8, 23);
                            let mut terms = vec![(sum_of.significand, sum_of.exponent, 23)];
                            for at in order[first..k.min(first + depth)].iter().copied() {
                                let x = number(rows[row * k + at], exponent as u32, fraction as u32);
                                let y = number(columns[column * k + at], exponent as u32, fraction as u32);
                                let fraction = 2 * fraction;
                                terms.push((x.significand * y.significand, x.exponent + y.exponent, fraction));
                            }
                            sum = cut_sum(&terms, bits as i32, kept as i32);
                        }
                        let sum = if bytes { old[row * 8 + column] + sum } else { sum };
                        let (register, lane) = place(row, column);
                        assert_eq!(d[register][lane], sum.to_bits(), "{factor:?} {depth} {bits}: ({row}, {column})");
                    }
                }
            }
        }
    }
}

#[test]
fn infinities_and_nan_go_through() {
    let mma = Mma::new([16, 8, 16], Operands::Floats(Factor::F16, Factor::F16), SumType::F32, false).unwrap();
    let one = [0x3c00_3c00; LANES];
    let multiply = |special: u32, other: u32, c: f32| {
        let mut a = [one; 4];
        a[0][0] = special; // row 0, columns 0 and 1
        let mut b = [one; 2];
        b[0][0] = other;
        let mut d = [[0; LANES]; 4];
        mma.multiply(&a, &b, &[[c.to_bits(); LANES]; 4], &mut d);
        // Row 8 is not touched by it.
        assert_eq!(d[2][1], (16.0 + c).to_bits());
        d[0][0]
    };
    let infinity = f32::INFINITY.to_bits();
    assert_eq!(multiply(0x3c00_7c00, 0x3c00_3c00, 1.0), infinity);
    assert_eq!(multiply(0x3c00_fc00, 0x3c00_3c00, 1.0), infinity | 1 << 31);
    assert_eq!(multiply(0x7c00_fc00, 0x3c00_3c00, 1.0), 0x7fff_ffff);
    assert_eq!(multiply(0x3c00_7c00, 0x3c00_0000, 1.0), 0x7fff_ffff);
    assert_eq!(multiply(0x3c00_7e01, 0x3c00_3c00, 1.0), 0x7fff_ffff);
    // What f32 cannot hold, and what it holds as a subnormal number.
    let bf16 = Mma::new([16, 8, 16], Operands::Floats(Factor::Bf16, Factor::Bf16), SumType::F32, false).unwrap();
    let product = |a: f32, b: f32| {
        let [a, b] = [a, b].map(|value| value.to_bits() >> 16);
        let mut d = [[0; LANES]; 4];
        let registers = |bits: u32| {
            let mut register = [0; LANES];
            register[0] = bits;
            register
        };
        let zero = [0; LANES];
        bf16.multiply(&[registers(a), zero, zero, zero], &[registers(b), zero], &[zero; 4], &mut d);
        f32::from_bits(d[0][0])
    };
    assert_eq!(product(2_f32.powi(100), -2_f32.powi(100)), f32::NEG_INFINITY);
    assert_eq!(product(2_f32.powi(-80), 3.0 * 2_f32.powi(-68)), 3.0 * 2_f32.powi(-148));
    assert_eq!(product(2_f32.powi(-80), -2_f32.powi(-80)).abs(), 0.0);
}

#[test]
fn a_product_with_zero_has_no_exponent() {
    let halves = Operands::Floats(Factor::F16, Factor::F16);
    let mma = Mma::new([16, 8, 16], halves, SumType::F32, false).expect("an instruction");
    // All are 2^-14, but for k = 0: there A is 0 and B the greatest number. With an exponent of its
    // own, this product would cut the others.
    let mut a = [[0x0400_0400; LANES]; 4];
    let mut b = [[0x0400_0400; LANES]; 2];
    for lane in (0..LANES).step_by(4) {
        (a[0][lane], a[1][lane], b[0][lane]) = (0x0400_0000, 0x0400_0000, 0x0400_7bff);
    }
    let mut d = [[0; LANES]; 4];
    mma.multiply(&a, &b, &[[0; LANES]; 4], &mut d);
    assert_eq!(d, [[(15.0 * 2_f32.powi(-28)).to_bits(); LANES]; 4]);
}
