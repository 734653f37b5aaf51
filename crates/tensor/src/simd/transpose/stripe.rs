//! Transposes, stripe by stripe.
//!
//! A *stripe* is a run of elements of each of a number of source rows: as many rows as make a cache
//! line of the destination, 64 bytes. **Law.** Element `i` of row `j`, of `E` bytes, goes to `dst +
//! columns[i] + j * E`.
//!
//! This order is good for memory that is in no cache. Each stripe continues the rows where the
//! previous one ended, and the rows are few, so the hardware prefetcher follows all of them. Every
//! line of the destination is written whole, at once, with non-temporal stores.
//!
//! A stripe is transposed strip by strip, some bytes of each row at a time. A stripe of narrow
//! elements has many rows. They are first *staged*: blocks of [`STAGED_BYTES`] bytes of each are
//! copied to a buffer where they are adjacent. In the source their distance may be a power of two,
//! or nearly so. They would then conflict in the sets of the L1 cache, and each line would be
//! loaded again for every part of it that is read. A stripe of wide elements has few rows, which
//! are read in place, whole lines at a time.
//!
//! If the lines of a stripe do not begin at cache lines of memory, they are *kept* for the next
//! stripe. That stripe writes the end of the kept lines and the beginning of its own, which
//! together are one cache line of memory. Partial lines are written only at the beginning and the
//! end of a row of the destination.

use crate::memory::LINE;
use crate::simd::{Instructions, copy_run};

/// The bytes of a lane, within which registers are transposed, and the bytes of a row in a strip.
pub(super) const UNIT: usize = 16;
/// The bytes of each row that are staged at a time: several lines, so that each line is read once
/// although rows do not begin at cache lines.
pub(super) const STAGED_BYTES: usize = 256;
/// The largest number of rows of a stripe, which a stripe of one-byte elements has.
const MAX_ROWS: usize = LINE;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct CacheLine(pub(super) [u8; LINE]);

impl CacheLine {
    pub(crate) const ZERO: CacheLine = CacheLine([0; LINE]);
}

/// A kept line and the line that follows it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct LinePair {
    pub(super) kept: CacheLine,
    pub(super) line: CacheLine,
}

/// Staged rows, [`STAGED_BYTES`] bytes apart.
#[repr(align(64))]
pub(super) struct StagedRows(pub(super) [u8; MAX_ROWS * STAGED_BYTES]);

/// The scratch memory of a transpose: staged rows, and the lines of a strip.
pub(crate) struct Scratch {
    pub(super) staged: StagedRows,
    pub(super) lines: [LinePair; UNIT],
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch {
            staged: StagedRows([0; MAX_ROWS * STAGED_BYTES]),
            lines: [LinePair { kept: CacheLine::ZERO, line: CacheLine::ZERO }; UNIT],
        }
    }
}

/// The addresses of the rows of a stripe, of which there are `64 / E`. Rows past the end repeat the
/// last one, and are not written.
#[derive(Clone, Copy)]
pub(crate) struct StripeRows(pub(super) [*const u8; MAX_ROWS]);

impl StripeRows {
    /// The rows of elements of `bytes` bytes at some offsets: at least one, and at most `64 /
    /// bytes`.
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

    /// No rows.
    pub(crate) const NONE: StripeRows = StripeRows([core::ptr::null(); MAX_ROWS]);
}

/// How the lines of a stripe are written.
#[derive(Clone, Copy)]
pub(crate) enum Stores {
    /// Ordinary stores, as far as there are rows.
    Ordinary,
    /// Non-temporal stores. Lines are whole, and begin at cache lines of memory.
    Streaming,
    /// Non-temporal stores. Each line is joined with the kept line before it, and is then kept
    /// itself.
    ///
    /// *Invariant*: there is a kept line for each column.
    Kept(*mut CacheLine),
    /// Stores at the beginning or the end of a row of the destination, where lines are partial.
    ///
    /// *Invariant*: there is a kept line for each column.
    Edge(*mut CacheLine, Edge),
}

/// The exceptions at the beginning or the end of a row of the destination.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    /// Whether the lines are only kept, and not written.
    pub(crate) only_kept: bool,
    /// Whether no lines were kept before these.
    pub(crate) begins: bool,
    /// Whether no lines follow, so that these are written to their ends.
    pub(crate) ends: bool,
}

impl Stores {
    /// The memory of kept lines, if lines are kept, and the edge, if there is one.
    #[inline(always)]
    pub(super) fn kept(self) -> (*mut CacheLine, Option<Edge>) {
        match self {
            Stores::Kept(kept) => (kept, None),
            Stores::Edge(kept, edge) => (kept, Some(edge)),
            Stores::Ordinary | Stores::Streaming => (core::ptr::null_mut(), None),
        }
    }
}

/// The kinds of stores as constant parameters of functions. The first three are for whole lines,
pub(super) const ORDINARY: u8 = 0;
pub(super) const STREAMING: u8 = 1;
pub(super) const KEPT: u8 = 2;
/// and this one is for partial lines.
pub(super) const PARTS: u8 = 3;

/// A stripe.
#[derive(Clone, Copy)]
pub(crate) struct Stripe<'a> {
    pub(crate) rows: &'a StripeRows,
    /// The rows of the stripe that is [`stripes_ahead`] stripes ahead, to be prefetched.
    pub(crate) next: &'a StripeRows,
    pub(crate) dst: *mut u8,
    pub(crate) columns: &'a [isize],
    /// The number of bytes of a line for which there are rows.
    pub(crate) bytes: usize,
    pub(crate) stores: Stores,
}

/// Writes a partial line, or one that does not begin at a cache line of memory, with ordinary
/// stores: only the bytes that belong to it.
///
/// # Safety
///
/// The law of the stripe: this many bytes of `line` have their place at `to`, and those of the line
/// that was kept before it.
#[inline]
pub(super) unsafe fn write_edge(to: *mut u8, LinePair { kept, line }: &LinePair, bytes: usize, edge: Edge) {
    let past = to as usize % LINE;
    let first = bytes.min(LINE - past);
    // SAFETY: the caller vouches for the place; the parts of the two lines are adjacent.
    unsafe {
        if edge.only_kept {
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

impl LinePair {
    /// The cache line of memory that begins `past` bytes before the second line: the end of the
    /// kept line, and the beginning of the other.
    ///
    /// # Safety
    ///
    /// `past` is at most 64.
    #[inline(always)]
    pub(super) unsafe fn joined(&self, past: usize) -> CacheLine {
        // SAFETY: these 64 bytes lie in the two lines.
        unsafe { (&raw const *self).cast::<u8>().add(LINE - past).cast::<CacheLine>().read_unaligned() }
    }
}

/// The source of a strip: this many bytes of each row from `at` on. If they were staged, the rows
/// are the staged ones, and `staged` is the first of them at `at`.
#[derive(Clone, Copy)]
pub(super) struct From<'a, const ROWS: usize> {
    pub(super) rows: &'a [*const u8; ROWS],
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) staged: *const u8,
}

/// Whether rows of elements of this many bytes are staged before they are transposed. Wide elements
/// have few rows, which are better read in place, as evenly as lines are written.
pub(super) const fn stages(instructions: Instructions, bytes: usize) -> bool {
    match instructions {
        Instructions::Avx512 | Instructions::Avx2 => bytes < WIDE,
        Instructions::Portable => false,
    }
}

/// Stages this many bytes of each row, from `at` on.
///
/// # Safety
///
/// They may be read, and are at most [`STAGED_BYTES`].
#[inline]
pub(super) unsafe fn stage(rows: &[*const u8], at: usize, bytes: usize, staged: &mut StagedRows) {
    for (row, staged) in rows.iter().zip(staged.0.chunks_exact_mut(STAGED_BYTES)) {
        // SAFETY: the caller vouches for the bytes of the rows; a staged row has room for them.
        unsafe { copy_run(row.wrapping_add(at), staged.as_mut_ptr(), bytes) };
    }
}

/// The prefetch distance along a row, in bytes. It is larger if rows are staged, because then all
/// lines of a block are read at once.
pub(super) const fn prefetch_distance(instructions: Instructions, bytes: usize) -> usize {
    match bytes {
        _ if stages(instructions, bytes) => 12 * LINE,
        0..WIDE => 8 * LINE,
        _ => 4 * LINE,
    }
}

/// How many stripes ahead rows are prefetched, for rows of `columns` elements of `bytes` bytes.
/// Long rows are prefetched along the row, and the next stripe only at their ends.
pub(crate) fn stripes_ahead(instructions: Instructions, bytes: usize, columns: usize) -> usize {
    (prefetch_distance(instructions, bytes) / (bytes * columns).next_multiple_of(LINE)).max(1)
}

/// Elements of at least this many bytes have few rows in a stripe, whose lines may be prefetched
/// into the L1 cache. The lines of more rows would conflict in the sets of that cache.
const WIDE: usize = 4;

/// Prefetches the line of an address. A prefetch is not an access, so any address is allowed.
#[inline(always)]
pub(crate) fn prefetch<const ELEMENT: usize>(instructions: Instructions, place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE, and a prefetch of any address is harmless.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        if ELEMENT < WIDE || stages(instructions, ELEMENT) {
            _mm_prefetch::<_MM_HINT_T1>(place.cast())
        } else {
            _mm_prefetch::<_MM_HINT_T0>(place.cast())
        }
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (instructions, place);
}

/// The lines to prefetch while the strip that begins at column `first` is transposed: a later line
/// of some of the rows, or the first lines of the next rows. The strips of a line share the rows
/// among them.
#[inline(always)]
pub(super) fn ahead<'a, const ELEMENT: usize, const STRIP: usize>(
    instructions: Instructions,
    stripe: &Stripe<'a>,
    first: usize,
) -> (&'a [[*const u8; STRIP]], usize) {
    let (rows, next) = (&stripe.rows.0, &stripe.next.0);
    let (run, by) = (stripe.columns.len() * ELEMENT, prefetch_distance(instructions, ELEMENT));
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

/// The functions that transpose stripes of elements of 1, 2, 4 and 8 bytes with the instructions of
/// one processor. The parameters are one function for each size that transposes a strip, one that
/// stages rows, and one that writes a line with non-temporal stores. `$writes` says whether strips
/// write their lines themselves, except for edges, and `$joins` whether they join them with kept
/// lines; otherwise they return their lines.
macro_rules! stripes {
    ($instructions:ident, $attribute:meta: $($name:ident of $bytes:literal by $strip:ident of $width:ident, joins $joins:literal),*; $stage:ident, $stream:ident, writes $writes:literal) => {
        /// Transposes a stripe of elements of `bytes` bytes: 1, 2, 4 or 8.
        ///
        /// # Safety
        ///
        /// The law of [`Stripe`], for memory that may be read and written; the invariant of its
        /// stores; and a processor with the instructions.
        #[$attribute]
        pub(crate) unsafe fn stripe(stripe: &Stripe<'_>, bytes: usize, scratch: &mut Scratch) {
            // SAFETY: the caller vouches for the stripe and the instructions.
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
            /// Transposes with one size of elements and one kind of stores.
            ///
            /// # Safety
            ///
            /// As [`stripe`].
            #[$attribute]
            unsafe fn $name<const STORES: u8>(stripe: &Stripe<'_>, scratch: &mut Scratch) {
                const INSTRUCTIONS: Instructions = Instructions::$instructions;
                const STAGES: bool = stages(INSTRUCTIONS, $bytes);
                const ROWS: usize = LINE / $bytes;
                // The number of columns that are staged at a time, and of those in a strip.
                const COLUMNS: usize = if STAGES { STAGED_BYTES } else { LINE } / $bytes;
                const STRIP: usize = $width / $bytes;
                let (kept, edge) = stripe.stores.kept();
                let Scratch { staged, lines } = scratch;
                let (Some(rows), Some(lines)) = (stripe.rows.0.first_chunk::<ROWS>(), lines.first_chunk_mut::<STRIP>()) else { return };
                let places: [*const u8; ROWS] = std::array::from_fn(|row| staged.0.as_ptr().wrapping_add(row * STAGED_BYTES));
                for (block, columns) in stripe.columns.chunks(COLUMNS).enumerate() {
                    let (begin, here) = (block * COLUMNS, columns.len() * $bytes);
                    // Strips that read whole units read shorter ends from staged rows.
                    let is_staged = STAGES || !$writes && here < LINE;
                    if is_staged {
                        let rows = rows.get(..stripe.bytes / $bytes).unwrap_or_default();
                        // SAFETY: the caller vouches for these bytes of each row.
                        unsafe { $stage(rows, begin * $bytes, here, staged) };
                    }
                    for (number, columns) in columns.chunks(STRIP).enumerate() {
                        let (first, within) = (begin + number * STRIP, number * STRIP * $bytes);
                        let (rows, at) = if is_staged { (&places, within) } else { (rows, first * $bytes) };
                        let from = From { rows, at, bytes: columns.len() * $bytes, staged: staged.0.as_ptr().wrapping_add(within) };
                        let coming = ahead::<$bytes, STRIP>(INSTRUCTIONS, stripe, first);
                        let kept = kept.wrapping_add(first);
                        // Kept lines are read some time before they are joined, because a load
                        // cannot be forwarded from two stores that are not finished.
                        if STORES == KEPT && !$joins || edge.is_some() {
                            for (k, lines) in lines.iter_mut().enumerate().take(columns.len()) {
                                // SAFETY: the invariant of the stores: there is a kept line for
                                // each column.
                                lines.kept = unsafe { *kept.wrapping_add(k) };
                            }
                        }
                        // SAFETY: these bytes of the rows are staged or vouched for by the caller;
                        // each line goes where the law says, which the caller vouches for too.
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
