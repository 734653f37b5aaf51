//! Spaces over bits: sets of numbers that have the XOR of any two of them.
//!
//! Law: the basis of a [`BitSpace`] is *reduced*: the leading bit of each of its numbers is set in
//! no other one. So the remainder of a number, after XOR with the basis numbers at whose leading
//! bits it has ones, is the least of its coset, and 0 exactly if the number is in the space.

use smallvec::SmallVec;

/// A number, and which of the given numbers it is the XOR of, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitVector {
    /// The number.
    pub value: u64,
    /// A set of the numbers that a space was made of.
    pub source: u64,
}

impl BitVector {
    #[inline(always)]
    fn add(&mut self, other: BitVector) {
        self.value ^= other.value;
        self.source ^= other.source;
    }
}

/// A number that is none of those given.
impl From<u64> for BitVector {
    fn from(value: u64) -> BitVector {
        BitVector { value, source: 0 }
    }
}

/// The numbers that are the XOR of some given ones.
///
/// ```
/// use tilewright_layout::BitSpace;
///
/// let space = BitSpace::of([0b0110, 0b0011, 0b0101]);
/// // The third is the XOR of the first two.
/// assert_eq!((space.rank(), space.contains(0b0101), space.contains(0b0001)), (2, true, false));
/// assert_eq!(space.solve(0b0101), Some(0b011));
/// ```
#[derive(Debug, Clone, Default)]
pub struct BitSpace {
    basis: SmallVec<[BitVector; 16]>,
}

impl BitSpace {
    /// The space of some numbers, of which the first 64 have a bit in [`BitVector::source`].
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> BitSpace {
        let mut space = BitSpace::default();
        for (position, value) in numbers.into_iter().enumerate() {
            space.insert(BitVector { value, source: 1_u64.checked_shl(position as u32).unwrap_or(0) });
        }
        space
    }

    /// The reduced basis, by increasing leading bit.
    pub fn basis(&self) -> &[BitVector] {
        &self.basis
    }

    /// How many numbers the basis has.
    pub fn rank(&self) -> usize {
        self.basis.len()
    }

    /// The remainder of a number: the least of its coset, 0 if it is in the space.
    #[inline]
    pub fn rest(&self, mut vector: BitVector) -> BitVector {
        for known in self.basis.iter().rev() {
            if vector.value >> known.value.ilog2() & 1 == 1 {
                vector.add(*known);
            }
        }
        vector
    }

    /// Whether a number is in the space.
    pub fn contains(&self, value: u64) -> bool {
        self.rest(value.into()).value == 0
    }

    /// The given numbers whose XOR is this number; None if it is not in the space.
    pub fn solve(&self, value: u64) -> Option<u64> {
        let rest = self.rest(value.into());
        (rest.value == 0).then_some(rest.source)
    }

    /// Adds a number. Returns its remainder modulo the previous space: if its value is 0, the space
    /// is unchanged, and its source is a set of numbers whose XOR is 0.
    #[inline]
    pub fn insert(&mut self, vector: impl Into<BitVector>) -> BitVector {
        let new = self.rest(vector.into());
        let Some(lead) = new.value.checked_ilog2() else { return new };
        for known in &mut self.basis {
            if known.value >> lead & 1 == 1 {
                known.add(new);
            }
        }
        // The leading bits differ, so that the order of the numbers is theirs.
        let at = self.basis.partition_point(|known| known.value < new.value);
        self.basis.insert(at, new);
        new
    }
}
