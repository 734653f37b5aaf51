//! Computes the modes of a layout with XOR strides from the values of a function.
//!
//! # Law
//!
//! A function `h` on `0 .. n` is that of a layout with XOR strides exactly when [`modes`] finds it,
//! and the modes found are coalesced, so there is only one such list (see [`crate::xor`]). Let
//! `d = h(1)` and let `p` be the first index with `h(p) != p * d`; if there is none, `n:^d` is all.
//! The first extent `t` of a coalesced layout is at most `p`; and if it is less, the next stride is
//! `t * d`, so that `t` is no power of two and the layout breaks at `t + a`, where `a` is the
//! lowest bit of `t`. So `t` is `p`, or `p - 2^j` with that lowest bit. Of these candidates, at
//! most one divides `n` and has `h(i) = h(i mod t) + h(i - i mod t)` for every `i`: this follows
//! from the proof of uniqueness. The remaining modes are those of `h` at the multiples of `t`.
//!
//! Every value is evaluated. So a function of more than [`MAX_XOR_VALUES`] values can only be
//! refuted, by the first of its values.

use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::limits::MAX_XOR_VALUES;
use crate::xor::product;

/// Extents and strides of modes, the first one fastest.
pub(crate) type XorModes = SmallVec<[(u64, u64); 8]>;

/// The conclusion from the values of a function.
pub(crate) enum FunctionShape {
    /// These coalesced modes have them.
    Modes(XorModes),
    /// No layout with XOR strides has them: at `index` the value is `value`, but a mode with the
    /// same first values has `steps`.
    Break { index: u64, value: u64, steps: u64 },
    /// There are too many values, and the first of them do not decide.
    Open,
}

/// The modes of a function on `0 .. size`; None if a value is not representable.
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

/// The function at the `count` multiples of `begin`, as far as its values are known.
struct FunctionPart<'a> {
    known: &'a [u64],
    begin: u64,
    count: u64,
}

impl FunctionPart<'_> {
    fn at(&self, index: u64) -> Option<u64> {
        self.known.get(usize::try_from(index.checked_mul(self.begin)?).ok()?).copied()
    }

    /// The number of known values.
    fn seen(&self) -> u64 {
        (self.known.len() as u64).div_ceil(self.begin).min(self.count)
    }

    /// The first index at which the value is not that many steps `step`, and the value there.
    fn first_break(&self, step: u64) -> Option<(u64, u64)> {
        (2..self.seen()).find_map(|index| {
            let value = self.at(index)?;
            (product(index, step) != Some(value)).then_some((index, value))
        })
    }

    /// The first extent of the coalesced modes; None if the known values do not allow one.
    fn first_extent(&self, at: u64, step: u64) -> Option<u64> {
        let shorter = (0..at.trailing_zeros()).map(|bit| at - (1 << bit));
        let shorter = shorter.filter(|extent| step != 0 && !extent.is_power_of_two());
        core::iter::once(at).chain(shorter).find(|extent| self.count.is_multiple_of(*extent) && self.adds_up(*extent))
    }

    /// Whether each value is the value at the beginning of its block of `extent`, plus the value at
    /// the same position of the first block.
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
