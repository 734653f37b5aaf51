//! Writing of pairs of modes into trees.
//!
//! Law: an operation that makes a first and a second part out of each mode writes them in that
//! order. They are written as pairs into one tree, `((a,b),(c,d))`, or into two trees, `(a,c)` and
//! `(b,d)`.

use crate::value::layout::Leaf;
use crate::value::number::Stride;
use crate::value::tree::Gatherer;

/// The destination of pairs: one tree in which the parts are paired, or two trees.
pub struct Pairs<D: Stride> {
    pub(crate) first: Gatherer<Leaf<D>>,
    pub(crate) second: Option<Gatherer<Leaf<D>>>,
}

impl<D: Stride> Pairs<D> {
    /// No pairs yet, for two trees or for one.
    pub(crate) fn new(two: bool) -> Pairs<D> {
        Pairs { first: Gatherer::new(), second: two.then(Gatherer::new) }
    }

    #[inline]
    pub(crate) fn first(&mut self) -> &mut Gatherer<Leaf<D>> {
        &mut self.first
    }

    /// The destination of the second part; it is called after the first part of the pair was
    /// written.
    #[inline]
    pub(crate) fn second(&mut self) -> &mut Gatherer<Leaf<D>> {
        self.second.as_mut().unwrap_or(&mut self.first)
    }

    /// Opens a tuple in each tree.
    #[inline]
    pub(crate) fn open(&mut self) {
        self.first.open();
        if let Some(second) = &mut self.second {
            second.open();
        }
    }

    /// Closes the innermost tuple in each tree.
    #[inline]
    pub(crate) fn close(&mut self) {
        self.first.close();
        if let Some(second) = &mut self.second {
            second.close();
        }
    }
}
