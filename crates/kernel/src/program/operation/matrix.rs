//! The matrix instructions of one warp.

/// The types of operands and sums of a matrix instruction of one warp (`mma.sync`).
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
    /// m16n8k32, s8 times s8, sums in s32.
    I8I32,
    /// m16n8k32, u8 times u8, sums in s32.
    U8I32,
    /// m16n8k32, e4m3 times e4m3, sums in f32 (sm_89).
    E4M3F32,
    /// m16n8k32, e5m2 times e5m2, sums in f32 (sm_89).
    E5M2F32,
}

impl Matrix {
    /// Rows, columns and depth of the product.
    pub fn shape(self) -> [u32; 3] {
        match self {
            Matrix::F16F32 | Matrix::F16F16 | Matrix::Bf16F32 => [16, 8, 16],
            Matrix::Tf32F32 => [16, 8, 8],
            Matrix::F64 => [8, 8, 4],
            Matrix::I8I32 | Matrix::U8I32 | Matrix::E4M3F32 | Matrix::E5M2F32 => [16, 8, 32],
        }
    }

    /// The number of registers of a thread for A, B and C; D has as many as C. Those of
    /// [`Matrix::F64`] have 64 bits.
    pub fn registers(self) -> [usize; 3] {
        match self {
            Matrix::F16F32 | Matrix::Bf16F32 => [4, 2, 4],
            Matrix::F16F16 => [4, 2, 2],
            Matrix::Tf32F32 => [4, 2, 4],
            Matrix::F64 => [1, 1, 2],
            Matrix::I8I32 | Matrix::U8I32 | Matrix::E4M3F32 | Matrix::E5M2F32 => [4, 2, 4],
        }
    }
}
