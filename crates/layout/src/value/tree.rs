//! Nested tuples.
//!
//! Law: a nested tuple is its flat list of leaves together with its [`Profile`]. Shapes, strides,
//! coordinates and orders are trees of numbers; a layout is a tree of (extent, stride) pairs. So
//! whatever only moves modes about is written here once, and is the same operation on all of them.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use smallvec::SmallVec;

use crate::refusal::error::LayoutError;
use crate::value::profile::{Builder, Nodes, Profile, ProfileRef};

/// A list of leaves; eight of them need no heap.
pub(crate) type Leaves<T> = SmallVec<[T; 8]>;

/// A nested tuple with a `T` at every leaf.
///
/// ```
/// use tilewright_layout::Tree;
///
/// let shape: Tree<i64> = "(4,(2,3))".parse().unwrap();
/// assert_eq!(shape.rank(), 2);
/// assert_eq!(shape.leaves(), &[4, 2, 3]);
/// assert_eq!(shape.mode(1).unwrap().to_string(), "(2,3)");
/// ```
#[derive(PartialEq, Eq, Hash)]
pub struct Tree<T> {
    profile: Profile,
    leaves: Leaves<T>,
}

impl<T: Clone> Clone for Tree<T> {
    #[inline]
    fn clone(&self) -> Tree<T> {
        Tree { profile: self.profile.duplicate(), leaves: self.leaves.clone() }
    }
}

impl<T> Tree<T> {
    /// A single leaf.
    #[inline]
    pub fn leaf(value: T) -> Tree<T> {
        let mut leaves = Leaves::new();
        leaves.push(value);
        Tree { profile: Profile::leaf(), leaves }
    }

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

    /// As [`Tree::new`] for parts that are congruent by construction.
    #[inline]
    pub(crate) fn from_parts(profile: Profile, leaves: Leaves<T>) -> Tree<T> {
        debug_assert_eq!(profile.leaves(), leaves.len());
        Tree { profile, leaves }
    }

    /// A tree that is about to be written: no leaves, no nesting.
    #[inline(always)]
    pub(crate) fn blank() -> Tree<T> {
        Tree { profile: Profile::from_nodes(Nodes::new()), leaves: Leaves::new() }
    }

    #[inline(always)]
    pub(crate) fn leaves_mut(&mut self) -> &mut Leaves<T> {
        &mut self.leaves
    }

    /// Nests the leaves as a flat tuple; one leaf stands alone.
    #[inline(always)]
    pub(crate) fn nest_flat(&mut self) -> Result<(), LayoutError> {
        self.profile.nest_flat(self.leaves.len())
    }

    #[inline(always)]
    pub(crate) fn parts_mut(&mut self) -> (&mut Nodes, &mut Leaves<T>) {
        (self.profile.nodes_mut(), &mut self.leaves)
    }

    /// The nesting.
    #[inline]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The leaves, left to right.
    #[inline]
    pub fn leaves(&self) -> &[T] {
        &self.leaves
    }

    /// The number of top-level modes; a single leaf has one.
    #[inline]
    pub fn rank(&self) -> usize {
        self.profile.rank()
    }

    /// The nesting depth: 0 for a leaf, 1 for a flat tuple.
    #[inline]
    pub fn depth(&self) -> usize {
        self.profile.depth()
    }

    /// Whether this is a single leaf.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.profile.is_leaf()
    }

    /// Whether the two trees have the same profile (CuTe `congruent`).
    #[inline]
    pub fn congruent<U>(&self, other: &Tree<U>) -> bool {
        self.profile == other.profile
    }

    #[inline]
    pub(crate) fn as_ref(&self) -> TreeRef<'_, T> {
        TreeRef { profile: self.profile.as_ref(), leaves: &self.leaves }
    }

    /// The tree with `f` applied to every leaf.
    pub fn map<U>(&self, f: impl FnMut(&T) -> U) -> Tree<U> {
        Tree { profile: self.profile.duplicate(), leaves: self.leaves.iter().map(f).collect() }
    }

    /// As [`Tree::map`], stopping at the first error.
    pub fn try_map<U, E>(&self, f: impl FnMut(&T) -> Result<U, E>) -> Result<Tree<U>, E> {
        Ok(Tree { profile: self.profile.duplicate(), leaves: self.leaves.iter().map(f).collect::<Result<_, E>>()? })
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

    /// Mode number `mode`; a single leaf is its own mode 0.
    pub fn mode(&self, mode: usize) -> Option<Tree<T>> {
        Some(self.as_ref().mode(mode)?.to_owned())
    }

    /// The top-level modes, in order.
    pub fn modes(&self) -> impl Iterator<Item = Tree<T>> + '_ {
        self.as_ref().modes().map(TreeRef::to_owned)
    }

    /// What lies at `path`: mode `path[0]`, of it mode `path[1]`, and so on. A single leaf is its
    /// own mode 0.
    pub fn at(&self, path: &[usize]) -> Option<Tree<T>> {
        let mut here = self.as_ref();
        for mode in path {
            here = here.mode(*mode)?;
        }
        Some(here.to_owned())
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

    /// Modes `range` grouped into one mode that stands where the first of them stood (CuTe
    /// `group`).
    ///
    /// An empty range puts an empty tuple there.
    /// Errors: the range is not within `0..rank`.
    pub fn group(&self, range: Range<usize>) -> Result<Tree<T>, LayoutError> {
        let rank = self.rank();
        check_range("group", &range, rank)?;
        let mut builder = Builder::new();
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
    builder: Builder,
    leaves: Leaves<T>,
}

impl<T: Clone> Gatherer<T> {
    #[inline]
    pub(crate) fn new() -> Gatherer<T> {
        Gatherer { builder: Builder::new(), leaves: Leaves::new() }
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

    /// The nodes and leaves written so far, for a part that is written in step.
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut Nodes, &mut Leaves<T>) {
        (self.builder.nodes_mut(), &mut self.leaves)
    }

    /// One leaf as itself, several as a tuple, none as an empty tuple.
    #[inline]
    pub(crate) fn run(&mut self, leaves: &[T]) {
        if leaves.len() == 1 {
            self.builder.leaf();
        } else {
            self.builder.flat(leaves.len());
        }
        self.leaves.extend(leaves.iter().cloned());
    }

    /// What has been gathered, once every tuple is closed.
    #[inline]
    pub(crate) fn as_ref(&self) -> TreeRef<'_, T> {
        TreeRef { profile: self.builder.as_ref(), leaves: &self.leaves }
    }

    #[inline]
    pub(crate) fn finish(self) -> Result<Tree<T>, LayoutError> {
        Ok(Tree { profile: self.builder.finish()?, leaves: self.leaves })
    }
}

/// A borrowed tree, or a mode of one.
pub struct TreeRef<'a, T> {
    pub(crate) profile: ProfileRef<'a>,
    pub(crate) leaves: &'a [T],
}

impl<T> Clone for TreeRef<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TreeRef<'_, T> {}

impl<'a, T> TreeRef<'a, T> {
    #[inline]
    pub(crate) fn is_leaf(self) -> bool {
        self.profile.is_leaf()
    }

    #[inline]
    pub(crate) fn rank(self) -> usize {
        self.profile.rank()
    }

    #[inline]
    pub(crate) fn mode(self, mode: usize) -> Option<TreeRef<'a, T>> {
        self.modes().nth(mode)
    }

    /// The modes, each with its part of the leaves; a single leaf is its own only mode.
    #[inline]
    pub(crate) fn modes(self) -> impl Iterator<Item = TreeRef<'a, T>> + Clone {
        let mut rest = self.leaves;
        self.profile.modes().map(move |profile| {
            let (leaves, tail) = rest.split_at(profile.leaves());
            rest = tail;
            TreeRef { profile, leaves }
        })
    }

    pub(crate) fn to_owned(self) -> Tree<T>
    where
        T: Clone,
    {
        Tree { profile: self.profile.to_owned(), leaves: self.leaves.iter().cloned().collect() }
    }
}

impl<T: fmt::Display> fmt::Display for Tree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut leaves = self.leaves.iter();
        crate::value::profile::write_tree(f, self.profile.as_ref(), |f, _| match leaves.next() {
            Some(leaf) => write!(f, "{leaf}"),
            None => Err(fmt::Error),
        })
    }
}

impl<T: fmt::Display> fmt::Debug for Tree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({self})")
    }
}

impl From<i64> for Tree<i64> {
    fn from(value: i64) -> Tree<i64> {
        Tree::leaf(value)
    }
}
