//! Transposes without vector instructions.

use super::copy_run;
use super::stream::stream_units;
use super::stripe::{
    Both, KEPT, LINE, Line, ORDINARY, PARTS, STREAMING, Scratch, Stores, Stripe, UNIT, ahead, fetch, stripes,
    write_edge,
};

/// Transposes a square of elements of `$bytes` bytes.
macro_rules! square {
    ($name:ident, $bytes:literal) => {
        /// # Safety
        ///
        /// As many elements of each row as there are columns are read from `at` on.
        #[inline]
        unsafe fn $name<const STORES: u8>(
            rows: &[*const u8; LINE / $bytes],
            at: usize,
            (coming, ahead): (&[*const u8; LINE / $bytes], usize),
            (_, columns): (*mut u8, &[isize]),
            (_, lines): (*mut Line, &mut [Both; LINE / $bytes]),
        ) {
            for (j, (row, coming)) in rows.iter().zip(coming).enumerate() {
                fetch::<$bytes>(coming.wrapping_add(ahead));
                let row = row.wrapping_add(at).cast::<[u8; $bytes]>();
                for (i, line) in lines.iter_mut().take(columns.len()).enumerate() {
                    // SAFETY: an element of the row, and its place in the line.
                    unsafe {
                        let to = line.line.0.as_mut_ptr().cast::<[u8; $bytes]>().add(j);
                        to.write(row.add(i).read());
                    }
                }
            }
        }
    };
}

square!(square_1, 1);
square!(square_2, 2);
square!(square_4, 4);
square!(square_8, 8);

/// Writes a line past the caches, if the processor can.
///
/// # Safety
///
/// The invariant of the module above; the place is aligned to a line.
#[inline]
unsafe fn stream(to: *mut u8, line: &Line) {
    // SAFETY: as here.
    unsafe { stream_units(line.0.as_ptr(), to, LINE / UNIT) }
}

stripes!(inline: run_1 of 1 by square_1, joins false, run_2 of 2 by square_2, joins false, run_4 of 4 by square_4, joins false, run_8 of 8 by square_8, joins false; stream, writes false);
