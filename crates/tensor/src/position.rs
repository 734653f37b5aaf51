//! Positions that name an element: an index, one index for each mode, or a nested coordinate.
//!
//! Law: the offset at a position is the layout's offset at the corresponding coordinate. Indices
//! are counted from 0 and must be below their extents. A layout can be evaluated past its extents,
//! but memory ends.

use tilewright_layout::{Leaf, Tree};

use crate::error::TensorError;
use crate::offsets::Offsets;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl<const RANK: usize> Sealed for [i64; RANK] {}
    impl Sealed for &super::Tree<i64> {}
}

/// A position of an element: an index counted colexicographically, one index for each top-level
/// mode, or a coordinate.
pub trait Position: sealed::Sealed + Copy {
    /// The offset of a layout at this position.
    ///
    /// Errors: the position is outside the shape, or does not fit it.
    fn offset<L: Offsets>(self, layout: &L) -> Result<i64, TensorError>;

    /// The position as a coordinate.
    ///
    /// Errors: there are more indices than a coordinate may have.
    fn coord(self) -> Result<Tree<i64>, TensorError>;
}

impl Position for i64 {
    #[inline]
    fn offset<L: Offsets>(self, layout: &L) -> Result<i64, TensorError> {
        layout.offset(self)
    }

    fn coord(self) -> Result<Tree<i64>, TensorError> {
        Ok(Tree::leaf(self))
    }
}

impl Position for &Tree<i64> {
    fn offset<L: Offsets>(self, layout: &L) -> Result<i64, TensorError> {
        layout.offset_at(self)
    }

    fn coord(self) -> Result<Tree<i64>, TensorError> {
        Ok(self.clone())
    }
}

impl<const RANK: usize> Position for [i64; RANK] {
    #[inline]
    fn offset<L: Offsets>(self, layout: &L) -> Result<i64, TensorError> {
        if let Some(leaves) = layout.flat_leaves()
            && let Some(offset) = flat(leaves, &self)
        {
            return Ok(offset);
        }
        layout.offset_at(&self.coord()?)
    }

    fn coord(self) -> Result<Tree<i64>, TensorError> {
        match self.as_slice() {
            // A tensor of one mode has the same indices with and without a tuple around the mode.
            [index] => Ok(Tree::leaf(*index)),
            _ => Ok(Tree::flat(self)?),
        }
    }
}

/// The offset if every mode is one leaf; None outside the shape, or if the rank differs.
#[inline]
fn flat(leaves: &[Leaf], position: &[i64]) -> Option<i64> {
    if leaves.len() != position.len() {
        return None;
    }
    let mut offset = 0_i64;
    for (leaf, index) in leaves.iter().zip(position) {
        if *index as u64 >= leaf.extent as u64 {
            return None;
        }
        // An offset of the layout, or a partial sum of one.
        offset = offset.wrapping_add(leaf.stride.wrapping_mul(*index));
    }
    Some(offset)
}
