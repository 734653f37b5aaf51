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
}

impl Matrix {
    /// Rows, columns and depth of the product.
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
            Matrix::E4M3F32 | Matrix::E5M2F32 => [4, 2, 4],
        }
    }

    /// Whether operands and sums are f64, in registers of 64 bits.
    pub fn is_double(self) -> bool {
        matches!(self, Matrix::F64 | Matrix::F64K4 | Matrix::F64K8 | Matrix::F64K16)
    }
}
