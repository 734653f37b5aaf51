//! Stores past the caches.
//!
//! An output much larger than the caches is not read again soon, and an ordinary store would first fetch the line that it is about to fill. A streaming store
//! writes whole lines without. It needs destinations aligned to 16 bytes; elsewhere, and on other processors, ordinary stores do the same.

use super::instructions::Instructions;
use super::moves::copy_run;

/// Copies `units` times 16 bytes to an aligned place.
///
/// # Safety
/// The invariant of the module above; `dst` is aligned to 16 bytes.
#[inline(always)]
pub(crate) unsafe fn stream_units(src: *const u8, dst: *mut u8, units: usize) {
    #[cfg(target_arch = "x86_64")]
    for unit in 0..units {
        use core::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        // SAFETY: as here; every x86-64 processor has SSE2.
        unsafe {
            let value = _mm_loadu_si128(src.wrapping_add(16 * unit).cast());
            _mm_stream_si128(dst.wrapping_add(16 * unit).cast(), value);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: as here.
    unsafe {
        copy_run(src, dst, 16 * units)
    };
}

/// Copies `run` bytes: ordinarily up to the first line of 64 bytes, past the caches while there are whole lines, and ordinarily what is left.
///
/// # Safety
/// The invariant of the module above.
pub(crate) unsafe fn stream_run(src: *const u8, dst: *mut u8, run: usize, instructions: Instructions) {
    let head = (dst as usize).wrapping_neg() % 64;
    let head = head.min(run);
    let lines = (run - head) / 64;
    let tail = head + lines * 64;
    // SAFETY: three parts of the run; the second begins at a line.
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

/// Copies `lines` lines past the caches to a place that is aligned to them.
///
/// # Safety
///
/// The invariant of the module above, and a processor with AVX-512 F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_lines(src: *const u8, dst: *mut u8, lines: usize) {
    use core::arch::x86_64::{_mm512_loadu_si512, _mm512_stream_si512};
    for at in (0..lines).map(|line| 64 * line) {
        // SAFETY: as here.
        unsafe {
            _mm512_stream_si512(dst.wrapping_add(at).cast(), _mm512_loadu_si512(src.wrapping_add(at).cast()));
        }
    }
}

/// Orders streaming stores before whatever follows, as ordinary stores are.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE.
    unsafe {
        core::arch::x86_64::_mm_sfence()
    };
}
