//! Transposes with AVX-512.
//!
//! Law: that of [`super::stripe`].
//!
//! A strip is 16 bytes of each of `64 / E` rows, which are four groups of `N = 16 / E`. Lane `l` of
//! register `r` holds the bytes of row `r` of group `l`, so that within each lane the `N` registers
//! are `N` rows of `N` elements. They are transposed within the lanes ([`super::network`]). After
//! that, register `c` is line `c`, with all its rows in order.
//!
//! A line that was kept and the one that follows it are joined by a permutation of both. The
//! indices of the permutation are read from a table of consecutive numbers, beginning at the
//! element at which the line begins. For bytes only AVX-512 VBMI has this permutation; without it,
//! the two are joined in memory.

use core::arch::x86_64::*;

use super::network::{registers, stage, transposed};
use super::stripe::{
    CacheLine, From, KEPT, LinePair, ORDINARY, PARTS, STAGED_BYTES, STREAMING, Scratch, StagedRows, Stores, Stripe,
    UNIT, ahead, prefetch, stages, stripes, write_edge,
};
use crate::memory::LINE;
use crate::simd::{Instructions, copy_run};

/// Consecutive numbers for the elements of two lines, from which permutation indices are read.
#[repr(align(64))]
struct LineOrder<T, const N: usize>([T; N]);

macro_rules! order {
    ($name:ident, $number:ty, $bytes:literal) => {
        static $name: LineOrder<$number, { 2 * LINE / $bytes }> = {
            let mut order = [0; 2 * LINE / $bytes];
            let mut k = 0;
            while k < order.len() {
                order[k] = k as $number;
                k += 1;
            }
            LineOrder(order)
        };
    };
}

order!(ORDER_1, u8, 1);
order!(ORDER_2, u16, 2);
order!(ORDER_4, u32, 4);
order!(ORDER_8, u64, 8);

/// The mask of the first `bytes` bytes of a line, at most all.
#[inline(always)]
fn first(bytes: usize) -> __mmask64 {
    if bytes == 0 { 0 } else { u64::MAX >> (LINE - bytes.min(LINE)) }
}

/// Stages this many bytes of each row, from `at` on.
///
/// # Safety
///
/// They may be read, and are at most [`STAGED_BYTES`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn stage(rows: &[*const u8], at: usize, bytes: usize, staged: &mut StagedRows) {
    let (lines, rest) = (bytes / LINE, first(bytes % LINE));
    for (row, staged) in rows.iter().zip(staged.0.chunks_exact_mut(STAGED_BYTES)) {
        let (from, to) = (row.wrapping_add(at), staged.as_mut_ptr());
        // SAFETY: the caller vouches for the bytes of the rows; the buffer has room for whole lines
        // of each.
        unsafe {
            let load = |line: usize| _mm512_loadu_si512(from.wrapping_add(line * LINE).cast());
            let store = |line: usize, what: __m512i| _mm512_store_si512(to.wrapping_add(line * LINE).cast(), what);
            if bytes == STAGED_BYTES {
                // Unrolled by hand, because the compiler would turn a loop into a call for each
                // row.
                let [a, b, c, d] = [load(0), load(1), load(2), load(3)];
                store(0, a);
                store(1, b);
                store(2, c);
                store(3, d);
            } else {
                (0..lines).for_each(|line| store(line, load(line)));
                if rest > 0 {
                    store(lines, _mm512_maskz_loadu_epi8(rest, from.wrapping_add(lines * LINE).cast()));
                }
            }
        }
    }
}

/// The lines of a strip of staged rows: 16 bytes of each.
macro_rules! strip {
    ($from:ident, $n:tt, $low:ident, $high:ident) => {{
        macro_rules! row {
            ($r:literal) => {{
                let row = |group: usize| {
                    let row = $from.staged.wrapping_add((group * $n + $r) * STAGED_BYTES);
                    // SAFETY: 16 bytes of a staged row, aligned to them.
                    unsafe { _mm_load_si128(row.cast()) }
                };
                let two = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(row(0)), row(1));
                _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(two, row(2)), row(3))
            }};
        }
        let rows = registers!($n, row);
        transposed!($n, rows, $low, $high)
    }};
}

/// The lines of a square: the available part of 64 bytes of each row.
macro_rules! square {
    ($from:ident, $n:tt, $low:ident, $high:ident) => {{
        let present = first($from.bytes);
        macro_rules! group {
            ($g:literal) => {{
                macro_rules! row {
                    ($r:literal) => {
                        // SAFETY: only the bytes under the mask are read, which the caller of the
                        // function vouches for.
                        unsafe {
                            _mm512_maskz_loadu_epi8(present, $from.rows[$g * $n + $r].wrapping_add($from.at).cast())
                        }
                    };
                }
                let rows = registers!($n, row);
                transposed!($n, rows, $low, $high)
            }};
        }
        let (a, b, c, d) = (group!(0), group!(1), group!(2), group!(3));
        let mut lines = [_mm512_setzero_si512(); 4 * $n];
        for k in 0..$n {
            let [ab, more_ab] = [_mm512_shuffle_i32x4::<0x44>(a[k], b[k]), _mm512_shuffle_i32x4::<0xee>(a[k], b[k])];
            let [cd, more_cd] = [_mm512_shuffle_i32x4::<0x44>(c[k], d[k]), _mm512_shuffle_i32x4::<0xee>(c[k], d[k])];
            lines[k] = _mm512_shuffle_i32x4::<0x88>(ab, cd);
            lines[$n + k] = _mm512_shuffle_i32x4::<0xdd>(ab, cd);
            lines[2 * $n + k] = _mm512_shuffle_i32x4::<0x88>(more_ab, more_cd);
            lines[3 * $n + k] = _mm512_shuffle_i32x4::<0xdd>(more_ab, more_cd);
        }
        lines
    }};
}

/// Transposes and writes lines of elements of `$bytes` bytes, `$n` of them in 16. Lines that are
/// kept are joined by `$permute` with indices of `$order`, if there is such an instruction.
macro_rules! lines {
    ($name:ident, $features:literal: $count:tt of $bytes:literal by $lines:ident, $n:tt, $low:ident, $high:ident $(, $permute:ident of $order:ident)?) => {
        /// # Safety
        ///
        /// For each column one element of each row may be read, and its line written, as far as
        /// there are rows. Edges are written to `lines`. The rows that come next are only
        /// prefetched.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $name<const STORES: u8>(
            from: &From<'_, { LINE / $bytes }>,
            (coming, ahead): (&[[*const u8; $count]], usize),
            (dst, columns, bytes): (*mut u8, &[isize], usize),
            (kept, lines): (*mut CacheLine, &mut [LinePair; $count]),
        ) {
            let _ = kept;
            let whole = first(bytes);
            let transposed = $lines!(from, $n, $low, $high);
            macro_rules! write {
                ($k:literal) => {{
                    // One prefetch at a time, because many at once would delay the loads.
                    for rows in coming {
                        prefetch::<$bytes>(Instructions::Avx512, rows[$k].wrapping_add(ahead));
                    }
                    if let Some(column) = columns.get($k) {
                        let (to, line) = (dst.wrapping_offset(*column), transposed[$k]);
                        // SAFETY: the caller vouches for the place of each line, and its alignment;
                        // a line is as long as a register, and the table of indices as long as two.
                        unsafe {
                            match STORES {
                                ORDINARY => _mm512_mask_storeu_epi8(to.cast(), whole, line),
                                STREAMING => _mm512_stream_si512(to.cast(), line),
                                $(KEPT => {
                                    let (past, kept) = (to as usize % LINE, kept.wrapping_add($k));
                                    let order = _mm512_loadu_si512($order.0.as_ptr().add((LINE - past) / $bytes).cast());
                                    let joined = $permute(_mm512_load_si512(kept.cast()), order, line);
                                    _mm512_stream_si512(to.wrapping_sub(past).cast(), joined);
                                    _mm512_store_si512(kept.cast(), line);
                                })?
                                _ => _mm512_storeu_si512(lines[$k].line.0.as_mut_ptr().cast(), line),
                            }
                        }
                    }
                }};
            }
            registers!($count, write);
        }
    };
}

lines!(strip_1, "avx512f,avx512bw": 16 of 1 by strip, 16,
    _mm512_unpacklo_epi8, _mm512_unpackhi_epi8);
lines!(strip_2, "avx512f,avx512bw": 8 of 2 by strip, 8,
    _mm512_unpacklo_epi16, _mm512_unpackhi_epi16, _mm512_permutex2var_epi16 of ORDER_2);
lines!(square_4, "avx512f,avx512bw": 16 of 4 by square, 4,
    _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_permutex2var_epi32 of ORDER_4);
lines!(square_8, "avx512f,avx512bw": 8 of 8 by square, 2,
    _mm512_unpacklo_epi64, _mm512_unpackhi_epi64, _mm512_permutex2var_epi64 of ORDER_8);

/// Writes a line with a non-temporal store.
///
/// # Safety
///
/// The line may be written there; the place is aligned to a line.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn stream(to: *mut u8, line: &CacheLine) {
    // SAFETY: the caller vouches for the place and its alignment.
    unsafe { _mm512_stream_si512(to.cast(), _mm512_loadu_si512(line.0.as_ptr().cast())) };
}

stripes!(Avx512, target_feature(enable = "avx512f,avx512bw"):
    run_1 of 1 by strip_1 of UNIT, joins false,
    run_2 of 2 by strip_2 of UNIT, joins true,
    run_4 of 4 by square_4 of LINE, joins true,
    run_8 of 8 by square_8 of LINE, joins true;
    stage, stream, writes true);

/// Bytes with AVX-512 VBMI.
pub(super) mod bytes {
    use super::*;

    lines!(strip_1, "avx512f,avx512bw,avx512vbmi": 16 of 1 by strip, 16,
    _mm512_unpacklo_epi8, _mm512_unpackhi_epi8, _mm512_permutex2var_epi8 of ORDER_1);
    stripes!(Avx512, target_feature(enable = "avx512f,avx512bw,avx512vbmi"):
    run_1 of 1 by strip_1 of UNIT, joins true;
    stage, stream, writes true);
}
