//! Sums of products as tensor cores make them.
//!
//! Law: products are exact. So many of them as [`SumModel::depth`] says, in order of K, are added
//! at once, with the sum so far: each term is cut, toward zero, after [`SumModel::bits`] bits below
//! the highest exponent of all terms; what is left is added exactly, and the sum is cut to f32, of
//! which [`SumModel::kept`] bits after the point are kept, or rounded to the nearest f16. The
//! exponent of a product is the sum of those of its factors, of subnormal numbers the least one;
//! products with 0 have none. A sum that is 0 is +0. An infinity or NaN among the terms gives what
//! exact sums give; NaN is the one of the hardware.
//!
//! The PTX ISA leaves order and rounding of these sums open. An H200 agrees bit by bit with 25 bits
//! and 16 products of f16 and bf16, 8 of tf32. Of bytes in `wgmma` it agreed with 13 bits and 32
//! products where sums are f16; that sums of f32 keep 13 bits too follows from the results that
//! differed without. Sums of f64 are a chain of `fma` in order of K. Integers are exact, and wrap
//! or, with `.satfinite`, are clamped at the end.

use super::float::canonical;
use super::format::Rounding;
use super::half::{Half, of_f64};

/// How many terms are added at once, and how many of their bits are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SumModel {
    /// Products that are added at once.
    pub depth: usize,
    /// Bits that a term keeps below the highest exponent.
    pub bits: u32,
    /// Bits after the point that a sum of f32 keeps, at most 23.
    pub kept: u32,
}

/// What operands of floating-point products are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Factor {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.tf32`: the upper 19 bits of 32.
    Tf32,
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
}

impl Factor {
    /// How many bits of a register it takes.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        match self {
            Factor::F16 | Factor::Bf16 => 16,
            Factor::Tf32 => 32,
            Factor::E4m3 | Factor::E5m2 => 8,
        }
    }

    /// The model of a device of compute capability 9.0 for an instruction of this depth.
    pub fn hopper(self, k: usize) -> SumModel {
        match self {
            Factor::F16 | Factor::Bf16 => SumModel { depth: k.min(16), bits: 25, kept: 23 },
            Factor::Tf32 => SumModel { depth: k.min(8), bits: 25, kept: 23 },
            Factor::E4m3 | Factor::E5m2 => SumModel { depth: k.min(32), bits: 13, kept: 13 },
        }
    }

    /// The number, and 2 to its exponent (0 for what is 0 or not finite).
    #[inline(always)]
    pub(crate) fn decode(self, bits: u32) -> Term {
        match self {
            Factor::F16 => decode::<5, 10, true>(bits & 0xffff),
            Factor::Bf16 => decode::<8, 7, true>(bits & 0xffff),
            Factor::Tf32 => decode::<8, 10, true>(bits >> 13),
            Factor::E4m3 => decode::<4, 3, false>(bits & 0xff),
            Factor::E5m2 => decode::<5, 2, true>(bits & 0xff),
        }
    }
}

/// A number and 2 to its exponent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Term {
    pub(crate) value: f64,
    pub(crate) power: f64,
}

impl Term {
    pub(crate) const ZERO: Term = Term { value: 0.0, power: 0.0 };
}

/// `2^exponent` of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A number of a format with so many bits of exponent and fraction, with infinities or not.
#[inline(always)]
fn decode<const E: u32, const F: u32, const INFINITIES: bool>(bits: u32) -> Term {
    let bias = (1 << (E - 1)) - 1;
    let magnitude = bits & ((1 << (E + F)) - 1);
    let field = magnitude >> F;
    // The fields in their places in f64; the exponents differ by the difference of the biases,
    // which takes subnormal numbers along.
    let scaled = f64::from_bits(u64::from(magnitude) << (52 - F)) * power_of_two(1023 - bias);
    let greatest = if INFINITIES { (((1 << E) - 1) << F) - 1 } else { (1 << (E + F)) - 2 };
    let value = if magnitude <= greatest {
        scaled
    } else if INFINITIES && magnitude == greatest + 1 {
        f64::INFINITY
    } else {
        f64::NAN
    };
    let finite = magnitude != 0 && magnitude <= greatest;
    let power = if finite { power_of_two(field.max(1) as i32 - bias) } else { 0.0 };
    Term { value: if bits >> (E + F) & 1 == 1 { -value } else { value }, power }
}

/// What sums are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumType {
    /// `.f16`
    F16,
    /// `.f32`
    F32,
}

impl SumType {
    /// A sum as f64, exactly.
    #[inline(always)]
    pub(crate) fn widen(self, bits: u32) -> f64 {
        match self {
            SumType::F16 => decode::<5, 10, true>(bits & 0xffff).value,
            SumType::F32 => f32::from_bits(bits).into(),
        }
    }

    /// 2 to the exponent of a sum; 0 of what is 0 or not finite.
    #[inline(always)]
    fn power(self, value: f64) -> f64 {
        let (least, bits) = match self {
            SumType::F16 => (-14, value.to_bits()),
            SumType::F32 => (-126, value.to_bits()),
        };
        let field = (bits >> 52 & 0x7ff) as i32;
        if field == 0 || field == 0x7ff { 0.0 } else { power_of_two((field - 1023).max(least)) }
    }

    /// The bits of a sum that is exact: of f32 cut toward 0, and infinite if it is too large.
    #[inline(always)]
    pub(crate) fn narrow(self, value: f64, kept: u32) -> u32 {
        if self == SumType::F16 {
            return of_f64(Half::F16, value, Rounding::Nearest).into();
        }
        let bits = value.to_bits();
        match (bits >> 52 & 0x7ff) as i32 - 1023 {
            -126..=127 => {
                let cut = 52 - kept.min(23);
                (f64::from_bits(bits >> cut << cut) as f32).to_bits()
            }
            ..=-127 => {
                // Units of the least f32.
                let units = value.abs() * power_of_two(149);
                (bits >> 32 & 0x8000_0000) as u32 | units as u32
            }
            _ => canonical(value as f32 * f32::INFINITY),
        }
    }
}

/// The integer next to 0 of numbers below 2^51, exactly.
#[inline(always)]
fn cut(value: f64) -> f64 {
    const INTEGERS: f64 = 4_503_599_627_370_496.0;
    let magnitude = value.abs();
    let nearest = (magnitude + INTEGERS) - INTEGERS;
    let below = if nearest > magnitude { nearest - 1.0 } else { nearest };
    below.copysign(value)
}

/// The most columns that are added at a time.
const COLUMNS: usize = 8;

/// `sums += a * b`: `a` has rows of `k` terms, `b` has `k` rows of `n` terms, and `sums` are rows
/// of `n`, as bits.
pub(crate) fn add_products(
    model: SumModel,
    kind: SumType,
    (a, b): (&[Term], &[Term]),
    (n, k): (usize, usize),
    sums: &mut [u32],
) {
    let special = a.iter().chain(b).any(|term| !term.value.is_finite());
    for (row, sums) in sums.chunks_mut(n).enumerate() {
        let a = &a[row * k..][..k];
        for first in (0..n).step_by(COLUMNS) {
            let count = COLUMNS.min(n - first);
            let sums = &mut sums[first..][..count];
            for from in (0..k).step_by(model.depth) {
                let depth = model.depth.min(k - from);
                let terms = (&a[from..][..depth], &b[from * n + first..]);
                if special || sums.iter().any(|sum| !kind.widen(*sum).is_finite()) {
                    add_special(model, kind, terms, n, sums);
                } else {
                    add_block(model, kind, terms, n, sums);
                }
            }
        }
    }
}

/// Adds products of finite numbers to sums side by side.
#[inline(always)]
fn add_block(model: SumModel, kind: SumType, (a, b): (&[Term], &[Term]), n: usize, sums: &mut [u32]) {
    let mut old = [0.0; COLUMNS];
    let mut highest = [0.0_f64; COLUMNS];
    for (at, sum) in sums.iter().enumerate() {
        old[at] = kind.widen(*sum);
        highest[at] = kind.power(old[at]);
    }
    let count = sums.len();
    for (a, row) in a.iter().zip(b.chunks(n)) {
        for (highest, b) in highest.iter_mut().zip(&row[..count.min(row.len())]) {
            let power = a.power * b.power;
            *highest = if power > *highest { power } else { *highest };
        }
    }
    let unit = power_of_two(-(model.bits as i32));
    let mut scale = [0.0; COLUMNS];
    let mut total = [0.0; COLUMNS];
    for at in 0..count {
        // Nothing but zeros: any scale will do.
        scale[at] = if highest[at] == 0.0 { 1.0 } else { 1.0 / (highest[at] * unit) };
        total[at] = cut(old[at] * scale[at]);
    }
    for (a, row) in a.iter().zip(b.chunks(n)) {
        let columns = total.iter_mut().zip(&scale).zip(&row[..count.min(row.len())]);
        for ((total, scale), b) in columns {
            *total += cut(a.value * b.value * scale);
        }
    }
    for (at, sum) in sums.iter_mut().enumerate() {
        // Powers of two, so that the quotient is exact.
        *sum = kind.narrow(total[at] / scale[at], model.kept);
    }
}

/// The same where a term may be no number.
#[cold]
fn add_special(model: SumModel, kind: SumType, (a, b): (&[Term], &[Term]), n: usize, sums: &mut [u32]) {
    for (at, sum) in sums.iter_mut().enumerate() {
        let b: Vec<Term> = b.chunks(n).take(a.len()).map(|row| row[at]).collect();
        let total = a.iter().zip(&b).fold(kind.widen(*sum), |total, (a, b)| total + a.value * b.value);
        if total.is_finite() {
            add_block(model, kind, (a, &b), 1, std::slice::from_mut(sum));
        } else {
            *sum = kind.narrow(total, model.kept);
        }
    }
}
