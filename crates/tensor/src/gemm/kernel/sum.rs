//! The loop over K, written once over a [`MicroKernel`].
//!
//! **Law.** That of [`super`]: `M` vectors by `N` columns of sums stay in registers from the first
//! step to the last.
//!
//! Reason for unsafe code: vector instructions on memory that Rust knows only by its address.
#![allow(unsafe_code)]

use super::{CHAINS, KernelTile, MicroKernel};

/// The micro-kernel: `M` vectors by `N` columns of sums. Each step loads `M` vectors of A and
/// multiplies each by `N` broadcast words of B.
///
/// `STRIDED` says whether columns of B have a stride. `EDGE` says that no rows of A beyond the
/// tile's are read.
///
/// # Safety
///
/// The invariant of the [`KernelTile`], and that of [`MicroKernel`].
#[inline(always)]
#[allow(clippy::needless_range_loop, unused_assignments)]
pub(in crate::gemm) unsafe fn micro_kernel<
    K: MicroKernel,
    const M: usize,
    const N: usize,
    const STRIDED: bool,
    const EDGE: bool,
>(
    tile: &KernelTile<K::Word, K::Element>,
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
        // The tile of C is prefetched column by column between the steps, because prefetching it at
        // once would delay the loads of A. A column that does not begin at a cache line ends in one
        // more line.
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

/// Multiplies and adds in registers alone, in [`CHAINS`] chains of this many steps: the peak rate
/// of the instructions. Returns the number of words.
///
/// # Safety
///
/// As [`MicroKernel`].
#[inline(always)]
pub(in crate::gemm) unsafe fn multiply_adds<K: MicroKernel>(steps: usize) -> usize {
    // SAFETY: no memory is used; the caller vouches for the instructions.
    unsafe {
        let operand = K::broadcast(std::hint::black_box(K::Word::default()));
        let mut sums = [K::zero(); CHAINS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = K::multiply_add(operand, operand, *sum);
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
