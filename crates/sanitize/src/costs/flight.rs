//! Bytes of asynchronous copies in flight: from their issue to the wait that guarantees completion.
//!
//! Law: a copy is in flight from the instruction that issues it until a thread has waited for its
//! group, or for the phase of the mbarrier that it arrives at. So the number is what the program
//! permits to be in flight. It depends neither on latencies nor on when the engine moves the bytes.

use std::collections::{HashMap, VecDeque};

use crate::check::checker::{Completion, Lanes, Mbarrier};

use super::law::lanes;

/// The groups of a thread, in bytes: the open one, and the closed ones.
#[derive(Debug, Default)]
struct CopyGroups {
    open: u64,
    closed: VecDeque<u64>,
}

impl CopyGroups {
    fn commit(&mut self) {
        self.closed.push_back(std::mem::take(&mut self.open));
    }

    /// Removes all but the last `pending` groups, and returns their bytes.
    fn wait(&mut self, pending: u32) -> u64 {
        let done = self.closed.len().saturating_sub(pending as usize);
        self.closed.drain(..done).sum()
    }

    fn all(&mut self) -> u64 {
        std::mem::take(&mut self.open) + self.closed.drain(..).sum::<u64>()
    }
}

/// Copies that arrive at an mbarrier: the number of completed phases, and for each phase that
/// nobody has waited for, the bytes that threads of each block have issued.
#[derive(Debug, Default)]
struct BarrierBytes {
    phases: u64,
    waiting: Vec<(u64, u32, u64)>,
}

/// A thread: the rank of its block, its warp and its lane.
type ThreadKey = (u32, u32, u32);

/// The bytes in flight of the blocks of a cluster.
#[derive(Debug, Default)]
pub(super) struct Flight {
    copies: HashMap<ThreadKey, CopyGroups>,
    bulks: HashMap<ThreadKey, CopyGroups>,
    barriers: HashMap<Mbarrier, BarrierBytes>,
    /// For each block, the bytes in flight at present.
    now: HashMap<u32, u64>,
    /// The most bytes that one block had in flight.
    pub(super) most: u64,
}

impl Flight {
    fn issue(&mut self, rank: u32, bytes: u64) {
        let now = self.now.entry(rank).or_default();
        *now += bytes;
        self.most = self.most.max(*now);
    }

    fn end(&mut self, rank: u32, bytes: u64) {
        let now = self.now.entry(rank).or_default();
        *now = now.saturating_sub(bytes);
    }

    /// Some lanes issue `cp.async`, each for a number of bytes.
    pub(super) fn copy(&mut self, by: Lanes, bytes: impl Fn(usize) -> u32) {
        let mut all = 0;
        for lane in lanes(by.mask) {
            let bytes = u64::from(bytes(lane));
            self.copies.entry((by.rank, by.warp, lane as u32)).or_default().open += bytes;
            all += bytes;
        }
        self.issue(by.rank, all);
    }

    /// A group of `cp.async` is closed.
    pub(super) fn copy_commit(&mut self, by: Lanes) {
        for lane in lanes(by.mask) {
            self.copies.entry((by.rank, by.warp, lane as u32)).or_default().commit();
        }
    }

    /// All but `pending` groups of `cp.async` have completed.
    pub(super) fn copy_wait(&mut self, by: Lanes, pending: u32) {
        for lane in lanes(by.mask) {
            let done = self.copies.get_mut(&(by.rank, by.warp, lane as u32)).map_or(0, |groups| groups.wait(pending));
            self.end(by.rank, done);
        }
    }

    /// The `cp.async` of some lanes will arrive at an mbarrier.
    pub(super) fn copies_arrive(&mut self, by: Lanes, barrier: Mbarrier) {
        for lane in lanes(by.mask) {
            let bytes = self.copies.get_mut(&(by.rank, by.warp, lane as u32)).map_or(0, CopyGroups::all);
            let own = self.barriers.entry(barrier).or_default();
            own.waiting.push((own.phases, by.rank, bytes));
        }
    }

    /// A lane issues a bulk copy.
    pub(super) fn bulk(&mut self, by: Lanes, bytes: u64, completion: Completion) {
        match completion {
            Completion::Group => {
                for lane in lanes(by.mask) {
                    self.bulks.entry((by.rank, by.warp, lane as u32)).or_default().open += bytes;
                }
            }
            Completion::Mbarrier(barrier) => {
                let own = self.barriers.entry(barrier).or_default();
                own.waiting.push((own.phases, by.rank, bytes));
            }
        }
        self.issue(by.rank, bytes);
    }

    /// A group of bulk copies is closed.
    pub(super) fn bulk_commit(&mut self, by: Lanes) {
        for lane in lanes(by.mask) {
            self.bulks.entry((by.rank, by.warp, lane as u32)).or_default().commit();
        }
    }

    /// All but `pending` groups of bulk copies have completed, or have read their sources.
    pub(super) fn bulk_wait(&mut self, by: Lanes, pending: u32) {
        for lane in lanes(by.mask) {
            let done = self.bulks.get_mut(&(by.rank, by.warp, lane as u32)).map_or(0, |groups| groups.wait(pending));
            self.end(by.rank, done);
        }
    }

    /// An mbarrier is initialised.
    pub(super) fn barrier_init(&mut self, barrier: Mbarrier) {
        let own = self.barriers.remove(&barrier).unwrap_or_default();
        for (_, rank, bytes) in own.waiting {
            self.end(rank, bytes);
        }
    }

    /// A phase of an mbarrier has completed.
    pub(super) fn barrier_complete(&mut self, barrier: Mbarrier, phase: u64) {
        self.barriers.entry(barrier).or_default().phases = phase + 1;
    }

    /// A thread has observed that a phase has completed.
    pub(super) fn barrier_wait(&mut self, barrier: Mbarrier, phase: i64) {
        let Some(own) = self.barriers.get_mut(&barrier) else { return };
        let (mut done, mut left) = (Vec::new(), Vec::new());
        for entry in own.waiting.drain(..) {
            if i64::try_from(entry.0).unwrap_or(i64::MAX) <= phase { done.push(entry) } else { left.push(entry) }
        }
        own.waiting = left;
        for (_, rank, bytes) in done {
            self.end(rank, bytes);
        }
    }
}
