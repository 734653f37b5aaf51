//! Nested tuples.
//!
//! Law: a nested tuple is its flat list of leaves together with its [`Profile`]. Shapes, strides,
//! coordinates and orders are trees of numbers; a layout is a tree of (extent, stride) pairs. So
//! operations that only rearrange modes are implemented once, for all of them.

use core::fmt;

use smallvec::SmallVec;

use crate::ground::profile::{Nodes, Profile, ProfileRef, write_tree};
use crate::ground::words::debug_as_text;

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
    pub(crate) profile: Profile,
    pub(crate) leaves: Leaves<T>,
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

    /// As [`Tree::new`] for parts that are congruent by construction.
    #[inline]
    pub(crate) fn from_parts(profile: Profile, leaves: Leaves<T>) -> Tree<T> {
        debug_assert_eq!(profile.leaves(), leaves.len());
        Tree { profile, leaves }
    }

    /// A tree into which leaves and nesting will be written.
    #[inline(always)]
    pub(crate) fn blank() -> Tree<T> {
        Tree { profile: Profile::from_nodes(Nodes::new()), leaves: Leaves::new() }
    }

    #[inline(always)]
    pub(crate) fn leaves_mut(&mut self) -> &mut Leaves<T> {
        &mut self.leaves
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
    /// Mode number `mode`; a single leaf is its own mode 0.
    pub fn mode(&self, mode: usize) -> Option<Tree<T>> {
        Some(self.as_ref().mode(mode)?.to_owned())
    }

    /// The top-level modes, in order.
    pub fn modes(&self) -> impl Iterator<Item = Tree<T>> + '_ {
        self.as_ref().modes().map(TreeRef::to_owned)
    }

    /// The subtree at `path`: mode `path[1]` of mode `path[0]`, and so on. A single leaf is its own
    /// mode 0.
    pub fn at(&self, path: &[usize]) -> Option<Tree<T>> {
        let mut here = self.as_ref();
        for mode in path {
            here = here.mode(*mode)?;
        }
        Some(here.to_owned())
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
        write_tree(f, self.profile.as_ref(), |f, _| match leaves.next() {
            Some(leaf) => write!(f, "{leaf}"),
            None => Err(fmt::Error),
        })
    }
}

debug_as_text!(Tree<T: fmt::Display>);

impl From<i64> for Tree<i64> {
    fn from(value: i64) -> Tree<i64> {
        Tree::leaf(value)
    }
}
