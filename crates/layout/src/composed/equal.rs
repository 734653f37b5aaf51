//! Whether two composed layouts are the same function.
//!
//! Law: `equivalent` decides whether two maps have the same value at every index. If the extents
//! are powers of two and the argument of each outer map is affine over bits, sums of parities
//! ([`super::parity`]) decide. Otherwise the domain is divided into parts in which the indices of
//! odd extents are fixed, and each part is decided in this way. Otherwise the values at the indices
//! are compared, up to a limit.

use smallvec::SmallVec;

use super::{Composed, Parities};
use crate::limits::MAX_INDICES;
use crate::refusal::error::LayoutError;
use crate::refusal::interrupt;
use crate::value::layout::Leaf;
use crate::value::tree::Leaves;

/// The most parts, with the indices of odd extents fixed, in which two composed layouts are
/// compared.
const MAX_PARTS: i64 = 1 << 12;

impl Composed {
    /// Whether two maps are the same function of an index: equal size, and equal at every index.
    ///
    /// If the extents are powers of two and the argument of each outer map is affine over bits,
    /// this is decided for any size. Odd factors of extents are allowed if both maps have them at
    /// the same positions. Otherwise the values are compared one by one.
    ///
    /// Errors: a value is not representable; the first [`MAX_INDICES`] values agree, and there are
    /// more ([`LayoutError::Undecided`]).
    ///
    /// ```
    /// use tilewright_layout::Composed;
    ///
    /// let composed = |text: &str| text.parse::<Composed>().unwrap();
    /// // A swizzle commutes with a permutation of rows that it does not read.
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

    /// Whether the two are equal, compared separately for each choice of the indices of odd
    /// extents; None if this does not decide it.
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
            // Advances to the next choice of indices, or ends.
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

/// The modes of a domain, divided into power-of-two parts and odd parts.
struct Split {
    /// The power-of-two parts of all leaves.
    even: Leaves<Leaf>,
    /// The odd parts, their strides, and the number of bits before each.
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
                // It is within the range of the layout, so it fits.
                split.strides.push(leaf.stride.wrapping_shl(power));
                split.places.push(bits);
            }
        }
        split
    }

    /// The map with the indices of the odd extents fixed, as a sum of parities.
    fn part(&self, composed: &Composed, index: &[i64]) -> Option<Parities> {
        let mut offset = composed.offset;
        for (digit, stride) in index.iter().zip(&self.strides) {
            offset = offset.checked_add(digit.checked_mul(*stride)?)?;
        }
        composed.outer.after_bits(Parities::of_layout(&self.even, offset)?)
    }
}
