//! What operations came to.
//!
//! Law: for a key, the first outcome that is recorded is the one that everybody gets, whoever
//! computes it again meanwhile. Nothing is locked while something is computed, nor while an outcome
//! is looked up.

use std::hash::BuildHasher;
use std::sync::Arc;

use tilewright_layout::LayoutError;

use crate::operation::Operation;
use crate::pool::Pool;

/// An operation and its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// The operation, and the number of the first operand.
    what: u64,
    /// The number of the second operand, or the operand itself where it is a number.
    second: u64,
    /// A third operand.
    third: u64,
}

impl Key {
    #[inline]
    pub(crate) fn new(operation: Operation, first: u32, second: u64, third: u64) -> Key {
        Key { what: u64::from(first) << 32 | operation as u64, second, third }
    }
}

/// What an operation came to.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// A value, by its number among those of its kind.
    Value(u32),
    /// No value, for this reason.
    Refused(Arc<LayoutError>),
}

/// The outcomes, found by their keys.
pub(crate) struct Memo {
    entries: Pool<(Key, Outcome)>,
}

impl Memo {
    pub(crate) fn new(limit: u32) -> Memo {
        Memo { entries: Pool::new(limit) }
    }

    /// How many outcomes are recorded.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len()
    }

    #[inline]
    pub(crate) fn recall(&self, key: &Key) -> Option<&Outcome> {
        let index = self.entries.find_by(self.hash(key), |(other, _)| other == key)?;
        self.entries.get(index).map(|(_, outcome)| outcome)
    }

    /// Records an outcome, if there is room; returns the one that was recorded first.
    pub(crate) fn record(&self, key: Key, outcome: Outcome) -> Outcome {
        let given = (key, outcome.clone());
        let index = self.entries.enter_by(self.hash(&key), given, |given, other| given.0 == other.0, |given| given);
        match index.and_then(|index| self.entries.get(index)) {
            Some((_, first)) => first.clone(),
            None => outcome,
        }
    }

    #[inline]
    fn hash(&self, key: &Key) -> u64 {
        self.entries.seed.hash_one((key.what, key.second ^ key.third.rotate_left(32)))
    }
}
