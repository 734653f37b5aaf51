//! Operations on the domain of a composed layout: applied to its inner layout, with the same outer
//! map and offset.
//!
//! Law: for an operation `op(B) = B o f` on layouts, `op(R) = A o offset o op(B) = R o f`. Modes
//! that are left out have index 0; the contribution of fixed modes is added to the offset.

use core::ops::Range;

use super::{Composed, InnerValue};
use crate::refusal::error::LayoutError;
use crate::value::coord::Coord;
use crate::value::layout::Layout;
use crate::value::number::Extent;
use crate::value::profile::Profile;
use crate::value::tree::Tree;

/// Operations that are applied to the inner layout.
macro_rules! of_inner {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*);)*) => {
        impl<D: InnerValue> Composed<D> {
            $(
                $(#[$about])*
                pub fn $name(&self $(, $argument: $kind)*) -> Result<Composed<D>, LayoutError> {
                    self.with(self.inner.$name($($argument),*)?)
                }
            )*
        }
    };
}

of_inner! {
    /// [`Layout::dice`] of the inner layout: the modes that `coord` fixes; the others have index 0.
    dice(coord: &Coord<D::Extent>);
    /// [`Layout::coalesce`] of the inner layout.
    coalesce();
    /// [`Layout::coalesce_z`] of the inner layout: the same map on all integers.
    coalesce_z();
    /// [`Layout::coalesce_by`] of the inner layout.
    coalesce_by(profile: &Profile);
    /// [`Layout::filter`] of the inner layout.
    filter();
    /// [`Layout::filter_by`] of the inner layout.
    filter_by(profile: &Profile);
    /// [`Layout::flatten`] of the inner layout.
    flatten();
    /// [`Layout::unflatten`] of the inner layout.
    unflatten(profile: &Profile);
    /// [`Layout::group`] of the inner layout.
    group(range: Range<usize>);
    /// [`Layout::take`] of the inner layout; the other modes have index 0.
    take(range: Range<usize>);
    /// [`Layout::select`] of the inner layout; the other modes have index 0.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    /// assert_eq!(tile.select(&[1, 0]).unwrap().to_string(), "S<3,3,3> o 0 o (64,8):(1,64)");
    /// ```
    select(modes: &[usize]);
    /// [`Layout::append`] to the inner layout.
    append(mode: &Layout<D>);
    /// [`Layout::prepend`] to the inner layout.
    prepend(mode: &Layout<D>);
    /// [`Layout::append_to_rank`] of the inner layout.
    ///
    /// ```
    /// use tilewright_layout::{Composed, Layout};
    ///
    /// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    /// let longer = tile.append_to_rank(3, &Layout::unit()).unwrap();
    /// assert_eq!(longer.to_string(), "S<3,3,3> o 0 o (8,64,1):(64,1,0)");
    /// ```
    append_to_rank(rank: usize, filler: &Layout<D>);
    /// [`Layout::prepend_to_rank`] of the inner layout.
    prepend_to_rank(rank: usize, filler: &Layout<D>);
    /// [`Layout::replace`] of a mode of the inner layout.
    replace(mode: usize, by: &Layout<D>);
    /// [`Layout::remove`] of a mode of the inner layout, which then has index 0.
    remove(mode: usize);
    /// [`Layout::reverse`] of the inner layout.
    reverse();
    /// [`Layout::zip`] of the inner layout.
    zip();
    /// [`Layout::unzip`] of the inner layout.
    unzip(guide: &Profile);
}

impl<D: InnerValue> Composed<D> {
    /// The modes that `coord` leaves open; the contribution of the fixed indices is added to the
    /// offset. Errors: as [`Layout::slice_and_offset`].
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    /// let row = tile.slice(&"(2,_)".parse().unwrap()).unwrap();
    /// assert_eq!(row.to_string(), "S<3,3,3> o 128 o (64):(1)");
    /// ```
    pub fn slice(&self, coord: &Coord<D::Extent>) -> Result<Composed<D>, LayoutError> {
        let (inner, offset) = self.inner.slice_and_offset(coord)?;
        self.shift(inner, &offset)
    }

    /// The map with its origin moved to `coord`. Errors: as [`Layout::domain_offset`].
    pub fn domain_offset(&self, coord: &Tree<D::Extent>) -> Result<Composed<D>, LayoutError> {
        let (inner, offset) = self.inner.domain_offset(coord)?;
        self.shift(inner, &offset)
    }

    /// [`Layout::filter_zeros`] of the inner layout: its modes of stride 0, along which the value
    /// does not change, get extent 1.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 0 o (8,(4,64)):(64,(0,1))".parse().unwrap();
    /// assert_eq!(tile.filter_zeros().unwrap().to_string(), "S<3,3,3> o 0 o (8,(1,64)):(64,(0,1))");
    /// ```
    pub fn filter_zeros(&self) -> Result<Composed<D>, LayoutError> {
        self.with(self.inner.filter_zeros())
    }

    /// Mode number `mode`; the others have index 0. A single mode is its own mode 0.
    pub fn mode(&self, mode: usize) -> Option<Composed<D>> {
        // Its offsets are a subset of those of the whole, so they are representable.
        Some(Composed { outer: self.outer.clone(), offset: self.offset.clone(), inner: self.inner.mode(mode)? })
    }

    /// The mode at `path`; the other modes have index 0. See [`Layout::at`].
    pub fn at(&self, path: &[usize]) -> Option<Composed<D>> {
        Some(Composed { outer: self.outer.clone(), offset: self.offset.clone(), inner: self.inner.at(path)? })
    }
}

impl<N: Extent> Composed<N> {
    /// The layout of the indices that the stride-0 modes of the inner layout generate, so that
    /// `R(K(i)) = R(0)` ([`Layout::nullspace`] of the inner layout).
    ///
    /// Errors: a number is not representable.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let tile: Composed = "S<3,3,3> o 8 o (8,4,64):(64,0,1)".parse().unwrap();
    /// assert_eq!(tile.nullspace().unwrap().to_string(), "4:8");
    /// ```
    pub fn nullspace(&self) -> Result<Layout<N>, LayoutError> {
        self.inner.nullspace()
    }
}
