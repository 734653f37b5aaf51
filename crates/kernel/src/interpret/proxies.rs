//! Global memory that both threads and TMA access.
//!
//! Law: global memory that a bulk copy reads or overwrites must not have been written by an
//! ordinary store or an atomic operation, by `cp.async`, or by a bulk copy of another block, unless
//! there is a fence for global memory in between. A thread of the block that issues the bulk copy
//! must execute the fence, knowing of the write, and the issuing thread must know of the fence.
//!
//! PTX has accesses of two kinds, the generic proxy and the async proxy; each block has its own
//! async proxy. An access in one proxy is ordered before an access in another only by a proxy fence
//! between them, in the block of the access that is not generic. In the other direction no fence is
//! needed: the completion of a bulk copy, once it is known, acts as such a fence, and a load cannot
//! be affected afterwards. A launch comes after the previous one in all proxies.

use super::clock::{Agent, Event, Work};
use super::finding::Defect;
use super::machine::{InterpretedRun, Stop};
use super::shadow::{Conflict, Foreign};
use super::touch::Touch;

impl InterpretedRun<'_> {
    /// Whether an access is one of TMA.
    pub(super) fn is_asynchronous(&self, event: Event) -> bool {
        matches!(self.block.clocks.agent(event.agent()), Agent::Load(_) | Agent::Work(_, Work::StoreWrite))
    }

    /// The threads of the block that issues an access.
    fn block_of_access(&self, touch: &Touch) -> std::ops::Range<usize> {
        let first = self.rank_of(touch.by.thread) * self.setup.padded;
        first..first + self.setup.padded
    }

    /// Whether a write by the cluster that is ordered before an access of TMA is unordered between
    /// their proxies.
    fn crosses(&self, write: Event, touch: &Touch) -> bool {
        let block = self.block_of_access(touch);
        let same = match self.block.clocks.agent(write.agent()) {
            Agent::Work(writer, Work::StoreWrite) => block.contains(&writer),
            _ => false,
        };
        !same && !self.block.clocks.fences_known(touch.by.thread, block).iter().any(|fence| fence.covers(write))
    }

    /// The number of counted blocks that a thread knew of when it executed a fence before an
    /// access.
    fn fenced_arrivals(&self, touch: &Touch) -> u32 {
        let clocks = &self.block.clocks;
        let fences = clocks.fences_known(touch.by.thread, self.block_of_access(touch));
        fences.into_iter().map(|fence| clocks.arrivals_at(fence)).max().unwrap_or(0)
    }

    /// Whether an access of TMA may not see a write to a cell of an output, by some block.
    pub(super) fn crosses_output(&self, write: Foreign, touch: &Touch) -> bool {
        match write.block == self.block.number {
            true => self.crosses(write.event, touch),
            false => self.arrivals.number_of(write).is_none_or(|number| number >= self.fenced_arrivals(touch)),
        }
    }

    /// A write to cells of a tensor that is read and written that an access of TMA may not see.
    pub(super) fn crossed(&mut self, touch: &Touch) -> Option<Conflict> {
        let (cells, block) = (self.global_cells(&touch.span), self.block.number);
        let buffer = touch.span.memory.buffer.index();
        let fenced = self.fenced_arrivals(touch);
        let mut groups = std::mem::take(&mut self.groups);
        let mut history = std::mem::take(&mut self.globals[buffer].cells);
        let found = history[cells].iter_mut().find_map(|cell| {
            let known = |write: Event| self.block.clocks.ordered(write, touch.by.thread);
            let crosses = |write: Event| known(write) && self.crosses(write, touch);
            groups.crossed(cell, crosses, fenced, (block, &self.arrivals))
        });
        self.groups = groups;
        self.globals[buffer].cells = history;
        found
    }

    pub(super) fn report_crossed(&mut self, touch: &Touch, write: Foreign) -> Result<(), Stop> {
        let (place, before) = (self.place_of(&touch.span), self.foreign_party(write));
        self.report_by(touch.by, Defect::Unfenced { place, before, global: true })
    }
}
