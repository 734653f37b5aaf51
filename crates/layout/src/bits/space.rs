//! Vector spaces over bits: sets of numbers that are closed under XOR.
//!
//! Law: the basis of a [`BitSpace`] is *reduced*: the leading bit of each of its numbers is set in
//! no other one. The remainder of a number is its XOR with those basis numbers whose leading bits
//! it has. So the remainder is the least number of its coset, and it is 0 exactly if the number is
//! in the space.

use smallvec::SmallVec;

/// A number, and the set of the given numbers whose XOR it is, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitVector {
    /// The number.
    pub value: u64,
    /// The set of given numbers whose XOR is the value: bit `i` stands for the `i`-th.
    pub source: u64,
}

impl BitVector {
    #[inline(always)]
    fn add(&mut self, other: BitVector) {
        self.value ^= other.value;
        self.source ^= other.source;
    }
}

/// A number that is none of the given ones.
impl From<u64> for BitVector {
    fn from(value: u64) -> BitVector {
        BitVector { value, source: 0 }
    }
}

/// The space of all XORs of some given numbers.
///
/// ```
/// use tilewright_layout::BitSpace;
///
/// let space = BitSpace::of([0b0110, 0b0011, 0b0101]);
/// // The third number is the XOR of the first two.
/// assert_eq!((space.rank(), space.contains(0b0101), space.contains(0b0001)), (2, true, false));
/// assert_eq!(space.solve(0b0101), Some(0b011));
/// ```
#[derive(Debug, Clone, Default)]
pub struct BitSpace {
    basis: SmallVec<[BitVector; 16]>,
}

impl BitSpace {
    /// The space of some numbers. The first 64 of them have a bit in [`BitVector::source`].
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

    /// The number of basis vectors: the dimension.
    pub fn rank(&self) -> usize {
        self.basis.len()
    }

    /// The remainder of a number: the least number of its coset, which is 0 if the number is in the
    /// space.
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
        // The leading bits differ, so that comparing the numbers compares these.
        let at = self.basis.partition_point(|known| known.value < new.value);
        self.basis.insert(at, new);
        new
    }
}
