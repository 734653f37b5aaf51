//! Moving bytes: what the tiles of a plan are done with.
//!
//! # Invariant
//!
//! Every function here is given a source, a destination and tables of byte offsets from them. For each pair of offsets that its description names, the
//! bytes read are inside the memory that the source was borrowed from, and the bytes written inside that of the destination, which nobody else
//! uses meanwhile. The two do not overlap. Pointers are moved by wrapping arithmetic, so that only those that are used need to be inside.
//!
//! Reason for unsafe code: vector instructions, stores past the caches, and no comparison for each element.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod network;
mod portable;
mod stream;
mod stripe;
mod turn;

pub(super) use stream::{fence, stream_run};
pub(super) use stripe::{Edge, LINE, Line, Rows, Scratch, Stores, Stripe, fetch, stripes_ahead};
pub(super) use turn::{Pieces, TURNED, transpose_turned};

/// The instructions that transposes may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instructions {
    /// What every processor has.
    Portable,
    /// AVX2: 32 bytes at a time.
    Avx2,
    /// AVX-512 F and BW: 64 bytes at a time.
    Avx512,
}

impl Instructions {
    /// The best that this processor has.
    pub fn detected() -> Instructions {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                return Instructions::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Instructions::Avx2;
            }
        }
        Instructions::Portable
    }
}

/// Transposes a stripe of elements of `bytes` bytes: 1, 2, 4 or 8.
///
/// # Safety
/// The law of [`Stripe`], for memory that may be read and written; the invariant of its stores; and a processor with the instructions.
pub(super) unsafe fn transpose(stripe: &Stripe<'_>, bytes: usize, instructions: Instructions, scratch: &mut Scratch) {
    // SAFETY: as here.
    unsafe {
        match instructions {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 if bytes == 1 && is_x86_feature_detected!("avx512vbmi") => {
                avx512::bytes::stripe(stripe, bytes, scratch)
            }
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => avx512::stripe(stripe, bytes, scratch),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => avx2::stripe(stripe, bytes, scratch),
            _ => portable::stripe(stripe, bytes, scratch),
        }
    }
}

/// Two sides of a rectangle of runs: for each `i` and `j`, `run` bytes from `src + across.0[i] + along.0[j]` to `dst + across.1[i] + along.1[j]`.
#[derive(Clone, Copy)]
pub(super) struct Rectangle<'a> {
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    /// Source and destination offsets, of one length.
    pub(super) across: (&'a [isize], &'a [isize]),
    /// The same for the inner loop.
    pub(super) along: (&'a [isize], &'a [isize]),
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
    pub(super) unsafe fn copy(&self, run: usize) {
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
    pub(super) unsafe fn stream(&self, run: usize) {
        // SAFETY: as here.
        unsafe {
            match run {
                16 => self.each(|src, dst| stream::stream_units(src, dst, 1)),
                64 => self.each(|src, dst| stream::stream_units(src, dst, 4)),
                _ => self.each(|src, dst| stream::stream_units(src, dst, run / 16)),
            }
        }
    }
}

/// Copies so many bytes, known at compile time.
///
/// # Safety
/// The invariant of this module.
#[inline(always)]
unsafe fn copy_bytes<const BYTES: usize>(src: *const u8, dst: *mut u8) {
    // SAFETY: as here; arrays of bytes have no alignment.
    unsafe { dst.cast::<[u8; BYTES]>().write_unaligned(src.cast::<[u8; BYTES]>().read_unaligned()) }
}

/// Copies `run` bytes: short runs by two moves that may overlap, without a call.
///
/// # Safety
/// The invariant of this module.
#[inline(always)]
pub(super) unsafe fn copy_run(src: *const u8, dst: *mut u8, run: usize) {
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
pub(super) unsafe fn copy_pairs(
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
pub(super) unsafe fn splat(src: *const u8, dst: *mut u8, unit: usize, count: usize) {
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
