//! Transposes of rows whose parts have changed places.
//!
//! A row is read, or written, in the order in which its bytes have the places `p ^ turn`: lines of 64 bytes are where the high bits of `turn` say, and in each of them parts have changed
//! places by the low bits. The parts of a line are put in order in a register, on their way to or from a small buffer; what happens between is a transpose like any other.

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::stripe::{Line, Rows, Scratch, Stores, Stripe, UNIT, ahead_of, fetch};
use super::transpose;
use crate::memory::LINE;
use crate::simd::{Instructions, copy_bytes, copy_run, stream_units};

/// Columns that are transposed at a time: their lines, and the rows that they come from, stay in the nearest cache.
const COLUMNS: usize = 128;
/// The bytes of the lines of so many columns, and of as many elements of the rows of a stripe.
const HALF: usize = COLUMNS * LINE;
/// The bytes of the buffer.
pub(crate) const TURNED: usize = 2 * HALF;

/// Where the lines of the columns are in it.
static PLACES: [isize; COLUMNS] = {
    let mut places = [0; COLUMNS];
    let mut k = 0;
    while k < COLUMNS {
        places[k] = (k * LINE) as isize;
        k += 1;
    }
    places
};

/// A stripe of a tile: rows that make a line of each column.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    pub(crate) src: *const u8,
    /// Where rows begin, and the bits that are flipped in the places of their bytes.
    pub(crate) rows: (&'a [isize], &'a [usize]),
    /// Rows that come later, to be fetched ahead.
    pub(crate) next: (*const u8, &'a [isize]),
    /// The bytes of a row before its first element here.
    pub(crate) first: usize,
    pub(crate) dst: *mut u8,
    /// The same for columns.
    pub(crate) columns: (&'a [isize], &'a [usize]),
    /// The place of the first row within columns.
    pub(crate) at: usize,
    /// What is flipped besides, in rows and in columns.
    pub(crate) flips: [usize; 2],
    /// The bytes of the parts that change places, in rows and in columns: a power of two, a line if they are more, 0 where none do.
    pub(crate) parts: [usize; 2],
    /// Whether lines are written past the caches: they are whole, and begin with those of memory.
    pub(crate) streams: bool,
}

impl Pieces<'_> {
    /// Whether no part that changes places has less than so many bytes.
    fn coarse(&self, least: usize) -> bool {
        self.parts.iter().all(|part| *part == 0 || *part >= least)
    }
}

/// Transposes a stripe of elements of `unit` bytes: 1, 2, 4, 8 or 16. **Law.** Element `i` of row `j` is read from `src + rows[j] + (first + i * unit ^ turn_j)`, and goes to
/// `dst + columns[i] + (at + j * unit ^ turn_i)`.
///
/// # Safety
///
/// The law, for memory that may be read and written, which is in blocks of `2^k` bytes where bits below `2^k` are flipped; no bit is flipped below the parts; a processor with the
/// instructions; and a buffer of [`TURNED`] bytes that begins with a line.
pub(crate) unsafe fn transpose_turned(
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
        // SAFETY: as here.
        unsafe {
            avx512::stripe(pieces, unit);
            if whole < pieces.columns.0.len() {
                let (columns, turns) = pieces.columns;
                let columns = (columns.get(whole..).unwrap_or_default(), turns.get(whole..).unwrap_or_default());
                by_parts(&Pieces { columns, first: whole * unit, ..*pieces }, unit, instructions, (scratch, buffer));
            }
        }
        return;
    }
    // SAFETY: as here.
    unsafe { by_parts(pieces, unit, instructions, (scratch, buffer)) }
}

/// The same by way of the buffer.
///
/// # Safety
///
/// As there.
unsafe fn by_parts(
    pieces: &Pieces<'_>,
    unit: usize,
    instructions: Instructions,
    (scratch, buffer): (&mut Scratch, *mut u8),
) {
    let (sources, row_turns) = pieces.rows;
    let (lines, near) = (buffer.cast::<Line>(), buffer.wrapping_add(HALF));
    // Rows that are brought near are asked for while others are transposed, so they come in parts of as many bytes as they are asked for ahead.
    let (turned, by) = (pieces.parts[0] != 0, ahead_of(instructions, unit));
    let most = if turned { COLUMNS.min(by / unit) } else { COLUMNS };
    let (row, total) = (most * unit, pieces.first + pieces.columns.0.len() * unit);
    let [mut here, mut next] = [Rows::NONE; 2];
    let chunks = pieces.columns.0.chunks(most).zip(pieces.columns.1.chunks(most));
    for (number, (columns, turns)) in chunks.enumerate() {
        let (first, run) = (pieces.first + number * row, columns.len() * unit);
        // What is asked for while these columns are transposed.
        let ((from, coming), ahead) = match first + run.max(by) {
            later if later < total => ((pieces.src, sources), later),
            _ if total <= by => (pieces.next, first),
            later => (pieces.next, (later - total) / LINE * LINE),
        };
        next.set(from.wrapping_add(ahead), coming, unit);
        // SAFETY: as here; the halves of the buffer have room for as many lines and as many parts of rows.
        unsafe {
            if turned {
                let parts = Parts { src: pieces.src, sources, turns: row_turns, flip: pieces.flips[0], first, run };
                parts.bring(near, row, pieces.parts[0]);
                for (j, place) in here.0.iter_mut().enumerate().take(LINE / unit) {
                    *place = near.wrapping_add(j * row);
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
            let lines = Lines { lines, columns, turns, dst: pieces.dst, at: pieces.at, flip: pieces.flips[1], bytes };
            lines.write(pieces.parts[1], pieces.streams);
        }
    }
}

/// Elements of 16 bytes: a line of four rows for each column.
///
/// # Safety
/// So many elements of each row may be read, and lines be written.
unsafe fn gather(rows: &Rows, next: &Rows, columns: usize, lines: *mut Line) {
    const ROWS: usize = LINE / UNIT;
    let (Some(rows), Some(next)) = (rows.0.first_chunk::<ROWS>(), next.0.first_chunk::<ROWS>()) else { return };
    for k in 0..columns {
        fetch::<UNIT>(Instructions::Portable, next[k % ROWS].wrapping_add(k / ROWS * LINE));
        for (j, row) in rows.iter().enumerate() {
            let to = lines.wrapping_add(k).cast::<u8>().wrapping_add(j * UNIT);
            // SAFETY: as here; rows that are missing are others, or what was near before.
            unsafe { copy_bytes::<UNIT>(row.wrapping_add(k * UNIT), to) };
        }
    }
}

/// Parts of the rows of a stripe: `run` bytes from `first` on, at the places `p ^ turn ^ flip`.
struct Parts<'a> {
    src: *const u8,
    sources: &'a [isize],
    turns: &'a [usize],
    flip: usize,
    first: usize,
    run: usize,
}

impl Parts<'_> {
    /// Copies them in order, rows `row` bytes apart.
    ///
    /// # Safety
    /// The law of [`transpose_turned`], with parts of so many bytes.
    unsafe fn bring(&self, near: *mut u8, row: usize, part: usize) {
        // SAFETY: as here.
        unsafe {
            match part {
                16.. => self.by::<16>(near, row),
                8.. => self.by::<8>(near, row),
                4.. => self.by::<4>(near, row),
                2.. => self.by::<2>(near, row),
                _ => self.by::<1>(near, row),
            }
        }
    }

    /// Calls `copy` with each row, what is flipped in it, and where it goes.
    #[inline(always)]
    fn each(&self, near: *mut u8, row: usize, mut copy: impl FnMut(*const u8, usize, *mut u8)) {
        for (j, (source, turn)) in self.sources.iter().zip(self.turns).enumerate() {
            copy(self.src.wrapping_offset(*source), turn ^ self.flip, near.wrapping_add(j * row));
        }
    }

    /// In parts of `PART` bytes.
    ///
    /// # Safety
    /// As here.
    #[inline(always)]
    unsafe fn by<const PART: usize>(&self, near: *mut u8, row: usize) {
        self.each(near, row, |from, turn, to| {
            for at in (0..self.run).step_by(PART) {
                // SAFETY: as here; a run is whole parts.
                unsafe { copy_bytes::<PART>(from.wrapping_add((self.first + at) ^ turn), to.wrapping_add(at)) };
            }
        });
    }
}

/// Lines of columns, to be written to the places `at + p ^ turn ^ flip` of each.
struct Lines<'a> {
    lines: *const Line,
    columns: &'a [isize],
    turns: &'a [usize],
    dst: *mut u8,
    at: usize,
    flip: usize,
    /// How many bytes there are of each.
    bytes: usize,
}

impl Lines<'_> {
    /// Writes them.
    ///
    /// # Safety
    /// The law of [`transpose_turned`], with parts of so many bytes.
    unsafe fn write(&self, part: usize, streams: bool) {
        // SAFETY: as here.
        unsafe {
            match part {
                0 => self.each(|line, to, _| match streams {
                    true => stream_units(line, to, LINE / UNIT),
                    false => copy_run(line, to, self.bytes),
                }),
                16.. if streams => self.each(|line, to, turn| {
                    for at in (0..LINE).step_by(UNIT) {
                        stream_units(line.wrapping_add(at ^ turn), to.wrapping_add(at), 1);
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

    /// In parts of `PART` bytes.
    ///
    /// # Safety
    /// As here.
    #[inline(always)]
    unsafe fn by<const PART: usize>(&self, streams: bool) {
        self.each(|line, to, turn| {
            let mut turned = Line::ZERO;
            let place = if streams { turned.0.as_mut_ptr() } else { to };
            // SAFETY: as here; lines are whole parts, and whole where they are written past the caches.
            unsafe {
                for at in (0..self.bytes).step_by(PART) {
                    copy_bytes::<PART>(line.wrapping_add(at ^ turn), place.wrapping_add(at));
                }
                if streams {
                    stream_units(turned.0.as_ptr(), to, LINE / UNIT);
                }
            }
        });
    }

    /// Each line, the place to which it goes, and what is flipped in it.
    #[inline(always)]
    fn each(&self, mut write: impl FnMut(*const u8, *mut u8, usize)) {
        for (k, (column, turn)) in self.columns.iter().zip(self.turns).enumerate() {
            let place = self.at ^ turn ^ self.flip;
            let to = self.dst.wrapping_offset(*column).wrapping_add(place / LINE * LINE);
            write(self.lines.wrapping_add(k).cast(), to, place % LINE);
        }
    }
}
