//! Micro-kernels in AVX2 with fused multiply-add: two vectors of rows by six columns, or three by four, so that 12 sums, the vectors of A
//! and a broadcast word of B take at most all 16 registers.
//!
//! Reason for unsafe code: the instructions have no safe form that the compiler keeps in registers.
#![allow(unsafe_code)]

/// Single precision: 16x6.
pub(in crate::gemm) mod single {
    use core::arch::x86_64::*;

    use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, nothing, registers};

    /// The kernels.
    pub(in crate::gemm) static KERNELS: Kernels<f32, f32> = Kernels {
        lanes: 8,
        group: 1,
        extra: 0,
        below: nothing,
        busy,
        packed: kernel_table!(false, false, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6], 3: [1 2 3 4]),
        strided: kernel_table!(true, false, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6], 3: [1 2 3 4]),
        edge: kernel_table!(true, true, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6], 3: [1 2 3 4]),
    };

    registers! {
        features: "avx2,fma", word: f32, element: f32, vector: __m256, mask: __m256i,
        some(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
        zero _mm256_setzero_ps(),
        load(from) _mm256_loadu_ps(from.cast()),
        load_some(from, mask) _mm256_maskload_ps(from.cast(), mask),
        store(to, value) _mm256_storeu_ps(to, value),
        store_some(to, value, mask) _mm256_maskstore_ps(to, mask, value),
        broadcast(word) _mm256_set1_ps(word),
        multiply_add(a, b, sum) _mm256_fmadd_ps(a, b, sum),
        scale(alpha, sum) _mm256_mul_ps(_mm256_set1_ps(alpha), sum),
        scale_add(alpha, sum, beta, old) _mm256_fmadd_ps(_mm256_set1_ps(beta), old, _mm256_mul_ps(_mm256_set1_ps(alpha), sum)),
        correct(sum, _below, _column) sum,
    }
    micro_kernel!(features: "avx2,fma", word: f32, element: f32, lanes: 8, ahead: 16);
}

/// Double precision: 8x6.
pub(in crate::gemm) mod double {
    use core::arch::x86_64::*;

    use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, nothing, registers};

    /// The kernels.
    pub(in crate::gemm) static KERNELS: Kernels<f64, f64> = Kernels {
        lanes: 4,
        group: 1,
        extra: 0,
        below: nothing,
        busy,
        packed: kernel_table!(false, false, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6], 3: [1 2 3 4]),
        strided: kernel_table!(true, false, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6], 3: [1 2 3 4]),
        edge: kernel_table!(true, true, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6], 3: [1 2 3 4]),
    };

    registers! {
        features: "avx2,fma", word: f64, element: f64, vector: __m256d, mask: __m256i,
        some(count) _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)),
        zero _mm256_setzero_pd(),
        load(from) _mm256_loadu_pd(from.cast()),
        load_some(from, mask) _mm256_maskload_pd(from.cast(), mask),
        store(to, value) _mm256_storeu_pd(to, value),
        store_some(to, value, mask) _mm256_maskstore_pd(to, mask, value),
        broadcast(word) _mm256_set1_pd(word),
        multiply_add(a, b, sum) _mm256_fmadd_pd(a, b, sum),
        scale(alpha, sum) _mm256_mul_pd(_mm256_set1_pd(alpha), sum),
        scale_add(alpha, sum, beta, old) _mm256_fmadd_pd(_mm256_set1_pd(beta), old, _mm256_mul_pd(_mm256_set1_pd(alpha), sum)),
        correct(sum, _below, _column) sum,
    }
    micro_kernel!(features: "avx2,fma", word: f64, element: f64, lanes: 4, ahead: 16);
}

/// Bytes as numbers of 16 bits, two to a word, multiplied and added in pairs: 16x6.
pub(in crate::gemm) mod byte_pairs {
    use core::arch::x86_64::*;

    use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, nothing, registers};

    /// The kernels.
    pub(in crate::gemm) static KERNELS: Kernels<u32, i32> = Kernels {
        lanes: 8,
        group: 2,
        extra: 0,
        below: nothing,
        busy,
        packed: kernel_table!(false, false, 1: [1 2 3 4 5 6], 2: [1 2 3 4 5 6], 3: [1 2 3 4]),
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
