//! Iteration over elements in the order of their indices.
//!
//! Law: element number `i` of the walk over a tensor is the one at index `i`, colexicographic: the
//! first mode runs fastest. A walk from the back gives the same elements in reverse, and one from
//! both ends gives each element once.
//!
//! Offsets are incremented, not computed. A walk consists of runs (`walk/runs.rs`). Within a run an
//! offset costs an addition, or, with an outer map, a lookup in a table of the offsets of one block
//! (`walk/tables.rs`). A loop keeps its position in the run (`walk/cursor.rs`) in registers;
//! everything else is out of line, on the heap.
//!
//! Reason for unsafe code: the offsets are those of the layout, which were proved to be in the
//! memory. Accesses are not checked again.
#![allow(unsafe_code)]

mod cursor;
mod runs;
mod tables;

use std::iter::FusedIterator;
use std::marker::PhantomData;

use tilewright_layout::{Composed, Layout, Leaf, Xor};

use cursor::Cursor;
use runs::{Middle, Run, RunRows};
pub(crate) use tables::number;

pub(crate) mod sealed {
    /// A kind of map from coordinates to offsets.
    pub trait Sealed {
        /// Whether the layout has an outer map, or may have one.
        const MAPPED: bool;
    }
}

/// The offsets of a map, in the order of the indices; made by
/// [`Offsets::walk`](crate::Offsets::walk).
///
/// At an index where the map has no value, which does not occur in a view, the offset is
/// [`i64::MAX`].
///
/// ```
/// use tilewright_layout::{Composed, Layout};
/// use tilewright_tensor::Offsets;
///
/// let rows: Layout = "(2,3):(3,1)".parse().unwrap();
/// assert_eq!(rows.walk().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
/// let swizzled: Composed = "S<1,0,1> o 0 o (2,2):(2,1)".parse().unwrap();
/// assert_eq!(swizzled.walk().rev().collect::<Vec<_>>(), [2, 1, 3, 0]);
/// ```
pub struct Walk<L = Layout> {
    /// The first remaining run. For a layout without an outer map, `more` runs of length `span`
    /// follow, each `jump` after the end of the previous one.
    front: Cursor,
    more: i64,
    jump: i64,
    span: i64,
    /// The last remaining run.
    back: Cursor,
    middle: HeapPart,
    map: PhantomData<fn() -> L>,
}

/// The part on the heap. Only its address leaves a function that steps a walk, so that the rest of
/// the walk stays in registers.
struct HeapPart(Option<Box<Middle>>);

impl Drop for HeapPart {
    #[inline]
    fn drop(&mut self) {
        if let Some(middle) = self.0.take() {
            release(middle);
        }
    }
}

#[inline(never)]
fn release(middle: Box<Middle>) {
    drop(middle);
}

// SAFETY: the runs point into a table that the walk owns, and that is written only through a
// mutable reference to it.
unsafe impl<L> Send for Walk<L> {}
// SAFETY: the runs point into a table that the walk owns, and a shared walk writes nothing.
unsafe impl<L> Sync for Walk<L> {}

impl<L> Clone for Walk<L> {
    fn clone(&self) -> Walk<L> {
        let middle = self.middle.0.clone();
        let moved = |cursor: Cursor| match (&self.middle.0, &middle) {
            (Some(ours), Some(theirs)) => cursor.moved(ours.table(), theirs.table()),
            _ => cursor,
        };
        let (front, back) = (moved(self.front), moved(self.back));
        Walk { front, back, middle: HeapPart(middle), map: PhantomData, ..*self }
    }
}

/// A piece that a fold processes at once.
#[derive(Clone, Copy)]
pub(crate) enum Piece<'t> {
    /// The first offset, the step, and the number of offsets.
    Steps(i64, i64, i64),
    /// An offset, and the numbers that are added to it.
    Added(i64, &'t [i64]),
    /// An offset, and the numbers that are XORed with it.
    Flipped(i64, &'t [i64]),
}

impl<L> Walk<L> {
    #[inline(always)]
    fn new(middle: Result<Box<Middle>, Run>) -> Walk<L> {
        let (front, middle) = match middle {
            Ok(middle) => (Cursor::NONE, Some(middle)),
            Err(run) => (Cursor::new(run), None),
        };
        Walk { front, more: 0, jump: 0, span: 0, back: Cursor::NONE, middle: HeapPart(middle), map: PhantomData }
    }

    /// The walk over a layout of these modes, the first one fastest.
    #[inline(always)]
    pub(crate) fn of_leaves(leaves: &[Leaf]) -> Walk<L> {
        Walk::new(Middle::of_layout(leaves))
    }

    /// The walk over a composed layout, through a map.
    #[inline(always)]
    pub(crate) fn of_composed(composed: &Composed) -> Walk<L> {
        Walk::new(Ok(Middle::of_composed(composed)))
    }

    /// The walk over a layout with XOR strides that cannot be written as a composed one.
    #[inline(always)]
    pub(crate) fn of_xor(layout: &Layout<Xor>) -> Walk<L> {
        Walk::new(Ok(Middle::of_xor(layout)))
    }
}

/// Calls a method of a cursor, for the kind of map that `L` is.
macro_rules! of {
    ($cursor:expr, $method:ident($($argument:expr)?)) => {
        if L::MAPPED { $cursor.$method::<true>($($argument)?) } else { $cursor.$method::<false>($($argument)?) }
    };
}

impl<L: sealed::Sealed> Walk<L> {
    /// The number of remaining offsets.
    #[inline(always)]
    fn left(&self) -> i64 {
        let middle = self.middle.0.as_ref().map_or(0, |middle| middle.left());
        let ends = of!(self.front, length()) + of!(self.back, length());
        if L::MAPPED { ends + middle } else { ends + middle + self.more * self.whole() }
    }

    /// The number of offsets of the runs in front of the middle, for a layout without an outer map.
    #[inline(always)]
    fn whole(&self) -> i64 {
        self.front.after(0, self.span).length::<false>()
    }

    /// Begins the next run at the front. Returns whether there is one.
    ///
    /// The previous run must be used up.
    #[inline(always)]
    fn refill(&mut self) -> bool {
        if !L::MAPPED && self.more > 0 {
            self.more -= 1;
            self.front = self.front.after(self.jump, self.span);
            return true;
        }
        if let Some(middle) = &mut self.middle.0 {
            let run = if L::MAPPED {
                middle.first_run()
            } else {
                let RunRows { run, more, pitch } = middle.rows();
                self.more = more;
                self.span = run.step.wrapping_mul(run.length);
                self.jump = pitch.wrapping_sub(self.span);
                run
            };
            if run.length > 0 {
                self.front = Cursor::new(run);
                return true;
            }
        }
        self.front = of!(self.back, reversed());
        self.back = Cursor::NONE;
        !of!(self.front, is_empty())
    }

    /// Begins the next run at the back. Returns whether there is one.
    ///
    /// The previous run must be used up.
    #[inline(always)]
    fn refill_back(&mut self) -> bool {
        if let Some(middle) = &mut self.middle.0 {
            let run = middle.last_run();
            if run.length > 0 {
                self.back = of!(Cursor::new(run), reversed());
                return true;
            }
        }
        if !L::MAPPED && self.more > 0 {
            // Takes the last of the runs in front of the middle.
            self.more -= 1;
            let by = self.jump.wrapping_add(self.more.wrapping_mul(self.jump.wrapping_add(self.span)));
            self.back = self.front.after(by, self.span).reversed::<false>();
            return true;
        }
        self.back = of!(self.front, reversed());
        self.front = Cursor::NONE;
        !of!(self.back, is_empty())
    }

    /// The next runs, as a whole.
    fn take_rows(&mut self) -> Option<RunRows> {
        let is_empty = of!(self.front, is_empty());
        if !L::MAPPED
            && is_empty
            && self.more == 0
            && let Some(middle) = &mut self.middle.0
        {
            middle.tabulate();
            let rows = middle.rows();
            if rows.run.length > 0 {
                return Some(rows);
            }
        }
        if is_empty && !self.refill() {
            return None;
        }
        Some(RunRows { run: of!(self.front, finish()), more: 0, pitch: 0 })
    }

    /// Folds the remaining offsets, piece by piece.
    #[inline(always)]
    pub(crate) fn fold_pieces<B>(mut self, init: B, mut f: impl FnMut(B, Piece<'_>) -> B) -> B {
        let mut value = init;
        while let Some(RunRows { run, more, pitch }) = self.take_rows() {
            let mut first = run.first;
            for _ in 0..=more {
                let piece = if L::MAPPED || !run.table.is_null() {
                    // SAFETY: the invariant of a run; the walk, which has the table, is not touched
                    // meanwhile.
                    let table = unsafe { std::slice::from_raw_parts(run.table, run.length as usize) };
                    if L::MAPPED { Piece::Flipped(first, table) } else { Piece::Added(first, table) }
                } else {
                    Piece::Steps(first, run.step, run.length)
                };
                value = f(value, piece);
                first = first.wrapping_add(pitch);
            }
        }
        value
    }
}

/// The size hint of an iterator with this many items left.
fn counted(left: i64) -> (usize, Option<usize>) {
    match usize::try_from(left) {
        Ok(left) => (left, Some(left)),
        Err(_) => (usize::MAX, None),
    }
}

impl<L: sealed::Sealed> Iterator for Walk<L> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if of!(self.front, is_empty()) && !self.refill() {
            return None;
        }
        // SAFETY: the cursor has an offset.
        Some(unsafe { of!(self.front, take()) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        counted(self.left())
    }

    fn nth(&mut self, n: usize) -> Option<i64> {
        let mut count = i64::try_from(n).unwrap_or(i64::MAX).min(self.left());
        loop {
            let length = of!(self.front, length());
            if count < length {
                of!(self.front, skip(count));
                return self.next();
            }
            of!(self.front, skip(length));
            count -= length;
            let whole = self.whole();
            if let Some(runs) = count.checked_div(whole) {
                // Skips runs in front of the middle.
                let skipped = runs.min(self.more);
                self.more -= skipped;
                count -= skipped * whole;
                let by = skipped.wrapping_mul(self.jump.wrapping_add(self.span));
                self.front = self.front.after(by, 0);
            }
            if self.more == 0
                && let Some(middle) = &mut self.middle.0
                && middle.left() > 0
            {
                let skipped = count.min(middle.left() - 1);
                // The run that has begun still has its remaining offsets.
                count = count - skipped + middle.skip(skipped);
            }
            if !self.refill() {
                return None;
            }
        }
    }

    fn count(self) -> usize {
        self.size_hint().0
    }

    #[inline]
    fn last(mut self) -> Option<i64> {
        self.next_back()
    }

    #[inline]
    fn fold<B, F: FnMut(B, i64) -> B>(self, init: B, mut f: F) -> B {
        self.fold_pieces(init, |value, piece| match piece {
            Piece::Flipped(flip, table) => table.iter().fold(value, |value, number| f(value, number ^ flip)),
            Piece::Added(first, table) => {
                table.iter().fold(value, |value, number| f(value, first.wrapping_add(*number)))
            }
            // The compiler turns a loop over contiguous elements into vector instructions.
            Piece::Steps(first, 1, length) => (first..first.wrapping_add(length)).fold(value, &mut f),
            Piece::Steps(first, step, length) => {
                (0..length).fold(value, |value, i| f(value, first.wrapping_add(i.wrapping_mul(step))))
            }
        })
    }
}

impl<L: sealed::Sealed> DoubleEndedIterator for Walk<L> {
    #[inline]
    fn next_back(&mut self) -> Option<i64> {
        if of!(self.back, is_empty()) && !self.refill_back() {
            return None;
        }
        // SAFETY: the cursor has an offset.
        Some(unsafe { of!(self.back, take_back()) })
    }
}

impl<L: sealed::Sealed> ExactSizeIterator for Walk<L> {}
impl<L: sealed::Sealed> FusedIterator for Walk<L> {}
