//! Profiles: the tree of a nested tuple without its numbers.
//!
//! A nested tuple is its flat list of leaves together with its profile (Carlisle, Shah, Stern,
//! VanKoughnett, section 2.2). Profiles form an operad: [`Profile::substitute`] replaces each leaf
//! by a profile, and this is how an operation on leaves gives back a tree.
//!
//! Law of the representation: the nodes are listed in preorder; a leaf is written `0`, a tuple is
//! written as the number of nodes in its subtree, itself included. So two profiles are congruent
//! exactly when the lists are equal, and a mode is skipped in one step. Sixteen nodes (eight leaves
//! under up to eight tuples) need no heap.

use alloc::vec::Vec;
use core::fmt;

use smallvec::SmallVec;

use crate::limits::{MAX_DEPTH, MAX_NODES};
use crate::refusal::error::{LayoutError, Limit};

/// How many nodes need no heap.
const INLINE: usize = 16;

pub(crate) type Nodes = SmallVec<[u16; INLINE]>;

/// How a leaf is written.
pub(crate) const LEAF: u16 = 0;

/// The nesting of a tuple: what is left when its numbers are taken away.
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
    nodes: Nodes,
}

/// A borrowed profile or one of its modes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ProfileRef<'a>(&'a [u16]);

impl Profile {
    /// The profile of a single number.
    #[inline]
    pub fn leaf() -> Profile {
        let mut nodes = Nodes::new();
        nodes.push(LEAF);
        Profile { nodes }
    }

    /// The profile of a tuple of `leaves` numbers.
    ///
    /// Errors: more than [`MAX_NODES`] nodes.
    pub fn flat(leaves: usize) -> Result<Profile, LayoutError> {
        let mut nodes = Nodes::new();
        push_flat(&mut nodes, leaves)?;
        Ok(Profile { nodes })
    }

    /// Becomes the profile of a tuple of `leaves` numbers, or of a single number.
    #[inline(always)]
    pub(crate) fn nest_flat(&mut self, leaves: usize) -> Result<(), LayoutError> {
        self.nodes.clear();
        if leaves == 1 {
            self.nodes.push(LEAF);
            return Ok(());
        }
        push_flat(&mut self.nodes, leaves)
    }

    /// The tuple whose modes are `modes`, in order.
    ///
    /// Errors: more than [`MAX_NODES`] nodes or deeper than [`MAX_DEPTH`].
    pub fn tuple<'a>(modes: impl IntoIterator<Item = &'a Profile>) -> Result<Profile, LayoutError> {
        let mut builder = Builder::new();
        builder.open();
        for mode in modes {
            builder.append(mode.as_ref());
        }
        builder.close();
        builder.finish()
    }

    /// How many numbers the tuple has.
    #[inline]
    pub fn leaves(&self) -> usize {
        self.as_ref().leaves()
    }

    /// How many top-level modes the tuple has; a single number has one.
    #[inline]
    pub fn rank(&self) -> usize {
        self.as_ref().rank()
    }

    /// How deeply it nests: 0 for a number, 1 for a tuple of numbers, and so on. The empty tuple
    /// has depth 1.
    pub fn depth(&self) -> usize {
        self.as_ref().depth()
    }

    /// Whether this is a single number.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.nodes[0] == LEAF
    }

    /// Replaces leaf `i` by `parts(i)`, keeping the tree above it.
    ///
    /// Errors: as [`Profile::tuple`].
    pub fn substitute<'a>(&self, mut parts: impl FnMut(usize) -> &'a Profile) -> Result<Profile, LayoutError> {
        let mut builder = Builder::new();
        builder.substitute(self.as_ref(), &mut |leaf, out: &mut Builder| out.append(parts(leaf).as_ref()));
        builder.finish()
    }

    /// The path of modes from the root to leaf number `leaf`, outermost first; empty for a single
    /// number.
    pub fn path(&self, leaf: usize) -> Vec<usize> {
        self.as_ref().path(leaf)
    }

    /// The nodes in preorder: a number is 0, a tuple is how many nodes its subtree has, itself
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
    /// The profile that consists of these nodes.
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
        // The stack of open tuples is its list of ends; its greatest height is the depth.
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

/// Copies a profile while its leaves turn into tuples, a leaf at a time.
///
/// A copy is gathered in an array, where to add a node is one comparison and one move, and handed
/// on when it is complete; one that outgrows the array goes on where it will stay.
pub(crate) struct Splitting<'a> {
    /// What is not yet copied.
    rest: &'a [u16],
    /// Where the copy will be appended.
    out: &'a mut Nodes,
    /// How long that is without the copy.
    begin: usize,
    /// The copy, as long as it is no longer than this.
    room: &'a mut Room,
    /// How many nodes the copy has.
    len: usize,
}

/// Where a copy is gathered: [`ROOM`] at first. It lies beside the [`Splitting`], whose counters
/// can so be kept in registers.
pub(crate) type Room = [u16; INLINE];

/// An empty room.
pub(crate) const ROOM: Room = [LEAF; INLINE];

impl<'a> Splitting<'a> {
    /// The copy will be appended to `out`.
    #[inline(always)]
    pub(crate) fn new(profile: ProfileRef<'a>, out: &'a mut Nodes, room: &'a mut Room) -> Splitting<'a> {
        let begin = out.len();
        Splitting { rest: profile.0, out, begin, room, len: 0 }
    }

    #[inline(always)]
    fn push(&mut self, node: u16) {
        match self.room.get_mut(self.len) {
            Some(place) => *place = node,
            None => push_beyond(self.out, self.room, self.len, node),
        }
        self.len += 1;
    }

    /// Adds leaves. The room is full of them wherever nothing else has been written.
    #[inline(always)]
    fn push_leaves(&mut self, count: u16) {
        let len = self.len + usize::from(count);
        if len <= INLINE {
            self.len = len;
        } else {
            (0..count).for_each(|_| self.push(LEAF));
        }
    }

    /// Goes on to the next leaf: it stays a leaf, or becomes a flat tuple of `parts` leaves.
    #[inline(always)]
    pub(crate) fn leaf(&mut self, parts: u16) {
        while let Some((node, rest)) = self.rest.split_first() {
            self.rest = rest;
            if *node == LEAF {
                break;
            }
            self.push(*node);
        }
        if parts > 1 {
            match self.room.get_mut(..self.len) {
                Some(copied) => widen(copied, parts),
                None => widen(self.out.get_mut(self.begin..).unwrap_or_default(), parts),
            }
            // A size that does not fit is refused with the whole.
            self.push(parts.wrapping_add(1));
            self.push_leaves(parts);
        } else {
            self.push_leaves(1);
        }
    }

    /// Copies what follows the last leaf, empty tuples, and hands on the copy.
    #[inline(always)]
    pub(crate) fn finish(mut self) -> Result<(), LayoutError> {
        for node in self.rest {
            self.push(*node);
        }
        let len = self.len;
        match self.room.get(..len) {
            Some(copied) if self.begin > 0 => self.out.extend_from_slice(copied),
            Some(_) => *self.out = Nodes::from_buf_and_len(*self.room, len),
            None => {}
        }
        if self.begin + len > MAX_NODES {
            return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: self.begin + len });
        }
        // A leaf that became a tuple is one deeper than it was; only a large profile comes near the
        // limit.
        if len > MAX_DEPTH {
            let depth = ProfileRef(self.out.get(self.begin..).unwrap_or_default()).depth();
            if depth > MAX_DEPTH {
                return Err(LayoutError::TooLarge { limit: Limit::Depth, value: depth });
            }
        }
        Ok(())
    }
}

/// Adds a node to a copy of `len` nodes, the first ones of which are `copied` for as long as there
/// are no more.
#[cold]
#[inline(never)]
fn push_beyond(out: &mut Nodes, copied: &[u16], len: usize, node: u16) {
    if len == copied.len() {
        out.extend_from_slice(copied);
    }
    out.push(node);
}

/// Adds `more` nodes to the tuples that are still open at the end of the list: what they have is
/// not complete.
#[inline(always)]
fn widen(nodes: &mut [u16], more: u16) {
    let end = nodes.len();
    for (position, node) in nodes.iter_mut().enumerate() {
        // A leaf is written as 0, so it never reaches past the end.
        if position + usize::from(*node) > end {
            // A size that does not fit is refused with the whole.
            *node = node.wrapping_add(more);
        }
    }
}

/// Writes the size of a tuple that began at `begin` and ends here.
#[inline(always)]
fn close(nodes: &mut Nodes, begin: usize) {
    let size = nodes.len() - begin;
    if let Some(node) = nodes.get_mut(begin) {
        *node = size as u16;
    }
}

#[inline]
pub(crate) fn push_flat(nodes: &mut Nodes, leaves: usize) -> Result<(), LayoutError> {
    let total = nodes.len() + leaves + 1;
    if total > MAX_NODES {
        return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: total });
    }
    nodes.push((leaves + 1) as u16);
    for _ in 0..leaves {
        nodes.push(LEAF);
    }
    Ok(())
}

/// Writes a profile from left to right.
pub(crate) struct Builder {
    nodes: Nodes,
    open: SmallVec<[usize; 8]>,
    excess: Option<usize>,
}

impl Builder {
    #[inline]
    pub(crate) fn new() -> Builder {
        Builder { nodes: Nodes::new(), open: SmallVec::new(), excess: None }
    }

    #[inline]
    fn push(&mut self, node: u16) {
        if self.nodes.len() < MAX_NODES {
            self.nodes.push(node);
        } else {
            self.excess = Some(self.excess.unwrap_or(self.nodes.len()) + 1);
        }
    }

    #[inline]
    pub(crate) fn open(&mut self) {
        self.open.push(self.nodes.len());
        self.push(1);
    }

    #[inline]
    pub(crate) fn close(&mut self) {
        if let Some(begin) = self.open.pop() {
            close(&mut self.nodes, begin);
        }
    }

    #[inline]
    pub(crate) fn leaf(&mut self) {
        self.push(LEAF);
    }

    #[inline]
    pub(crate) fn nodes_mut(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    /// A tuple of `leaves` numbers.
    #[inline]
    pub(crate) fn flat(&mut self, leaves: usize) {
        self.open();
        for _ in 0..leaves {
            self.leaf();
        }
        self.close();
    }

    #[inline]
    pub(crate) fn append(&mut self, profile: ProfileRef<'_>) {
        let nodes = profile.nodes();
        if self.nodes.len() + nodes.len() > MAX_NODES {
            self.excess = Some(self.nodes.len() + nodes.len());
        } else {
            self.nodes.extend_from_slice(nodes);
        }
    }

    /// Appends `profile` with each leaf replaced by what `replace(leaf, builder)` writes.
    #[inline]
    pub(crate) fn substitute(&mut self, profile: ProfileRef<'_>, replace: &mut impl FnMut(usize, &mut Builder)) {
        let mut ends: SmallVec<[usize; 8]> = SmallVec::new();
        let mut leaf = 0;
        for (position, node) in profile.nodes().iter().enumerate() {
            while ends.last().is_some_and(|end| *end <= position) {
                ends.pop();
                self.close();
            }
            if *node == LEAF {
                replace(leaf, self);
                leaf += 1;
            } else {
                ends.push(position + usize::from(*node));
                self.open();
            }
        }
        for _ in ends {
            self.close();
        }
    }

    /// What has been written, once every tuple is closed.
    #[inline]
    pub(crate) fn as_ref(&self) -> ProfileRef<'_> {
        ProfileRef(&self.nodes)
    }

    #[inline]
    pub(crate) fn finish(self) -> Result<Profile, LayoutError> {
        if let Some(nodes) = self.excess {
            return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: nodes });
        }
        let profile = Profile { nodes: self.nodes };
        // Eight tuples cannot nest deeper than the limit, so only large profiles are measured.
        if profile.nodes.len() > MAX_DEPTH {
            let depth = profile.depth();
            if depth > MAX_DEPTH {
                return Err(LayoutError::TooLarge { limit: Limit::Depth, value: depth });
            }
        }
        Ok(profile)
    }
}

impl fmt::Display for Profile {
    /// The tree with `*` for every number: `((*,*),*)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tree(f, self.as_ref(), |f, _| f.write_str("*"))
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profile({self})")
    }
}

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
