//! Swizzles: permutations of offsets that flip bits by other bits.
//!
//! Law: `S<b,m,s>` with `s >= 0` reads the `b` bits from `m+s` on and flips by them, each its own, the `b` bits from `m` on. With `s < 0` it
//! reads the bits from `m` on, below, and flips those from `m-s` on (CuTe `Swizzle<b,m,s>`):
//!
//! ```text
//! s >= 0    S(x) = x ^ ((x >> s) & mask),     mask = (2^b - 1) << m
//! s <  0    S(x) = x ^ ((x & mask) << -s)
//! ```
//!
//! `|s| >= b` keeps what is read apart from what is flipped. So reading `S(x)` gives what reading `x` gives, and `S(S(x)) = x`: a swizzle is its own
//! inverse, and permutes every aligned block of `2^(m + b + |s|)` offsets.

use core::fmt;
use core::str::FromStr;

use crate::error::LayoutError;
use crate::tree::Tree;

/// The most bits of an offset that a swizzle may touch: the sign stays.
pub const MAX_SWIZZLE_BITS: i64 = 63;

/// A permutation of offsets: `b` bits flipped by `b` others.
///
/// ```
/// use tilewright_layout::Swizzle;
///
/// let swizzle = Swizzle::new(3, 4, 3).unwrap();
/// assert_eq!(swizzle.apply(0x80), 0x90); // bit 7 flips bit 4
/// assert_eq!(swizzle.apply(0x90), 0x80);
/// assert_eq!(swizzle.apply(0x40), 0x40); // bit 6 is not read
/// assert_eq!(swizzle.to_string(), "S<3,4,3>");
/// assert_eq!("Sw<3,4,3>".parse::<Swizzle>().unwrap(), swizzle);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Swizzle {
    bits: u8,
    base: u8,
    shift: i8,
}

impl Swizzle {
    /// The swizzle `S<bits,base,shift>`.
    ///
    /// Errors: `bits` or `base` is negative; `|shift| < bits`; `base + bits + |shift|` is more than [`MAX_SWIZZLE_BITS`].
    pub fn new(bits: i64, base: i64, shift: i64) -> Result<Swizzle, LayoutError> {
        if let Some(swizzle) = Swizzle::checked(bits, base, shift) {
            return Ok(swizzle);
        }
        let refuse = |what, value, wanted| Err(LayoutError::Argument { op: "swizzle", what, value, wanted });
        for (what, value) in [("the number of bits", bits), ("the base", base)] {
            if value < 0 {
                return refuse(what, value, "at least 0");
            }
        }
        match shift.checked_abs().filter(|distance| *distance >= bits) {
            Some(distance) => {
                let top = base.saturating_add(bits).saturating_add(distance);
                refuse("bits + base + |shift|", top, "at most 63, so that the sign stays")
            }
            None => refuse("the shift", shift, "at least the number of bits, up or down"),
        }
    }

    /// As [`Swizzle::new`], for constants; none where that refuses.
    ///
    /// ```
    /// use tilewright_layout::Swizzle;
    ///
    /// const SWIZZLE: Swizzle = Swizzle::checked(3, 4, 3).unwrap();
    /// const IMAGE: i64 = SWIZZLE.apply(0x80);
    /// assert_eq!(IMAGE, 0x90);
    /// ```
    pub const fn checked(bits: i64, base: i64, shift: i64) -> Option<Swizzle> {
        let Some(distance) = shift.checked_abs() else { return None };
        let top = base.saturating_add(bits).saturating_add(distance);
        if bits < 0 || base < 0 || distance < bits || top > MAX_SWIZZLE_BITS {
            return None;
        }
        Some(Swizzle { bits: bits as u8, base: base as u8, shift: shift as i8 })
    }

    /// How many bits are flipped.
    pub fn bits(self) -> i64 {
        i64::from(self.bits)
    }

    /// The lower of the first bit read and the first bit flipped.
    pub fn base(self) -> i64 {
        i64::from(self.base)
    }

    /// How far above the bits flipped the bits read are; negative when they are below.
    pub fn shift(self) -> i64 {
        i64::from(self.shift)
    }

    /// Whether nothing is flipped.
    pub fn is_identity(self) -> bool {
        self.bits == 0
    }

    /// The image of an offset; a negative one by its two's complement, so that the sign stays.
    #[inline]
    pub const fn apply(self, offset: i64) -> i64 {
        let mask = ((1_i64 << self.bits) - 1) << self.base;
        let distance = self.shift.unsigned_abs();
        // Construction keeps every shift and every mask within 63 bits.
        if self.shift >= 0 { offset ^ ((offset >> distance) & mask) } else { offset ^ ((offset & mask) << distance) }
    }

    /// The bits that are flipped.
    pub(crate) fn flipped(self) -> u64 {
        let mask = ((1_u64 << self.bits) - 1) << self.base;
        if self.shift >= 0 { mask } else { mask << self.shift.unsigned_abs() }
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S<{},{},{}>", self.bits, self.base, self.shift)
    }
}

impl fmt::Debug for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Swizzle({self})")
    }
}

impl FromStr for Swizzle {
    type Err = LayoutError;

    /// Reads `S<3,4,3>`, and CuTe's `Sw<3,4,3>` and `SW_3_4_3`.
    fn from_str(text: &str) -> Result<Swizzle, LayoutError> {
        let inner = text.trim();
        let syntax = LayoutError::Syntax { at: 0, expected: "a swizzle S<bits,base,shift>" };
        let angles = || inner.strip_prefix("Sw<").or(inner.strip_prefix("S<"))?.strip_suffix('>');
        let (numbers, separator) = match (inner.strip_prefix("SW_"), angles()) {
            (Some(numbers), _) => (numbers, '_'),
            (_, Some(numbers)) => (numbers, ','),
            _ => return Err(syntax),
        };
        let mut numbers = numbers.split(separator);
        let mut next = || {
            let tree: Tree<i64> = numbers.next()?.parse().ok()?;
            tree.is_leaf().then(|| tree.leaves().first().copied())?
        };
        match (next(), next(), next(), next()) {
            (Some(bits), Some(base), Some(shift), None) if numbers.next().is_none() => Swizzle::new(bits, base, shift),
            _ => Err(syntax),
        }
    }
}
