//! Transposes of rows whose pieces are permuted.
//!
//! Law: that of [`transpose_permuted`].
//!
//! Byte `p` of a row is at offset `p ^ mask` of the row in memory. The high bits of the mask select
//! the line of 64 bytes, and its low bits permute the pieces of the line. A register puts the
//! pieces in order, on their way to or from a small buffer. Between these two steps the transpose
//! is an ordinary one.

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::stripe::{CacheLine, Scratch, Stores, Stripe, StripeRows, UNIT, prefetch, prefetch_distance};
use super::transpose;
use crate::memory::LINE;
use crate::simd::{Instructions, copy_bytes, copy_run, stream_units};

/// The number of columns that are transposed at a time. Their lines, and the rows that they come
/// from, stay in the L1 cache.
const COLUMNS: usize = 128;
/// The bytes of the lines of this many columns, which is also the bytes of as many elements of a
/// stripe's rows.
const HALF: usize = COLUMNS * LINE;
/// The bytes of the buffer.
pub(crate) const PERMUTED_BUFFER: usize = 2 * HALF;

/// The byte offsets of the columns' lines in the buffer.
static PLACES: [isize; COLUMNS] = {
    let mut places = [0; COLUMNS];
    let mut k = 0;
    while k < COLUMNS {
        places[k] = (k * LINE) as isize;
        k += 1;
    }
    places
};

/// A stripe of a tile: the rows that make one line of each column.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    pub(crate) src: *const u8,
    /// The byte offsets of the rows, and the masks of their bytes.
    pub(crate) rows: (&'a [isize], &'a [usize]),
    /// Later rows, which are prefetched.
    pub(crate) next: (*const u8, &'a [isize]),
    /// The number of bytes of a row before its first element in this stripe.
    pub(crate) first: usize,
    pub(crate) dst: *mut u8,
    /// The byte offsets of the columns, and the masks of their bytes.
    pub(crate) columns: (&'a [isize], &'a [usize]),
    /// The offset of the first row within the columns, in bytes.
    pub(crate) at: usize,
    /// The bits that are flipped in all rows, and in all columns.
    pub(crate) flips: [usize; 2],
    /// The bytes of the pieces that are permuted in rows and in columns: a power of two; a line if
    /// the pieces are larger; 0 if none are permuted.
    pub(crate) parts: [usize; 2],
    /// Whether lines are written with non-temporal stores: they are whole, and begin at cache lines
    /// of memory.
    pub(crate) streams: bool,
}

impl Pieces<'_> {
    /// Whether every permuted piece has at least this many bytes.
    fn coarse(&self, least: usize) -> bool {
        self.parts.iter().all(|part| *part == 0 || *part >= least)
    }
}

/// Transposes a stripe of elements of `unit` bytes: 1, 2, 4, 8 or 16. **Law.** Element `i` of row
/// `j` is read from `src + rows[j] + (first + i * unit ^ mask_j)`, and goes to `dst + columns[i] +
/// (at + j * unit ^ mask_i)`.
///
/// # Safety
///
/// The law, for memory that may be read and written, in blocks of `2^k` bytes where bits below
/// `2^k` are flipped. No bit is flipped below the parts. A processor with the instructions. A
/// buffer of [`PERMUTED_BUFFER`] bytes that begins with a line.
pub(crate) unsafe fn transpose_permuted(
    pieces: &Pieces<'_>,
    unit: usize,
    instructions: Instructions,
    (scratch, buffer): (&mut Scratch, *mut u8),
) {
    #[cfg(target_arch = "x86_64")]
    let (side, whole) = (LINE / unit, pieces.columns.0.len() / (LINE / unit) * (LINE / unit));
    #[cfg(target_arch = "x86_64")]
    if instructions == Instructions::Avx512 && pieces.rows.0.len() == side && whole > 0 && pieces.coarse(avx512::LEAST)
    {
        // SAFETY: whole squares, and then the columns that are left, all of which the caller
        // vouches for.
        unsafe {
            avx512::stripe(pieces, unit);
            if whole < pieces.columns.0.len() {
                let (columns, masks) = pieces.columns;
                let columns = (columns.get(whole..).unwrap_or_default(), masks.get(whole..).unwrap_or_default());
                by_parts(&Pieces { columns, first: whole * unit, ..*pieces }, unit, instructions, (scratch, buffer));
            }
        }
        return;
    }
    // SAFETY: the caller vouches for the stripe, the instructions and the buffer.
    unsafe { by_parts(pieces, unit, instructions, (scratch, buffer)) }
}

/// Transposes as [`transpose_permuted`], through the buffer.
///
/// # Safety
///
/// As [`transpose_permuted`].
unsafe fn by_parts(
    pieces: &Pieces<'_>,
    unit: usize,
    instructions: Instructions,
    (scratch, buffer): (&mut Scratch, *mut u8),
) {
    let (sources, row_masks) = pieces.rows;
    let (lines, staged) = (buffer.cast::<CacheLine>(), buffer.wrapping_add(HALF));
    // Rows are staged while others are transposed, so rows are staged in parts as long as the
    // prefetch distance.
    let (permutes, by) = (pieces.parts[0] != 0, prefetch_distance(instructions, unit));
    let most = if permutes { COLUMNS.min(by / unit) } else { COLUMNS };
    let (row, total) = (most * unit, pieces.first + pieces.columns.0.len() * unit);
    let [mut here, mut next] = [StripeRows::NONE; 2];
    let chunks = pieces.columns.0.chunks(most).zip(pieces.columns.1.chunks(most));
    for (number, (columns, masks)) in chunks.enumerate() {
        let (first, run) = (pieces.first + number * row, columns.len() * unit);
        // The lines to prefetch while these columns are transposed.
        let ((from, coming), ahead) = match first + run.max(by) {
            later if later < total => ((pieces.src, sources), later),
            _ if total <= by => (pieces.next, first),
            later => (pieces.next, (later - total) / LINE * LINE),
        };
        next.set(from.wrapping_add(ahead), coming, unit);
        // SAFETY: the caller vouches for the stripe; the halves of the buffer have room for the
        // lines of these columns and for the parts of the rows.
        unsafe {
            if permutes {
                let parts = RowParts { src: pieces.src, sources, masks: row_masks, flip: pieces.flips[0], first, run };
                parts.stage(staged, row, pieces.parts[0]);
                for (j, place) in here.0.iter_mut().enumerate().take(LINE / unit) {
                    *place = staged.wrapping_add(j * row);
                }
            } else {
                here.set(pieces.src.wrapping_add(first), sources, unit);
            }
            let bytes = sources.len() * unit;
            if unit == UNIT {
                gather(&here, &next, columns.len(), lines);
            } else {
                let (columns, dst) = (PLACES.get(..columns.len()).unwrap_or_default(), lines.cast());
                let stripe = Stripe { rows: &here, next: &next, dst, columns, bytes, stores: Stores::Ordinary };
                transpose(&stripe, unit, instructions, scratch);
            }
            let lines = Lines { lines, columns, masks, dst: pieces.dst, at: pieces.at, flip: pieces.flips[1], bytes };
            lines.write(pieces.parts[1], pieces.streams);
        }
    }
}

/// Gathers elements of 16 bytes: a line of four rows for each column.
///
/// # Safety
/// This many elements of each row may be read, and the lines be written.
unsafe fn gather(rows: &StripeRows, next: &StripeRows, columns: usize, lines: *mut CacheLine) {
    const ROWS: usize = LINE / UNIT;
    let (Some(rows), Some(next)) = (rows.0.first_chunk::<ROWS>(), next.0.first_chunk::<ROWS>()) else { return };
    for k in 0..columns {
        prefetch::<UNIT>(Instructions::Portable, next[k % ROWS].wrapping_add(k / ROWS * LINE));
        for (j, row) in rows.iter().enumerate() {
            let to = lines.wrapping_add(k).cast::<u8>().wrapping_add(j * UNIT);
            // SAFETY: the caller vouches for the rows and lines; rows that are missing repeat
            // others, or are staged from before.
            unsafe { copy_bytes::<UNIT>(row.wrapping_add(k * UNIT), to) };
        }
    }
}

/// Parts of the rows of a stripe: `run` bytes from `first` on, at offsets `p ^ mask ^ flip`.
struct RowParts<'a> {
    src: *const u8,
    sources: &'a [isize],
    masks: &'a [usize],
    flip: usize,
    first: usize,
    run: usize,
}

impl RowParts<'_> {
    /// Copies the parts in order, to rows that are `row` bytes apart.
    ///
    /// # Safety
    /// The law of [`transpose_permuted`], with parts of `part` bytes; room for the rows.
    unsafe fn stage(&self, staged: *mut u8, row: usize, part: usize) {
        // SAFETY: the caller vouches for the rows and the room; no part is smaller than the one
        // taken.
        unsafe {
            match part {
                16.. => self.by::<16>(staged, row),
                8.. => self.by::<8>(staged, row),
                4.. => self.by::<4>(staged, row),
                2.. => self.by::<2>(staged, row),
                _ => self.by::<1>(staged, row),
            }
        }
    }

    /// Calls `copy` with each row, its mask, and its destination.
    #[inline(always)]
    fn each(&self, staged: *mut u8, row: usize, mut copy: impl FnMut(*const u8, usize, *mut u8)) {
        for (j, (source, mask)) in self.sources.iter().zip(self.masks).enumerate() {
            copy(self.src.wrapping_offset(*source), mask ^ self.flip, staged.wrapping_add(j * row));
        }
    }

    /// Copies as [`RowParts::stage`], in pieces of `PART` bytes.
    ///
    /// # Safety
    /// As [`RowParts::stage`].
    #[inline(always)]
    unsafe fn by<const PART: usize>(&self, staged: *mut u8, row: usize) {
        self.each(staged, row, |from, mask, to| {
            for at in (0..self.run).step_by(PART) {
                // SAFETY: the caller vouches for the rows and the room; a run is whole parts.
                unsafe { copy_bytes::<PART>(from.wrapping_add((self.first + at) ^ mask), to.wrapping_add(at)) };
            }
        });
    }
}

/// The lines of columns, which are written to offsets `at + p ^ mask ^ flip` of each column.
struct Lines<'a> {
    lines: *const CacheLine,
    columns: &'a [isize],
    masks: &'a [usize],
    dst: *mut u8,
    at: usize,
    flip: usize,
    /// The bytes of each line.
    bytes: usize,
}

impl Lines<'_> {
    /// Writes the lines.
    ///
    /// # Safety
    /// The law of [`transpose_permuted`], with parts of `part` bytes.
    unsafe fn write(&self, part: usize, streams: bool) {
        // SAFETY: the caller vouches for the places of the lines, and for their alignment where
        // stores are non-temporal; no part is smaller than the one taken.
        unsafe {
            match part {
                0 => self.each(|line, to, _| match streams {
                    true => stream_units(line, to, LINE / UNIT),
                    false => copy_run(line, to, self.bytes),
                }),
                16.. if streams => self.each(|line, to, mask| {
                    for at in (0..LINE).step_by(UNIT) {
                        stream_units(line.wrapping_add(at ^ mask), to.wrapping_add(at), 1);
                    }
                }),
                16.. => self.by::<16>(streams),
                8.. => self.by::<8>(streams),
                4.. => self.by::<4>(streams),
                2.. => self.by::<2>(streams),
                _ => self.by::<1>(streams),
            }
        }
    }

    /// Writes as [`Lines::write`], in pieces of `PART` bytes.
    ///
    /// # Safety
    /// As [`Lines::write`].
    #[inline(always)]
    unsafe fn by<const PART: usize>(&self, streams: bool) {
        self.each(|line, to, mask| {
            let mut whole = CacheLine::ZERO;
            let place = if streams { whole.0.as_mut_ptr() } else { to };
            // SAFETY: the caller vouches for the places; lines are whole parts, and whole and
            // aligned where stores are non-temporal.
            unsafe {
                for at in (0..self.bytes).step_by(PART) {
                    copy_bytes::<PART>(line.wrapping_add(at ^ mask), place.wrapping_add(at));
                }
                if streams {
                    stream_units(whole.0.as_ptr(), to, LINE / UNIT);
                }
            }
        });
    }

    /// Calls `write` with each line, its destination, and the mask within it.
    #[inline(always)]
    fn each(&self, mut write: impl FnMut(*const u8, *mut u8, usize)) {
        for (k, (column, mask)) in self.columns.iter().zip(self.masks).enumerate() {
            let place = self.at ^ mask ^ self.flip;
            let to = self.dst.wrapping_offset(*column).wrapping_add(place / LINE * LINE);
            write(self.lines.wrapping_add(k).cast(), to, place % LINE);
        }
    }
}
