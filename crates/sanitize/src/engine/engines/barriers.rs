//! Operations on mbarriers.

use super::{ArriveMode, Asked, BarrierRecord, Executes, lanes_of};
use crate::check::checker::{Lanes, Mbarrier};
use crate::check::finding::Defect;
use crate::engine::access::Side;
use crate::engine::cluster::Cluster;
use crate::engine::code::{Reference, Source, Target};
use crate::engine::execute::Flow;
use crate::isa::mbarrier::{BarrierWord, MbarrierFlaw};

/// Bytes of an mbarrier.
const BYTES: u64 = 8;

impl Cluster<'_> {
    /// The place of a barrier of one lane; none if it is no place of one, which is reported.
    fn barrier_place(&mut self, by: &Executes<'_>, at: &Reference, lane: usize) -> Option<(u32, u64)> {
        let address = self.addresses(by.warp, by.fragment.frame, by.code, at)[lane];
        let (side, offset) = self.side(by.block, at.window, address);
        let Side::Shared(rank) = side else {
            let (place, size) = self.place(side, offset, BYTES);
            self.flaw(by, lane, Defect::OutOfBounds { place, size, writes: true });
            return None;
        };
        let good = self.allowed(by.block, by.warp, by.at, side, 1 << lane, &[offset; 32], BYTES, true);
        (good != 0).then_some((rank, offset))
    }

    /// As [`Self::barrier_place`], of a barrier that is initialised.
    pub(super) fn barrier(&mut self, by: &Executes<'_>, at: &Reference, lane: usize) -> Option<(u32, u64)> {
        let key = self.barrier_place(by, at, lane)?;
        if self.asynchronous.barriers.contains_key(&key) {
            return Some(key);
        }
        let (place, _) = self.place(Side::Shared(key.0), key.1, BYTES);
        let defect = Defect::Uninitialised { place, unpublished: false };
        self.flaw(by, lane, defect);
        None
    }

    pub(super) fn lane(&self, by: &Executes<'_>, lane: usize) -> Lanes {
        self.lanes(by.block, by.warp, 1 << lane)
    }

    /// Tells of a finding of a lane.
    pub(super) fn flaw(&mut self, by: &Executes<'_>, lane: usize, defect: Defect) {
        self.found(by.block, by.warp.number, 1 << lane, by.at, defect);
    }

    pub(super) fn barrier_init(&mut self, by: &Executes<'_>, at: &Reference, count: Source) {
        let counts = *by.row(count);
        for lane in lanes_of(by.active) {
            let Some(key) = self.barrier_place(by, at, lane) else { continue };
            let count = counts[lane] as u32;
            let Some(state) = BarrierWord::new(count) else {
                let (place, _) = self.place(Side::Shared(key.0), key.1, BYTES);
                let defect = Defect::Arrivals { place, count, came: 0 };
                self.flaw(by, lane, defect);
                continue;
            };
            let lanes = self.lane(by, lane);
            self.check.mbarrier_init(lanes, by.at, Mbarrier { rank: key.0, address: key.1 });
            self.asynchronous.barriers.insert(key, BarrierRecord { state, waiter: None });
            self.write_barrier(key);
        }
        self.tell_news();
    }

    pub(super) fn barrier_invalidate(&mut self, by: &Executes<'_>, at: &Reference) {
        for lane in lanes_of(by.active) {
            let Some(key) = self.barrier(by, at, lane) else { continue };
            let lanes = self.lane(by, lane);
            self.check.mbarrier_invalidate(lanes, by.at, Mbarrier { rank: key.0, address: key.1 });
            self.asynchronous.barriers.remove(&key);
        }
    }

    pub(super) fn barrier_arrive(
        &mut self,
        by: &mut Executes<'_>,
        at: &Reference,
        (d, count, bytes): (Option<Target>, Option<Source>, Option<Source>),
        mode: ArriveMode,
    ) {
        let counts = count.map(|count| *by.row(count));
        let bytes = bytes.map(|bytes| *by.row(bytes));
        let mut tokens = [0; 32];
        for lane in lanes_of(by.active) {
            let Some(key) = self.barrier(by, at, lane) else { continue };
            let lanes = self.lane(by, lane);
            self.check.mbarrier_arrive(lanes, by.at, Mbarrier { rank: key.0, address: key.1 }, mode.releases);
            let Some(record) = self.asynchronous.barriers.get_mut(&key) else { continue };
            tokens[lane] = record.state.token();
            let count = counts.map_or(1, |counts| counts[lane] as u32);
            let expected = bytes.map_or(Ok(()), |bytes| record.state.expect(bytes[lane] as u32));
            let arrived = expected.and_then(|()| match mode.drops {
                true => record.state.arrive_drop(count),
                false => record.state.arrive(count),
            });
            self.barrier_changed(by, lane, key, arrived);
        }
        if let Some(d) = d {
            by.warp.frames[by.fragment.frame].put(d, &tokens, by.active, false);
        }
    }

    pub(super) fn barrier_bytes(&mut self, by: &Executes<'_>, at: &Reference, bytes: Source, expects: bool) {
        let bytes = *by.row(bytes);
        for lane in lanes_of(by.active) {
            let Some(key) = self.barrier(by, at, lane) else { continue };
            let lanes = self.lane(by, lane);
            self.check.mbarrier_arrive(lanes, by.at, Mbarrier { rank: key.0, address: key.1 }, false);
            let Some(record) = self.asynchronous.barriers.get_mut(&key) else { continue };
            let changed = match expects {
                true => record.state.expect(bytes[lane] as u32).map(|()| false),
                false => record.state.complete(bytes[lane] as u32),
            };
            self.barrier_changed(by, lane, key, changed);
        }
    }

    pub(super) fn copies_arrive(&mut self, by: &Executes<'_>, at: &Reference, adds: bool) {
        for lane in lanes_of(by.active) {
            let Some(key) = self.barrier(by, at, lane) else { continue };
            let lanes = self.lane(by, lane);
            self.check.mbarrier_arrive_copies(lanes, by.at, Mbarrier { rank: key.0, address: key.1 });
            let Some(record) = self.asynchronous.barriers.get_mut(&key) else { continue };
            // In the engine, the copies have completed already.
            let added = if adds { record.state.add_pending() } else { Ok(()) };
            let arrived = added.and_then(|()| record.state.arrive(1));
            self.barrier_changed(by, lane, key, arrived);
        }
    }

    /// Tells of what an operation on a barrier has done.
    fn barrier_changed(&mut self, by: &Executes<'_>, lane: usize, key: (u32, u64), result: Result<bool, MbarrierFlaw>) {
        match result {
            Ok(is_over) => self.settle_barrier_state(key, is_over),
            Err(flaw) => {
                let (place, _) = self.place(Side::Shared(key.0), key.1, BYTES);
                let count = self.asynchronous.barriers.get(&key).map_or(0, |record| record.state.expected());
                let defect = match flaw {
                    MbarrierFlaw::Arrivals { pending, came } => {
                        Defect::Arrivals { place, count, came: count.saturating_sub(pending).saturating_add(came) }
                    }
                    MbarrierFlaw::Bytes(expects) => Defect::TransactionBytes { place, expects },
                };
                self.flaw(by, lane, defect);
            }
        }
    }

    /// Updates the memory of an mbarrier, and reports the phase if it has completed.
    fn settle_barrier_state(&mut self, key: (u32, u64), is_over: bool) {
        if is_over && let Some(record) = self.asynchronous.barriers.get_mut(&key) {
            record.waiter = None;
            let phase = record.state.phase() - 1;
            self.check.mbarrier_complete(Mbarrier { rank: key.0, address: key.1 }, phase);
        }
        self.write_barrier(key);
        self.tell_news();
    }

    /// Bytes of a transfer have arrived at an mbarrier.
    pub(super) fn barrier_completes(&mut self, key: (u32, u64), bytes: u32) {
        let Some(record) = self.asynchronous.barriers.get_mut(&key) else { return };
        // A wrong number of bytes is reported when the run hangs or ends.
        let is_over = record.state.complete(bytes).unwrap_or(false);
        self.settle_barrier_state(key, is_over);
    }

    /// Writes the bits of an mbarrier to memory. They have no meaning for programs.
    fn write_barrier(&mut self, key: (u32, u64)) {
        if let Some(record) = self.asynchronous.barriers.get(&key)
            && let Some(block) = self.blocks.get(key.0 as usize)
        {
            block.shared.write(key.1, 8, !record.state.token(), true);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn barrier_test(
        &mut self,
        by: &mut Executes<'_>,
        p: Option<u32>,
        at: &Reference,
        asked: Asked,
        acquires: bool,
    ) -> Flow {
        let (Asked::State(source) | Asked::Parity(source)) = asked;
        let values = *by.row(source);
        let (mut over, mut seen) = (0, 0_u64);
        let mut told: Vec<((u32, u64), i64, u32)> = Vec::new();
        for lane in lanes_of(by.active) {
            let Some(key) = self.barrier(by, at, lane) else {
                // A wait that never ends would hide what was found.
                over |= 1 << lane;
                continue;
            };
            let Some(record) = self.asynchronous.barriers.get_mut(&key) else { continue };
            let is_over = match asked {
                Asked::State(_) => record.state.is_over(values[lane]),
                Asked::Parity(_) => record.state.is_over_parity(values[lane] & 1 == 1),
            };
            seen = seen.rotate_left(9) ^ record.state.token() ^ key.1;
            if is_over {
                over |= 1 << lane;
                let phase = record.state.phase() as i64 - 1;
                match told.iter_mut().find(|(own, at, _)| *own == key && *at == phase) {
                    Some((_, _, mask)) => *mask |= 1 << lane,
                    None => told.push((key, phase, 1 << lane)),
                }
            } else {
                record.waiter = Some((by.block, by.warp.number, 1 << lane, by.at));
            }
        }
        for (key, phase, mask) in told {
            let lanes = self.lanes(by.block, by.warp, mask);
            let barrier = Mbarrier { rank: key.0, address: key.1 };
            self.check.mbarrier_wait(lanes, by.at, barrier, phase, acquires);
        }
        if let Some(p) = p {
            by.warp.frames[by.fragment.frame].set_truth(p, over, by.active);
        }
        if over & by.active != by.active && self.poll(by.fragment, seen) {
            by.fragment.pc += 1;
            return Flow::Parked;
        }
        Flow::Next
    }

    /// Reports mbarriers that a thread waits for and whose phase only lacks bytes, or has too many.
    pub(in crate::engine) fn tell_barriers(&mut self) {
        let waited: Vec<_> = self
            .asynchronous
            .barriers
            .iter()
            .filter(|(_, record)| {
                record.state.bytes() != 0 && (record.state.pending() == 0 || record.state.bytes() < 0)
            })
            .filter_map(|(key, record)| Some((*key, record.waiter?, record.state.bytes())))
            .collect();
        for ((rank, address), (block, warp, mask, at), expects) in waited {
            let (place, _) = self.place(Side::Shared(rank), address, BYTES);
            self.found(block, warp, mask, at, Defect::TransactionBytes { place, expects });
        }
    }
}
