//! Construction of profiles from left to right.
//!
//! Law: when every tuple is closed, the result is a list of nodes in preorder with the sizes of
//! their subtrees. A profile that is too large or too deep is refused at the end.

use smallvec::SmallVec;

use crate::ground::profile::{INLINE, LEAF, Nodes, Profile, ProfileRef};
use crate::limits::{MAX_DEPTH, MAX_NODES};
use crate::refusal::error::{LayoutError, Limit};

/// Copies a profile and replaces leaves by flat tuples, one leaf at a time.
///
/// The copy is written to an array, in which adding a node is one comparison and one move, and
/// appended to the output when it is complete. A copy that does not fit in the array is continued
/// in the output.
pub(crate) struct Splitting<'a> {
    /// The part of the profile that is not copied yet.
    rest: &'a [u16],
    /// The output, to which the copy is appended.
    out: &'a mut Nodes,
    /// The length of the output without the copy.
    begin: usize,
    /// The copy, as long as it fits in this array.
    room: &'a mut Room,
    /// The number of nodes of the copy.
    len: usize,
}

/// The array for a copy, initially [`ROOM`]. It is separate from [`Splitting`], so that the
/// counters of that can be kept in registers.
pub(crate) type Room = [u16; INLINE];

/// An array without a copy.
pub(crate) const ROOM: Room = [LEAF; INLINE];

impl<'a> Splitting<'a> {
    /// Begins a copy that will be appended to `out`.
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

    /// Adds leaves. The array is filled with leaves wherever no other node has been written.
    #[inline(always)]
    fn push_leaves(&mut self, count: u16) {
        let len = self.len + usize::from(count);
        if len <= INLINE {
            self.len = len;
        } else {
            (0..count).for_each(|_| self.push(LEAF));
        }
    }

    /// Copies up to the next leaf, which stays a leaf or becomes a flat tuple of `parts` leaves.
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
            // An overflowing size is refused with the whole profile.
            self.push(parts.wrapping_add(1));
            self.push_leaves(parts);
        } else {
            self.push_leaves(1);
        }
    }

    /// Copies the rest after the last leaf, which consists of empty tuples, and appends the copy to
    /// the output.
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
        // A leaf that became a tuple is one level deeper; only a large profile can reach the limit.
        if len > MAX_DEPTH {
            let depth = ProfileRef(self.out.get(self.begin..).unwrap_or_default()).depth();
            if depth > MAX_DEPTH {
                return Err(LayoutError::TooLarge { limit: Limit::Depth, value: depth });
            }
        }
        Ok(())
    }
}

/// Adds a node to a copy of `len` nodes that does not fit in the array `copied`.
#[cold]
#[inline(never)]
fn push_beyond(out: &mut Nodes, copied: &[u16], len: usize, node: u16) {
    if len == copied.len() {
        out.extend_from_slice(copied);
    }
    out.push(node);
}

/// Adds `more` nodes to the sizes of the tuples that are still open at the end of the list, which
/// are not complete yet.
#[inline(always)]
fn widen(nodes: &mut [u16], more: u16) {
    let end = nodes.len();
    for (position, node) in nodes.iter_mut().enumerate() {
        // A leaf is written as 0, so its end is never past the end of the list.
        if position + usize::from(*node) > end {
            // An overflowing size is refused with the whole profile.
            *node = node.wrapping_add(more);
        }
    }
}

/// Writes the size of the tuple that began at `begin` and ends here.
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

/// Builds a profile from left to right.
pub(crate) struct ProfileBuilder {
    nodes: Nodes,
    open: SmallVec<[usize; 8]>,
    excess: Option<usize>,
}

impl ProfileBuilder {
    #[inline]
    pub(crate) fn new() -> ProfileBuilder {
        ProfileBuilder { nodes: Nodes::new(), open: SmallVec::new(), excess: None }
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

    /// Adds a tuple of `leaves` numbers.
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

    /// Appends `profile`, with each leaf replaced by the output of `replace(leaf, builder)`.
    #[inline]
    pub(crate) fn substitute(&mut self, profile: ProfileRef<'_>, replace: &mut impl FnMut(usize, &mut ProfileBuilder)) {
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

    /// The profile written so far, once every tuple is closed.
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
        // A profile with few nodes cannot exceed the depth limit, so only large ones are measured.
        if profile.nodes.len() > MAX_DEPTH {
            let depth = profile.depth();
            if depth > MAX_DEPTH {
                return Err(LayoutError::TooLarge { limit: Limit::Depth, value: depth });
            }
        }
        Ok(profile)
    }
}
