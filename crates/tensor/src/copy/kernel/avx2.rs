//! Transposes with AVX2: 32 bytes of a destination row at a time.
//!
//! As with AVX-512, in two lanes instead of four: register `r` holds in its lane `l` 16 bytes of row `N * l + r`.

use core::arch::x86_64::*;

use super::network::{registers, stage, transposed};
use super::{Block, Rows};

/// Transposes a block of elements of `bytes` bytes: 1, 2, 4 or 8.
///
/// # Safety
/// The invariant of [`Block`], at least `16 / bytes` columns, and a processor with AVX2. With `STREAM`, every destination line is aligned to 32 bytes.
#[target_feature(enable = "avx2")]
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
        #[target_feature(enable = "avx2")]
        unsafe fn $name<const STREAM: bool, R: Rows>(block: &Block<'_, R>) {
            const LINES: usize = 2 * $n;
            let (rows, columns) = (block.rows, block.columns);
            let mut spare = [0; LINES];
            let mut first = 0;
            while first < rows.count() {
                let count = LINES.min(rows.count() - first);
                // What rows past the end give is left out.
                let from = rows.group(block.src, first, &mut spare);
                let to = block.dst.wrapping_add(first * $bytes);
                let mut column = 0;
                while column < columns.len() {
                    // A last strip that would go past the end begins earlier, and writes some lines again.
                    let start = column.min(columns.len() - $n);
                    let at = start * $bytes;
                    // SAFETY: 16 bytes from element `start` of each row are in the block, and so are `count` elements of the lines.
                    unsafe {
                        macro_rules! lanes {
                            ($r:literal) => {{
                                let row = |row: usize| _mm_loadu_si128(from(row).wrapping_add(at).cast());
                                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row($r)), row($n + $r))
                            }};
                        }
                        let strip = registers!($n, lanes);
                        let lines = transposed!($n, strip, $low, $high);
                        let places = &columns[start..start + $n];
                        macro_rules! stream {
                            ($k:literal) => {
                                _mm256_stream_si256(to.wrapping_offset(places[$k]).cast(), lines[$k])
                            };
                        }
                        macro_rules! store {
                            ($k:literal) => {
                                _mm256_storeu_si256(to.wrapping_offset(places[$k]).cast(), lines[$k])
                            };
                        }
                        if count < LINES {
                            for (place, line) in places.iter().zip(lines) {
                                let mut bytes = [0_u8; 32];
                                _mm256_storeu_si256(bytes.as_mut_ptr().cast(), line);
                                super::copy_run(bytes.as_ptr(), to.wrapping_offset(*place), count * $bytes);
                            }
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

width!(bytes_1, 1, 16, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8);
width!(bytes_2, 2, 8, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16);
width!(bytes_4, 4, 4, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32);
width!(bytes_8, 8, 2, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64);
