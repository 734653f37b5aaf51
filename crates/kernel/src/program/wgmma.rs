//! The operands of wgmma.
//!
//! Law: an operand consists of 32 bytes along K of all rows of the instruction. A descriptor gives
//! the byte of shared memory of each of its elements.

use tilewright_layout::atoms::{Major, SwizzleMode};

use super::memory::Access;

/// The operand types of a wgmma. Accumulators are f32, or i32 for integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WgmmaOperands {
    /// f16, 16 steps along K.
    F16,
    /// bf16, 16 steps along K.
    Bf16,
    /// tf32 in 32 bits, 8 steps along K.
    Tf32,
    /// e4m3, 32 steps along K.
    E4M3,
    /// e5m2, 32 steps along K.
    E5M2,
    /// Signed integers of 8 bits, 32 steps along K.
    I8,
    /// Unsigned integers of 8 bits, 32 steps along K.
    U8,
}

impl WgmmaOperands {
    /// The number of bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            WgmmaOperands::F16 | WgmmaOperands::Bf16 => 2,
            WgmmaOperands::Tf32 => 4,
            WgmmaOperands::E4M3 | WgmmaOperands::E5M2 | WgmmaOperands::I8 | WgmmaOperands::U8 => 1,
        }
    }

    /// Whether they are integers, whose accumulators are i32 and wrap.
    pub fn is_integer(self) -> bool {
        matches!(self, WgmmaOperands::I8 | WgmmaOperands::U8)
    }

    /// Whether there is an instruction with this many columns: multiples of 8 up to 256; for
    /// integers above 32, only multiples of 16 (PTX ISA, "Asynchronous Warpgroup Level Matrix
    /// Shape").
    pub fn has(self, columns: u32) -> bool {
        let step = if self.is_integer() && columns > 24 { 16 } else { 8 };
        (8..=256).contains(&columns) && columns.is_multiple_of(step)
    }

    /// The extent of one instruction along K: 32 bytes of elements.
    pub fn depth(self) -> u32 {
        32 / self.bytes()
    }
}

/// The location of an operand of a wgmma: the fields of a matrix descriptor
/// ([`tilewright_layout::atoms::MatrixDescriptor`]), except for the start address, which is that of
/// an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Described {
    /// The first byte, before the swizzle, which is applied to address bits.
    pub access: Access,
    /// The contiguous dimension.
    pub major: Major,
    /// The swizzle.
    pub mode: SwizzleMode,
    /// The leading dimension byte offset.
    pub leading: u32,
    /// The stride dimension byte offset.
    pub stride: u32,
}

impl Described {
    /// The byte in shared memory of an element of `bytes` bytes, for an operand that begins at byte
    /// `start`. It is counted from an address at which every swizzle pattern begins (PTX ISA,
    /// "Asynchronous Warpgroup Level Matrix Operation": canonical layouts).
    pub fn byte(&self, start: i64, bytes: i64, [mn, k]: [i64; 2]) -> i64 {
        let (unit, line) = (16 / bytes, 16 * self.mode.units());
        let (leading, stride) = (i64::from(self.leading), i64::from(self.stride));
        let apart = match (self.major, self.mode) {
            (Major::K, SwizzleMode::None) => mn / 8 * stride + mn % 8 * 16 + k / unit * leading + k % unit * bytes,
            (Major::K, _) => mn / 8 * stride + mn % 8 * line + k * bytes,
            (Major::MN, SwizzleMode::None) => mn / unit * stride + mn % unit * bytes + k / 8 * leading + k % 8 * 16,
            (Major::MN, _) => {
                let along = line / bytes;
                mn / along * leading + mn % along * bytes + k / 8 * stride + k % 8 * line
            }
        };
        let at = start + apart;
        at ^ (at >> 3 & (line - 16))
    }
}
