//! Binary floating-point formats, exact numbers, and rounding.
//!
//! Law: an operation computes the exact result of its operands and rounds it once to the format, by
//! the given mode; subnormal numbers are kept. A result that is too large becomes infinity or the
//! greatest number, depending on the mode; in a format without infinities, it becomes the greatest
//! number. NaN becomes the one of the hardware: all bits but the sign, and for f64 the sign and the
//! highest bit of the fraction.
//!
//! An exact result may need more than 128 bits. Then its lowest bit is set if any lost bit was set
//! ("jammed"). That rounds like the exact result, because at least two more bits than the precision
//! of f64 are above it.

use std::cmp::Ordering;

/// The rounding mode of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rounding {
    /// To nearest, ties to even: `.rn`, `.rni`.
    #[default]
    Nearest,
    /// Toward zero: `.rz`, `.rzi`.
    Zero,
    /// Toward minus infinity: `.rm`, `.rmi`.
    Down,
    /// Toward plus infinity: `.rp`, `.rpi`.
    Up,
    /// To nearest, ties away from zero: `.rna`.
    NearestAway,
}

impl Rounding {
    /// Whether a magnitude is rounded up. `odd` says whether its kept part is odd, and `cut`
    /// compares the lost part with one half of the last place.
    fn is_up(self, negative: bool, odd: bool, cut: Cut) -> bool {
        match self {
            Rounding::Nearest => cut == Cut::Above || (cut == Cut::Half && odd),
            Rounding::NearestAway => matches!(cut, Cut::Above | Cut::Half),
            Rounding::Zero => false,
            Rounding::Down => negative && cut != Cut::Nothing,
            Rounding::Up => !negative && cut != Cut::Nothing,
        }
    }
}

/// The lost part, in halves of the last place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Nothing,
    Below,
    Half,
    Above,
}

/// A binary floating-point format of at most 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The number of exponent bits.
    exponent: u32,
    /// The number of fraction bits.
    fraction: u32,
    /// The bits of the greatest finite number, without the sign.
    greatest: u64,
    /// Whether it has infinities.
    infinities: bool,
    nan: u64,
}

/// IEEE half precision.
pub const F16: Format = Format { exponent: 5, fraction: 10, greatest: 0x7bff, infinities: true, nan: 0x7fff };
/// bfloat16: the upper half of f32.
pub const BF16: Format = Format { exponent: 8, fraction: 7, greatest: 0x7f7f, infinities: true, nan: 0x7fff };
/// One byte with four exponent bits, without infinities.
pub const E4M3: Format = Format { exponent: 4, fraction: 3, greatest: 0x7e, infinities: false, nan: 0x7f };
/// One byte with five exponent bits. It has infinities, but conversions do not produce them.
pub const E5M2: Format = Format { exponent: 5, fraction: 2, greatest: 0x7b, infinities: true, nan: 0x7f };
/// f32 with ten fraction bits; the lowest 13 bits are ignored.
pub const TF32: Format = Format { exponent: 8, fraction: 10, greatest: 0x3_fbff, infinities: true, nan: 0x3_ffff };
/// IEEE single precision.
pub const F32: Format = Format { exponent: 8, fraction: 23, greatest: 0x7f7f_ffff, infinities: true, nan: 0x7fff_ffff };
/// IEEE double precision.
pub const F64: Format = Format {
    exponent: 11,
    fraction: 52,
    greatest: 0x7fef_ffff_ffff_ffff,
    infinities: true,
    nan: 0xfff8_0000_0000_0000,
};

/// An exact number: `(-1)^negative * magnitude * 2^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    /// The sign; zeros have one, too.
    pub negative: bool,
    /// The magnitude, as an integer.
    pub magnitude: u128,
    /// The exponent of the weight of its lowest bit.
    pub exponent: i32,
}

/// The value of bits of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// NaN.
    Nan,
    /// An infinity; true if it is negative.
    Infinite(bool),
    /// A finite number.
    Finite(Exact),
}

/// The position of the highest bit of a number before an addition. Of the 128 bits, one is left for
/// the carry.
const TOP: i32 = 125;

impl Exact {
    /// An integer.
    pub fn integer(value: i128) -> Exact {
        Exact { negative: value < 0, magnitude: value.unsigned_abs(), exponent: 0 }
    }

    /// Whether it is 0.
    pub fn is_zero(self) -> bool {
        self.magnitude == 0
    }

    /// The same number with its highest bit at position `top`.
    fn normal(self, top: i32) -> Exact {
        let shift = top - (127 - self.magnitude.leading_zeros() as i32);
        let magnitude = if shift >= 0 { self.magnitude << shift } else { jammed(self.magnitude, -shift) };
        Exact { magnitude, exponent: self.exponent - shift, ..self }
    }

    /// The product of two numbers of at most 64 bits.
    pub fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            magnitude: self.magnitude * other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The sum of two numbers of at most 106 bits, jammed. If two numbers cancel, the rounding mode
    /// decides the sign of 0.
    pub fn plus(self, other: Exact, rounding: Rounding) -> Exact {
        if self.is_zero() && other.is_zero() {
            let same = self.negative == other.negative;
            let negative = if same { self.negative } else { rounding == Rounding::Down };
            return Exact { negative, magnitude: 0, exponent: 0 };
        }
        if other.is_zero() {
            return self;
        }
        if self.is_zero() {
            return other;
        }
        let (a, b) = (self.normal(TOP), other.normal(TOP));
        let (large, small) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        let moved = jammed(small.magnitude, large.exponent - small.exponent);
        let (negative, magnitude) = if large.negative == small.negative {
            (large.negative, large.magnitude + moved)
        } else {
            match large.magnitude.cmp(&moved) {
                Ordering::Greater => (large.negative, large.magnitude - moved),
                Ordering::Less => (small.negative, moved - large.magnitude),
                Ordering::Equal => (rounding == Rounding::Down, 0),
            }
        };
        Exact { negative, magnitude, exponent: large.exponent }
    }

    /// The quotient by a number other than 0, both of at most 64 bits, jammed.
    pub fn over(self, other: Exact) -> Exact {
        let negative = self.negative != other.negative;
        if self.is_zero() || other.is_zero() {
            return Exact { negative, magnitude: 0, exponent: 0 };
        }
        let (a, b) = (self.normal(127), other.normal(63));
        let lost = u128::from(a.magnitude % b.magnitude != 0);
        Exact { negative, magnitude: (a.magnitude / b.magnitude) | lost, exponent: a.exponent - b.exponent }
    }

    /// The square root of the magnitude of a number of at most 64 bits, jammed.
    pub fn root(self) -> Exact {
        if self.is_zero() {
            return self;
        }
        let even = self.normal(126);
        // Shifts by one bit less if that makes the exponent even.
        let odd = even.exponent.rem_euclid(2);
        let even = Exact { magnitude: even.magnitude << odd, exponent: even.exponent - odd, ..even };
        let root = even.magnitude.isqrt();
        let lost = u128::from(root * root != even.magnitude);
        Exact { negative: false, magnitude: root << 1 | lost, exponent: even.exponent / 2 - 1 }
    }

    /// The number rounded to an integer. A number that does not fit in 127 bits gives about
    /// `i128::MAX`.
    pub fn rounded(self, rounding: Rounding) -> i128 {
        let magnitude = if self.exponent >= 0 {
            if self.is_zero() || self.exponent as u32 >= self.magnitude.leading_zeros() {
                if self.is_zero() { 0 } else { i128::MAX as u128 }
            } else {
                self.magnitude << self.exponent
            }
        } else {
            let (kept, cut) = cut(self.magnitude, -self.exponent);
            kept + u128::from(rounding.is_up(self.negative, kept & 1 == 1, cut))
        };
        let magnitude = magnitude.min(i128::MAX as u128) as i128;
        if self.negative { -magnitude } else { magnitude }
    }
}

/// A magnitude without its lowest bits. The lowest remaining bit is set if any lost bit was set.
fn jammed(magnitude: u128, shift: i32) -> u128 {
    match shift {
        0 => magnitude,
        1..=127 => magnitude >> shift | u128::from(magnitude << (128 - shift) != 0),
        _ => u128::from(magnitude != 0),
    }
}

/// A magnitude without its lowest bits, and the lost part.
fn cut(magnitude: u128, shift: i32) -> (u128, Cut) {
    if shift <= 0 {
        return (magnitude, Cut::Nothing);
    }
    if magnitude == 0 {
        return (0, Cut::Nothing);
    }
    if shift > 128 {
        return (0, Cut::Below);
    }
    let kept = magnitude.checked_shr(shift as u32).unwrap_or(0);
    let rest = magnitude << (128 - shift);
    let half = 1 << 127;
    (
        kept,
        match rest.cmp(&half) {
            Ordering::Equal => Cut::Half,
            Ordering::Greater => Cut::Above,
            Ordering::Less if rest == 0 => Cut::Nothing,
            Ordering::Less => Cut::Below,
        },
    )
}

impl Format {
    /// The number of bits.
    pub const fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// The bits of the NaN that operations return.
    pub const fn nan(self) -> u64 {
        self.nan
    }

    /// The mask of the sign bit.
    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// The bits of the greatest finite number.
    pub const fn greatest(self) -> u64 {
        self.greatest
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The bits of an infinity; those of the greatest number if the format has no infinity.
    pub fn infinity(self, negative: bool) -> u64 {
        let magnitude = if self.infinities { self.greatest + 1 } else { self.greatest };
        if negative { self.sign() | magnitude } else { magnitude }
    }

    /// The value of some bits.
    pub fn value(self, bits: u64) -> Value {
        let negative = bits & self.sign() != 0;
        let bits = bits & (self.sign() - 1);
        if bits > self.greatest {
            let infinite = self.infinities && bits == self.greatest + 1;
            return if infinite { Value::Infinite(negative) } else { Value::Nan };
        }
        let (field, fraction) = (bits >> self.fraction, bits & ((1 << self.fraction) - 1));
        let magnitude = if field == 0 { fraction } else { fraction | 1 << self.fraction };
        let exponent = field.max(1) as i32 - self.bias() - self.fraction as i32;
        Value::Finite(Exact { negative, magnitude: magnitude.into(), exponent })
    }

    /// Whether some bits are a subnormal number.
    pub fn is_subnormal(self, bits: u64) -> bool {
        let bits = bits & (self.sign() - 1);
        bits != 0 && bits >> self.fraction == 0
    }

    /// A subnormal number becomes 0 with its sign. Other bits stay.
    pub fn flushed(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign() } else { bits }
    }

    /// The bits of an exact number, rounded once.
    pub fn round(self, exact: Exact, rounding: Rounding) -> u64 {
        let sign = if exact.negative { self.sign() } else { 0 };
        if exact.is_zero() {
            return sign;
        }
        let top = exact.exponent + 127 - exact.magnitude.leading_zeros() as i32;
        // The weight of the last place, which is at least that of the subnormal numbers.
        let last = top.max(1 - self.bias()) - self.fraction as i32;
        let (kept, cut) = cut(exact.magnitude, last - exact.exponent);
        // A magnitude with fewer bits than the precision is kept, shifted up.
        let kept = if last < exact.exponent { kept << (exact.exponent - last) } else { kept };
        let kept = kept as u64 + u64::from(rounding.is_up(exact.negative, kept & 1 == 1, cut));
        // The exponent field counts from 1, and a carry of the fraction correctly increments it. A
        // number without the leading bit is subnormal, and its exponent field is 0.
        let field = (last + self.fraction as i32 + self.bias()) as u64;
        let magnitude = ((field - 1) << self.fraction) + kept;
        if magnitude <= self.greatest {
            return sign | magnitude;
        }
        let away = match rounding {
            Rounding::Nearest | Rounding::NearestAway => true,
            Rounding::Zero => false,
            Rounding::Down => exact.negative,
            Rounding::Up => !exact.negative,
        };
        if away { self.infinity(exact.negative) } else { sign | self.greatest }
    }

    /// The bits of a value.
    pub fn of_value(self, value: Value, rounding: Rounding) -> u64 {
        match value {
            Value::Nan => self.nan,
            Value::Infinite(negative) => self.infinity(negative),
            Value::Finite(exact) => self.round(exact, rounding),
        }
    }

    /// A number rounded to an integral one in the same format: `cvt.rni` and so on.
    pub fn integral(self, bits: u64, rounding: Rounding) -> u64 {
        match self.value(bits) {
            Value::Nan => self.nan,
            Value::Finite(exact) if exact.exponent < 0 => {
                let whole = exact.rounded(rounding);
                let sign = if exact.negative { self.sign() } else { 0 };
                self.round(Exact { negative: false, ..Exact::integer(whole.abs()) }, Rounding::Nearest) | sign
            }
            _ => bits & (self.sign() << 1).wrapping_sub(1),
        }
    }

    /// `a + b`.
    pub fn add(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        match (self.value(a), self.value(b)) {
            (Value::Finite(a), Value::Finite(b)) => self.round(a.plus(b, rounding), rounding),
            (Value::Nan, _) | (_, Value::Nan) => self.nan,
            (Value::Infinite(a), Value::Infinite(b)) if a != b => self.nan,
            (Value::Infinite(negative), _) | (_, Value::Infinite(negative)) => self.infinity(negative),
        }
    }

    /// `a * b`.
    pub fn mul(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        self.of_value(product(self.value(a), self.value(b)), rounding)
    }

    /// `a * b + c`.
    pub fn fma(self, a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
        match (product(self.value(a), self.value(b)), self.value(c)) {
            (Value::Finite(product), Value::Finite(c)) => self.round(product.plus(c, rounding), rounding),
            (Value::Nan, _) | (_, Value::Nan) => self.nan,
            (Value::Infinite(a), Value::Infinite(b)) if a != b => self.nan,
            (Value::Infinite(negative), _) | (_, Value::Infinite(negative)) => self.infinity(negative),
        }
    }

    /// `a / b`.
    pub fn div(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        let negative = (a ^ b) & self.sign() != 0;
        match (self.value(a), self.value(b)) {
            (Value::Nan, _) | (_, Value::Nan) | (Value::Infinite(_), Value::Infinite(_)) => self.nan,
            (Value::Finite(a), Value::Finite(b)) if a.is_zero() && b.is_zero() => self.nan,
            (Value::Finite(a), Value::Finite(b)) if !b.is_zero() => self.round(a.over(b), rounding),
            (Value::Infinite(_), _) | (_, Value::Finite(_)) => self.infinity(negative),
            (_, Value::Infinite(_)) => {
                if negative {
                    self.sign()
                } else {
                    0
                }
            }
        }
    }

    /// The square root.
    pub fn sqrt(self, a: u64, rounding: Rounding) -> u64 {
        match self.value(a) {
            Value::Finite(exact) if exact.is_zero() => a,
            Value::Finite(exact) if !exact.negative => self.round(exact.root(), rounding),
            Value::Infinite(false) => a,
            _ => self.nan,
        }
    }
}

/// The exact product of two values.
fn product(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(a.times(b)),
        (Value::Infinite(_), Value::Finite(zero)) | (Value::Finite(zero), Value::Infinite(_)) if zero.is_zero() => {
            Value::Nan
        }
        (Value::Infinite(a), Value::Infinite(b)) => Value::Infinite(a != b),
        (Value::Infinite(a), Value::Finite(b)) | (Value::Finite(b), Value::Infinite(a)) => {
            Value::Infinite(a != b.negative)
        }
    }
}
