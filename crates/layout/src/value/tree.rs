//! Construction of nested tuples from other nested tuples.
//!
//! Law: operations that only rearrange modes are implemented here once, for shapes, strides,
//! coordinates and layouts. A tree that is too large or too deep is refused.

use alloc::vec::Vec;
use core::ops::Range;

use smallvec::SmallVec;

pub use crate::ground::tree::Tree;
pub(crate) use crate::ground::tree::{Leaves, TreeRef};
use crate::refusal::error::LayoutError;
use crate::refusal::evidence::Carry;
use crate::value::profile::{Nodes, Profile, ProfileBuilder};

impl<T> Tree<T> {
    /// The tuple of the given leaves.
    ///
    /// Errors: too many leaves ([`crate::limits::MAX_NODES`]).
    pub fn flat(values: impl IntoIterator<Item = T>) -> Result<Tree<T>, LayoutError> {
        let leaves: Leaves<T> = values.into_iter().collect();
        Ok(Tree { profile: Profile::flat(leaves.len())?, leaves })
    }

    /// The tree with this profile and these leaves, in order.
    ///
    /// Errors: the number of leaves is not that of the profile.
    pub fn new(profile: Profile, leaves: impl IntoIterator<Item = T>) -> Result<Tree<T>, LayoutError> {
        let leaves: Leaves<T> = leaves.into_iter().collect();
        if profile.leaves() != leaves.len() {
            return Err(LayoutError::LeafCount { expected: profile.leaves(), found: leaves.len() });
        }
        Ok(Tree { profile, leaves })
    }

    /// Nests the leaves as a flat tuple; a single leaf is not nested.
    #[inline(always)]
    pub(crate) fn nest_flat(&mut self) -> Result<(), LayoutError> {
        self.profile.nest_flat(self.leaves.len())
    }
}

impl<T: Clone> Tree<T> {
    /// The tuple whose modes are the given trees, in order.
    ///
    /// Errors: too many nodes, or nested too deep.
    pub fn tuple<'a>(modes: impl IntoIterator<Item = &'a Tree<T>>) -> Result<Tree<T>, LayoutError>
    where
        T: 'a,
    {
        Tree::gather(modes.into_iter().map(Tree::as_ref))
    }

    /// The same leaves in one flat tuple; a single leaf stays as it is.
    pub fn flatten(&self) -> Result<Tree<T>, LayoutError> {
        if self.is_leaf() {
            return Ok(self.clone());
        }
        Ok(Tree { profile: Profile::flat(self.leaves.len())?, leaves: self.leaves.clone() })
    }

    /// The leaves of this tree in the nesting of `profile` (CuTe `unflatten`).
    ///
    /// Errors: the number of leaves differs.
    pub fn unflatten(&self, profile: &Profile) -> Result<Tree<T>, LayoutError> {
        Tree::new(profile.duplicate(), self.leaves.iter().cloned())
    }

    /// Modes `range`, as a tuple (CuTe `take`).
    ///
    /// Errors: the range is not within `0..rank`.
    pub fn take(&self, range: Range<usize>) -> Result<Tree<T>, LayoutError> {
        let rank = self.rank();
        check_range("take", &range, rank)?;
        Tree::gather(self.as_ref().modes().skip(range.start).take(range.len()))
    }

    /// The given modes in the given order, as a tuple; a mode may be named more than once (CuTe
    /// `select`).
    ///
    /// Errors: a mode is not below the rank.
    pub fn select(&self, modes: &[usize]) -> Result<Tree<T>, LayoutError> {
        let all: SmallVec<[TreeRef<'_, T>; 8]> = self.as_ref().modes().collect();
        let chosen: Result<SmallVec<[TreeRef<'_, T>; 8]>, LayoutError> = modes
            .iter()
            .map(|mode| all.get(*mode).copied().ok_or(LayoutError::no_mode("select", *mode, all.len())))
            .collect();
        Tree::gather(chosen?.into_iter())
    }

    /// Modes `range` grouped into one mode at the position of the first (CuTe `group`).
    ///
    /// An empty range inserts an empty tuple. Errors: the range is not within `0..rank`.
    pub fn group(&self, range: Range<usize>) -> Result<Tree<T>, LayoutError> {
        let rank = self.rank();
        check_range("group", &range, rank)?;
        let mut builder = ProfileBuilder::new();
        builder.open();
        for (position, mode) in self.profile.as_ref().modes().enumerate() {
            if position == range.start {
                builder.open();
                if range.is_empty() {
                    builder.close();
                }
            }
            builder.append(mode);
            if position + 1 == range.end && !range.is_empty() {
                builder.close();
            }
        }
        if range.start == rank {
            builder.open();
            builder.close();
        }
        builder.close();
        Ok(Tree { profile: builder.finish()?, leaves: self.leaves.clone() })
    }

    /// The modes followed by `mode`; a single leaf counts as one mode.
    pub fn append(&self, mode: &Tree<T>) -> Result<Tree<T>, LayoutError> {
        Tree::gather(self.as_ref().modes().chain(core::iter::once(mode.as_ref())))
    }

    /// `mode` followed by the modes; a single leaf counts as one mode.
    pub fn prepend(&self, mode: &Tree<T>) -> Result<Tree<T>, LayoutError> {
        Tree::gather(core::iter::once(mode.as_ref()).chain(self.as_ref().modes()))
    }

    /// The tree with mode number `mode` replaced. Replacing mode 0 of a single leaf gives the
    /// replacement.
    ///
    /// Errors: there is no such mode.
    pub fn replace(&self, mode: usize, by: &Tree<T>) -> Result<Tree<T>, LayoutError> {
        let rank = self.rank();
        if mode >= rank {
            return Err(LayoutError::no_mode("replace", mode, rank));
        }
        if self.is_leaf() {
            return Ok(by.clone());
        }
        Tree::gather(self.as_ref().modes().enumerate().map(|(at, old)| if at == mode { by.as_ref() } else { old }))
    }

    /// The modes of `self` without mode number `mode`, as a tuple (CuTe `remove`).
    ///
    /// Errors: there is no such mode.
    pub fn remove(&self, mode: usize) -> Result<Tree<T>, LayoutError> {
        let rank = self.rank();
        if mode >= rank {
            return Err(LayoutError::no_mode("remove", mode, rank));
        }
        Tree::gather(self.as_ref().modes().enumerate().filter(|(at, _)| *at != mode).map(|(_, mode)| mode))
    }

    /// The modes in reverse order, at every level (CuTe `reverse`).
    pub fn reverse(&self) -> Result<Tree<T>, LayoutError> {
        if self.is_leaf() {
            return Ok(self.clone());
        }
        let mut modes: Vec<Tree<T>> = self.modes().map(|mode| mode.reverse()).collect::<Result<_, _>>()?;
        modes.reverse();
        Tree::tuple(modes.iter())
    }

    /// Transposes a tuple of tuples: mode `j` of the result holds mode `j` of every mode (CuTe
    /// `zip`).
    ///
    /// Errors: the modes differ in rank.
    pub fn zip(&self) -> Result<Tree<T>, LayoutError> {
        let modes: Vec<TreeRef<'_, T>> = self.as_ref().modes().collect();
        let Some(first) = modes.first() else { return Ok(self.clone()) };
        let inner = first.rank();
        for (position, mode) in modes.iter().enumerate() {
            if mode.rank() != inner {
                return Err(LayoutError::Rank {
                    op: "zip",
                    path: alloc::vec![position],
                    expected: inner,
                    found: mode.rank(),
                });
            }
        }
        let mut gatherer = Gatherer::new();
        gatherer.open();
        let mut parts: Vec<_> = modes.iter().map(|mode| mode.modes()).collect();
        for _ in 0..inner {
            gatherer.open();
            for part in parts.iter_mut().filter_map(Iterator::next) {
                gatherer.append(part);
            }
            gatherer.close();
        }
        gatherer.close();
        gatherer.finish()
    }

    pub(crate) fn gather<'a>(modes: impl Iterator<Item = TreeRef<'a, T>>) -> Result<Tree<T>, LayoutError>
    where
        T: 'a,
    {
        let mut gatherer = Gatherer::new();
        gatherer.open();
        for mode in modes {
            gatherer.append(mode);
        }
        gatherer.close();
        gatherer.finish()
    }
}

fn check_range(op: &'static str, range: &Range<usize>, rank: usize) -> Result<(), LayoutError> {
    if range.start > range.end || range.end > rank {
        return Err(LayoutError::Modes { op, begin: range.start, end: range.end, rank });
    }
    Ok(())
}

/// Builds a tree out of parts of others, from left to right.
pub struct Gatherer<T> {
    builder: ProfileBuilder,
    leaves: Leaves<T>,
}

impl<T: Clone> Gatherer<T> {
    #[inline]
    pub(crate) fn new() -> Gatherer<T> {
        Gatherer { builder: ProfileBuilder::new(), leaves: Leaves::new() }
    }

    #[inline]
    pub(crate) fn open(&mut self) {
        self.builder.open();
    }

    #[inline]
    pub(crate) fn close(&mut self) {
        self.builder.close();
    }

    #[inline]
    pub(crate) fn leaf(&mut self, leaf: T) {
        self.builder.leaf();
        self.leaves.push(leaf);
    }

    #[inline]
    pub(crate) fn append(&mut self, part: TreeRef<'_, T>) {
        self.builder.append(part.profile);
        self.leaves.extend(part.leaves.iter().cloned());
    }

    /// The nodes and leaves written so far, for a part that writes both consistently.
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut Nodes, &mut Leaves<T>) {
        (self.builder.nodes_mut(), &mut self.leaves)
    }

    /// Appends one leaf as itself, several as a tuple, none as an empty tuple.
    #[inline]
    pub(crate) fn run(&mut self, leaves: &[T]) {
        if leaves.len() == 1 {
            self.builder.leaf();
        } else {
            self.builder.flat(leaves.len());
        }
        self.leaves.extend(leaves.iter().cloned());
    }

    /// The tree built so far, once every tuple is closed.
    #[inline]
    pub(crate) fn as_ref(&self) -> TreeRef<'_, T> {
        TreeRef { profile: self.builder.as_ref(), leaves: &self.leaves }
    }

    #[inline]
    pub(crate) fn finish(self) -> Result<Tree<T>, LayoutError> {
        Ok(Tree { profile: self.builder.finish()?, leaves: self.leaves })
    }
}

/// A coordinate with these indices in the nesting of the profile; flat if the numbers of indices
/// and leaves differ.
pub(crate) fn nested(profile: &Profile, indices: &[i64]) -> Tree<i64> {
    let flat = || Tree::flat(indices.iter().copied()).unwrap_or_else(|_| Tree::leaf(0));
    Tree::new(profile.duplicate(), indices.iter().copied()).unwrap_or_else(|_| flat())
}

impl Carry {
    /// The same coordinate, in the nesting of B.
    pub fn place(&self) -> Tree<i64> {
        nested(&self.profile, &self.coordinate)
    }
}

impl LayoutError {
    /// A witness: an index or a coordinate at which the condition of the operation fails. A
    /// coordinate has the nesting of the operand in the message, so that the operand can be
    /// evaluated at it. None if no index or coordinate shows the failure.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let a: Layout = "(6,2):(1,7)".parse().unwrap();
    /// let b: Layout = "(3,2):(2,3)".parse().unwrap();
    /// let refusal = a.compose(&b).unwrap_err();
    /// let witness = refusal.witness().unwrap();
    /// assert_eq!(witness.to_string(), "(2,1)");
    /// assert_eq!(a.eval(&b.eval_at(&witness).unwrap()).unwrap(), 8); // but 4 + 3 = 7
    /// ```
    pub fn witness(&self) -> Option<Tree<i64>> {
        match self {
            LayoutError::Carry(carry) => Some(carry.place()),
            LayoutError::NotXor(not) => Some(not.place.clone()),
            LayoutError::NoLeftInverse(no) => Some(Tree::leaf(no.index)),
            LayoutError::NotLinear { index, .. } | LayoutError::NotAdditive { index, .. } => Some(Tree::leaf(*index)),
            _ => None,
        }
    }
}
