//! The micro-kernels of each atom.
//!
//! Law: an atom of the CPU is named by its instructions, the shape of its tile and its types. Each
//! name has one [`Route`], and [`Route::available`] is true only where the processor has the
//! instructions.
//!
//! Reason for unsafe code: a GEMM uses instructions that the processor must have.
#![allow(unsafe_code)]

use half::{bf16, f16};
use tilewright_layout::atoms::{Arch, MmaTypes, ValueType};

use super::element::SumElement;
use super::kernel::KernelSet;
use super::pack::{self, Same, Widened};
use super::plan::ProductPlan;
use super::portable;
use super::product::{Backend, Product};
#[cfg(target_arch = "x86_64")]
use super::{
    avx2, avx512,
    pack::{Offset, Pairs, Signed, WidenedPairs},
};
#[cfg(target_arch = "x86_64")]
use crate::simd::{has_avx2_fma, has_avx512_bf16, has_avx512_products, has_avx512_vnni};

/// The micro-kernels of an atom, and the packing whose output they read.
pub struct Route<S: Numbers> {
    /// The name of the atom.
    pub name: &'static str,
    /// Its instructions.
    pub arch: Arch,
    /// M, N and K of its tile.
    pub shape: [i64; 3],
    /// Whether this machine has the instructions.
    pub available: fn() -> bool,
    /// Plans how a GEMM is divided.
    pub plan: fn(&Product<'_, S, S::Sum>) -> ProductPlan,
    /// Multiplies and adds in registers alone, in chains of this many steps. Returns the number of
    /// multiplications.
    ///
    /// *Invariant*, upheld by the caller: the instructions are available.
    pub multiply_adds: unsafe fn(usize) -> u64,
    /// Computes a GEMM.
    ///
    /// *Invariant*, upheld by the caller: the instructions are available.
    pub run: unsafe fn(&Product<'_, S, S::Sum>),
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for i8 {}
}

/// Element types that [`gemm`](crate::gemm()) multiplies: `f32`, `f64`, `f16` and `bf16`, whose
/// products are accumulated in `f32`, and `i8`, whose products are accumulated in `i32`, modulo
/// `2^32`.
pub trait Numbers: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// The type of the accumulator.
    type Sum: SumElement;
    /// The types of numbers and accumulators, as atoms name them.
    #[doc(hidden)]
    const TYPES: MmaTypes;
    #[doc(hidden)]
    /// The routes, fastest first. The last one is available everywhere.
    const ROUTES: &'static [Route<Self>];
}

/// Multiplies and adds with these micro-kernels. Returns the number of multiplications.
///
/// # Safety
///
/// The instructions are available.
unsafe fn multiply_adds<W, C>(kernels: &KernelSet<W, C>, steps: usize) -> u64 {
    // SAFETY: the caller has asked for the instructions.
    let words = unsafe { (kernels.multiply_adds)(steps) };
    (words * kernels.group) as u64
}

/// The rows of a table of routes: the atom, the condition, the micro-kernels, the packing of A and
/// of B, and whether words are the numbers themselves, so that operands can be read in place.
macro_rules! routes {
    ($sum:ty; $($(#[$attribute:meta])* $name:literal is $arch:ident $shape:expr, if $available:expr => $kernels:expr, $pack_a:expr, $pack_b:expr, in place $in_place:literal;)*) => {
        type Sum = $sum;
        const ROUTES: &'static [Route<Self>] = &[$(
            $(#[$attribute])*
            Route {
                name: $name,
                arch: Arch::$arch,
                shape: $shape,
                available: || $available,
                plan: |product| {
                    let backend = Backend { kernels: &$kernels, pack_a: $pack_a, pack_b: $pack_b, in_place: $in_place };
                    ProductPlan::new(&backend, product)
                },
                // SAFETY: the caller has asked for the instructions.
                multiply_adds: |steps| unsafe { multiply_adds(&$kernels, steps) },
                run: |product| {
                    let backend = Backend { kernels: &$kernels, pack_a: $pack_a, pack_b: $pack_b, in_place: $in_place };
                    backend.run(product);
                },
            },
        )*];
    };
}

/// The types of an atom with these numbers and accumulators.
const fn types(numbers: ValueType, sums: ValueType) -> MmaTypes {
    MmaTypes { d: sums, a: numbers, b: numbers, c: sums }
}

impl Numbers for f32 {
    const TYPES: MmaTypes = types(ValueType::F32, ValueType::F32);
    routes! { f32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x1_F32F32F32F32" is Avx512 [48, 8, 1], if has_avx512_products()
            => avx512::single::KERNELS, pack::avx512::<Same<f32>>, pack::avx512::<Same<f32>>, in place true;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x1_F32F32F32F32" is Avx2 [16, 6, 1], if has_avx2_fma()
            => avx2::single::KERNELS, pack::avx2::<Same<f32>>, pack::avx2::<Same<f32>>, in place true;
        "PORTABLE_16x2x1_F32F32F32F32" is Portable [16, 2, 1], if true
            => portable::SINGLE, pack::portable::<Same<f32>>, pack::portable::<Same<f32>>, in place true;
    }
}

impl Numbers for f64 {
    const TYPES: MmaTypes = types(ValueType::F64, ValueType::F64);
    routes! { f64;
        #[cfg(target_arch = "x86_64")]
        "AVX512_24x8x1_F64F64F64F64" is Avx512 [24, 8, 1], if has_avx512_products()
            => avx512::double::KERNELS, pack::avx512::<Same<f64>>, pack::avx512::<Same<f64>>, in place true;
        #[cfg(target_arch = "x86_64")]
        "AVX2_8x6x1_F64F64F64F64" is Avx2 [8, 6, 1], if has_avx2_fma()
            => avx2::double::KERNELS, pack::avx2::<Same<f64>>, pack::avx2::<Same<f64>>, in place true;
        "PORTABLE_8x2x1_F64F64F64F64" is Portable [8, 2, 1], if true
            => portable::DOUBLE, pack::portable::<Same<f64>>, pack::portable::<Same<f64>>, in place true;
    }
}

impl Numbers for f16 {
    const TYPES: MmaTypes = types(ValueType::F16, ValueType::F32);
    routes! { f32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x1_F32F16F16F32" is Avx512 [48, 8, 1], if has_avx512_products()
            => avx512::single::KERNELS, pack::avx512::<Widened<f16>>, pack::avx512::<Widened<f16>>, in place false;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x1_F32F16F16F32" is Avx2 [16, 6, 1], if has_avx2_fma()
            => avx2::single::KERNELS, pack::avx2::<Widened<f16>>, pack::avx2::<Widened<f16>>, in place false;
        "PORTABLE_16x2x1_F32F16F16F32" is Portable [16, 2, 1], if true
            => portable::SINGLE, pack::portable::<Widened<f16>>, pack::portable::<Widened<f16>>, in place false;
    }
}

impl Numbers for bf16 {
    const TYPES: MmaTypes = types(ValueType::BF16, ValueType::F32);
    routes! { f32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x2_F32BF16BF16F32" is Avx512 [48, 8, 2], if has_avx512_products() && has_avx512_bf16()
            => avx512::dot_halves::KERNELS, pack::avx512::<Pairs>, pack::avx512::<Pairs>, in place false;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x1_F32BF16BF16F32" is Avx512 [48, 8, 1], if has_avx512_products()
            => avx512::single::KERNELS, pack::avx512::<Widened<bf16>>, pack::avx512::<Widened<bf16>>, in place false;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x1_F32BF16BF16F32" is Avx2 [16, 6, 1], if has_avx2_fma()
            => avx2::single::KERNELS, pack::avx2::<Widened<bf16>>, pack::avx2::<Widened<bf16>>, in place false;
        "PORTABLE_16x2x1_F32BF16BF16F32" is Portable [16, 2, 1], if true
            => portable::SINGLE, pack::portable::<Widened<bf16>>, pack::portable::<Widened<bf16>>, in place false;
    }
}

impl Numbers for i8 {
    const TYPES: MmaTypes = types(ValueType::S8, ValueType::S32);
    routes! { i32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x4_S32S8S8S32" is Avx512 [48, 8, 4], if has_avx512_products() && has_avx512_vnni()
            => avx512::dot_bytes::KERNELS, pack::avx512::<Offset>, pack::avx512::<Signed>, in place false;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x2_S32S8S8S32" is Avx512 [48, 8, 2], if has_avx512_products()
            => avx512::byte_pairs::KERNELS, pack::avx512::<WidenedPairs>, pack::avx512::<WidenedPairs>, in place false;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x2_S32S8S8S32" is Avx2 [16, 6, 2], if has_avx2_fma()
            => avx2::byte_pairs::KERNELS, pack::avx2::<WidenedPairs>, pack::avx2::<WidenedPairs>, in place false;
        "PORTABLE_8x4x1_S32S8S8S32" is Portable [8, 4, 1], if true
            => portable::INTEGERS, pack::portable::<Widened<i8>>, pack::portable::<Widened<i8>>, in place false;
    }
}
