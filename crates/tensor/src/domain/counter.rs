//! The places of one index after another, where operands have no common axes.
//!
//! Law: every index is visited once, on all sides. Each side counts in the digits of its own modes,
//! so an index costs additions and, if there is one, the map. Indices that are contiguous on all
//! sides are visited together, as a run.

use super::addressing::Addressing;

/// The places of one side, from an index on.
struct Counter<'a> {
    side: &'a Addressing,
    digits: Vec<i64>,
    inner: i64,
}

impl<'a> Counter<'a> {
    /// At an index below the size.
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

    /// The place of this index; none if the map has none, which does not occur in a view.
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

/// The runs of the indices from `first` to before `end`: of each its place in the source and in the
/// destination, and its number of elements.
pub(crate) fn runs(
    src: &Addressing,
    dst: &Addressing,
    first: i64,
    end: i64,
    mut each: impl FnMut(i64, i64, usize),
) -> Option<()> {
    runs_of([src, dst], first, end, |[from, to], count| each(from, to, count))
}

/// The same for any number of sides.
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
