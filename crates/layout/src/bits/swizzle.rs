//! Swizzles: permutations of offsets that flip bits by other bits.
//!
//! Law: `S<b,m,s>` with `s >= 0` XORs the `b` bits at position `m+s` into the `b` bits at position
//! `m`. With `s < 0` it XORs the `b` bits at position `m` into those at position `m-s` (CuTe
//! `Swizzle<b,m,s>`):
//!
//! ```text
//! s >= 0    S(x) = x ^ ((x >> s) & mask),     mask = (2^b - 1) << m
//! s <  0    S(x) = x ^ ((x & mask) << -s)
//! ```
//!
//! `|s| >= b` keeps the bits that are read disjoint from the bits that are flipped. So `S(x)` has
//! the same source bits as `x`, and `S(S(x)) = x`: a swizzle is its own inverse, and permutes every
//! aligned block of `2^(m + b + |s|)` offsets.

use core::fmt;
use core::str::FromStr;

use crate::bits::matrix::{BitMatrix, Columns};
use crate::ground::words::debug_as_text;
use crate::limits::MAX_SWIZZLE_BITS;
use crate::refusal::error::LayoutError;
use crate::value::number::gcd;
use crate::value::tree::Tree;

/// A permutation of offsets that XORs `b` bits into `b` others.
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
    /// Errors: `bits` or `base` is negative; `|shift| < bits`; `base + bits + |shift|` is more than
    /// [`MAX_SWIZZLE_BITS`].
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

    /// As [`Swizzle::new`], for constants; None if that refuses.
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

    /// The number of bits that are flipped.
    pub fn bits(self) -> i64 {
        i64::from(self.bits)
    }

    /// The position of the lower of the two fields, that of the bits read and that of the bits
    /// flipped.
    pub fn base(self) -> i64 {
        i64::from(self.base)
    }

    /// The distance from the flipped bits up to the bits read; negative if those are below.
    pub fn shift(self) -> i64 {
        i64::from(self.shift)
    }

    /// Whether no bit is flipped.
    pub fn is_identity(self) -> bool {
        self.bits == 0
    }

    /// The image of an offset. A negative offset is taken in two's complement, and keeps its sign.
    #[inline]
    pub const fn apply(self, offset: i64) -> i64 {
        let mask = ((1_i64 << self.bits) - 1) << self.base;
        let distance = self.shift.unsigned_abs();
        // Construction keeps every shift and every mask within 63 bits.
        if self.shift >= 0 { offset ^ ((offset >> distance) & mask) } else { offset ^ ((offset & mask) << distance) }
    }

    /// The mask of the bits that are flipped.
    pub(crate) fn flipped(self) -> u64 {
        let mask = ((1_u64 << self.bits) - 1) << self.base;
        if self.shift >= 0 { mask } else { mask << self.shift.unsigned_abs() }
    }

    /// The number of lowest bits that may be read or flipped: the swizzle permutes every aligned
    /// block of two to this power.
    pub(crate) fn reach(self) -> usize {
        // At most 63, by construction.
        if self.bits == 0 { 0 } else { usize::from(self.bits + self.base + self.shift.unsigned_abs()) }
    }

    /// The swizzle as a matrix of `bits` input and output bits.
    ///
    /// Errors: it reaches beyond those bits; `bits` is more than [`crate::limits::MAX_BITS`].
    ///
    /// ```
    /// use tilewright_layout::Swizzle;
    ///
    /// let swizzle = Swizzle::new(1, 0, 2).unwrap();
    /// assert_eq!(swizzle.matrix(3).unwrap().columns(), [1, 2, 0b101]);
    /// assert_eq!(swizzle.matrix(2).unwrap_err().code(), "E0116");
    /// ```
    pub fn matrix(self, bits: usize) -> Result<BitMatrix, LayoutError> {
        let value = i64::try_from(bits).unwrap_or(i64::MAX);
        if bits < self.reach() {
            let wanted = "at least bits + base + |shift|";
            return Err(LayoutError::Argument { op: "bit_matrix", what: "the number of bits", value, wanted });
        }
        let columns = BitMatrix::identity(bits)?;
        BitMatrix::new(bits, columns.columns().iter().map(|column| self.apply(*column as i64) as u64))
    }

    /// This swizzle after another one of any shift, as a matrix with as many bits as the two need.
    /// [`BitMatrix::swizzle`] is the equal swizzle, if there is one.
    ///
    /// ```
    /// use tilewright_layout::Swizzle;
    ///
    /// let swizzle = |text: &str| text.parse::<Swizzle>().unwrap();
    /// let both = swizzle("S<1,0,3>").after(swizzle("S<1,1,3>"));
    /// assert_eq!(both.swizzle(), Some(swizzle("S<2,0,3>")));
    /// assert_eq!(swizzle("S<1,0,1>").after(swizzle("S<1,0,2>")).to_string(), "F2<3>[1,3,5]");
    /// ```
    pub fn after(self, first: Swizzle) -> BitMatrix {
        let columns = (0..self.reach().max(first.reach())).map(|bit| self.apply(first.apply(1 << bit)) as u64);
        let columns: Columns = columns.collect();
        BitMatrix::from_valid(columns.len(), columns)
    }

    /// The swizzle for elements that are `n` times as wide.
    ///
    /// Law: the result `R` maps the number of a block of `n` offsets to that of its image:
    /// `R(floor(x / n)) = floor(S(x) / n)`. Flips within a block are dropped. So `R` exists unless
    /// a bit within a block flips a bit above.
    ///
    /// Errors: `n` is not a power of two, unless nothing is flipped; a bit of the offset within a
    /// block flips a bit above ([`LayoutError::NotDivisible`], bit numbers).
    ///
    /// ```
    /// use tilewright_layout::Swizzle;
    ///
    /// let upcast = |text: &str, n| text.parse::<Swizzle>().unwrap().upcast(n);
    /// assert_eq!(upcast("S<3,4,3>", 8).unwrap().to_string(), "S<3,1,3>");
    /// assert_eq!(upcast("S<3,1,3>", 4).unwrap().to_string(), "S<2,0,3>");
    /// assert!(upcast("S<2,0,-3>", 2).is_err()); // bit 0 flips bit 3
    /// ```
    pub fn upcast(self, n: i64) -> Result<Swizzle, LayoutError> {
        let Some(drop) = self.power("upcast", n)? else { return Ok(self) };
        let (bits, base, shift) = (self.bits(), self.base(), self.shift());
        // The number of bits of the lower field that are dropped.
        let lost = (drop - base).clamp(0, bits);
        if shift < 0 && lost > 0 && base + lost - 1 - shift >= drop {
            return Err(LayoutError::NotDivisible {
                op: "upcast",
                path: Default::default(),
                value: 1_i64.checked_shl(base as u32).unwrap_or(i64::MAX),
                divisor: n,
            });
        }
        if lost == bits {
            return Swizzle::new(0, 0, 0);
        }
        Swizzle::new(bits - lost, (base - drop).max(0), shift)
    }

    /// The swizzle for elements that are `n` times as narrow: the parts of an element stay
    /// contiguous and in order.
    ///
    /// Errors: `n` is not a power of two, unless nothing is flipped; the bits do not fit in 63.
    ///
    /// ```
    /// use tilewright_layout::Swizzle;
    ///
    /// assert_eq!(Swizzle::new(3, 1, 3).unwrap().downcast(8).unwrap().to_string(), "S<3,4,3>");
    /// ```
    pub fn downcast(self, n: i64) -> Result<Swizzle, LayoutError> {
        match self.power("downcast", n)? {
            Some(added) => Swizzle::new(self.bits(), self.base() + added, self.shift()),
            None => Ok(self),
        }
    }

    /// The same permutation of memory for elements of `new_bits`, where this one is for elements of
    /// `old_bits`, exactly (CuTe `recast_layout`).
    ///
    /// A wide element keeps its parts in order, so no bit within it may be flipped.
    ///
    /// Errors: a width is not positive; a bit within a wide element is read or flipped
    /// ([`LayoutError::Apart`]); as [`Swizzle::upcast`] and [`Swizzle::downcast`] for the two parts
    /// of the ratio in lowest terms.
    ///
    /// ```
    /// use tilewright_layout::Swizzle;
    ///
    /// let swizzle = Swizzle::new(3, 4, 3).unwrap();
    /// assert_eq!(swizzle.recast(16, 8).unwrap().to_string(), "S<3,3,3>");
    /// assert_eq!(swizzle.recast(8, 16).unwrap().to_string(), "S<3,5,3>");
    /// assert_eq!(swizzle.recast(24, 16).unwrap_err().code(), "E0116");
    /// assert_eq!(swizzle.recast(256, 8).unwrap_err().code(), "E0115"); // 16 bytes stay together
    /// ```
    pub fn recast(self, new_bits: i64, old_bits: i64) -> Result<Swizzle, LayoutError> {
        const OP: &str = "recast_layout";
        let (wider, narrower) = ratio(OP, new_bits, old_bits)?;
        let wide = self.power(OP, wider)?;
        self.power(OP, narrower)?;
        if wide.is_some_and(|wide| self.base() < wide) {
            let (path, together) = (Default::default(), 1 << self.base());
            return Err(LayoutError::Apart { op: OP, path, together, needed: wider });
        }
        self.downcast(narrower)?.upcast(wider)
    }

    /// The base-2 logarithm of a power of two; None if no bit is flipped, so that every factor is
    /// possible.
    fn power(self, op: &'static str, n: i64) -> Result<Option<i64>, LayoutError> {
        let refuse = |wanted| Err(LayoutError::Argument { op, what: "the factor", value: n, wanted });
        if n <= 0 {
            return refuse("positive");
        }
        if self.is_identity() {
            return Ok(None);
        }
        if n.count_ones() != 1 {
            return refuse("a power of two, for a swizzle");
        }
        Ok(Some(i64::from(n.trailing_zeros())))
    }
}

/// `new_bits / old_bits` in lowest terms.
pub(crate) fn ratio(op: &'static str, new_bits: i64, old_bits: i64) -> Result<(i64, i64), LayoutError> {
    for (what, value) in [("new_bits", new_bits), ("old_bits", old_bits)] {
        if value <= 0 {
            return Err(LayoutError::Argument { op, what, value, wanted: "positive" });
        }
    }
    // The greatest common divisor of two positive numbers, so it is positive and fits.
    let divisor = gcd(new_bits, old_bits) as i64;
    Ok((new_bits / divisor, old_bits / divisor))
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S<{},{},{}>", self.bits, self.base, self.shift)
    }
}

debug_as_text!(Swizzle);

impl FromStr for Swizzle {
    type Err = LayoutError;

    /// Parses `S<3,4,3>`, and CuTe's `Sw<3,4,3>` and `SW_3_4_3`.
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
