//! What a micro-kernel computes, whichever instructions it uses.
//!
//! **Law.** For rows `i` below `rows` and columns `j` below the kernel's own number of columns,
//!
//! ```text
//! c[i + j * c_column] = alpha * sum over t < k of  a[i + t * a_step] * b[j * b_column + t * b_step]  +  beta * c[i + j * c_column]
//! ```
//!
//! and nothing else is written; with `beta = 0` the old `c` is not read. The sum is kept in registers from the first step to
//! the last. A *word* of `a` and `b` is what one lane of the instruction multiplies: a float, or a group of two or four small
//! numbers whose products the instruction adds up.
#![allow(unsafe_code)]

use super::tile::Ahead;

/// One tile of C and the panels of A and B that it is the product of.
///
/// *Invariant*, which whoever runs a kernel upholds: all elements named by the law above lie in memory that may be read, those
/// of `c` in memory that nobody else uses; unless the kernel is one for edges, `a` may be read up to a whole number of vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile<W, C> {
    /// The number of steps, in words.
    pub k: usize,
    /// The first word of A; rows are side by side.
    pub a: *const W,
    /// From one step to the next, in words.
    pub a_step: isize,
    /// The first word of B.
    pub b: *const W,
    /// From one step to the next, in words.
    pub b_step: isize,
    /// From one column to the next, in words; kernels for packed panels take it to be 1.
    pub b_column: isize,
    /// The first element of C; rows are side by side.
    pub c: *mut C,
    /// From one column to the next.
    pub c_column: isize,
    /// The number of rows: more than all vectors but one hold, at most what all of them hold.
    pub rows: usize,
    /// What is fetched meanwhile: so many rows with each column of the tile.
    pub ahead: Ahead,
    /// The factor of the product.
    pub alpha: C,
    /// The factor of what C held.
    pub beta: C,
}

/// A micro-kernel of a certain number of vectors and columns.
pub(super) type Run<W, C> = unsafe fn(&Tile<W, C>);

/// The micro-kernels of an instruction set for one type: for each number of vectors and columns, three.
///
/// *Invariant*: for fewer vectors there are at least as many columns, so that what is left over of a matrix of tiles has its micro-kernels too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels<W: 'static, C: 'static> {
    /// The elements of C in a vector.
    pub lanes: usize,
    /// The numbers in a word.
    pub group: usize,
    /// What it takes to put a word of B into all lanes, beside loading it, in quarters of a cycle.
    pub spread: usize,
    /// The rows of words below a packed slice of B.
    pub extra: usize,
    /// Writes the words below a packed slice of B of a width and a number of steps, if there are any.
    pub below: unsafe fn(*mut W, usize, usize),
    /// Multiplies and adds words in registers alone, in chains of so many steps, and says how many words that were.
    pub busy: unsafe fn(usize) -> usize,
    /// Panels of A and B that lie side by side, as packing leaves them.
    pub packed: &'static [&'static [Run<W, C>]],
    /// Any step and column of B, whole vectors of A.
    pub strided: &'static [&'static [Run<W, C>]],
    /// Any step and column of B; A is read no further than its rows.
    pub edge: &'static [&'static [Run<W, C>]],
}

/// What is below a slice where nothing is.
pub(super) unsafe fn nothing<W>(_: *mut W, _: usize, _: usize) {}

/// The functions that the micro-kernel is written over, for one kind of register.
macro_rules! registers {
    (
        features: $features:literal, word: $word:ty, element: $element:ty, vector: $vector:ty, mask: $mask:ty,
        some($count:ident) $some:expr,
        zero $zero:expr,
        load($load_from:ident) $load:expr,
        load_some($part_from:ident, $part_mask:ident) $load_some:expr,
        store($to:ident, $value:ident) $store:expr,
        store_some($part_to:ident, $part_value:ident, $store_mask:ident) $store_some:expr,
        broadcast($one:ident) $broadcast:expr,
        multiply_add($x:ident, $y:ident, $z:ident) $multiply_add:expr,
        scale($alpha:ident, $sum:ident) $scale:expr,
        scale_add($alphas:ident, $sums:ident, $beta:ident, $old:ident) $scale_add:expr,
        correct($corrected:ident, $below:ident, $column:ident) $correct:expr $(,)?
    ) => {
        /// The first lanes, so many.
        #[inline]
        #[target_feature(enable = $features)]
        fn some($count: usize) -> $mask {
            $some
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn zero() -> $vector {
            $zero
        }
        /// # Safety
        ///
        /// Here and below: memory is valid for the lanes that are named.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn load<T>($load_from: *const T) -> $vector {
            // SAFETY: the caller's, here and below.
            unsafe { $load }
        }
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn load_some<T>($part_from: *const T, $part_mask: $mask) -> $vector {
            // SAFETY: as above.
            unsafe { $load_some }
        }
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn store($to: *mut $element, $value: $vector) {
            // SAFETY: as above.
            unsafe { $store }
        }
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn store_some($part_to: *mut $element, $part_value: $vector, $store_mask: $mask) {
            // SAFETY: as above.
            unsafe { $store_some }
        }
        /// One word in all lanes.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn broadcast(from: *const $word) -> $vector {
            // SAFETY: as above.
            let $one = unsafe { *from };
            $broadcast
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn multiply_add($x: $vector, $y: $vector, $z: $vector) -> $vector {
            $multiply_add
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn scale($alpha: $element, $sum: $vector) -> $vector {
            $scale
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn scale_add($alphas: $element, $sums: $vector, $beta: $element, $old: $vector) -> $vector {
            $scale_add
        }
        /// A sum, and what the words below the slice of B say that is missing from it.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn correct($corrected: $vector, $below: *const $word, $column: usize) -> $vector {
            $correct
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn prefetch<T>(place: *const T) {
            _mm_prefetch::<_MM_HINT_T0>(place.cast());
        }
        /// Into the second cache.
        #[inline]
        #[target_feature(enable = $features)]
        fn prefetch_second(place: *const u8) {
            _mm_prefetch::<_MM_HINT_T1>(place.cast());
        }
    };
}
pub(super) use registers;

/// The micro-kernel over the functions of [`registers`] in the module that it stands in.
///
/// `M` vectors by `N` columns of sums; a step loads `M` vectors of A and multiplies each by `N` broadcast words of B.
macro_rules! micro_kernel {
    (features: $features:literal, word: $word:ty, element: $element:ty, lanes: $lanes:expr, ahead: $ahead:expr) => {
        #[target_feature(enable = $features)]
        #[allow(clippy::needless_range_loop, unused_assignments)]
        unsafe fn kernel<const M: usize, const N: usize, const STRIDED: bool, const EDGE: bool>(
            tile: &$crate::gemm::kernel::Tile<$word, $element>,
        ) {
            // SAFETY: every access is one that the law of the micro-kernel names, which the caller vouches for, or a prefetch,
            // which reads nothing. The instructions exist: the caller has asked the processor.
            unsafe {
                let last = some(tile.rows - (M - 1) * $lanes);
                let mut sums = [[zero(); M]; N];
                let (mut a, mut b) = (tile.a, tile.b);
                let (a_step, b_step) = (tile.a_step, tile.b_step);
                let b_column = if STRIDED { tile.b_column } else { 1 };
                macro_rules! step {
                    () => {
                        let mut rows = [zero(); M];
                        for i in 0..M {
                            rows[i] = if EDGE && i + 1 == M { load_some(a.add(i * $lanes), last) } else { load(a.add(i * $lanes)) };
                        }
                        for i in 0..M {
                            prefetch(a.wrapping_offset($ahead * a_step).wrapping_add(i * $lanes));
                        }
                        for j in 0..N {
                            let column = broadcast(b.offset(j as isize * b_column));
                            for i in 0..M {
                                sums[j][i] = multiply_add(rows[i], column, sums[j][i]);
                            }
                        }
                        (a, b) = (a.wrapping_offset(a_step), b.wrapping_offset(b_step));
                    };
                }
                // The tile of C is asked for column by column between the steps. All of it at once would keep the lines of A waiting. A column that does not
                // begin with a line ends in one more.
                let part = tile.k / (N + 2) / 2;
                let mut pairs = tile.k / 2;
                for j in 0..=N {
                    if j < N {
                        let column = tile.c.wrapping_offset(j as isize * tile.c_column);
                        for i in 0..M {
                            prefetch(column.wrapping_add(i * $lanes));
                        }
                        prefetch(column.wrapping_add(M * $lanes - 1));
                        for number in 0..tile.ahead.rows {
                            let row = (j * tile.ahead.rows + number) as isize * tile.ahead.row;
                            let row = tile.ahead.from.wrapping_offset(row);
                            for line in 0..tile.ahead.lines {
                                prefetch_second(row.wrapping_add(line * $crate::gemm::workspace::LINE));
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
                        sums[j][i] = correct(sums[j][i], b, j);
                    }
                }
                let full = tile.rows == M * $lanes;
                macro_rules! written {
                    ($j:ident, $i:ident, $place:ident, $part:ident => $value:expr) => {
                        for $j in 0..N {
                            let column = tile.c.offset($j as isize * tile.c_column);
                            for $i in 0..M {
                                let $place = column.add($i * $lanes);
                                let $part = !full && $i + 1 == M;
                                let value = $value;
                                if $part {
                                    store_some($place, value, last);
                                } else {
                                    store($place, value);
                                }
                            }
                        }
                    };
                }
                if tile.beta == (0 as $element) {
                    written!(j, i, place, part => scale(tile.alpha, sums[j][i]));
                } else {
                    written!(j, i, place, part => {
                        let old = if part { load_some(place, last) } else { load(place) };
                        scale_add(tile.alpha, sums[j][i], tile.beta, old)
                    });
                }
            }
        }

        /// Multiplies and adds in registers alone, in twelve chains of so many steps: what the instructions can do at the most.
        #[target_feature(enable = $features)]
        pub(in crate::gemm) unsafe fn busy(steps: usize) -> usize {
            let word: $word = std::hint::black_box(<$word>::default());
            // SAFETY: the word is there.
            let factor = unsafe { broadcast(&word) };
            let mut sums = [zero(); CHAINS];
            for _ in 0..steps {
                for sum in &mut sums {
                    *sum = multiply_add(factor, factor, *sum);
                }
            }
            std::hint::black_box(sums);
            steps * CHAINS * $lanes
        }
    };
}
pub(super) use micro_kernel;

/// The chains of multiply-adds that keep the instructions busy.
pub(super) const CHAINS: usize = 12;

/// A table of kernels: for each number of vectors, one for each number of columns.
macro_rules! kernel_table {
    ($strided:literal, $edge:literal, $($m:literal: [$($n:literal)*]),*) => {
        &[$(&[$(kernel::<$m, $n, $strided, $edge>),*]),*]
    };
}
pub(super) use kernel_table;

/// The kernels of an instruction set whose words are floats, and so the elements of C: the module that holds them.
///
/// The instructions are named; only those that take some lanes differ in the order of their operands. `$shapes` is the macro that gives the numbers of vectors
/// and columns to [`kernel_table`].
macro_rules! float_kernels {
    (
        $(#[$doc:meta])* $module:ident: $features:literal, $word:ty, $lanes:literal lanes of $vector:ty, $mask:ty, $ahead:literal ahead, $shapes:ident,
        some($count:ident) $some:expr,
        load_some($part_from:ident, $part_mask:ident) $load_some:expr,
        store_some($part_to:ident, $part_value:ident, $store_mask:ident) $store_some:expr,
        $zero:ident, $load:ident, $store:ident, $broadcast:ident, $multiply:ident, $multiply_add:ident $(,)?
    ) => {
        $(#[$doc])*
        pub(in crate::gemm) mod $module {
            use core::arch::x86_64::*;

            use crate::gemm::kernel::{CHAINS, Kernels, kernel_table, micro_kernel, nothing, registers};

            /// The kernels.
            pub(in crate::gemm) static KERNELS: Kernels<$word, $word> = Kernels {
                lanes: $lanes,
                group: 1,
                spread: 0,
                extra: 0,
                below: nothing,
                busy,
                packed: $shapes!(kernel_table, false, false),
                strided: $shapes!(kernel_table, true, false),
                edge: $shapes!(kernel_table, true, true),
            };

            registers! {
                features: $features, word: $word, element: $word, vector: $vector, mask: $mask,
                some($count) $some,
                zero $zero(),
                load(from) $load(from.cast()),
                load_some($part_from, $part_mask) $load_some,
                store(to, value) $store(to, value),
                store_some($part_to, $part_value, $store_mask) $store_some,
                broadcast(word) $broadcast(word),
                multiply_add(a, b, sum) $multiply_add(a, b, sum),
                scale(alpha, sum) $multiply($broadcast(alpha), sum),
                scale_add(alpha, sum, beta, old) $multiply_add($broadcast(beta), old, scale(alpha, sum)),
                correct(sum, _below, _column) sum,
            }
            micro_kernel!(features: $features, word: $word, element: $word, lanes: $lanes, ahead: $ahead);
        }
    };
}
pub(super) use float_kernels;
