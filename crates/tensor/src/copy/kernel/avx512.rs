//! Transposes with AVX-512.
//!
//! A square is 64 bytes of each of `64 / E` rows, which are four groups of `N = 16 / E`. Within each lane of 16 bytes the `N` registers of a group are `N` rows of `N` elements, and are
//! transposed there ([`super::network`]): lane `l` of register `c` then has column `N * l + c`, of these rows. The registers `c` of the four groups have four columns in their lanes, each a
//! quarter from each group; a transpose of lanes makes lines of them.

use core::arch::x86_64::*;

use super::copy_run;
use super::network::{registers, stage, transposed};
use super::stripe::{
    Both, KEPT, LINE, Line, ORDINARY, PARTS, STREAMING, Scratch, Stores, Stripe, UNIT, ahead, fetch, stripes, write_edge,
};

/// Transposes a square of elements of `$bytes` bytes, `$n` of them in 16.
macro_rules! square {
    ($name:ident, $bytes:literal, $n:tt, $low:ident, $high:ident) => {
        /// # Safety
        ///
        /// Of each row one element for each column is read from `at` on. Lines that are whole are written to their columns, others to `lines`; the rows that come are only fetched.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name<const STORES: u8>(
            rows: &[*const u8; LINE / $bytes],
            at: usize,
            (coming, ahead): (&[*const u8; LINE / $bytes], usize),
            dst: *mut u8,
            columns: &[isize],
            lines: &mut [Both; LINE / $bytes],
        ) {
            let present = u64::MAX >> (LINE - (columns.len() * $bytes).min(LINE));
            let mut groups = [[_mm512_setzero_si512(); $n]; LINE / UNIT];
            for (number, group) in groups.iter_mut().enumerate() {
                macro_rules! row {
                    ($r:literal) => {
                        // SAFETY: as here.
                        unsafe { _mm512_maskz_loadu_epi8(present, rows[number * $n + $r].wrapping_add(at).cast()) }
                    };
                }
                let rows = registers!($n, row);
                *group = transposed!($n, rows, $low, $high);
            }
            let [a, b, c, d] = groups;
            for k in 0..$n {
                let [ab, more_ab] = [_mm512_shuffle_i32x4::<0x44>(a[k], b[k]), _mm512_shuffle_i32x4::<0xee>(a[k], b[k])];
                let [cd, more_cd] = [_mm512_shuffle_i32x4::<0x44>(c[k], d[k]), _mm512_shuffle_i32x4::<0xee>(c[k], d[k])];
                let four = [
                    _mm512_shuffle_i32x4::<0x88>(ab, cd),
                    _mm512_shuffle_i32x4::<0xdd>(ab, cd),
                    _mm512_shuffle_i32x4::<0x88>(more_ab, more_cd),
                    _mm512_shuffle_i32x4::<0xdd>(more_ab, more_cd),
                ];
                for (lane, line) in four.into_iter().enumerate() {
                    let number = lane * $n + k;
                    // One at a time: of many at once the processor would wait for the first.
                    fetch::<$bytes>(coming[number].wrapping_add(ahead));
                    // SAFETY: as here; a line is as long as a register.
                    unsafe {
                        match (STORES, columns.get(number)) {
                            (ORDINARY, Some(column)) => _mm512_storeu_si512(dst.wrapping_offset(*column).cast(), line),
                            (STREAMING, Some(column)) => _mm512_stream_si512(dst.wrapping_offset(*column).cast(), line),
                            (ORDINARY | STREAMING, None) => {}
                            _ => _mm512_storeu_si512(lines[number].line.0.as_mut_ptr().cast(), line),
                        }
                    }
                }
            }
        }
    };
}

square!(square_1, 1, 16, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8);
square!(square_2, 2, 8, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16);
square!(square_4, 4, 4, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32);
square!(square_8, 8, 2, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64);

/// Writes a line past the caches.
///
/// # Safety
///
/// The invariant of the module above; the place is aligned to a line.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn stream(to: *mut u8, line: &Line) {
    // SAFETY: as here.
    unsafe { _mm512_stream_si512(to.cast(), _mm512_loadu_si512(line.0.as_ptr().cast())) };
}

stripes!(target_feature(enable = "avx512f,avx512bw"): run_1 of 1 by square_1, run_2 of 2 by square_2, run_4 of 4 by square_4, run_8 of 8 by square_8; stream, near false);

/// Copies `lines` lines past the caches to a place that is aligned to them.
///
/// # Safety
///
/// The invariant of the module above, and a processor with AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn stream_lines(src: *const u8, dst: *mut u8, lines: usize) {
    for at in (0..lines).map(|line| LINE * line) {
        // SAFETY: as here.
        unsafe {
            _mm512_stream_si512(dst.wrapping_add(at).cast(), _mm512_loadu_si512(src.wrapping_add(at).cast()));
        }
    }
}
