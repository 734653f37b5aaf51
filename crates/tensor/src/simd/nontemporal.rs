//! Non-temporal stores.
//!
//! Law: each function writes the same bytes as an ordinary copy.
//!
//! An output much larger than the caches is not read again soon, and an ordinary store would first
//! load the line that it is about to fill. A non-temporal store writes whole lines without loading
//! them. It needs destinations aligned to 16 bytes. For other destinations, and on other
//! processors, ordinary stores are used.

use super::instructions::Instructions;
use super::moves::copy_run;

/// Copies `units` times 16 bytes to a destination that is aligned to 16 bytes.
///
/// # Safety
/// The invariant of [`crate::simd`]; `dst` is aligned to 16 bytes.
#[inline(always)]
pub(crate) unsafe fn stream_units(src: *const u8, dst: *mut u8, units: usize) {
    #[cfg(target_arch = "x86_64")]
    for unit in 0..units {
        use core::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        // SAFETY: the caller vouches for the bytes and the alignment; every x86-64 processor has
        // SSE2.
        unsafe {
            let value = _mm_loadu_si128(src.wrapping_add(16 * unit).cast());
            _mm_stream_si128(dst.wrapping_add(16 * unit).cast(), value);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller vouches for these bytes.
    unsafe {
        copy_run(src, dst, 16 * units)
    };
}

/// Copies `run` bytes: with ordinary stores before the first whole line and after the last, and
/// with non-temporal stores between.
///
/// # Safety
/// The invariant of [`crate::simd`], and a processor with the instructions.
pub(crate) unsafe fn stream_run(src: *const u8, dst: *mut u8, run: usize, instructions: Instructions) {
    let head = (dst as usize).wrapping_neg() % 64;
    let head = head.min(run);
    let lines = (run - head) / 64;
    let tail = head + lines * 64;
    // SAFETY: three parts of the run, which the caller vouches for; the second begins at a line.
    unsafe {
        copy_run(src, dst, head);
        let (from, to) = (src.wrapping_add(head), dst.wrapping_add(head));
        match instructions {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => stream_lines(from, to, lines),
            _ => stream_units(from, to, 4 * lines),
        }
        copy_run(src.wrapping_add(tail), dst.wrapping_add(tail), run - tail);
    }
}

/// Copies `lines` lines with non-temporal stores to a destination that is aligned to a line.
///
/// # Safety
/// The invariant of [`crate::simd`], and a processor with AVX-512 F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_lines(src: *const u8, dst: *mut u8, lines: usize) {
    use core::arch::x86_64::{_mm512_loadu_si512, _mm512_stream_si512};
    for at in (0..lines).map(|line| 64 * line) {
        // SAFETY: the caller vouches for the lines and the alignment.
        unsafe {
            _mm512_stream_si512(dst.wrapping_add(at).cast(), _mm512_loadu_si512(src.wrapping_add(at).cast()));
        }
    }
}

/// Orders non-temporal stores before later stores, as ordinary stores are ordered.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE.
    unsafe {
        core::arch::x86_64::_mm_sfence()
    };
}
