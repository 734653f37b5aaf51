//! Rearranging modes.
//!
//! Law: an operation on modes acts on shape and stride alike, because a layout is one tree of
//! (extent, stride) leaves. So every operation here is that of [`Tree`], and its result is a
//! layout: moving, grouping or removing leaves keeps the extents positive and their product
//! representable. Operations that add or repeat leaves check the size again.

use alloc::vec::Vec;
use core::ops::Range;

use crate::refusal::error::LayoutError;
use crate::value::layout::Layout;
use crate::value::number::Stride;
use crate::value::profile::{Profile, ProfileRef};
use crate::value::tree::{Gatherer, Tree, TreeRef};

impl<T: Clone> Tree<T> {
    /// Splits pairs of modes: the first parts of all pairs become one mode, and the second parts
    /// another. `guide` determines which tuples are pairs (CuTe `zip2_by`).
    ///
    /// A leaf of `guide` means that the mode is a pair; a tuple of `guide` applies to the modes of
    /// the mode. Modes beyond `guide` are added to the second part. The result has rank 2, and its
    /// first part has the nesting of `guide`.
    ///
    /// Errors: at a leaf of `guide` the tree does not have rank 2, or `guide` has more modes than
    /// the tree.
    ///
    /// ```
    /// use tilewright_layout::Tree;
    ///
    /// let tree: Tree<i64> = "((1,10),((2,20),(3,30)),40)".parse().unwrap();
    /// let guide: Tree<i64> = "(0,(0,0))".parse().unwrap();
    /// assert_eq!(tree.zip_by(guide.profile()).unwrap().to_string(), "((1,(2,3)),(10,(20,30),40))");
    /// ```
    pub fn zip_by(&self, guide: &Profile) -> Result<Tree<T>, LayoutError> {
        let (mut firsts, mut seconds) = (Gatherer::new(), Gatherer::new());
        split_pairs(self.as_ref(), guide.as_ref(), &mut firsts, &mut seconds, &mut Vec::new())?;
        let (firsts, seconds) = (firsts.finish()?, seconds.finish()?);
        Tree::gather([firsts.as_ref(), seconds.as_ref()].into_iter())
    }

    /// The modes followed by copies of `filler` until there are `rank` of them (CuTe `append<N>`).
    ///
    /// Errors: the tree has more modes than that; too many nodes.
    pub fn append_to_rank(&self, rank: usize, filler: &Tree<T>) -> Result<Tree<T>, LayoutError> {
        let missing = missing_modes("append", rank, self.rank())?;
        if missing == 0 {
            return Ok(self.clone());
        }
        Tree::gather(self.as_ref().modes().chain(core::iter::repeat_n(filler.as_ref(), missing)))
    }

    /// Copies of `filler` followed by the modes, so that there are `rank` of them (CuTe
    /// `prepend<N>`).
    ///
    /// Errors: the tree has more modes than that; too many nodes.
    pub fn prepend_to_rank(&self, rank: usize, filler: &Tree<T>) -> Result<Tree<T>, LayoutError> {
        let missing = missing_modes("prepend", rank, self.rank())?;
        if missing == 0 {
            return Ok(self.clone());
        }
        Tree::gather(core::iter::repeat_n(filler.as_ref(), missing).chain(self.as_ref().modes()))
    }

    /// Pairs the modes of two tuples: mode `i` of the result is the pair of both modes `i` (CuTe
    /// `zip(a, b)`).
    ///
    /// Errors: the ranks differ.
    pub fn zip_with(&self, other: &Tree<T>) -> Result<Tree<T>, LayoutError> {
        Tree::tuple([self, other])?.zip()
    }
}

/// The number of missing modes; a rank beyond the limit of trees is refused before anything is
/// copied.
fn missing_modes(op: &'static str, rank: usize, found: usize) -> Result<usize, LayoutError> {
    if rank > crate::limits::MAX_NODES {
        return Err(LayoutError::TooLarge { limit: crate::Limit::Nodes, value: rank });
    }
    rank.checked_sub(found).ok_or_else(|| LayoutError::Rank { op, path: Vec::new(), expected: rank, found })
}

fn split_pairs<T: Clone>(
    tree: TreeRef<'_, T>,
    guide: ProfileRef<'_>,
    firsts: &mut Gatherer<T>,
    seconds: &mut Gatherer<T>,
    path: &mut Vec<usize>,
) -> Result<(), LayoutError> {
    let refuse =
        |path: &[usize], expected| LayoutError::Rank { op: "unzip", path: path.to_vec(), expected, found: tree.rank() };
    let mut modes = tree.modes();
    if guide.is_leaf() {
        return match (modes.next(), modes.next(), modes.next()) {
            (Some(first), Some(second), None) => {
                firsts.append(first);
                seconds.append(second);
                Ok(())
            }
            _ => Err(refuse(path, 2)),
        };
    }
    firsts.open();
    seconds.open();
    for (position, guide) in guide.modes().enumerate() {
        let Some(mode) = modes.next() else {
            return Err(refuse(path, position + 1));
        };
        path.push(position);
        split_pairs(mode, guide, firsts, seconds, path)?;
        path.pop();
    }
    for mode in modes {
        seconds.append(mode);
    }
    firsts.close();
    seconds.close();
    Ok(())
}

/// Operations on the tree of a layout that keep the extents positive and do not increase the size.
macro_rules! of_tree {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => {
        impl<D: Stride> Layout<D> {
            $(
                $(#[$about])*
                pub fn $name(&self $(, $argument: $kind)*) -> Result<Layout<D>, LayoutError> {
                    Ok(Layout::from_valid(self.tree().$name($($argument),*)?))
                }
            )*
        }
    };
}

of_tree! {
    /// The same leaves in one flat tuple; a single mode stays as it is (CuTe `flatten`).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "((2,(2)),3):((24,(2)),8)".parse().unwrap();
    /// assert_eq!(layout.flatten().unwrap().to_string(), "(2,2,3):(24,2,8)");
    /// ```
    flatten();
    /// The leaves of this layout in the nesting of `profile` (CuTe `unflatten`).
    ///
    /// Errors: the number of leaves differs.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (flat, nested): (Layout, Layout) = ("(2,2,3)".parse().unwrap(), "((2,2),3):((24,2),8)".parse().unwrap());
    /// assert_eq!(flat.unflatten(nested.profile()).unwrap().to_string(), "((2,2),3):((1,2),4)");
    /// ```
    unflatten(profile: &Profile);
    /// Modes `range` grouped into one mode at the position of the first (CuTe `group`).
    ///
    /// Errors: the range is not within `0..rank`.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(2,3,5,7):(1,2,6,30)".parse().unwrap();
    /// assert_eq!(layout.group(1..3).unwrap().to_string(), "(2,(3,5),7):(1,(2,6),30)");
    /// ```
    group(range: Range<usize>);
    /// Modes `range`, as a tuple (CuTe `take`).
    ///
    /// Errors: the range is not within `0..rank`.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(2,3,5,7):(1,2,6,30)".parse().unwrap();
    /// assert_eq!(layout.take(1..3).unwrap().to_string(), "(3,5):(2,6)");
    /// ```
    take(range: Range<usize>);
    /// The modes without mode number `mode`, as a tuple (CuTe `remove`).
    ///
    /// Errors: there is no such mode.
    remove(mode: usize);
    /// The modes in reverse order, at every level (CuTe `reverse`).
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "((2,3),5):((1,2),6)".parse().unwrap();
    /// assert_eq!(layout.reverse().unwrap().to_string(), "(5,(3,2)):(6,(2,1))");
    /// ```
    reverse();
    /// Transposes a layout of layouts: mode `j` of the result holds mode `j` of every mode (CuTe
    /// `zip`).
    ///
    /// Errors: the modes differ in rank.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "((2,3),(5,7)):((1,2),(6,30))".parse().unwrap();
    /// assert_eq!(layout.zip().unwrap().to_string(), "((2,5),(3,7)):((1,6),(2,30))");
    /// ```
    zip();
}

impl<D: Stride> Layout<D> {
    /// The given modes in the given order, as a tuple; a mode may be named more than once (CuTe
    /// `select`).
    ///
    /// Errors: a mode is not below the rank; the size is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(2,3,5):(1,2,6)".parse().unwrap();
    /// assert_eq!(layout.select(&[2, 0]).unwrap().to_string(), "(5,2):(6,1)");
    /// ```
    pub fn select(&self, modes: &[usize]) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().select(modes)?)
    }

    /// The modes followed by `mode`; a single mode counts as one (CuTe `append`).
    ///
    /// Errors: the size is not representable; too many leaves.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (layout, mode): (Layout, Layout) = ("(2,3):(1,2)".parse().unwrap(), "(4,5):(6,24)".parse().unwrap());
    /// assert_eq!(layout.append(&mode).unwrap().to_string(), "(2,3,(4,5)):(1,2,(6,24))");
    /// ```
    pub fn append(&self, mode: &Layout<D>) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().append(mode.tree())?)
    }

    /// `mode` followed by the modes; a single mode counts as one (CuTe `prepend`).
    ///
    /// Errors: the size is not representable; too many leaves.
    pub fn prepend(&self, mode: &Layout<D>) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().prepend(mode.tree())?)
    }

    /// The modes followed by copies of `filler` until there are `rank` of them (CuTe `append<N>`,
    /// whose filler is [`Layout::unit`] when none is named).
    ///
    /// Errors: the layout has more modes than that; the size is not representable; too many leaves.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let layout: Layout = "(2,3):(1,2)".parse().unwrap();
    /// assert_eq!(layout.append_to_rank(4, &Layout::unit()).unwrap().to_string(), "(2,3,1,1):(1,2,0,0)");
    /// ```
    pub fn append_to_rank(&self, rank: usize, filler: &Layout<D>) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().append_to_rank(rank, filler.tree())?)
    }

    /// Copies of `filler` followed by the modes, so that there are `rank` of them (CuTe
    /// `prepend<N>`).
    ///
    /// Errors: as [`Layout::append_to_rank`].
    pub fn prepend_to_rank(&self, rank: usize, filler: &Layout<D>) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().prepend_to_rank(rank, filler.tree())?)
    }

    /// The layout with mode number `mode` replaced (CuTe `replace`).
    ///
    /// Errors: there is no such mode; the size is not representable.
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (layout, mode): (Layout, Layout) = ("(2,3,5):(1,2,6)".parse().unwrap(), "(4,4):(9,1)".parse().unwrap());
    /// assert_eq!(layout.replace(1, &mode).unwrap().to_string(), "(2,(4,4),5):(1,(9,1),6)");
    /// ```
    pub fn replace(&self, mode: usize, by: &Layout<D>) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().replace(mode, by.tree())?)
    }

    /// Pairs the modes of two layouts: mode `i` of the result is the pair of both modes `i` (CuTe
    /// `zip(a, b)`).
    ///
    /// Errors: the ranks differ; the size is not representable.
    pub fn zip_with(&self, other: &Layout<D>) -> Result<Layout<D>, LayoutError> {
        Layout::from_tree(self.tree().zip_with(other.tree())?)
    }

    /// Splits pairs of modes: from pairs (tile, rest), the result is `((tiles), (rests))`. The
    /// pairs are at the leaves of `guide` (CuTe `tile_unzip`). See [`Tree::zip_by`].
    ///
    /// Errors: at a leaf of `guide` the layout does not have rank 2, or `guide` has more modes than
    /// the layout.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Profile};
    ///
    /// // Tile and rest of rows, then tile and rest of columns.
    /// let divided: Layout = "((2,4),(4,3)):((1,2),(8,32))".parse().unwrap();
    /// let unzipped = divided.unzip(&Profile::flat(2).unwrap()).unwrap();
    /// assert_eq!(unzipped.to_string(), "((2,4),(4,3)):((1,8),(2,32))");
    /// ```
    pub fn unzip(&self, guide: &Profile) -> Result<Layout<D>, LayoutError> {
        Ok(Layout::from_valid(self.tree().zip_by(guide)?))
    }

    /// The mode at `path`: mode `path[1]` of mode `path[0]`, and so on. A single mode is its own
    /// mode 0.
    pub fn at(&self, path: &[usize]) -> Option<Layout<D>> {
        Some(Layout::from_valid(self.tree().at(path)?))
    }
}
