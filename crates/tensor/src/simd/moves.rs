//! Runs of bytes, from tables of offsets to tables of offsets.

use super::nontemporal::stream_units;

/// Two sides of a rectangle of runs: for each `i` and `j`, `run` bytes from `src + across.0[i] + along.0[j]` to `dst + across.1[i] + along.1[j]`.
#[derive(Clone, Copy)]
pub(crate) struct Rectangle<'a> {
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    /// Source and destination offsets, of one length.
    pub(crate) across: (&'a [isize], &'a [isize]),
    /// The same for the inner loop.
    pub(crate) along: (&'a [isize], &'a [isize]),
}

impl Rectangle<'_> {
    /// # Safety
    /// The invariant of this module for each pair of offsets.
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
    /// The invariant of this module, for each pair of offsets.
    pub(crate) unsafe fn copy(&self, run: usize) {
        // SAFETY: as here.
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

    /// The same past the caches.
    ///
    /// # Safety
    /// As [`Rectangle::copy`]; every destination is aligned to 16 bytes, and `run` is a multiple of 16.
    pub(crate) unsafe fn stream(&self, run: usize) {
        // SAFETY: as here.
        unsafe {
            match run {
                16 => self.each(|src, dst| stream_units(src, dst, 1)),
                64 => self.each(|src, dst| stream_units(src, dst, 4)),
                _ => self.each(|src, dst| stream_units(src, dst, run / 16)),
            }
        }
    }
}

/// Copies so many bytes, known at compile time.
///
/// # Safety
/// The invariant of this module.
#[inline(always)]
pub(crate) unsafe fn copy_bytes<const BYTES: usize>(src: *const u8, dst: *mut u8) {
    // SAFETY: as here; arrays of bytes have no alignment.
    unsafe { dst.cast::<[u8; BYTES]>().write_unaligned(src.cast::<[u8; BYTES]>().read_unaligned()) }
}

/// Copies `run` bytes: short runs by two moves that may overlap, without a call.
///
/// # Safety
/// The invariant of this module.
#[inline(always)]
pub(crate) unsafe fn copy_run(src: *const u8, dst: *mut u8, run: usize) {
    /// Two moves of `BYTES` bytes, the second of which ends with the run.
    #[inline(always)]
    unsafe fn ends<const BYTES: usize>(src: *const u8, dst: *mut u8, run: usize) {
        // SAFETY: `BYTES <= run <= 2 * BYTES`.
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
    // SAFETY: as here.
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
/// The invariant of this module, for each pair; if `stream`, destinations are aligned to 16 bytes and `run` is a multiple of 16.
pub(crate) unsafe fn copy_pairs(
    src: *const u8,
    dst: *mut u8,
    (from, to): (&[isize], &[isize]),
    run: usize,
    stream: bool,
) {
    let rectangle = Rectangle { src, dst, across: (&[0], &[0]), along: (from, to) };
    // SAFETY: as here.
    unsafe { if stream { rectangle.stream(run) } else { rectangle.copy(run) } }
}

/// Writes `count` copies of the `unit` bytes at `src`, one behind the other.
///
/// # Safety
/// The invariant of this module, for `unit` bytes read and `count * unit` written.
pub(crate) unsafe fn splat(src: *const u8, dst: *mut u8, unit: usize, count: usize) {
    // SAFETY: what is written so far is copied behind itself, twice as much each time, up to a line of a few units.
    unsafe {
        if count == 0 {
            return;
        }
        copy_run(src, dst, unit);
        let (mut done, whole) = (unit, unit * count);
        while done < whole {
            // Blocks of 4 KiB stay in the nearest cache.
            let next = done.min(whole - done).min(4096 / unit.min(4096) * unit.min(4096)).max(unit);
            copy_run(dst, dst.wrapping_add(done), next);
            done += next;
        }
    }
}
