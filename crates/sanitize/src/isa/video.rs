//! Video instructions: on parts of registers (`vadd`, `vshl`, `vmad` ..), and on two or four packed
//! numbers (`vadd2`, `vabsdiff4` ..).
//!
//! Law of scalar video instructions: each operand is a register, or a byte or half of one, extended
//! by its type. The result is exact. With `.sat`, it is clamped to 32 bits, or to the part that it
//! is written to, signed if its type is. Then it is combined with a third operand: by addition, by
//! minimum or maximum, or by replacing a part of it. The third operand is always signed, and an
//! unsigned result is compared as its lower 32 bits: the PTX ISA leaves this open, and an H200 does
//! so.
//!
//! For some forms, the PTX ISA says that the result is clamped to its type, and an H200 does not do
//! so. These forms have no law here: [`ScalarVideo::is_open`].
//!
//! Law of SIMD video instructions: each part of the result is computed exactly from two parts that
//! are selected from the four or eight parts of both operands. It is truncated to its bits, or with
//! `.sat` clamped to the range of its type. Parts that the mask excludes come from a third operand.
//! With `.add`, the result is the sum of the parts in the mask and of the third operand.
//!
//! (PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions".)

use super::compare::Comparison;

/// The operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartOperation {
    /// Their sum.
    Add,
    /// Their difference.
    Sub,
    /// Half of their sum: rounded up if it is not negative, and otherwise down.
    Average,
    /// The magnitude of their difference.
    AbsDiff,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// The first shifted left by the second. The amount is at most 32, or its lowest five bits.
    ShiftLeft(ShiftLimit),
    /// The first shifted right by the second, with the same rule for the amount.
    ShiftRight(ShiftLimit),
    /// 1 if the comparison holds, otherwise 0.
    Compare(Comparison),
}

/// How the amount of a shift is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShiftLimit {
    /// An amount above 32 becomes 32.
    Clamp,
    /// The lowest five bits of the amount are used.
    Wrap,
}

impl PartOperation {
    /// The exact result. A left shift by 32 has up to 65 bits.
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

/// A part of a register.
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
    /// The part with a suffix such as `h1` or `b3`.
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

    /// Its first bit, and its number of bits.
    fn bits(self) -> (u32, u32) {
        match self {
            Self::Whole => (0, 32),
            Self::Half(at) => (16 * (at & 1), 16),
            Self::Byte(at) => (8 * (at & 3), 8),
        }
    }

    /// The value of the part of a word.
    pub fn of(self, word: u32, signed: bool) -> i64 {
        let (at, bits) = self.bits();
        extended(word >> at, bits, signed)
    }
}

/// The lowest bits of a word as a number.
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

/// How the result of a scalar instruction is combined with the third operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Secondary {
    /// Not at all.
    Nothing,
    /// By addition.
    Add,
    /// By minimum.
    Min,
    /// By maximum.
    Max,
    /// The result replaces this part of the third operand.
    Merge(RegisterPart),
}

/// A scalar video instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScalarVideo {
    /// What it computes.
    pub operation: PartOperation,
    /// The parts of the two operands.
    pub parts: [RegisterPart; 2],
    /// Whether the result and the operands have signs.
    pub signed: [bool; 3],
    /// Whether the result is clamped to its type.
    pub saturates: bool,
    /// How the result is combined with the third operand.
    pub secondary: Secondary,
}

impl ScalarVideo {
    /// Whether the PTX ISA and an H200 give different results. That is so with `.sat` for the merge
    /// of a result that may be negative, for sums and differences with whole registers, and for
    /// left shifts; and if the result is compared with the third operand.
    pub fn is_open(&self) -> bool {
        let is_left = matches!(self.operation, PartOperation::ShiftLeft(_));
        let whole = self.parts.iter().filter(|part| **part == RegisterPart::Whole).count();
        let is_whole = matches!(self.operation, PartOperation::Add | PartOperation::Sub)
            && (whole == 2 || whole == 1 && self.signed != [true; 3]);
        let replaces = matches!(self.secondary, Secondary::Merge(_)) && self.operation != PartOperation::AbsDiff;
        let compares = matches!(self.secondary, Secondary::Min | Secondary::Max);
        self.saturates && (is_left || is_whole || replaces) || compares
    }

    /// The result from two registers and the third operand.
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

/// `vmad`: a multiply-add of parts, followed by a shift.
///
/// Law: the result is `(a b + c) >> shift`, exactly, where `a b` or `c` may be negated; `.po`
/// increments the sum. The addend is signed, as on an H200. If no factor is signed and nothing is
/// negated, an unsigned number of 64 bits is shifted. With `.sat` the result is clamped to 32 bits,
/// which are signed if a factor is signed or something is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VideoProduct {
    /// The parts of the factors.
    pub parts: [RegisterPart; 2],
    /// Whether the factors are signed.
    pub signed: [bool; 2],
    /// Whether the product and the addend are negated.
    pub negated: [bool; 2],
    /// Whether 1 is added.
    pub plus_one: bool,
    /// The number of bits by which the sum is shifted right: 0, 7 or 15.
    pub shift: u32,
    /// Whether the result is clamped to 32 bits.
    pub saturates: bool,
}

impl VideoProduct {
    /// The result from the factors and the addend.
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
            // The bits of the addend are inverted before it is extended.
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

/// A SIMD video instruction: on two or four packed numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartInstruction {
    /// What it computes.
    pub operation: PartOperation,
    /// The number of bits of a part: 8 or 16.
    pub bits: u32,
    /// Whether the parts of the result and of the operands are signed.
    pub signed: [bool; 3],
    /// Whether results are clamped to their type.
    pub saturates: bool,
    /// Whether the parts of the result are summed (`.add`).
    pub sums: bool,
    /// For each part of the result, the part of each operand. Parts are numbered through the first
    /// register and then the second.
    pub chosen: [[u8; 4]; 2],
    /// Bit `i` says whether part `i` of the result is computed.
    pub mask: u8,
}

impl PartInstruction {
    /// The unsigned instruction on parts at the same position in both registers.
    pub fn new(operation: PartOperation, bits: u32) -> Self {
        let chosen = if bits == 8 { [[0, 1, 2, 3], [4, 5, 6, 7]] } else { [[0, 1, 0, 0], [2, 3, 0, 0]] };
        Self { operation, bits, signed: [false; 3], saturates: false, sums: false, chosen, mask: 15 }
    }

    /// The result from two registers and the third operand.
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
