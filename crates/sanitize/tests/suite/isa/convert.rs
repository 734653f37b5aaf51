//! Conversions against Rust's own, the crate `half`, and tables of all numbers of a format.

use tilewright_sanitize::isa::convert::{
    ConvertMode, NumberType, Quarter, convert, f16_of_quarters, pack_sat, pair_of_f32, quarters_of_f16,
    quarters_of_f32, tf32,
};
use tilewright_sanitize::isa::format::Rounding;
use tilewright_sanitize::isa::half::Half;

use super::random::Random;

const ROUNDINGS: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];
const INTEGERS: [NumberType; 8] = [
    NumberType::U8,
    NumberType::S8,
    NumberType::U16,
    NumberType::S16,
    NumberType::U32,
    NumberType::S32,
    NumberType::U64,
    NumberType::S64,
];

fn with(rounding: Rounding) -> ConvertMode {
    ConvertMode { rounding, ..ConvertMode::default() }
}

fn ends(of: NumberType) -> (i128, i128) {
    match of {
        NumberType::U8 => (0, u8::MAX.into()),
        NumberType::S8 => (i8::MIN.into(), i8::MAX.into()),
        NumberType::U16 => (0, u16::MAX.into()),
        NumberType::S16 => (i16::MIN.into(), i16::MAX.into()),
        NumberType::U32 => (0, u32::MAX.into()),
        NumberType::S32 => (i32::MIN.into(), i32::MAX.into()),
        NumberType::U64 => (0, u64::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

fn exact(bits: u64, of: NumberType) -> i128 {
    match of {
        NumberType::U8 => (bits as u8).into(),
        NumberType::S8 => (bits as i8).into(),
        NumberType::U16 => (bits as u16).into(),
        NumberType::S16 => (bits as i16).into(),
        NumberType::U32 => (bits as u32).into(),
        NumberType::S32 => (bits as i32).into(),
        NumberType::U64 => bits.into(),
        _ => (bits as i64).into(),
    }
}

#[test]
fn integers_are_cut_or_clamped() {
    let mut random = Random::new(30);
    for _ in 0..4_000 {
        let bits = random.integer(64);
        for from in INTEGERS {
            let value = exact(bits, from);
            for to in INTEGERS {
                assert_eq!(convert(from, to, ConvertMode::default(), bits), exact(value as u64, to) as u64);
                let (least, greatest) = ends(to);
                let saturate = ConvertMode { saturate: true, ..ConvertMode::default() };
                assert_eq!(convert(from, to, saturate, bits), value.clamp(least, greatest) as u64, "{from:?} {to:?}");
            }
            let nearest = ConvertMode::default();
            assert_eq!(convert(from, NumberType::F64, nearest, bits), (value as f64).to_bits());
            assert_eq!(convert(from, NumberType::F32, nearest, bits), u64::from((value as f32).to_bits()));
            for rounding in ROUNDINGS {
                let found = f32::from_bits(convert(from, NumberType::F32, with(rounding), bits) as u32) as i128;
                assert!(match rounding {
                    Rounding::Down => found <= value,
                    Rounding::Up => found >= value,
                    Rounding::Zero => found.abs() <= value.abs(),
                    _ => true,
                });
                let next = f32::from_bits(convert(from, NumberType::F32, with(rounding), bits) as u32);
                let gap = (next.next_up() as i128 - next.next_down() as i128).max(2);
                assert!((found - value).abs() < gap, "{value} {found}");
            }
        }
    }
}

#[test]
fn floats_become_integers_by_their_rounding_and_are_clamped() {
    let mut random = Random::new(31);
    for _ in 0..6_000 {
        let single = random.f32();
        let double = if random.below(2) == 0 {
            random.f64()
        } else {
            ((random.bits() as i64 >> random.below(60)) as f64 / 4.0).to_bits()
        };
        let sixteen = random.float(5, 10);
        let values = [
            (NumberType::F32, u64::from(single), f64::from(f32::from_bits(single))),
            (NumberType::F64, double, f64::from_bits(double)),
            (NumberType::F16, sixteen, half::f16::from_bits(sixteen as u16).to_f64()),
        ];
        for (from, bits, value) in values {
            for to in INTEGERS {
                let (least, greatest) = ends(to);
                for rounding in ROUNDINGS {
                    let whole = match rounding {
                        Rounding::Nearest => value.round_ties_even(),
                        Rounding::Zero => value.trunc(),
                        Rounding::Down => value.floor(),
                        _ => value.ceil(),
                    };
                    let wide = from == NumberType::F64 || matches!(to, NumberType::U64 | NumberType::S64);
                    let wanted = match value.is_nan() {
                        true if wide => exact(1 << (to.bits() - 1), to) as u64,
                        true => 0,
                        false => (whole as i128).clamp(least, greatest) as u64,
                    };
                    assert_eq!(convert(from, to, with(rounding), bits), wanted, "{value:e} {to:?} {rounding:?}");
                }
            }
            let integral = ConvertMode { integral: true, ..with(Rounding::Nearest) };
            let whole = value.round_ties_even();
            let found = convert(from, from, integral, bits);
            let found = match from {
                NumberType::F32 => f64::from(f32::from_bits(found as u32)),
                NumberType::F64 => f64::from_bits(found),
                _ => half::f16::from_bits(found as u16).to_f64(),
            };
            assert!(found.to_bits() == whole.to_bits() || (found.is_nan() && whole.is_nan()), "{value:e} {found:e}");
        }
    }
}

#[test]
fn floats_are_narrowed_as_half_and_rust_do() {
    let mut random = Random::new(32);
    let nearest = ConvertMode::default();
    for _ in 0..40_000 {
        let bits = random.f32();
        let value = f32::from_bits(bits);
        let (f16, bf16) = (half::f16::from_f32(value), half::bf16::from_f32(value));
        let found = [NumberType::F16, NumberType::Bf16].map(|to| convert(NumberType::F32, to, nearest, bits.into()));
        if value.is_nan() {
            assert_eq!(found, [0x7fff; 2]);
        } else {
            assert_eq!(found, [f16.to_bits().into(), bf16.to_bits().into()]);
        }
        let other = random.f32();
        let pair = pair_of_f32(Half::F16, nearest, other, bits);
        assert_eq!(u64::from(pair & 0xffff), found[0]);
        assert_eq!(u64::from(pair >> 16), convert(NumberType::F32, NumberType::F16, nearest, other.into()));
        let double = random.f64();
        let narrowed = f64::from_bits(double) as f32;
        let found = convert(NumberType::F64, NumberType::F32, nearest, double) as u32;
        assert!(found == narrowed.to_bits() || (f32::from_bits(found).is_nan() && narrowed.is_nan()));
        let found = f64::from_bits(convert(NumberType::F32, NumberType::F64, nearest, bits.into()));
        assert!(found == f64::from(value) || value.is_nan());
        // Ties away from 0, of the 13 bits below.
        let rounded = tf32(ConvertMode { rounding: Rounding::NearestAway, ..nearest }, bits);
        let wanted = match () {
            () if value.is_nan() => bits & !0x1fff,
            () if value.is_infinite() => bits,
            () => (bits + 0x1000) & !0x1fff,
        };
        assert_eq!(rounded, wanted);
        let cut = tf32(ConvertMode { rounding: Rounding::Zero, ..nearest }, bits);
        assert!(value.is_nan() || cut == bits & !0x1fff);
        let relu = ConvertMode { relu: true, ..nearest };
        let found = convert(NumberType::F32, NumberType::F16, relu, bits.into());
        let wanted = if value.is_nan() { 0x7fff } else { f16.to_f32().max(0.0).to_bits() };
        assert!(found == 0x7fff || half::f16::from_bits(found as u16).to_f32().to_bits() == wanted & 0x7fff_ffff);
        let saturate = ConvertMode { saturate: true, ..nearest };
        let found = convert(NumberType::F32, NumberType::F32, saturate, bits.into()) as u32;
        assert_eq!(f32::from_bits(found), if value > 0.0 { value.min(1.0) } else { 0.0 });
    }
    for bits in 0..=u16::MAX {
        let found = convert(NumberType::F16, NumberType::F32, nearest, bits.into()) as u32;
        let wanted = half::f16::from_bits(bits).to_f32();
        assert!(found == wanted.to_bits() || (wanted.is_nan() && found == 0x7fff_ffff));
        let found = convert(NumberType::Bf16, NumberType::F32, nearest, bits.into()) as u32;
        assert_eq!(found, u32::from(bits) << 16);
    }
}

/// All finite magnitudes of a format of one byte, from its definition: bits of exponent and
/// fraction, and the greatest magnitude.
fn bytes(exponent: u32, fraction: u32, greatest: u8) -> Vec<f64> {
    let bias = (1 << (exponent - 1)) - 1;
    (0..=greatest)
        .map(|bits| {
            let field = i32::from(bits >> fraction);
            let low = f64::from(bits & ((1 << fraction) - 1)) / f64::from(1 << fraction);
            if field == 0 { low * 2_f64.powi(1 - bias) } else { (1.0 + low) * 2_f64.powi(field - bias) }
        })
        .collect()
}

#[test]
fn bytes_are_the_nearest_of_all() {
    let mut random = Random::new(33);
    let kinds = [(Quarter::E4m3, bytes(4, 3, 0x7e), 0x7f_u16), (Quarter::E5m2, bytes(5, 2, 0x7b), 0x7f)];
    assert_eq!((kinds[0].1[0x7e], kinds[1].1[0x7b]), (448.0, 57344.0));
    for (kind, table, nan) in &kinds {
        let nearest = |value: f64| {
            if value.is_nan() {
                return *nan;
            }
            let sign = if value.is_sign_negative() { 0x80 } else { 0 };
            let by_distance =
                |at: &usize| (((table[*at] - value.abs().min(1e6)).abs() * 2_f64.powi(60)) as u128, at % 2);
            sign | (0..table.len()).min_by_key(by_distance).unwrap() as u16
        };
        for _ in 0..4_000 {
            let (upper, lower) = (near_bytes(&mut random), near_bytes(&mut random));
            let wanted = nearest(f32::from_bits(upper).into()) << 8 | nearest(f32::from_bits(lower).into());
            assert_eq!(quarters_of_f32(*kind, false, upper, lower), wanted, "{}", f32::from_bits(lower));
            let relu = [wanted >> 8, wanted & 0xff].map(|byte| if byte & 0x80 == 0 { byte } else { 0 });
            assert_eq!(quarters_of_f32(*kind, true, upper, lower), relu[0] << 8 | relu[1]);
            let pair = random.float(5, 10) as u32 | (random.float(5, 10) as u32) << 16;
            let each = |bits: u32| nearest(half::f16::from_bits(bits as u16).to_f64());
            assert_eq!(quarters_of_f16(*kind, false, pair), each(pair >> 16) << 8 | each(pair));
        }
        for bits in 0..=255_u16 {
            let pair = f16_of_quarters(*kind, false, bits << 8 | bits);
            assert_eq!(pair >> 16, pair & 0xffff);
            let value = half::f16::from_bits(pair as u16).to_f64();
            match table.get(usize::from(bits & 0x7f)) {
                Some(magnitude) => assert_eq!(value.abs(), *magnitude),
                None => assert!(value.is_nan() || (bits & 0x7f == 0x7c && value.is_infinite())),
            }
            assert!(value.is_nan() || value.is_sign_negative() == (bits & 0x80 != 0));
        }
    }
}

/// An f32 in the range of the formats of one byte, or anything.
fn near_bytes(random: &mut Random) -> u32 {
    let bits = random.f32();
    match random.below(4) {
        0 => bits,
        _ => bits & 0x807f_ffff | (104 + random.below(45) as u32) << 23,
    }
}

#[test]
fn packed_integers_are_clamped() {
    assert_eq!(pack_sat(70000, -5, None, 16, true), 0x7fff_fffb);
    assert_eq!(pack_sat(70000, -5, None, 16, false), 0xffff_0000);
    assert_eq!(pack_sat(300, 7, Some(0x1234_5678), 8, false), 0x5678_ff07);
    assert_eq!(pack_sat(-9, 7, Some(0x1234_5678), 4, true), 0x3456_7887);
}

/// What an H200 gave for NaN.
#[test]
fn nan_is_converted_as_on_a_device() {
    let plain = ConvertMode::default();
    let of_f64 = |to, bits| convert(NumberType::F64, to, plain, bits);
    assert_eq!(of_f64(NumberType::F16, 0xfffb_90dc_c080_7217), 0xfee4);
    assert_eq!(of_f64(NumberType::Bf16, 0xfff4_b7bc_d05e_d287), 0xffe5);
    assert_eq!(of_f64(NumberType::F32, 0xfffb_d700_554e_8387), 0xffde_b802);
    assert_eq!(convert(NumberType::F16, NumberType::F64, plain, 0xff81), 0xfffe_0400_0000_0000);
    let integral = ConvertMode { integral: true, ..plain };
    assert_eq!(convert(NumberType::F64, NumberType::F64, integral, 0x7ff6_cd4a_f476_e91b), 0x7ffe_cd4a_f476_e91b);
    let flush = ConvertMode { flush: true, ..plain };
    assert_eq!(convert(NumberType::F32, NumberType::F32, flush, 0x7f9f_1289), 0x7fff_ffff);
    let away = ConvertMode { rounding: Rounding::NearestAway, ..plain };
    assert_eq!(tf32(away, 0xffef_8b3b), 0xffef_8000);
    assert_eq!(tf32(plain, 0x7ff4_1871), 0x7fff_e000);
}

#[test]
fn results_that_are_too_large_become_the_greatest_number() {
    let mut random = Random::new(90);
    let mut words: Vec<u32> = (0..4000).map(|_| random.bits() as u32).collect();
    words.extend([
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        65504.0_f32.to_bits(),
        65519.0_f32.to_bits(),
        65520.0_f32.to_bits(),
    ]);
    words.extend([0x7f7f_0000, 0x7f7f_7fff, 0x7f7f_8000, 0x7f7f_ffff]);
    let mode = ConvertMode { finite: true, ..ConvertMode::default() };
    for bits in words {
        let value = f32::from_bits(bits);
        let f16 = half::f16::from_f32(value);
        let bf16 = half::bf16::from_f32(value);
        let held = |is_nan: bool, is_infinite: bool, bits: u16, greatest: u16| match (is_nan, is_infinite) {
            (true, _) => 0x7fff,
            (_, true) => bits & 0x8000 | greatest,
            _ => bits,
        };
        let wanted = held(f16.is_nan(), f16.is_infinite(), f16.to_bits(), 0x7bff);
        assert_eq!(convert(NumberType::F32, NumberType::F16, mode, bits.into()), u64::from(wanted), "{bits:#x}");
        let wanted = held(bf16.is_nan(), bf16.is_infinite(), bf16.to_bits(), 0x7f7f);
        assert_eq!(convert(NumberType::F32, NumberType::Bf16, mode, bits.into()), u64::from(wanted), "{bits:#x}");
        if !value.is_nan() {
            let away = tf32(ConvertMode { rounding: Rounding::NearestAway, ..mode }, bits);
            let magnitude = (u64::from(bits & 0x7fff_ffff) + 0x1000) & !0x1fff;
            let wanted = magnitude.min(0x7f7f_e000) as u32 | bits & 0x8000_0000;
            assert_eq!(away, wanted, "{bits:#x}");
        }
    }
}
