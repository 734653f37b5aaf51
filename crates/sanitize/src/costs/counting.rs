//! A checker that counts accesses and forwards them to the checker that finds defects.
//!
//! Law: [`Counting`] forwards all reports, so that the findings equal those of a run that does not
//! count. The engine reports executed instructions only in runs that count.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::flight::Flight;
use super::law::{GlobalCount, SECTOR_BYTES, SharedCount, global_request, global_span, shared_request, shared_span};
use crate::check::checker::{
    Access, Allocation, At, Bulk, Checker, CopyAsync, Fence, Kind, Lanes, Mbarrier, Space, Span, Wgmma,
};
use crate::check::finding::Finding;

/// The cost of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of warp instructions. If the lanes of a warp execute an instruction in several
    /// parts, each part counts.
    pub instructions: u64,
    /// The number of thread instructions.
    pub threads: u64,
    /// The traffic of global memory.
    pub global: GlobalCount,
    /// The traffic of shared memory.
    pub shared: SharedCount,
}

impl Counts {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.threads += other.threads;
        self.global.add(&other.global);
        self.shared.add(&other.shared);
    }
}

/// One execution of an instruction by lanes of a warp: the lanes, and the bytes that they access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneRequest {
    /// The mask of the lanes.
    pub mask: u32,
    /// The number of bytes of each lane.
    pub bytes: u32,
    /// The address of each lane's first byte. In shared memory it counts from the beginning of the
    /// block's shared memory.
    pub addresses: [u64; 32],
}

/// The worst request of an instruction: the one with the largest excess; among equal ones, that of
/// the first cluster.
#[derive(Clone, Copy, Debug)]
struct Worst {
    excess: u64,
    cluster: u64,
    request: LaneRequest,
}

fn keep(worst: &mut Option<Box<Worst>>, excess: u64, cluster: u64, request: impl FnOnce() -> LaneRequest) {
    let is_worse = worst.as_ref().is_none_or(|own| (excess, own.cluster) > (own.excess, cluster));
    if is_worse {
        *worst = Some(Box::new(Worst { excess, cluster, request: request() }));
    }
}

/// The cost of a statement.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    global: Option<Box<Worst>>,
    shared: Option<Box<Worst>>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        for (own, other) in [(&mut self.global, &other.global), (&mut self.shared, &other.shared)] {
            if let Some(other) = other {
                keep(own, other.excess, other.cluster, || other.request);
            }
        }
    }

    /// The worst requests of global memory and of shared memory.
    pub(super) fn worst(&self) -> [Option<LaneRequest>; 2] {
        [&self.global, &self.shared].map(|own| own.as_ref().map(|own| own.request))
    }
}

/// A set of sectors of an allocation, as a bit mask.
struct SectorSet(Box<[AtomicU64]>);

impl SectorSet {
    fn new(bytes: u64) -> Self {
        Self((0..bytes.div_ceil(64 * SECTOR_BYTES)).map(|_| AtomicU64::new(0)).collect())
    }

    fn insert(&self, sector: u64) {
        if let Some(word) = self.0.get((sector / 64) as usize) {
            let bit = 1 << (sector % 64);
            if word.load(Relaxed) & bit == 0 {
                word.fetch_or(bit, Relaxed);
            }
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Relaxed).count_ones())).sum()
    }
}

/// The sectors of an allocation that were read and written.
struct TouchedSectors {
    /// The number of the allocation's first sector.
    first: u64,
    sectors: u64,
    read: SectorSet,
    written: SectorSet,
}

/// The totals of all clusters of a launch.
pub(crate) struct CountsOfLaunch {
    touched: Vec<TouchedSectors>,
    tallies: Mutex<Vec<Tally>>,
    in_flight: AtomicU64,
}

/// The cost of a launch by statement.
pub(super) struct Totals {
    pub(super) tallies: Vec<Tally>,
    pub(super) in_flight_bytes: u64,
    pub(super) read_sectors: u64,
    pub(super) written_sectors: u64,
}

impl CountsOfLaunch {
    /// Empty counts for a program with this many statements.
    pub(crate) fn new(statements: usize, allocations: &[Allocation]) -> Self {
        let mut touched: Vec<TouchedSectors> = allocations
            .iter()
            .map(|own| TouchedSectors {
                first: own.address / SECTOR_BYTES,
                sectors: own.bytes.div_ceil(SECTOR_BYTES),
                read: SectorSet::new(own.bytes),
                written: SectorSet::new(own.bytes),
            })
            .collect();
        touched.sort_by_key(|own| own.first);
        Self { touched, tallies: Mutex::new(vec![Tally::default(); statements]), in_flight: AtomicU64::new(0) }
    }

    /// Records that a sector is read or written. `near` is a guess of its allocation, and is
    /// updated.
    fn touch(&self, sector: u64, [reads, writes]: [bool; 2], near: &mut usize) {
        let is_in = |own: &TouchedSectors| sector.wrapping_sub(own.first) < own.sectors;
        if !self.touched.get(*near).is_some_and(is_in) {
            let after = self.touched.partition_point(|own| own.first <= sector);
            match after.checked_sub(1) {
                Some(at) if is_in(&self.touched[at]) => *near = at,
                _ => return,
            }
        }
        let own = &self.touched[*near];
        if reads {
            own.read.insert(sector - own.first);
        }
        if writes {
            own.written.insert(sector - own.first);
        }
    }

    /// The totals of all clusters.
    pub(super) fn totals(self) -> Totals {
        Totals {
            read_sectors: self.touched.iter().map(|own| own.read.count()).sum(),
            written_sectors: self.touched.iter().map(|own| own.written.count()).sum(),
            tallies: self.tallies.into_inner().unwrap_or_default(),
            in_flight_bytes: self.in_flight.into_inner(),
        }
    }
}

/// A statement without a tally.
const NONE: u32 = u32::MAX;

/// Counts what a cluster does, and forwards all reports to its checker.
pub(crate) struct Counting<'g> {
    inner: Box<dyn Checker + Send + 'g>,
    launch: &'g CountsOfLaunch,
    cluster: u64,
    /// For each statement, the index of its tally.
    places: Vec<u32>,
    tallies: Vec<(At, Tally)>,
    near: usize,
    flight: Flight,
    /// The lane and the instruction of the last bulk copy. Further destinations of the same
    /// multicast copy read nothing more.
    multicast: Option<(Lanes, At)>,
}

impl<'g> Counting<'g> {
    /// Counts for the cluster with a number, whose checker is `inner`.
    pub(crate) fn new(inner: Box<dyn Checker + Send + 'g>, launch: &'g CountsOfLaunch, cluster: u64) -> Self {
        Self {
            inner,
            launch,
            cluster,
            places: Vec::new(),
            tallies: Vec::new(),
            near: 0,
            flight: Flight::default(),
            multicast: None,
        }
    }

    fn tally(&mut self, at: At) -> &mut Tally {
        let index = at as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NONE);
        }
        if self.places[index] == NONE {
            self.places[index] = self.tallies.len() as u32;
            self.tallies.push((at, Tally::default()));
        }
        let place = self.places[index] as usize;
        &mut self.tallies[place].1
    }

    fn global(&mut self, at: At, mask: u32, addresses: &[u64; 32], bytes: &[u32; 32], does: [bool; 2]) {
        let (launch, mut near) = (self.launch, self.near);
        let touch = |sector| launch.touch(sector, does, &mut near);
        let count = global_request(mask, addresses, |lane| bytes[lane], touch);
        self.near = near;
        let cluster = self.cluster;
        let own = self.tally(at);
        own.counts.global.add(&count);
        keep(&mut own.global, count.sectors - count.least_sectors, cluster, || LaneRequest {
            mask,
            bytes: (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| bytes[lane]).max().unwrap_or(0),
            addresses: *addresses,
        });
    }

    fn shared(&mut self, at: At, mask: u32, addresses: &[u64; 32], bytes: u32, loads: bool) {
        let count = shared_request(mask, addresses, bytes, loads);
        let cluster = self.cluster;
        let own = self.tally(at);
        own.counts.shared.add(&count);
        keep(&mut own.shared, count.conflicts(), cluster, || LaneRequest { mask, bytes, addresses: *addresses });
    }

    fn span(&mut self, at: At, space: Space, (address, bytes): (u64, u32), does: [bool; 2]) {
        match space {
            Space::Global => {
                let (launch, mut near) = (self.launch, self.near);
                let count = global_span(address, bytes.into(), |sector| launch.touch(sector, does, &mut near));
                self.near = near;
                self.tally(at).counts.global.add(&count);
            }
            Space::Shared { .. } => self.tally(at).counts.shared.add(&shared_span(bytes.into())),
        }
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        if let Ok(mut all) = self.launch.tallies.lock() {
            for (at, own) in &self.tallies {
                if let Some(into) = all.get_mut(*at as usize) {
                    into.add(own);
                }
            }
        }
        self.launch.in_flight.fetch_max(self.flight.most, Relaxed);
    }
}

const READS: [bool; 2] = [true, false];
const WRITES: [bool; 2] = [false, true];
const BOTH: [bool; 2] = [true, true];

impl Checker for Counting<'_> {
    fn counts(&self) -> bool {
        true
    }

    fn executed(&mut self, at: At, mask: u32) {
        self.multicast = None;
        let counts = &mut self.tally(at).counts;
        counts.instructions += 1;
        counts.threads += u64::from(mask.count_ones());
    }

    fn map_read(&mut self, by: Lanes, at: At, map: Span) {
        self.inner.map_read(by, at, map);
    }

    fn watches_uses(&self) -> bool {
        self.inner.watches_uses()
    }

    fn watched(&mut self, access: &Access<'_>) -> Option<u32> {
        self.inner.watched(access)
    }

    fn used(&mut self, read: u32, lane: u32) {
        self.inner.used(read, lane);
    }

    fn access(&mut self, access: &Access<'_>) {
        match access.space {
            Space::Global => {
                let does = match access.kind {
                    Kind::Read => READS,
                    Kind::Write => WRITES,
                    Kind::Atomic | Kind::Reduction => BOTH,
                };
                self.global(access.at, access.by.mask, access.addresses, &[access.bytes; 32], does);
            }
            Space::Shared { .. } => {
                let loads = access.kind == Kind::Read;
                self.shared(access.at, access.by.mask, access.addresses, access.bytes, loads);
            }
        }
        self.inner.access(access);
    }

    fn copy(&mut self, copy: &CopyAsync<'_>) {
        self.global(copy.at, copy.by.mask, copy.global, copy.read, READS);
        self.shared(copy.at, copy.by.mask, copy.shared, copy.bytes, false);
        self.flight.copy(copy.by, |lane| copy.read[lane]);
        self.inner.copy(copy);
    }

    fn bulk(&mut self, bulk: &Bulk<'_>) {
        let is_first = self.multicast.replace((bulk.by, bulk.at)) != Some((bulk.by, bulk.at));
        if is_first {
            for span in bulk.reads {
                self.span(bulk.at, span.space, (span.address, span.bytes), READS);
            }
            let bytes = bulk.reads.iter().map(|span| u64::from(span.bytes)).sum();
            self.flight.bulk(bulk.by, bytes, bulk.completion);
        }
        let does = if bulk.reduces { BOTH } else { WRITES };
        for span in bulk.writes {
            self.span(bulk.at, span.space, (span.address, span.bytes), does);
        }
        self.inner.bulk(bulk);
    }

    fn copy_commit(&mut self, by: Lanes) {
        self.flight.copy_commit(by);
        self.inner.copy_commit(by);
    }

    fn copy_wait(&mut self, by: Lanes, pending: u32) {
        self.flight.copy_wait(by, pending);
        self.inner.copy_wait(by, pending);
    }

    fn bulk_commit(&mut self, by: Lanes) {
        self.flight.bulk_commit(by);
        self.inner.bulk_commit(by);
    }

    fn bulk_wait(&mut self, by: Lanes, pending: u32, reads: bool) {
        self.flight.bulk_wait(by, pending);
        self.inner.bulk_wait(by, pending, reads);
    }

    fn mbarrier_init(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        self.flight.barrier_init(barrier);
        self.inner.mbarrier_init(by, at, barrier);
    }

    fn mbarrier_arrive_copies(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        self.flight.copies_arrive(by, barrier);
        self.inner.mbarrier_arrive_copies(by, at, barrier);
    }

    fn mbarrier_complete(&mut self, barrier: Mbarrier, phase: u64) {
        self.flight.barrier_complete(barrier, phase);
        self.inner.mbarrier_complete(barrier, phase);
    }

    fn mbarrier_wait(&mut self, by: Lanes, at: At, barrier: Mbarrier, phase: i64, acquire: bool) {
        self.flight.barrier_wait(barrier, phase);
        self.inner.mbarrier_wait(by, at, barrier, phase, acquire);
    }

    // These reports are only forwarded.

    fn barrier_arrive(&mut self, by: Lanes, barrier: u32) {
        self.inner.barrier_arrive(by, barrier);
    }

    fn barrier_complete(&mut self, rank: u32, barrier: u32, waiters: &[Lanes]) {
        self.inner.barrier_complete(rank, barrier, waiters);
    }

    fn warp_sync(&mut self, by: Lanes) {
        self.inner.warp_sync(by);
    }

    fn cluster_arrive(&mut self, by: Lanes, release: bool) {
        self.inner.cluster_arrive(by, release);
    }

    fn cluster_complete(&mut self) {
        self.inner.cluster_complete();
    }

    fn cluster_wait(&mut self, by: Lanes, acquire: bool) {
        self.inner.cluster_wait(by, acquire);
    }

    fn mbarrier_invalidate(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        self.inner.mbarrier_invalidate(by, at, barrier);
    }

    fn mbarrier_arrive(&mut self, by: Lanes, at: At, barrier: Mbarrier, release: bool) {
        self.inner.mbarrier_arrive(by, at, barrier, release);
    }

    fn fence(&mut self, by: Lanes, fence: Fence) {
        self.inner.fence(by, fence);
    }

    fn wgmma(&mut self, wgmma: &Wgmma<'_>) {
        self.inner.wgmma(wgmma);
    }

    fn wgmma_fence(&mut self, by: Lanes) {
        self.inner.wgmma_fence(by);
    }

    fn wgmma_commit(&mut self, by: Lanes) {
        self.inner.wgmma_commit(by);
    }

    fn wgmma_wait(&mut self, by: Lanes, pending: u32) {
        self.inner.wgmma_wait(by, pending);
    }

    fn watches_registers(&self, rank: u32, warp: u32) -> bool {
        self.inner.watches_registers(rank, warp)
    }

    fn registers(&mut self, by: Lanes, at: At, reads: &[u32], writes: &[u32]) {
        self.inner.registers(by, at, reads, writes);
    }

    fn register_copy(&mut self, by: Lanes, from: u32, to: u32) {
        self.inner.register_copy(by, from, to);
    }

    fn exit(&mut self, by: Lanes, at: At) {
        self.inner.exit(by, at);
    }

    fn block_exit(&mut self, rank: u32) {
        self.inner.block_exit(rank);
    }

    fn report(&mut self, finding: Finding) {
        self.inner.report(finding);
    }

    fn is_full(&self) -> bool {
        self.inner.is_full()
    }
}
