//! Transposes with AVX2.
//!
//! Of each row of a stripe 16 bytes are taken at a time, which is `N = 16 / E` elements, and lines are made in two halves. Register `r` of a half holds in its lane `l` 16 bytes of row
//! `N * l + r` of those of the half, so that within each lane the `N` registers are `N` rows of `N` elements. They are transposed there ([`super::network`]), and register `c` then is half of line
//! `c`, all its rows in order.

use core::arch::x86_64::*;

use super::copy_run;
use super::network::{registers, stage, transposed};
use super::stripe::{
    Both, KEPT, LINE, Line, ORDINARY, PARTS, STREAMING, Scratch, Stores, Stripe, UNIT, ahead, fetch, stripes,
    write_edge,
};

/// The bytes of half a line.
const HALF: usize = LINE / 2;

/// Transposes a square of elements of `$bytes` bytes, `$n` of them in 16.
macro_rules! square {
    ($name:ident, $bytes:literal, $n:tt, $low:ident, $high:ident) => {
        /// # Safety
        ///
        /// As many elements of each row as there are columns, in whole units, are read from `at` on.
        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn $name<const STORES: u8>(
            rows: &[*const u8; LINE / $bytes],
            at: usize,
            (coming, ahead): (&[*const u8; LINE / $bytes], usize),
            (_, columns): (*mut u8, &[isize]),
            (_, lines): (*mut Line, &mut [Both; LINE / $bytes]),
        ) {
            for strip in 0..columns.len().div_ceil($n) {
                for row in coming.iter().skip(strip * $n).take($n) {
                    fetch::<$bytes>(row.wrapping_add(ahead));
                }
                for half in 0..2 {
                    macro_rules! lanes {
                        ($r:literal) => {{
                            // SAFETY: 16 bytes of a row.
                            let row = |row: usize| unsafe {
                                let row = rows[half * HALF / $bytes + row];
                                _mm_loadu_si128(row.wrapping_add(at + strip * UNIT).cast())
                            };
                            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row($r)), row($n + $r))
                        }};
                    }
                    let strips = registers!($n, lanes);
                    let transposed = transposed!($n, strips, $low, $high);
                    for (k, register) in transposed.into_iter().enumerate() {
                        // SAFETY: half a line is as long as a register.
                        unsafe {
                            let line = lines[strip * $n + k].line.0.as_mut_ptr().add(half * HALF);
                            _mm256_storeu_si256(line.cast(), register)
                        };
                    }
                }
            }
        }
    };
}

square!(square_1, 1, 16, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8);
square!(square_2, 2, 8, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16);
square!(square_4, 4, 4, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32);
square!(square_8, 8, 2, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64);

/// Writes a line past the caches.
///
/// # Safety
///
/// The invariant of the module above; the place is aligned to a line.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn stream(to: *mut u8, line: &Line) {
    for half in [0, HALF] {
        // SAFETY: as here.
        unsafe {
            let value = _mm256_loadu_si256(line.0.as_ptr().add(half).cast());
            _mm256_stream_si256(to.wrapping_add(half).cast(), value);
        }
    }
}

stripes!(target_feature(enable = "avx2"): run_1 of 1 by square_1, joins false, run_2 of 2 by square_2, joins false, run_4 of 4 by square_4, joins false, run_8 of 8 by square_8, joins false; stream, writes false);
