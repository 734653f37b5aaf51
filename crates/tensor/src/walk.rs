//! Elements in the order of their indices.
//!
//! Law: element number `i` of the walk over a tensor is the one at index `i`, colexicographic: the first mode runs fastest.
//!
//! The offsets are counted up, not computed: the modes of the coalesced layout are the digits of an odometer, whose lowest is a loop with one step. A composed
//! layout sends each offset of its inner layout through its outer map.
//!
//! Reason for unsafe code: the offsets are those of the layout, which were proved to lie in the memory; no access is checked again.
#![allow(unsafe_code)]

use std::iter::FusedIterator;
use std::marker::PhantomData;

use smallvec::SmallVec;
use tilewright_layout::{Composed, Layout, Leaf, OuterMap, Swizzle, Xor};

use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};

/// The offsets of a map, in the order of the indices.
#[derive(Clone)]
pub struct Walk {
    /// The mode that runs fastest.
    run: Leaf,
    /// The other modes, and the index in each.
    modes: SmallVec<[(Leaf, i64); 8]>,
    /// The index in the fastest mode, and the offset there.
    at: i64,
    offset: i64,
    left: i64,
    through: Through,
}

/// What the offsets are sent through.
#[derive(Clone)]
enum Through {
    Nothing,
    Swizzle(Swizzle),
    Map(OuterMap),
    /// Of indices.
    Xor(Box<Layout<Xor>>),
}

impl Walk {
    /// The walk over these modes, the first fastest.
    pub(crate) fn of_leaves(leaves: &[Leaf]) -> Walk {
        let mut modes: SmallVec<[(Leaf, i64); 8]> = SmallVec::new();
        let mut size = 1_i64;
        for leaf in leaves.iter().filter(|leaf| leaf.extent > 1) {
            // The size of a layout is representable.
            size = size.saturating_mul(leaf.extent);
            match modes.last_mut() {
                Some((last, _)) if last.stride.checked_mul(last.extent) == Some(leaf.stride) => {
                    last.extent = last.extent.saturating_mul(leaf.extent);
                }
                _ => modes.push((*leaf, 0)),
            }
        }
        let run = if modes.is_empty() { Leaf { extent: 1, stride: 0 } } else { modes.remove(0).0 };
        Walk { run, modes, at: 0, offset: 0, left: size, through: Through::Nothing }
    }

    /// The walk over a composed layout.
    pub(crate) fn of_composed(composed: &Composed) -> Walk {
        let through = match composed.outer() {
            OuterMap::Swizzle(swizzle) => Through::Swizzle(*swizzle),
            map => Through::Map(map.clone()),
        };
        Walk { offset: *composed.offset(), through, ..Walk::of_leaves(composed.inner().leaves()) }
    }

    /// The walk over a layout with XOR strides.
    pub(crate) fn of_xor(layout: &Layout<Xor>) -> Walk {
        match layout.derived() {
            Ok(composed) => Walk::of_composed(&composed),
            Err(_) => {
                let indices = Walk::of_leaves(&[Leaf { extent: layout.size(), stride: 1 }]);
                Walk { through: Through::Xor(Box::new(layout.clone())), ..indices }
            }
        }
    }

    /// Goes from the end of a run to the beginning of the next.
    #[inline]
    fn carry(&mut self) {
        // Partial sums wrap to what they are: every offset is representable.
        self.offset = self.offset.wrapping_sub(self.run.stride.wrapping_mul(self.run.extent));
        self.at = 0;
        self.advance(0);
    }

    /// Goes from the beginning of a run to that at the next index of a mode, or where that has none, of the one after it.
    #[inline]
    fn advance(&mut self, mode: usize) {
        for (leaf, digit) in self.modes.iter_mut().skip(mode) {
            *digit += 1;
            self.offset = self.offset.wrapping_add(leaf.stride);
            if *digit < leaf.extent {
                return;
            }
            self.offset = self.offset.wrapping_sub(leaf.stride.wrapping_mul(leaf.extent));
            *digit = 0;
        }
    }

    /// The next run of offsets, where they are those of a layout: the first, the step and the length.
    fn next_run(&mut self) -> Option<(i64, i64, i64)> {
        if self.left == 0 {
            return None;
        }
        let length = (self.run.extent - self.at).min(self.left);
        let run = (self.offset, self.run.stride, length);
        self.left -= length;
        self.offset = self.offset.wrapping_add(self.run.stride.wrapping_mul(length));
        self.carry();
        Some(run)
    }

    /// Whether the offsets are those of a layout, in runs.
    fn is_plain(&self) -> bool {
        matches!(self.through, Through::Nothing)
    }

    /// Folds the runs of inner offsets that are left: the first offset, the step and the length of each.
    #[inline(always)]
    fn fold_runs<B>(mut self, init: B, mut f: impl FnMut(B, i64, i64, i64) -> B) -> B {
        let mut value = init;
        while self.left > 0 {
            match self.modes.first() {
                // All runs of one mode, without an odometer between them: runs may be short.
                Some((second, 0)) if self.at == 0 => {
                    let (second, run, mut first) = (*second, self.run, self.offset);
                    for _ in 0..second.extent {
                        value = f(value, first, run.stride, run.extent);
                        first = first.wrapping_add(second.stride);
                    }
                    self.left -= run.extent * second.extent;
                    self.advance(1);
                }
                _ => {
                    let Some((first, step, length)) = self.next_run() else { break };
                    value = f(value, first, step, length);
                }
            }
        }
        value
    }
}

impl Iterator for Walk {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.left == 0 {
            return None;
        }
        let offset = self.offset;
        self.left -= 1;
        self.at += 1;
        self.offset = self.offset.wrapping_add(self.run.stride);
        if self.at == self.run.extent {
            self.carry();
        }
        match &self.through {
            Through::Nothing => Some(offset),
            Through::Swizzle(swizzle) => Some(swizzle.apply(offset)),
            Through::Map(map) => map.eval(&offset).ok(),
            Through::Xor(layout) => layout.offset(offset).ok(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }

    #[inline]
    fn fold<B, F: FnMut(B, i64) -> B>(self, init: B, mut f: F) -> B {
        let place = |first: i64, step: i64, i: i64| first.wrapping_add(i.wrapping_mul(step));
        match self.through.clone() {
            Through::Nothing => self.fold_runs(init, |value, first, step, length| {
                if step == 1 {
                    // A loop over neighbours is one that the compiler turns into vector instructions.
                    return (first..first.wrapping_add(length)).fold(value, &mut f);
                }
                (0..length).fold(value, |value, i| f(value, place(first, step, i)))
            }),
            Through::Swizzle(swizzle) => self.fold_runs(init, |value, first, step, length| {
                (0..length).fold(value, |value, i| f(value, swizzle.apply(place(first, step, i))))
            }),
            Through::Map(map) => self.fold_runs(init, |value, first, step, length| {
                // A map has a value at every offset of the layout that it was composed with.
                (0..length).filter_map(|i| map.eval(&place(first, step, i)).ok()).fold(value, &mut f)
            }),
            Through::Xor(layout) => self.fold_runs(init, |value, first, step, length| {
                (0..length).filter_map(|i| layout.offset(place(first, step, i)).ok()).fold(value, &mut f)
            }),
        }
    }
}

impl ExactSizeIterator for Walk {}
impl FusedIterator for Walk {}

/// The elements of a view in the order of their indices; made by [`TensorView::iter`].
pub struct Elements<'a, T> {
    base: *const T,
    walk: Walk,
    /// The elements of this run that are left: the next one, the step, and how many. A composed layout has no runs.
    next: *const T,
    step: isize,
    run: usize,
    memory: PhantomData<&'a T>,
}

/// The elements of a mutable view in the order of their indices; made by [`TensorViewMut::iter_mut`].
pub struct ElementsMut<'a, T> {
    base: *mut T,
    walk: Walk,
    next: *mut T,
    step: isize,
    run: usize,
    memory: PhantomData<&'a mut T>,
}

// SAFETY: shared references to elements.
unsafe impl<T: Sync> Send for Elements<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Elements<'_, T> {}
// SAFETY: mutable references to elements that nobody else has.
unsafe impl<T: Send> Send for ElementsMut<'_, T> {}
// SAFETY: shared access gives no access to elements.
unsafe impl<T: Sync> Sync for ElementsMut<'_, T> {}

impl<T> Clone for Elements<'_, T> {
    fn clone(&self) -> Self {
        Elements { walk: self.walk.clone(), ..*self }
    }
}

/// The iterators, which differ in what they borrow: the pointer, the reference, and a run of neighbours as a slice.
macro_rules! elements {
    ($elements:ident, $pointer:ty, [$($reference:tt)*], $slice:path) => {
        impl<'a, T> $elements<'a, T> {
            fn new(base: $pointer, walk: Walk) -> $elements<'a, T> {
                $elements { base, walk, next: base, step: 0, run: 0, memory: PhantomData }
            }

            /// The first element of the next run, or of a composed layout the next element.
            #[inline(never)]
            fn refill(&mut self) -> Option<&'a $($reference)* T> {
                let offset = if self.walk.is_plain() {
                    let (first, step, length) = self.walk.next_run()?;
                    self.step = step as isize;
                    self.run = length as usize - 1;
                    self.next = self.base.wrapping_offset((first as isize).wrapping_add(self.step));
                    first
                } else {
                    self.walk.next()?
                };
                // SAFETY: the invariant of the view that the iterator was made of: every offset of the layout is that of an element, and the walk has each
                // index once.
                Some(unsafe { &$($reference)* *self.base.offset(offset as isize) })
            }
        }

        impl<'a, T> Iterator for $elements<'a, T> {
            type Item = &'a $($reference)* T;

            #[inline]
            fn next(&mut self) -> Option<&'a $($reference)* T> {
                if self.run == 0 {
                    return self.refill();
                }
                let element = self.next;
                self.run -= 1;
                self.next = element.wrapping_offset(self.step);
                // SAFETY: as above; the run has this element.
                Some(unsafe { &$($reference)* *element })
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                let left = self.walk.size_hint().0.saturating_add(self.run);
                (left, Some(left))
            }

            #[inline]
            fn fold<B, F: FnMut(B, &'a $($reference)* T) -> B>(self, init: B, mut f: F) -> B {
                let $elements { base, walk, next, step, run, .. } = self;
                let mut fold_run = |value: B, first: $pointer, step: isize, length: usize| {
                    if step == 1 {
                        // SAFETY: the elements of a run of step 1 are neighbours.
                        return unsafe { $slice(first, length) }.into_iter().fold(value, &mut f);
                    }
                    let (mut value, mut element) = (value, first);
                    for _ in 0..length {
                        // SAFETY: the run has this element.
                        value = f(value, unsafe { &$($reference)* *element });
                        element = element.wrapping_offset(step);
                    }
                    value
                };
                let value = fold_run(init, next, step, run);
                if walk.is_plain() {
                    return walk.fold_runs(value, |value, first, step, length| {
                        fold_run(value, base.wrapping_offset(first as isize), step as isize, length as usize)
                    });
                }
                // SAFETY: every offset of the layout is that of an element, and the walk has each index once.
                walk.fold(value, |value, offset| f(value, unsafe { &$($reference)* *base.offset(offset as isize) }))
            }
        }
    };
}

elements!(Elements, *const T, [], std::slice::from_raw_parts);
elements!(ElementsMut, *mut T, [mut], std::slice::from_raw_parts_mut);

impl<T> ExactSizeIterator for Elements<'_, T> {}
impl<T> ExactSizeIterator for ElementsMut<'_, T> {}
impl<T> FusedIterator for Elements<'_, T> {}
impl<T> FusedIterator for ElementsMut<'_, T> {}

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
    /// ```
    pub fn iter(&self) -> Elements<'a, T> {
        Elements::new(self.as_ptr(), self.layout().walk())
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
        self.iter().cloned().collect()
    }
}

impl<T, L: Offsets> TensorViewMut<'_, T, L> {
    /// The elements in the order of their indices, the first mode fastest.
    pub fn iter(&self) -> Elements<'_, T> {
        Elements::new(self.as_ptr(), self.layout().walk())
    }

    /// The elements in the order of their indices, the first mode fastest, to be written.
    pub fn iter_mut(&mut self) -> ElementsMut<'_, T> {
        let walk = self.layout().walk();
        ElementsMut::new(self.as_mut_ptr(), walk)
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
