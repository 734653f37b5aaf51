//! Linear spaces over bits, in addition to `BitSpace`.

use tilewright_layout::BitSpace;

/// The XOR of the columns that the bits of a number select.
pub(super) fn chosen(columns: &[u64], number: u64) -> u64 {
    let bits = columns.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
    bits.fold(0, |sum, (_, column)| sum ^ column)
}

/// A common complement of two spaces of equal dimension, in numbers below `1 << bits`.
pub(super) fn complement(bits: usize, a: &[u64], b: &[u64]) -> Vec<u64> {
    let (mut first, mut second) = (BitSpace::of(a.iter().copied()), BitSpace::of(b.iter().copied()));
    let mut found = Vec::new();
    while first.rank() < bits && second.rank() < bits {
        let outside = |space: &BitSpace| (0..bits).map(|bit| 1_u64 << bit).find(|one| !space.contains(*one));
        let both = (0..bits).map(|bit| 1_u64 << bit).find(|one| !first.contains(*one) && !second.contains(*one));
        // A vector that is only in the first space plus one that is only in the second: the sum is
        // in neither.
        let next = both.or_else(|| Some(outside(&first)? ^ outside(&second)?));
        let Some(next) = next else { break };
        first.insert(next);
        second.insert(next);
        found.push(next);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::complement;
    use tilewright_layout::BitSpace;

    #[test]
    fn a_complement_is_one_of_both() {
        for (a, b) in [([1, 2], [4, 8]), ([1, 2], [1, 2]), ([3, 5], [6, 9]), ([1, 8], [8, 2])] {
            let found = complement(4, &a, &b);
            assert_eq!(found.len(), 2);
            for space in [a, b] {
                let all = space.iter().chain(&found).copied();
                assert_eq!(BitSpace::of(all).rank(), 4, "{a:?} {b:?} {found:?}");
            }
        }
    }
}
