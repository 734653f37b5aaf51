//! Coordinates as a kind of stride.
//!
//! Law: the strides of one layout have a common codomain, so two of them clash if a path of one
//! ends at a mode through which a path of the other continues.

use alloc::boxed::Box;
use alloc::string::ToString;
use core::fmt;

use super::{Coordinate, CoordinateTerm, clash, text};
use crate::algebra::compose::compose_integers;
use crate::algebra::sum::add_integers;
use crate::refusal::error::LayoutError;
use crate::refusal::evidence::Mixed;
use crate::value::kind::{StrideKind, TextOut};
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::profile::Profile;

impl<N: Extent> StrideKind for Coordinate<N> {
    // `Self: Stride`, which the trait requires, hides from signatures that the extent is `N`.
    #[inline]
    fn add_times(&mut self, count: &<Self as Stride>::Extent, step: &Coordinate<N>) -> Option<()> {
        if !step.second.is_none() {
            return self.add_sum(count, step);
        }
        let CoordinateTerm { path, scale } = &step.first;
        let scale = scale.times(count)?;
        if scale.is_zero().proved() {
            return Some(());
        }
        if self.first.is_none() {
            (self.first.path, self.first.scale) = (*path, scale);
            return Some(());
        }
        if self.second.is_none() && self.first.path < *path {
            (self.second.path, self.second.scale) = (*path, scale);
            return Some(());
        }
        *self = self.plus(&Coordinate {
            first: CoordinateTerm { path: *path, scale },
            second: CoordinateTerm::none(),
            more: None,
        })?;
        Some(())
    }

    #[inline]
    fn clash(leaves: &[Leaf<Coordinate<N>>]) -> Option<(usize, usize)> {
        clash(leaves.iter().map(|leaf| &leaf.stride))
    }

    fn print(&self, out: &mut impl TextOut) {
        text::print(self, out);
    }

    #[inline]
    fn decimal(&self) -> Option<i64> {
        if self.second.is_none() && self.first.path.is_empty() { self.first.scale.decimal() } else { None }
    }

    #[inline(always)]
    fn compose_layouts(
        outer: &Layout<Coordinate<N>>,
        inner: &Layout<<Self as Stride>::Extent>,
    ) -> Result<Layout<Coordinate<N>>, LayoutError> {
        compose_integers(outer, inner)
    }

    #[inline]
    fn add_layouts(a: &Layout<Coordinate<N>>, b: &Layout<Coordinate<N>>) -> Result<Layout<Coordinate<N>>, LayoutError> {
        add_integers(a, b)
    }
}

impl LayoutError {
    /// The error for strides number `pair.0` and `pair.1` of a tree, which have no common codomain.
    #[cold]
    pub(crate) fn mixed<'a, D: fmt::Display + 'a>(
        profile: &Profile,
        pair: (usize, usize),
        stride: impl Fn(usize) -> Option<&'a D>,
    ) -> LayoutError {
        let side = |leaf: usize| {
            (profile.path(leaf), stride(leaf).map(|stride| stride.to_string().into_boxed_str()).unwrap_or_default())
        };
        LayoutError::Mixed(Box::new(Mixed { first: side(pair.0), second: side(pair.1) }))
    }
}
