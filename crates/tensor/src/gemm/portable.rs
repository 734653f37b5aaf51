//! Micro-kernels in plain Rust, which the compiler vectorizes with the baseline instructions of the
//! target.
//!
//! Law: that of [`super::kernel`]. Reason for unsafe code: they access memory through pointers, as
//! the other micro-kernels do.
#![allow(unsafe_code)]

use super::element::SumElement;
use super::kernel::{CHAINS, KernelSet, KernelTile, write_nothing};

/// The micro-kernels for one type with this many lanes: the numbers of columns for each number of
/// rows. Their sums take half of sixteen 16-byte registers.
macro_rules! kernels {
    ($(#[$doc:meta])* $name:ident, $element:ty, $lanes:literal, $($rows:literal: [$($n:literal)*]),*) => {
        $(#[$doc])*
        pub(super) static $name: KernelSet<$element, $element> = KernelSet {
            lanes: $lanes,
            group: 1,
            broadcast_cost: 2,
            extra: 0,
            write_extra: write_nothing,
            multiply_adds: multiply_adds::<$element, $lanes>,
            packed: &[$(&[$(kernel::<$element, $rows, $n, false, false>),*]),*],
            strided: &[$(&[$(kernel::<$element, $rows, $n, true, false>),*]),*],
            edge: &[$(&[$(kernel::<$element, $rows, $n, true, true>),*]),*],
        };
    };
}

kernels!(
    /// Single precision: 16x2. A broadcast of a word of B is a separate instruction, so that few
    /// columns are better than few rows.
    SINGLE, f32, 8, 8: [1 2 3 4], 16: [1 2]
);
kernels!(
    /// Double precision: 8x2.
    DOUBLE, f64, 4, 4: [1 2 3 4], 8: [1 2]
);
kernels!(
    /// Integers of 32 bits: 8x4.
    INTEGERS, i32, 8, 8: [1 2 3 4]
);

/// # Safety
///
/// The invariant of the tile.
#[allow(clippy::needless_range_loop)]
unsafe fn kernel<T: SumElement, const ROWS: usize, const N: usize, const STRIDED: bool, const EDGE: bool>(
    tile: &KernelTile<T, T>,
) {
    let mut sums = [[T::default(); ROWS]; N];
    let (mut a, mut b) = (tile.a, tile.b);
    let b_column = if STRIDED { tile.b_column } else { 1 };
    for _ in 0..tile.k {
        let mut rows = [T::default(); ROWS];
        // SAFETY: the invariant of the tile names these words.
        unsafe {
            if EDGE {
                for i in 0..tile.rows.min(ROWS) {
                    rows[i] = *a.add(i);
                }
            } else {
                rows = a.cast::<[T; ROWS]>().read_unaligned();
            }
            for j in 0..N {
                let column = *b.offset(j as isize * b_column);
                for i in 0..ROWS {
                    sums[j][i] = sums[j][i].plus(rows[i], column);
                }
            }
        }
        a = a.wrapping_offset(tile.a_step);
        b = b.wrapping_offset(tile.b_step);
    }
    for j in 0..N {
        for i in 0..tile.rows.min(ROWS) {
            // SAFETY: the invariant of the tile names these elements of C.
            unsafe {
                let place = tile.c.offset(j as isize * tile.c_column).add(i);
                let value = sums[j][i].times(tile.alpha);
                *place = if tile.beta == T::default() { value } else { value.plus(tile.beta, *place) };
            }
        }
    }
}

/// As [`MicroKernel`](super::kernel::MicroKernel)'s, in chains of `ROWS` numbers each.
///
/// # Safety
///
/// None: no memory is used.
unsafe fn multiply_adds<T: SumElement, const ROWS: usize>(steps: usize) -> usize {
    let operand = std::hint::black_box([T::default(); ROWS]);
    let mut sums = [[T::default(); ROWS]; CHAINS / 2];
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = std::array::from_fn(|i| sum[i].plus(operand[i], operand[i]));
        }
    }
    std::hint::black_box(sums);
    steps * ROWS * (CHAINS / 2)
}
