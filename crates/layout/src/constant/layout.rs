//! Layouts that are known at compile time.
//!
//! Law: a [`StaticLayout`] is the [`Layout`] with the same shape and strides. It has the same value
//! at every index and every coordinate, inside the domain and outside, and returns None exactly if
//! that layout returns an error.
//!
//! It consists of borrowed slices and a few numbers. So it can be a `const`, needs no allocation,
//! and has the same type for every shape: a trait may declare `const TILE: StaticLayout;`, and a
//! kernel may be generic over it. It is fast because the compiler knows the numbers:
//! [`eval`](StaticLayout::eval) is inlined, and its evaluation of the first
//! [`UNROLLED`](StaticLayout::UNROLLED) leaves is unrolled. So each extent is a constant divisor:
//! powers of two become shifts and masks, other extents become multiplications, and no step needs a
//! table, a branch or a call.
//!
//! The constructor checks that every offset of the domain and its negative are representable. A
//! digit that is not the last of its mode is below its extent, so the sum over these digits is an
//! offset of the domain, or the negative of one, and needs no overflow check. Only the last digit
//! of a mode is unbounded; its product and sum are checked.

use core::fmt;

use crate::ground::words::debug_as_text;
use crate::limits::{MAX_DEPTH, MAX_NODES};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::Extent;
use crate::value::profile::{LEAF, Nodes, Profile};
use crate::value::tree::Tree;

/// A layout that is known at compile time: the value of the macro `layout!`.
///
/// ```
/// use tilewright_layout::{Layout, Leaf, StaticLayout};
///
/// // The expansion of layout!("(8,16):(16,1)").
/// const TILE: StaticLayout = StaticLayout::new(
///     &[Leaf { extent: 8, stride: 16 }, Leaf { extent: 16, stride: 1 }],
///     &[0, 1],
///     &[3, 0, 0],
/// )
/// .unwrap();
/// const LAST: i64 = TILE.eval_at([7, 15]).unwrap();
///
/// assert_eq!(TILE.to_string(), "(8,16):(16,1)");
/// assert_eq!((TILE.size(), LAST), (128, 127));
///
/// // A static layout as the tiler of a run-time layout.
/// let matrix: Layout = "(64,64):(64,1)".parse().unwrap();
/// assert_eq!(matrix.compose(&TILE.to_layout()).unwrap().to_string(), "((4,2),16):((1024,1),64)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StaticLayout {
    leaves: &'static [Leaf],
    modes: &'static [u16],
    nodes: &'static [u16],
    rank: usize,
    /// Whether some mode has no leaf.
    hollow: bool,
    size: i64,
    range: (i64, i64),
}

/// The state of an evaluation.
#[derive(Clone, Copy)]
struct Walk {
    /// The value of the completed modes.
    value: i64,
    /// The value of the digits of the current mode so far.
    front: i64,
    /// The index into the rest of the current mode.
    rest: i64,
}

impl StaticLayout {
    /// The largest number of leaves that are evaluated without a loop.
    pub const UNROLLED: usize = 16;

    /// The layout with these (extent, stride) pairs; `layout!` writes the arguments.
    ///
    /// `modes` holds for each leaf the top-level mode that it belongs to, and `nodes` the nesting
    /// as [`Profile::nodes`] does. None if these three do not agree; if an extent is not positive
    /// or the size is not representable; if the nesting exceeds [`MAX_NODES`] or [`MAX_DEPTH`]; or
    /// if an offset, its negative, or the largest offset plus one is not representable.
    pub const fn new(leaves: &'static [Leaf], modes: &'static [u16], nodes: &'static [u16]) -> Option<StaticLayout> {
        let (mut size, mut least, mut greatest) = (1_i64, 0_i64, 0_i64);
        let mut at = 0;
        while at < leaves.len() {
            let Leaf { extent, stride } = leaves[at];
            if extent < 1 {
                return None;
            }
            let (Some(product), Some(reach)) = (size.checked_mul(extent), stride.checked_mul(extent - 1)) else {
                return None;
            };
            size = product;
            let sum = if reach < 0 { least.checked_add(reach) } else { greatest.checked_add(reach) };
            match sum {
                Some(sum) if reach < 0 => least = sum,
                Some(sum) => greatest = sum,
                None => return None,
            }
            at += 1;
        }
        let Some((rank, hollow)) = nesting(nodes, modes) else { return None };
        if modes.len() != leaves.len() || least == i64::MIN || greatest == i64::MAX {
            return None;
        }
        Some(StaticLayout { leaves, modes, nodes, rank, hollow, size, range: (least, greatest) })
    }

    /// The value at an index, as [`Layout::eval`]: at or past [`size`](StaticLayout::size) the last
    /// mode continues, and `L(-i) = -L(i)`.
    ///
    /// None if the value is not representable, or if the layout is empty and the index is not 0.
    ///
    /// The code is shortest for an index that cannot be negative, such as `i64::from(i)` of a
    /// `u32`.
    #[inline(always)]
    pub const fn eval(&self, index: i64) -> Option<i64> {
        if matches!(self.leaves, []) && index != 0 {
            return None;
        }
        self.walk([index], true)
    }

    /// The value at a coordinate of one index for each top-level mode, as [`Layout::eval_at`]: an
    /// index is colexicographic within its mode, which continues past its end. A single mode
    /// without parentheses has rank 1.
    ///
    /// None if `RANK` is not the rank, or if the value is not representable.
    #[inline(always)]
    pub const fn eval_at<const RANK: usize>(&self, coord: [i64; RANK]) -> Option<i64> {
        if RANK != self.rank || (self.hollow && !self.fits(&coord)) {
            return None;
        }
        self.walk(coord, false)
    }

    /// The sum over the leaves. Each leaf reads the index of its mode or, if `whole`, the only
    /// index.
    #[inline(always)]
    const fn walk<const RANK: usize>(&self, coord: [i64; RANK], whole: bool) -> Option<i64> {
        let mut walk = Walk { value: 0, front: 0, rest: 0 };
        let mut at = 0;
        macro_rules! step {
            ($($times:tt)*) => {
                $(
                    let _ = $times;
                    if at < self.leaves.len() {
                        match self.step(walk, at, &coord, whole) {
                            Some(next) => walk = next,
                            None => return None,
                        }
                        at += 1;
                    }
                )*
            };
        }
        step!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        while at < self.leaves.len() {
            step!(0);
        }
        Some(walk.value)
    }

    /// Evaluates one leaf.
    #[inline(always)]
    const fn step<const RANK: usize>(&self, walk: Walk, at: usize, coord: &[i64; RANK], whole: bool) -> Option<Walk> {
        let Walk { value, mut front, mut rest } = walk;
        let Leaf { extent, stride } = self.leaves[at];
        let mode = self.mode_of(at, whole);
        if at == 0 || self.mode_of(at - 1, whole) != mode {
            if mode >= RANK {
                return None;
            }
            (front, rest) = (0, coord[mode]);
        }
        if at + 1 < self.leaves.len() && self.mode_of(at + 1, whole) == mode {
            let Some(quotient) = rest.checked_div(extent) else { return None };
            let digit = rest.wrapping_sub(quotient.wrapping_mul(extent));
            return Some(Walk { value, front: front.wrapping_add(digit.wrapping_mul(stride)), rest: quotient });
        }
        let Some(last) = stride.checked_mul(rest) else { return None };
        let Some(part) = front.checked_add(last) else { return None };
        let Some(value) = value.checked_add(part) else { return None };
        Some(Walk { value, front, rest })
    }

    #[inline(always)]
    const fn mode_of(&self, leaf: usize, whole: bool) -> usize {
        if whole { 0 } else { self.modes[leaf] as usize }
    }

    /// Whether the index is 0 in every mode that has no leaf.
    const fn fits<const RANK: usize>(&self, coord: &[i64; RANK]) -> bool {
        let (mut mode, mut leaf) = (0, 0);
        while mode < RANK {
            let begin = leaf;
            while leaf < self.modes.len() && self.modes[leaf] as usize == mode {
                leaf += 1;
            }
            if leaf == begin && coord[mode] != 0 {
                return false;
            }
            mode += 1;
        }
        true
    }

    /// The number of coordinates: the product of the extents.
    #[inline]
    pub const fn size(&self) -> i64 {
        self.size
    }

    /// The largest offset plus one: the size of the memory from offset 0.
    #[inline]
    pub const fn cosize(&self) -> i64 {
        self.range.1 + 1
    }

    /// The least and the greatest offset.
    #[inline]
    pub const fn range(&self) -> (i64, i64) {
        self.range
    }

    /// The number of top-level modes; a single mode without parentheses has one.
    #[inline]
    pub const fn rank(&self) -> usize {
        self.rank
    }

    /// The (extent, stride) pairs, left to right.
    #[inline]
    pub const fn leaves(&self) -> &'static [Leaf] {
        self.leaves
    }

    /// The nesting that shape and stride share.
    pub fn profile(&self) -> Profile {
        Profile::from_nodes(Nodes::from_slice(self.nodes))
    }

    /// The extents.
    pub fn shape(&self) -> Tree<i64> {
        Tree::from_parts(self.profile(), self.leaves.iter().map(|leaf| leaf.extent).collect())
    }

    /// The strides.
    pub fn stride(&self) -> Tree<i64> {
        Tree::from_parts(self.profile(), self.leaves.iter().map(|leaf| leaf.stride).collect())
    }

    /// The same layout as a run-time value, for operations of the algebra. Up to eight leaves need
    /// no heap.
    pub fn to_layout(&self) -> Layout {
        Layout::from(self)
    }
}

/// The rank, and whether a mode has no leaf; None if the nodes are not a profile, or do not match
/// the modes of the leaves.
const fn nesting(nodes: &[u16], modes: &[u16]) -> Option<(usize, bool)> {
    if nodes.is_empty() || nodes.len() > MAX_NODES {
        return None;
    }
    if nodes[0] == LEAF {
        return if nodes.len() == 1 && modes.len() == 1 && modes[0] == 0 { Some((1, false)) } else { None };
    }
    if nodes[0] as usize != nodes.len() {
        return None;
    }
    let mut ends = [0; MAX_DEPTH];
    ends[0] = nodes.len();
    let (mut depth, mut leaf, mut at) = (1, 0, 1);
    let (mut rank, mut begin, mut hollow) = (0, 0, false);
    while at < nodes.len() {
        // The root tuple ends only at the end of the list.
        while ends[depth - 1] == at {
            depth -= 1;
        }
        if depth == 1 {
            hollow = hollow || (rank > 0 && begin == leaf);
            (rank, begin) = (rank + 1, leaf);
        }
        if nodes[at] == LEAF {
            if leaf >= modes.len() || modes[leaf] as usize + 1 != rank {
                return None;
            }
            leaf += 1;
        } else {
            let end = at + nodes[at] as usize;
            if depth == MAX_DEPTH || end > ends[depth - 1] {
                return None;
            }
            ends[depth] = end;
            depth += 1;
        }
        at += 1;
    }
    if leaf != modes.len() { None } else { Some((rank, hollow || (rank > 0 && begin == leaf))) }
}

impl<N: Extent> From<&StaticLayout> for Layout<N> {
    fn from(layout: &StaticLayout) -> Layout<N> {
        let leaves = layout.leaves.iter().map(|leaf| Leaf { extent: leaf.extent.into(), stride: leaf.stride.into() });
        Layout::from_valid(Tree::from_parts(layout.profile(), leaves.collect()))
    }
}

impl<N: Extent> From<StaticLayout> for Layout<N> {
    fn from(layout: StaticLayout) -> Layout<N> {
        Layout::from(&layout)
    }
}

impl fmt::Display for StaticLayout {
    /// Prints as the [`Layout`] does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_layout().fmt(f)
    }
}

debug_as_text!(StaticLayout);
