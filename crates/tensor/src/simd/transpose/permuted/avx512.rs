//! Transposes of rows whose pieces are permuted, with AVX-512.
//!
//! Law: that of [`super::transpose_permuted`]. The squares are those of
//! [`crate::simd::transpose::avx512`], except that each register that is read or written is
//! permuted first.

use core::arch::x86_64::*;

use super::Pieces;
use crate::memory::LINE;
use crate::simd::Instructions;
use crate::simd::transpose::network::{registers, stage, transposed};
use crate::simd::transpose::stripe::{StripeRows, prefetch, prefetch_distance};

/// The smallest number of bytes of a piece that is permuted in a register.
pub(super) const LEAST: usize = 4;

/// A line with its bytes at the offsets `p ^ mask`.
#[inline]
#[target_feature(enable = "avx512f")]
fn permuted(line: __m512i, mask: usize) -> __m512i {
    let order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_permutexvar_epi32(_mm512_xor_si512(order, _mm512_set1_epi32((mask % LINE / LEAST) as i32)), line)
}

/// Transposes the registers of a group. Those of elements of 16 bytes are one row each already.
macro_rules! network {
    (1, $rows:ident, $low:tt, $high:tt) => {
        $rows
    };
    ($n:tt, $rows:ident, $low:tt, $high:tt) => {
        transposed!($n, $rows, $low, $high)
    };
}

/// Evaluates a macro for each register of a group.
macro_rules! group {
    (1, $call:ident) => {
        [$call!(0)]
    };
    ($n:tt, $call:ident) => {
        registers!($n, $call)
    };
}

/// The squares of a stripe of elements of `$bytes` bytes, `$n` of them in 16.
macro_rules! squares {
    ($name:ident, $bytes:literal, $n:tt, $low:tt, $high:tt) => {
        /// # Safety
        ///
        /// As [`super::transpose_permuted`], for a stripe of `64 / E` rows and a multiple of as
        /// many columns.
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name<const PERMUTED: bool>(
            pieces: &Pieces<'_>,
            [rows, next]: [&StripeRows; 2],
            masks: &[usize; LINE],
        ) {
            const SIDE: usize = LINE / $bytes;
            let (rows, next) = (&rows.0, &next.0);
            let (columns, column_masks) = pieces.columns;
            let (total, by) = (columns.len() * $bytes, prefetch_distance(Instructions::Avx512, $bytes));
            let squares = columns.chunks_exact(SIDE).zip(column_masks.chunks_exact(SIDE));
            for (number, (columns, column_masks)) in squares.enumerate() {
                let at = number * LINE;
                let (coming, ahead) = match at + by {
                    ahead if ahead < total => (rows, ahead),
                    _ if total <= by => (next, at),
                    ahead => (next, (ahead - total) / LINE * LINE),
                };
                macro_rules! group_of {
                    ($g:literal) => {{
                        macro_rules! row {
                            ($r:literal) => {{
                                let row = rows[$g * $n + $r];
                                // SAFETY: the caller vouches for whole lines of each row; the mask
                                // permutes parts within a line.
                                unsafe {
                                    if PERMUTED {
                                        let mask = masks[$g * $n + $r];
                                        let from = row.wrapping_add(at ^ (mask / LINE * LINE));
                                        permuted(_mm512_loadu_si512(from.cast()), mask)
                                    } else {
                                        _mm512_loadu_si512(row.wrapping_add(at).cast())
                                    }
                                }
                            }};
                        }
                        let rows = group!($n, row);
                        network!($n, rows, $low, $high)
                    }};
                }
                // Four variables, because the compiler would copy an array of them.
                let (a, b, c, d) = (group_of!(0), group_of!(1), group_of!(2), group_of!(3));
                for k in 0..$n {
                    let ab = [_mm512_shuffle_i32x4::<0x44>(a[k], b[k]), _mm512_shuffle_i32x4::<0xee>(a[k], b[k])];
                    let cd = [_mm512_shuffle_i32x4::<0x44>(c[k], d[k]), _mm512_shuffle_i32x4::<0xee>(c[k], d[k])];
                    let four = [
                        _mm512_shuffle_i32x4::<0x88>(ab[0], cd[0]),
                        _mm512_shuffle_i32x4::<0xdd>(ab[0], cd[0]),
                        _mm512_shuffle_i32x4::<0x88>(ab[1], cd[1]),
                        _mm512_shuffle_i32x4::<0xdd>(ab[1], cd[1]),
                    ];
                    for (lane, line) in four.into_iter().enumerate() {
                        let number = lane * $n + k;
                        // One prefetch at a time, because many at once would delay the loads.
                        prefetch::<$bytes>(Instructions::Avx512, coming[number].wrapping_add(ahead));
                        let (Some(column), Some(mask)) = (columns.get(number), column_masks.get(number)) else {
                            continue;
                        };
                        let place = pieces.at ^ mask ^ pieces.flips[1];
                        let to = pieces.dst.wrapping_offset(*column).wrapping_add(place / LINE * LINE);
                        let line = permuted(line, place);
                        // SAFETY: the caller vouches for the place, and its alignment where stores
                        // are non-temporal; a line is as long as a register.
                        unsafe {
                            if pieces.streams {
                                _mm512_stream_si512(to.cast(), line);
                            } else {
                                _mm512_storeu_si512(to.cast(), line);
                            }
                        }
                    }
                }
            }
        }
    };
}

squares!(squares_1, 1, 16, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8);
squares!(squares_2, 2, 8, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16);
squares!(squares_4, 4, 4, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32);
squares!(squares_8, 8, 2, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64);
squares!(squares_16, 16, 1, _, _);

/// Transposes a stripe of whole squares.
///
/// # Safety
///
/// As [`super::transpose_permuted`], for a stripe of `64 / unit` rows and a multiple of as many
/// columns; no part is smaller than [`LEAST`]; a processor with AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn stripe(pieces: &Pieces<'_>, unit: usize) {
    let (sources, row_masks) = pieces.rows;
    let (mut rows, mut next, mut masks) = (StripeRows::NONE, StripeRows::NONE, [0; LINE]);
    rows.set(pieces.src, sources, unit);
    next.set(pieces.next.0, pieces.next.1, unit);
    for (mask, row) in masks.iter_mut().zip(row_masks) {
        *mask = row ^ pieces.flips[0];
    }
    let rows = [&rows, &next];
    // SAFETY: the caller vouches for the squares and the instructions.
    unsafe {
        match (unit, pieces.parts[0] != 0) {
            (1, false) => squares_1::<false>(pieces, rows, &masks),
            (1, true) => squares_1::<true>(pieces, rows, &masks),
            (2, false) => squares_2::<false>(pieces, rows, &masks),
            (2, true) => squares_2::<true>(pieces, rows, &masks),
            (4, false) => squares_4::<false>(pieces, rows, &masks),
            (4, true) => squares_4::<true>(pieces, rows, &masks),
            (8, false) => squares_8::<false>(pieces, rows, &masks),
            (8, true) => squares_8::<true>(pieces, rows, &masks),
            (16, false) => squares_16::<false>(pieces, rows, &masks),
            (16, true) => squares_16::<true>(pieces, rows, &masks),
            _ => {}
        }
    }
}
