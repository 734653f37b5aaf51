//! Which micro-kernel an atom stands for.
//!
//! A CPU atom is named by its instruction set, the shape of its tile and its types; a [`Route`] is such a name and what computes with it.
//!
//! Reason for unsafe code: a product runs on instructions that the processor must have.
#![allow(unsafe_code)]

use half::{bf16, f16};
use tilewright_atoms::{Arch, MmaTypes, ValueType};

use super::element::Element;
use super::kernel::Kernels;
use super::pack::{self, Pack, Same, Widened};
use super::portable;
use super::product::{Factor, Places, Plan, Product, Target};
#[cfg(target_arch = "x86_64")]
use super::{
    avx2, avx512,
    pack::{Pairs, Raised, Signed, WidenedPairs},
};

/// What is asked of a route: the extents M, N and K, the numbers, and the most threads.
pub struct Request<'a, S, C> {
    pub extents: [usize; 3],
    pub alpha: C,
    pub beta: C,
    pub a: Factor<'a, S>,
    pub b: Factor<'a, S>,
    pub c: Target<'a, C>,
    pub threads: usize,
    /// Whether A and B are exchanged.
    pub turned: bool,
}

impl<S, C> Request<'_, S, C> {
    /// Exchanges A and B where the columns of C, not the rows, are side by side: `C = A * B` says the same as its transpose.
    #[inline]
    pub fn turn(&mut self) {
        let Places::Lines(rows, columns) = &mut self.c.places else { return };
        if rows.stride(1) == Some(1) || columns.stride(1) != Some(1) {
            return;
        }
        std::mem::swap(rows, columns);
        std::mem::swap(&mut self.a, &mut self.b);
        self.extents.swap(0, 1);
        self.turned = true;
    }
}

/// A micro-kernel and the packing that it needs, under the name of an atom.
pub struct Route<S: Numbers> {
    /// The name of the atom.
    pub name: &'static str,
    /// Its instruction set and its M, N and K.
    pub arch: Arch,
    pub shape: [i64; 3],
    /// Whether this machine has the instructions.
    pub available: fn() -> bool,
    /// How a product is divided.
    pub plan: fn(Request<'_, S, S::Sum>) -> Plan,
    /// Multiplies and adds in chains of so many steps, and says how many multiplications that were.
    ///
    /// *Invariant* of whoever calls it: as for `run`.
    pub busy: unsafe fn(usize) -> u64,
    /// Computes a product.
    ///
    /// *Invariant* of whoever calls it: the instructions are available.
    pub run: unsafe fn(Request<'_, S, S::Sum>),
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for i8 {}
}

/// Numbers whose matrices [`gemm`](crate::gemm) multiplies: `f32`, `f64`, `f16` and `bf16`, whose products are added up in `f32`, and `i8`, whose products are
/// added up in `i32`.
pub trait Numbers: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// What products are added up in.
    type Sum: Element;
    /// The types of numbers and sums, as atoms call them.
    #[doc(hidden)]
    const TYPES: MmaTypes;
    #[doc(hidden)]
    /// The routes, of which the last is available everywhere.
    const ROUTES: &'static [Route<Self>];
}

/// A product on some kernels, that packs with these functions.
fn product<'a, S: Copy + Default, W: Copy, C: Element>(
    request: Request<'a, S, C>,
    kernels: &'static Kernels<W, C>,
    [pack_a, pack_b]: [Pack<S, W>; 2],
    same: bool,
) -> (Product<'a, S, W, C>, usize) {
    let Request { extents, alpha, beta, a, b, c, threads, turned: _ } = request;
    (Product { extents, alpha, beta, a, b, c, kernels, pack_a, pack_b, same }, threads)
}

/// Keeps the instructions of some kernels busy.
///
/// # Safety
///
/// The instructions are available.
unsafe fn busy<W, C>(kernels: &Kernels<W, C>, steps: usize) -> u64 {
    // SAFETY: the caller's.
    let words = unsafe { (kernels.busy)(steps) };
    (words * kernels.group) as u64
}

/// The rows of a table of routes: atom, condition, kernels, packing of A and of B, and whether words are numbers as they are.
macro_rules! routes {
    ($sum:ty; $($(#[$attribute:meta])* $name:literal is $arch:ident $shape:expr, if $available:expr => $kernels:expr, $pack_a:expr, $pack_b:expr, $same:literal;)*) => {
        type Sum = $sum;
        const ROUTES: &'static [Route<Self>] = &[$(
            $(#[$attribute])*
            Route {
                name: $name,
                arch: Arch::$arch,
                shape: $shape,
                available: || $available,
                plan: |request| {
                    let (product, threads) = product(request, &$kernels, [$pack_a, $pack_b], $same);
                    product.plan(threads)
                },
                // SAFETY: the caller's.
                busy: |steps| unsafe { busy(&$kernels, steps) },
                run: |request| {
                    let (product, threads) = product(request, &$kernels, [$pack_a, $pack_b], $same);
                    product.run(threads);
                },
            },
        )*];
    };
}

/// Numbers of one type, sums of another.
const fn types(numbers: ValueType, sums: ValueType) -> MmaTypes {
    MmaTypes { d: sums, a: numbers, b: numbers, c: sums }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

impl Numbers for f32 {
    const TYPES: MmaTypes = types(ValueType::F32, ValueType::F32);
    routes! { f32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x1_F32F32F32F32" is Avx512 [48, 8, 1], if has_avx512() => avx512::single::KERNELS, pack::avx512::<Same<f32>>, pack::avx512::<Same<f32>>, true;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x1_F32F32F32F32" is Avx2 [16, 6, 1], if has_avx2() => avx2::single::KERNELS, pack::avx2::<Same<f32>>, pack::avx2::<Same<f32>>, true;
        "PORTABLE_16x2x1_F32F32F32F32" is Portable [16, 2, 1], if true => portable::SINGLE, pack::portable::<Same<f32>>, pack::portable::<Same<f32>>, true;
    }
}

impl Numbers for f64 {
    const TYPES: MmaTypes = types(ValueType::F64, ValueType::F64);
    routes! { f64;
        #[cfg(target_arch = "x86_64")]
        "AVX512_24x8x1_F64F64F64F64" is Avx512 [24, 8, 1], if has_avx512() => avx512::double::KERNELS, pack::avx512::<Same<f64>>, pack::avx512::<Same<f64>>, true;
        #[cfg(target_arch = "x86_64")]
        "AVX2_8x6x1_F64F64F64F64" is Avx2 [8, 6, 1], if has_avx2() => avx2::double::KERNELS, pack::avx2::<Same<f64>>, pack::avx2::<Same<f64>>, true;
        "PORTABLE_8x2x1_F64F64F64F64" is Portable [8, 2, 1], if true => portable::DOUBLE, pack::portable::<Same<f64>>, pack::portable::<Same<f64>>, true;
    }
}

impl Numbers for f16 {
    const TYPES: MmaTypes = types(ValueType::F16, ValueType::F32);
    routes! { f32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x1_F32F16F16F32" is Avx512 [48, 8, 1], if has_avx512() => avx512::single::KERNELS, pack::avx512::<Widened<f16>>, pack::avx512::<Widened<f16>>, false;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x1_F32F16F16F32" is Avx2 [16, 6, 1], if has_avx2() => avx2::single::KERNELS, pack::avx2::<Widened<f16>>, pack::avx2::<Widened<f16>>, false;
        "PORTABLE_16x2x1_F32F16F16F32" is Portable [16, 2, 1], if true => portable::SINGLE, pack::portable::<Widened<f16>>, pack::portable::<Widened<f16>>, false;
    }
}

impl Numbers for bf16 {
    const TYPES: MmaTypes = types(ValueType::BF16, ValueType::F32);
    routes! { f32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x2_F32BF16BF16F32" is Avx512 [48, 8, 2], if has_avx512() && is_x86_feature_detected!("avx512bf16") => avx512::dot_halves::KERNELS, pack::avx512::<Pairs>, pack::avx512::<Pairs>, false;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x1_F32BF16BF16F32" is Avx512 [48, 8, 1], if has_avx512() => avx512::single::KERNELS, pack::avx512::<Widened<bf16>>, pack::avx512::<Widened<bf16>>, false;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x1_F32BF16BF16F32" is Avx2 [16, 6, 1], if has_avx2() => avx2::single::KERNELS, pack::avx2::<Widened<bf16>>, pack::avx2::<Widened<bf16>>, false;
        "PORTABLE_16x2x1_F32BF16BF16F32" is Portable [16, 2, 1], if true => portable::SINGLE, pack::portable::<Widened<bf16>>, pack::portable::<Widened<bf16>>, false;
    }
}

impl Numbers for i8 {
    const TYPES: MmaTypes = types(ValueType::S8, ValueType::S32);
    routes! { i32;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x4_S32S8S8S32" is Avx512 [48, 8, 4], if has_avx512() && is_x86_feature_detected!("avx512vnni") => avx512::dot_bytes::KERNELS, pack::avx512::<Raised>, pack::avx512::<Signed>, false;
        #[cfg(target_arch = "x86_64")]
        "AVX512_48x8x2_S32S8S8S32" is Avx512 [48, 8, 2], if has_avx512() => avx512::byte_pairs::KERNELS, pack::avx512::<WidenedPairs>, pack::avx512::<WidenedPairs>, false;
        #[cfg(target_arch = "x86_64")]
        "AVX2_16x6x2_S32S8S8S32" is Avx2 [16, 6, 2], if has_avx2() => avx2::byte_pairs::KERNELS, pack::avx2::<WidenedPairs>, pack::avx2::<WidenedPairs>, false;
        "PORTABLE_8x4x1_S32S8S8S32" is Portable [8, 4, 1], if true => portable::INTEGERS, pack::portable::<Widened<i8>>, pack::portable::<Widened<i8>>, false;
    }
}
