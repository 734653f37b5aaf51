//! Common vectors of two composed layouts: vectors whose elements are contiguous in both,
//! everywhere in the domain.
//!
//! Law: with `C` the complement of `R = max_common_layout(a, b)` in the domain,
//! `a(C(c) + R(i)) = a(C(c)) + i` and the same for `b`, for every `c` and every `i` below the size
//! of `R`. So the domain is divided into vectors, each of which one load or store can move. For
//! layouts this is [`crate::max_common_layout`], where it is enough to examine one vector. A
//! swizzle permutes vectors, so for swizzled layouts they must also be *aligned*: `a(C(c))` is a
//! multiple of the size, including the offset.
//!
//! *If both are affine over bits*, aligned vectors of `2^r` elements are found bit by bit. A layout
//! with a complement in a domain of `2^n` indices has power-of-two steps, so `R` selects some bits
//! of the index, and `C` the others. The law then says, for `k < r`: bit `k` of both values is the
//! same bit of the index, not flipped, and that bit of the index affects no other bit of a value.
//!
//! *Otherwise* prefixes of the common layout of the inner layouts are tried, longest first, and the
//! law is tested at every index.

use super::{Affine, Composed};
use crate::algebra::vector::{cut, max_common_layout};
use crate::limits::MAX_INDICES;
use crate::refusal::error::{Fits, LayoutError};
use crate::refusal::interrupt;
use crate::value::layout::{Layout, Leaf};
use crate::value::tree::Leaves;

const OP: &str = "max_common_layout";

impl Composed {
    /// A layout of indices whose elements are contiguous in both maps, for every vector of the
    /// domain; see the head of this file (CuTe `max_common_layout`).
    ///
    /// It is the largest if both are layouts with an offset, or both affine over bits. It is `1:0`
    /// if there is no such vector of two elements.
    ///
    /// Errors: neither condition holds and the domain has more than [`MAX_INDICES`] coordinates
    /// ([`LayoutError::Undecided`]); the sizes differ, and one map is not a layout; a value is not
    /// representable.
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let vector = |a: &str, b: &str| {
    ///     let (a, b): (Composed, Composed) = (a.parse().unwrap(), b.parse().unwrap());
    ///     a.max_common_vector(&b).unwrap()
    /// };
    /// let rows = "S<0,0,0> o 0 o (8,64):(64,1)";
    /// assert_eq!(vector(rows, "S<3,3,3> o 0 o (8,64):(64,1)"), 8); // groups of eight stay together
    /// assert_eq!(vector(rows, "S<3,3,3> o 4 o (8,64):(64,1)"), 4); // shifted by four, no group is whole
    /// assert_eq!(vector(rows, "S<3,3,3> o 1 o (8,64):(64,1)"), 1);
    /// ```
    pub fn max_common_layout(&self, other: &Composed) -> Result<Layout, LayoutError> {
        if let (Some(a), Some(b)) = (self.plain(), other.plain()) {
            return max_common_layout(&a, &b);
        }
        let (left, right) = (self.size(), other.size());
        if left != right {
            return Err(LayoutError::Size { op: OP, left, right });
        }
        if let (Some(a), Some(b)) = (self.affine(), other.affine()) {
            return common_bits(&a, &b);
        }
        if self.size() > MAX_INDICES {
            return Err(LayoutError::Undecided { op: OP, limit: MAX_INDICES as usize });
        }
        let inner = max_common_layout(self.inner(), other.inner())?.coalesce()?;
        for (whole, leaf) in inner.leaves().iter().enumerate().rev() {
            for extent in (2..=leaf.extent).rev().filter(|extent| leaf.extent % extent == 0) {
                let candidate = cut(&inner, whole, extent)?;
                if self.moves(&candidate)? && other.moves(&candidate)? {
                    return Ok(candidate);
                }
            }
        }
        Ok(Layout::unit())
    }

    /// The number of elements that are contiguous in both maps, in every vector of the domain: the
    /// size of [`Composed::max_common_layout`], at least 1.
    ///
    /// Errors: as [`Composed::max_common_layout`].
    pub fn max_common_vector(&self, other: &Composed) -> Result<i64, LayoutError> {
        Ok(self.max_common_layout(other)?.size())
    }

    /// The layout, if the map is a layout with an offset and this is known without enumeration.
    fn plain(&self) -> Option<Layout> {
        let known = self.outer().is_identity() || self.parities().is_some();
        Some(self.to_layout().ok().filter(|_| known)?.0)
    }

    /// Whether every vector into which `candidate` divides the domain is contiguous and aligned.
    fn moves(&self, candidate: &Layout) -> Result<bool, LayoutError> {
        let Ok(starts) = candidate.complement(&self.size()) else { return Ok(false) };
        let count = candidate.size();
        if starts.size().checked_mul(count) != Some(self.size()) {
            return Ok(false);
        }
        for start in 0..starts.size() {
            interrupt::check(OP)?;
            let start = starts.eval(&start)?;
            let first = self.eval(&start)?;
            if first % count != 0 {
                return Ok(false);
            }
            for element in 0..count {
                // The vector is aligned, so the sum fits.
                let index = start.checked_add(candidate.eval(&element)?).fits(OP)?;
                if first.checked_add(element) != Some(self.eval(&index)?) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// The longest run of low bits that both functions take from the same bits of the index, where
/// these bits of the index affect no other bits.
fn common_bits(a: &Affine, b: &Affine) -> Result<Layout, LayoutError> {
    let mut leaves: Leaves<Leaf> = Leaves::new();
    for row in 0..a.columns.len() {
        let (mask, flipped) = a.row(row);
        let alone = |f: &Affine| f.columns.get(mask.trailing_zeros() as usize) == Some(&(1 << row));
        if flipped || !mask.is_power_of_two() || b.row(row) != (mask, false) || !alone(a) || !alone(b) {
            break;
        }
        let stride = i64::try_from(mask).map_err(|_| LayoutError::overflow(OP))?;
        leaves.push(Leaf { extent: 2, stride });
    }
    Layout::flat(leaves)?.coalesce()
}
