//! Numbers of the tensors of a check.

use tilewright_kernel::Element;

/// A number of a type from random bits: a multiple of 1/8 in [-4, 4); for a type of which only the
/// bits matter, any bits.
pub(super) fn number(element: Element, chance: u64) -> u64 {
    let eighths = (chance % 64) as f64 / 8.0 - 4.0;
    match element {
        Element::F16 => u64::from(half::f16::from_f64(eighths).to_bits()),
        Element::Bf16 => u64::from(half::bf16::from_f64(eighths).to_bits()),
        Element::F32 => u64::from((eighths as f32).to_bits()),
        Element::F64 => eighths.to_bits(),
        // Magnitudes between 1/8 and 16, without NaN.
        Element::E4M3 => chance & 0x87 | (4 + (chance >> 8) % 7) << 3,
        Element::E5M2 => chance & 0x83 | (12 + (chance >> 8) % 7) << 2,
        Element::I32 => u64::from((chance % 2001) as u32).wrapping_sub(1000) & 0xffff_ffff,
        _ => chance.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

pub(crate) fn value(element: Element, bits: u64) -> f64 {
    match element {
        Element::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Element::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Element::F32 => f64::from(f32::from_bits(bits as u32)),
        Element::F64 => f64::from_bits(bits),
        Element::I32 => f64::from(bits as u32 as i32),
        Element::I64 => bits as i64 as f64,
        Element::I8 => f64::from(bits as u8 as i8),
        Element::I16 => f64::from(bits as u16 as i16),
        Element::E4M3 => small(bits as u8, 4),
        Element::E5M2 => small(bits as u8, 5),
        _ => bits as f64,
    }
}

/// The value of an 8-bit float with `exponent` bits of exponent.
fn small(byte: u8, exponent: u32) -> f64 {
    let mantissa = 7 - exponent;
    let (bias, ones) = ((1 << (exponent - 1)) - 1, (1 << exponent) - 1);
    let (power, rest) = (i32::from(byte >> mantissa) & ones, byte & ((1 << mantissa) - 1));
    let fraction = f64::from(rest) / f64::from(1 << mantissa);
    // Types with 4 bits of exponent have no infinity, and one NaN of each sign.
    let size = match (power == ones, exponent) {
        (true, 5) if rest == 0 => f64::INFINITY,
        (true, 5) => f64::NAN,
        (true, _) if rest == 7 => f64::NAN,
        _ if power == 0 => fraction * 2_f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2_f64.powi(power - bias),
    };
    if byte >> 7 == 1 { -size } else { size }
}

/// The bits of element `at`, of `width` bytes.
pub fn bits_at(bytes: &[u8], width: usize, at: usize) -> u64 {
    bytes[at * width..(at + 1) * width].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The minimum and maximum of an integer type.
pub(crate) fn ends(element: Element) -> Option<[f64; 2]> {
    let bits = element.bits() as i32;
    match (element.is_float(), element.is_signed_integer()) {
        (true, _) => None,
        (_, true) => Some([-2_f64.powi(bits - 1), 2_f64.powi(bits - 1) - 1.0]),
        (_, false) => Some([0.0, 2_f64.powi(bits) - 1.0]),
    }
}

/// The largest finite number of a floating-point type.
fn greatest(element: Element) -> f64 {
    match element {
        Element::F16 => 65_504.0,
        Element::Bf16 => half::bf16::MAX.to_f64(),
        Element::E4M3 => 448.0,
        Element::E5M2 => 57_344.0,
        Element::F64 => f64::MAX,
        _ => f64::from(f32::MAX),
    }
}

/// The distance between the number that was found and the expected number before rounding, in units
/// of the rounding bound; 0 if both are equal, None if the distance is larger than 1.
pub(crate) fn distance(element: Element, found: u64, wanted: f64, bound: f64) -> Option<f64> {
    let (number, greatest) = (value(element, found), greatest(element));
    // Integers and 8-bit floats saturate at their largest number, other types at infinity.
    let wanted = match ends(element) {
        Some([least, most]) => wanted.clamp(least, most),
        None if element.bits() == 8 => wanted.clamp(-greatest, greatest),
        None => wanted,
    };
    if number == wanted || number.is_nan() && wanted.is_nan() {
        return Some(0.0);
    }
    // If intermediate sums may overflow f32, any result is accepted.
    if wanted.is_finite() && !bound.is_finite() {
        return Some(0.0);
    }
    let infinite = number.is_infinite() && element.bits() > 8 && wanted.abs() + bound >= greatest;
    let off = if infinite && number.signum() == wanted.signum() { 0.0 } else { (number - wanted).abs() };
    if off.is_nan() || off > bound {
        return None;
    }
    Some(if off == 0.0 { 0.0 } else { off / bound })
}

/// The distance between adjacent numbers of a type at a value: twice the rounding error.
pub(crate) fn step(element: Element, at: f64) -> f64 {
    // The digits, and the exponent of the smallest normal number.
    let (digits, least) = match element {
        Element::E4M3 => (3, -6),
        Element::E5M2 => (2, -14),
        Element::F16 => (10, -14),
        Element::Bf16 => (7, -126),
        Element::F32 => (23, -126),
        Element::F64 => (52, -1022),
        _ => return 0.0,
    };
    at.abs().max(2_f64.powi(least)) * 2_f64.powi(-digits)
}

/// Random small numbers of a type, as bytes, for the tensors of a check.
pub fn any_numbers(element: Element, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut bytes = Vec::with_capacity(count * element.bytes() as usize);
    for _ in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = number(element, state >> 33);
        bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes() as usize]);
    }
    bytes
}
