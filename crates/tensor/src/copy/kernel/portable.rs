//! Transposes without vector instructions, in blocks of eight by eight that the compiler keeps in registers.

use super::Block;

/// Transposes a block of elements of `bytes` bytes: 1, 2, 4 or 8.
///
/// # Safety
/// The invariant of [`Block`].
pub(super) unsafe fn transpose(block: &Block<'_>, bytes: usize) {
    // SAFETY: as here.
    unsafe {
        match bytes {
            1 => blocks::<u8>(block),
            2 => blocks::<u16>(block),
            4 => blocks::<u32>(block),
            _ => blocks::<u64>(block),
        }
    }
}

const SIDE: usize = 8;

/// # Safety
/// The invariant of [`Block`], for elements of the size of `U`.
unsafe fn blocks<U: Copy + Default>(block: &Block<'_>) {
    let bytes = size_of::<U>();
    for (first, rows) in block.rows.chunks(SIDE).enumerate() {
        let dst = block.dst.wrapping_add(first * SIDE * bytes);
        for (second, columns) in block.columns.chunks(SIDE).enumerate() {
            let src = block.src.wrapping_add(second * SIDE * bytes);
            let mut values = [[U::default(); SIDE]; SIDE];
            for (row, values) in rows.iter().zip(&mut values) {
                for (i, value) in values.iter_mut().enumerate().take(columns.len()) {
                    // SAFETY: element `(i, j)` of the block.
                    *value = unsafe { src.wrapping_offset(*row).cast::<U>().wrapping_add(i).read_unaligned() };
                }
            }
            for (i, column) in columns.iter().enumerate() {
                for (j, values) in values.iter().enumerate().take(rows.len()) {
                    let place = dst.wrapping_offset(*column).cast::<U>().wrapping_add(j);
                    // SAFETY: the place of element `(i, j)`.
                    unsafe { place.write_unaligned(values[i]) };
                }
            }
        }
    }
}
