//! Arithmetic, compared with independent oracles: 128-bit integers, and sums and products of f64
//! that are rounded once, by a search over all numbers of the format.

use super::formats::{formats, nearest, number_of};
use crate::interpret::arithmetic;
use crate::interpret::lanes::Lanes;
use crate::interpret::schedule::Random;
use crate::program::operation::{Binary, Comparison, Number, Unary};

fn any_lanes(random: &mut Random, bits: u32) -> Lanes {
    let small = [0, 1, 2, u64::MAX, 1 << (bits - 1), (1 << (bits - 1)) - 1, 7, u64::MAX - 6];
    std::array::from_fn(|lane| {
        let value = if lane < 12 { small[(random.bits() % 8) as usize] } else { random.bits() };
        value & (u64::MAX >> (64 - bits))
    })
}

const INTEGERS: [(Number, u32, bool); 6] = [
    (Number::I16, 16, true),
    (Number::U16, 16, false),
    (Number::I32, 32, true),
    (Number::U32, 32, false),
    (Number::I64, 64, true),
    (Number::U64, 64, false),
];

/// The value of an integer.
fn value(bits: u64, width: u32, sign: bool) -> i128 {
    let value = i128::from(bits);
    if sign && value >= 1 << (width - 1) { value - (1 << width) } else { value }
}

fn cut(value: i128, width: u32) -> u64 {
    value.rem_euclid(1 << width) as u64
}

#[test]
fn integers_are_those_of_128_bits() {
    let mut random = Random::new(1);
    for (number, width, sign) in INTEGERS {
        for _ in 0..200 {
            let (a, b, c) =
                (any_lanes(&mut random, width), any_lanes(&mut random, width), any_lanes(&mut random, width));
            let shifts: Lanes = std::array::from_fn(|lane| b[lane] % 70);
            let mut out = [0; 32];
            let mut check = |operation: Binary, right: &Lanes, expected: &dyn Fn(i128, i128) -> u64| {
                arithmetic::binary(operation, number, &a, right, &mut out);
                for lane in 0..32 {
                    let (x, y) = (value(a[lane], width, sign), value(right[lane], width, sign));
                    assert_eq!(out[lane], expected(x, y), "{operation:?} {number:?} {x} {y}");
                }
            };
            check(Binary::Add, &b, &|x, y| cut(x + y, width));
            check(Binary::Subtract, &b, &|x, y| cut(x - y, width));
            check(Binary::Minimum, &b, &|x, y| cut(x.min(y), width));
            check(Binary::Maximum, &b, &|x, y| cut(x.max(y), width));
            check(Binary::Divide, &b, &|x, y| if y == 0 { 0 } else { cut(x / y, width) });
            check(Binary::Remainder, &b, &|x, y| if y == 0 { cut(x, width) } else { cut(x % y, width) });
            check(Binary::And, &b, &|x, y| cut(x & y, width));
            check(Binary::Or, &b, &|x, y| cut(x | y, width));
            check(Binary::Xor, &b, &|x, y| cut(x ^ y, width));
            // Full unsigned products have up to 128 bits: they are computed in halves.
            let low = |x: i128, y: i128| (x as u128).wrapping_mul(y as u128);
            check(Binary::Multiply, &b, &|x, y| cut((low(x, y) & u128::from(u64::MAX)) as i128, width));
            check(Binary::MultiplyHigh, &b, &|x, y| (low(x, y) >> width) as u64 & (u64::MAX >> (64 - width)));
            check(Binary::ShiftLeft, &shifts, &|x, y| {
                let by = y.rem_euclid(1 << 32) as u32;
                if by >= width { 0 } else { cut((low(x, 1 << by) & u128::from(u64::MAX)) as i128, width) }
            });
            check(Binary::ShiftRight, &shifts, &|x, y| cut(x.div_euclid(1 << y.clamp(0, 100)), width));
            if width == 32 {
                check(Binary::MultiplyWide, &b, &|x, y| (x * y).rem_euclid(1 << 64) as u64);
                arithmetic::multiply_add_wide(number, &a, &b, &c, &mut out);
                for lane in 0..32 {
                    let product = value(a[lane], 32, sign) * value(b[lane], 32, sign);
                    assert_eq!(out[lane], (product + i128::from(c[lane])).rem_euclid(1 << 64) as u64);
                }
            }
            arithmetic::multiply_add(number, &a, &b, &c, &mut out);
            for lane in 0..32 {
                let product = (u128::from(a[lane]).wrapping_mul(u128::from(b[lane])) & u128::from(u64::MAX)) as i128;
                assert_eq!(out[lane], cut(product + i128::from(c[lane]), width));
            }
            for comparison in [Comparison::Equal, Comparison::NotEqual, Comparison::Less, Comparison::GreaterEqual] {
                arithmetic::compare(comparison, number, &a, &b, &mut out);
                for lane in 0..32 {
                    let (x, y) = (value(a[lane], width, sign), value(b[lane], width, sign));
                    let expected = match comparison {
                        Comparison::Equal => x == y,
                        Comparison::NotEqual => x != y,
                        Comparison::Less => x < y,
                        _ => x >= y,
                    };
                    assert_eq!(out[lane], u64::from(expected), "{comparison:?} {number:?} {x} {y}");
                }
            }
            let mask = u64::MAX >> (64 - width);
            let mut check = |operation: Unary, expected: &dyn Fn(u64) -> u64| {
                arithmetic::unary(operation, number, mask, &a, &mut out);
                for lane in 0..32 {
                    assert_eq!(out[lane], expected(a[lane]), "{operation:?} {number:?} {}", a[lane]);
                }
            };
            check(Unary::Negate, &|x| cut(-value(x, width, sign), width));
            check(Unary::Magnitude, &|x| cut(value(x, width, sign).abs(), width));
            check(Unary::Not, &|x| mask - x);
            check(Unary::CountOnes, &|x| (0..width).filter(|bit| x >> bit & 1 == 1).count() as u64);
            check(Unary::CountLeadingZeros, &|x| (0..width).rev().take_while(|bit| x >> bit & 1 == 0).count() as u64);
        }
    }
}

#[test]
fn narrow_arithmetic_is_rounded_once() {
    let mut random = Random::new(4);
    for (number, table) in formats() {
        let paired = if number == Number::F16 { Number::F16x2 } else { Number::Bf16x2 };
        for _ in 0..2000 {
            // The exponents are close to each other, so that every sum and product is exact in f64.
            let (low, high) = if number == Number::F16 { (0, 0x7bff) } else { (0x3a00, 0x4500) };
            let mut any =
                || -> Lanes { std::array::from_fn(|_| (low + random.below(high - low)) | (random.bits() & 1) << 15) };
            let (a, b, c) = (any(), any(), any());
            let mut out = [0; 32];
            let mut pairs = [0; 32];
            let doubled = |x: &Lanes| -> Lanes { x.map(|x| x | x << 16) };
            let mut check = |operation: Option<Binary>, exact: &dyn Fn(f64, f64, f64) -> f64| {
                match operation {
                    Some(operation) => {
                        arithmetic::binary(operation, number, &a, &b, &mut out);
                        arithmetic::binary(operation, paired, &doubled(&a), &doubled(&b), &mut pairs);
                    }
                    None => {
                        arithmetic::multiply_add(number, &a, &b, &c, &mut out);
                        arithmetic::multiply_add(paired, &doubled(&a), &doubled(&b), &doubled(&c), &mut pairs);
                    }
                }
                for lane in 0..32 {
                    let [x, y, z] = [a, b, c].map(|values| number_of(&table, values[lane]));
                    let exact = exact(x, y, z);
                    let sign = u64::from(exact.is_sign_negative()) << 15;
                    let expected = nearest(&table, exact, false) | sign;
                    assert_eq!(out[lane], expected, "{operation:?} {number:?} {x} {y} {z}");
                    assert_eq!(pairs[lane], expected | expected << 16);
                }
            };
            check(Some(Binary::Add), &|x, y, _| x + y);
            check(Some(Binary::Subtract), &|x, y, _| x - y);
            check(Some(Binary::Multiply), &|x, y, _| x * y);
            check(Some(Binary::Minimum), &|x, y, _| if x < y || (x == y && x.is_sign_negative()) { x } else { y });
            check(Some(Binary::Maximum), &|x, y, _| if x > y || (x == y && x.is_sign_positive()) { x } else { y });
            if number == Number::Bf16 {
                check(None, &|x, y, z| x * y + z);
            }
        }
    }
}

#[test]
fn a_fused_sum_is_not_rounded_twice() {
    // 1 + 2^-10 is the number after 1. At the midpoint between them, the product decides by a much
    // lower bit.
    let [one, tiny] = [0x3c00_u64, 0x0001];
    let half = 0x1000_u64;
    assert_eq!(super::super::rounding::from_f16(half), 2_f32.powi(-11));
    for (sign, expected) in [(0_u64, 0x3c01), (0x8000, 0x3c00)] {
        // (2^-11 + 2^-21) * 1 + 1, and a smaller number.
        let factor = if sign == 0 { half + 1 } else { half - 1 };
        let mut out = [0; 32];
        arithmetic::multiply_add(Number::F16, &[factor; 32], &[one; 32], &[one; 32], &mut out);
        assert_eq!(out[0], expected);
    }
    // A sum of 60 bits: f64 alone would round 2^15 + 2^4 + 2^-48 to a tie.
    let (big, tie) = (0x7800_u64, 0x4c00_u64);
    let mut out = [0; 32];
    arithmetic::multiply_add(Number::F16, &[tiny; 32], &[tiny; 32], &[big; 32], &mut out);
    assert_eq!(out[0], big);
    arithmetic::multiply_add(Number::F16, &[tie; 32], &[one; 32], &[big; 32], &mut out);
    assert_eq!(out[0], big);
    let sum = super::super::rounding::multiply_add_to_odd(2_f64.powi(-24), 2_f64.powi(-24), 32768.0 + 16.0);
    assert!(sum > 32784.0 && sum.to_bits() & 1 == 1);
    let sum = super::super::rounding::multiply_add_to_odd(-2_f64.powi(-24), 2_f64.powi(-24), 32768.0 + 16.0);
    assert!(sum < 32784.0 && sum.to_bits() & 1 == 1);
}

#[test]
fn comparisons_with_nan_are_false_but_for_inequality() {
    let nan = u64::from(f32::NAN.to_bits());
    let one = u64::from(1_f32.to_bits());
    for (a, b) in [(nan, one), (one, nan), (nan, nan)] {
        for (comparison, expected) in [
            (Comparison::Equal, 0),
            (Comparison::NotEqual, 1),
            (Comparison::Less, 0),
            (Comparison::LessEqual, 0),
            (Comparison::Greater, 0),
            (Comparison::GreaterEqual, 0),
        ] {
            let mut out = [7; 32];
            arithmetic::compare(comparison, Number::F32, &[a; 32], &[b; 32], &mut out);
            assert_eq!(out[0], expected, "{comparison:?}");
        }
    }
    let mut out = [0; 32];
    for (operation, expected) in [(Binary::Minimum, one), (Binary::Maximum, one)] {
        arithmetic::binary(operation, Number::F32, &[nan; 32], &[one; 32], &mut out);
        assert_eq!(out[0], expected);
        arithmetic::binary(operation, Number::F32, &[one; 32], &[nan; 32], &mut out);
        assert_eq!(out[0], expected);
    }
    for operation in [Binary::MinimumNan, Binary::MaximumNan] {
        arithmetic::binary(operation, Number::F32, &[nan; 32], &[one; 32], &mut out);
        assert!(f32::from_bits(out[0] as u32).is_nan());
    }
}

#[test]
fn functions_are_near_the_real_ones() {
    let mut random = Random::new(5);
    let single = |operation: Unary, x: f32| {
        let mut out = [0; 32];
        arithmetic::unary(operation, Number::F32, u64::from(u32::MAX), &[x.to_bits().into(); 32], &mut out);
        f64::from(f32::from_bits(out[0] as u32))
    };
    for _ in 0..2000 {
        let x = (random.below(1 << 20) as f32 + 1.0) / 65536.0;
        let wide = f64::from(x);
        let close =
            |found: f64, exact: f64, error: f64| assert!((found - exact).abs() <= error * exact.abs().max(1e-3), "{x}");
        // Inverse functions that the interpreter does not use here.
        let root = single(Unary::SquareRoot, x);
        close(root * root, wide, 2e-7);
        close(single(Unary::Reciprocal, x) * wide, 1.0, 1e-7);
        close(single(Unary::ReciprocalSquareRoot, x) * root, 1.0, 3e-7);
        close(single(Unary::Log2, single(Unary::Exp2, x) as f32), wide, 1e-5);
        close(single(Unary::Sine, x).powi(2) + single(Unary::Cosine, x).powi(2), 1.0, 3e-7);
        let e = (2.0 * wide).exp();
        close(single(Unary::HyperbolicTangent, x), (e - 1.0) / (e + 1.0), 1e-5);
    }
    assert_eq!(single(Unary::Exp2, -126.0), 2_f64.powi(-126));
    assert_eq!(single(Unary::Exp2, -127.0), 0.0);
    assert_eq!(single(Unary::Negate, 1.5), -1.5);
    assert_eq!(single(Unary::Magnitude, -1.5), 1.5);
}
