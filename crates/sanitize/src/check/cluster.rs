//! The checker of one cluster: its warps, its shared memory, its barriers.

mod access;
mod background;
mod barriers;
mod endings;
mod registers;
mod synchronise;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::checker::{Access, At, Bulk, Checker, CopyAsync, Fence, Lanes, Mbarrier, Scope, Space, Span, Wgmma};
use super::clock::{Here, Known, View};
use super::event::{Agency, Event, FIRST_COUNT};
use super::finding::{Defect, Finding, Missing, Place, ProxyFence, Thread};
use super::grid::{Flag, GridChecker};
use super::report::Reports;
use super::shadow::{PAGE_BYTES, Page};
use super::uses::{ReadOfLane, Uses, WatchedRead};
use access::access_strength;
use background::Groups;
use barriers::{BarrierHistory, Contribution};
use registers::RegisterFile;

/// The proxy through which memory is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proxy {
    /// The generic proxy: ordinary accesses.
    Generic,
    /// The async proxy: bulk copies and wgmma.
    Asynchronous,
    /// The tensormap proxy: copies that read their tensor map.
    TensorMap,
}

impl Proxy {
    /// The proxy fence that must stand between ordinary stores and an access through this proxy;
    /// None for the generic proxy.
    fn fence(self, is_global: bool) -> Option<ProxyFence> {
        match (self, is_global) {
            (Self::Generic, _) => None,
            (Self::Asynchronous, false) => Some(ProxyFence::AsyncShared),
            (Self::Asynchronous, true) => Some(ProxyFence::AsyncGlobal),
            (Self::TensorMap, _) => Some(ProxyFence::TensorMap),
        }
    }
}

/// What the lanes of a warp know. Mostly, all lanes know the same.
#[derive(Debug, Clone)]
enum WarpView {
    One(Arc<View>),
    Each(Box<[Arc<View>; 32]>),
}

impl WarpView {
    #[inline]
    fn of(&self, lane: u32) -> &Arc<View> {
        match self {
            WarpView::One(view) => view,
            WarpView::Each(views) => &views[lane as usize],
        }
    }
}

/// The state of a warp.
#[derive(Debug)]
struct WarpState {
    view: WarpView,
    /// The current count of its events.
    count: u32,
    /// The lanes that exist, and those that have not exited.
    lanes: u32,
    live: u32,
    /// Its groups of `cp.async`, of bulk copies, and of wgmma.
    copies: Groups,
    bulk: Groups,
    products: Groups,
    /// The counts at which it closed its wgmma groups.
    product_groups: Vec<u32>,
    /// The groups of bulk copies, counted as finished when they have read their sources.
    bulk_read: Groups,
    /// The last flag that the warp read: the address, the version, the lanes, and whether they
    /// acquired.
    acquired: Option<(FlagKey, u64, u32, bool)>,
    registers: Option<Box<RegisterFile>>,
}

/// The address of a flag. For shared memory with the rank of the block; None for global memory.
type FlagKey = (Option<u32>, u64);

/// The shared memory of a block.
#[derive(Debug, Default)]
struct SharedMemory {
    pages: Vec<Option<Box<Page>>>,
    flags: HashMap<u64, Flag>,
    barriers: BTreeMap<u64, BarrierHistory>,
    /// The number of mbarriers that were initialised so far.
    barriers_made: u32,
    /// The arrivals at each barrier of the block.
    named: HashMap<u32, Vec<Contribution>>,
    /// What the exited threads knew, and whether all have exited.
    exit_view: View,
    ended: bool,
    /// Whether the block has passed a cluster barrier.
    met_cluster: bool,
    /// Bulk copies that read here and complete on an mbarrier of another block: the event, the
    /// bytes, the instruction, and the thread that issued it.
    sources: Vec<(Event, Place, At, Thread)>,
    /// The last accesses from other blocks, by warp.
    remote: BTreeMap<u64, (Event, u32, Place)>,
}

/// Checks one cluster. [`GridChecker::cluster`] makes it. When it is dropped, its findings go to
/// the grid.
#[derive(Debug)]
pub struct ClusterChecker<'g> {
    grid: &'g GridChecker,
    here: Here,
    warps: Vec<WarpState>,
    memories: Vec<SharedMemory>,
    /// What threads released at the cluster barrier in this phase, and in the previous one.
    gathering: View,
    gathered: View,
    reports: Reports,
    /// The allocation that was accessed last, as a guess for the next search.
    guess: usize,
    /// What was missing at the last flag that was read.
    suspicion: Option<Missing>,
    /// The reads whose use is watched, and the findings about reads.
    uses: Uses,
}

impl<'g> ClusterChecker<'g> {
    pub(super) fn new(grid: &'g GridChecker, number: u32) -> ClusterChecker<'g> {
        let ranks = grid.ranks();
        let threads: u64 = grid.launch.block.iter().map(|extent| u64::from(*extent)).product();
        let view = Arc::new(View::default());
        let warp = |at: u32| {
            let lanes = (threads - 32 * u64::from(at % grid.code.warps)).min(32);
            WarpState {
                view: WarpView::One(Arc::clone(&view)),
                count: FIRST_COUNT,
                lanes: u32::MAX >> (32 - lanes),
                live: u32::MAX >> (32 - lanes),
                copies: Groups::default(),
                bulk: Groups::default(),
                products: Groups::default(),
                product_groups: Vec::new(),
                bulk_read: Groups::default(),
                acquired: None,
                registers: None,
            }
        };
        let pages = u64::from(grid.launch.shared_bytes).div_ceil(PAGE_BYTES) as usize;
        let memory = |_| SharedMemory {
            pages: std::iter::repeat_with(|| None).take(pages).collect(),
            ..SharedMemory::default()
        };
        ClusterChecker {
            grid,
            here: Here { cluster: number, ranks },
            warps: (0..ranks * grid.code.warps).map(warp).collect(),
            memories: (0..ranks).map(memory).collect(),
            gathering: View::default(),
            gathered: View::default(),
            reports: Reports::default(),
            guess: 0,
            suspicion: None,
            uses: Uses::default(),
        }
    }

    #[inline]
    fn warp_at(&self, by: Lanes) -> usize {
        (by.rank * self.grid.code.warps + by.warp) as usize
    }

    #[inline]
    fn warp_mut(&mut self, by: Lanes) -> &mut WarpState {
        let at = self.warp_at(by);
        &mut self.warps[at]
    }

    /// The number of the block with a rank.
    #[inline]
    fn block(&self, rank: u32) -> u32 {
        self.here.cluster * self.here.ranks + rank
    }

    /// Increments the count of a warp: later events are not part of what it has released.
    fn tick(&mut self, by: Lanes) {
        let max = self.grid.code.max_count();
        let warp = self.warp_mut(by);
        warp.count += 1;
        if warp.count >= max {
            warp.count = max;
            self.reports.overflowed = true;
        }
    }

    /// Changes the views of some lanes.
    fn learn(&mut self, by: Lanes, change: impl Fn(&mut View)) {
        let warp = self.warp_mut(by);
        if by.mask & warp.live == warp.live
            && let WarpView::One(view) = &mut warp.view
        {
            change(Arc::make_mut(view));
            return;
        }
        let mut views: Box<[Arc<View>; 32]> = match &warp.view {
            WarpView::One(view) => Box::new(std::array::from_fn(|_| Arc::clone(view))),
            WarpView::Each(views) => views.clone(),
        };
        // Lanes with the same view before have the same view afterwards.
        let mut last: Option<(Arc<View>, Arc<View>)> = None;
        for lane in lanes(by.mask) {
            let view = &mut views[lane as usize];
            let after = match &last {
                Some((before, after)) if Arc::ptr_eq(before, view) => Arc::clone(after),
                _ => {
                    let mut after = (**view).clone();
                    change(&mut after);
                    Arc::new(after)
                }
            };
            last = Some((Arc::clone(view), Arc::clone(&after)));
            *view = after;
        }
        warp.view = WarpView::Each(views);
    }

    /// Sets the views of some lanes.
    fn set_view(&mut self, by: Lanes, view: &Arc<View>) {
        let warp = self.warp_mut(by);
        if by.mask & warp.live == warp.live {
            warp.view = WarpView::One(Arc::clone(view));
            return;
        }
        if let WarpView::One(one) = &warp.view {
            warp.view = WarpView::Each(Box::new(std::array::from_fn(|_| Arc::clone(one))));
        }
        if let WarpView::Each(views) = &mut warp.view {
            lanes(by.mask).for_each(|lane| views[lane as usize] = Arc::clone(view));
        }
    }

    /// What some lanes know together, without their own latest events.
    fn joint(&self, by: Lanes) -> Arc<View> {
        let warp = &self.warps[self.warp_at(by)];
        match &warp.view {
            WarpView::One(view) => Arc::clone(view),
            WarpView::Each(views) => {
                let mut all = lanes(by.mask).map(|lane| &views[lane as usize]);
                let first = all.next().map_or_else(Arc::default, Arc::clone);
                let mut joint: Option<View> = None;
                for view in all.filter(|view| !Arc::ptr_eq(view, &first)) {
                    joint.get_or_insert_with(|| (*first).clone()).join(self.here.cluster, view, self.here.cluster);
                }
                joint.map_or(first, Arc::new)
            }
        }
    }

    /// What some lanes know together, with their own events up to now.
    fn released(&self, by: Lanes) -> View {
        let mut view = (*self.joint(by)).clone();
        self.add_own(&mut view.known, by);
        view
    }

    fn add_own(&self, known: &mut Known, by: Lanes) {
        let warp = &self.warps[self.warp_at(by)];
        let local = self.grid.code.local(by.warp, Agency::Thread);
        let mask = if by.mask & warp.lanes == warp.lanes { u32::MAX } else { by.mask };
        known.raise(by.rank, local, warp.count, mask);
    }

    fn thread(&self, by: Lanes, lane: u32) -> Thread {
        self.grid.thread(self.block(by.rank), by.warp, lane)
    }

    fn first(&self, by: Lanes) -> Thread {
        self.thread(by, by.mask.trailing_zeros() & 31)
    }

    fn find(&mut self, defect: Defect, at: At, thread: Thread) {
        self.reports.add(Finding::new(defect, at, thread));
    }

    /// Reports a finding about a read, or keeps it until the use of the read is known.
    fn find_read(&mut self, finding: Finding, reader: ReadOfLane) {
        match self.grid.watches(self.grid.code.at(reader.event)) {
            true => self.uses.hold(&self.grid.kept, finding, reader),
            false => {
                self.uses.suspects.insert(self.grid.code.at(reader.event));
                self.reports.add(finding);
            }
        }
    }

    /// Bytes of shared memory, for a message.
    fn shared_place(&self, by: u32, rank: u32, address: u64, bytes: u32) -> Place {
        let memory = match by == rank {
            true => "shared memory".to_string(),
            false => format!("shared memory of the block of rank {rank}"),
        };
        Place { memory, byte: address as i64, bytes: u64::from(bytes) }
    }

    fn barrier_place(&self, by: u32, barrier: Mbarrier) -> Place {
        self.shared_place(by, barrier.rank, barrier.address, 8)
    }
}

/// The lanes of a mask.
#[inline]
fn lanes(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some(lane)
    })
}

impl Drop for ClusterChecker<'_> {
    fn drop(&mut self) {
        let lost = self.memories.iter().flat_map(|memory| memory.pages.iter().flatten()).any(|page| page.lost);
        self.uses.gave_up |= lost;
        self.grid.add(std::mem::take(&mut self.reports));
        self.grid.add_uses(self.here.cluster, std::mem::take(&mut self.uses));
    }
}

impl Checker for ClusterChecker<'_> {
    fn access(&mut self, access: &Access<'_>) {
        self.touch_lanes(access);
        self.synchronise(access);
    }

    fn watches_uses(&self) -> bool {
        self.grid.watches_any()
    }

    fn watched(&mut self, access: &Access<'_>) -> Option<u32> {
        if !self.grid.watches(access.at) {
            return None;
        }
        let strength = access_strength(access);
        let local = self.grid.code.local(access.by.warp, Agency::Thread);
        let count = self.warps[self.warp_at(access.by)].count;
        let event = self.grid.code.event(self.block(access.by.rank), local, strength, access.at, count);
        let rank = match access.space {
            Space::Shared { rank } => Some(rank),
            Space::Global => None,
        };
        self.uses.watch(&self.grid.kept, event, WatchedRead::new(rank, access))
    }

    fn used(&mut self, read: u32, lane: u32) {
        self.uses.used(read, lane);
    }

    fn barrier_arrive(&mut self, by: Lanes, barrier: u32) {
        self.arrive_at_barrier(by, barrier);
    }

    fn barrier_complete(&mut self, rank: u32, barrier: u32, waiters: &[Lanes]) {
        self.complete_barrier(rank, barrier, waiters);
    }

    fn warp_sync(&mut self, by: Lanes) {
        let mut view = self.released(by);
        self.add_own(&mut view.known, by);
        self.set_view(by, &Arc::new(view));
        self.tick(by);
    }

    fn cluster_arrive(&mut self, by: Lanes, release: bool) {
        self.arrive_in_cluster(by, release);
    }

    fn cluster_complete(&mut self) {
        self.gathered = std::mem::take(&mut self.gathering);
    }

    fn cluster_wait(&mut self, by: Lanes, acquire: bool) {
        self.memories[by.rank as usize].met_cluster = true;
        let (here, gathered) = (self.here.cluster, std::mem::take(&mut self.gathered));
        self.learn(by, |view| match acquire {
            true => view.join(here, &gathered, here),
            false => view.suspend(here, Scope::Cluster as usize, &gathered.known, here),
        });
        self.gathered = gathered;
    }

    fn mbarrier_init(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        self.initialise(by, at, barrier);
    }

    fn mbarrier_invalidate(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        self.uses_barrier(by, at, barrier);
        self.memories[barrier.rank as usize].barriers.remove(&barrier.address);
        self.fill(barrier, Event::NONE);
    }

    fn mbarrier_arrive(&mut self, by: Lanes, at: At, barrier: Mbarrier, release: bool) {
        self.arrive_in_memory(by, at, barrier, release);
    }

    fn mbarrier_arrive_copies(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        self.arrive_by_copies(by, at, barrier);
    }

    fn mbarrier_complete(&mut self, barrier: Mbarrier, phase: u64) {
        self.complete_phase(barrier, phase);
    }

    fn mbarrier_wait(&mut self, by: Lanes, at: At, barrier: Mbarrier, phase: i64, acquire: bool) {
        self.see_phase(by, at, barrier, phase, acquire);
    }

    fn copy(&mut self, copy: &CopyAsync<'_>) {
        self.issue_copy(copy);
    }

    fn copy_commit(&mut self, by: Lanes) {
        let count = self.warps[self.warp_at(by)].count;
        self.warp_mut(by).copies.commit(count, by.mask);
        self.tick(by);
    }

    fn copy_wait(&mut self, by: Lanes, pending: u32) {
        let at = self.warp_at(by);
        let done = self.warps[at].copies.wait(by.mask, pending);
        self.finish(by, Agency::Copy, &done);
    }

    fn bulk(&mut self, bulk: &Bulk<'_>) {
        self.issue_bulk(bulk);
    }

    fn map_read(&mut self, by: Lanes, at: At, map: Span) {
        let local = self.grid.code.local(by.warp, Agency::Thread);
        let count = self.warps[self.warp_at(by)].count;
        self.touch_span(by, at, map, local, by.rank, count, false, 0, Proxy::TensorMap);
    }

    fn bulk_commit(&mut self, by: Lanes) {
        let count = self.warps[self.warp_at(by)].count;
        let warp = self.warp_mut(by);
        warp.bulk.commit(count, by.mask);
        warp.bulk_read.commit(count, by.mask);
        self.tick(by);
    }

    fn bulk_wait(&mut self, by: Lanes, pending: u32, reads: bool) {
        let at = self.warp_at(by);
        let read = self.warps[at].bulk_read.wait(by.mask, pending);
        self.finish(by, Agency::BulkRead, &read);
        if !reads {
            let written = self.warps[at].bulk.wait(by.mask, pending);
            self.finish(by, Agency::BulkWrite, &written);
        }
    }

    fn fence(&mut self, by: Lanes, fence: Fence) {
        self.fence_lanes(by, fence);
    }

    fn wgmma_fence(&mut self, by: Lanes) {
        self.fence_registers(by);
    }

    fn wgmma(&mut self, wgmma: &Wgmma<'_>) {
        self.issue_product(wgmma);
    }

    fn wgmma_commit(&mut self, by: Lanes) {
        let count = self.warps[self.warp_at(by)].count;
        let warp = self.warp_mut(by);
        warp.products.commit(count, by.mask);
        warp.product_groups.push(count);
        self.commit_registers(by);
        self.tick(by);
    }

    fn wgmma_wait(&mut self, by: Lanes, pending: u32) {
        self.wait_products(by, pending);
        self.wait_registers(by, pending);
    }

    #[inline]
    fn watches_registers(&self, rank: u32, warp: u32) -> bool {
        self.warps[(rank * self.grid.code.warps + warp) as usize].registers.is_some()
    }

    fn registers(&mut self, by: Lanes, at: At, reads: &[u32], writes: &[u32]) {
        self.touch_registers(by, at, reads, writes);
    }

    fn register_copy(&mut self, by: Lanes, from: u32, to: u32) {
        self.copy_register(by, from, to);
    }

    fn exit(&mut self, by: Lanes, at: At) {
        self.exit_lanes(by, at);
    }

    fn block_exit(&mut self, rank: u32) {
        self.end_block(rank);
    }

    fn report(&mut self, finding: Finding) {
        self.reports.add(finding);
    }

    fn is_full(&self) -> bool {
        self.reports.is_full()
    }
}
