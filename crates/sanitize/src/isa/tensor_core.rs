//! The accumulation of products in tensor cores.
//!
//! Law: products are exact. Groups of [`SumModel::depth`] products, in order of K, are added at
//! once, together with the accumulator. Each term is truncated toward zero [`SumModel::bits`] bits
//! below the highest exponent of all terms. The truncated terms are added exactly. The sum is
//! truncated to an f32 with [`SumModel::kept`] fraction bits, or rounded to the nearest f16. The
//! exponent of a product is the sum of the exponents of its factors; a subnormal number has the
//! least exponent, and a product with 0 has none. A sum of 0 is +0. If a term is infinite or NaN,
//! the result is that of exact sums; NaN is that of the hardware.
//!
//! The PTX ISA leaves the order and the rounding of these sums open. An H200 agrees bit by bit with
//! 25 bits and 16 products for f16 and bf16, and with 8 products for tf32. For 8-bit operands in
//! `wgmma`, it agreed with 13 bits and 32 products if the accumulators are f16. Accumulators of f32
//! also keep 13 bits, as follows from results that would differ otherwise. Sums of f64 are a chain
//! of `fma` in order of K. Integer sums are exact, and wrap or, with `.satfinite`, are clamped at
//! the end.

use super::float::canonical;
use super::format::Rounding;
use super::half::{Half, of_f64};

/// How many products a tensor core adds at once, and the precision of the addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SumModel {
    /// The number of products that are added at once.
    pub depth: usize,
    /// The number of bits below the highest exponent that a term keeps.
    pub bits: u32,
    /// The number of fraction bits that an f32 sum keeps, at most 23.
    pub kept: u32,
}

/// The operand type of a floating-point product.
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
    /// The number of bits that an element takes in a register.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        match self {
            Factor::F16 | Factor::Bf16 => 16,
            Factor::Tf32 => 32,
            Factor::E4m3 | Factor::E5m2 => 8,
        }
    }

    /// The model for compute capability 9.0, for an instruction with this K.
    pub fn hopper(self, k: usize) -> SumModel {
        match self {
            Factor::F16 | Factor::Bf16 => SumModel { depth: k.min(16), bits: 25, kept: 23 },
            Factor::Tf32 => SumModel { depth: k.min(8), bits: 25, kept: 23 },
            Factor::E4m3 | Factor::E5m2 => SumModel { depth: k.min(32), bits: 13, kept: 13 },
        }
    }

    /// The value of an element, and its exponent.
    #[inline(always)]
    pub(crate) fn decode(self, bits: u32) -> (f64, i16) {
        match self {
            Factor::F16 => decode::<5, 10, true>(bits & 0xffff),
            Factor::Bf16 => decode::<8, 7, true>(bits & 0xffff),
            Factor::Tf32 => decode::<8, 10, true>(bits >> 13),
            Factor::E4m3 => decode::<4, 3, false>(bits & 0xff),
            Factor::E5m2 => decode::<5, 2, true>(bits & 0xff),
        }
    }

    /// The values and exponents of element `part` of each word.
    #[inline]
    pub(crate) fn decode_words<const N: usize>(self, words: &[u32; N], part: u32) -> ([f64; N], [i16; N]) {
        // A loop for a single type becomes vector instructions.
        match self {
            Factor::F16 => decode_all::<5, 10, true, N>(words, 16 * part, 0xffff),
            Factor::Bf16 => decode_all::<8, 7, true, N>(words, 16 * part, 0xffff),
            Factor::Tf32 => decode_all::<8, 10, true, N>(words, 13, 0x7_ffff),
            Factor::E4m3 => decode_all::<4, 3, false, N>(words, 8 * part, 0xff),
            Factor::E5m2 => decode_all::<5, 2, true, N>(words, 8 * part, 0xff),
        }
    }
}

/// The exponent of 0. It is so low that a sum with it is below every sum of exponents of numbers.
pub(crate) const OF_ZERO: i16 = -8192;
/// The exponent of infinities and NaN.
const OF_SPECIAL: i16 = 8192;

/// Operands: their values and their exponents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) values: &'a [f64],
    pub(crate) exponents: &'a [i16],
}

/// `2^exponent`, for exponents of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The value of an element with E exponent bits and F fraction bits, and its exponent. `INFINITIES`
/// says whether the format has infinities.
#[inline(always)]
fn decode<const E: u32, const F: u32, const INFINITIES: bool>(bits: u32) -> (f64, i16) {
    let bias = (1 << (E - 1)) - 1;
    let magnitude = bits & ((1 << (E + F)) - 1);
    let field = (magnitude >> F) as i32;
    // Moves the fields to their positions in f64. The exponent differs by the difference of the
    // biases; the multiplication that corrects it also handles subnormal numbers.
    let scaled = f64::from_bits(u64::from(magnitude) << (52 - F)) * power_of_two(1023 - bias);
    let greatest = if INFINITIES { (((1 << E) - 1) << F) - 1 } else { (1 << (E + F)) - 2 };
    let special = if INFINITIES && magnitude == greatest + 1 { f64::INFINITY } else { f64::NAN };
    let value = if magnitude <= greatest { scaled } else { special };
    let exponent = field.max(1) - bias;
    let exponent = if magnitude == 0 { i32::from(OF_ZERO) } else { exponent };
    let exponent = if magnitude <= greatest { exponent } else { i32::from(OF_SPECIAL) };
    let sign = u64::from(bits >> (E + F) & 1) << 63;
    (f64::from_bits(value.to_bits() | sign), exponent as i16)
}

#[inline(always)]
fn decode_all<const E: u32, const F: u32, const INFINITIES: bool, const N: usize>(
    words: &[u32; N],
    shift: u32,
    mask: u32,
) -> ([f64; N], [i16; N]) {
    let (mut values, mut exponents) = ([0.0; N], [0; N]);
    for at in 0..N {
        (values[at], exponents[at]) = decode::<E, F, INFINITIES>(words[at] >> shift & mask);
    }
    (values, exponents)
}

/// The type of accumulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumType {
    /// `.f16`
    F16,
    /// `.f32`
    F32,
}

impl SumType {
    /// The value of an accumulator as f64, which is exact.
    #[inline(always)]
    pub(crate) fn widen(self, bits: u32) -> f64 {
        match self {
            SumType::F16 => decode::<5, 10, true>(bits & 0xffff).0,
            SumType::F32 => f32::from_bits(bits).into(),
        }
    }

    /// The exponent of an accumulator.
    #[inline(always)]
    fn exponent(self, value: f64) -> i16 {
        let least = match self {
            SumType::F16 => -14,
            SumType::F32 => -126,
        };
        match (value.to_bits() >> 52 & 0x7ff) as i32 {
            0 => OF_ZERO,
            field => (field - 1023).max(least) as i16,
        }
    }

    /// The bits of an exact sum: for f32 truncated toward 0, and infinite if it is too large.
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
                // In units of the least f32.
                let units = value.abs() * power_of_two(149);
                (bits >> 32 & 0x8000_0000) as u32 | units as u32
            }
            _ => canonical(value as f32 * f32::INFINITY),
        }
    }
}

/// Truncates a number below 2^51 toward 0, exactly.
#[inline(always)]
fn cut(value: f64) -> f64 {
    const INTEGERS: f64 = 4_503_599_627_370_496.0;
    let magnitude = value.abs();
    let nearest = (magnitude + INTEGERS) - INTEGERS;
    let below = if nearest > magnitude { nearest - 1.0 } else { nearest };
    below.copysign(value)
}

/// The number of columns that are added at a time.
const COLUMNS: usize = 8;

/// The most bits that a model may keep. [`add_block`] gives the reason.
pub(crate) const MAX_BITS: u32 = 27;

/// `sums += a * b`: `a` has rows of `k` elements, `b` has `k` rows of `n` elements, and `sums` has
/// rows of `n` accumulators, as bits. `n` is a multiple of 8.
pub(crate) fn add_products(
    model: SumModel,
    kind: SumType,
    (a, b): (Terms<'_>, Terms<'_>),
    (n, k): (usize, usize),
    sums: &mut [u32],
) {
    let special = a.exponents.iter().chain(b.exponents).fold(i16::MIN, |most, own| most.max(*own)) == OF_SPECIAL;
    for (row, sums) in sums.chunks_mut(n).enumerate() {
        for (block, sums) in sums.as_chunks_mut::<COLUMNS>().0.iter_mut().enumerate() {
            for from in (0..k).step_by(model.depth) {
                let own = row * k + from..row * k + k.min(from + model.depth);
                let a = Terms { values: &a.values[own.clone()], exponents: &a.exponents[own] };
                let first = from * n + block * COLUMNS;
                let b = Terms { values: &b.values[first..], exponents: &b.exponents[first..] };
                if special || sums.iter().any(|sum| !kind.widen(*sum).is_finite()) {
                    add_special(model, kind, (a, b), n, sums);
                } else {
                    add_block(model, kind, (a, b), n, sums);
                }
            }
        }
    }
}

/// Adds products of finite numbers to neighbouring accumulators.
///
/// The addition truncates by rounding to nearest. A product has at most 22 bits. If it is no
/// integer, it is at least 2^-22 below the next integer. So after 1/2 - 2^-23 is subtracted, the
/// nearest integer is the truncated value. Products are below 2^29, which allows at most 27 bits
/// below the highest exponent, so the subtraction loses nothing. The truncated integer is then in
/// the lower bits of the f64, where it is added as an integer.
#[inline(always)]
fn add_block(model: SumModel, kind: SumType, (a, b): (Terms<'_>, Terms<'_>), n: usize, sums: &mut [u32; COLUMNS]) {
    const INTEGERS: f64 = 6_755_399_441_055_744.0;
    const NEARLY_HALF: f64 = 0.5 - 1.0 / 8_388_608.0;
    let old = sums.map(|sum| kind.widen(sum));
    let mut highest = old.map(|old| kind.exponent(old));
    let rows = |values: usize| b.exponents[values * n..].first_chunk::<COLUMNS>();
    for (at, a) in a.exponents.iter().enumerate() {
        let Some(row) = rows(at) else { break };
        for (highest, b) in highest.iter_mut().zip(row) {
            *highest = (*highest).max(a + b);
        }
    }
    // All terms are zero, so any scale is right.
    let shifts = highest.map(|highest| if highest < OF_ZERO / 2 { 0 } else { model.bits as i32 - i32::from(highest) });
    let scale = shifts.map(power_of_two);
    let mut total = [0_u64; COLUMNS];
    for (at, a) in a.values.iter().enumerate() {
        let Some(row) = b.values[at * n..].first_chunk::<COLUMNS>() else { break };
        for column in 0..COLUMNS {
            let term = a * row[column] * scale[column];
            let term = (term - NEARLY_HALF.copysign(term)) + INTEGERS;
            total[column] = total[column].wrapping_add(term.to_bits());
        }
    }
    let offset = INTEGERS.to_bits().wrapping_mul(a.values.len() as u64);
    for column in 0..COLUMNS {
        let products = total[column].wrapping_sub(offset) as i64;
        let total = products as f64 + cut(old[column] * scale[column]);
        sums[column] = kind.narrow(total * power_of_two(-shifts[column]), model.kept);
    }
}

/// As [`add_block`], if a term may be infinite or NaN.
#[cold]
fn add_special(model: SumModel, kind: SumType, (a, b): (Terms<'_>, Terms<'_>), n: usize, sums: &mut [u32; COLUMNS]) {
    for at in 0..COLUMNS {
        let column = |own: &[f64]| -> Vec<f64> { own.chunks(n).take(a.values.len()).map(|row| row[at]).collect() };
        let values = column(b.values);
        let products = a.values.iter().zip(&values).map(|(a, b)| a * b);
        let total = products.fold(kind.widen(sums[at]), |total, product| total + product);
        if !total.is_finite() {
            sums[at] = kind.narrow(total, model.kept);
            continue;
        }
        // The other columns are 0.
        let mut own = [0; COLUMNS];
        own[0] = sums[at];
        let (mut all, mut exponents) = (vec![0.0; COLUMNS * values.len()], vec![OF_ZERO; COLUMNS * values.len()]);
        for (row, value) in values.iter().enumerate() {
            (all[COLUMNS * row], exponents[COLUMNS * row]) = (*value, b.exponents[row * n + at]);
        }
        add_block(model, kind, (a, Terms { values: &all, exponents: &exponents }), COLUMNS, &mut own);
        sums[at] = own[0];
    }
}
