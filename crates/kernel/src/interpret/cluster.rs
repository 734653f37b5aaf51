//! Clusters: blocks that run together and access each other's shared memory.
//!
//! Law: a thread that leaves the cluster barrier knows everything that all arriving threads had
//! done and knew; exited threads are not waited for. The shared memory of a block exists from when
//! the block is known to have started until its last thread exits: each access from another block
//! must be ordered after some event of a thread of the block, and before the exit of one of its
//! threads.

use super::access::addresses;
use super::barriers::OBJECT;
use super::clock::{Agent, Clock, Event, joined};
use super::finding::{Defect, Place};
use super::lanes::lanes;
use super::machine::{InterpretedRun, Stop};
use super::touch::{Actor, Memory, Span};
use super::warp::{State, Warp};
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::memory::{Access, BufferId, Space};

/// An access to the shared memory of another block.
#[derive(Debug)]
pub(super) struct RemoteUse {
    event: Event,
    /// The thread that made or issued it.
    by: Actor,
    of: Place,
}

/// The state of the cluster barrier.
#[derive(Debug)]
pub(super) struct Gathering {
    /// The warps that have arrived in this phase.
    arrived: Vec<bool>,
    /// The warps that have exited.
    ended: Vec<bool>,
    /// The number of completed phases.
    phase: u32,
    arriving: Clock,
    released: Clock,
}

impl Gathering {
    pub(super) fn new(warps: usize) -> Gathering {
        let nothing: Clock = Clock::from([]);
        let none = vec![false; warps];
        Gathering { arrived: none.clone(), ended: none, phase: 0, arriving: Clock::clone(&nothing), released: nothing }
    }

    /// A warp has exited.
    pub(super) fn end(&mut self, warp: usize) {
        self.ended[warp] = true;
        self.end_phase();
    }

    /// Completes the phase if some warp has arrived, and none is missing.
    fn end_phase(&mut self) {
        let all = self.arrived.iter().zip(&self.ended).all(|(arrived, ended)| *arrived || *ended);
        if all && self.arrived.contains(&true) {
            self.phase += 1;
            self.arrived.fill(false);
            self.released = std::mem::replace(&mut self.arriving, Clock::from([]));
        }
    }
}

impl InterpretedRun<'_> {
    /// The rank of a thread's block.
    pub(super) fn rank_of(&self, thread: usize) -> usize {
        thread / self.setup.padded
    }

    /// The index of a thread in its block.
    pub(super) fn in_block(&self, thread: usize) -> u32 {
        (thread % self.setup.padded) as u32
    }

    /// The rank of a block, if the cluster has several blocks.
    pub(super) fn rank_named(&self, rank: usize) -> Option<u32> {
        (self.program.cluster_size() > 1).then_some(rank as u32)
    }

    /// A buffer, as a thread accesses it.
    pub(super) fn own(&self, buffer: BufferId, thread: usize) -> Memory {
        Memory { buffer, rank: self.rank_of(thread) }
    }

    /// The address of a byte of a shared array in the shared memory of the cluster.
    pub(super) fn shared_at(&self, memory: Memory, address: i64) -> u64 {
        let start = i64::from(self.program.buffer(memory.buffer).start);
        (address + start) as u64 + (memory.rank * self.setup.shared_bytes) as u64
    }

    /// A warp arrives at the cluster barrier.
    pub(super) fn arrive_at_cluster(&mut self, warp: &mut Warp, place: usize) -> Result<(), Stop> {
        let first = warp.thread(warp.mask.trailing_zeros() as usize % WARP_LANES);
        if warp.mask != warp.exists {
            let missing = warp.threads(warp.exists & !warp.mask).map(|thread| self.in_block(thread)).collect();
            let expected = self.program.threads * self.program.cluster_size();
            self.report(Defect::BarrierNotReached { missing, expected }, place, Some(first))?;
            return Err(Stop);
        }
        if warp.arrived.is_some() {
            let what = "a thread arrives again before it has waited";
            self.report(Defect::ClusterBarrier { what }, place, Some(first))?;
            return Err(Stop);
        }
        let clock = self.block.clocks.release(warp.threads(warp.exists));
        let clock = self.counted(clock)?;
        let gathering = &mut self.block.gathering;
        gathering.arriving = joined(&gathering.arriving, &clock);
        gathering.arrived[warp.number] = true;
        warp.arrived = Some(gathering.phase);
        gathering.end_phase();
        Ok(())
    }

    /// A warp waits at the cluster barrier.
    pub(super) fn wait_for_cluster(&mut self, warp: &mut Warp, place: usize) -> Result<State, Stop> {
        if warp.mask != warp.exists || warp.arrived.is_none() {
            let what =
                if warp.arrived.is_none() { "a thread waits that has not arrived" } else { "a part of a warp waits" };
            self.report(Defect::ClusterBarrier { what }, place, Some(warp.thread(0)))?;
            return Err(Stop);
        }
        warp.state = State::Cluster { place };
        self.leave_cluster_barrier(warp);
        Ok(warp.state)
    }

    /// A waiting warp proceeds if the phase has completed.
    pub(super) fn leave_cluster_barrier(&mut self, warp: &mut Warp) {
        let gathering = &self.block.gathering;
        if warp.arrived.is_none_or(|phase| gathering.phase > phase) {
            let clock = Clock::clone(&gathering.released);
            self.block.clocks.acquire(warp.threads(warp.exists), &clock);
            warp.arrived = None;
            warp.state = State::Ready;
        }
    }

    /// The warps that are missing at the cluster barrier, as text.
    pub(super) fn gathering_text(&self) -> String {
        let gathering = &self.block.gathering;
        let come = gathering.arrived.iter().filter(|arrived| **arrived).count();
        let alive = gathering.ended.iter().filter(|ended| !**ended).count();
        format!("at the barrier of the cluster, at which {come} of {alive} warps have arrived")
    }

    /// The ranks that an instruction names in each lane. A rank that the cluster does not have is a
    /// finding.
    pub(super) fn ranks(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        input: usize,
    ) -> Result<[usize; WARP_LANES], Stop> {
        let ranks = warp.registers[instruction.inputs[input].index()].map(|rank| rank as u32);
        for lane in lanes(self.active(warp, instruction)) {
            if ranks[lane] >= self.program.cluster_size() {
                let of = self.place(access.buffer, access.offset, access.bytes().into());
                let defect = Defect::Lifetime { place: of, rank: ranks[lane], ended: false };
                self.report(defect, place, Some(warp.thread(lane)))?;
                return Err(Stop);
            }
        }
        Ok(ranks.map(|rank| rank as usize))
    }

    /// Records that a thread accesses shared memory of another block, and checks that that block is
    /// known to have started.
    pub(super) fn remember_use(&mut self, by: Actor, span: &Span, event: Event) -> Result<(), Stop> {
        let memory = span.memory;
        if self.program.cluster_size() == 1 || self.program.buffer(memory.buffer).space != Space::Shared {
            return Ok(());
        }
        let rank = memory.rank;
        let begin = rank * self.setup.padded;
        let own = self.rank_of(by.thread) == rank;
        if !own && !self.block.clocks.knows_any(by.thread, begin..begin + self.setup.padded) {
            let place = self.place_of(span);
            self.report_by(by, Defect::Lifetime { place, rank: rank as u32, ended: false })?;
        }
        // Asynchronous work that a thread of the block waits for ends before the block does, or is
        // reported elsewhere.
        let user = match self.block.clocks.agent(event.agent()) {
            Agent::Thread(thread) | Agent::Work(thread, _) => self.rank_of(thread),
            Agent::Load(object) => self.block.objects[object].rank,
            Agent::Launches | Agent::Grid => rank,
        };
        if user == rank {
            return Ok(());
        }
        let key = (rank, event.agent());
        if self.block.uses.get(&key).is_none_or(|known| known.event.count() < event.count()) {
            let of = self.place_of(span);
            self.block.uses.insert(key, RemoteUse { event, by, of });
        }
        Ok(())
    }

    /// Checks that a block does not exit while another block accesses its shared memory: one of its
    /// threads must know of the access.
    pub(super) fn check_uses(&mut self) -> Result<(), Stop> {
        for ((rank, _), RemoteUse { event, by, of }) in std::mem::take(&mut self.block.uses) {
            let begin = rank * self.setup.padded;
            let mut threads = begin..begin + self.program.threads as usize;
            if !threads.any(|own| self.block.clocks.ordered(event, own)) {
                self.report_by(by, Defect::Lifetime { place: of, rank: rank as u32, ended: true })?;
            }
        }
        Ok(())
    }

    /// Arrivals at mbarriers of other blocks of the cluster.
    pub(super) fn arrive_elsewhere(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        releases: bool,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let addresses = addresses(warp, instruction, access, false, &mut input);
        let ranks = self.ranks(warp, place, instruction, access, input)?;
        for lane in lanes(self.active(warp, instruction)) {
            let thread = warp.thread(lane);
            let by = Actor { place, thread };
            let memory = Memory { buffer: access.buffer, rank: ranks[lane] };
            let event = self.block.clocks.reading(thread, place);
            self.remember_use(by, &Span { memory, address: addresses[lane], bytes: OBJECT }, event)?;
            let at = self.object(by, memory, addresses[lane], false)?;
            let clock = match releases {
                true => self.block.clocks.release(std::iter::once(thread)),
                false => self.block.clocks.release_reads(thread),
            };
            let clock = self.counted(clock)?;
            self.arrival(by, at, &clock, 0)?;
        }
        Ok(())
    }
}
