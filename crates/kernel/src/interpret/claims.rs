//! Indices that clusters claim from the counter of a launch.
//!
//! Law: with C clusters, any cluster may claim any index less than n. Each claims its own in
//! increasing order, and then, once, one from n to n + C - 1. So the counter, which wraps after n +
//! C - 1, is 0 after the launch. Clusters run one after another here, and the schedule decides
//! which indices each would have claimed: equal shares, all by one cluster, or at random. Nothing
//! else is communicated through the counter, so each of these orders may happen on a device.

use super::finding::Defect;
use super::lanes::lanes;
use super::machine::{InterpretedRun, Stop};
use super::schedule::{Order, Random};
use super::warp::Warp;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::operation::Operation;

/// The indices that clusters have claimed.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The value after which the counter wraps.
    last: Option<u64>,
    /// For each cluster, the least index that it may claim next; None after it was told that there
    /// are no more.
    next: Vec<Option<u64>>,
}

impl InterpretedRun<'_> {
    fn clusters(&self) -> u64 {
        self.setup.blocks / u64::from(self.program.cluster_size()).max(1)
    }

    /// The cluster that claims an index below the end.
    fn claimer(&self, number: u64) -> u64 {
        let clusters = self.clusters();
        match self.schedule.order {
            Order::InTurn => number % clusters,
            Order::Backward => clusters - 1,
            Order::Random(seed) => Random::new(seed ^ number << 8).below(clusters),
        }
    }

    /// Each active lane claims the next index of its cluster.
    pub(super) fn claim(&mut self, warp: &mut Warp, place: usize, instruction: &Instruction) -> Result<(), Stop> {
        let output = instruction.outputs[0].index();
        let active = self.active(warp, instruction);
        warp.registers[output] = [0; WARP_LANES];
        for lane in lanes(active) {
            let last = warp.registers[instruction.inputs[1].index()][lane];
            match self.next_claim(last) {
                Ok(number) => warp.registers[output][lane] = number,
                Err(what) => {
                    self.report(Defect::Count { what }, place, Some(warp.thread(lane)))?;
                    return Err(Stop);
                }
            }
        }
        Ok(())
    }

    fn next_claim(&mut self, last: u64) -> Result<u64, &'static str> {
        let (clusters, own) = (self.clusters(), self.current_cluster());
        if *self.claims.last.get_or_insert(last) != last {
            return Err("others say that it begins again after another number");
        }
        let Some(end) = (last + 1).checked_sub(clusters) else {
            return Err("it begins again before each cluster has been told that no number is left");
        };
        if self.claims.next.is_empty() {
            self.claims.next = vec![Some(0); clusters as usize];
        }
        let Some(from) = self.claims.next.get(own as usize).copied().flatten() else {
            return Err("the cluster was told that no number is left, and claims again");
        };
        let found = (from..end).find(|number| self.claimer(*number) == own);
        self.claims.next[own as usize] = found.map(|number| number + 1);
        // From the end on, each cluster claims one index.
        Ok(found.unwrap_or(end + own))
    }

    /// Checks that the counter has the value that it had before the launch.
    pub(super) fn check_count(&mut self) -> Result<(), Stop> {
        let over = self.claims.next.len() as u64 == self.clusters() && self.claims.next.iter().all(Option::is_none);
        if over || !self.program.has(|operation| *operation == Operation::Claim) {
            return Ok(());
        }
        let what = "a cluster ends before it was told that no number is left";
        self.report(Defect::Count { what }, usize::MAX, None)?;
        Err(Stop)
    }
}
