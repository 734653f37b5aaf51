//! Transposes with AVX2.
//!
//! Law: that of [`super::stripe`].
//!
//! A strip is 16 bytes of each row of a stripe, which are `N = 16 / E` elements. Its lines are made
//! in two halves. Lane `l` of register `r` of a half holds the elements of row `N * l + r` of that
//! half, so that within each lane the `N` registers are `N` rows of `N` elements. They are
//! transposed within the lanes ([`super::network`]). After that, register `c` is half of line `c`,
//! with all its rows in order.

use core::arch::x86_64::*;

use super::network::{registers, stage, transposed};
use super::stripe::{
    CacheLine, From, KEPT, LinePair, ORDINARY, PARTS, STAGED_BYTES, STREAMING, Scratch, Stores, Stripe, UNIT, ahead,
    prefetch, stage, stages, stripes, write_edge,
};
use crate::memory::LINE;
use crate::simd::{Instructions, copy_run};

/// The bytes of half a line.
const HALF: usize = LINE / 2;

/// Transposes strips of elements of `$bytes` bytes, `$n` of them in 16. `$width` has as many bytes
/// as a row of a strip.
macro_rules! strips {
    ($name:ident, $bytes:literal of $width:ident, $n:tt, $low:ident, $high:ident) => {
        /// # Safety
        ///
        /// This many bytes of each row may be read.
        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn $name<const STORES: u8>(
            from: &From<'_, { LINE / $bytes }>,
            (coming, ahead): (&[[*const u8; $width / $bytes]], usize),
            _: (*mut u8, &[isize], usize),
            (_, lines): (*mut CacheLine, &mut [LinePair; $width / $bytes]),
        ) {
            let coming = coming.as_flattened();
            let share = coming.len() * UNIT / $width;
            for (strip, lines) in lines.chunks_exact_mut($n).enumerate() {
                for row in coming.iter().skip(strip * share).take(share) {
                    prefetch::<$bytes>(Instructions::Avx2, row.wrapping_add(ahead));
                }
                for half in 0..2 {
                    macro_rules! lanes {
                        ($r:literal) => {{
                            // SAFETY: 16 bytes of a row, which the caller vouches for.
                            let row = |row: usize| unsafe {
                                let row = from.rows[half * HALF / $bytes + row];
                                _mm_loadu_si128(row.wrapping_add(from.at + strip * UNIT).cast())
                            };
                            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row($r)), row($n + $r))
                        }};
                    }
                    let rows = registers!($n, lanes);
                    let transposed = transposed!($n, rows, $low, $high);
                    for (register, line) in transposed.into_iter().zip(lines.iter_mut()) {
                        // SAFETY: half a line is as long as a register.
                        unsafe { _mm256_storeu_si256(line.line.0.as_mut_ptr().add(half * HALF).cast(), register) };
                    }
                }
            }
        }
    };
}

strips!(strips_1, 1 of UNIT, 16, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8);
strips!(strips_2, 2 of UNIT, 8, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16);
strips!(strips_4, 4 of LINE, 4, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32);
strips!(strips_8, 8 of LINE, 2, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64);

/// Writes a line with non-temporal stores.
///
/// # Safety
///
/// The line may be written there; the place is aligned to a line.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn stream(to: *mut u8, line: &CacheLine) {
    for half in [0, HALF] {
        // SAFETY: the caller vouches for the place and its alignment.
        unsafe {
            let value = _mm256_loadu_si256(line.0.as_ptr().add(half).cast());
            _mm256_stream_si256(to.wrapping_add(half).cast(), value);
        }
    }
}

stripes!(Avx2, target_feature(enable = "avx2"):
    run_1 of 1 by strips_1 of UNIT, joins false,
    run_2 of 2 by strips_2 of UNIT, joins false,
    run_4 of 4 by strips_4 of LINE, joins false,
    run_8 of 8 by strips_8 of LINE, joins false;
    stage, stream, writes false);
