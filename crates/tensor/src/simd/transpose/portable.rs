//! Transposes without vector instructions.
//!
//! Law: that of [`super::stripe`].

use super::stripe::{
    CacheLine, From, KEPT, LinePair, ORDINARY, PARTS, STAGED_BYTES, STREAMING, Scratch, Stores, Stripe, UNIT, ahead,
    prefetch, stage, stages, stripes, write_edge,
};
use crate::memory::LINE;
use crate::simd::{Instructions, copy_run, stream_units};

/// Transposes strips of elements of `$bytes` bytes: the bytes of each row are those of `$width`.
macro_rules! strips {
    ($name:ident, $bytes:literal of $width:ident) => {
        /// # Safety
        ///
        /// This many bytes of each row may be read.
        #[inline]
        unsafe fn $name<const STORES: u8>(
            from: &From<'_, { LINE / $bytes }>,
            (coming, ahead): (&[[*const u8; $width / $bytes]], usize),
            _: (*mut u8, &[isize], usize),
            (_, lines): (*mut CacheLine, &mut [LinePair; $width / $bytes]),
        ) {
            let mut coming = coming.as_flattened().iter();
            for (j, row) in from.rows.iter().enumerate() {
                if let Some(row) = coming.next() {
                    prefetch::<$bytes>(Instructions::Portable, row.wrapping_add(ahead));
                }
                let row = row.wrapping_add(from.at).cast::<[u8; $bytes]>();
                for (i, line) in lines.iter_mut().enumerate() {
                    // SAFETY: the caller vouches for the element of the row; its place lies in the
                    // line.
                    unsafe { line.line.0.as_mut_ptr().cast::<[u8; $bytes]>().add(j).write(row.add(i).read()) };
                }
            }
        }
    };
}

strips!(strips_1, 1 of UNIT);
strips!(strips_2, 2 of UNIT);
strips!(strips_4, 4 of LINE);
strips!(strips_8, 8 of LINE);

/// Writes a line with non-temporal stores, if the processor has them.
///
/// # Safety
///
/// The line may be written there; the place is aligned to a line.
#[inline]
unsafe fn stream(to: *mut u8, line: &CacheLine) {
    // SAFETY: the caller vouches for the place and its alignment.
    unsafe { stream_units(line.0.as_ptr(), to, LINE / UNIT) }
}

stripes!(Portable, inline:
    run_1 of 1 by strips_1 of UNIT, joins false,
    run_2 of 2 by strips_2 of UNIT, joins false,
    run_4 of 4 by strips_4 of LINE, joins false,
    run_8 of 8 by strips_8 of LINE, joins false;
    stage, stream, writes false);
