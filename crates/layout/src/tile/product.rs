//! Products: copies of a block, arranged by a layout.
//!
//! # Law
//!
//! `logical_product(A, B) = (A, A* o B)`, where `A*` is the open weak complement of `A`: mode 0 is
//! the block, and mode 1 maps the coordinates of `B` to the offsets of the copies. The last mode of
//! `A*` continues without end, with a step of a whole copy. Copies of `A` at different offsets of
//! `A*` are disjoint, and so are two copies at different values of `B`. The product exists exactly
//! when the complement and the composition do.
//!
//! `blocked_product` and `raked_product` have the same copies, with mode `i` of block and
//! arrangement paired: `((a_i,b_i),..)` keeps a block contiguous in the coordinates,
//! `((b_i,a_i),..)` interleaves the blocks.

use smallvec::SmallVec;

use crate::algebra::coalesce::coalesced;
use crate::algebra::inner::Inner;
use crate::refusal::error::{Fits, LayoutError};
use crate::tile::form::DivideForm;
use crate::tile::tiler::{Tiler, by_tiler};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::pairs::Pairs;
use crate::value::tree::{Gatherer, Leaves, Tree, TreeRef};

const OP: &str = "logical_product";

/// Types of strides for which products of blocks exist: disjoint copies of a block can be computed.
pub trait Blocks: Stride {
    /// The layout `A*` of offsets at which copies of a block are disjoint; its last mode continues
    /// without end.
    ///
    /// Errors: there are none, or none that form a layout; a number is not representable.
    fn copies(block: &Layout<Self>) -> Result<Layout<Self>, LayoutError>;
}

impl<N: Extent> Blocks for N {
    #[inline]
    fn copies(block: &Layout<N>) -> Result<Layout<N>, LayoutError> {
        block.copies()
    }
}

/// Writes `A` and `A* o B`.
fn product<D: Blocks, B: Inner<D>>(
    block: TreeRef<'_, Leaf<D>>,
    tile: &Layout<B>,
    pairs: &mut Pairs<D>,
) -> Result<(), LayoutError> {
    let copies = D::copies(&Layout::from_valid(block.to_owned()))?.compose(tile)?;
    pairs.first().append(block);
    pairs.second().append(copies.as_ref());
    Ok(())
}

impl<D: Blocks> Layout<D> {
    /// The product in a form that is an argument.
    ///
    /// Errors: as [`Layout::logical_product`].
    pub fn product<B: Inner<D>>(&self, form: DivideForm, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler(form.product(), form, self, tiler, &product)
    }

    /// Copies of this block arranged by a layout: `(block, copies)`; by mode, each mode is
    /// multiplied in this way (CuTe `logical_product`).
    ///
    /// Mode 0 is the unchanged block; the shape of mode 1 refines that of the tiler. Copies at
    /// different offsets of the tiler do not overlap. By mode this holds within each mode, not
    /// between modes. Errors: modes of the block overlap ([`LayoutError::Overlap`]); the copies at
    /// the tiler's offsets do not form a layout ([`LayoutError::Carry`], [`LayoutError::Uneven`]);
    /// the tiler has more modes than the layout ([`LayoutError::Tiler`]).
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tiler};
    ///
    /// let block: Layout = "(2,2):(4,1)".parse().unwrap();
    /// let tiler: Tiler = "6:1".parse().unwrap();
    /// assert_eq!(block.logical_product(&tiler).unwrap().to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    /// ```
    pub fn logical_product<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler(OP, DivideForm::Logical, self, tiler, &product)
    }

    /// [`Layout::logical_product`] as `((blocks),(copies))` (CuTe `zipped_product`).
    ///
    /// Errors: as [`Layout::logical_product`]; a mode under `_` is not a pair.
    pub fn zipped_product<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler("zipped_product", DivideForm::Zipped, self, tiler, &product)
    }

    /// [`Layout::logical_product`] as `((blocks),copies,..)` (CuTe `tiled_product`).
    ///
    /// Errors: as [`Layout::zipped_product`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tiler};
    ///
    /// let block: Layout = "(3,4):(4,1)".parse().unwrap();
    /// let tiler: Tiler = "(2,5):(1,2)".parse().unwrap();
    /// assert_eq!(block.tiled_product(&tiler).unwrap().to_string(), "((3,4),2,5):((4,1),12,24)");
    /// ```
    pub fn tiled_product<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler("tiled_product", DivideForm::Tiled, self, tiler, &product)
    }

    /// [`Layout::logical_product`] as `(block,..,copies,..)` (CuTe `flat_product`).
    ///
    /// Errors: as [`Layout::zipped_product`].
    pub fn flat_product<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        by_tiler("flat_product", DivideForm::Flat, self, tiler, &product)
    }

    /// Copies of this block side by side in every mode: mode `i` is `(block_i, copies_i)` (CuTe
    /// `blocked_product`).
    ///
    /// The operand of lower rank is extended with modes `1:0`. Errors: as
    /// [`Layout::logical_product`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (block, tiler): (Layout, Layout) = ("(2,5):(5,1)".parse().unwrap(), "(3,4):(1,3)".parse().unwrap());
    /// assert_eq!(block.blocked_product(&tiler).unwrap().to_string(), "((2,3),(5,4)):((5,10),(1,30))");
    /// ```
    pub fn blocked_product<B: Inner<D>>(&self, tiler: &Layout<B>) -> Result<Layout<D>, LayoutError> {
        let mut out = Gatherer::new();
        out.open();
        self.mode_products(tiler, |block, copies| {
            out.open();
            out.append(block);
            out.append(copies);
            out.close();
            Ok(())
        })?;
        out.close();
        Layout::from_tree(out.finish()?)
    }

    /// Copies of this block interleaved in every mode: mode `i` is `(copies_i, block_i)`, coalesced
    /// (CuTe `raked_product`).
    ///
    /// The operand of lower rank is extended with modes `1:0`. Errors: as
    /// [`Layout::logical_product`].
    ///
    /// ```
    /// use tilewright_layout::Layout;
    ///
    /// let (block, tiler): (Layout, Layout) = ("(2,5):(5,1)".parse().unwrap(), "(3,4):(1,3)".parse().unwrap());
    /// assert_eq!(block.raked_product(&tiler).unwrap().to_string(), "((3,2),(4,5)):((10,5),(30,1))");
    /// ```
    pub fn raked_product<B: Inner<D>>(&self, tiler: &Layout<B>) -> Result<Layout<D>, LayoutError> {
        let mut out = Gatherer::new();
        out.open();
        self.mode_products(tiler, |block, copies| {
            let leaves: Leaves<Leaf<D>> = copies.leaves.iter().chain(block.leaves).cloned().collect();
            let modes = coalesced(&leaves).fits_as::<D::Extent>("raked_product")?;
            match modes.is_empty() {
                true => out.leaf(Leaf { extent: D::Extent::one(), stride: D::zero() }),
                false => out.run(&modes),
            }
            Ok(())
        })?;
        out.close();
        Layout::from_tree(out.finish()?)
    }

    /// Passes on the modes of the block and of its copies in pairs; both are extended with `1:0` to
    /// the same rank.
    fn mode_products<B: Inner<D>>(
        &self,
        tiler: &Layout<B>,
        mut emit: impl FnMut(TreeRef<'_, Leaf<D>>, TreeRef<'_, Leaf<D>>) -> Result<(), LayoutError>,
    ) -> Result<(), LayoutError> {
        let open = D::copies(self)?;
        if self.profile().is_leaf() && tiler.rank() == 1 {
            // A block that is a leaf is paired with the whole arrangement, as in CuTe.
            return emit(self.as_ref(), open.compose(tiler)?.as_ref());
        }
        // Composition refines each mode of the tiler in place; a leaf is wrapped in a tuple so that
        // it stays one mode.
        let copies = open.compose(&Layout::from_tree(Tree::gather(tiler.as_ref().modes())?)?)?;
        let unit = Layout::unit();
        let (mut blocks, mut copies) = (self.as_ref().modes(), copies.as_ref().modes());
        loop {
            match (blocks.next(), copies.next()) {
                (None, None) => return Ok(()),
                (block, copies) => emit(block.unwrap_or(unit.as_ref()), copies.unwrap_or(unit.as_ref()))?,
            }
        }
    }

    /// The block repeated until it covers a shape: mode `i` is `(block_i, copies_i)` with as many
    /// copies as mode `i` of `target` needs, rounded up (CuTe `tile_to_shape`).
    ///
    /// `order` has one key for each mode of the target: the copies advance along the mode with the
    /// least key first. Without an order they advance along mode 0 first. Errors: the block has
    /// more modes than the target; the order does not have one distinct key for each mode; an
    /// extent of the target is not positive; as [`Layout::blocked_product`].
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tree};
    ///
    /// let block: Layout = "(3,2):(1,3)".parse().unwrap();
    /// let (target, order): (Tree<i64>, Tree<i64>) = ("(6,8)".parse().unwrap(), "(1,0)".parse().unwrap());
    /// assert_eq!(block.tile_to_shape(&target, None).unwrap().to_string(), "((3,2),(2,4)):((1,6),(3,12))");
    /// assert_eq!(block.tile_to_shape(&target, Some(&order)).unwrap().to_string(), "((3,2),(2,4)):((1,24),(3,6))");
    /// ```
    pub fn tile_to_shape(&self, target: &Tree<D::Extent>, order: Option<&Tree<i64>>) -> Result<Layout<D>, LayoutError> {
        const OP: &str = "tile_to_shape";
        let (rank, wanted) = (self.rank(), target.rank());
        if rank > wanted {
            return Err(LayoutError::Rank { op: OP, path: Default::default(), expected: wanted, found: rank });
        }
        let mut blocks = self.as_ref().modes();
        let mut copies: Leaves<Leaf<D::Extent>> = Leaves::new();
        let mut leaf = 0;
        for mode in target.as_ref().modes() {
            let mut size = D::Extent::one();
            for extent in mode.leaves {
                if !D::Extent::zero().less(extent).proved() {
                    return Err(LayoutError::extent(target.profile(), leaf, extent));
                }
                size = size.times(extent).fits_as::<D::Extent>(OP)?;
                leaf += 1;
            }
            let mut block = D::Extent::one();
            for leaf in blocks.next().map_or(&[][..], |mode| mode.leaves) {
                block = block.times(&leaf.extent).fits_as::<D::Extent>(OP)?;
            }
            copies.push(Leaf { extent: size.divide_up(&block).fits_as::<D::Extent>(OP)?, stride: D::Extent::zero() });
        }
        let mut step = D::Extent::one();
        for mode in advance(OP, wanted, order)? {
            if let Some(leaf) = copies.get_mut(mode)
                && !leaf.extent.is_one().proved()
            {
                leaf.stride = step.clone();
                step = step.times(&leaf.extent).fits_as::<D::Extent>(OP)?;
            }
        }
        self.blocked_product(&Layout::from_tree(Tree::flat(copies)?)?)
    }
}

/// The modes in the order of their keys.
fn advance(op: &'static str, rank: usize, order: Option<&Tree<i64>>) -> Result<SmallVec<[usize; 8]>, LayoutError> {
    let mut modes: SmallVec<[usize; 8]> = (0..rank).collect();
    let Some(order) = order else { return Ok(modes) };
    let keys = order.leaves();
    if order.rank() != rank || keys.len() != rank || order.depth() > 1 {
        return Err(LayoutError::Rank { op, path: Default::default(), expected: rank, found: keys.len() });
    }
    modes.sort_by_key(|mode| keys.get(*mode));
    for pair in modes.windows(2) {
        if let [before, after] = pair
            && let (Some(key), Some(next)) = (keys.get(*before), keys.get(*after))
            && key == next
        {
            return Err(LayoutError::Order { op, key: *key, what: "stands for two modes" });
        }
    }
    Ok(modes)
}
