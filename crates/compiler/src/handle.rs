//! Handles of interned values.
//!
//! Law: two handles are equal exactly when they name the same value of the same interner, and
//! comparing or hashing one is comparing or hashing a number. A handle carries the number of its
//! interner, so that one of another interner is noticed wherever it is used.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU64;

/// The identity of an interned value of kind `T`: eight bytes, copied, compared and hashed as a
/// number.
///
/// Handles of one interner are ordered by the time at which their values were first interned. They
/// say nothing about their values without the interner: see
/// [`Interner::get`](crate::Interner::get).
pub struct Handle<T> {
    /// The number of the interner, which is not 0, in the upper half, and the number of the value
    /// in the lower.
    word: NonZeroU64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// None for interner 0, which does not exist.
    #[inline]
    pub(crate) fn new(interner: u32, index: u32) -> Option<Handle<T>> {
        if interner == 0 {
            return None;
        }
        let word = NonZeroU64::new(u64::from(interner) << 32 | u64::from(index))?;
        Some(Handle { word, kind: PhantomData })
    }

    #[inline]
    pub(crate) fn interner(self) -> u32 {
        (self.word.get() >> 32) as u32
    }

    /// The number of the value among those of its kind, in the order of interning, from 0.
    ///
    /// Within one interner it can index a table that a compiler keeps beside it.
    #[inline]
    pub fn index(self) -> u32 {
        self.word.get() as u32
    }
}

impl<T> Clone for Handle<T> {
    #[inline]
    fn clone(&self) -> Handle<T> {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    #[inline]
    fn eq(&self, other: &Handle<T>) -> bool {
        self.word == other.word
    }
}

impl<T> Eq for Handle<T> {}

impl<T> Hash for Handle<T> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.word.hash(state);
    }
}

impl<T> PartialOrd for Handle<T> {
    #[inline]
    fn partial_cmp(&self, other: &Handle<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Handle<T> {
    #[inline]
    fn cmp(&self, other: &Handle<T>) -> Ordering {
        self.word.cmp(&other.word)
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle(#{} of interner {})", self.index(), self.interner())
    }
}
