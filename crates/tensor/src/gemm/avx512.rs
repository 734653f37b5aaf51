//! Micro-kernels in AVX-512: three vectors of rows by eight columns, or four by six, so that 24 sums, the vectors of A and a broadcast
//! word of B take at most 29 of the 32 registers.
//!
//! Reason for unsafe code: the instructions have no safe form that the compiler keeps in registers.
#![allow(unsafe_code)]

use super::kernel::float_kernels;

/// The numbers of columns for one vector, two, three and four.
macro_rules! shapes {
    ($table:ident, $strided:literal, $edge:literal) => {
        $table!($strided, $edge, 1: [1 2 3 4 5 6 7 8 9 10 11 12], 2: [1 2 3 4 5 6 7 8 9 10 11 12], 3: [1 2 3 4 5 6 7 8], 4: [1 2 3 4 5 6])
    };
}

float_kernels! {
    /// Single precision: 48x8.
    single: "avx512f", f32, 16 lanes of __m512, __mmask16, 8 ahead, shapes,
    some(count) ((1_u32 << count) - 1) as _,
    load_some(from, mask) _mm512_maskz_loadu_ps(mask, from.cast()),
    store_some(to, value, mask) _mm512_mask_storeu_ps(to, mask, value),
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_mul_ps, _mm512_fmadd_ps,
}

float_kernels! {
    /// Double precision: 24x8.
    double: "avx512f", f64, 8 lanes of __m512d, __mmask8, 8 ahead, shapes,
    some(count) ((1_u32 << count) - 1) as _,
    load_some(from, mask) _mm512_maskz_loadu_pd(mask, from.cast()),
    store_some(to, value, mask) _mm512_mask_storeu_pd(to, mask, value),
    _mm512_setzero_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_mul_pd, _mm512_fmadd_pd,
}

/// Bytes, four to a word, with the dot products of VNNI: 48x8. Those of A are raised by 128, which the words below B make up for.
pub(in crate::gemm) mod dot_bytes {
    use core::arch::x86_64::*;

    use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, registers};
    use crate::gemm::pack::corrections;

    /// The kernels.
    pub(in crate::gemm) static KERNELS: Kernels<u32, i32> = Kernels {
        lanes: 16,
        group: 4,
        spread: 0,
        extra: 1,
        below: corrections,
        busy,
        packed: shapes!(kernel_table, false, false),
        strided: &[],
        edge: &[],
    };

    registers! {
        features: "avx512f,avx512vnni", word: u32, element: i32, vector: __m512i, mask: __mmask16,
        some(count) ((1_u32 << count) - 1) as _,
        zero _mm512_setzero_si512(),
        load(from) _mm512_loadu_si512(from.cast()),
        load_some(from, mask) _mm512_maskz_loadu_epi32(mask, from.cast()),
        store(to, value) _mm512_storeu_si512(to.cast(), value),
        store_some(to, value, mask) _mm512_mask_storeu_epi32(to, mask, value),
        broadcast(word) _mm512_set1_epi32(word as i32),
        multiply_add(a, b, sum) _mm512_dpbusd_epi32(sum, a, b),
        scale(alpha, sum) _mm512_mullo_epi32(_mm512_set1_epi32(alpha), sum),
        scale_add(alpha, sum, beta, old) _mm512_add_epi32(_mm512_mullo_epi32(_mm512_set1_epi32(beta), old), scale(alpha, sum)),
        // SAFETY: the words below the slice are as many as its columns.
        correct(sum, below, column) _mm512_add_epi32(sum, unsafe { broadcast(below.add(column)) }),
    }
    micro_kernel!(features: "avx512f,avx512vnni", word: u32, element: i32, lanes: 16, ahead: 8);
}

/// Numbers of bfloat16, two to a word, with the dot products of AVX-512-BF16: 48x8.
pub(in crate::gemm) mod dot_halves {
    use core::arch::x86_64::*;
    use core::mem::transmute;

    use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, nothing, registers};

    /// The kernels.
    pub(in crate::gemm) static KERNELS: Kernels<u32, f32> = Kernels {
        lanes: 16,
        group: 2,
        spread: 0,
        extra: 0,
        below: nothing,
        busy,
        packed: shapes!(kernel_table, false, false),
        strided: &[],
        edge: &[],
    };

    /// Adds to each sum the two products of the pairs in its lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn dot(sum: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: 64 bytes are 64 bytes, and all of their values are pairs of numbers.
        let (a, b) = unsafe { (transmute::<__m512, __m512bh>(a), transmute::<__m512, __m512bh>(b)) };
        _mm512_dpbf16_ps(sum, a, b)
    }

    registers! {
        features: "avx512f,avx512bf16", word: u32, element: f32, vector: __m512, mask: __mmask16,
        some(count) ((1_u32 << count) - 1) as _,
        zero _mm512_setzero_ps(),
        load(from) _mm512_loadu_ps(from.cast()),
        load_some(from, mask) _mm512_maskz_loadu_ps(mask, from.cast()),
        store(to, value) _mm512_storeu_ps(to, value),
        store_some(to, value, mask) _mm512_mask_storeu_ps(to, mask, value),
        broadcast(word) _mm512_castsi512_ps(_mm512_set1_epi32(word as i32)),
        multiply_add(a, b, sum) dot(sum, a, b),
        scale(alpha, sum) _mm512_mul_ps(_mm512_set1_ps(alpha), sum),
        scale_add(alpha, sum, beta, old) _mm512_fmadd_ps(_mm512_set1_ps(beta), old, scale(alpha, sum)),
        correct(sum, _below, _column) sum,
    }
    micro_kernel!(features: "avx512f,avx512bf16", word: u32, element: f32, lanes: 16, ahead: 8);
}

/// Bytes as numbers of 16 bits, two to a word, multiplied and added in pairs: 48x8.
pub(in crate::gemm) mod byte_pairs {
    use core::arch::x86_64::*;

    use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, nothing, registers};

    /// The kernels.
    pub(in crate::gemm) static KERNELS: Kernels<u32, i32> = Kernels {
        lanes: 16,
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
        features: "avx512f,avx512bw", word: u32, element: i32, vector: __m512i, mask: __mmask16,
        some(count) ((1_u32 << count) - 1) as _,
        zero _mm512_setzero_si512(),
        load(from) _mm512_loadu_si512(from.cast()),
        load_some(from, mask) _mm512_maskz_loadu_epi32(mask, from.cast()),
        store(to, value) _mm512_storeu_si512(to.cast(), value),
        store_some(to, value, mask) _mm512_mask_storeu_epi32(to, mask, value),
        broadcast(word) _mm512_set1_epi32(word as i32),
        multiply_add(a, b, sum) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)),
        scale(alpha, sum) _mm512_mullo_epi32(_mm512_set1_epi32(alpha), sum),
        scale_add(alpha, sum, beta, old) _mm512_add_epi32(_mm512_mullo_epi32(_mm512_set1_epi32(beta), old), scale(alpha, sum)),
        correct(sum, _below, _column) sum,
    }
    micro_kernel!(features: "avx512f,avx512bw", word: u32, element: i32, lanes: 16, ahead: 8);
}
