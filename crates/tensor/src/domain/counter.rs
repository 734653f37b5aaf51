//! The offsets at consecutive indices, for operands without common axes.
//!
//! Law: every index is visited once, in all operands. Each operand counts in the digits of its own
//! modes, so that an index costs a few additions and, if there is a map, its evaluation. Indices
//! that are contiguous in all operands are visited together, as a run.

use super::addressing::Addressing;

/// The offsets of one operand, from an index on.
struct Counter<'a> {
    side: &'a Addressing,
    digits: Vec<i64>,
    inner: i64,
}

impl<'a> Counter<'a> {
    /// The counter at an index, which must be below the size.
    pub(crate) fn new(side: &'a Addressing, index: i64) -> Counter<'a> {
        let (mut rest, mut inner) = (index, 0_i64);
        let mut digits = Vec::with_capacity(side.leaves().len());
        for leaf in side.leaves() {
            let digit = rest % leaf.extent;
            rest /= leaf.extent;
            inner = inner.wrapping_add(digit.wrapping_mul(leaf.stride));
            digits.push(digit);
        }
        Counter { side, digits, inner }
    }

    /// The offset at this index; None if the map has no value there, which does not occur in a
    /// view.
    pub(crate) fn place(&self) -> Option<i64> {
        self.side.place(self.inner)
    }

    /// Advances to the next index.
    pub(crate) fn step(&mut self) {
        for (leaf, digit) in self.side.leaves().iter().zip(&mut self.digits) {
            *digit += 1;
            if *digit < leaf.extent {
                self.inner = self.inner.wrapping_add(leaf.stride);
                return;
            }
            *digit = 0;
            self.inner = self.inner.wrapping_sub((leaf.extent - 1).wrapping_mul(leaf.stride));
        }
    }
}

/// The runs of the indices from `first` to before `end`: for each run its offset in the source and
/// in the destination, and its number of elements.
pub(crate) fn runs(
    src: &Addressing,
    dst: &Addressing,
    first: i64,
    end: i64,
    mut each: impl FnMut(i64, i64, usize),
) -> Option<()> {
    runs_of([src, dst], first, end, |[from, to], count| each(from, to, count))
}

/// As [`runs`], for any number of operands.
pub(crate) fn runs_of<const N: usize>(
    sides: [&Addressing; N],
    first: i64,
    end: i64,
    mut each: impl FnMut([i64; N], usize),
) -> Option<()> {
    let mut counters = sides.map(|side| Counter::new(side, first));
    let mut begin: Option<[i64; N]> = None;
    let mut count = 0_i64;
    for _ in first..end {
        let mut here = [0; N];
        for (here, counter) in here.iter_mut().zip(&mut counters) {
            *here = counter.place()?;
            counter.step();
        }
        match begin {
            Some(begin) if begin.iter().zip(here).all(|(begin, here)| begin.wrapping_add(count) == here) => count += 1,
            _ => {
                if let Some(begin) = begin {
                    each(begin, count as usize);
                }
                (begin, count) = (Some(here), 1);
            }
        }
    }
    if let Some(begin) = begin {
        each(begin, count as usize);
    }
    Some(())
}
