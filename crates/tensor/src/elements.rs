//! The elements at the offsets that a walk visits.
//!
//! Law: element number `i` is the one at index `i`. An iterator over a mutable view yields each
//! element once, because a walk visits each index once, and different indices of a mutable view
//! have different offsets.
//!
//! Reason for unsafe code: the offsets are those of a view's layout, which are proved to be in its
//! memory. Accesses are not checked again.
#![allow(unsafe_code)]

use std::iter::FusedIterator;
use std::marker::PhantomData;

use tilewright_layout::Layout;

use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};
use crate::walk::{Piece, Walk};

/// The elements of a view in the order of their indices; made by [`TensorView::iter`].
pub struct Elements<'a, T, L = Layout> {
    base: *const T,
    walk: Walk<L>,
    memory: PhantomData<&'a T>,
}

/// The elements of a mutable view in the order of their indices; made by
/// [`TensorViewMut::iter_mut`].
pub struct ElementsMut<'a, T, L = Layout> {
    base: *mut T,
    walk: Walk<L>,
    memory: PhantomData<&'a mut T>,
}

// SAFETY: shared references to elements.
unsafe impl<T: Sync, L> Send for Elements<'_, T, L> {}
// SAFETY: a shared iterator gives no access to elements.
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

/// The iterators. They differ in what they borrow: the pointer type, the reference, and a
/// contiguous run as a slice.
macro_rules! elements {
    ($elements:ident, $pointer:ty, [$($reference:tt)*], $slice:path) => {
        impl<'a, T, L: Offsets> $elements<'a, T, L> {
            /// The element at an offset.
            ///
            /// # Safety
            /// The walk has given the offset: by the invariant of the view that the iterator was
            /// made of, it is that of an element, and it is given once.
            #[inline(always)]
            unsafe fn at(base: $pointer, offset: i64) -> &'a $($reference)* T {
                // SAFETY: the caller vouches that the walk has given the offset, and gives it once.
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

    /// Calls `f` with each element, in the order of the indices; faster than a loop over
    /// [`TensorView::iter`].
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
            // The length of each piece is known, so that the vector reserves memory once.
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

    /// Calls `f` with each element, in the order of the indices; faster than a loop over
    /// [`TensorViewMut::iter_mut`].
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
