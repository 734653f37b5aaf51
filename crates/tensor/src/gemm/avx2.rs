//! Micro-kernels in AVX2 with fused multiply-add: register tiles of two vectors of rows by six
//! columns, so that 12 sums, the vectors of A and a broadcast word of B take 15 of 16 registers.
//!
//! Law: that of [`super::kernel`]. Reason for unsafe code: vector instructions.
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
    single: "avx2,fma", f32, 8 lanes of __m256, __m256i, prefetch 16, shapes,
    mask(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
    load_some(from, mask) _mm256_maskload_ps(from, mask),
    store_some(to, value, mask) _mm256_maskstore_ps(to, mask, value),
    _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_mul_ps, _mm256_fmadd_ps,
}

float_kernels! {
    /// Double precision: 8x6.
    double: "avx2,fma", f64, 4 lanes of __m256d, __m256i, prefetch 16, shapes,
    mask(count) _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)),
    load_some(from, mask) _mm256_maskload_pd(from, mask),
    store_some(to, value, mask) _mm256_maskstore_pd(to, mask, value),
    _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_mul_pd, _mm256_fmadd_pd,
}

/// Bytes, widened to 16 bits, two to a word, multiplied and added in pairs: 16x6.
pub(in crate::gemm) mod byte_pairs {
    use core::arch::x86_64::*;

    use crate::gemm::kernel::{KernelSet, KernelTile, MicroKernel, kernel_set, kernel_table, moves, write_nothing};

    pub(in crate::gemm) struct BytePairs;

    // The blocks below run inside `kernel_set`, which enables the instructions.
    impl MicroKernel for BytePairs {
        const LANES: usize = 8;
        const PREFETCH_STEPS: isize = 16;

        moves! {
            __m256i, __m256i, u32, i32,
            mask(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
            load_some(from, mask) _mm256_maskload_epi32(from, mask),
            store_some(to, value, mask) _mm256_maskstore_epi32(to, mask, value),
            _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256,
        }
        #[inline(always)]
        unsafe fn broadcast(word: u32) -> __m256i {
            // SAFETY: the processor has the instructions.
            unsafe { _mm256_set1_epi32(word as i32) }
        }
        #[inline(always)]
        unsafe fn multiply_add(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
            // SAFETY: the processor has the instructions.
            unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)) }
        }
        #[inline(always)]
        unsafe fn scale(alpha: i32, sum: __m256i) -> __m256i {
            // SAFETY: the processor has the instructions.
            unsafe { _mm256_mullo_epi32(_mm256_set1_epi32(alpha), sum) }
        }
        #[inline(always)]
        unsafe fn scale_add(alpha: i32, sum: __m256i, beta: i32, old: __m256i) -> __m256i {
            // SAFETY: the processor has the instructions.
            unsafe { _mm256_add_epi32(_mm256_mullo_epi32(_mm256_set1_epi32(beta), old), Self::scale(alpha, sum)) }
        }
    }

    kernel_set! {
        BytePairs, features: "avx2,fma", group: 2, extra: 0, write_nothing,
        packed: shapes!(kernel_table, false, false),
        strided: &[],
        edge: &[],
    }
}
