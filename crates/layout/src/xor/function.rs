//! From the values of a function to the modes of XOR strides that have them.
//!
//! # Law
//!
//! A function `h` on `0 .. n` is that of a layout with XOR strides exactly when [`modes`] finds it,
//! and the modes found are coalesced, so there is only one such list (see [`crate::xor`]). Let
//! `d = h(1)` and let `p` be the first index with `h(p) != p * d`; if there is none, `n:^d` is all.
//! The first extent `t` of a coalesced layout is at most `p`; and if it is less, the next stride is
//! `t * d`, so that `t` is no power of two and the layout breaks at `t + a`, where `a` is the
//! lowest bit of `t`. So `t` is `p`, or `p - 2^j` with that lowest bit. Of these few, one at the
//! most divides `n` and has `h(i) = h(i mod t) + h(i - i mod t)` throughout: that is what the proof
//! of uniqueness shows. What is left is `h` at the multiples of `t`.
//!
//! Every value is looked at, so functions of more than [`MAX_XOR_VALUES`] values are only refuted
//! here, by the first of them.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::limits::MAX_XOR_VALUES;
use crate::xor::product;

/// Extents and strides of modes, the first one fastest.
pub(crate) type XorModes = SmallVec<[(u64, u64); 8]>;

/// What the values of a function say.
pub(crate) enum FunctionShape {
    /// These coalesced modes have them.
    Modes(XorModes),
    /// No layout with XOR strides has them: at `index` the value is `value`, where a mode that
    /// begins as they do has `steps`.
    Break { index: u64, value: u64, steps: u64 },
    /// There are too many, and the first of them do not decide.
    Open,
}

/// The modes of a function on `0 .. size`; `None` when a value is not representable.
pub(crate) fn modes(size: u64, value: impl Fn(u64) -> Option<u64>) -> Option<FunctionShape> {
    let known = (0..size.min(MAX_XOR_VALUES)).map(value).collect::<Option<Vec<u64>>>()?;
    let mut found = XorModes::new();
    let (mut begin, mut count) = (1, size);
    while count > 1 {
        let part = FunctionPart { known: &known, begin, count };
        let step = part.at(1)?;
        let Some((at, value)) = part.first_break(step) else {
            if part.seen() < count {
                return Some(FunctionShape::Open);
            }
            found.push((count, step));
            break;
        };
        let Some(extent) = part.first_extent(at, step) else {
            let steps = product(at, step).unwrap_or(u64::MAX);
            return Some(FunctionShape::Break { index: at * begin, value, steps });
        };
        if part.seen() < count {
            return Some(FunctionShape::Open);
        }
        found.push((extent, step));
        begin *= extent;
        count /= extent;
    }
    Some(FunctionShape::Modes(found))
}

/// The values at the multiples of `begin`, of which there are `count`, as far as they are known.
struct FunctionPart<'a> {
    known: &'a [u64],
    begin: u64,
    count: u64,
}

impl FunctionPart<'_> {
    fn at(&self, index: u64) -> Option<u64> {
        self.known.get(usize::try_from(index.checked_mul(self.begin)?).ok()?).copied()
    }

    /// How many values are known.
    fn seen(&self) -> u64 {
        (self.known.len() as u64).div_ceil(self.begin).min(self.count)
    }

    /// The first index at which the value is not that of steps `step`, and the value.
    fn first_break(&self, step: u64) -> Option<(u64, u64)> {
        (2..self.seen()).find_map(|index| {
            let value = self.at(index)?;
            (product(index, step) != Some(value)).then_some((index, value))
        })
    }

    /// The first extent of the coalesced modes, if the values that are known allow one.
    fn first_extent(&self, at: u64, step: u64) -> Option<u64> {
        let shorter = (0..at.trailing_zeros()).map(|bit| at - (1 << bit));
        let shorter = shorter.filter(|extent| step != 0 && !extent.is_power_of_two());
        core::iter::once(at).chain(shorter).find(|extent| self.count.is_multiple_of(*extent) && self.adds_up(*extent))
    }

    /// Whether each value is that at the beginning of its block of `extent`, plus that at its place
    /// in the first block.
    fn adds_up(&self, extent: u64) -> bool {
        (extent..self.seen()).all(|index| {
            let place = index % extent;
            match (self.at(index), self.at(place), self.at(index - place)) {
                (Some(value), Some(inner), Some(outer)) => value == inner ^ outer,
                _ => false,
            }
        })
    }
}
