//! Pairs of modes on their way into trees.
//!
//! Law: an operation that makes a first and a second part out of each mode writes them in that
//! order. They end up side by side in one tree, `((a,b),(c,d))`, or in two, `(a,c)` and `(b,d)`.

use crate::value::layout::Leaf;
use crate::value::number::Stride;
use crate::value::tree::Gatherer;

/// Where the two parts of each pair go: to one tree side by side, or to two.
pub struct Pairs<D: Stride> {
    pub(crate) first: Gatherer<Leaf<D>>,
    pub(crate) second: Option<Gatherer<Leaf<D>>>,
}

impl<D: Stride> Pairs<D> {
    /// No pairs yet, which go to two trees or to one.
    pub(crate) fn new(two: bool) -> Pairs<D> {
        Pairs { first: Gatherer::new(), second: two.then(Gatherer::new) }
    }

    #[inline]
    pub(crate) fn first(&mut self) -> &mut Gatherer<Leaf<D>> {
        &mut self.first
    }

    /// To be asked for after the first part of the pair has been written.
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
