//! XOR of one bit field into another, at any positions.
//!
//! Law: `bit_xor(bits, into, from)` XORs the field of `bits` bits at position `from` into the field
//! of `bits` bits at position `into`:
//!
//! ```text
//! X(x) = x ^ (((x >> from) & (2^bits - 1)) << into)
//! ```
//!
//! If the fields do not overlap, this is a swizzle and its own inverse. If they overlap, a bit may
//! be both source and target, and the inverse is a bit matrix that restores one bit after another.
//! If both are the same field, the map clears it, and there is no inverse.

use core::fmt;
use core::str::FromStr;

use crate::bits::matrix::{BitMatrix, Columns, low_bits};
use crate::bits::swizzle::Swizzle;
use crate::ground::words::debug_as_text;
use crate::limits::MAX_SWIZZLE_BITS;
use crate::refusal::error::LayoutError;
use crate::value::tree::Tree;

/// A map of offsets that XORs one field of bits into another.
///
/// ```
/// use tilewright_layout::BitXor;
///
/// let map = BitXor::new(3, 4, 3).unwrap();
/// assert_eq!(map.apply(0x18), 0x28); // bits 3 and 4 flip bits 4 and 5
/// assert_eq!(map.apply(0x28), 0x78); // not its own inverse: the fields overlap
/// assert_eq!(map.inverse().unwrap().apply(0x28), 0x18);
/// assert_eq!(map.to_string(), "bit_xor(3,4,3)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BitXor {
    bits: u8,
    into: u8,
    from: u8,
}

impl BitXor {
    /// The map that XORs the `bits` bits at position `from` into those at position `into`.
    ///
    /// Errors: a number is negative; a field ends beyond [`MAX_SWIZZLE_BITS`].
    pub fn new(bits: i64, into: i64, from: i64) -> Result<BitXor, LayoutError> {
        const OP: &str = "bit_xor";
        for (what, value) in
            [("the number of bits", bits), ("the field that is flipped", into), ("the field that is read", from)]
        {
            if value < 0 {
                return Err(LayoutError::Argument { op: OP, what, value, wanted: "at least 0" });
            }
        }
        let top = bits.saturating_add(into.max(from));
        if top > MAX_SWIZZLE_BITS {
            let (what, wanted) = ("the end of a field", "at most 63, so that the sign stays");
            return Err(LayoutError::Argument { op: OP, what, value: top, wanted });
        }
        Ok(BitXor { bits: bits as u8, into: into as u8, from: from as u8 })
    }

    /// The number of bits that may be flipped.
    pub fn bits(self) -> i64 {
        i64::from(self.bits)
    }

    /// The first bit that is flipped.
    pub fn into_bit(self) -> i64 {
        i64::from(self.into)
    }

    /// The first bit that is read.
    pub fn from_bit(self) -> i64 {
        i64::from(self.from)
    }

    /// The image of an offset. A negative offset is taken in two's complement, and keeps its sign.
    #[inline]
    pub fn apply(self, offset: i64) -> i64 {
        offset ^ (((offset >> self.from) & low_bits(usize::from(self.bits)) as i64) << self.into)
    }

    /// The map as a matrix, with as many bits as the two fields reach.
    pub fn matrix(self) -> BitMatrix {
        let top = if self.bits == 0 { 0 } else { self.bits + self.into.max(self.from) };
        let columns: Columns = (0..top).map(|bit| self.apply(1 << bit) as u64).collect();
        BitMatrix::from_valid(columns.len(), columns)
    }

    /// The equal swizzle; None if the fields overlap.
    ///
    /// ```
    /// use tilewright_layout::BitXor;
    ///
    /// assert_eq!(BitXor::new(3, 4, 7).unwrap().swizzle().unwrap().to_string(), "S<3,4,3>");
    /// assert_eq!(BitXor::new(3, 4, 3).unwrap().swizzle(), None);
    /// ```
    pub fn swizzle(self) -> Option<Swizzle> {
        Swizzle::new(self.bits(), self.into_bit().min(self.from_bit()), self.from_bit() - self.into_bit()).ok()
    }

    /// The inverse map.
    ///
    /// Errors: both fields are the same, so that the map clears it ([`LayoutError::Collapse`]).
    pub fn inverse(self) -> Result<BitMatrix, LayoutError> {
        self.matrix().inverse()
    }
}

impl From<Swizzle> for BitXor {
    fn from(swizzle: Swizzle) -> BitXor {
        // Construction keeps the fields of a swizzle within 63 bits.
        let (base, shift) = (swizzle.base(), swizzle.shift());
        let (into, from) = if shift >= 0 { (base, base + shift) } else { (base - shift, base) };
        BitXor { bits: swizzle.bits() as u8, into: into as u8, from: from as u8 }
    }
}

impl fmt::Display for BitXor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit_xor({},{},{})", self.bits, self.into, self.from)
    }
}

debug_as_text!(BitXor);

impl FromStr for BitXor {
    type Err = LayoutError;

    /// Parses `bit_xor(bits,into,from)`.
    fn from_str(text: &str) -> Result<BitXor, LayoutError> {
        let syntax = LayoutError::Syntax { at: 0, expected: "a map bit_xor(bits,into,from)" };
        let Some(numbers) = text.trim().strip_prefix("bit_xor") else { return Err(syntax) };
        let numbers: Tree<i64> = numbers.parse().map_err(|_| syntax.clone())?;
        match numbers.leaves() {
            [bits, into, from] if numbers.depth() == 1 => BitXor::new(*bits, *into, *from),
            _ => Err(syntax),
        }
    }
}
