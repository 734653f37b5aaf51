//! Compact layouts in a given order of modes.
//!
//! Law: the strides of a compact layout are running products of its extents in some order of its
//! modes; so it is a bijection onto `0..size`. An order is a tree of keys: the mode with the least
//! key is the fastest. A single key for a tuple mode orders the whole mode, first leaf fastest.
//!
//! A duplicate key is refused. If a given layout determines the order by its strides, modes of
//! equal strides are ordered from left to right (CuTe `compact_order`, `make_ordered_layout`,
//! `make_layout_like`, `make_fragment_like`).

use alloc::vec::Vec;

use crate::algebra::complement::{ascending, moving, no_magnitude};
use crate::refusal::error::{Fits, LayoutError, Path};
use crate::refusal::evidence::Condition;
use crate::value::coord::check_extents;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Truth};
use crate::value::shape::subtrees;
use crate::value::tree::{Leaves, Tree};

/// The strides of the compact layout of `shape` whose modes are ordered by their keys, the least
/// key fastest (CuTe `compact_order`).
///
/// Modes of extent 1 get stride 0.
/// Errors: a key appears twice; the order is not weakly congruent to the shape; an extent is not
/// positive; the size is not representable.
///
/// ```
/// use tilewright_layout::{Tree, compact_order};
///
/// let strides = |shape: &str, order: &str| {
///     let (shape, order): (Tree<i64>, Tree<i64>) = (shape.parse().unwrap(), order.parse().unwrap());
///     compact_order(&shape, &order).map(|stride| stride.to_string())
/// };
/// assert_eq!(strides("(2,3,4)", "(2,0,1)").unwrap(), "(12,1,3)");
/// assert_eq!(strides("((2,3),4)", "(1,0)").unwrap(), "((4,8),1)");
/// assert_eq!(strides("(2,3,4)", "(0,0,1)").unwrap_err().code(), "E0120");
/// ```
pub fn compact_order<N: Extent>(shape: &Tree<N>, order: &Tree<i64>) -> Result<Tree<N>, LayoutError> {
    const OP: &str = "compact_order";
    check_extents(shape)?;
    let mut keyed: Vec<(i64, usize)> = Vec::with_capacity(shape.leaves().len());
    let mut keys = order.leaves().iter().copied();
    let mut leaf = 0;
    subtrees(order.profile().as_ref(), shape.as_ref(), OP, &mut Path::new(), &mut |part| {
        let key = keys.next().unwrap_or_default();
        for _ in part.leaves {
            keyed.push((key, leaf));
            leaf += 1;
        }
        Ok(())
    })?;
    let mut sorted: Vec<i64> = order.leaves().to_vec();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair.first() == pair.last()) {
        let key = twice.first().copied().unwrap_or_default();
        return Err(LayoutError::Order { op: OP, key, what: "appears twice" });
    }
    keyed.sort_unstable();
    Tree::new(shape.profile().duplicate(), running(shape.leaves(), keyed.into_iter().map(|(_, leaf)| leaf), N::one())?)
}

/// The running products of the extents in the order of `leaves`, starting at `step`; 0 for extents
/// of 1 and for leaves that are not listed.
fn running<N: Extent>(
    extents: &[N],
    leaves: impl Iterator<Item = usize>,
    mut step: N,
) -> Result<Leaves<N>, LayoutError> {
    let mut strides: Leaves<N> = extents.iter().map(|_| N::zero()).collect();
    for leaf in leaves {
        let (Some(extent), Some(stride)) = (extents.get(leaf), strides.get_mut(leaf)) else { continue };
        if !extent.is_one().proved() {
            *stride = step.clone();
            step = step.times(extent).fits_as::<N>("size")?;
        }
    }
    Ok(strides)
}

impl<N: Extent> Layout<N> {
    /// The compact layout of `shape` whose modes are ordered by their keys, the least key fastest
    /// (CuTe `make_ordered_layout`).
    ///
    /// Errors: as [`compact_order`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    ///
    /// let (shape, order): (Tree<i64>, Tree<i64>) = ("(2,(3,4))".parse().unwrap(), "(5,(7,-1))".parse().unwrap());
    /// assert_eq!(Layout::ordered(&shape, &order).unwrap().to_string(), "(2,(3,4)):(4,(8,1))");
    /// ```
    pub fn ordered(shape: &Tree<N>, order: &Tree<i64>) -> Result<Layout<N>, LayoutError> {
        Layout::new(shape, &compact_order(shape, order)?)
    }
}

impl<N: Extent> Layout<N> {
    /// The compact layout of the same shape whose modes are in the same order: by the magnitudes of
    /// the given strides, ties from left to right. Stride 0 stays 0 (CuTe `make_layout_like`).
    ///
    /// Errors: it is not known which of two strides is the greater, or whether one is 0
    /// ([`LayoutError::Open`]).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let padded: Layout = "(4,8,3):(10,1,0)".parse().unwrap();
    /// assert_eq!(padded.layout_like().unwrap().to_string(), "(4,8,3):(8,1,0)");
    /// ```
    pub fn layout_like(&self) -> Result<Layout<N>, LayoutError> {
        let leaves = by_stride("make_layout_like", self.leaves(), 0)?;
        let moving = leaves.into_iter().filter(|leaf| !still(self.leaves(), *leaf));
        self.with_strides(running(&extents(self), moving, N::one())?)
    }

    /// The compact layout of the register fragment for this layout. Mode 0, the values of one
    /// instruction, is the fastest; its leaves are in order, and its strides of 0 stay 0. The other
    /// modes follow in the order of the magnitudes of their strides, ties from left to right; their
    /// strides of 0 become nonzero (CuTe `make_fragment_like`).
    ///
    /// A layout of rank 1 becomes the compact layout of its shape.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let partition: Layout = "((2,2),3,4):((8,0),0,1)".parse().unwrap();
    /// assert_eq!(partition.fragment_like().unwrap().to_string(), "((2,2),3,4):((1,0),2,6)");
    /// ```
    pub fn fragment_like(&self) -> Result<Layout<N>, LayoutError> {
        if self.rank() < 2 {
            return Layout::compact(&self.shape());
        }
        let first = self.as_ref().mode(0).map_or(0, |mode| mode.leaves.len());
        let others = by_stride("make_fragment_like", self.leaves(), first)?;
        let leaves = (0..first).filter(|leaf| !still(self.leaves(), *leaf)).chain(others);
        self.with_strides(running(&extents(self), leaves, N::one())?)
    }

    fn with_strides(&self, strides: Leaves<N>) -> Result<Layout<N>, LayoutError> {
        let pairs = self.leaves().iter().zip(strides);
        let pairs = pairs.map(|(leaf, stride)| Leaf { extent: leaf.extent.clone(), stride });
        Layout::from_tree(Tree::new(self.profile().duplicate(), pairs)?)
    }
}

fn extents<N: Extent>(layout: &Layout<N>) -> Leaves<N> {
    layout.leaves().iter().map(|leaf| leaf.extent.clone()).collect()
}

fn still<N: Extent>(leaves: &[Leaf<N>], leaf: usize) -> bool {
    leaves.get(leaf).is_some_and(|leaf| leaf.stride.is_zero().proved())
}

/// The leaves from number `first` on, ordered by the magnitudes of their strides; refuses strides
/// whose order is not known. Leaves of extent 1 are left out, because their strides are not
/// observed.
fn by_stride<N: Extent>(op: &'static str, leaves: &[Leaf<N>], first: usize) -> Result<Vec<usize>, LayoutError> {
    let mut sorted: Vec<(usize, N, N)> = Vec::new();
    // `i64::MIN` has no magnitude in i64; it is sorted as the greatest.
    let mut beyond: Vec<usize> = Vec::new();
    for (position, leaf) in leaves.iter().enumerate().skip(first).filter(|(_, leaf)| !leaf.extent.is_one().proved()) {
        let Some(stride) = leaf.stride.magnitude() else {
            match leaf.stride.known() {
                Some(_) => beyond.push(position),
                None => return Err(no_magnitude(op, &leaf.stride)),
            }
            continue;
        };
        moving(op, &leaf.stride, &stride)?;
        let mut at = sorted.len();
        while let Some((_, extent, before)) = at.checked_sub(1).and_then(|before| sorted.get(before)) {
            match stride.less_given(before, &[extent, &leaf.extent]) {
                Truth::Proved => at -= 1,
                Truth::Refuted => break,
                Truth::Open => return Err(LayoutError::open(op, Condition::AtMost, before, &stride)),
            }
        }
        sorted.insert(at, (position, leaf.extent.clone(), stride));
    }
    ascending(op, &sorted, |(_, extent, stride)| (extent, stride))?;
    Ok(sorted.into_iter().map(|(leaf, ..)| leaf).chain(beyond).collect())
}
