//! Blocks that are counted by the launch counter, and the order that this creates.
//!
//! Law: blocks are counted one after another, each once. What the thread that counts a block knows
//! is also known to each thread that counts a later one, and to the threads that it synchronizes
//! with. Nothing else orders accesses of two clusters. Clusters run one after another here, so they
//! are counted in the order in which they run, which the schedule chooses; each such order may
//! happen on a device.
//!
//! A thread knows the blocks that were counted up to a number (`clock.rs`). An access by another
//! cluster is ordered before it if one of these blocks knew of the access when it was counted.

use super::clock::{Clock, Event};
use super::finding::Defect;
use super::lanes::lanes;
use super::machine::{InterpretedRun, Stop};
use super::shadow::Foreign;
use super::warp::Warp;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::operation::Operation;

/// A block that was counted.
#[derive(Debug)]
struct Arrival {
    /// The cluster, numbered from 1 in the order of execution, and the rank of the block in it.
    cluster: u64,
    rank: usize,
    /// What its thread knew.
    clock: Clock,
}

/// The blocks that were counted, in order.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    all: Vec<Arrival>,
    /// For each cluster, in the order of execution, the index of its first block in the list.
    first: Vec<usize>,
}

impl Arrivals {
    /// The number of the first counted block of an access's cluster that knew of the access; None
    /// if there is none, so that no later block knows of it.
    pub(super) fn number_of(&self, access: Foreign) -> Option<u32> {
        let from = *self.first.get(access.block.checked_sub(1)? as usize)?;
        let own = self.all[from..].iter().take_while(|arrival| arrival.cluster == access.block);
        let knows = |clock: &[u32]| clock.get(access.event.agent()).is_some_and(|known| *known >= access.event.count());
        (from as u32..).zip(own).find(|(_, arrival)| knows(&arrival.clock)).map(|(number, _)| number)
    }

    /// Begins a cluster.
    pub(super) fn begin(&mut self) {
        self.first.push(self.all.len());
    }
}

impl InterpretedRun<'_> {
    /// Counts the block of each active lane, and returns how many were counted before it.
    pub(super) fn count_block(&mut self, warp: &mut Warp, place: usize, instruction: &Instruction) -> Result<(), Stop> {
        let output = instruction.outputs[0].index();
        let active = self.active(warp, instruction);
        warp.registers[output] = [0; WARP_LANES];
        for lane in lanes(active) {
            let last = warp.registers[instruction.inputs[1].index()][lane];
            let thread = warp.thread(lane);
            match self.arrive_in_grid(thread, warp.rank, last)? {
                Ok(number) => warp.registers[output][lane] = number,
                Err(what) => {
                    self.report(Defect::Count { what }, place, Some(thread))?;
                    return Err(Stop);
                }
            }
        }
        Ok(())
    }

    fn arrive_in_grid(&mut self, thread: usize, rank: usize, last: u64) -> Result<Result<u64, &'static str>, Stop> {
        if last + 1 != self.setup.blocks {
            return Ok(Err("it begins again after another number than there are blocks"));
        }
        let cluster = self.block.number;
        let own = self.arrivals.all.iter().rev().take_while(|arrival| arrival.cluster == cluster);
        if own.into_iter().any(|arrival| arrival.rank == rank) {
            return Ok(Err("a block is counted twice"));
        }
        let clock = self.block.clocks.release(std::iter::once(thread));
        let clock = self.counted(clock)?;
        self.arrivals.all.push(Arrival { cluster, rank, clock });
        let count = self.arrivals.all.len();
        self.block.clocks.know_arrivals(thread, count as u32);
        Ok(Ok(count as u64 - 1))
    }

    /// Checks that each block was counted, if the kernel counts blocks.
    pub(super) fn check_arrivals(&mut self) -> Result<(), Stop> {
        let all = self.arrivals.all.len() as u64 == self.setup.blocks;
        if all || !self.program.has(|operation| *operation == Operation::CountBlock) {
            return Ok(());
        }
        let what = "a block ends without being counted";
        self.report(Defect::Count { what }, usize::MAX, None)?;
        Err(Stop)
    }

    /// Whether an access by another cluster is ordered before what a thread does now.
    pub(super) fn passed_on(&self, access: Foreign, thread: usize) -> bool {
        let known = self.block.clocks.known_arrivals(thread);
        known > 0 && self.arrivals.number_of(access).is_some_and(|number| number < known)
    }
}

/// Accesses of one kind by earlier clusters: one that no later block knows of; and the last one
/// that is known, with the arrival that publishes it. A block that knows of the last one knows of
/// all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Others {
    untold: Foreign,
    told: Foreign,
    number: u32,
}

impl Others {
    /// Adds an access of a cluster that has finished.
    pub(super) fn add(&mut self, access: Foreign, arrivals: &Arrivals) {
        match arrivals.number_of(access) {
            None => self.untold = access,
            Some(number) if number >= self.number || self.told.event == Event::NONE => {
                (self.told, self.number) = (access, number);
            }
            Some(_) => {}
        }
    }

    /// An access that is not ordered before what a thread does that knows of `known` arrivals.
    pub(super) fn unordered(&self, known: u32) -> Option<Foreign> {
        let open = self.told.event.is_some() && self.number >= known;
        [(self.untold.event.is_some(), self.untold), (open, self.told)]
            .into_iter()
            .find_map(|(conflicts, access)| conflicts.then_some(access))
    }
}
