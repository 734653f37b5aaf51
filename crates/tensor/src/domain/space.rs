//! A domain in bytes: additive axes merged as far as they go, and the places of the others as a table.
//!
//! Law: the steps and the table together visit every index once, with the place of its element on each side: the sum of the origin, of a line of the table, and of
//! `by` times a position for every step.
//!
//! The order of the index is free, so that two axes are one where the second goes on where the first ends, on all sides, wherever they are in it; and backwards is
//! forwards from the other end.

use super::addressing::Addressing;
use super::axes::{Axis, digits};

/// The most places in a table.
const MAX_PLACES: usize = 1 << 12;

/// An additive axis: its extent, and the bytes that a step adds on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step<const N: usize> {
    pub(crate) extent: usize,
    pub(crate) by: [isize; N],
}

/// The common domain of `N` sides, of which the last one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space<const N: usize> {
    /// The place of the first element on each side.
    pub(crate) origin: [isize; N],
    /// The additive axes, those with short steps on the written side first.
    pub(crate) steps: Vec<Step<N>>,
    /// The places of the axes that are not, beside the origin, those of the first axis next to each other; a single one, at 0, if there are none.
    pub(crate) table: Vec<[isize; N]>,
    /// These axes.
    pub(crate) tangled: Vec<Tangled<N>>,
    /// The place on each side of what is first in the order of the index.
    pub(crate) first: [isize; N],
}

/// An axis that is not additive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tangled<const N: usize> {
    pub(crate) extent: usize,
    /// The bytes that a step adds on each side; none where the map decides.
    pub(crate) by: [Option<isize>; N],
}

impl<const N: usize> Space<N> {
    /// The domain of sides of one size, with elements of so many bytes; in words why there is none.
    pub(crate) fn new(sides: [&Addressing; N], elements: [usize; N]) -> Result<Space<N>, &'static str> {
        let axes = digits(sides).ok_or("the shapes have no common refinement")?;
        let tangled: Vec<Axis<N>> = axes.iter().filter(|axis| axis.tangled.contains(&true)).copied().collect();
        if tangled.iter().fold(1, |places: usize, axis| places.saturating_mul(axis.extent as usize)) > MAX_PLACES {
            return Err("too many places are moved about by a map");
        }
        Space::in_bytes(sides, elements, &axes, &tangled).ok_or("an offset in bytes is not representable")
    }

    fn in_bytes(
        sides: [&Addressing; N],
        elements: [usize; N],
        axes: &[Axis<N>],
        tangled: &[Axis<N>],
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
        let table = match tangled {
            [] => vec![[0; N]],
            _ => {
                let places = places(sides, first, tangled)?;
                places.into_iter().map(bytes).collect::<Option<Vec<_>>>()?
            }
        };
        let first = bytes(first)?;
        let mut origin = first;
        let mut steps = Vec::with_capacity(axes.len());
        for axis in axes.iter().filter(|axis| !axis.tangled.contains(&true)) {
            let mut step = Step { extent: usize::try_from(axis.extent).ok()?, by: bytes(axis.step)? };
            step.turn(&mut origin)?;
            steps.push(step);
        }
        merge(&mut steps);
        let tangled = tangled.iter().map(|axis| {
            let mut by = [None; N];
            for side in (0..N).filter(|side| !axis.tangled[*side]) {
                by[side] = Some(of(side, axis.step[side])?);
            }
            Some(Tangled { extent: usize::try_from(axis.extent).ok()?, by })
        });
        let tangled = tangled.collect::<Option<Vec<_>>>()?;
        Some(Space { origin, steps, table, tangled, first })
    }

    /// The same with the table in the order of the written side.
    pub(crate) fn sorted(mut self) -> Space<N> {
        self.table.sort_unstable_by_key(backwards);
        self
    }
}

impl<const N: usize> Step<N> {
    /// Forwards on the written side, or where that does not move, on the last one that does.
    fn turn(&mut self, origin: &mut [isize; N]) -> Option<()> {
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

    /// Whether this axis goes on where `last` ends.
    pub(crate) fn goes_on(&self, last: &Step<N>) -> bool {
        let end = |by: isize| by.checked_mul(isize::try_from(last.extent).ok()?);
        last.by.iter().zip(self.by).all(|(last, by)| end(*last) == Some(by))
    }

    /// How near the next position is, on the side where it is nearest: loops run with the least reach innermost. A side that stays where it is does not count.
    pub(crate) fn reach(&self) -> usize {
        self.by.iter().filter(|by| **by != 0).map(|by| by.unsigned_abs()).min().unwrap_or(usize::MAX)
    }
}

/// The written side first.
fn backwards<const N: usize>(places: &[isize; N]) -> [isize; N] {
    let mut places = *places;
    places.reverse();
    places
}

/// Makes axes that go on where another ends one with it, and sorts them by their steps on the written side.
fn merge<const N: usize>(steps: &mut Vec<Step<N>>) {
    steps.retain(|step| step.extent > 1);
    // All go forwards, so that whoever goes on comes later.
    steps.sort_by_key(|step| backwards(&step.by));
    let mut count = 0;
    for at in 0..steps.len() {
        let step = steps[at];
        match steps[..count].iter_mut().find(|last| step.goes_on(last)) {
            Some(last) => last.extent *= step.extent,
            None => {
                steps[count] = step;
                count += 1;
            }
        }
    }
    steps.truncate(count);
}

/// The places of axes that are not additive, beside the first.
fn places<const N: usize>(sides: [&Addressing; N], first: [i64; N], axes: &[Axis<N>]) -> Option<Vec<[i64; N]>> {
    // On each side, what additive axes add to the place, and what the others add to what the map takes.
    let mut sums: Vec<[(i64, i64); N]> = vec![[(0, 0); N]];
    for axis in axes {
        let mut more = Vec::with_capacity(sums.len().checked_mul(usize::try_from(axis.extent).ok()?)?);
        for index in 0..axis.extent {
            for sum in &sums {
                let mut moved = *sum;
                for (side, (add, inner)) in moved.iter_mut().enumerate() {
                    let to = if axis.tangled[side] { inner } else { add };
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
