//! Transposes with AVX-512: 64 bytes of a destination row at a time.
//!
//! The source rows of one destination line are `64 / E` for elements of `E` bytes; of each, 16 bytes are taken at a time, which is `N = 16 / E`
//! elements. Register `r` holds in its lane `l` those of row `N * l + r`, so that within each lane the `N` registers are `N` rows of `N` elements.
//! They are transposed there ([`super::network`]), and register `c` then is line `c` of the result, all rows in order.

use core::arch::x86_64::*;

use super::network::{registers, stage, transposed};
use super::{Block, Rows};

/// Transposes a block of elements of `bytes` bytes: 1, 2, 4 or 8.
///
/// # Safety
/// The invariant of [`Block`], at least `16 / bytes` columns, and a processor with AVX-512 F and BW. With `STREAM`, every destination line is
/// aligned to 64 bytes.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn transpose<const STREAM: bool, R: Rows>(block: &Block<'_, R>, bytes: usize) {
    // SAFETY: as here.
    unsafe {
        match bytes {
            1 => bytes_1::<STREAM, R>(block),
            2 => bytes_2::<STREAM, R>(block),
            4 => bytes_4::<STREAM, R>(block),
            _ => bytes_8::<STREAM, R>(block),
        }
    }
}

/// A transpose for elements of `$bytes` bytes, `$n` of them in 16.
macro_rules! width {
    ($name:ident, $bytes:literal, $n:tt, $low:ident, $high:ident) => {
        /// # Safety
        /// As [`transpose`].
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name<const STREAM: bool, R: Rows>(block: &Block<'_, R>) {
            const LINES: usize = 4 * $n;
            let (rows, columns) = (block.rows, block.columns);
            let (mut spare, mut spare_next) = ([0; LINES], [0; LINES]);
            let mut first = 0;
            while first < rows.count() {
                let count = LINES.min(rows.count() - first);
                // The mask leaves out what rows past the end give.
                let from = rows.group(block.src, first, &mut spare);
                let next = rows.group(block.src, first + LINES, &mut spare_next);
                let mask = if count == LINES { u64::MAX } else { (1 << (count * $bytes)) - 1 };
                let to = block.dst.wrapping_add(first * $bytes);
                let mut column = 0;
                while column < columns.len() {
                    if R::SCATTERED && column * $bytes % 64 == 0 {
                        for row in 0..LINES {
                            // A prefetch is no access.
                            _mm_prefetch::<_MM_HINT_T0>(next(row).wrapping_add(column * $bytes).cast());
                        }
                    }
                    // A last strip that would go past the end begins earlier, and writes some lines again.
                    let start = column.min(columns.len() - $n);
                    let at = start * $bytes;
                    // SAFETY: 16 bytes from element `start` of each row are in the block, and so are the lines written.
                    unsafe {
                        macro_rules! lanes {
                            ($r:literal) => {{
                                let row = |row: usize| _mm_loadu_si128(from(row).wrapping_add(at).cast());
                                // From memory, an insertion needs no shuffle.
                                let lanes = _mm512_castsi128_si512(row($r));
                                let lanes = _mm512_inserti32x4::<1>(lanes, row($n + $r));
                                let lanes = _mm512_inserti32x4::<2>(lanes, row(2 * $n + $r));
                                _mm512_inserti32x4::<3>(lanes, row(3 * $n + $r))
                            }};
                        }
                        let strip = registers!($n, lanes);
                        let lines = transposed!($n, strip, $low, $high);
                        let places = &columns[start..start + $n];
                        macro_rules! stream {
                            ($k:literal) => {
                                _mm512_stream_si512(to.wrapping_offset(places[$k]).cast(), lines[$k])
                            };
                        }
                        macro_rules! store {
                            ($k:literal) => {
                                _mm512_storeu_si512(to.wrapping_offset(places[$k]).cast(), lines[$k])
                            };
                        }
                        macro_rules! masked {
                            ($k:literal) => {
                                _mm512_mask_storeu_epi8(to.wrapping_offset(places[$k]).cast(), mask, lines[$k])
                            };
                        }
                        if mask != u64::MAX {
                            let _ = registers!($n, masked);
                        } else if STREAM {
                            let _ = registers!($n, stream);
                        } else {
                            let _ = registers!($n, store);
                        }
                    }
                    column += $n;
                }
                first += LINES;
            }
        }
    };
}

width!(bytes_1, 1, 16, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8);
width!(bytes_2, 2, 8, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16);
width!(bytes_4, 4, 4, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32);
width!(bytes_8, 8, 2, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64);

/// Copies `lines` lines past the caches to a place that is aligned to them.
///
/// # Safety
/// The invariant of the module above, and a processor with AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn stream_lines(src: *const u8, dst: *mut u8, lines: usize) {
    for at in (0..lines).map(|line| 64 * line) {
        // SAFETY: as here.
        unsafe {
            _mm512_stream_si512(dst.wrapping_add(at).cast(), _mm512_loadu_si512(src.wrapping_add(at).cast()));
        }
    }
}
