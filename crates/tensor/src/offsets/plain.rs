//! Layouts of integer strides, without an outer map.
//!
//! Law: that of [`super::Offsets`].

use std::convert::identity;

use tilewright_layout::{Composed, Layout, Leaf, Profile, StaticLayout, Tree};

use super::{Offsets, inside, of_shape, of_values, outside, within};
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

    of_values!(Layout, identity);

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Ok(Layout::range(self)?)
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

    of_shape!(StaticLayout);

    fn profile(&self) -> Profile {
        StaticLayout::profile(self)
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, StaticLayout::size(self), || StaticLayout::shape(self))?;
        self.eval(index).ok_or_else(|| outside(Tree::leaf(index), StaticLayout::shape(self)))
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Ok(StaticLayout::range(self))
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
