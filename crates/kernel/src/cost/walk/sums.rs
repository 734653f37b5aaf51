//! The counts of a walk, and the extrapolation of loop iterations.

use crate::interpret::counts::Tally;
use crate::interpret::lanes::{Lanes, low};
use crate::program::WARP_LANES;

/// The longest period of loop-carried values.
const PERIOD: usize = 12;

/// The memory traffic of one instruction, and whether it is an upper bound.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cost) struct Taken {
    pub(in crate::cost) of: [Tally; 2],
    pub(in crate::cost) at_most: bool,
}

/// The counts over the walked blocks.
#[derive(Debug, Clone)]
pub(in crate::cost) struct BlockSums {
    /// For each node of the program, its memory traffic.
    pub(in crate::cost) taken: Vec<Taken>,
    /// How often warps executed each node: an upper bound.
    pub(in crate::cost) executed: Vec<u64>,
    /// How often warps executed each node, without bodies whose conditions are unknown: a lower
    /// bound.
    pub(in crate::cost) surely: Vec<u64>,
    /// The number of nodes that all warps executed.
    pub(in crate::cost) steps: u64,
    /// Whether both bodies of a condition were walked because it is unknown.
    pub(in crate::cost) both_sides: bool,
    /// Whether iterations of a loop were extrapolated.
    pub(in crate::cost) multiplied: bool,
}

impl BlockSums {
    /// Adds the counts since an earlier state, for the nodes from an index on, times `iterations`
    /// over `of`.
    pub(super) fn multiply(&mut self, from: usize, before: &BlockSums, iterations: u64, of: u64) {
        let more = |now: u64, before: u64| {
            let more = u128::from(now - before) * u128::from(iterations) / u128::from(of.max(1));
            now.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
        };
        self.multiplied = true;
        self.steps = more(self.steps, before.steps);
        let executed = self.executed[from..].iter_mut().zip(&before.executed);
        for (now, before) in executed.chain(self.surely[from..].iter_mut().zip(&before.surely)) {
            *now = more(*now, *before);
        }
        for (now, before) in self.taken[from..].iter_mut().zip(&before.taken) {
            for (now, before) in now.of.iter_mut().zip(before.of) {
                for (now, before) in now.fields().into_iter().zip(before.clone().fields()) {
                    *now = more(*now, *before);
                }
            }
        }
    }

    /// The current counts of some nodes.
    pub(super) fn part(&self, from: usize, to: usize) -> BlockSums {
        let (taken, executed) = (self.taken[from..to].to_vec(), self.executed[from..to].to_vec());
        BlockSums { taken, executed, surely: self.surely[from..to].to_vec(), ..*self }
    }
}

/// The shortest period after which the loop-carried values have grown by the same amount each time,
/// and that amount in each lane. Unknown values stay unknown.
pub(super) fn growth(states: &[Vec<Option<Lanes>>], widths: &[u32]) -> Option<(usize, Vec<Lanes>)> {
    let last = states.len() - 1;
    (1..=PERIOD).find_map(|period| {
        let grown = |value: usize, at: usize| -> Option<Lanes> {
            let (now, then) = (states[at][value]?, states[at - period][value]?);
            Some(std::array::from_fn(|lane| now[lane].wrapping_sub(then[lane]) & low(widths[value])))
        };
        let mut growth = Vec::new();
        for value in 0..widths.len() {
            let wanted = grown(value, last);
            let known = |at: usize| states[at][value].is_some();
            let as_known = (states.len() / 2..=last).all(|at| known(at) == known(last));
            if !as_known || (states.len() / 2 + period..=last).any(|at| grown(value, at) != wanted) {
                return None;
            }
            growth.push(wanted.unwrap_or([0; WARP_LANES]));
        }
        (states.len() / 2 + period < last).then_some((period, growth))
    })
}
