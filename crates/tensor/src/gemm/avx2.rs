//! Micro-kernels in AVX2 with fused multiply-add: two vectors of rows by six columns, so that 12 sums, the vectors of A and a broadcast
//! word of B take 15 of the 16 registers.
//!
//! Reason for unsafe code: the instructions have no safe form that the compiler keeps in registers.
#![allow(unsafe_code)]

use super::kernel::float_kernels;

/// The numbers of columns for one vector and two.
macro_rules! shapes {
    ($table:ident, $strided:literal, $edge:literal) => {
        $table!($strided, $edge, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6])
    };
}

float_kernels! {
    /// Single precision: 16x6.
    single: "avx2,fma", f32, 8 lanes of __m256, __m256i, 16 ahead, shapes,
    some(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
    load_some(from, mask) _mm256_maskload_ps(from.cast(), mask),
    store_some(to, value, mask) _mm256_maskstore_ps(to, mask, value),
    _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_mul_ps, _mm256_fmadd_ps,
}

float_kernels! {
    /// Double precision: 8x6.
    double: "avx2,fma", f64, 4 lanes of __m256d, __m256i, 16 ahead, shapes,
    some(count) _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)),
    load_some(from, mask) _mm256_maskload_pd(from.cast(), mask),
    store_some(to, value, mask) _mm256_maskstore_pd(to, mask, value),
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_mul_pd, _mm256_fmadd_pd,
}

/// Bytes as numbers of 16 bits, two to a word, multiplied and added in pairs: 16x6.
pub(in crate::gemm) mod byte_pairs {
    use core::arch::x86_64::*;

    use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, nothing, registers};

    /// The kernels.
    pub(in crate::gemm) static KERNELS: Kernels<u32, i32> = Kernels {
        lanes: 8,
        group: 2,
        spread: 0,
        extra: 0,
        below: nothing,
        busy,
        packed: shapes!(kernel_table, false, false),
        strided: &[],
        edge: &[],
    };

    registers! {
        features: "avx2,fma", word: u32, element: i32, vector: __m256i, mask: __m256i,
        some(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
        zero _mm256_setzero_si256(),
        load(from) _mm256_loadu_si256(from.cast()),
        load_some(from, mask) _mm256_maskload_epi32(from.cast(), mask),
        store(to, value) _mm256_storeu_si256(to.cast(), value),
        store_some(to, value, mask) _mm256_maskstore_epi32(to, mask, value),
        broadcast(word) _mm256_set1_epi32(word as i32),
        multiply_add(a, b, sum) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)),
        scale(alpha, sum) _mm256_mullo_epi32(_mm256_set1_epi32(alpha), sum),
        scale_add(alpha, sum, beta, old) _mm256_add_epi32(_mm256_mullo_epi32(_mm256_set1_epi32(beta), old), scale(alpha, sum)),
        correct(sum, _below, _column) sum,
    }
    micro_kernel!(features: "avx2,fma", word: u32, element: i32, lanes: 8, ahead: 16);
}
