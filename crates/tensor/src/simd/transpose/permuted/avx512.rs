//! Squares whose rows and columns are turned, with AVX-512: as those of [`crate::simd::transpose::avx512`], but that each register that is read or written is put in order first.

use core::arch::x86_64::*;

use super::Pieces;
use crate::memory::LINE;
use crate::simd::Instructions;
use crate::simd::transpose::network::{registers, stage, transposed};
use crate::simd::transpose::stripe::{Rows, ahead_of, fetch};

/// The bytes of the least parts that are put in order.
pub(super) const LEAST: usize = 4;

/// The parts of a line, in the order in which the bits of `turn` are flipped in their places.
#[inline]
#[target_feature(enable = "avx512f")]
fn turned(line: __m512i, turn: usize) -> __m512i {
    let order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_permutexvar_epi32(_mm512_xor_si512(order, _mm512_set1_epi32((turn % LINE / LEAST) as i32)), line)
}

/// Transposes the four registers of a group of elements of 16 bytes, which is nothing: each is one row.
macro_rules! network {
    (1, $rows:ident, $low:tt, $high:tt) => {
        $rows
    };
    ($n:tt, $rows:ident, $low:tt, $high:tt) => {
        transposed!($n, $rows, $low, $high)
    };
}

/// A call for each register of a group.
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
        /// As [`super::transpose_turned`], for a stripe of `64 / E` rows and a multiple of as many columns.
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name<const TURNED: bool>(pieces: &Pieces<'_>, [rows, next]: [&Rows; 2], turns: &[usize; LINE]) {
            const SIDE: usize = LINE / $bytes;
            let (rows, next) = (&rows.0, &next.0);
            let (columns, column_turns) = pieces.columns;
            let (total, by) = (columns.len() * $bytes, ahead_of(Instructions::Avx512, $bytes));
            let squares = columns.chunks_exact(SIDE).zip(column_turns.chunks_exact(SIDE));
            for (number, (columns, column_turns)) in squares.enumerate() {
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
                                // SAFETY: as here; a line, whose parts are turned within it.
                                unsafe {
                                    if TURNED {
                                        let turn = turns[$g * $n + $r];
                                        let from = row.wrapping_add(at ^ (turn / LINE * LINE));
                                        turned(_mm512_loadu_si512(from.cast()), turn)
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
                // Each by itself: of an array of them the compiler would make copies.
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
                        // One at a time: of many at once the processor would wait for the first.
                        fetch::<$bytes>(Instructions::Avx512, coming[number].wrapping_add(ahead));
                        let (Some(column), Some(turn)) = (columns.get(number), column_turns.get(number)) else {
                            continue;
                        };
                        let place = pieces.at ^ turn ^ pieces.flips[1];
                        let to = pieces.dst.wrapping_offset(*column).wrapping_add(place / LINE * LINE);
                        let line = turned(line, place);
                        // SAFETY: as here; a line is as long as a register.
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
/// As [`super::transpose_turned`], for a stripe of `64 / unit` rows and a multiple of as many columns; no part is smaller than [`LEAST`]; a processor with AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn stripe(pieces: &Pieces<'_>, unit: usize) {
    let (sources, row_turns) = pieces.rows;
    let (mut rows, mut next, mut turns) = (Rows::NONE, Rows::NONE, [0; LINE]);
    rows.set(pieces.src, sources, unit);
    next.set(pieces.next.0, pieces.next.1, unit);
    for (turn, row) in turns.iter_mut().zip(row_turns) {
        *turn = row ^ pieces.flips[0];
    }
    let rows = [&rows, &next];
    // SAFETY: as here.
    unsafe {
        match (unit, pieces.parts[0] != 0) {
            (1, false) => squares_1::<false>(pieces, rows, &turns),
            (1, true) => squares_1::<true>(pieces, rows, &turns),
            (2, false) => squares_2::<false>(pieces, rows, &turns),
            (2, true) => squares_2::<true>(pieces, rows, &turns),
            (4, false) => squares_4::<false>(pieces, rows, &turns),
            (4, true) => squares_4::<true>(pieces, rows, &turns),
            (8, false) => squares_8::<false>(pieces, rows, &turns),
            (8, true) => squares_8::<true>(pieces, rows, &turns),
            (16, false) => squares_16::<false>(pieces, rows, &turns),
            (16, true) => squares_16::<true>(pieces, rows, &turns),
            _ => {}
        }
    }
}
