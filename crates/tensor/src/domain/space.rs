//! A domain in bytes: merged additive axes, and a table of the offsets of the other axes.
//!
//! Law: the steps and the table together visit every index once. The offset of its element in each
//! operand is the origin, plus an entry of the table, plus `by` times a position for every step.
//!
//! The order of the index is free. So two axes merge if the second continues the first in all
//! operands, wherever they are in the index. An axis with negative steps is visited from its other
//! end.

use super::addressing::Addressing;
use super::axes::{DomainAxis, common_axes};

/// The largest number of offsets in a table.
const MAX_PLACES: usize = 1 << 12;

/// An additive axis: its extent, and the bytes that a step adds in each operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step<const N: usize> {
    pub(crate) extent: usize,
    pub(crate) by: [isize; N],
}

/// The common domain of `N` operands, of which the last one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space<const N: usize> {
    /// The offset of the first element in each operand.
    pub(crate) origin: [isize; N],
    /// The additive axes, those with short steps in the written operand first.
    pub(crate) steps: Vec<Step<N>>,
    /// The offsets of the axes that are not additive, relative to the origin. Those of the first
    /// such axis are adjacent. A single 0 if there are no such axes.
    pub(crate) table: Vec<[isize; N]>,
    /// The axes that are not additive.
    pub(crate) non_additive: Vec<NonAdditive<N>>,
    /// The offset of index 0 in each operand.
    pub(crate) first: [isize; N],
}

/// An axis that is not additive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NonAdditive<const N: usize> {
    pub(crate) extent: usize,
    /// The bytes that a step adds in each operand; None if the map decides.
    pub(crate) by: [Option<isize>; N],
}

impl<const N: usize> Space<N> {
    /// The domain of operands of the same size, with elements of these sizes in bytes. An error
    /// says in words why there is none.
    pub(crate) fn new(sides: [&Addressing; N], elements: [usize; N]) -> Result<Space<N>, &'static str> {
        let axes = common_axes(sides).ok_or("the shapes have no common refinement")?;
        let non_additive: Vec<DomainAxis<N>> =
            axes.iter().filter(|axis| axis.non_additive.contains(&true)).copied().collect();
        if non_additive.iter().fold(1, |places: usize, axis| places.saturating_mul(axis.extent as usize)) > MAX_PLACES {
            return Err("a map permutes too many places");
        }
        Space::in_bytes(sides, elements, &axes, &non_additive).ok_or("an offset in bytes is not representable")
    }

    fn in_bytes(
        sides: [&Addressing; N],
        elements: [usize; N],
        axes: &[DomainAxis<N>],
        non_additive: &[DomainAxis<N>],
    ) -> Option<Space<N>> {
        let of =
            |side: usize, place: i64| isize::try_from(place).ok()?.checked_mul(isize::try_from(elements[side]).ok()?);
        let bytes = |places: [i64; N]| -> Option<[isize; N]> {
            let mut found = [0; N];
            for (side, (found, place)) in found.iter_mut().zip(places).enumerate() {
                *found = of(side, place)?;
            }
            Some(found)
        };
        let mut first = [0; N];
        for (first, side) in first.iter_mut().zip(sides) {
            *first = side.place(0)?;
        }
        let table = match non_additive {
            [] => vec![[0; N]],
            _ => {
                let places = places(sides, first, non_additive)?;
                places.into_iter().map(bytes).collect::<Option<Vec<_>>>()?
            }
        };
        let first = bytes(first)?;
        let mut origin = first;
        let mut steps = Vec::with_capacity(axes.len());
        for axis in axes.iter().filter(|axis| !axis.non_additive.contains(&true)) {
            let mut step = Step { extent: usize::try_from(axis.extent).ok()?, by: bytes(axis.step)? };
            step.make_forward(&mut origin)?;
            steps.push(step);
        }
        merge(&mut steps);
        let non_additive = non_additive.iter().map(|axis| {
            let mut by = [None; N];
            for side in (0..N).filter(|side| !axis.non_additive[*side]) {
                by[side] = Some(of(side, axis.step[side])?);
            }
            Some(NonAdditive { extent: usize::try_from(axis.extent).ok()?, by })
        });
        let non_additive = non_additive.collect::<Option<Vec<_>>>()?;
        Some(Space { origin, steps, table, non_additive, first })
    }

    /// The domain with the table sorted by the offsets in the written operand.
    pub(crate) fn sorted(mut self) -> Space<N> {
        self.table.sort_unstable_by_key(written_first);
        self
    }
}

impl<const N: usize> Step<N> {
    /// Reverses an axis whose step is negative in the written operand. If that step is 0, the last
    /// operand that moves decides.
    fn make_forward(&mut self, origin: &mut [isize; N]) -> Option<()> {
        if self.by.iter().rev().find(|by| **by != 0).is_none_or(|by| *by > 0) {
            return Some(());
        }
        let last = isize::try_from(self.extent.checked_sub(1)?).ok()?;
        for (origin, by) in origin.iter_mut().zip(&mut self.by) {
            *origin = origin.checked_add(by.checked_mul(last)?)?;
            *by = by.checked_neg()?;
        }
        Some(())
    }

    /// Whether this axis continues where `last` ends, in all operands.
    pub(crate) fn continues(&self, last: &Step<N>) -> bool {
        let end = |by: isize| by.checked_mul(isize::try_from(last.extent).ok()?);
        last.by.iter().zip(self.by).all(|(last, by)| end(*last) == Some(by))
    }

    /// The shortest nonzero step in any operand. Loops with the shortest steps run innermost.
    pub(crate) fn reach(&self) -> usize {
        self.by.iter().filter(|by| **by != 0).map(|by| by.unsigned_abs()).min().unwrap_or(usize::MAX)
    }
}

/// The offsets as a sort key that compares the written operand first.
fn written_first<const N: usize>(places: &[isize; N]) -> [isize; N] {
    let mut places = *places;
    places.reverse();
    places
}

/// Merges axes that continue each other, and sorts them by their steps in the written operand.
fn merge<const N: usize>(steps: &mut Vec<Step<N>>) {
    steps.retain(|step| step.extent > 1);
    // No step is negative in the written operand, so an axis that continues another comes after it.
    steps.sort_by_key(|step| written_first(&step.by));
    let mut count = 0;
    for at in 0..steps.len() {
        let step = steps[at];
        match steps[..count].iter_mut().find(|last| step.continues(last)) {
            Some(last) => last.extent *= step.extent,
            None => {
                steps[count] = step;
                count += 1;
            }
        }
    }
    steps.truncate(count);
}

/// The offsets of axes that are not additive, relative to the first.
fn places<const N: usize>(sides: [&Addressing; N], first: [i64; N], axes: &[DomainAxis<N>]) -> Option<Vec<[i64; N]>> {
    // For each operand: what additive axes add to the offset, and what the others add to the map's
    // argument.
    let mut sums: Vec<[(i64, i64); N]> = vec![[(0, 0); N]];
    for axis in axes {
        let mut more = Vec::with_capacity(sums.len().checked_mul(usize::try_from(axis.extent).ok()?)?);
        for index in 0..axis.extent {
            for sum in &sums {
                let mut moved = *sum;
                for (side, (add, inner)) in moved.iter_mut().enumerate() {
                    let to = if axis.non_additive[side] { inner } else { add };
                    *to = to.checked_add(axis.step[side].checked_mul(index)?)?;
                }
                more.push(moved);
            }
        }
        sums = more;
    }
    let mut places = Vec::with_capacity(sums.len());
    for sum in sums {
        let mut place = [0; N];
        for (number, (add, inner)) in sum.into_iter().enumerate() {
            place[number] = sides[number].place(inner)?.checked_sub(first[number])?.checked_add(add)?;
        }
        places.push(place);
    }
    Some(places)
}
