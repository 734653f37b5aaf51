//! Spaces over bits: sets of numbers that have the exclusive or of any two of them.

/// The exclusive or of the columns of the bits of a number.
pub(super) fn chosen(columns: &[u64], number: u64) -> u64 {
    let bits = columns.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
    bits.fold(0, |sum, (_, column)| sum ^ column)
}

/// A number, and the index that it is the image of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vector {
    pub(super) image: u64,
    pub(super) index: u64,
}

impl Vector {
    fn plus(self, other: Vector) -> Vector {
        Vector { image: self.image ^ other.image, index: self.index ^ other.index }
    }
}

/// A basis of a space, in the order of the highest bits of its numbers: each has one that no other
/// number of the basis has.
#[derive(Debug, Clone, Default)]
pub(super) struct Basis(Vec<Vector>);

impl Basis {
    pub(super) fn of(vectors: impl IntoIterator<Item = Vector>) -> Basis {
        let mut basis = Basis::default();
        for vector in vectors {
            basis.insert(vector);
        }
        basis
    }

    /// What is left of a vector: 0 where its image is in the space.
    pub(super) fn rest(&self, vector: Vector) -> Vector {
        let has = |other: &Vector, own: Vector| own.image >> other.image.ilog2() & 1 == 1;
        self.0.iter().fold(vector, |own, other| if has(other, own) { own.plus(*other) } else { own })
    }

    pub(super) fn has(&self, image: u64) -> bool {
        self.rest(Vector { image, index: 0 }).image == 0
    }

    /// The index whose image is this number, where there is one.
    pub(super) fn index_of(&self, image: u64) -> Option<u64> {
        let rest = self.rest(Vector { image, index: 0 });
        (rest.image == 0).then_some(rest.index)
    }

    /// Adds a vector, unless its image is in the space; whether it was added.
    pub(super) fn insert(&mut self, vector: Vector) -> bool {
        let rest = self.rest(vector);
        let Some(highest) = rest.image.checked_ilog2() else { return false };
        for other in &mut self.0 {
            if other.image >> highest & 1 == 1 {
                *other = other.plus(rest);
            }
        }
        let at = self.0.partition_point(|other| other.image.ilog2() < highest);
        self.0.insert(at, rest);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn vectors(&self) -> &[Vector] {
        &self.0
    }
}

/// Numbers below `1 << bits` that together with either space, both of one size, make all of them.
pub(super) fn complement(bits: usize, a: &[u64], b: &[u64]) -> Vec<u64> {
    let plain = |image: u64| Vector { image, index: 0 };
    let space = |list: &[u64]| Basis::of(list.iter().map(|image| plain(*image)));
    let (mut first, mut second) = (space(a), space(b));
    let mut found = Vec::new();
    while first.len() < bits && second.len() < bits {
        let outside = |space: &Basis| (0..bits).map(|bit| 1_u64 << bit).find(|one| !space.has(*one));
        let both = (0..bits).map(|bit| 1_u64 << bit).find(|one| !first.has(*one) && !second.has(*one));
        // One that is only in the first and one that is only in the second: their sum is in none.
        let next = both.or_else(|| Some(outside(&first)? ^ outside(&second)?));
        let Some(next) = next else { break };
        first.insert(plain(next));
        second.insert(plain(next));
        found.push(next);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Basis, Vector, chosen, complement};

    #[test]
    fn an_index_has_its_image() {
        let columns = [0b0110, 0b0011, 0b1000, 0b0101];
        let basis = Basis::of(columns.iter().enumerate().map(|(bit, image)| Vector { image: *image, index: 1 << bit }));
        assert_eq!(basis.len(), 3);
        for image in 0..16 {
            let found = basis.index_of(image);
            assert_eq!(found.is_some(), (0..16).any(|index| chosen(&columns, index) == image), "{image}");
            assert!(found.is_none_or(|index| chosen(&columns, index) == image), "{image}");
        }
    }

    #[test]
    fn a_complement_is_one_of_both() {
        for (a, b) in [([1, 2], [4, 8]), ([1, 2], [1, 2]), ([3, 5], [6, 9]), ([1, 8], [8, 2])] {
            let found = complement(4, &a, &b);
            assert_eq!(found.len(), 2);
            for space in [a, b] {
                let all = space.iter().chain(&found).map(|image| Vector { image: *image, index: 0 });
                assert_eq!(Basis::of(all).len(), 4, "{a:?} {b:?} {found:?}");
            }
        }
    }
}
