//! Transposes, a stripe at a time.
//!
//! A *stripe* is as many rows of the source as make a line of the destination, which is 64 bytes, and a run of elements of each. **Law.** Element `i` of row `j`, of `E` bytes,
//! goes to `dst + columns[i] + j * E`.
//!
//! Of memory that lies in no cache, this is the way to read it: each row goes on where it was, so that the processor fetches ahead along all of them, and there are no more
//! of them than it can follow; and every line of the destination is written whole, at once, past the caches.
//!
//! A stripe is transposed strip by strip, some bytes of each row at a time. Rows of narrow elements are many, and are first *brought near*, a block of [`NEAR`] bytes of each, to a buffer where
//! they follow one another: where they come from they may lie a power of two apart, or nearly so, and then the nearest cache has places for few of them, and would fetch each line again for
//! every part of it that is read. Rows of wide elements are few, and are read where they lie, whole lines at a time.
//!
//! Where lines of the destination do not begin with those of memory, the lines of a stripe are *kept* for the stripe that follows: what it writes is the end of those and the beginning
//! of its own, which together are one line of memory. Only where a row of the destination begins and ends, less than a line is written.

use crate::memory::LINE;
use crate::simd::{Instructions, copy_run};

/// The bytes of a lane, within which registers are transposed, and those of a row in a strip.
pub(super) const UNIT: usize = 16;
/// The bytes of each row that are brought near at a time: some lines, so that each is read once although rows do not begin with lines.
pub(super) const NEAR: usize = 256;
/// The most rows of a stripe, and elements of 16 bytes: those of bytes.
const MOST: usize = LINE;

/// A line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(pub(super) [u8; LINE]);

impl Line {
    pub(crate) const ZERO: Line = Line([0; LINE]);
}

/// A line that was kept and the one that follows it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Both {
    pub(super) kept: Line,
    pub(super) line: Line,
}

/// Rows that were brought near, each [`NEAR`] bytes after the one before it.
#[repr(align(64))]
pub(super) struct Near(pub(super) [u8; MOST * NEAR]);

/// What a stripe is done with: its rows, and the lines of a strip.
pub(crate) struct Scratch {
    pub(super) near: Near,
    pub(super) lines: [Both; UNIT],
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch { near: Near([0; MOST * NEAR]), lines: [Both { kept: Line::ZERO, line: Line::ZERO }; UNIT] }
    }
}

/// The places of the rows of a stripe, of which there are `64 / E`. Rows past the end are read like the others, and mean nothing.
#[derive(Clone, Copy)]
pub(crate) struct Rows(pub(super) [*const u8; MOST]);

impl Rows {
    /// The rows of elements of `bytes` bytes at some offsets, at least one and not more than `64 / bytes`; the last one stands for those that are missing.
    #[inline(always)]
    pub(crate) fn set(&mut self, src: *const u8, offsets: &[isize], bytes: usize) {
        let rows = self.0.get_mut(..LINE / bytes).unwrap_or_default();
        let last = src.wrapping_offset(offsets.last().copied().unwrap_or(0));
        if offsets.len() < rows.len() {
            rows.fill(last);
        }
        for (row, offset) in rows.iter_mut().zip(offsets) {
            *row = src.wrapping_offset(*offset);
        }
    }

    /// None yet.
    pub(crate) const NONE: Rows = Rows([core::ptr::null(); MOST]);
}

/// How the lines of a stripe are written.
#[derive(Clone, Copy)]
pub(crate) enum Stores {
    /// As far as there are rows.
    Ordinary,
    /// Whole, past the caches. Every one begins with a line of memory.
    Streaming,
    /// Past the caches, each together with the one that was kept before it, and then kept.
    ///
    /// *Invariant*: there is a line for each column.
    Kept(*mut Line),
    /// At the end of a row of the destination, or of what is kept of it.
    ///
    /// *Invariant*: as above.
    Edge(*mut Line, Edge),
}

/// What is particular about the lines of a stripe.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    /// Whether they are only kept.
    pub(crate) silent: bool,
    /// Whether nothing was kept before them.
    pub(crate) begins: bool,
    /// Whether nothing comes after them, so that they are written to their ends.
    pub(crate) ends: bool,
}

impl Stores {
    /// Where the lines are kept, if they are, and what is particular about them.
    #[inline(always)]
    pub(super) fn kept(self) -> (*mut Line, Option<Edge>) {
        match self {
            Stores::Kept(kept) => (kept, None),
            Stores::Edge(kept, edge) => (kept, Some(edge)),
            Stores::Ordinary | Stores::Streaming => (core::ptr::null_mut(), None),
        }
    }
}

/// The same, by number, as functions are made for each: those for lines that are all whole,
pub(super) const ORDINARY: u8 = 0;
pub(super) const STREAMING: u8 = 1;
pub(super) const KEPT: u8 = 2;
/// and that for lines which are not.
pub(super) const PARTS: u8 = 3;

/// A stripe.
#[derive(Clone, Copy)]
pub(crate) struct Stripe<'a> {
    pub(crate) rows: &'a Rows,
    /// The rows of the stripe that comes after [`stripes_ahead`], to be fetched ahead.
    pub(crate) next: &'a Rows,
    pub(crate) dst: *mut u8,
    pub(crate) columns: &'a [isize],
    /// The bytes of a line for which there are rows.
    pub(crate) bytes: usize,
    pub(crate) stores: Stores,
}

/// Writes a line that is not whole, or not alone in its place: ordinarily, byte by byte what belongs to it.
///
/// # Safety
///
/// The law of the stripe: so many bytes of `line` have their place at `to`, and those of the line that was kept before it.
#[inline]
pub(super) unsafe fn write_edge(to: *mut u8, Both { kept, line }: &Both, bytes: usize, edge: Edge) {
    let past = to as usize % LINE;
    let first = bytes.min(LINE - past);
    // SAFETY: as here; the parts of the two lines follow one another.
    unsafe {
        if edge.silent {
            return;
        }
        if !edge.begins {
            copy_run(kept.0.as_ptr().wrapping_add(LINE - past), to.wrapping_sub(past), past);
        }
        copy_run(line.0.as_ptr(), to, first);
        if edge.ends {
            copy_run(line.0.as_ptr().wrapping_add(first), to.wrapping_add(first), bytes - first);
        }
    }
}

impl Both {
    /// The line of memory that begins so many bytes before the second line: the end of what was kept, and its beginning.
    ///
    /// # Safety
    ///
    /// `past` is at most 64.
    #[inline(always)]
    pub(super) unsafe fn joined(&self, past: usize) -> Line {
        // SAFETY: 64 bytes from there on are in the two lines.
        unsafe { (&raw const *self).cast::<u8>().add(LINE - past).cast::<Line>().read_unaligned() }
    }
}

/// Where a strip is read: so many bytes of each row from `at` on. If they were brought near, these are the rows there, and the first one of them at `at` is `near`.
#[derive(Clone, Copy)]
pub(super) struct From<'a, const ROWS: usize> {
    pub(super) rows: &'a [*const u8; ROWS],
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) near: *const u8,
}

/// Whether rows of elements of so many bytes are brought near before they are transposed. Few rows, of wide elements, are better read where they lie, evenly, as lines are written.
pub(super) const fn brings(instructions: Instructions, bytes: usize) -> bool {
    match instructions {
        Instructions::Avx512 | Instructions::Avx2 => bytes < WIDE,
        Instructions::Portable => false,
    }
}

/// Brings so many bytes of each row near, from `at` on.
///
/// # Safety
///
/// They may be read, and are at most [`NEAR`].
#[inline]
pub(super) unsafe fn bring(rows: &[*const u8], at: usize, bytes: usize, near: &mut Near) {
    for (row, near) in rows.iter().zip(near.0.chunks_exact_mut(NEAR)) {
        // SAFETY: as here.
        unsafe { copy_run(row.wrapping_add(at), near.as_mut_ptr(), bytes) };
    }
}

/// How many bytes ahead along its row a line is asked for: further where rows are brought near, for then all lines of a block are wanted at once.
pub(super) const fn ahead_of(instructions: Instructions, bytes: usize) -> usize {
    match bytes {
        _ if brings(instructions, bytes) => 12 * LINE,
        0..WIDE => 8 * LINE,
        _ => 4 * LINE,
    }
}

/// How many stripes ahead rows are asked for: those of so many elements of so many bytes. Long rows are asked for along themselves, and the next stripe only at their ends.
pub(crate) fn stripes_ahead(instructions: Instructions, bytes: usize, columns: usize) -> usize {
    (ahead_of(instructions, bytes) / (bytes * columns).next_multiple_of(LINE)).max(1)
}

/// Elements of at least so many bytes have few rows in a stripe, whose lines may be asked for in the nearest cache. Those of more rows would push each other out of it.
const WIDE: usize = 4;

/// Asks for the line in which a place lies, wherever it is: a prefetch is no access.
#[inline(always)]
pub(crate) fn fetch<const ELEMENT: usize>(instructions: Instructions, place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE, and a prefetch of any address is harmless.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        if ELEMENT < WIDE || brings(instructions, ELEMENT) {
            _mm_prefetch::<_MM_HINT_T1>(place.cast())
        } else {
            _mm_prefetch::<_MM_HINT_T0>(place.cast())
        }
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (instructions, place);
}

/// What is asked for while the strip that begins at column `first` is transposed: a later line of some of the rows, or the first ones of those that come next. The strips of a line share
/// its rows.
#[inline(always)]
pub(super) fn ahead<'a, const ELEMENT: usize, const STRIP: usize>(
    instructions: Instructions,
    stripe: &Stripe<'a>,
    first: usize,
) -> (&'a [[*const u8; STRIP]], usize) {
    let (rows, next) = (&stripe.rows.0, &stripe.next.0);
    let (run, by) = (stripe.columns.len() * ELEMENT, ahead_of(instructions, ELEMENT));
    let line = first * ELEMENT / LINE * LINE;
    let (rows, place) = match line + by {
        ahead if ahead < run => (rows, ahead),
        _ if run <= by => (next, line),
        ahead => (next, (ahead - run) / LINE * LINE),
    };
    let (rows, _) = rows.get(..LINE / ELEMENT).unwrap_or_default().as_chunks::<STRIP>();
    let strips = (run - line).min(LINE).div_ceil(STRIP * ELEMENT);
    let share = |strip: usize| rows.len() * strip / strips;
    let strip = first % (LINE / ELEMENT) / STRIP;
    (rows.get(share(strip)..share(strip + 1)).unwrap_or_default(), place)
}

/// The stripes of elements of 1, 2, 4 and 8 bytes, over what an instruction set has: for each a function that transposes a strip, and for all one that brings rows near, and one that writes
/// a line past the caches. `$writes` says whether strips write their lines themselves, but for edges, and `$joins` whether they join those that were kept; otherwise they give their lines back.
macro_rules! stripes {
    ($instructions:ident, $attribute:meta: $($name:ident of $bytes:literal by $strip:ident of $width:ident, joins $joins:literal),*; $bring:ident, $stream:ident, writes $writes:literal) => {
        /// Transposes a stripe of elements of `bytes` bytes: 1, 2, 4 or 8.
        ///
        /// # Safety
        ///
        /// The law of [`Stripe`], for memory that may be read and written; the invariant of its stores; and a processor with the instructions.
        #[$attribute]
        pub(crate) unsafe fn stripe(stripe: &Stripe<'_>, bytes: usize, scratch: &mut Scratch) {
            // SAFETY: as here.
            unsafe {
                match (bytes, stripe.stores) {
                    $(($bytes, Stores::Ordinary) if $writes || stripe.bytes == LINE => $name::<ORDINARY>(stripe, scratch),
                    ($bytes, Stores::Streaming) => $name::<STREAMING>(stripe, scratch),
                    ($bytes, Stores::Kept(_)) => $name::<KEPT>(stripe, scratch),
                    ($bytes, _) => $name::<PARTS>(stripe, scratch),)*
                    _ => {}
                }
            }
        }
        $(
            /// One size of elements, and one way of writing lines.
            ///
            /// # Safety
            ///
            /// As [`stripe`].
            #[$attribute]
            unsafe fn $name<const STORES: u8>(stripe: &Stripe<'_>, scratch: &mut Scratch) {
                const INSTRUCTIONS: Instructions = Instructions::$instructions;
                const BRINGS: bool = brings(INSTRUCTIONS, $bytes);
                const ROWS: usize = LINE / $bytes;
                // Columns that are brought near at a time, and those of a strip.
                const COLUMNS: usize = if BRINGS { NEAR } else { LINE } / $bytes;
                const STRIP: usize = $width / $bytes;
                let (kept, edge) = stripe.stores.kept();
                let Scratch { near, lines } = scratch;
                let (Some(rows), Some(lines)) = (stripe.rows.0.first_chunk::<ROWS>(), lines.first_chunk_mut::<STRIP>()) else { return };
                let places: [*const u8; ROWS] = std::array::from_fn(|row| near.0.as_ptr().wrapping_add(row * NEAR));
                for (block, columns) in stripe.columns.chunks(COLUMNS).enumerate() {
                    let (begin, here) = (block * COLUMNS, columns.len() * $bytes);
                    // What reads whole units does so where there are any.
                    let brought = BRINGS || !$writes && here < LINE;
                    if brought {
                        let rows = rows.get(..stripe.bytes / $bytes).unwrap_or_default();
                        // SAFETY: as here: there are so many bytes of each row.
                        unsafe { $bring(rows, begin * $bytes, here, near) };
                    }
                    for (number, columns) in columns.chunks(STRIP).enumerate() {
                        let (first, within) = (begin + number * STRIP, number * STRIP * $bytes);
                        let (rows, at) = if brought { (&places, within) } else { (rows, first * $bytes) };
                        let from = From { rows, at, bytes: columns.len() * $bytes, near: near.0.as_ptr().wrapping_add(within) };
                        let coming = ahead::<$bytes, STRIP>(INSTRUCTIONS, stripe, first);
                        let kept = kept.wrapping_add(first);
                        // They are joined a while after they were written: the processor could not read a line from two that are still on their way.
                        if STORES == KEPT && !$joins || edge.is_some() {
                            for (k, lines) in lines.iter_mut().enumerate().take(columns.len()) {
                                // SAFETY: there is a line for each column.
                                lines.kept = unsafe { *kept.wrapping_add(k) };
                            }
                        }
                        // SAFETY: as here: these bytes were brought near, and each line goes where the law says.
                        unsafe {
                            $strip::<STORES>(&from, coming, (stripe.dst, columns, stripe.bytes), (kept, lines));
                            if $writes && (STORES == ORDINARY || STORES == STREAMING || STORES == KEPT && $joins) {
                                continue;
                            }
                            for (k, (lines, column)) in lines.iter_mut().zip(columns).enumerate() {
                                let to = stripe.dst.wrapping_offset(*column);
                                match STORES {
                                    ORDINARY => to.cast::<[u8; LINE]>().write_unaligned(lines.line.0),
                                    STREAMING => $stream(to, &lines.line),
                                    PARTS if edge.is_none() => copy_run(lines.line.0.as_ptr(), to, stripe.bytes),
                                    _ => {
                                        let past = to as usize % LINE;
                                        match edge {
                                            Some(edge) if STORES == PARTS => write_edge(to, lines, stripe.bytes, edge),
                                            _ => $stream(to.wrapping_sub(past), &lines.joined(past)),
                                        }
                                        *kept.wrapping_add(k) = lines.line;
                                    }
                                }
                            }
                        }
                    }
                }
            }
        )*
    };
}
pub(super) use stripes;
