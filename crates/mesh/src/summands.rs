//! Summands of two layouts.
//!
//! Law: a digit of the index of a summand that has the same step along the same axis in both
//! layouts is *kept*: the summands stay separate along it. The summands along a digit of the first
//! layout that is not kept are *added*. A digit of the second layout that is not kept is *new*: the
//! sum is at its position 0, and zeros are at the other positions. Whichever digits are kept, the
//! total is the same.

use crate::held::Held;
use crate::sharded::{MeshMode, ShardedLayout};

/// A digit of the index in a mode: the mode, the size of the mode below it, and its extent.
#[derive(Debug, Clone, Copy)]
struct ModeDigit {
    mode: usize,
    below: i64,
    extent: i64,
}

/// The digits of the summands of two layouts.
#[derive(Debug, Clone)]
pub(crate) struct Summands {
    kept: Vec<(ModeDigit, ModeDigit)>,
    added: Vec<ModeDigit>,
    new: Vec<ModeDigit>,
}

impl Summands {
    pub fn of(from: &ShardedLayout, to: &ShardedLayout) -> Summands {
        let mut kept: Vec<(ModeDigit, ModeDigit)> = Vec::new();
        for (i, a) in from.sums.iter().enumerate() {
            for (j, b) in to.sums.iter().enumerate().filter(|(_, b)| b.axis == a.axis) {
                let (low, high) = (a.step.max(b.step), (a.step * a.extent).min(b.step * b.extent));
                let even = |mode: &MeshMode| low % mode.step == 0 && mode.step * mode.extent % high == 0;
                if low < high && high % low == 0 && even(a) && even(b) {
                    let part =
                        |mode: usize, own: &MeshMode| ModeDigit { mode, below: low / own.step, extent: high / low };
                    kept.push((part(i, a), part(j, b)));
                }
            }
        }
        let rest = |modes: &[MeshMode], own: &dyn Fn(&(ModeDigit, ModeDigit)) -> ModeDigit| {
            let mut rest = Vec::new();
            for (mode, all) in modes.iter().enumerate() {
                let mut parts: Vec<ModeDigit> = kept.iter().map(own).filter(|part| part.mode == mode).collect();
                parts.sort_by_key(|part| part.below);
                let mut below = 1;
                let end = ModeDigit { mode, below: all.extent, extent: 1 };
                for part in parts.into_iter().chain([end]) {
                    if below < part.below {
                        rest.push(ModeDigit { mode, below, extent: part.below / below });
                    }
                    below = part.below * part.extent;
                }
            }
            rest
        };
        let added = rest(&from.sums, &|pair| pair.0);
        let new = rest(&to.sums, &|pair| pair.1);
        Summands { kept, added, new }
    }

    /// The number of summands that are added into one.
    pub fn added(&self) -> i64 {
        self.added.iter().map(|part| part.extent).product()
    }

    /// The number of new summands into which each one is split: one of them is the sum, and the
    /// others are zero.
    pub fn split(&self) -> i64 {
        self.new.iter().map(|part| part.extent).product()
    }

    /// Whether a device holds only zeros in the second layout.
    pub fn is_zero(&self, to: &Held) -> bool {
        let at = |part: &ModeDigit| to.sums.get(part.mode).map_or(0, |index| index / part.below % part.extent);
        self.new.iter().any(|part| at(part) != 0)
    }

    /// The summand of the first layout with the number `index` among those that a device adds:
    /// writes its index in each of its modes to `sums`.
    pub fn summand(&self, index: i64, to: &Held, sums: &mut [i64]) {
        sums.fill(0);
        let mut add = |part: &ModeDigit, at: i64| {
            sums.iter_mut().skip(part.mode).take(1).for_each(|sum| *sum += at * part.below);
        };
        for (from, own) in &self.kept {
            let at = to.sums.get(own.mode).map_or(0, |index| index / own.below % own.extent);
            add(from, at);
        }
        let mut rest = index;
        for part in &self.added {
            add(part, rest % part.extent);
            rest /= part.extent;
        }
    }
}
