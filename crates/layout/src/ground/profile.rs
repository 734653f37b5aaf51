//! Profiles: the tree of a nested tuple without its numbers.
//!
//! A nested tuple is its flat list of leaves together with its profile (Carlisle, Shah, Stern,
//! VanKoughnett, section 2.2).
//!
//! Law of the representation: the nodes are listed in preorder; a leaf is written `0`, a tuple is
//! written as the number of nodes in its subtree, itself included. So two profiles are congruent
//! exactly when the lists are equal, and a mode is skipped in one step. Sixteen nodes (eight leaves
//! under up to eight tuples) need no heap.

use alloc::vec::Vec;
use core::fmt;

use crate::ground::words::debug_as_text;
use smallvec::SmallVec;

/// The number of nodes that need no heap.
pub(crate) const INLINE: usize = 16;

pub(crate) type Nodes = SmallVec<[u16; INLINE]>;

/// The node of a leaf.
pub(crate) const LEAF: u16 = 0;

/// The nesting of a tuple, without its numbers.
///
/// ```
/// use tilewright_layout::Layout;
///
/// let layout: Layout = "((2,2),3):((24,2),8)".parse().unwrap();
/// assert_eq!(layout.profile().to_string(), "((*,*),*)");
/// assert_eq!(layout.profile().rank(), 2);
/// assert_eq!(layout.profile().depth(), 2);
/// assert_eq!(layout.profile(), &"((*,*),*)".parse().unwrap());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Profile {
    pub(crate) nodes: Nodes,
}

/// A borrowed profile or one of its modes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ProfileRef<'a>(pub(crate) &'a [u16]);

impl Profile {
    /// The profile of a single number.
    #[inline]
    pub fn leaf() -> Profile {
        let mut nodes = Nodes::new();
        nodes.push(LEAF);
        Profile { nodes }
    }

    /// The number of leaves.
    #[inline]
    pub fn leaves(&self) -> usize {
        self.as_ref().leaves()
    }

    /// The number of top-level modes; a single number has one.
    #[inline]
    pub fn rank(&self) -> usize {
        self.as_ref().rank()
    }

    /// The depth of the nesting: 0 for a number, 1 for a tuple of numbers, and so on. The empty
    /// tuple has depth 1.
    pub fn depth(&self) -> usize {
        self.as_ref().depth()
    }

    /// Whether this is a single number.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.nodes[0] == LEAF
    }

    /// The path of modes from the root to leaf number `leaf`, outermost first; empty for a single
    /// number.
    pub fn path(&self, leaf: usize) -> Vec<usize> {
        self.as_ref().path(leaf)
    }

    /// The nodes in preorder: a leaf is 0, a tuple is the number of nodes in its subtree, itself
    /// included.
    ///
    /// ```
    /// use tilewright_layout::Profile;
    ///
    /// let profile: Profile = "((*,*),*)".parse().unwrap();
    /// assert_eq!(profile.nodes(), [5, 3, 0, 0, 0]);
    /// ```
    #[inline]
    pub fn nodes(&self) -> &[u16] {
        &self.nodes
    }

    #[inline]
    pub(crate) fn as_ref(&self) -> ProfileRef<'_> {
        ProfileRef(&self.nodes)
    }

    #[inline(always)]
    pub(crate) fn nodes_mut(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    #[inline]
    pub(crate) fn from_nodes(nodes: Nodes) -> Profile {
        Profile { nodes }
    }

    #[inline]
    pub(crate) fn duplicate(&self) -> Profile {
        Profile { nodes: Nodes::from_slice(&self.nodes) }
    }
}

impl<'a> ProfileRef<'a> {
    /// The profile with these nodes.
    #[inline]
    pub(crate) fn of_nodes(nodes: &'a [u16]) -> ProfileRef<'a> {
        ProfileRef(nodes)
    }

    #[inline]
    pub(crate) fn nodes(self) -> &'a [u16] {
        self.0
    }

    #[inline]
    pub(crate) fn is_leaf(self) -> bool {
        self.0[0] == LEAF
    }

    #[inline]
    pub(crate) fn leaves(self) -> usize {
        self.0.iter().filter(|node| **node == LEAF).count()
    }

    #[inline]
    pub(crate) fn rank(self) -> usize {
        if self.is_leaf() { 1 } else { self.modes().count() }
    }

    pub(crate) fn depth(self) -> usize {
        if self.is_leaf() {
            return 0;
        }
        // The stack of open tuples is the list of their ends; its greatest height is the depth.
        let mut ends: SmallVec<[usize; 16]> = SmallVec::new();
        let mut depth = 0;
        for (position, node) in self.0.iter().enumerate() {
            while ends.last().is_some_and(|end| *end <= position) {
                ends.pop();
            }
            if *node != LEAF {
                ends.push(position + usize::from(*node));
                depth = depth.max(ends.len());
            }
        }
        depth
    }

    pub(crate) fn path(self, leaf: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut here = self;
        let mut leaf = leaf;
        while !here.is_leaf() {
            let mut found = None;
            for (position, mode) in here.modes().enumerate() {
                let count = mode.leaves();
                if leaf < count {
                    found = Some((position, mode));
                    break;
                }
                leaf -= count;
            }
            let Some((position, mode)) = found else { break };
            path.push(position);
            here = mode;
        }
        path
    }

    /// The top-level modes; a single number is its own only mode.
    #[inline]
    pub(crate) fn modes(self) -> Modes<'a> {
        Modes { rest: if self.is_leaf() { self.0 } else { &self.0[1..] } }
    }

    pub(crate) fn to_owned(self) -> Profile {
        Profile { nodes: Nodes::from_slice(self.0) }
    }
}

/// The modes of a profile, in order.
#[derive(Clone)]
pub(crate) struct Modes<'a> {
    rest: &'a [u16],
}

impl<'a> Iterator for Modes<'a> {
    type Item = ProfileRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<ProfileRef<'a>> {
        let first = *self.rest.first()?;
        let (mode, rest) = self.rest.split_at(usize::from(first).max(1));
        self.rest = rest;
        Some(ProfileRef(mode))
    }
}

impl fmt::Display for Profile {
    /// The tree with `*` for every number: `((*,*),*)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tree(f, self.as_ref(), |f, _| f.write_str("*"))
    }
}

debug_as_text!(Profile);

/// Writes the parentheses and commas of a profile, and each leaf by `leaf(f, number)`.
pub(crate) fn write_tree(
    f: &mut fmt::Formatter<'_>,
    profile: ProfileRef<'_>,
    mut leaf: impl FnMut(&mut fmt::Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    let mut ends: SmallVec<[usize; 8]> = SmallVec::new();
    let mut leaves = 0;
    let mut after = false;
    for (position, node) in profile.nodes().iter().enumerate() {
        while ends.last().is_some_and(|end| *end <= position) {
            ends.pop();
            f.write_str(")")?;
            after = true;
        }
        if after {
            f.write_str(",")?;
        }
        if *node == 0 {
            leaf(f, leaves)?;
            leaves += 1;
            after = true;
        } else {
            ends.push(position + usize::from(*node));
            f.write_str("(")?;
            after = false;
        }
    }
    for _ in ends {
        f.write_str(")")?;
    }
    Ok(())
}
