//! What a walk counted, and how iterations of a loop that do the same are multiplied.

use crate::interpret::counts::Tally;
use crate::interpret::lanes::{Lanes, low};
use crate::program::WARP_LANES;

/// The longest period of what a loop carries.
const PERIOD: usize = 12;

/// What one instruction took of its memories, and whether that is the most that it can take.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cost) struct Taken {
    pub(in crate::cost) of: [Tally; 2],
    pub(in crate::cost) at_most: bool,
}

/// Sums over the blocks that were walked.
#[derive(Debug, Clone)]
pub(in crate::cost) struct BlockSums {
    /// Of each node of the program.
    pub(in crate::cost) taken: Vec<Taken>,
    /// How often warps executed each node, at most.
    pub(in crate::cost) executed: Vec<u64>,
    /// The same at least: without the sides of conditions that are not known.
    pub(in crate::cost) surely: Vec<u64>,
    /// Nodes, of all warps.
    pub(in crate::cost) steps: u64,
    /// Whether a condition was not known, so that both sides were walked.
    pub(in crate::cost) both_sides: bool,
    /// Whether iterations of a loop were multiplied.
    pub(in crate::cost) multiplied: bool,
}

impl BlockSums {
    /// Adds what was counted since an earlier state of the nodes from a number on, times
    /// `iterations` over `of`.
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

    /// The sums of some nodes, as they are now.
    pub(super) fn part(&self, from: usize, to: usize) -> BlockSums {
        let (taken, executed) = (self.taken[from..to].to_vec(), self.executed[from..to].to_vec());
        BlockSums { taken, executed, surely: self.surely[from..to].to_vec(), ..*self }
    }
}

/// The shortest period after which what a loop carries has grown by the same each time, and by how
/// much, in each lane. What is not known stays so.
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
