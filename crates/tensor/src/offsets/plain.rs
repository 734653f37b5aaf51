//! Layouts of integer strides, which are maps by themselves.
//!
//! Law: that of [`super::Offsets`].

use tilewright_layout::{Composed, Layout, Leaf, Profile, StaticLayout, Tree};

use super::{Offsets, inside, outside, within};
use crate::error::TensorError;
use crate::walk::Walk;
use crate::walk::sealed::Sealed;

/// Whether every top-level mode is a leaf.
#[inline]
fn is_flat(profile: &Profile) -> bool {
    // One node for the tuple and one for each leaf: no nested tuples.
    profile.is_leaf() || profile.nodes().len() == profile.leaves() + 1
}

impl Sealed for Layout {
    const MAPPED: bool = false;
}

impl Offsets for Layout {
    type Derived = Layout;

    fn derived(&self) -> Result<Layout, TensorError> {
        Ok(self.clone())
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        Ok(Composed::from(self))
    }

    fn shape(&self) -> Tree<i64> {
        Layout::shape(self)
    }

    fn profile(&self) -> Profile {
        Layout::profile(self).clone()
    }

    fn rank(&self) -> usize {
        Layout::rank(self)
    }

    #[inline]
    fn size(&self) -> i64 {
        Layout::size(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, Layout::size(self), || Layout::shape(self))?;
        Ok(self.eval(&index)?)
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        inside(coord, &Layout::shape(self))?;
        Ok(self.eval_at(coord)?)
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Ok(Layout::range(self)?)
    }

    fn injective(&self) -> Result<bool, TensorError> {
        Ok(self.is_injective()?)
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        let (first, second) = Layout::collision(self).ok()??;
        Some((first, second, self.eval(&first).ok()?))
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_leaves(Layout::leaves(self))
    }

    #[inline]
    fn leaves(&self) -> Option<&[Leaf]> {
        Some(Layout::leaves(self))
    }

    #[inline]
    fn flat_leaves(&self) -> Option<&[Leaf]> {
        is_flat(Layout::profile(self)).then(|| Layout::leaves(self))
    }
}

impl Sealed for StaticLayout {
    const MAPPED: bool = false;
}

impl Offsets for StaticLayout {
    type Derived = Layout;

    fn derived(&self) -> Result<Layout, TensorError> {
        Ok(self.to_layout())
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        Ok(Composed::from(self.to_layout()))
    }

    fn shape(&self) -> Tree<i64> {
        StaticLayout::shape(self)
    }

    fn profile(&self) -> Profile {
        StaticLayout::profile(self)
    }

    fn rank(&self) -> usize {
        StaticLayout::rank(self)
    }

    #[inline]
    fn size(&self) -> i64 {
        StaticLayout::size(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, StaticLayout::size(self), || StaticLayout::shape(self))?;
        self.eval(index).ok_or_else(|| outside(Tree::leaf(index), StaticLayout::shape(self)))
    }

    fn offset_at(&self, coord: &Tree<i64>) -> Result<i64, TensorError> {
        self.to_layout().offset_at(coord)
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Ok(StaticLayout::range(self))
    }

    fn injective(&self) -> Result<bool, TensorError> {
        self.to_layout().injective()
    }

    fn collision(&self) -> Option<(i64, i64, i64)> {
        Offsets::collision(&self.to_layout())
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_leaves(StaticLayout::leaves(self))
    }

    #[inline]
    fn leaves(&self) -> Option<&[Leaf]> {
        Some(StaticLayout::leaves(self))
    }

    fn flat_leaves(&self) -> Option<&[Leaf]> {
        is_flat(&StaticLayout::profile(self)).then(|| StaticLayout::leaves(self))
    }
}
