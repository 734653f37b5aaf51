//! Tables of micro-kernels: each register tile of a [`MicroKernel`](super::MicroKernel), as a
//! function that enables its instructions.
//!
//! **Law.** Entry `[m - 1][n - 1]` of a table is the kernel of `m` vectors by `n` columns.

/// The table of the register tiles of a [`MicroKernel`](super::MicroKernel), as the static
/// `KERNELS` in the enclosing module.
///
/// `$features` are the target features that every entry enables. `$shapes` is the macro that gives
/// the numbers of vectors and columns to [`kernel_table`]; `strided` says whether there are kernels
/// for operands that are not packed, which takes words that are the numbers themselves.
macro_rules! kernel_set {
    (
        $kernel:ty, features: $features:literal, group: $group:literal, extra: $extra:literal, $write_extra:path,
        packed: $packed:expr, strided: $strided:expr, edge: $edge:expr $(,)?
    ) => {
        /// The micro-kernels.
        pub(in crate::gemm) static KERNELS: KernelSet<
            <$kernel as MicroKernel>::Word,
            <$kernel as MicroKernel>::Element,
        > = KernelSet {
            lanes: <$kernel as MicroKernel>::LANES,
            group: $group,
            broadcast_cost: 0,
            extra: $extra,
            write_extra: $write_extra,
            multiply_adds,
            packed: $packed,
            strided: $strided,
            edge: $edge,
        };

        /// # Safety
        ///
        /// The invariant of the tile, and a processor with the instructions.
        #[target_feature(enable = $features)]
        unsafe fn kernel<const M: usize, const N: usize, const STRIDED: bool, const EDGE: bool>(
            tile: &KernelTile<<$kernel as MicroKernel>::Word, <$kernel as MicroKernel>::Element>,
        ) {
            // SAFETY: the features are enabled here; the caller vouches for the tile.
            unsafe { $crate::gemm::kernel::micro_kernel::<$kernel, M, N, STRIDED, EDGE>(tile) }
        }

        /// # Safety
        ///
        /// A processor with the instructions.
        #[target_feature(enable = $features)]
        unsafe fn multiply_adds(steps: usize) -> usize {
            // SAFETY: the features are enabled here.
            unsafe { $crate::gemm::kernel::multiply_adds::<$kernel>(steps) }
        }
    };
}
pub(in crate::gemm) use kernel_set;

/// A table of kernels: for each number of vectors, one for each number of columns.
macro_rules! kernel_table {
    ($strided:literal, $edge:literal, $($m:literal: [$($n:literal)*]),*) => {
        &[$(&[$(kernel::<$m, $n, $strided, $edge>),*]),*]
    };
}
pub(in crate::gemm) use kernel_table;

/// The functions of a [`MicroKernel`](super::MicroKernel) that differ between kernels only in their
/// instructions: those that load and store vectors.
macro_rules! moves {
    (
        $vector:ty, $mask:ty, $word:ty, $element:ty,
        mask($count:ident) $some:expr,
        load_some($part_from:ident, $part_mask:ident) $load_some:expr,
        store_some($part_to:ident, $part_value:ident, $store_mask:ident) $store_some:expr,
        $zero:ident, $load:ident, $store:ident $(,)?
    ) => {
        type Word = $word;
        type Element = $element;
        type Vector = $vector;
        type Mask = $mask;

        #[inline(always)]
        #[allow(unused_unsafe)]
        unsafe fn mask($count: usize) -> $mask {
            // SAFETY: the processor has the instructions.
            unsafe { $some }
        }
        #[inline(always)]
        unsafe fn zero() -> $vector {
            // SAFETY: the processor has the instructions.
            unsafe { $zero() }
        }
        #[inline(always)]
        unsafe fn load(from: *const $element) -> $vector {
            // SAFETY: the caller's pointer is valid for all lanes.
            unsafe { $load(from.cast()) }
        }
        #[inline(always)]
        unsafe fn load_some($part_from: *const $element, $part_mask: $mask) -> $vector {
            // SAFETY: the caller's pointer is valid for the lanes under the mask.
            unsafe { $load_some }
        }
        #[inline(always)]
        unsafe fn store(to: *mut $element, value: $vector) {
            // SAFETY: the caller's pointer is valid for all lanes.
            unsafe { $store(to.cast(), value) }
        }
        #[inline(always)]
        unsafe fn store_some($part_to: *mut $element, $part_value: $vector, $store_mask: $mask) {
            // SAFETY: the caller's pointer is valid for the lanes under the mask.
            unsafe { $store_some }
        }
    };
}
pub(in crate::gemm) use moves;

/// The module of a micro-kernel whose words, like its elements of C, are floats. Kernels differ in
/// their instructions only; masked instructions also differ in the order of their operands.
macro_rules! float_kernels {
    (
        $(#[$doc:meta])* $module:ident: $features:literal, $word:ty, $lanes:literal lanes of $vector:ty, $mask:ty,
        prefetch $prefetch:literal, $shapes:ident,
        mask($count:ident) $some:expr,
        load_some($part_from:ident, $part_mask:ident) $load_some:expr,
        store_some($part_to:ident, $part_value:ident, $store_mask:ident) $store_some:expr,
        $zero:ident, $load:ident, $store:ident, $broadcast:ident, $multiply:ident, $multiply_add:ident $(,)?
    ) => {
        $(#[$doc])*
        pub(in crate::gemm) mod $module {
            use core::arch::x86_64::*;

            use crate::gemm::kernel::{KernelSet, MicroKernel, KernelTile, kernel_set, kernel_table, moves, write_nothing};

            pub(in crate::gemm) struct Kernel;

            // The blocks below run inside `kernel_set`, which enables the instructions; their
            // pointers are valid by the contract of the trait.
            impl MicroKernel for Kernel {
                const LANES: usize = $lanes;
                const PREFETCH_STEPS: isize = $prefetch;

                moves! {
                    $vector, $mask, $word, $word,
                    mask($count) $some,
                    load_some($part_from, $part_mask) $load_some,
                    store_some($part_to, $part_value, $store_mask) $store_some,
                    $zero, $load, $store,
                }
                #[inline(always)]
                unsafe fn broadcast(word: $word) -> $vector {
                    // SAFETY: the processor has the instructions.
                    unsafe { $broadcast(word) }
                }
                #[inline(always)]
                unsafe fn multiply_add(a: $vector, b: $vector, sum: $vector) -> $vector {
                    // SAFETY: the processor has the instructions.
                    unsafe { $multiply_add(a, b, sum) }
                }
                #[inline(always)]
                unsafe fn scale(alpha: $word, sum: $vector) -> $vector {
                    // SAFETY: the processor has the instructions.
                    unsafe { $multiply($broadcast(alpha), sum) }
                }
                #[inline(always)]
                unsafe fn scale_add(alpha: $word, sum: $vector, beta: $word, old: $vector) -> $vector {
                    // SAFETY: the processor has the instructions.
                    unsafe { $multiply_add($broadcast(beta), old, $multiply($broadcast(alpha), sum)) }
                }
            }

            kernel_set! {
                Kernel, features: $features, group: 1, extra: 0, write_nothing,
                packed: $shapes!(kernel_table, false, false),
                strided: $shapes!(kernel_table, true, false),
                edge: $shapes!(kernel_table, true, true),
            }
        }
    };
}
pub(in crate::gemm) use float_kernels;
