//! Transposes with AVX-512.
//!
//! A square is 64 bytes of each of `64 / E` rows, which are four groups of `N = 16 / E`. Within each lane of 16 bytes the `N` registers of a group are `N` rows of `N` elements, and are
//! transposed there ([`super::network`]): lane `l` of register `c` then has column `N * l + c`, of these rows. The registers `c` of the four groups have four columns in their lanes, each a
//! quarter from each group; a transpose of lanes makes lines of them.
//!
//! A line that was kept and the one that follows it are joined by a permutation of both, whose order is read from a table: that of the numbers from as many elements on as the line begins
//! after one of memory. Of bytes only AVX-512 VBMI has it; without, the two are joined in memory.

use core::arch::x86_64::*;

use super::copy_run;
use super::network::{registers, stage, transposed};
use super::stripe::{
    Both, KEPT, LINE, Line, ORDINARY, PARTS, STREAMING, Scratch, Stores, Stripe, UNIT, ahead, fetch, stripes,
    write_edge,
};

/// The numbers of the elements of two lines, for permutations.
#[repr(align(64))]
struct Order<T, const N: usize>([T; N]);

macro_rules! order {
    ($name:ident, $number:ty, $bytes:literal) => {
        static $name: Order<$number, { 2 * LINE / $bytes }> = {
            let mut order = [0; 2 * LINE / $bytes];
            let mut k = 0;
            while k < order.len() {
                order[k] = k as $number;
                k += 1;
            }
            Order(order)
        };
    };
}

order!(ORDER_1, u8, 1);
order!(ORDER_2, u16, 2);
order!(ORDER_4, u32, 4);
order!(ORDER_8, u64, 8);

/// Transposes a square of elements of `$bytes` bytes, `$n` of them in 16. Lines that are kept are joined by `$permute` of an order, if there is one.
macro_rules! square {
    ($name:ident, $features:literal: $bytes:literal, $n:tt, $low:ident, $high:ident $(, $permute:ident of $order:ident)?) => {
        /// # Safety
        ///
        /// Of each row one element for each column is read from `at` on. Lines that are whole are written to their columns, others to `lines`; the rows that come are only fetched.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $name<const STORES: u8>(
            rows: &[*const u8; LINE / $bytes],
            at: usize,
            (coming, ahead): (&[*const u8; LINE / $bytes], usize),
            (dst, columns): (*mut u8, &[isize]),
            (kept, lines): (*mut Line, &mut [Both; LINE / $bytes]),
        ) {
            let _ = kept;
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
                    let Some(column) = columns.get(number) else { continue };
                    let to = dst.wrapping_offset(*column);
                    // SAFETY: as here; a line is as long as a register.
                    unsafe {
                        match STORES {
                            ORDINARY => _mm512_storeu_si512(to.cast(), line),
                            STREAMING => _mm512_stream_si512(to.cast(), line),
                            $(KEPT => {
                                let (past, kept) = (to as usize % LINE, kept.wrapping_add(number));
                                let order = _mm512_loadu_si512($order.0.as_ptr().add((LINE - past) / $bytes).cast());
                                let joined = $permute(_mm512_load_si512(kept.cast()), order, line);
                                _mm512_stream_si512(to.wrapping_sub(past).cast(), joined);
                                _mm512_store_si512(kept.cast(), line);
                            })?
                            _ => _mm512_storeu_si512(lines[number].line.0.as_mut_ptr().cast(), line),
                        }
                    }
                }
            }
        }
    };
}

square!(square_1, "avx512f,avx512bw": 1, 16, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8);
square!(square_2, "avx512f,avx512bw": 2, 8, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16, _mm512_permutex2var_epi16 of ORDER_2);
square!(square_4, "avx512f,avx512bw": 4, 4, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_permutex2var_epi32 of ORDER_4);
square!(square_8, "avx512f,avx512bw": 8, 2, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64, _mm512_permutex2var_epi64 of ORDER_8);

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

stripes!(target_feature(enable = "avx512f,avx512bw"): run_1 of 1 by square_1, joins false, run_2 of 2 by square_2, joins true, run_4 of 4 by square_4, joins true, run_8 of 8 by square_8, joins true; stream, writes true);

/// Bytes with AVX-512 VBMI.
pub(super) mod bytes {
    use super::*;

    square!(square_1, "avx512f,avx512bw,avx512vbmi": 1, 16, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8, _mm512_permutex2var_epi8 of ORDER_1);
    stripes!(target_feature(enable = "avx512f,avx512bw,avx512vbmi"): run_1 of 1 by square_1, joins true; stream, writes true);
}

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
