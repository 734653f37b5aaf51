//! Instructions on two numbers of 16 bits or four of 8 in a register: `vadd4`, `vabsdiff4` and
//! their like.
//!
//! Law: each part of the result is that of the parts of the operands, computed exactly and cut to
//! its bits, or with `.sat` to the least and greatest number of its type. With `.add` the result is
//! the sum of the parts and a third operand.

/// What is computed of two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartOperation {
    /// Their sum.
    Add,
    /// Their difference.
    Sub,
    /// The magnitude of their difference.
    AbsDiff,
    /// The lower one.
    Min,
    /// The greater one.
    Max,
}

/// An instruction on parts.
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
}

impl PartInstruction {
    /// The result of two registers and of the third operand.
    ///
    /// ```
    /// use tilewright_sanitize::isa::video::{PartInstruction, PartOperation};
    ///
    /// let mut own = PartInstruction {
    ///     operation: PartOperation::AbsDiff,
    ///     bits: 8,
    ///     signed: [false; 3],
    ///     saturates: false,
    ///     sums: false,
    /// };
    /// assert_eq!(own.of(0x05_00_ff_10, 0x03_01_00_20, 0), 0x02_01_ff_10);
    /// own.sums = true;
    /// assert_eq!(own.of(0x05_00_ff_10, 0x03_01_00_20, 5), 2 + 1 + 255 + 16 + 5);
    /// ```
    pub fn of(&self, a: u32, b: u32, c: u32) -> u32 {
        let part = |word: u32, at: u32, signed: bool| {
            let high = i64::from(word << (32 - self.bits - at) >> (32 - self.bits));
            if signed && high >> (self.bits - 1) & 1 == 1 { high - (1 << self.bits) } else { high }
        };
        let (least, greatest) = match self.signed[0] {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        };
        let (mut packed, mut sum) = (0_u32, c);
        for at in (0..32).step_by(self.bits as usize) {
            let (a, b) = (part(a, at, self.signed[1]), part(b, at, self.signed[2]));
            let exact = match self.operation {
                PartOperation::Add => a + b,
                PartOperation::Sub => a - b,
                PartOperation::AbsDiff => (a - b).abs(),
                PartOperation::Min => a.min(b),
                PartOperation::Max => a.max(b),
            };
            let value = if self.saturates { exact.clamp(least, greatest) } else { exact };
            packed |= (value as u32 & greatest_bits(self.bits)) << at;
            sum = sum.wrapping_add(value as u32);
        }
        if self.sums { sum } else { packed }
    }
}

fn greatest_bits(bits: u32) -> u32 {
    u32::MAX >> (32 - bits)
}
