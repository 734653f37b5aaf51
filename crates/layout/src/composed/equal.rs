//! Whether two composed layouts are the same function.
//!
//! Law: `equivalent` says whether two maps are the same at every index. It is decided by the sums
//! of parities ([`super::parity`]) where the extents are powers of two and each map reads what is
//! affine over bits; else part by part, the indices of odd extents fixed in each; else the indices
//! are walked, up to a limit.

use smallvec::SmallVec;

use super::{Composed, Parities};
use crate::limits::MAX_INDICES;
use crate::refusal::error::LayoutError;
use crate::refusal::interrupt;
use crate::value::layout::Leaf;
use crate::value::tree::Leaves;

/// How many parts, with the indices of odd extents fixed, two composed layouts are compared in.
const MAX_PARTS: i64 = 1 << 12;

impl Composed {
    /// Whether two maps are the same function of an index: equal size, and equal at every index.
    ///
    /// Decided for extents that are powers of two where each outer map reads what is affine over
    /// bits, whatever the size, also part by part where other extents come after them in the same
    /// places; otherwise by walking.
    ///
    /// Errors: a value is not representable; the first [`MAX_INDICES`] values agree, and there are
    /// more ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let composed = |text: &str| text.parse::<Composed>().unwrap();
    /// // A swizzle passes through a change of rows that it does not read.
    /// let (a, b) = (composed("S<3,3,3> o 0 o (8,64):(64,1)"), composed("(8,64,4):(64,1,512) o 0 o S<3,6,-3> o 0 o 512:1"));
    /// assert!(a.equivalent(&a.coalesce().unwrap()).unwrap());
    /// assert!(!a.equivalent(&b).unwrap());
    /// ```
    pub fn equivalent(&self, other: &Composed) -> Result<bool, LayoutError> {
        if self.size() != other.size() {
            return Ok(false);
        }
        if self.outer == other.outer && self.offset == other.offset && self.inner.equivalent(&other.inner) {
            return Ok(true);
        }
        if let (Some(a), Some(b)) = (self.parities(), other.parities()) {
            return Ok(a == b);
        }
        if let Some(equal) = self.equal_in_parts(other) {
            return Ok(equal);
        }
        for index in 0..self.size().min(MAX_INDICES) {
            interrupt::check("equivalent")?;
            if self.eval(&index)? != other.eval(&index)? {
                return Ok(false);
            }
        }
        if self.size() <= MAX_INDICES {
            return Ok(true);
        }
        Err(LayoutError::Undecided { op: "equivalent", limit: MAX_INDICES as usize })
    }

    /// Whether the two are equal with the indices of odd extents fixed, for all of those; none
    /// where this does not decide it.
    fn equal_in_parts(&self, other: &Composed) -> Option<bool> {
        let (a, b) = (Split::of(self), Split::of(other));
        let same = a.extents == b.extents && a.places == b.places;
        if !same || a.extents.iter().try_fold(1, |parts: i64, extent| parts.checked_mul(*extent))? > MAX_PARTS {
            return None;
        }
        let mut index = SmallVec::<[i64; 8]>::from_elem(0, a.extents.len());
        loop {
            if a.part(self, &index)? != b.part(other, &index)? {
                return Some(false);
            }
            // The next index, or the end.
            let mut digits = index.iter_mut().zip(&a.extents);
            loop {
                let Some((digit, extent)) = digits.next() else { return Some(true) };
                *digit += 1;
                if *digit < *extent {
                    break;
                }
                *digit = 0;
            }
        }
    }
}

/// A domain as its bits, and the odd extents between them.
struct Split {
    /// The power-of-two parts of all leaves.
    even: Leaves<Leaf>,
    /// The odd parts, their strides, and how many bits come before each.
    extents: SmallVec<[i64; 8]>,
    strides: SmallVec<[i64; 8]>,
    places: SmallVec<[u32; 8]>,
}

impl Split {
    fn of(composed: &Composed) -> Split {
        let mut split =
            Split { even: Leaves::new(), extents: SmallVec::new(), strides: SmallVec::new(), places: SmallVec::new() };
        let mut bits = 0;
        for leaf in composed.inner.leaves() {
            let power = leaf.extent.trailing_zeros();
            split.even.push(Leaf { extent: 1 << power, stride: leaf.stride });
            bits += power;
            if leaf.extent >> power > 1 {
                split.extents.push(leaf.extent >> power);
                // Within the range of the layout, which fits.
                split.strides.push(leaf.stride.wrapping_shl(power));
                split.places.push(bits);
            }
        }
        split
    }

    /// The function with the indices of the odd extents fixed.
    fn part(&self, composed: &Composed, index: &[i64]) -> Option<Parities> {
        let mut offset = composed.offset;
        for (digit, stride) in index.iter().zip(&self.strides) {
            offset = offset.checked_add(digit.checked_mul(*stride)?)?;
        }
        composed.outer.after_bits(Parities::of_layout(&self.even, offset)?)
    }
}
