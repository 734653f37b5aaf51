//! Transposes without vector instructions, in blocks of eight by eight that the compiler keeps in registers.

use super::{Block, Rows};

/// Transposes a block of elements of `bytes` bytes: 1, 2, 4 or 8.
///
/// # Safety
/// The invariant of [`Block`].
pub(super) unsafe fn transpose<R: Rows>(block: &Block<'_, R>, bytes: usize) {
    // SAFETY: as here.
    unsafe {
        match bytes {
            1 => blocks::<u8, R>(block),
            2 => blocks::<u16, R>(block),
            4 => blocks::<u32, R>(block),
            _ => blocks::<u64, R>(block),
        }
    }
}

const SIDE: usize = 8;

/// # Safety
/// The invariant of [`Block`], for elements of the size of `U`.
unsafe fn blocks<U: Copy + Default, R: Rows>(block: &Block<'_, R>) {
    let bytes = size_of::<U>();
    let mut spare = [0; SIDE];
    for first in (0..block.rows.count()).step_by(SIDE) {
        let count = SIDE.min(block.rows.count() - first);
        let from = block.rows.group(block.src, first, &mut spare);
        let dst = block.dst.wrapping_add(first * bytes);
        for (second, columns) in block.columns.chunks(SIDE).enumerate() {
            let at = second * SIDE * bytes;
            let mut values = [[U::default(); SIDE]; SIDE];
            for (row, values) in values.iter_mut().enumerate().take(count) {
                for (i, value) in values.iter_mut().enumerate().take(columns.len()) {
                    // SAFETY: element `(i, j)` of the block.
                    *value = unsafe { from(row).wrapping_add(at).cast::<U>().wrapping_add(i).read_unaligned() };
                }
            }
            for (i, column) in columns.iter().enumerate() {
                for (j, values) in values.iter().enumerate().take(count) {
                    let place = dst.wrapping_offset(*column).cast::<U>().wrapping_add(j);
                    // SAFETY: the place of element `(i, j)`.
                    unsafe { place.write_unaligned(values[i]) };
                }
            }
        }
    }
}
