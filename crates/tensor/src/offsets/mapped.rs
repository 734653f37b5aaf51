//! Layouts with an outer map, including layouts of XOR strides.
//!
//! Law: that of [`super::Offsets`]. Ranges and colliding pairs are found by bounds, or by listing
//! offsets within limits.

use std::convert::identity;

use tilewright_layout::{BitMatrix, Composed, Layout, LayoutError, Profile, StaticComposed, Stride, Tree, Xor};

use super::{MAX_WALK, Offsets, inside, of_shape, of_values, outside, within};
use crate::error::TensorError;
use crate::walk::sealed::Sealed;
use crate::walk::{Walk, number};

impl Sealed for Composed {
    const MAPPED: bool = true;
}

impl Offsets for Composed {
    type Derived = Composed;

    fn derived(&self) -> Result<Composed, TensorError> {
        Ok(self.clone())
    }

    fn composed(&self) -> Result<Composed, TensorError> {
        self.derived()
    }

    of_values!(Composed, identity);

    fn range(&self) -> Result<(i64, i64), TensorError> {
        // The smallest value is the negated largest of the negated values.
        let negated = || self.then(Layout::mode_of(2, -1)?)?.cosize();
        let by_bounds = |end: Result<i64, LayoutError>| end.ok()?.checked_sub(1);
        if let (Some(greatest), Some(least)) = (by_bounds(self.cosize()), by_bounds(negated())) {
            return Ok((least.saturating_neg(), greatest));
        }
        let size = Composed::size(self);
        if size > MAX_WALK {
            return Err(LayoutError::Undecided { op: "range", limit: MAX_WALK as usize }.into());
        }
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        for index in 0..size {
            let offset = self.eval(&index)?;
            (least, greatest) = (least.min(offset), greatest.max(offset));
        }
        Ok((least, greatest))
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_composed(self)
    }
}

impl Sealed for StaticComposed {
    const MAPPED: bool = true;
}

impl Offsets for StaticComposed {
    type Derived = Composed;

    fn derived(&self) -> Result<Composed, TensorError> {
        Ok(self.to_composed())
    }

    of_shape!(StaticComposed);

    fn profile(&self) -> Profile {
        self.inner().profile()
    }

    #[inline]
    fn offset(&self, index: i64) -> Result<i64, TensorError> {
        within(index, StaticComposed::size(self), || StaticComposed::shape(self))?;
        self.eval(index).ok_or_else(|| outside(Tree::leaf(index), StaticComposed::shape(self)))
    }

    fn range(&self) -> Result<(i64, i64), TensorError> {
        Offsets::range(&self.to_composed())
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        Walk::of_composed(&self.to_composed())
    }
}

impl Sealed for Layout<Xor> {
    const MAPPED: bool = true;
}

/// The number of bits of an offset.
const BITS: usize = 63;

impl Offsets for Layout<Xor> {
    type Derived = Composed;

    fn derived(&self) -> Result<Composed, TensorError> {
        let mut columns: Vec<u64> = Vec::new();
        let mut fields = Vec::new();
        for leaf in Layout::leaves(self) {
            let moves = leaf.extent > 1 && leaf.stride.bits() != 0;
            let first = columns.len() as u32;
            fields.push(if moves { 1_i64.checked_shl(first).filter(|step| *step > 0).unwrap_or(0) } else { 0 });
            let bits = if moves { u64::BITS - (leaf.extent - 1).leading_zeros() } else { 0 };
            for bit in 0..bits {
                // A bit that occurs in an index. If its product does not fit, the layout has no
                // value there.
                let column = leaf.stride.times(&(1 << bit)).ok_or(LayoutError::Overflow { op: "XOR layout" })?;
                columns.push(column.bits());
            }
        }
        // Makes the matrix square, so that tiles at a ragged edge, which begin inside and are
        // clipped, have values past it.
        columns.resize(columns.len().max(BITS), 0);
        let matrix = BitMatrix::new(BITS, columns)?;
        let inner = Layout::new(&Layout::shape(self), &Tree::new(Layout::profile(self).clone(), fields)?)?;
        Ok(Composed::new(matrix, 0, inner)?)
    }

    of_values!(Layout, number);

    fn range(&self) -> Result<(i64, i64), TensorError> {
        // The smallest element of a set of bit vectors that contains 0 is 0.
        let greatest = self.cosize()?.checked_sub(1).ok_or(LayoutError::Undecided { op: "range", limit: 0 })?;
        Ok((0, greatest))
    }

    #[inline]
    fn walk(&self) -> Walk<Self> {
        match self.derived() {
            Ok(composed) => Walk::of_composed(&composed),
            Err(_) => Walk::of_xor(self),
        }
    }
}
