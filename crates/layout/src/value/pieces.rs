//! Splitting of leaves into pieces.
//!
//! Law: the result has the nesting of the layout, with each leaf replaced by one leaf or by a flat
//! tuple of leaves whose extents multiply to its own. So its shape refines the shape of the layout.
//! The caller chooses the strides.

use crate::limits::MAX_NODES;
use crate::refusal::error::{Fits, LayoutError, Limit};
use crate::value::layout::{Layout, Leaf};
use crate::value::profile::{ROOM, Splitting};
use crate::value::tree::Leaves;

/// The list of pieces that replace one leaf: see [`Layout::cut_leaves`].
#[derive(Debug)]
pub struct Pieces<'a> {
    leaves: &'a mut Leaves<Leaf>,
    size: i64,
}

impl Pieces<'_> {
    /// Appends a piece.
    ///
    /// Errors: its extent is not positive; the product of the extents is not representable; too
    /// many leaves.
    #[inline(always)]
    pub fn push(&mut self, extent: i64, stride: i64) -> Result<(), LayoutError> {
        if extent < 1 {
            return Err(not_positive(extent));
        }
        self.size = self.size.checked_mul(extent).fits(OP)?;
        if self.leaves.len() == MAX_NODES {
            return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: MAX_NODES + 1 });
        }
        self.leaves.push(Leaf { extent, stride });
        Ok(())
    }
}

const OP: &str = "cut_leaves";

#[cold]
fn not_positive(value: i64) -> LayoutError {
    LayoutError::Argument { op: OP, what: "the extent of a piece", value, wanted: "at least 1" }
}

impl Layout {
    /// The layout with each leaf replaced by the pieces that `cut` lists for it: a single piece is
    /// a leaf, several are a flat tuple. A leaf without pieces stays unchanged.
    ///
    /// Errors: the extents of the pieces of a leaf do not multiply to its own
    /// ([`LayoutError::Size`]); as [`Pieces::push`]; any error of `cut`.
    ///
    /// ```
    /// use tilewright_layout::{Layout, LayoutError};
    ///
    /// // Every even extent is split in two.
    /// let layout: Layout = "(8,(3,4)):(1,(8,24))".parse().unwrap();
    /// let halved = layout.cut_leaves(|leaf, pieces| {
    ///     if leaf.extent % 2 == 0 {
    ///         pieces.push(leaf.extent / 2, leaf.stride)?;
    ///         pieces.push(2, leaf.stride * (leaf.extent / 2))?;
    ///     }
    ///     Ok::<(), LayoutError>(())
    /// });
    /// let halved = halved.unwrap();
    /// assert_eq!(halved.to_string(), "((4,2),(3,(2,2))):((1,4),(8,(24,48)))");
    /// assert!(halved.equivalent(&layout));
    /// ```
    #[inline]
    pub fn cut_leaves<E: From<LayoutError>>(
        &self,
        mut cut: impl FnMut(&Leaf, &mut Pieces<'_>) -> Result<(), E>,
    ) -> Result<Layout, E> {
        let mut layout = Layout::blank();
        let (nodes, leaves) = layout.parts_mut();
        let mut room = ROOM;
        let mut tree = Splitting::new(self.as_ref().profile, nodes, &mut room);
        for leaf in self.leaves() {
            let begin = leaves.len();
            let mut pieces = Pieces { leaves, size: 1 };
            cut(leaf, &mut pieces)?;
            let size = pieces.size;
            // The number is bounded by the number of nodes, so it fits.
            match (leaves.len() - begin) as u16 {
                0 => leaves.push(*leaf),
                _ if size != leaf.extent => {
                    return Err(LayoutError::Size { op: OP, left: leaf.extent, right: size }.into());
                }
                _ => {}
            }
            tree.leaf((leaves.len() - begin) as u16);
        }
        tree.finish()?;
        Ok(layout)
    }
}
