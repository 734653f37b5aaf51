//! Conversions, compared with searches among all numbers of a format and with those of Rust.

use super::formats::{formats, magnitudes, nearest, number_of};
use crate::interpret::convert;
use crate::interpret::lanes::Lanes;
use crate::interpret::schedule::Random;
use crate::program::operation::{Format, Number, Rounding};

#[test]
fn narrowed_numbers_are_the_nearest() {
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
        // Every number of the format, the midpoint to the next one, and the numbers next to the
        // midpoint.
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
fn directed_conversions_are_on_their_side() {
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
fn integers_and_floats_convert_as_documented() {
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
        // If one side has 64 bits, NaN becomes only the highest bit.
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
        // Bytes are packed without sign extension, because a sign must not reach into the next
        // byte.
        assert_eq!(convert_one(i32_, Format::I8, Rounding::Nearest, word & 0xffff_ffff), word & 0xff);
        let byte = (value as i8) as u8;
        assert_eq!(convert_one(f32_, Format::I8, Rounding::Zero, bits), u64::from(byte), "{value}");
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
fn pairs_of_eight_bits_widen_exactly() {
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
