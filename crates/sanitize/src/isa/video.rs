//! Video instructions: on parts of registers (`vadd`, `vshl`, `vmad` ..), and on two or four
//! numbers in a register (`vadd2`, `vabsdiff4` ..).
//!
//! Law of those of one number: each operand is a register, or a byte or half of one, extended by
//! its type. The result is exact. With `.sat` it is held within 32 bits, or within the part that it
//! goes to, with a sign if its type has one. Then it is combined with a third operand: added to it,
//! the lower or the greater one of the two, or it replaces a part of it. The third operand has a
//! sign whatever the types say, and a result without one is compared as its lower 32 bits: the
//! document leaves this open, and an H200 does so.
//!
//! An H200 does not hold all results within their type where the document says so. These forms have
//! no law here: [`ScalarVideo::is_open`].
//!
//! Law of those of several: each part of the result is that of two parts chosen from the four or
//! eight of both operands, computed exactly and cut to its bits, or with `.sat` to the least and
//! greatest number of its type. What the mask leaves out comes from a third operand. With `.add`
//! the result is the sum of the parts within the mask and of the third operand.
//!
//! (PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions".)

use super::compare::Comparison;

/// What is computed of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartOperation {
    /// Their sum.
    Add,
    /// Their difference.
    Sub,
    /// Half of their sum, rounded up from 0 on and down below.
    Average,
    /// The magnitude of their difference.
    AbsDiff,
    /// The lower one.
    Min,
    /// The greater one.
    Max,
    /// The first, shifted to the left by the second: at most by 32, or by its lower five bits.
    ShiftLeft(ShiftLimit),
    /// The same to the right.
    ShiftRight(ShiftLimit),
    /// 1 if they compare so, else 0.
    Compare(Comparison),
}

/// What becomes of the amount of a shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShiftLimit {
    /// More than 32 counts as 32.
    Clamp,
    /// The lower five bits count.
    Wrap,
}

impl PartOperation {
    /// The exact result; a shift to the left by 32 has up to 65 bits.
    fn of(self, a: i64, b: i64) -> i128 {
        let amount = |limit| match limit {
            ShiftLimit::Clamp => b.clamp(0, 32),
            ShiftLimit::Wrap => b & 31,
        };
        let (left, right) = (i128::from(a), i128::from(b));
        match self {
            Self::Add => left + right,
            Self::Sub => left - right,
            Self::Average if a + b >= 0 => (left + right + 1) >> 1,
            Self::Average => (left + right) >> 1,
            Self::AbsDiff => (left - right).abs(),
            Self::Min => left.min(right),
            Self::Max => left.max(right),
            Self::ShiftLeft(limit) => left << amount(limit),
            Self::ShiftRight(limit) => left >> amount(limit),
            Self::Compare(comparison) => comparison.integers(a, b).into(),
        }
    }
}

/// The part of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RegisterPart {
    /// All 32 bits.
    #[default]
    Whole,
    /// A half: 0 or 1.
    Half(u32),
    /// A byte: 0 to 3.
    Byte(u32),
}

impl RegisterPart {
    /// The part of a suffix such as `h1` or `b3`.
    pub fn read(word: &str) -> Option<Self> {
        Some(match word {
            "h0" => Self::Half(0),
            "h1" => Self::Half(1),
            "b0" => Self::Byte(0),
            "b1" => Self::Byte(1),
            "b2" => Self::Byte(2),
            "b3" => Self::Byte(3),
            _ => return None,
        })
    }

    /// Its first bit, and how many it has.
    fn bits(self) -> (u32, u32) {
        match self {
            Self::Whole => (0, 32),
            Self::Half(at) => (16 * (at & 1), 16),
            Self::Byte(at) => (8 * (at & 3), 8),
        }
    }

    /// Its value.
    pub fn of(self, word: u32, signed: bool) -> i64 {
        let (at, bits) = self.bits();
        extended(word >> at, bits, signed)
    }
}

/// The lower bits of a word as a number.
fn extended(word: u32, bits: u32, signed: bool) -> i64 {
    let up = word << (32 - bits);
    if signed { i64::from(up as i32 >> (32 - bits)) } else { i64::from(up >> (32 - bits)) }
}

/// The least and the greatest number of a type.
fn range(bits: u32, signed: bool) -> (i64, i64) {
    match signed {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// What a result of one number is combined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Secondary {
    /// Nothing.
    Nothing,
    /// The third operand is added.
    Add,
    /// The lower one of the two.
    Min,
    /// The greater one of the two.
    Max,
    /// It replaces this part of the third operand.
    Merge(RegisterPart),
}

/// An instruction on one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScalarVideo {
    /// What it computes.
    pub operation: PartOperation,
    /// The parts of the two operands.
    pub parts: [RegisterPart; 2],
    /// Whether the result and the operands have signs.
    pub signed: [bool; 3],
    /// Whether the result is held within its type.
    pub saturates: bool,
    /// What follows.
    pub secondary: Secondary,
}

impl ScalarVideo {
    /// Whether the document and an H200 give different results: with `.sat` where a part is
    /// replaced by what may be negative, of sums and differences with whole registers, and of
    /// shifts to the left; and where the result is compared with the third operand.
    pub fn is_open(&self) -> bool {
        let is_left = matches!(self.operation, PartOperation::ShiftLeft(_));
        let whole = self.parts.iter().filter(|part| **part == RegisterPart::Whole).count();
        let is_whole = matches!(self.operation, PartOperation::Add | PartOperation::Sub)
            && (whole == 2 || whole == 1 && self.signed != [true; 3]);
        let replaces = matches!(self.secondary, Secondary::Merge(_)) && self.operation != PartOperation::AbsDiff;
        let compares = matches!(self.secondary, Secondary::Min | Secondary::Max);
        self.saturates && (is_left || is_whole || replaces) || compares
    }

    /// The result of two registers and of the third operand.
    ///
    /// ```
    /// use tilewright_sanitize::isa::video::{PartOperation, RegisterPart, ScalarVideo, Secondary};
    ///
    /// // vadd.s32.s32.s32 d.b3, a.h1, b.b0, c
    /// let own = ScalarVideo {
    ///     operation: PartOperation::Add,
    ///     parts: [RegisterPart::Half(1), RegisterPart::Byte(0)],
    ///     signed: [true; 3],
    ///     saturates: false,
    ///     secondary: Secondary::Merge(RegisterPart::Byte(3)),
    /// };
    /// assert_eq!(own.of(0x0070_0000, 0x20, 0x1122_3344), 0x9022_3344); // 112 + 32
    /// ```
    pub fn of(&self, a: u32, b: u32, c: u32) -> u32 {
        let value = self.operation.of(self.parts[0].of(a, self.signed[1]), self.parts[1].of(b, self.signed[2]));
        let width = match self.secondary {
            Secondary::Merge(part) => part.bits().1,
            _ => 32,
        };
        let (least, greatest) = range(width, self.signed[0]);
        let value = if self.saturates { value.clamp(least.into(), greatest.into()) } else { value };
        let compared = if self.signed[0] { value } else { i128::from(value as u32) };
        let other = i128::from(c as i32);
        match self.secondary {
            Secondary::Nothing => value as u32,
            Secondary::Add => (value as u32).wrapping_add(c),
            Secondary::Min => compared.min(other) as u32,
            Secondary::Max => compared.max(other) as u32,
            Secondary::Merge(part) => {
                let (at, bits) = part.bits();
                let mask = (u32::MAX >> (32 - bits)) << at;
                c & !mask | (value as u32) << at & mask
            }
        }
    }
}

/// `vmad`: a product of parts, an addend, and a shift.
///
/// Law: `(a b + c) >> shift`, exactly, with `a b` or `c` negated; `.po` adds 1. The addend has a
/// sign, as on an H200. If no factor has one and nothing is negated, what is shifted has 64 bits
/// without a sign. With `.sat` the result is held within 32 bits, which have a sign if a factor has
/// one or something is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VideoProduct {
    /// The parts of the factors.
    pub parts: [RegisterPart; 2],
    /// Whether the factors have signs.
    pub signed: [bool; 2],
    /// Whether the product and the addend are negated.
    pub negated: [bool; 2],
    /// Whether 1 is added.
    pub plus_one: bool,
    /// Bits by which the sum is shifted to the right: 0, 7 or 15.
    pub shift: u32,
    /// Whether the result is held within 32 bits.
    pub saturates: bool,
}

impl VideoProduct {
    /// The result of the factors and the addend.
    ///
    /// ```
    /// use tilewright_sanitize::isa::video::{RegisterPart, VideoProduct};
    ///
    /// // vmad.s32.s32.s32.shr7 d, a.h0, b.h0, -c
    /// let own = VideoProduct {
    ///     parts: [RegisterPart::Half(0); 2],
    ///     signed: [true; 2],
    ///     negated: [false, true],
    ///     plus_one: false,
    ///     shift: 7,
    ///     saturates: false,
    /// };
    /// assert_eq!(own.of(100, 100, 16), ((100 * 100 - 16) >> 7) as u32);
    /// ```
    pub fn of(&self, a: u32, b: u32, c: u32) -> u32 {
        let is_signed = self.signed.contains(&true) || self.negated.contains(&true);
        let factor = |at: usize, word: u32| i128::from(self.parts[at].of(word, self.signed[at]));
        let product = factor(0, a) * factor(1, b);
        let addend = i128::from(c as i32);
        let sum = match self.negated {
            [true, _] => addend - product,
            // The bits of the addend are turned over before it is extended.
            [_, true] => product + i128::from(!(c as i32)) + 1,
            _ => product + addend,
        };
        let shifted = (sum + i128::from(self.plus_one)) >> self.shift;
        let shifted = if is_signed || self.shift == 0 { shifted } else { i128::from(shifted as u64) };
        match self.saturates {
            false => shifted as u32,
            true => {
                let (least, greatest) = range(32, is_signed);
                shifted.clamp(least.into(), greatest.into()) as u32
            }
        }
    }
}

/// An instruction on several numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartInstruction {
    /// What it computes.
    pub operation: PartOperation,
    /// Bits of a part: 8 or 16.
    pub bits: u32,
    /// Whether the parts of the result and of the operands have signs.
    pub signed: [bool; 3],
    /// Whether results are held within their type.
    pub saturates: bool,
    /// Whether the parts are summed.
    pub sums: bool,
    /// For each part of the result the number of the part of either operand, of those of the first
    /// register and then of the second.
    pub chosen: [[u8; 4]; 2],
    /// Bit `i` says whether part `i` of the result is computed.
    pub mask: u8,
}

impl PartInstruction {
    /// The instruction on parts that lie at the same place in both registers, without signs.
    pub fn new(operation: PartOperation, bits: u32) -> Self {
        let chosen = if bits == 8 { [[0, 1, 2, 3], [4, 5, 6, 7]] } else { [[0, 1, 0, 0], [2, 3, 0, 0]] };
        Self { operation, bits, signed: [false; 3], saturates: false, sums: false, chosen, mask: 15 }
    }

    /// The result of two registers and of the third operand.
    ///
    /// ```
    /// use tilewright_sanitize::isa::video::{PartInstruction, PartOperation};
    ///
    /// let own = PartInstruction::new(PartOperation::AbsDiff, 8);
    /// assert_eq!(own.of(0x05_00_ff_10, 0x03_01_00_20, 0), 0x02_01_ff_10);
    /// let sum = PartInstruction { sums: true, ..own };
    /// assert_eq!(sum.of(0x05_00_ff_10, 0x03_01_00_20, 5), 2 + 1 + 255 + 16 + 5);
    /// let lower = PartInstruction { mask: 3, ..own };
    /// assert_eq!(lower.of(0x05_00_ff_10, 0x03_01_00_20, 0xaabb_ccdd), 0xaabb_ff10);
    /// ```
    pub fn of(&self, a: u32, b: u32, c: u32) -> u32 {
        let both = u64::from(a) | u64::from(b) << 32;
        let part = |number: u8, signed: bool| {
            extended((both >> ((u32::from(number) * self.bits) & 63)) as u32, self.bits, signed)
        };
        let (least, greatest) = range(self.bits, self.signed[0]);
        let ones = u32::MAX >> (32 - self.bits);
        let (mut packed, mut sum) = (0_u32, c);
        for at in 0..(32 / self.bits) as usize {
            let shift = at as u32 * self.bits;
            if self.mask >> at & 1 == 0 {
                packed |= c & ones << shift;
                continue;
            }
            let (a, b) = (part(self.chosen[0][at], self.signed[1]), part(self.chosen[1][at], self.signed[2]));
            let exact = self.operation.of(a, b);
            let value = if self.saturates { exact.clamp(least.into(), greatest.into()) } else { exact };
            packed |= (value as u32 & ones) << shift;
            sum = sum.wrapping_add(value as u32);
        }
        if self.sums { sum } else { packed }
    }
}
