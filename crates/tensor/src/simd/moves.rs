//! Copies of runs of bytes, from tables of offsets to tables of offsets.
//!
//! Law: each function writes the bytes in its description, and no others.

use super::nontemporal::stream_units;

/// The runs at two tables of offsets: for each `i` and `j`, `run` bytes from `src + across.0[i] +
/// along.0[j]` to `dst + across.1[i] + along.1[j]`.
#[derive(Clone, Copy)]
pub(crate) struct Rectangle<'a> {
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    /// The source and destination offsets of the outer loop, equally many.
    pub(crate) across: (&'a [isize], &'a [isize]),
    /// The source and destination offsets of the inner loop.
    pub(crate) along: (&'a [isize], &'a [isize]),
}

impl Rectangle<'_> {
    /// Calls `copy` with each source and destination.
    ///
    /// # Safety
    /// The invariant of [`crate::simd`] for each pair of offsets.
    #[inline(always)]
    unsafe fn each(&self, copy: impl Fn(*const u8, *mut u8)) {
        for (from, to) in self.across.0.iter().zip(self.across.1) {
            let (src, dst) = (self.src.wrapping_offset(*from), self.dst.wrapping_offset(*to));
            for (from, to) in self.along.0.iter().zip(self.along.1) {
                copy(src.wrapping_offset(*from), dst.wrapping_offset(*to));
            }
        }
    }

    /// Copies runs of `run` bytes.
    ///
    /// # Safety
    /// The invariant of [`crate::simd`] for each pair of offsets.
    pub(crate) unsafe fn copy(&self, run: usize) {
        // SAFETY: the caller vouches for `run` bytes at each pair of offsets.
        unsafe {
            match run {
                1 => self.each(|src, dst| copy_bytes::<1>(src, dst)),
                2 => self.each(|src, dst| copy_bytes::<2>(src, dst)),
                4 => self.each(|src, dst| copy_bytes::<4>(src, dst)),
                8 => self.each(|src, dst| copy_bytes::<8>(src, dst)),
                16 => self.each(|src, dst| copy_bytes::<16>(src, dst)),
                32 => self.each(|src, dst| copy_bytes::<32>(src, dst)),
                64 => self.each(|src, dst| copy_bytes::<64>(src, dst)),
                _ => self.each(|src, dst| copy_run(src, dst, run)),
            }
        }
    }

    /// As [`Rectangle::copy`], with non-temporal stores.
    ///
    /// # Safety
    /// As [`Rectangle::copy`]; every destination is aligned to 16 bytes, and `run` is a multiple of
    /// 16.
    pub(crate) unsafe fn stream(&self, run: usize) {
        // SAFETY: the caller vouches for `run` bytes at each pair of offsets, whole aligned units
        // of 16.
        unsafe {
            match run {
                16 => self.each(|src, dst| stream_units(src, dst, 1)),
                64 => self.each(|src, dst| stream_units(src, dst, 4)),
                _ => self.each(|src, dst| stream_units(src, dst, run / 16)),
            }
        }
    }
}

/// Copies this many bytes, known at compile time.
///
/// # Safety
/// The invariant of [`crate::simd`].
#[inline(always)]
pub(crate) unsafe fn copy_bytes<const BYTES: usize>(src: *const u8, dst: *mut u8) {
    // SAFETY: the caller vouches for this many bytes at both; arrays of bytes need no alignment.
    unsafe { dst.cast::<[u8; BYTES]>().write_unaligned(src.cast::<[u8; BYTES]>().read_unaligned()) }
}

/// Copies `run` bytes: short runs by two moves that may overlap, without a call.
///
/// # Safety
/// The invariant of [`crate::simd`].
#[inline(always)]
pub(crate) unsafe fn copy_run(src: *const u8, dst: *mut u8, run: usize) {
    /// Two moves of `BYTES` bytes; the second ends at the end of the run.
    #[inline(always)]
    unsafe fn ends<const BYTES: usize>(src: *const u8, dst: *mut u8, run: usize) {
        // SAFETY: `BYTES <= run <= 2 * BYTES`, so that both moves lie in the run, which the caller
        // vouches for.
        unsafe {
            let back = run - BYTES;
            let (first, last) = (
                src.cast::<[u8; BYTES]>().read_unaligned(),
                src.wrapping_add(back).cast::<[u8; BYTES]>().read_unaligned(),
            );
            dst.cast::<[u8; BYTES]>().write_unaligned(first);
            dst.wrapping_add(back).cast::<[u8; BYTES]>().write_unaligned(last);
        }
    }
    // SAFETY: the caller vouches for `run` bytes at both.
    unsafe {
        match run {
            0 => {}
            1 => copy_bytes::<1>(src, dst),
            2..=3 => ends::<2>(src, dst, run),
            4..=7 => ends::<4>(src, dst, run),
            8..=15 => ends::<8>(src, dst, run),
            16..=31 => ends::<16>(src, dst, run),
            32..=63 => ends::<32>(src, dst, run),
            64..=128 => ends::<64>(src, dst, run),
            _ => core::ptr::copy_nonoverlapping(src, dst, run),
        }
    }
}

/// Copies runs of `run` bytes from `src + pair.0` to `dst + pair.1`.
///
/// # Safety
/// The invariant of [`crate::simd`] for each pair. If `stream`, destinations are aligned to 16
/// bytes and `run` is a multiple of 16.
pub(crate) unsafe fn copy_pairs(
    src: *const u8,
    dst: *mut u8,
    (from, to): (&[isize], &[isize]),
    run: usize,
    stream: bool,
) {
    let rectangle = Rectangle { src, dst, across: (&[0], &[0]), along: (from, to) };
    // SAFETY: the caller vouches for `run` bytes at each pair, and for their alignment where that
    // is needed.
    unsafe { if stream { rectangle.stream(run) } else { rectangle.copy(run) } }
}

/// Writes `count` copies of the `unit` bytes at `src`, one after another.
///
/// # Safety
/// The invariant of [`crate::simd`], for `unit` bytes read and `count * unit` written.
pub(crate) unsafe fn splat(src: *const u8, dst: *mut u8, unit: usize, count: usize) {
    // SAFETY: all writes lie in `count * unit` bytes. The bytes written so far are copied behind
    // themselves, which doubles them each time.
    unsafe {
        if count == 0 {
            return;
        }
        copy_run(src, dst, unit);
        let (mut done, whole) = (unit, unit * count);
        while done < whole {
            // Blocks of a page stay in the L1 cache.
            let next = done.min(whole - done).min(4096 / unit.min(4096) * unit.min(4096)).max(unit);
            copy_run(dst, dst.wrapping_add(done), next);
            done += next;
        }
    }
}
