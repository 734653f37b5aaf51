//! Micro-kernels: what each computes, and what a new processor's kernel fills in.
//!
//! **Law.** For rows `i` below `rows` and columns `j` below the kernel's own number of columns,
//!
//! ```text
//! c[i + j * c_column] = alpha * sum over t < k of a[i + t * a_step] * b[j * b_column + t * b_step]
//!                       + beta * c[i + j * c_column]
//! ```
//!
//! and nothing else is written. With `beta = 0` the old `c` is not read. The sums stay in registers
//! from the first step to the last: together they are the register tile, MR rows by NR columns.
//!
//! A *word* of `a` and `b` is what one lane of an instruction multiplies: a float, or a group of
//! two or four small numbers whose products the instruction adds up.
//!
//! # A kernel for another processor
//!
//! 1. Implement [`MicroKernel`] for a type that names the instructions: one vector register, a mask
//!    for the rows at an edge, and the operations on them.
//! 2. Make the table of its register tiles, a [`KernelSet`], with [`kernel_set`].
//! 3. Write its packing in `pack.rs`: the same function under other target features.
//! 4. Say in `crate::simd` how the processor is asked for the instructions.
//! 5. Add a row to the tables in `route.rs`: the name of the atom, and all of the above.
#![allow(unsafe_code)]

use super::element::Element;
use super::prefetch::Prefetch;

/// One tile of C and the panels of A and B that it is the product of.
///
/// *Invariant*, upheld by whoever runs a kernel: all elements that the law above names may be read,
/// and those of `c` written, which nobody else uses meanwhile. A kernel that is not one for edges
/// reads `a` up to a whole number of vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile<W, C> {
    /// The number of steps along K, in words.
    pub k: usize,
    /// The first word of A. Rows are contiguous.
    pub a: *const W,
    /// From one step to the next, in words.
    pub a_step: isize,
    /// The first word of B.
    pub b: *const W,
    /// From one step to the next, in words.
    pub b_step: isize,
    /// From one column to the next, in words. Kernels for packed panels take it to be 1.
    pub b_column: isize,
    /// The first element of C. Rows are contiguous.
    pub c: *mut C,
    /// From one column to the next, in elements.
    pub c_column: isize,
    /// The number of rows: more than all vectors but one hold, at most what all of them hold.
    pub rows: usize,
    /// What is prefetched meanwhile: so many rows with each column of the tile.
    pub prefetch: Prefetch,
    /// The factor of the product.
    pub alpha: C,
    /// The factor of the old C.
    pub beta: C,
}

/// A micro-kernel of a certain number of vectors and columns.
///
/// *Invariant*, upheld by the caller: that of the [`Tile`], and a processor with the instructions.
pub(super) type Run<W, C> = unsafe fn(&Tile<W, C>);

/// The register-level contract of a micro-kernel: a vector register of one processor, and what the
/// loop over K does with it.
///
/// All functions are `#[inline(always)]`, so that they take the target features of the table's
/// entries ([`kernel_set`]). They have no features of their own.
///
/// # Safety
///
/// Callers run on a processor with the instructions, and inside a function that enables them. The
/// pointers are valid for the lanes that each function names; they need no alignment.
#[allow(clippy::missing_safety_doc)]
pub(super) trait MicroKernel {
    /// What a lane of A and B holds. A word is as large as an element of C.
    type Word: Copy + Default;
    /// An element of C.
    type Element: Element;
    /// A vector register: [`LANES`](Self::LANES) words, or as many elements.
    type Vector: Copy;
    /// Which lanes of a vector are used at an edge.
    type Mask: Copy;
    /// The elements of C in a vector.
    const LANES: usize;
    /// How many steps along K ahead A is prefetched.
    const PREFETCH_STEPS: isize;

    /// The first `count` lanes, `1 <= count <= LANES`.
    unsafe fn mask(count: usize) -> Self::Mask;
    /// Zeros.
    unsafe fn zero() -> Self::Vector;
    /// `LANES` words of A, or elements of C.
    unsafe fn load(from: *const Self::Element) -> Self::Vector;
    /// Those under the mask. The others are not read, and are zero.
    unsafe fn load_some(from: *const Self::Element, mask: Self::Mask) -> Self::Vector;
    /// Writes `LANES` elements of C.
    unsafe fn store(to: *mut Self::Element, value: Self::Vector);
    /// Writes those under the mask.
    unsafe fn store_some(to: *mut Self::Element, value: Self::Vector, mask: Self::Mask);
    /// One word of B in all lanes.
    unsafe fn broadcast(word: Self::Word) -> Self::Vector;
    /// `sum + a * b`, lane by lane: for words of several numbers, the sum of their products.
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// `alpha * sum`.
    unsafe fn scale(alpha: Self::Element, sum: Self::Vector) -> Self::Vector;
    /// `alpha * sum + beta * old`.
    unsafe fn scale_add(
        alpha: Self::Element,
        sum: Self::Vector,
        beta: Self::Element,
        old: Self::Vector,
    ) -> Self::Vector;
    /// The sum of column `column`, corrected by the words that packing wrote below a slice of B.
    /// Most kernels have none.
    #[inline(always)]
    unsafe fn correct(sum: Self::Vector, below: *const Self::Word, column: usize) -> Self::Vector {
        let _ = (below, column);
        sum
    }
}

/// The micro-kernels of one processor for one type: for each number of vectors and columns, three.
///
/// *Invariant*: for fewer vectors there are at least as many columns, so that what is left over at
/// the edges of a matrix of tiles has its micro-kernels too.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelSet<W: 'static, C: 'static> {
    /// The elements of C in a vector.
    pub lanes: usize,
    /// The numbers in a word.
    pub group: usize,
    /// What it costs to broadcast a word of B, besides loading it, in quarters of a cycle.
    pub broadcast_cost: usize,
    /// The rows of words below a packed slice of B.
    pub extra: usize,
    /// Writes the words below a packed slice of B of a width and a number of steps, if there are
    /// any.
    ///
    /// *Invariant*, upheld by the caller: the slice is packed, with room for `extra` more rows.
    pub write_extra: unsafe fn(*mut W, usize, usize),
    /// Multiplies and adds words in registers alone, in chains of so many steps. Returns how many
    /// words that were.
    ///
    /// *Invariant*, upheld by the caller: a processor with the instructions.
    pub multiply_adds: unsafe fn(usize) -> usize,
    /// For packed panels of A and B.
    pub packed: &'static [&'static [Run<W, C>]],
    /// For any step and column of B, whole vectors of A.
    pub strided: &'static [&'static [Run<W, C>]],
    /// For any step and column of B. A is read no further than its rows.
    pub edge: &'static [&'static [Run<W, C>]],
}

/// Writes no words below a slice: for kernels that correct nothing.
///
/// # Safety
///
/// None: it does nothing.
pub(super) unsafe fn write_nothing<W>(_: *mut W, _: usize, _: usize) {}

/// The chains of multiply-adds that keep the instructions busy: their latency times their
/// throughput.
pub(super) const CHAINS: usize = 12;

/// The micro-kernel: `M` vectors by `N` columns of sums. A step loads `M` vectors of A and
/// multiplies each by `N` broadcast words of B.
///
/// `STRIDED` says whether columns of B have a stride, `EDGE` whether A is read no further than its
/// rows.
///
/// # Safety
///
/// The invariant of the [`Tile`], and that of [`MicroKernel`].
#[inline(always)]
#[allow(clippy::needless_range_loop, unused_assignments)]
pub(super) unsafe fn micro_kernel<
    K: MicroKernel,
    const M: usize,
    const N: usize,
    const STRIDED: bool,
    const EDGE: bool,
>(
    tile: &Tile<K::Word, K::Element>,
) {
    // SAFETY: each access is one that the law names, which the invariant of the tile covers.
    // Prefetches read nothing. The caller vouches for the instructions.
    unsafe {
        let last = K::mask(tile.rows - (M - 1) * K::LANES);
        let mut sums = [[K::zero(); M]; N];
        let (mut a, mut b) = (tile.a, tile.b);
        let (a_step, b_step) = (tile.a_step, tile.b_step);
        let b_column = if STRIDED { tile.b_column } else { 1 };
        macro_rules! step {
            () => {
                let mut rows = [K::zero(); M];
                for i in 0..M {
                    let from = a.add(i * K::LANES).cast();
                    rows[i] = if EDGE && i + 1 == M { K::load_some(from, last) } else { K::load(from) };
                }
                for i in 0..M {
                    prefetch_l1(a.wrapping_offset(K::PREFETCH_STEPS * a_step).wrapping_add(i * K::LANES));
                }
                for j in 0..N {
                    let column = K::broadcast(*b.offset(j as isize * b_column));
                    for i in 0..M {
                        sums[j][i] = K::multiply_add(rows[i], column, sums[j][i]);
                    }
                }
                (a, b) = (a.wrapping_offset(a_step), b.wrapping_offset(b_step));
            };
        }
        // The tile of C is prefetched column by column between the steps. All of it at once would
        // hold up the loads of A. A column that does not begin at a cache line ends in one more
        // line.
        let part = tile.k / (N + 2) / 2;
        let mut pairs = tile.k / 2;
        for j in 0..=N {
            if j < N {
                let column = tile.c.wrapping_offset(j as isize * tile.c_column);
                for i in 0..M {
                    prefetch_l1(column.wrapping_add(i * K::LANES));
                }
                prefetch_l1(column.wrapping_add(M * K::LANES - 1));
                for number in 0..tile.prefetch.rows {
                    let row = (j * tile.prefetch.rows + number) as isize * tile.prefetch.row;
                    let row = tile.prefetch.from.wrapping_offset(row);
                    for line in 0..tile.prefetch.lines {
                        prefetch_l2(row.wrapping_add(line * crate::memory::LINE));
                    }
                }
            }
            let now = if j < N { part } else { pairs };
            pairs -= now;
            for _ in 0..now {
                step!();
                step!();
            }
        }
        if !tile.k.is_multiple_of(2) {
            step!();
        }
        for j in 0..N {
            for i in 0..M {
                sums[j][i] = K::correct(sums[j][i], b, j);
            }
        }
        let full = tile.rows == M * K::LANES;
        macro_rules! write_tile {
            ($j:ident, $i:ident, $place:ident, $part:ident => $value:expr) => {
                for $j in 0..N {
                    let column = tile.c.offset($j as isize * tile.c_column);
                    for $i in 0..M {
                        let $place = column.add($i * K::LANES);
                        let $part = !full && $i + 1 == M;
                        let value = $value;
                        if $part {
                            K::store_some($place, value, last);
                        } else {
                            K::store($place, value);
                        }
                    }
                }
            };
        }
        if tile.beta == K::Element::default() {
            write_tile!(j, i, place, part => K::scale(tile.alpha, sums[j][i]));
        } else {
            write_tile!(j, i, place, part => {
                let old = if part { K::load_some(place, last) } else { K::load(place) };
                K::scale_add(tile.alpha, sums[j][i], tile.beta, old)
            });
        }
    }
}

/// Multiplies and adds in registers alone, in [`CHAINS`] chains of so many steps: the most that the
/// instructions can do. Returns how many words that were.
///
/// # Safety
///
/// As [`MicroKernel`].
#[inline(always)]
pub(super) unsafe fn multiply_adds<K: MicroKernel>(steps: usize) -> usize {
    // SAFETY: no memory is used; the caller vouches for the instructions.
    unsafe {
        let factor = K::broadcast(std::hint::black_box(K::Word::default()));
        let mut sums = [K::zero(); CHAINS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = K::multiply_add(factor, factor, *sum);
            }
        }
        std::hint::black_box(sums);
    }
    steps * CHAINS * K::LANES
}

/// Prefetches into the first-level cache.
#[inline(always)]
fn prefetch_l1<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE, and a prefetch of any address is harmless.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Prefetches into the second-level cache.
#[inline(always)]
fn prefetch_l2(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE, and a prefetch of any address is harmless.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T1 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// The table of the register tiles of a [`MicroKernel`], as `KERNELS`, in the module that it stands
/// in.
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
            tile: &Tile<<$kernel as MicroKernel>::Word, <$kernel as MicroKernel>::Element>,
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
pub(super) use kernel_set;

/// A table of kernels: for each number of vectors, one for each number of columns.
macro_rules! kernel_table {
    ($strided:literal, $edge:literal, $($m:literal: [$($n:literal)*]),*) => {
        &[$(&[$(kernel::<$m, $n, $strided, $edge>),*]),*]
    };
}
pub(super) use kernel_table;

/// The micro-kernel of instructions whose words are floats, and so the elements of C: the module
/// that holds it. Only the instructions that take some lanes differ in the order of their operands.
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

            use crate::gemm::kernel::{KernelSet, MicroKernel, Tile, kernel_set, kernel_table, write_nothing};

            pub(in crate::gemm) struct Kernel;

            // The blocks below run inside `kernel_set`, which enables the instructions; their
            // pointers are valid by the contract of the trait.
            impl MicroKernel for Kernel {
                type Word = $word;
                type Element = $word;
                type Vector = $vector;
                type Mask = $mask;
                const LANES: usize = $lanes;
                const PREFETCH_STEPS: isize = $prefetch;

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
                unsafe fn load(from: *const $word) -> $vector {
                    // SAFETY: the caller's pointer is valid for all lanes.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn load_some($part_from: *const $word, $part_mask: $mask) -> $vector {
                    // SAFETY: the caller's pointer is valid for the lanes under the mask.
                    unsafe { $load_some }
                }
                #[inline(always)]
                unsafe fn store(to: *mut $word, value: $vector) {
                    // SAFETY: the caller's pointer is valid for all lanes.
                    unsafe { $store(to, value) }
                }
                #[inline(always)]
                unsafe fn store_some($part_to: *mut $word, $part_value: $vector, $store_mask: $mask) {
                    // SAFETY: the caller's pointer is valid for the lanes under the mask.
                    unsafe { $store_some }
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
pub(super) use float_kernels;

/// The functions of a [`MicroKernel`] whose words and sums are of 32 bits that differ from kernel
/// to kernel by their instructions alone: those that move vectors.
macro_rules! word_moves {
    (
        $vector:ty, $mask:ty, $element:ty,
        mask($count:ident) $some:expr,
        load_some($part_from:ident, $part_mask:ident) $load_some:expr,
        store_some($part_to:ident, $part_value:ident, $store_mask:ident) $store_some:expr,
        $zero:ident, $load:ident, $store:ident $(,)?
    ) => {
        type Word = u32;
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
pub(super) use word_moves;
