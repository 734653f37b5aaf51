//! Barriers: of the block, of the warp, and mbarriers in shared memory.
//!
//! Law: a thread that leaves a barrier knows everything that all arriving threads had done and
//! knew. An mbarrier completes a phase when its count of arrivals is reached and no more bytes are
//! expected; bytes may arrive before they are expected. A wait for parity `p` proceeds when the
//! current phase has the other parity.

use super::access::addresses;
use super::clock::{Clock, Event, MAX_AGENTS, joined};
use super::code::Node;
use super::finding::{Defect, Place};
use super::lanes::lanes;
use super::machine::{InterpretedRun, Stop};
use super::phases::Phases;
use super::touch::{AccessKind, Actor, Memory, Span, Touch};
use super::warp::{State, Warp};
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::memory::{Access, BufferId};
use crate::program::operation::Fence;

/// Bytes of an mbarrier.
pub(super) const OBJECT: u64 = 8;

/// The limit of the absolute value of an mbarrier's tx-count.
const MAX_EXPECTED: i64 = 1 << 20;

/// The arrivals at one of the barriers of the block.
#[derive(Debug, Clone, Default)]
pub(super) struct Rendezvous {
    /// The warps that wait.
    arrived: Vec<usize>,
    /// The knowledge of threads that arrived without waiting.
    early: Option<Clock>,
    came: u32,
    expected: u32,
    /// The node at which the last one arrived.
    place: usize,
}

/// An mbarrier in shared memory.
#[derive(Debug)]
pub(super) struct Object {
    buffer: BufferId,
    /// The rank of its block.
    pub(super) rank: usize,
    address: i64,
    /// Its first byte in the shared memory of the cluster.
    first: u64,
    /// The number of arrivals of a phase.
    count: u32,
    /// The number of pending arrivals.
    pending: u32,
    /// The number of pending bytes.
    pub(super) expects: i64,
    /// The number of completed phases.
    pub(super) phase: u32,
    init: Event,
    /// The knowledge of the threads that arrived in this phase.
    arriving: Clock,
    /// The knowledge of the threads that arrived in the last phase.
    released: Clock,
    /// The last bulk load: the count of its event, and the thread that issued it.
    pub(super) last_load: Option<(u32, Actor)>,
    /// The waits for its phases and the arrivals in them.
    pub(super) phases: Phases,
    /// The node at which it was initialised.
    place: usize,
}

impl Object {
    /// Whether it overlaps these bytes.
    pub(super) fn meets(&self, first: u64, bytes: u64) -> bool {
        first < self.first + OBJECT && self.first < first + bytes
    }
}

impl InterpretedRun<'_> {
    /// A warp arrives at a barrier of the block, and waits.
    pub(super) fn arrive(&mut self, warp: &Warp, place: usize, number: usize, threads: u32) -> Result<State, Stop> {
        self.come(warp, place, number, threads)?;
        self.block.rendezvous[warp.rank][number].arrived.push(warp.number);
        Ok(State::Barrier { number, place })
    }

    /// A warp arrives at a barrier of the block without waiting.
    pub(super) fn arrive_early(&mut self, warp: &Warp, place: usize, number: usize, threads: u32) -> Result<(), Stop> {
        self.come(warp, place, number, threads)?;
        let clock = self.block.clocks.release(warp.threads(warp.exists));
        let clock = self.counted(clock)?;
        let rendezvous = &mut self.block.rendezvous[warp.rank][number];
        rendezvous.early = Some(match rendezvous.early.take() {
            Some(early) => joined(&early, &clock),
            None => clock,
        });
        Ok(())
    }

    /// Records the arrival of a warp at a barrier of the block.
    fn come(&mut self, warp: &Warp, place: usize, number: usize, threads: u32) -> Result<(), Stop> {
        let first = warp.thread(warp.mask.trailing_zeros() as usize % WARP_LANES);
        if warp.mask != warp.exists {
            let missing = warp.threads(warp.exists & !warp.mask).map(|thread| self.in_block(thread)).collect();
            self.report(Defect::BarrierNotReached { missing, expected: threads }, place, Some(first))?;
            return Err(Stop);
        }
        let rendezvous = &self.block.rendezvous[warp.rank][number];
        if rendezvous.came > 0 && rendezvous.expected != threads {
            let expected = rendezvous.expected;
            let missing = warp.threads(warp.exists).map(|thread| self.in_block(thread)).collect();
            self.report(Defect::BarrierNotReached { missing, expected }, place, Some(first))?;
            return Err(Stop);
        }
        let rendezvous = &mut self.block.rendezvous[warp.rank][number];
        rendezvous.expected = threads;
        rendezvous.place = place;
        // At barriers with a number of threads, the hardware counts whole warps.
        rendezvous.came += if number == 0 { warp.exists.count_ones() } else { 32 };
        Ok(())
    }

    /// After a warp has proceeded: if the last warp has arrived at a barrier of its block, all
    /// warps that wait there proceed.
    pub(super) fn meet(&mut self, warps: &mut [Warp], at: usize) -> Result<(), Stop> {
        let rank = warps[at].rank;
        for number in 0..self.block.rendezvous[rank].len() {
            let rendezvous = &mut self.block.rendezvous[rank][number];
            if rendezvous.came == 0 || rendezvous.came < rendezvous.expected {
                continue;
            }
            let Rendezvous { arrived, early, .. } = std::mem::take(rendezvous);
            let threads = arrived.iter().flat_map(|warp| warps[*warp].threads(warps[*warp].exists));
            let clock = self.block.clocks.release(threads.clone());
            let mut clock = self.counted(clock)?;
            if let Some(early) = early {
                clock = joined(&clock, &early);
            }
            self.block.clocks.acquire(threads, &clock);
            for warp in arrived {
                warps[warp].state = State::Ready;
            }
        }
        Ok(())
    }

    /// The warps at a numbered barrier, as text.
    pub(super) fn rendezvous_text(&self, rank: usize, number: usize) -> String {
        let rendezvous = &self.block.rendezvous[rank][number];
        format!("at barrier {number}, at which {} of {} threads have arrived", rendezvous.came, rendezvous.expected)
    }

    pub(super) fn warp_barrier(&mut self, warp: &Warp, place: usize) -> Result<(), Stop> {
        if warp.mask != warp.exists {
            let missing = warp.threads(warp.exists & !warp.mask).map(|thread| self.in_block(thread)).collect();
            let first = warp.thread(warp.mask.trailing_zeros() as usize % WARP_LANES);
            let expected = warp.exists.count_ones();
            self.report(Defect::BarrierNotReached { missing, expected }, place, Some(first))?;
            return Err(Stop);
        }
        let clock = self.block.clocks.release(warp.threads(warp.mask));
        let clock = self.counted(clock)?;
        self.block.clocks.acquire(warp.threads(warp.mask), &clock);
        Ok(())
    }

    pub(super) fn fence(&mut self, warp: &Warp, fence: Fence) -> Result<(), Stop> {
        for thread in warp.threads(warp.mask) {
            let advanced = match fence {
                Fence::AsyncShared => self.block.clocks.fence(thread),
                Fence::AsyncGlobal => self.block.clocks.fence_global(thread),
                Fence::BarrierInit => self.block.clocks.publish(thread),
                // A fence without a barrier orders nothing between threads.
                Fence::Block | Fence::Device => Some(()),
            };
            self.counted(advanced)?;
        }
        Ok(())
    }

    /// The mbarrier at an address that a thread uses, or TMA for it.
    pub(super) fn object(&mut self, by: Actor, memory: Memory, address: i64, engine: bool) -> Result<usize, Stop> {
        let span = Span { memory, address, bytes: OBJECT };
        if !self.inside(by, &span, OBJECT as u32)? {
            return Err(Stop);
        }
        let first = self.shared_at(memory, address);
        let place = self.place_of(&span);
        let Some(at) = self.block.objects.iter().position(|object| object.first == first) else {
            self.report_by(by, Defect::Uninitialised { place, unpublished: false })?;
            return Err(Stop);
        };
        let init = self.block.objects[at].init;
        let clocks = &self.block.clocks;
        if !clocks.ordered(init, by.thread) || (engine && !clocks.is_published(init, by.thread)) {
            self.report_by(by, Defect::Uninitialised { place, unpublished: true })?;
        }
        Ok(at)
    }

    /// The place of an mbarrier.
    pub(super) fn object_place(&self, object: usize) -> Place {
        let object = &self.block.objects[object];
        self.place(object.buffer, object.address, OBJECT)
    }

    pub(super) fn init_object(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        count: u32,
    ) -> Result<(), Stop> {
        let addresses = addresses(warp, instruction, access, false, &mut 0);
        for lane in lanes(warp.mask) {
            let (thread, address) = (warp.thread(lane), addresses[lane]);
            let (by, memory) = (Actor { place, thread }, self.own(access.buffer, thread));
            let span = Span { memory, address, bytes: OBJECT };
            if !self.inside(by, &span, OBJECT as u32)? {
                return Err(Stop);
            }
            let first = self.shared_at(memory, address);
            let event = self.block.clocks.now(thread, place);
            let before = self.block.objects.iter().any(|object| object.meets(first, OBJECT));
            // This reports accesses that overlap another mbarrier.
            self.touch(&Touch { by, span, kind: AccessKind::Write, event })?;
            if before {
                return Err(Stop);
            }
            let agent = self.block.clocks.load_agent(self.block.objects.len());
            self.counted((agent + 1 < MAX_AGENTS).then_some(()))?;
            let nothing: Clock = Clock::from([]);
            self.block.objects.push(Object {
                buffer: access.buffer,
                rank: memory.rank,
                address,
                first,
                count,
                pending: count,
                expects: 0,
                phase: 0,
                init: event,
                arriving: Clock::clone(&nothing),
                released: nothing,
                last_load: None,
                phases: Phases::default(),
                place,
            });
        }
        Ok(())
    }

    pub(super) fn arrive_at_object(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        expect: u32,
    ) -> Result<(), Stop> {
        let addresses = addresses(warp, instruction, access, false, &mut 0);
        for lane in lanes(self.active(warp, instruction)) {
            let thread = warp.thread(lane);
            let memory = self.own(access.buffer, thread);
            let by = Actor { place, thread };
            let at = self.object(by, memory, addresses[lane], false)?;
            let clock = self.block.clocks.release(std::iter::once(thread));
            let clock = self.counted(clock)?;
            self.arrival(by, at, &clock, expect)?;
        }
        Ok(())
    }

    /// One arrival at an mbarrier, by a thread or agent with the given clock.
    pub(super) fn arrival(&mut self, by: Actor, at: usize, clock: &Clock, expect: u32) -> Result<(), Stop> {
        let object = &self.block.objects[at];
        if object.pending == 0 {
            let (count, place) = (object.count, self.object_place(at));
            self.report_by(by, Defect::Arrivals { place, count, came: count + 1 })?;
            return Err(Stop);
        }
        self.counts_in_phase(by, at);
        let event = self.block.clocks.arrival(by.thread, by.place);
        let object = &mut self.block.objects[at];
        object.phases.arrive(event, expect > 0);
        object.arriving = joined(&object.arriving, clock);
        object.pending -= 1;
        object.expects += i64::from(expect);
        let expects = object.expects;
        if expects.abs() >= MAX_EXPECTED {
            self.report_by(by, Defect::TransactionBytes { place: self.object_place(at), expects })?;
            return Err(Stop);
        }
        self.end_phase(at);
        Ok(())
    }

    /// Completes the phase of an mbarrier, if nothing is pending.
    pub(super) fn end_phase(&mut self, at: usize) {
        let object = &mut self.block.objects[at];
        if object.pending > 0 || object.expects != 0 {
            return;
        }
        object.phase += 1;
        object.pending = object.count;
        let arrived = std::mem::replace(&mut object.arriving, Clock::from([]));
        let (released, missed) = object.phases.next(&self.block.clocks, &arrived, at, object.phase);
        object.released = released;
        if let Some(wait) = missed {
            self.misses_phase(wait, at);
        }
    }

    /// Lanes that wait for a phase proceed if it has completed.
    pub(super) fn poll(&mut self, warp: &mut Warp) -> Result<(), Stop> {
        let State::Phase { place, lanes: waiting } = warp.state else { return Ok(()) };
        let code = self.code;
        let Some((instruction, access)) = wait_at(&code.nodes[place]) else { return Ok(()) };
        let mut input = 0;
        let addresses = addresses(warp, instruction, access, false, &mut input);
        let parities = warp.registers[instruction.inputs[input].index()];
        let mut left = waiting;
        // Lanes that wait for the same mbarrier learn the same, at once.
        let mut learned: Option<(usize, u32)> = None;
        for lane in lanes(waiting) {
            let thread = warp.thread(lane);
            let at = self.object(Actor { place, thread }, self.own(access.buffer, thread), addresses[lane], false)?;
            let object = &self.block.objects[at];
            if u64::from(object.phase) & 1 == parities[lane] & 1 {
                continue;
            }
            left &= !(1 << lane);
            self.sees_phase(Actor { place, thread }, at)?;
            match &mut learned {
                Some((known, mask)) if *known == at => *mask |= 1 << lane,
                _ => {
                    if let Some((at, mask)) = learned.replace((at, 1 << lane)) {
                        self.learn(warp, at, mask);
                    }
                }
            }
        }
        if let Some((at, mask)) = learned {
            self.learn(warp, at, mask);
        }
        warp.state = if left == 0 { State::Ready } else { State::Phase { place, lanes: left } };
        Ok(())
    }

    /// Lanes learn what the threads knew that arrived at an mbarrier.
    fn learn(&mut self, warp: &Warp, object: usize, mask: u32) {
        let released = Clock::clone(&self.block.objects[object].released);
        self.block.clocks.acquire(warp.threads(mask), &released);
    }

    /// The mbarrier that a lane waits for.
    pub(super) fn waited_for(&self, warp: &Warp, place: usize, lane: usize) -> Option<usize> {
        let (instruction, access) = wait_at(&self.code.nodes[place])?;
        let address = addresses(warp, instruction, access, false, &mut 0)[lane];
        let first = self.shared_at(self.own(access.buffer, warp.thread(lane)), address);
        self.block.objects.iter().position(|object| object.first == first)
    }

    /// What lanes wait for at an mbarrier, as text; and the mbarrier and its bytes if only bytes
    /// are missing.
    pub(super) fn phase_text(&self, warp: &Warp, place: usize, waiting: u32) -> (String, Option<(usize, i64)>) {
        let lane = waiting.trailing_zeros() as usize % WARP_LANES;
        let Some(at) = self.waited_for(warp, place, lane) else { return ("for a barrier in memory".to_string(), None) };
        let object = &self.block.objects[at];
        let came = object.count - object.pending;
        let text = format!(
            "for phase {} of the barrier in {}, which has {came} of {} arrivals and expects {} more bytes",
            object.phase,
            self.object_place(at),
            object.count,
            object.expects
        );
        (text, (object.pending == 0).then_some((at, object.expects)))
    }

    /// Reports what the blocks of a cluster leave unfinished when they exit.
    pub(super) fn end_of_cluster(&mut self) -> Result<(), Stop> {
        let left: Vec<(u32, usize)> = self
            .block
            .rendezvous
            .iter()
            .flatten()
            .filter(|own| own.came > 0)
            .map(|own| (own.expected, own.place))
            .collect();
        for (expected, place) in left {
            self.report(Defect::BarrierNotReached { missing: Vec::new(), expected }, place, None)?;
        }
        for at in 0..self.block.objects.len() {
            let object = &self.block.objects[at];
            let (count, pending, expects, place) = (object.count, object.pending, object.expects, object.place);
            let agent = self.block.clocks.load_agent(at);
            let unknown = object.last_load.filter(|(event, _)| self.block.clocks.known_to_any(agent) < *event);
            if expects != 0 {
                let of = self.object_place(at);
                self.report(Defect::TransactionBytes { place: of, expects }, place, None)?;
            } else if pending != count {
                let of = self.object_place(at);
                self.report(Defect::Arrivals { place: of, count, came: count - pending }, place, None)?;
            } else if let Some((_, by)) = unknown {
                let what = "no thread has waited for a bulk load";
                self.report_by(by, Defect::PendingAtExit { what })?;
            }
        }
        Ok(())
    }
}

/// A wait for an mbarrier.
fn wait_at<'p>(node: &Node<'p>) -> Option<(&'p Instruction, &'p Access)> {
    use crate::program::operation::Operation;
    match node {
        Node::Instruction(instruction) => match &instruction.operation {
            Operation::BarrierWait { access } => Some((instruction, access)),
            _ => None,
        },
        _ => None,
    }
}
