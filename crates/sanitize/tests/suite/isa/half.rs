//! f16 and bf16 against exact integers and tables of all numbers.

use tilewright_sanitize::isa::approximate::{Function, approx16};
use tilewright_sanitize::isa::float::ExtremeMode;
use tilewright_sanitize::isa::half::{Half, HalfMode, pair1, pair2, pair3};

use super::random::Random;

/// All finite magnitudes of f16 in their order, in units of 2^-48.
fn table() -> Vec<i128> {
    (0..0x7c00_u16).map(|bits| (half::f16::from_bits(bits).to_f64() * 2_f64.powi(48)) as i128).collect()
}

/// The nearest f16 of an exact value in units of 2^-48, ties to even; a 0 gets the sign `zero`.
fn nearest(table: &[i128], exact: i128, zero: bool) -> u16 {
    let sign = if exact < 0 || (exact == 0 && zero) { 0x8000 } else { 0 };
    let magnitude = exact.abs();
    // Halfway between the greatest number and the one that would follow.
    if magnitude >= (65504 + 16) << 48 {
        return sign | 0x7c00;
    }
    let above = table.partition_point(|value| *value < magnitude).min(table.len() - 1);
    let below = above.saturating_sub(1);
    let (up, down) = ((table[above] - magnitude).abs(), (magnitude - table[below]).abs());
    let even = if above % 2 == 0 { above } else { below };
    sign | match up.cmp(&down) {
        std::cmp::Ordering::Less => above as u16,
        std::cmp::Ordering::Greater => below as u16,
        std::cmp::Ordering::Equal => even as u16,
    }
}

#[test]
fn f16_rounds_once_from_the_exact_value() {
    let table = table();
    let mut random = Random::new(20);
    let mode = HalfMode::default();
    for _ in 0..60_000 {
        let [a, b, c] = [0; 3].map(|_| {
            let bits = random.float(5, 10) as u16;
            if bits & 0x7c00 == 0x7c00 { bits & 0x83ff } else { bits }
        });
        let exact = |bits: u16| (half::f16::from_bits(bits).to_f64() * 2_f64.powi(24)) as i128;
        let negative = |bits: u16| bits >> 15 == 1;
        let zero = negative(a) && negative(b);
        assert_eq!(Half::F16.add(a, b, mode), nearest(&table, (exact(a) + exact(b)) << 24, zero));
        let zero = negative(a) && !negative(b);
        assert_eq!(Half::F16.sub(a, b, mode), nearest(&table, (exact(a) - exact(b)) << 24, zero));
        let product = exact(a) * exact(b);
        let sign = negative(a) != negative(b);
        assert_eq!(Half::F16.mul(a, b, mode), nearest(&table, product, sign));
        let wanted = nearest(&table, product + (exact(c) << 24), sign && negative(c));
        assert_eq!(Half::F16.fma(a, b, c, mode), wanted, "{a:x} {b:x} {c:x}");
        let relu = HalfMode { relu: true, ..mode };
        assert_eq!(Half::F16.fma(a, b, c, relu), if negative(wanted) { 0 } else { wanted });
        let saturate = HalfMode { saturate: true, ..mode };
        assert_eq!(Half::F16.fma(a, b, c, saturate), if negative(wanted) { 0 } else { wanted.min(0x3c00) });
        let flush = HalfMode { flush: true, ..mode };
        let flushed = |bits: u16| if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits };
        let product = exact(flushed(a)) * exact(flushed(b));
        assert_eq!(Half::F16.mul(a, b, flush), flushed(nearest(&table, product, sign)));
    }
}

/// bf16 is the upper half of f32: the nearest of a value in f64 that is exact.
fn nearest_bf16(exact: f64) -> u16 {
    let bits = exact as f32;
    // The two neighbours, and the exact distances to them.
    let down = f32::from_bits(bits.to_bits() & 0xffff_0000);
    let down = if f64::from(down).abs() > exact.abs() {
        f32::from_bits((down.to_bits() - 0x1_0000) & 0xffff_0000)
    } else {
        down
    };
    let up = f32::from_bits(down.to_bits() + 0x1_0000);
    let (below, above) = ((exact - f64::from(down)).abs(), (f64::from(up) - exact).abs());
    let (down, up) = ((down.to_bits() >> 16) as u16, (up.to_bits() >> 16) as u16);
    match below.partial_cmp(&above) {
        Some(std::cmp::Ordering::Less) => down,
        Some(std::cmp::Ordering::Greater) => up,
        _ if down % 2 == 0 => down,
        _ => up,
    }
}

#[test]
fn bf16_rounds_once_from_the_exact_value() {
    let mut random = Random::new(21);
    let mode = HalfMode::default();
    for _ in 0..60_000 {
        // Exponents close enough for exact values in f64.
        let [a, b, c] = [0; 3].map(|_| {
            let exponent = 118 + random.below(10) as u16;
            (random.below(2) as u16) << 15 | exponent << 7 | random.bits() as u16 & 0x7f
        });
        let [x, y, z] = [a, b, c].map(|bits| f64::from(f32::from_bits(u32::from(bits) << 16)));
        assert_eq!(Half::Bf16.add(a, b, mode), nearest_bf16(x + y), "{x} {y}");
        assert_eq!(Half::Bf16.sub(a, b, mode), nearest_bf16(x - y));
        assert_eq!(Half::Bf16.mul(a, b, mode), nearest_bf16(x * y));
        assert_eq!(Half::Bf16.fma(a, b, c, mode), nearest_bf16(x * y + z), "{x} {y} {z}");
    }
}

#[test]
fn nan_is_the_one_of_the_hardware_and_pairs_are_halves() {
    let mode = HalfMode::default();
    for (kind, infinity) in [(Half::F16, 0x7c00_u16), (Half::Bf16, 0x7f80)] {
        assert_eq!(kind.add(infinity, infinity | 0x8000, mode), 0x7fff);
        assert_eq!(kind.mul(infinity, 0, mode), 0x7fff);
        assert_eq!(kind.fma(infinity, 0, 0, mode), 0x7fff);
        assert_eq!(kind.fma(0xffff, 0, 0, HalfMode { relu: true, ..mode }), 0x7fff);
        assert_eq!(kind.fma(infinity, 0, 0, HalfMode { saturate: true, ..mode }), 0);
        assert_eq!(kind.add(infinity, 0x1234, mode), infinity);
        assert_eq!(kind.neg(0xfffe, false), 0x7fff);
        assert_eq!(kind.neg(0x3c00, false), 0xbc00);
        assert_eq!(kind.abs(0x8001, true), 0);
        let extreme = ExtremeMode { max: true, ..ExtremeMode::default() };
        assert_eq!(kind.extreme(0x8000, 0, extreme), 0);
        assert_eq!(kind.extreme(infinity + 1, 0x1234, extreme), 0x1234);
        assert_eq!(kind.extreme(infinity + 1, 0x1234, ExtremeMode { nan: true, ..extreme }), 0x7fff);
        assert_eq!(kind.extreme(0xb000, 0x3000, ExtremeMode { xorsign: true, ..extreme }), 0xb000);
        let one = kind.narrow(1.0);
        assert_eq!(approx16(Function::Exp2, kind, 0, false), one);
        assert_eq!(approx16(Function::Tanh, kind, infinity, false), one);
        assert_eq!(approx16(Function::Exp2, kind, infinity | 0x8000, false), 0);
        assert_eq!(approx16(Function::Exp2, kind, 0x7fff, false), 0x7fff);
    }
    // Every f16: the nearest to the value in f64.
    let table = table();
    for bits in 0..0xfc00_u16 {
        if bits & 0x7c00 == 0x7c00 {
            continue;
        }
        let value = half::f16::from_bits(bits).to_f64().tanh();
        let wanted = nearest(&table, (value * 2_f64.powi(48)) as i128, bits >> 15 == 1);
        let found = approx16(Function::Tanh, Half::F16, bits, false);
        // The cut of the last bits of the exact value moves nothing but ties.
        assert!(found.abs_diff(wanted) <= 1, "{bits:x}: {found:x} {wanted:x}");
    }
    assert_eq!(pair1(0x1234_5678, |half| half + 1), 0x1235_5679);
    assert_eq!(pair2(0x0001_0002, 0x0003_0004, |a, b| a + b), 0x0004_0006);
    assert_eq!(pair3(0x0001_0002, 0x0003_0004, 0x0010_0010, |a, b, c| a * b + c), 0x0013_0018);
}

/// What an H200 gave: a product and sum just below the least normal number.
#[test]
fn a_sum_is_flushed_before_it_is_rounded() {
    let flush = HalfMode { flush: true, ..HalfMode::default() };
    assert_eq!(Half::F16.fma(0x87de, 0x888f, 0x8400, flush), 0x8000);
    assert_eq!(Half::F16.fma(0x87de, 0x888f, 0x8400, HalfMode::default()), 0x8400);
}

#[test]
fn what_lies_outside_of_a_tensor_makes_a_sum_zero() {
    for kind in [Half::F16, Half::Bf16] {
        let mode = HalfMode { outside: true, ..HalfMode::default() };
        let one = if kind == Half::F16 { 0x3c00 } else { 0x3f80 };
        assert_eq!(kind.fma(0x7ff7, one, one, mode), 0);
        assert_eq!(kind.fma(one, 0xfff7, one, mode), 0);
        // The addend is not asked.
        assert_eq!(kind.fma(one, one, 0x7ff7, mode), 0x7fff);
        // Other NaN stay, and without `.oob` this one too.
        assert_eq!(kind.fma(0x7fff, one, one, mode), 0x7fff);
        assert_eq!(kind.fma(0x7ff7, one, one, HalfMode::default()), 0x7fff);
    }
}
