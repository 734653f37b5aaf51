//! Complements of layouts of coordinates, mode by mode of the codomain.
//!
//! # Law
//!
//! The complement `C` of `L` in a target shape is a layout of coordinates such that `(L, C)`, with
//! `L`'s stride-0 modes left out, is a bijection onto the coordinates of the target, with each mode
//! rounded up to a multiple of what `L` covers there. If each stride of `L` has one term, the
//! values of `(L, C)` cover a box exactly when those at each path cover the numbers below its
//! extent. So `C` consists of the complements of the parts of `L` at each path, and of all of every
//! mode in which `L` does not step. The weak complement only requires disjoint copies, and is
//! computed in the same way; without a target every mode is open at its end.
//!
//! The result has the nesting of the codomain: mode `p` is the complement in mode `p`, sorted and
//! coalesced. If a path ends at a tuple mode of the target, the coordinates of that mode are
//! counted as one number.

use alloc::boxed::Box;
use alloc::string::ToString;

use smallvec::SmallVec;

use super::composition::moves;
use super::{Coordinate, ModePath, profile_of};
use crate::algebra::complement::{Filling, fill};
use crate::refusal::error::LayoutError;
use crate::tile::product::Blocks;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::profile::ProfileRef;
use crate::value::shape::product_of;
use crate::value::tree::{Gatherer, Tree, TreeRef};

/// Refuses steps in several modes at once.
pub(super) fn refuse_diagonal<N: Extent>(op: &'static str, layout: &Layout<Coordinate<N>>) -> Result<(), LayoutError> {
    let several = |leaf: &Leaf<Coordinate<N>>| moves(leaf) && leaf.stride.term().is_none();
    match layout.leaves().iter().enumerate().find(|(_, leaf)| several(leaf)) {
        Some((number, leaf)) => {
            Err(LayoutError::Diagonal { op, path: layout.profile().path(number), step: leaf.stride.to_string().into() })
        }
        None => Ok(()),
    }
}

/// Computes the complement in each mode of a codomain.
struct Filler<'a, N: Extent> {
    op: &'static str,
    layout: &'a Layout<Coordinate<N>>,
    filling: Filling,
    out: Gatherer<Leaf<Coordinate<N>>>,
}

impl<N: Extent> Filler<'_, N> {
    /// The modes of the complement at `path`. The codomain there has the nesting `profile` and, if
    /// there is one, the extents `target`.
    fn fill(
        &mut self,
        profile: ProfileRef<'_>,
        target: Option<TreeRef<'_, N>>,
        path: ModePath,
    ) -> Result<(), LayoutError> {
        if profile.is_leaf() {
            let size = target.map(|target| product_of(target.leaves, self.op)).transpose()?;
            return self.fill_one(path, size);
        }
        let named = profile.rank();
        let rank = target.map_or(named, TreeRef::rank);
        if rank < named {
            return Err(LayoutError::NoPath {
                op: self.op,
                path: Default::default(),
                step: path.then(named - 1)?.to_string().into(),
                profile: Box::new(target.map_or(profile, |target| target.profile).to_owned()),
            });
        }
        self.out.open();
        let (mut profiles, mut targets) = (profile.modes(), target.map(TreeRef::modes));
        for mode in 0..rank {
            let target = targets.as_mut().and_then(Iterator::next);
            let path = path.then(mode)?;
            match profiles.next() {
                Some(profile) => self.fill(profile, target, path)?,
                None => {
                    let size = product_of(target.map_or(&[][..], |target| target.leaves), self.op)?;
                    let stride =
                        if size.is_one().proved() { Coordinate::zero() } else { Coordinate::step(N::one(), path) };
                    self.out.leaf(Leaf { extent: size, stride });
                }
            }
        }
        self.out.close();
        Ok(())
    }

    /// The complement of the steps at one path.
    fn fill_one(&mut self, path: ModePath, size: Option<N>) -> Result<(), LayoutError> {
        let part = self.layout.tree().map(|leaf| {
            let stride = leaf.stride.scale_at(path);
            let extent = if stride.is_zero().proved() { N::one() } else { leaf.extent.clone() };
            Leaf { extent, stride }
        });
        let gaps = fill(self.op, &Layout::from_valid(part), self.filling, size.as_ref())?;
        let gaps: SmallVec<[Leaf<Coordinate<N>>; 8]> = gaps
            .leaves()
            .iter()
            .map(|leaf| Leaf { extent: leaf.extent.clone(), stride: Coordinate::step(leaf.stride.clone(), path) })
            .collect();
        self.out.run(&gaps);
        Ok(())
    }
}

fn complement<N: Extent>(
    op: &'static str,
    layout: &Layout<Coordinate<N>>,
    filling: Filling,
    target: Option<&Tree<N>>,
) -> Result<Layout<Coordinate<N>>, LayoutError> {
    refuse_diagonal(op, layout)?;
    let codomain = profile_of(&super::codomain::paths(layout.leaves()))?;
    let mut filler = Filler { op, layout, filling, out: Gatherer::new() };
    filler.fill(codomain.as_ref(), target.map(Tree::as_ref), ModePath::ROOT)?;
    Layout::from_tree(filler.out.finish()?)
}

impl<N: Extent> Layout<Coordinate<N>> {
    /// The layout that together with this one covers each coordinate of a shape once, mode by mode.
    ///
    /// A mode of the target that the layout does not tile is rounded up.
    /// Errors: a stride is negative; the strides in a mode, sorted, do not form a divisibility
    /// chain ([`LayoutError::NotChain`]); a stride has several terms ([`LayoutError::Diagonal`]);
    /// the target lacks a mode ([`LayoutError::NoPath`]).
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout, Tree};
    ///
    /// let tile: Layout<Coordinate> = "(2,4):(64@0,2@1)".parse().unwrap();
    /// let target: Tree<i64> = "(128,32)".parse().unwrap();
    /// assert_eq!(tile.complement(&target).unwrap().to_string(), "(64,(2,4)):(1@0,(1@1,8@1))");
    /// ```
    pub fn complement(&self, target: &Tree<N>) -> Result<Layout<Coordinate<N>>, LayoutError> {
        complement("complement", self, Filling::Whole, Some(target))
    }

    /// The complement without a target: in each mode of [`Layout::coprofile`] the last mode has
    /// extent 1, and its stride is the step to the next copy.
    ///
    /// Errors: as [`Layout::complement`].
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let layout: Layout<Coordinate> = "3:4@2".parse().unwrap();
    /// assert_eq!(layout.complement_open().unwrap().to_string(), "(1,1,(4,1)):(1@0,1@1,(1@2,12@2))");
    /// ```
    pub fn complement_open(&self) -> Result<Layout<Coordinate<N>>, LayoutError> {
        complement("complement", self, Filling::Whole, None)
    }

    /// As [`Layout::complement`], but it has as many disjoint copies as fit, and padding of the
    /// layout remains as holes.
    ///
    /// Errors: modes overlap ([`LayoutError::Overlap`]); a stride has several terms
    /// ([`LayoutError::Diagonal`]); the target lacks a mode ([`LayoutError::NoPath`]).
    pub fn weak_complement(&self, target: &Tree<N>) -> Result<Layout<Coordinate<N>>, LayoutError> {
        complement("weak_complement", self, Filling::Holes, Some(target))
    }

    /// The weak complement without a target, as [`Layout::complement_open`].
    ///
    /// Errors: as [`Layout::weak_complement`].
    ///
    /// ```
    /// use tilewright_layout::{Coordinate, Layout};
    ///
    /// let padded: Layout<Coordinate> = "(4,2):(1@0,5@0)".parse().unwrap();
    /// assert_eq!(padded.weak_complement_open().unwrap().to_string(), "(1):(10@0)");
    /// ```
    pub fn weak_complement_open(&self) -> Result<Layout<Coordinate<N>>, LayoutError> {
        complement("weak_complement", self, Filling::Holes, None)
    }
}

impl<N: Extent> Blocks for Coordinate<N> {
    fn copies(block: &Layout<Coordinate<N>>) -> Result<Layout<Coordinate<N>>, LayoutError> {
        block.weak_complement_open()
    }
}
