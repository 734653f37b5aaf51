//! Elements in the order of their indices.
//!
//! Law: element number `i` of the walk over a tensor is the one at index `i`, colexicographic: the first mode runs fastest. A walk from the back gives the
//! same elements in the opposite order, and one from both ends each element once.
//!
//! The offsets are counted up, not computed: a walk is cut into runs (`walk/runs.rs`), and within one an offset costs an addition, or where a map is in between, a
//! look into a table of the offsets of one block (`walk/tables.rs`). A loop keeps the run in registers; the rest is out of line, on the heap.
//!
//! Reason for unsafe code: the offsets are those of the layout, which were proved to lie in the memory; no access is checked again.
#![allow(unsafe_code)]

mod cursor;
mod runs;
mod tables;

use std::iter::FusedIterator;
use std::marker::PhantomData;

use tilewright_layout::{Composed, Layout, Leaf, Xor};

use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};
use cursor::Cursor;
use runs::{Middle, Rows, Run};

/// The offsets of a map, in the order of the indices; made by [`Offsets::walk`].
///
/// Where a map has no value, which no map of a view lacks, there stands [`i64::MAX`].
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
    /// What is left begins with this run, and of a layout with so many more as long as `span`, each beginning `jump` behind the end of the one before.
    front: Cursor,
    more: i64,
    jump: i64,
    span: i64,
    /// What is left ends with this run.
    back: Cursor,
    middle: Held,
    map: PhantomData<fn() -> L>,
}

/// What is on the heap. Its address alone leaves a function that steps a walk, so that the rest of the walk stays in registers.
struct Held(Option<Box<Middle>>);

impl Drop for Held {
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

// SAFETY: the runs point into a table that the walk owns, and that is written through a mutable reference to it alone.
unsafe impl<L> Send for Walk<L> {}
// SAFETY: as above.
unsafe impl<L> Sync for Walk<L> {}

impl<L> Clone for Walk<L> {
    fn clone(&self) -> Walk<L> {
        let middle = self.middle.0.clone();
        let moved = |cursor: Cursor| match (&self.middle.0, &middle) {
            (Some(ours), Some(theirs)) => cursor.moved(ours.table(), theirs.table()),
            _ => cursor,
        };
        let (front, back) = (moved(self.front), moved(self.back));
        Walk { front, back, middle: Held(middle), map: PhantomData, ..*self }
    }
}

/// What a fold takes at once.
#[derive(Clone, Copy)]
enum Piece<'t> {
    /// The first offset, the step, and how many there are.
    Steps(i64, i64, i64),
    /// An offset, and what is added to it.
    Added(i64, &'t [i64]),
    /// An offset, and what it is flipped by.
    Flipped(i64, &'t [i64]),
}

impl<L> Walk<L> {
    #[inline(always)]
    fn new(middle: Result<Box<Middle>, Run>) -> Walk<L> {
        let (front, middle) = match middle {
            Ok(middle) => (Cursor::NONE, Some(middle)),
            Err(run) => (Cursor::new(run), None),
        };
        Walk { front, more: 0, jump: 0, span: 0, back: Cursor::NONE, middle: Held(middle), map: PhantomData }
    }

    /// The walk over these modes, the first fastest, of a layout.
    #[inline(always)]
    pub(crate) fn of_leaves(leaves: &[Leaf]) -> Walk<L> {
        Walk::new(Middle::of_layout(leaves))
    }

    /// The walk over a composed layout, of a map.
    #[inline(always)]
    pub(crate) fn of_composed(composed: &Composed) -> Walk<L> {
        Walk::new(Ok(Middle::of_composed(composed)))
    }

    /// The walk over a layout with XOR strides, a map.
    #[inline(always)]
    pub(crate) fn of_xor(layout: &Layout<Xor>) -> Walk<L> {
        Walk::new(Ok(Middle::of_xor(layout)))
    }
}

/// A method of a cursor, for the kind of map that `L` is.
macro_rules! of {
    ($cursor:expr, $method:ident($($argument:expr)?)) => {
        if L::MAPPED { $cursor.$method::<true>($($argument)?) } else { $cursor.$method::<false>($($argument)?) }
    };
}

impl<L: Offsets> Walk<L> {
    /// How many offsets are left.
    #[inline(always)]
    fn left(&self) -> i64 {
        let middle = self.middle.0.as_ref().map_or(0, |middle| middle.left());
        let ends = of!(self.front, length()) + of!(self.back, length());
        if L::MAPPED { ends + middle } else { ends + middle + self.more * self.whole() }
    }

    /// How many offsets each of the runs in front of the middle has, of a layout.
    #[inline(always)]
    fn whole(&self) -> i64 {
        self.front.after(0, self.span).length::<false>()
    }

    /// Begins the next run at the front; whether there is one.
    ///
    /// The run before is used up.
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
                let Rows { run, more, pitch } = middle.rows();
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

    /// Begins the next run at the back; whether there is one.
    ///
    /// The run before is used up.
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
            // The last of the runs that begin in front of the middle.
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
    fn take_rows(&mut self) -> Option<Rows> {
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
        Some(Rows { run: of!(self.front, finish()), more: 0, pitch: 0 })
    }

    /// Folds what is left, piece by piece.
    #[inline(always)]
    fn fold_pieces<B>(mut self, init: B, mut f: impl FnMut(B, Piece<'_>) -> B) -> B {
        let mut value = init;
        while let Some(Rows { run, more, pitch }) = self.take_rows() {
            let mut first = run.first;
            for _ in 0..=more {
                let piece = if L::MAPPED || !run.table.is_null() {
                    // SAFETY: the invariant of a run; the walk, which has the table, is not touched meanwhile.
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

/// What has as many items as this.
fn counted(left: i64) -> (usize, Option<usize>) {
    match usize::try_from(left) {
        Ok(left) => (left, Some(left)),
        Err(_) => (usize::MAX, None),
    }
}

impl<L: Offsets> Iterator for Walk<L> {
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
                // Of the runs in front of the middle.
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
                // The run that is begun holds what is left out of it still.
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
            // A loop over neighbours is one that the compiler turns into vector instructions.
            Piece::Steps(first, 1, length) => (first..first.wrapping_add(length)).fold(value, &mut f),
            Piece::Steps(first, step, length) => {
                (0..length).fold(value, |value, i| f(value, first.wrapping_add(i.wrapping_mul(step))))
            }
        })
    }
}

impl<L: Offsets> DoubleEndedIterator for Walk<L> {
    #[inline]
    fn next_back(&mut self) -> Option<i64> {
        if of!(self.back, is_empty()) && !self.refill_back() {
            return None;
        }
        // SAFETY: the cursor has an offset.
        Some(unsafe { of!(self.back, take_back()) })
    }
}

impl<L: Offsets> ExactSizeIterator for Walk<L> {}
impl<L: Offsets> FusedIterator for Walk<L> {}

/// The elements of a view in the order of their indices; made by [`TensorView::iter`].
pub struct Elements<'a, T, L = Layout> {
    base: *const T,
    walk: Walk<L>,
    memory: PhantomData<&'a T>,
}

/// The elements of a mutable view in the order of their indices; made by [`TensorViewMut::iter_mut`].
pub struct ElementsMut<'a, T, L = Layout> {
    base: *mut T,
    walk: Walk<L>,
    memory: PhantomData<&'a mut T>,
}

// SAFETY: shared references to elements.
unsafe impl<T: Sync, L> Send for Elements<'_, T, L> {}
// SAFETY: as above.
unsafe impl<T: Sync, L> Sync for Elements<'_, T, L> {}
// SAFETY: mutable references to elements that nobody else has.
unsafe impl<T: Send, L> Send for ElementsMut<'_, T, L> {}
// SAFETY: shared access gives no access to elements.
unsafe impl<T: Sync, L> Sync for ElementsMut<'_, T, L> {}

impl<T, L> Clone for Elements<'_, T, L> {
    fn clone(&self) -> Self {
        Elements { walk: self.walk.clone(), ..*self }
    }
}

/// The iterators, which differ in what they borrow: the pointer, the reference, and a run of neighbours as a slice.
macro_rules! elements {
    ($elements:ident, $pointer:ty, [$($reference:tt)*], $slice:path) => {
        impl<'a, T, L: Offsets> $elements<'a, T, L> {
            /// The element at an offset.
            ///
            /// # Safety
            /// The walk has given the offset: by the invariant of the view that the iterator was made of, it is that of an element, and it is given once.
            #[inline(always)]
            unsafe fn at(base: $pointer, offset: i64) -> &'a $($reference)* T {
                // SAFETY: says the caller.
                unsafe { &$($reference)* *base.offset(offset as isize) }
            }
        }

        impl<'a, T, L: Offsets> Iterator for $elements<'a, T, L> {
            type Item = &'a $($reference)* T;

            #[inline]
            fn next(&mut self) -> Option<&'a $($reference)* T> {
                let offset = self.walk.next()?;
                // SAFETY: the walk has given it.
                Some(unsafe { Self::at(self.base, offset) })
            }

            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.walk.size_hint()
            }

            #[inline]
            fn nth(&mut self, n: usize) -> Option<&'a $($reference)* T> {
                let offset = self.walk.nth(n)?;
                // SAFETY: the walk has given it.
                Some(unsafe { Self::at(self.base, offset) })
            }

            fn count(self) -> usize {
                self.walk.count()
            }

            #[inline]
            fn last(mut self) -> Option<&'a $($reference)* T> {
                self.next_back()
            }

            #[inline]
            fn fold<B, F: FnMut(B, &'a $($reference)* T) -> B>(self, init: B, mut f: F) -> B {
                let base = self.base;
                self.walk.fold_pieces(init, |value, piece| match piece {
                    Piece::Flipped(flip, table) => {
                        // SAFETY: the walk has given it.
                        table.iter().fold(value, |value, number| f(value, unsafe { Self::at(base, number ^ flip) }))
                    }
                    Piece::Added(first, table) => {
                        let first = base.wrapping_offset(first as isize);
                        // SAFETY: the walk has given it.
                        table.iter().fold(value, |value, number| f(value, unsafe { Self::at(first, *number) }))
                    }
                    Piece::Steps(first, 1, length) => {
                        let first = base.wrapping_offset(first as isize);
                        // SAFETY: the elements of a run of step 1 are neighbours.
                        unsafe { $slice(first, length as usize) }.into_iter().fold(value, &mut f)
                    }
                    Piece::Steps(first, step, length) => {
                        let first = base.wrapping_offset(first as isize);
                        // SAFETY: the walk has given it.
                        (0..length).fold(value, |value, i| f(value, unsafe { Self::at(first, i.wrapping_mul(step)) }))
                    }
                })
            }
        }

        impl<T, L: Offsets> DoubleEndedIterator for $elements<'_, T, L> {
            #[inline]
            fn next_back(&mut self) -> Option<Self::Item> {
                let offset = self.walk.next_back()?;
                // SAFETY: the walk has given it.
                Some(unsafe { Self::at(self.base, offset) })
            }
        }

        impl<T, L: Offsets> ExactSizeIterator for $elements<'_, T, L> {}
        impl<T, L: Offsets> FusedIterator for $elements<'_, T, L> {}
    };
}

elements!(Elements, *const T, [], std::slice::from_raw_parts);
elements!(ElementsMut, *mut T, [mut], std::slice::from_raw_parts_mut);

impl<'a, T, L: Offsets> TensorView<'a, T, L> {
    /// The elements in the order of their indices, the first mode fastest.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    /// use tilewright_tensor::TensorView;
    ///
    /// let rows: Layout = "(2,3):(3,1)".parse().unwrap();
    /// let view = TensorView::new(&[1, 2, 3, 4, 5, 6], rows).unwrap();
    /// assert_eq!(view.iter().copied().collect::<Vec<_>>(), [1, 4, 2, 5, 3, 6]);
    /// assert_eq!(view.iter().rev().copied().collect::<Vec<_>>(), [6, 3, 5, 2, 4, 1]);
    /// ```
    #[inline]
    pub fn iter(&self) -> Elements<'a, T, L> {
        Elements { base: self.as_ptr(), walk: self.layout().walk(), memory: PhantomData }
    }

    /// Calls `f` with each element, in the order of the indices; faster than a loop over [`TensorView::iter`].
    #[inline]
    pub fn for_each(&self, f: impl FnMut(&'a T)) {
        self.iter().for_each(f);
    }

    /// The elements in the order of their indices, in a vector.
    pub fn to_vec(&self) -> Vec<T>
    where
        T: Clone,
    {
        let elements = self.iter();
        let mut vector = Vec::with_capacity(elements.len());
        elements.walk.fold_pieces((), |(), piece| {
            let element = |offset: i64| {
                // SAFETY: the walk has given it.
                unsafe { self.at_offset(offset) }.clone()
            };
            // Each is an iterator whose length the vector knows, so that it looks for room once.
            match piece {
                Piece::Flipped(flip, table) => vector.extend(table.iter().map(|number| element(number ^ flip))),
                Piece::Added(first, table) => {
                    vector.extend(table.iter().map(|number| element(first.wrapping_add(*number))))
                }
                Piece::Steps(first, 1, length) => {
                    let first = self.as_ptr().wrapping_offset(first as isize);
                    // SAFETY: the elements of a run of step 1 are neighbours.
                    vector.extend_from_slice(unsafe { std::slice::from_raw_parts(first, length as usize) });
                }
                Piece::Steps(first, step, length) => {
                    vector
                        .extend((0..length as usize).map(|i| element(first.wrapping_add(step.wrapping_mul(i as i64)))));
                }
            }
        });
        vector
    }
}

impl<T, L: Offsets> TensorViewMut<'_, T, L> {
    /// The elements in the order of their indices, the first mode fastest.
    #[inline]
    pub fn iter(&self) -> Elements<'_, T, L> {
        Elements { base: self.as_ptr(), walk: self.layout().walk(), memory: PhantomData }
    }

    /// The elements in the order of their indices, the first mode fastest, to be written.
    #[inline]
    pub fn iter_mut(&mut self) -> ElementsMut<'_, T, L> {
        let walk = self.layout().walk();
        ElementsMut { base: self.as_mut_ptr(), walk, memory: PhantomData }
    }

    /// Calls `f` with each element, in the order of the indices; faster than a loop over [`TensorViewMut::iter_mut`].
    #[inline]
    pub fn for_each_mut(&mut self, f: impl FnMut(&mut T)) {
        self.iter_mut().for_each(f);
    }

    /// Writes clones of a value to all elements.
    pub fn fill(&mut self, value: T)
    where
        T: Clone,
    {
        self.for_each_mut(|element| element.clone_from(&value));
    }
}
