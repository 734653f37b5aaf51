//! Operations, each compared with an oracle that goes another way: integers of 128 bits, searches
//! among all numbers of a format, and plain loops over whole matrices.

use super::assembler::{Assembler, is_right};
use crate::element::Element;
use crate::interpret::lanes::Lanes;
use crate::interpret::schedule::Random;
use crate::interpret::{Interpreter, Run, Schedule, arithmetic, convert};
use crate::program::Program;
use crate::program::memory::Role;
use crate::program::operation::{
    AtomicOperation, Binary, Comparison, Format, Matrix, Number, Operation, Rounding, Shuffle, Unary,
};
use crate::program::register::Width;

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
pub(super) fn integers_are_those_of_128_bits() {
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
            // Whole products have up to 128 bits without a sign: by halves.
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

/// All magnitudes of a format, by their bits, up to the greatest number.
fn magnitudes(exponent: u32, mantissa: u32, greatest: u64) -> Vec<f64> {
    let bias = (1 << (exponent - 1)) - 1;
    let number = |bits: u64| {
        let (field, fraction) = ((bits >> mantissa) as i32, (bits & ((1 << mantissa) - 1)) as f64);
        let unit = f64::from(1_u32 << mantissa);
        if field == 0 {
            fraction / unit * 2_f64.powi(1 - bias)
        } else {
            (1.0 + fraction / unit) * 2_f64.powi(field - bias)
        }
    };
    (0..=greatest).map(number).collect()
}

/// The bits of the nearest number of a format; beyond the greatest, those of what follows it.
fn nearest(magnitudes: &[f64], value: f64, saturates: bool) -> u64 {
    let size = value.abs();
    let above = magnitudes.partition_point(|number| *number < size);
    if above == 0 {
        return 0;
    }
    let last = magnitudes.len() - 1;
    if above > last {
        // What would follow the greatest number.
        let step = magnitudes[last] - magnitudes[last - 1];
        let beyond = size - magnitudes[last] >= step / 2.0;
        return last as u64 + u64::from(beyond && !saturates);
    }
    let (down, up) = (size - magnitudes[above - 1], magnitudes[above] - size);
    let even = if above % 2 == 0 { above } else { above - 1 };
    (if down < up {
        above - 1
    } else if up < down {
        above
    } else {
        even
    }) as u64
}

fn formats() -> [(Number, Vec<f64>); 2] {
    [(Number::F16, magnitudes(5, 10, 0x7bff)), (Number::Bf16, magnitudes(8, 7, 0x7f7f))]
}

/// The number with some bits of 16.
fn number_of(magnitudes: &[f64], bits: u64) -> f64 {
    let size = magnitudes.get((bits & 0x7fff) as usize).copied();
    let size = size.unwrap_or(if bits & 0x7fff == magnitudes.len() as u64 { f64::INFINITY } else { f64::NAN });
    if bits & 0x8000 == 0 { size } else { -size }
}

#[test]
pub(super) fn narrowed_numbers_are_the_nearest() {
    let mut random = Random::new(2);
    let narrow = [
        (Format::E4M3, magnitudes(4, 3, 0x7e), 8, true),
        (Format::E5M2, magnitudes(5, 2, 0x7b), 8, true),
        (Format::Number(Number::F16), magnitudes(5, 10, 0x7bff), 16, false),
        (Format::Number(Number::Bf16), magnitudes(8, 7, 0x7f7f), 16, false),
    ];
    for (format, table, width, saturates) in narrow {
        let mut values: Vec<f32> =
            vec![0.0, -0.0, f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, 65519.9, 65520.0];
        // Every number of the format, halfway to the next, and beside that.
        for pair in table.windows(2) {
            let half = (pair[0] / 2.0 + pair[1] / 2.0) as f32;
            values.extend([pair[0] as f32, half, half.next_up(), half.next_down(), -half]);
        }
        values.extend((0..20_000).map(|_| f32::from_bits(random.bits() as u32)).filter(|value| !value.is_nan()));
        for chunk in values.chunks(32) {
            let a: Lanes = std::array::from_fn(|lane| u64::from(chunk.get(lane).unwrap_or(&0.0).to_bits()));
            let b: Lanes = std::array::from_fn(|lane| a[31 - lane]);
            let mut out = [0; 32];
            convert::convert_pair(format, &a, &b, &mut out);
            let bits = |value: u64| {
                let value = f64::from(f32::from_bits(value as u32));
                nearest(&table, value, saturates) | u64::from(value.is_sign_negative()) << (width - 1)
            };
            for lane in 0..32 {
                assert_eq!(
                    out[lane],
                    bits(a[lane]) | bits(b[lane]) << width,
                    "{format:?} {}",
                    f32::from_bits(a[lane] as u32)
                );
            }
            if let Format::Number(_) = format {
                convert::convert(Format::Number(Number::F32), format, Rounding::Nearest, &a, &mut out);
                for lane in 0..32 {
                    assert_eq!(out[lane], bits(a[lane]));
                }
            }
        }
        let mut out = [0; 32];
        convert::convert_pair(format, &[0x7fc0_0000; 32], &[0; 32], &mut out);
        assert_eq!(out[0], (1 << (width - 1)) - 1, "NaN");
    }
}

#[test]
pub(super) fn directed_conversions_are_on_their_side() {
    let mut random = Random::new(3);
    for (number, table) in formats() {
        for _ in 0..300 {
            let a: Lanes = std::array::from_fn(|_| {
                let value = f64::from_bits(random.bits() >> 12 | 0x3ff0_0000_0000_0000) - 1.5;
                (value * 2_f64.powi((random.bits() % 30) as i32 - 20)).to_bits()
            });
            for rounding in [Rounding::Zero, Rounding::Down, Rounding::Up, Rounding::Nearest] {
                let mut out = [0; 32];
                convert::convert(Format::Number(Number::F64), Format::Number(number), rounding, &a, &mut out);
                for lane in 0..32 {
                    let (exact, found) = (f64::from_bits(a[lane]), number_of(&table, out[lane]));
                    let next = |step: i64| {
                        let bits = (out[lane] & 0x7fff) as i64 + step;
                        number_of(&table, bits.max(0) as u64 | out[lane] & 0x8000)
                    };
                    match rounding {
                        Rounding::Zero => assert!(found.abs() <= exact.abs() && next(1).abs() > exact.abs()),
                        Rounding::Down => {
                            assert!(
                                found <= exact
                                    && (if exact > 0.0 { next(1) > exact } else { found == exact || next(-1) > exact })
                            );
                        }
                        Rounding::Up => {
                            assert!(
                                found >= exact
                                    && (if exact < 0.0 { next(1) < exact } else { found == exact || next(-1) < exact })
                            );
                        }
                        Rounding::Nearest => {
                            let sign = u64::from(exact < 0.0) << 15;
                            assert_eq!(out[lane], nearest(&table, exact, false) | sign);
                        }
                    }
                }
            }
        }
    }
}

#[test]
pub(super) fn narrow_arithmetic_is_rounded_once() {
    let mut random = Random::new(4);
    for (number, table) in formats() {
        let paired = if number == Number::F16 { Number::F16x2 } else { Number::Bf16x2 };
        for _ in 0..2000 {
            // Exponents near each other, so that f64 has every sum and product exactly.
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
pub(super) fn a_fused_sum_is_not_rounded_twice() {
    // 1 + 2^-10 is the number after 1; half of that away, the product decides by a bit far below.
    let [one, tiny] = [0x3c00_u64, 0x0001];
    let half = 0x1000_u64;
    assert_eq!(super::super::rounding::from_f16(half), 2_f32.powi(-11));
    for (sign, expected) in [(0_u64, 0x3c01), (0x8000, 0x3c00)] {
        // (2^-11 + 2^-21) * 1 + 1, and less.
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
pub(super) fn comparisons_with_nan_are_false_but_for_inequality() {
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
pub(super) fn functions_are_near_the_real_ones() {
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
        // Inverse functions that the library does not use here.
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

#[test]
pub(super) fn integers_and_floats_convert_as_documented() {
    let convert_one = |from: Format, to: Format, rounding: Rounding, value: u64| {
        let mut out = [0; 32];
        convert::convert(from, to, rounding, &[value; 32], &mut out);
        out[0]
    };
    let (f32_, i32_, u32_) = (Format::Number(Number::F32), Format::Number(Number::I32), Format::Number(Number::U32));
    let mut random = Random::new(6);
    for _ in 0..20_000 {
        let value = f32::from_bits(random.bits() as u32);
        let bits = u64::from(value.to_bits());
        assert_eq!(convert_one(f32_, i32_, Rounding::Zero, bits), u64::from(value as i32 as u32), "{value}");
        assert_eq!(convert_one(f32_, u32_, Rounding::Zero, bits), u64::from(value as u32), "{value}");
        // Where 64 bits are on one side, NaN is the highest bit alone.
        let long = if value.is_nan() { 1 << 63 } else { value as i64 as u64 };
        assert_eq!(convert_one(f32_, Format::Number(Number::I64), Rounding::Zero, bits), long);
        let word = random.bits();
        let double = f64::from_bits(word);
        let short = if double.is_nan() { 1 << 31 } else { u64::from(double as i32 as u32) };
        assert_eq!(convert_one(Format::Number(Number::F64), i32_, Rounding::Zero, word), short, "{double}");
        let as_float = |to: f32| u64::from(to.to_bits());
        assert_eq!(convert_one(i32_, f32_, Rounding::Nearest, word & 0xffff_ffff), as_float(word as i32 as f32));
        assert_eq!(convert_one(Format::Number(Number::U64), f32_, Rounding::Nearest, word), as_float(word as f32));
        assert_eq!(
            convert_one(Format::Number(Number::I64), f32_, Rounding::Nearest, word),
            as_float(word as i64 as f32)
        );
        assert_eq!(
            convert_one(Format::Number(Number::F64), f32_, Rounding::Nearest, word),
            if f64::from_bits(word).is_nan() { 0x7fff_ffff } else { as_float(f64::from_bits(word) as f32) }
        );
        assert_eq!(convert_one(Format::I8, i32_, Rounding::Nearest, word & 0xff), u64::from(word as i8 as i32 as u32));
        assert_eq!(convert_one(i32_, Format::U8, Rounding::Nearest, word & 0xffff_ffff), word & 0xff);
    }
    let nan = f64::NAN.to_bits();
    assert_eq!(convert_one(Format::Number(Number::F64), i32_, Rounding::Zero, nan), 1 << 31);
    assert_eq!(convert_one(Format::Number(Number::F64), Format::U8, Rounding::Zero, nan), 1 << 7);
    assert_eq!(convert_one(Format::Number(Number::F64), Format::Number(Number::U64), Rounding::Zero, nan), 1 << 63);
    for (value, rounding, expected) in [
        (2.5_f32, Rounding::Nearest, 2_i32),
        (3.5, Rounding::Nearest, 4),
        (-2.5, Rounding::Nearest, -2),
        (-2.1, Rounding::Down, -3),
        (-2.9, Rounding::Up, -2),
        (2.1, Rounding::Up, 3),
    ] {
        let found = convert_one(f32_, i32_, rounding, value.to_bits().into());
        assert_eq!(found, u64::from(expected as u32), "{value} {rounding:?}");
    }
}

#[test]
pub(super) fn pairs_of_eight_bits_widen_exactly() {
    for (format, exponent, mantissa, greatest) in [(Format::E4M3, 4, 3, 0x7e), (Format::E5M2, 5, 2, 0x7b)] {
        let (table, wide) = (magnitudes(exponent, mantissa, greatest), magnitudes(5, 10, 0x7bff));
        for byte in 0..256_u64 {
            let mut out = [0; 32];
            convert::widen_pair(format, &[byte | (byte ^ 0x80) << 8; 32], &mut out);
            for (found, byte) in [(out[0] & 0xffff, byte), (out[0] >> 16, byte ^ 0x80)] {
                let found = number_of(&wide, found);
                match table.get((byte & 0x7f) as usize) {
                    Some(size) => assert_eq!(found, if byte < 128 { *size } else { -size }),
                    None if format == Format::E5M2 && byte & 0x7f == 0x7c => assert!(found.is_infinite()),
                    None => assert!(found.is_nan()),
                }
            }
        }
    }
}

/// Runs a program whose threads have four words each, and store as many.
fn words(
    inputs: &[u32; 128],
    write: impl FnOnce(&mut Assembler, &[crate::program::register::Register]) -> Vec<crate::program::register::Register>,
) -> Vec<u32> {
    let mut k = Assembler::new(1, 32);
    let source = k.global(Role::Input, Element::U32, 128);
    let target = k.global(Role::Output, Element::U32, 128);
    let thread = k.thread();
    let address = k.scaled(thread, 16, 0);
    let values = k.load_vector(source, address, 32, 4);
    let results = write(&mut k, &values);
    k.store_vector(target, address, 32, &results);
    let program: Program = k.program();
    let mut interpreter = Interpreter::new(&program, &[]).unwrap();
    interpreter.tensor(0, inputs).unwrap();
    let run: Run = interpreter.run(Schedule::ALL[0]).unwrap_or_else(|findings| panic!("{}", findings[0]));
    run.tensor(1).unwrap()
}

#[test]
pub(super) fn bits_are_moved_as_documented() {
    let mut random = Random::new(7);
    let inputs: [u32; 128] = std::array::from_fn(|_| random.bits() as u32);
    let word = |lane: usize, at: usize| inputs[4 * lane + at];
    let one = |operation: Operation, count: usize| {
        words(&inputs, |k, values| vec![k.one(operation, &values[..count], Width::Bits32); 4])
    };
    let up = one(Operation::Shuffle(Shuffle::Up(3)), 1);
    let down = one(Operation::Shuffle(Shuffle::Down(3)), 1);
    let flip = one(Operation::Shuffle(Shuffle::Butterfly(5)), 1);
    let index = one(Operation::Shuffle(Shuffle::Index), 2);
    let left = one(Operation::FunnelShiftLeft, 3);
    let right = one(Operation::FunnelShiftRight, 3);
    let permuted = one(Operation::Permute(0x6250), 2);
    for lane in 0..32 {
        assert_eq!(up[4 * lane], word(if lane < 3 { lane } else { lane - 3 }, 0));
        assert_eq!(down[4 * lane], word(if lane > 28 { lane } else { lane + 3 }, 0));
        assert_eq!(flip[4 * lane], word(lane ^ 5, 0));
        assert_eq!(index[4 * lane], word(word(lane, 1) as usize % 32, 0));
        let (pair, by) = (u128::from(word(lane, 1)) << 32 | u128::from(word(lane, 0)), word(lane, 2) % 32);
        assert_eq!(left[4 * lane], (pair << by >> 32) as u32);
        assert_eq!(right[4 * lane], (pair >> by) as u32);
        let bytes = [word(lane, 0).to_le_bytes(), word(lane, 1).to_le_bytes()].concat();
        assert_eq!(permuted[4 * lane], u32::from_le_bytes([bytes[0], bytes[5], bytes[2], bytes[6]]));
    }
    let halves = words(&inputs, |k, values| {
        let parts = k.emit(Operation::Unpack, &values[..1], &[Width::Bits16; 2]);
        let turned = k.one(Operation::Pack, &[parts[1], parts[0]], Width::Bits32);
        let wide = k.one(Operation::Pack, &values[1..3], Width::Bits64);
        let parts = k.emit(Operation::Unpack, &[wide], &[Width::Bits32; 2]);
        vec![turned, parts[0], parts[1], turned]
    });
    let ballot = words(&inputs, |k, values| {
        let negative = k.compare(Comparison::Less, values[0], 0);
        let value = k.one(Operation::Ballot, &[negative], Width::Bits32);
        let chosen = k.one(Operation::Select, &[negative, values[1], values[2]], Width::Bits32);
        vec![value, chosen, value, value]
    });
    let mask: u32 = (0..32).map(|lane| (word(lane, 0) >> 31) << lane).sum();
    for lane in 0..32 {
        assert_eq!(halves[4 * lane..4 * lane + 3], [word(lane, 0).rotate_left(16), word(lane, 1), word(lane, 2)]);
        assert_eq!(ballot[4 * lane], mask);
        assert_eq!(ballot[4 * lane + 1], word(lane, if word(lane, 0) >> 31 == 1 { 1 } else { 2 }));
    }
}

#[test]
pub(super) fn matrices_are_loaded_and_stored_by_rows() {
    // Element (r,c) of matrix q is 64 q + 8 r + c; each lane's two of each, as it is and turned.
    for (transposed, store_transposed) in [(false, false), (true, true), (false, true), (true, false)] {
        let mut k = Assembler::new(1, 32);
        let source = k.global(Role::Input, Element::U16, 256);
        let held = k.global(Role::Output, Element::U32, 128);
        let target = k.global(Role::Output, Element::U16, 256);
        let (first, second) = (k.shared(Element::U16, 256), k.shared(Element::U16, 256));
        let thread = k.thread();
        let row = k.scaled(thread, 16, 0);
        let values = k.load_vector(source, row, 32, 4);
        k.store_vector(first, row, 32, &values);
        k.plain(Operation::WarpBarrier);
        let access = k.access(first, 32, 4);
        let parts = k.emit(Operation::LoadMatrix { access, transposed }, &[row], &[Width::Bits32; 4]);
        k.store_vector(held, row, 32, &parts);
        let access = k.access(second, 32, 4);
        let inputs = [&[row], &parts[..]].concat();
        k.emit(Operation::StoreMatrix { access, transposed: store_transposed }, &inputs, &[]);
        k.plain(Operation::WarpBarrier);
        let values = k.load_vector(second, row, 32, 4);
        k.store_vector(target, row, 32, &values);
        let program = k.program();
        is_right(&program);
        let mut interpreter = Interpreter::new(&program, &[]).unwrap();
        let elements: Vec<u16> = (0..256).collect();
        interpreter.tensor(0, &elements).unwrap();
        let run = interpreter.run(Schedule::ALL[0]).unwrap();
        let held = run.tensor::<u32>(1).unwrap();
        for lane in 0..32 {
            for matrix in 0..4 {
                for half in 0..2 {
                    let (row, column) = (lane / 4, 2 * (lane % 4) + half);
                    let (row, column) = if transposed { (column, row) } else { (row, column) };
                    let found = held[4 * lane + matrix] >> (16 * half) & 0xffff;
                    assert_eq!(found as usize, 64 * matrix + 8 * row + column);
                }
            }
        }
        for (at, value) in run.tensor::<u16>(2).unwrap().into_iter().enumerate() {
            let (matrix, row, column) = (at / 64, at / 8 % 8, at % 8);
            let (row, column) = if transposed == store_transposed { (row, column) } else { (column, row) };
            assert_eq!(value as usize, 64 * matrix + 8 * row + column);
        }
    }
}

/// Where the published tables put the elements of A, B and C: lane and place, `(row, column)` of
/// each.
type Fragment = fn(usize, usize) -> (usize, usize);

#[test]
pub(super) fn products_are_those_of_whole_matrices() {
    // By the tables of the PTX manual, element by element.
    let bytes: [Fragment; 2] = [
        |lane, i| (lane / 4 + if i / 4 % 2 == 1 { 8 } else { 0 }, lane % 4 * 4 + i % 4 + if i >= 8 { 16 } else { 0 }),
        |lane, i| (lane % 4 * 4 + i % 4 + if i >= 4 { 16 } else { 0 }, lane / 4),
    ];
    let halves: [Fragment; 2] = [
        |lane, i| (lane / 4 + if i / 2 % 2 == 1 { 8 } else { 0 }, lane % 4 * 2 + i % 2 + if i >= 4 { 8 } else { 0 }),
        |lane, i| (lane % 4 * 2 + i % 2 + if i >= 2 { 8 } else { 0 }, lane / 4),
    ];
    let words: [Fragment; 2] =
        [|lane, i| (lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2)), |lane, i| (lane % 4 + 4 * i, lane / 4)];
    let doubles: [Fragment; 2] = [|lane, _| (lane / 4, lane % 4), |lane, _| (lane % 4, lane / 4)];
    let sums: Fragment = |lane, i| (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2);
    let mut random = Random::new(8);
    for (matrix, bits, sum_bits, [of_a, of_b]) in [
        (Matrix::F16F32, 16, 32, halves),
        (Matrix::Bf16F32, 16, 32, halves),
        (Matrix::F16F16, 16, 16, halves),
        (Matrix::Tf32F32, 32, 32, words),
        (Matrix::F64, 64, 64, doubles),
        (Matrix::I8I32, 8, 32, bytes),
        (Matrix::U8I32, 8, 32, bytes),
        (Matrix::E4M3F32, 8, 32, bytes),
        (Matrix::E5M2F32, 8, 32, bytes),
    ] {
        let [m, n, depth] = matrix.shape().map(|extent| extent as usize);
        // Small integers, whose sums are exact in every type.
        let mut any = |count: usize| -> Vec<i64> { (0..count).map(|_| random.below(4) as i64 - 1).collect() };
        let signed = matrix != Matrix::U8I32;
        let (mut a, mut b, c) = (any(m * depth), any(depth * n), any(m * n));
        if !signed {
            a.iter_mut().chain(&mut b).for_each(|value| *value += 1);
        }
        let encode = |value: i64, bits: u32, sum: bool| -> u64 {
            let real = value as f64;
            match (matrix, sum) {
                (Matrix::F64, _) => real.to_bits(),
                (Matrix::I8I32 | Matrix::U8I32, _) => value as u64 & (u64::MAX >> (64 - bits)),
                (Matrix::F16F16, _) | (Matrix::F16F32, false) => u64::from(half::f16::from_f64(real).to_bits()),
                (Matrix::Bf16F32, false) => u64::from(half::bf16::from_f64(real).to_bits()),
                // A sign, the number 1 or 2, and 0.
                (Matrix::E4M3F32 | Matrix::E5M2F32, false) => {
                    let one = if matrix == Matrix::E4M3F32 { 0x38 } else { 0x3c };
                    [0x80 | one, 0, one, 0x40][(value + 1) as usize]
                }
                _ => u64::from((real as f32).to_bits()),
            }
        };
        let registers = matrix.registers();
        let width = if matrix == Matrix::F64 { 64 } else { 32 };
        let fill = |values: &[i64], columns: usize, of: Fragment, count: usize, bits: u32, sum: bool| -> Vec<Lanes> {
            let packed = (width / bits) as usize;
            let mut lanes = vec![[0; 32]; count];
            for (lane, i) in (0..32).flat_map(|lane| (0..count * packed).map(move |i| (lane, i))) {
                let (row, column) = of(lane, i);
                let bits_of = encode(values[row * columns + column], bits, sum);
                lanes[i / packed][lane] |= bits_of << (bits as usize * (i % packed));
            }
            lanes
        };
        let (fa, fb) = (fill(&a, depth, of_a, registers[0], bits, false), fill(&b, n, of_b, registers[1], bits, false));
        let fc = fill(&c, n, sums, registers[2], sum_bits, true);
        let mut d = vec![[0; 32]; registers[2]];
        let (ra, rb, rc): (Vec<_>, Vec<_>, Vec<_>) = (fa.iter().collect(), fb.iter().collect(), fc.iter().collect());
        crate::interpret::matrix::multiply(matrix, &ra, &rb, &rc, &mut d);
        let product: Vec<i64> = (0..m * n)
            .map(|at| c[at] + (0..depth).map(|k| a[at / n * depth + k] * b[k * n + at % n]).sum::<i64>())
            .collect();
        assert_eq!(d, fill(&product, n, sums, registers[2], sum_bits, true), "{matrix:?}");
    }
}

#[test]
pub(super) fn tf32_leaves_thirteen_bits_out() {
    let value = 1.0 + 2_f32.powi(-10) + 2_f32.powi(-11) + 2_f32.powi(-23);
    let a = [[u64::from(value.to_bits()); 32]; 4];
    let b = [[u64::from(1_f32.to_bits()); 32]; 2];
    let c = [[0; 32]; 4];
    let mut d = [[0; 32]; 4];
    let (ra, rb, rc): (Vec<_>, Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect(), c.iter().collect());
    crate::interpret::matrix::multiply(Matrix::Tf32F32, &ra, &rb, &rc, &mut d);
    assert_eq!(f32::from_bits(d[0][0] as u32), 8.0 * (1.0 + 2_f32.powi(-10)));
}

#[test]
pub(super) fn atomic_operations_do_what_they_say() {
    for (operation, number, expected) in [
        (AtomicOperation::Add, Number::U32, 5 + 496),
        (AtomicOperation::Minimum, Number::I32, 0),
        (AtomicOperation::Maximum, Number::U32, 31),
        (AtomicOperation::And, Number::U32, 0),
        (AtomicOperation::Or, Number::U32, 31),
        (AtomicOperation::Xor, Number::U32, 5),
    ] {
        let mut k = Assembler::new(1, 32);
        let memory = k.global(Role::Both, Element::U32, 1);
        let zero = k.wide_constant(0);
        let thread = k.thread();
        let access = k.access(memory, 32, 1);
        k.one(Operation::Atomic(operation, number, access), &[zero, thread], Width::Bits32);
        let program = k.program();
        let mut interpreter = Interpreter::new(&program, &[]).unwrap();
        interpreter.tensor(0, &[5_u32]).unwrap();
        assert_eq!(interpreter.check().unwrap().run.tensor::<u32>(0).unwrap(), [expected], "{operation:?}");
    }
    // One lane alone finds what it expects; each is told what was there.
    let mut k = Assembler::new(1, 32);
    let memory = k.global(Role::Both, Element::U32, 1);
    let told = k.global(Role::Output, Element::U32, 32);
    let zero = k.wide_constant(0);
    let thread = k.thread();
    let next = k.scaled(thread, 1, 1);
    let access = k.access(memory, 32, 1);
    let operation = Operation::Atomic(AtomicOperation::CompareExchange, Number::U32, access);
    let before = k.one(operation, &[zero, thread, next], Width::Bits32);
    let address = k.scaled(thread, 4, 0);
    k.store(told, address, before);
    let program = k.program();
    let mut interpreter = Interpreter::new(&program, &[]).unwrap();
    interpreter.tensor(0, &[0_u32]).unwrap();
    let run = interpreter.run(Schedule::ALL[0]).unwrap();
    assert_eq!(run.tensor::<u32>(0).unwrap(), [32]);
    assert_eq!(run.tensor::<u32>(1).unwrap(), (0..32).collect::<Vec<u32>>());
}
