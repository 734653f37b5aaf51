//! The matrix instructions of one warp.

use std::fmt;

use crate::element::Element;

/// The types of the operands and accumulators of a matrix instruction of one warp (`mma.sync`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// m16n8k16, f16 times f16, sums in f32.
    F16F32,
    /// m16n8k16, f16 times f16, sums in f16.
    F16F16,
    /// m16n8k16, bf16 times bf16, sums in f32.
    Bf16F32,
    /// m16n8k8, tf32 times tf32, sums in f32.
    Tf32F32,
    /// m8n8k4, f64 throughout.
    F64,
    /// m16n8k4, f64 throughout. Targets before sm_90 multiply 8 rows and 4 of K at a time.
    F64K4,
    /// m16n8k8, f64 throughout. Targets before sm_90 multiply 8 rows and 4 of K at a time.
    F64K8,
    /// m16n8k16, f64 throughout. Targets before sm_90 multiply 8 rows and 4 of K at a time.
    F64K16,
    /// m16n8k32, s8 times s8, sums in s32.
    I8I32,
    /// m16n8k32, u8 times u8, sums in s32.
    U8I32,
    /// m16n8k64, s4 times s4, sums in s32. Cards from 9.0 on multiply them as s8.
    S4I32,
    /// m16n8k64, u4 times u4, sums in s32. Cards from 9.0 on multiply them as u8.
    U4I32,
    /// m16n8k32, e4m3 times e4m3, sums in f32 (sm_89).
    E4M3F32,
    /// m16n8k32, e5m2 times e5m2, sums in f32 (sm_89).
    E5M2F32,
    /// The product of a block-scaled format, with its scales in a register from this byte on; sums
    /// in f32 (sm_120).
    Scaled(BlockScaled, u8),
}

/// A format of operands with a scale for each block along K: see
/// [`Build::mma_scaled`](crate::Build::mma_scaled).
///
/// An operand consists of bytes: one for an element of 8 bits, or for two elements of e2m1, the one
/// with the lower index along K in the lower half. So one instruction has 32 bytes along K in each
/// format.
///
/// | format | elements | scales | elements of a block |
/// |---|---|---|---|
/// | `Mxf8E4M3`, `Mxf8E5M2` | e4m3, e5m2 | ue8m0 | 32 |
/// | `Mxf4` | e2m1 | ue8m0 | 32 |
/// | `Nvf4` | e2m1 | ue4m3 | 16 |
///
/// (OCP Microscaling Formats 1.0; PTX ISA, "Block Scaling for mma.sync".)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockScaled {
    /// MXFP8 of e4m3.
    Mxf8E4M3,
    /// MXFP8 of e5m2.
    Mxf8E5M2,
    /// MXFP4.
    Mxf4,
    /// NVFP4.
    Nvf4,
}

impl fmt::Display for BlockScaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockScaled::Mxf8E4M3 => "MXFP8 of e4m3",
            BlockScaled::Mxf8E5M2 => "MXFP8 of e5m2",
            BlockScaled::Mxf4 => "MXFP4",
            BlockScaled::Nvf4 => "NVFP4",
        })
    }
}

impl BlockScaled {
    /// All formats.
    pub const ALL: [BlockScaled; 4] =
        [BlockScaled::Mxf8E4M3, BlockScaled::Mxf8E5M2, BlockScaled::Mxf4, BlockScaled::Nvf4];

    /// The number of elements in a byte of an operand.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::BlockScaled;
    ///
    /// assert_eq!(BlockScaled::ALL.map(BlockScaled::packed), [1, 1, 2, 2]);
    /// ```
    pub fn packed(self) -> u32 {
        if matches!(self, BlockScaled::Mxf4 | BlockScaled::Nvf4) { 2 } else { 1 }
    }

    /// The number of elements along K that share a scale.
    pub fn block(self) -> u32 {
        if self == BlockScaled::Nvf4 { 16 } else { 32 }
    }

    /// The number of scales of a row of A, or of a column of B, for one instruction: 1, 2 or 4
    /// bytes.
    pub fn scales(self) -> u32 {
        32 * self.packed() / self.block()
    }

    /// The value of an element of an operand with these bits. Higher bits are ignored.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::BlockScaled;
    ///
    /// // 1 + 1/2, with exponent 2.
    /// assert_eq!(BlockScaled::Nvf4.element(0b0111), 6.0);
    /// assert_eq!(BlockScaled::Mxf8E4M3.element(0x38), 1.0);
    /// ```
    pub fn element(self, bits: u64) -> f64 {
        match self {
            BlockScaled::Mxf8E4M3 => Element::E4M3.to_f64(bits),
            BlockScaled::Mxf8E5M2 => Element::E5M2.to_f64(bits),
            BlockScaled::Mxf4 | BlockScaled::Nvf4 => {
                let size = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][(bits & 7) as usize];
                if bits & 8 == 0 { size } else { -size }
            }
        }
    }

    /// The value of a scale byte: a power of two (ue8m0, whose last value is NaN), or an unsigned
    /// e4m3, whose highest bit is ignored.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::BlockScaled;
    ///
    /// assert_eq!((BlockScaled::Mxf8E4M3.scale(130), BlockScaled::Nvf4.scale(0x3c)), (8.0, 1.5));
    /// assert!(BlockScaled::Mxf4.scale(0xff).is_nan() && BlockScaled::Nvf4.scale(0x7f).is_nan());
    /// ```
    pub fn scale(self, byte: u8) -> f64 {
        match (self, byte) {
            (BlockScaled::Nvf4, byte) => Element::E4M3.to_f64(u64::from(byte & 0x7f)),
            (_, 0xff) => f64::NAN,
            (_, exponent) => 2_f64.powi(i32::from(exponent) - 127),
        }
    }

    /// The PTX names of the element type, of the scale type, of the kind, and of the number of
    /// scales.
    pub(crate) fn ptx(self) -> [&'static str; 4] {
        match self {
            BlockScaled::Mxf8E4M3 => ["e4m3", "ue8m0", "mxf8f6f4", "1X"],
            BlockScaled::Mxf8E5M2 => ["e5m2", "ue8m0", "mxf8f6f4", "1X"],
            BlockScaled::Mxf4 => ["e2m1", "ue8m0", "mxf4", "2X"],
            BlockScaled::Nvf4 => ["e2m1", "ue4m3", "mxf4nvf4", "4X"],
        }
    }
}

impl Matrix {
    /// M, N and K.
    pub fn shape(self) -> [u32; 3] {
        match self {
            Matrix::F16F32 | Matrix::F16F16 | Matrix::Bf16F32 => [16, 8, 16],
            Matrix::Tf32F32 => [16, 8, 8],
            Matrix::F64 => [8, 8, 4],
            Matrix::F64K4 => [16, 8, 4],
            Matrix::F64K8 => [16, 8, 8],
            Matrix::F64K16 => [16, 8, 16],
            Matrix::I8I32 | Matrix::U8I32 | Matrix::E4M3F32 | Matrix::E5M2F32 => [16, 8, 32],
            Matrix::S4I32 | Matrix::U4I32 => [16, 8, 64],
            Matrix::Scaled(format, _) => [16, 8, 32 * format.packed()],
        }
    }

    /// The number of registers of a thread for A, B and C; D has as many as C. Those of f64
    /// ([`Matrix::is_double`]) have 64 bits.
    pub fn registers(self) -> [usize; 3] {
        match self {
            Matrix::F16F32 | Matrix::Bf16F32 => [4, 2, 4],
            Matrix::F16F16 => [4, 2, 2],
            Matrix::Tf32F32 => [4, 2, 4],
            Matrix::F64 => [1, 1, 2],
            Matrix::F64K4 => [2, 1, 4],
            Matrix::F64K8 => [4, 2, 4],
            Matrix::F64K16 => [8, 4, 4],
            Matrix::I8I32 | Matrix::U8I32 | Matrix::S4I32 | Matrix::U4I32 => [4, 2, 4],
            Matrix::E4M3F32 | Matrix::E5M2F32 | Matrix::Scaled(..) => [4, 2, 4],
        }
    }

    /// Whether operands and accumulators are f64, in registers of 64 bits.
    pub fn is_double(self) -> bool {
        matches!(self, Matrix::F64 | Matrix::F64K4 | Matrix::F64K8 | Matrix::F64K16)
    }

    /// The number of registers of a thread with scales, after those of C: one for A, with the
    /// scales of row `lane / 4`, or of row `lane / 4 + 8` in odd lanes, and one for B, with those
    /// of column `lane / 4`.
    pub fn scales(self) -> usize {
        if matches!(self, Matrix::Scaled(..)) { 2 } else { 0 }
    }
}
