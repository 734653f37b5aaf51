//! Micro-kernels in AVX-512: register tiles of three vectors of rows by eight columns, or four by
//! six, so that 24 sums, the vectors of A and a broadcast word of B take at most 29 of 32
//! registers.
//!
//! Law: that of [`super::kernel`]. Reason for unsafe code: vector instructions.
#![allow(unsafe_code)]

use super::kernel::float_kernels;

/// The numbers of columns for one vector, two, three and four.
macro_rules! shapes {
    ($table:ident, $strided:literal, $edge:literal) => {
        $table!(
            $strided, $edge,
            1: [1 2 3 4 5 6 7 8 9 10 11 12], 2: [1 2 3 4 5 6 7 8 9 10 11 12], 3: [1 2 3 4 5 6 7 8], 4: [1 2 3 4 5 6]
        )
    };
}

float_kernels! {
    /// Single precision: 48x8.
    single: "avx512f", f32, 16 lanes of __m512, __mmask16, prefetch 8, shapes,
    mask(count) ((1_u32 << count) - 1) as _,
    load_some(from, mask) _mm512_maskz_loadu_ps(mask, from),
    store_some(to, value, mask) _mm512_mask_storeu_ps(to, mask, value),
    _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_mul_ps, _mm512_fmadd_ps,
}

float_kernels! {
    /// Double precision: 24x8.
    double: "avx512f", f64, 8 lanes of __m512d, __mmask8, prefetch 8, shapes,
    mask(count) ((1_u32 << count) - 1) as _,
    load_some(from, mask) _mm512_maskz_loadu_pd(mask, from),
    store_some(to, value, mask) _mm512_mask_storeu_pd(to, mask, value),
    _mm512_setzero_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_mul_pd, _mm512_fmadd_pd,
}

/// The micro-kernel for words of bytes, whose sums have 32 bits.
macro_rules! byte_kernels {
    (
        $(#[$doc:meta])* $module:ident: $features:literal, group: $group:literal, extra: $extra:literal, $write_extra:path,
        multiply_add($a:ident, $b:ident, $to:ident) $multiply_add:expr
        $(, correct($corrected:ident, $below:ident, $column:ident) $correct:expr)? $(,)?
    ) => {
        $(#[$doc])*
        pub(in crate::gemm) mod $module {
            use core::arch::x86_64::*;

            use crate::gemm::kernel::{KernelSet, MicroKernel, KernelTile, kernel_set, kernel_table, moves};

            pub(in crate::gemm) struct Kernel;

            // The blocks below run inside `kernel_set`, which enables the instructions.
            impl MicroKernel for Kernel {
                const LANES: usize = 16;
                const PREFETCH_STEPS: isize = 8;

                moves! {
                    __m512i, __mmask16, u32, i32,
                    mask(count) ((1_u32 << count) - 1) as _,
                    load_some(from, mask) _mm512_maskz_loadu_epi32(mask, from),
                    store_some(to, value, mask) _mm512_mask_storeu_epi32(to, mask, value),
                    _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512,
                }
                #[inline(always)]
                unsafe fn broadcast(word: u32) -> __m512i {
                    // SAFETY: the processor has the instructions.
                    unsafe { _mm512_set1_epi32(word as i32) }
                }
                #[inline(always)]
                unsafe fn multiply_add($a: __m512i, $b: __m512i, $to: __m512i) -> __m512i {
                    // SAFETY: the processor has the instructions.
                    unsafe { $multiply_add }
                }
                #[inline(always)]
                unsafe fn scale(alpha: i32, sum: __m512i) -> __m512i {
                    // SAFETY: the processor has the instructions.
                    unsafe { _mm512_mullo_epi32(_mm512_set1_epi32(alpha), sum) }
                }
                #[inline(always)]
                unsafe fn scale_add(alpha: i32, sum: __m512i, beta: i32, old: __m512i) -> __m512i {
                    // SAFETY: the processor has the instructions.
                    unsafe { _mm512_add_epi32(_mm512_mullo_epi32(_mm512_set1_epi32(beta), old), Self::scale(alpha, sum)) }
                }
                $(
                    #[inline(always)]
                    unsafe fn correct($corrected: __m512i, $below: *const u32, $column: usize) -> __m512i {
                        // SAFETY: packing wrote as many words below the slice as it has columns.
                        unsafe { $correct }
                    }
                )?
            }

            kernel_set! {
                Kernel, features: $features, group: $group, extra: $extra, $write_extra,
                packed: shapes!(kernel_table, false, false),
                strided: &[],
                edge: &[],
            }
        }
    };
}

byte_kernels! {
    /// Bytes, four to a word, with the dot products of VNNI: 48x8. Bytes of A have 128 added to
    /// make them unsigned; the correction words below a slice of B compensate for that.
    dot_bytes: "avx512f,avx512vnni", group: 4, extra: 1, crate::gemm::pack::write_corrections,
    multiply_add(a, b, sum) _mm512_dpbusd_epi32(sum, a, b),
    correct(sum, below, column) _mm512_add_epi32(sum, Self::broadcast(*below.add(column))),
}

byte_kernels! {
    /// Bytes, widened to 16 bits, two to a word, multiplied and added in pairs: 48x8.
    byte_pairs: "avx512f,avx512bw", group: 2, extra: 0, crate::gemm::kernel::write_nothing,
    multiply_add(a, b, sum) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)),
}

/// Numbers of bfloat16, two to a word, with the dot products of AVX-512-BF16: 48x8.
pub(in crate::gemm) mod dot_halves {
    use core::arch::x86_64::*;
    use core::mem::transmute;

    use crate::gemm::kernel::{KernelSet, KernelTile, MicroKernel, kernel_set, kernel_table, moves, write_nothing};

    pub(in crate::gemm) struct DotHalves;

    // The blocks below run inside `kernel_set`, which enables the instructions.
    impl MicroKernel for DotHalves {
        const LANES: usize = 16;
        const PREFETCH_STEPS: isize = 8;

        moves! {
            __m512, __mmask16, u32, f32,
            mask(count) ((1_u32 << count) - 1) as _,
            load_some(from, mask) _mm512_maskz_loadu_ps(mask, from),
            store_some(to, value, mask) _mm512_mask_storeu_ps(to, mask, value),
            _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps,
        }
        #[inline(always)]
        unsafe fn broadcast(word: u32) -> __m512 {
            // SAFETY: the processor has the instructions.
            unsafe { _mm512_castsi512_ps(_mm512_set1_epi32(word as i32)) }
        }
        /// Adds to each sum the two products of the pairs in its lane.
        #[inline(always)]
        unsafe fn multiply_add(a: __m512, b: __m512, sum: __m512) -> __m512 {
            // SAFETY: both types are 64 bytes, and any bits are pairs of numbers; the processor has
            // the instructions.
            unsafe { _mm512_dpbf16_ps(sum, transmute::<__m512, __m512bh>(a), transmute::<__m512, __m512bh>(b)) }
        }
        #[inline(always)]
        unsafe fn scale(alpha: f32, sum: __m512) -> __m512 {
            // SAFETY: the processor has the instructions.
            unsafe { _mm512_mul_ps(_mm512_set1_ps(alpha), sum) }
        }
        #[inline(always)]
        unsafe fn scale_add(alpha: f32, sum: __m512, beta: f32, old: __m512) -> __m512 {
            // SAFETY: the processor has the instructions.
            unsafe { _mm512_fmadd_ps(_mm512_set1_ps(beta), old, Self::scale(alpha, sum)) }
        }
    }

    kernel_set! {
        DotHalves, features: "avx512f,avx512bf16", group: 2, extra: 0, write_nothing,
        packed: shapes!(kernel_table, false, false),
        strided: &[],
        edge: &[],
    }
}
