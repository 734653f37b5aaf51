//! Barriers of the block, barriers of the cluster, and mbarriers.

use std::sync::Arc;

use super::super::checker::{At, Lanes, Mbarrier, Scope};
use super::super::clock::View;
use super::super::event::{Agency, BARRIERS, Event, FIRST_COUNT};
use super::super::finding::{Defect, PhaseFault};
use super::super::shadow::{PAGE_BYTES, Page};
use super::{ClusterChecker, WarpView, lanes};

/// What lanes release when they arrive at a barrier.
#[derive(Debug)]
pub(super) struct Contribution {
    by: Lanes,
    view: Arc<View>,
    count: u32,
}

/// The number of phases of an mbarrier that are remembered.
const PHASES: usize = 4;

/// The history of an mbarrier.
#[derive(Debug)]
pub(super) struct BarrierHistory {
    /// Its number among the mbarriers of the block, which identifies the bulk loads that arrive
    /// there.
    slot: u32,
    /// The event that initialised it.
    made: Event,
    lane: u32,
    /// The number of completed phases.
    over: u64,
    /// What was released by arrivals in the current phase.
    gathering: View,
    /// What the last phases released, by their number modulo [`PHASES`].
    gathered: [Arc<View>; PHASES],
    /// The last bulk load that arrives here, with its phase; and the last phase that was waited
    /// for.
    load: Option<(At, u64)>,
    waited: Option<u64>,
    /// The waits for the last completed phase: the events, with lane 0, and the lanes.
    waits: Vec<(Event, u32)>,
}

impl ClusterChecker<'_> {
    pub(super) fn arrive_at_barrier(&mut self, by: Lanes, barrier: u32) {
        let warp = &self.warps[self.warp_at(by)];
        let count = warp.count;
        let contributions: Vec<Contribution> = match &warp.view {
            WarpView::One(view) => vec![Contribution { by, view: Arc::clone(view), count }],
            WarpView::Each(views) => {
                let mut all: Vec<Contribution> = Vec::new();
                for lane in lanes(by.mask) {
                    let view = &views[lane as usize];
                    match all.iter_mut().find(|same| Arc::ptr_eq(&same.view, view)) {
                        Some(same) => same.by.mask |= 1 << lane,
                        None => {
                            let by = Lanes { mask: 1 << lane, ..by };
                            all.push(Contribution { by, view: Arc::clone(view), count });
                        }
                    }
                }
                all
            }
        };
        self.memories[by.rank as usize].named.entry(barrier).or_default().extend(contributions);
        self.tick(by);
    }

    pub(super) fn complete_barrier(&mut self, rank: u32, barrier: u32, waiters: &[Lanes]) {
        let Some(came) = self.memories[rank as usize].named.get_mut(&barrier).map(std::mem::take) else { return };
        let (here, warps) = (self.here.cluster, self.grid.code.warps);
        let mut joint: Option<Arc<View>> = None;
        let mut last: Option<&Arc<View>> = None;
        for contribution in &came {
            match &mut joint {
                None => joint = Some(Arc::clone(&contribution.view)),
                Some(_) if last.is_some_and(|last| Arc::ptr_eq(last, &contribution.view)) => {}
                Some(joint) if Arc::ptr_eq(joint, &contribution.view) => {}
                Some(joint) => Arc::make_mut(joint).join(here, &contribution.view, here),
            }
            last = Some(&contribution.view);
        }
        let Some(mut joint) = joint else { return };
        let live: u32 = self.of_rank(rank).iter().map(|warp| warp.live.count_ones()).sum();
        let came_lanes: u32 = came.iter().map(|contribution| contribution.by.mask.count_ones()).sum();
        let waiting: u32 = waiters.iter().map(|lanes| lanes.mask.count_ones()).sum();
        let view = Arc::make_mut(&mut joint);
        if live == came_lanes && waiting == live {
            // All threads of the block have arrived, so one number stands for all.
            let floor = came.iter().map(|contribution| contribution.count).max().unwrap_or(FIRST_COUNT);
            view.known.raise_floor(rank, floor, warps);
            for warp in self.of_rank_mut(rank) {
                warp.count = warp.count.max(floor + 1);
            }
        } else {
            for contribution in &came {
                let local = self.grid.code.local(contribution.by.warp, Agency::Thread);
                view.known.raise(rank, local, contribution.count, contribution.by.mask);
            }
        }
        for lanes in waiters {
            self.set_view(*lanes, &joint);
        }
    }

    fn of_rank(&self, rank: u32) -> &[super::WarpState] {
        let warps = self.grid.code.warps as usize;
        &self.warps[rank as usize * warps..][..warps]
    }

    fn of_rank_mut(&mut self, rank: u32) -> &mut [super::WarpState] {
        let warps = self.grid.code.warps as usize;
        &mut self.warps[rank as usize * warps..][..warps]
    }

    pub(super) fn arrive_in_cluster(&mut self, by: Lanes, release: bool) {
        let here = self.here.cluster;
        let joint = self.joint(by);
        if release {
            let mut view = (*joint).clone();
            self.add_own(&mut view.known, by);
            self.gathering.join(here, &view, here);
            self.tick(by);
        } else if let Some(published) = &joint.published[Scope::Cluster as usize] {
            self.gathering.known.join(here, published, here);
        }
    }

    pub(super) fn initialise(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        let code = self.grid.code;
        let block = self.block(by.rank);
        let lane = by.mask.trailing_zeros() & 31;
        let count = self.warps[self.warp_at(by)].count;
        let made = code.event(block, code.local(by.warp, Agency::Thread), 0, at, count);
        let memory = &mut self.memories[barrier.rank as usize];
        let slot = memory.barriers_made % BARRIERS.min(if self.grid.launch.asynchronous { BARRIERS } else { 1 });
        memory.barriers_made += 1;
        // If an earlier mbarrier of the block had this slot, the counting of phases continues.
        let state = BarrierHistory {
            slot,
            made,
            lane,
            over: 0,
            gathering: View::default(),
            gathered: std::array::from_fn(|_| Arc::default()),
            load: None,
            waited: None,
            waits: Vec::new(),
        };
        memory.barriers.insert(barrier.address, state);
        self.fill(barrier, Event::INITIAL);
    }

    /// Marks the bytes of an mbarrier as unwritten, or as belonging to the mbarrier.
    pub(super) fn fill(&mut self, barrier: Mbarrier, event: Event) {
        let memory = &mut self.memories[barrier.rank as usize];
        let Some(slot) = memory.pages.get_mut((barrier.address / PAGE_BYTES) as usize) else { return };
        let page = slot.get_or_insert_with(|| Box::new(Page::new(Event::NONE, barrier.address, 8)));
        page.barriers |= event == Event::INITIAL;
        page.fit(barrier.address, 8);
        for at in page.cells_of(barrier.address, 8) {
            page.set_write(at, event);
        }
    }

    /// Checks that some lanes may use an mbarrier: its initialisation happened before.
    pub(super) fn uses_barrier(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        let (code, here) = (self.grid.code, self.here);
        let unpublished = match self.memories[barrier.rank as usize].barriers.get(&barrier.address) {
            None => Some(false),
            Some(state) => {
                let made = state.made;
                let own = code.agent(made)
                    == code.agent(code.event(self.block(by.rank), code.local(by.warp, Agency::Thread), 0, 0, 0));
                let warp = &self.warps[self.warp_at(by)];
                let known = lanes(by.mask).all(|lane| {
                    (own && lane == state.lane) || warp.view.of(lane).known.covers(&code, here, made, 1 << state.lane)
                });
                (!known).then_some(true)
            }
        };
        if let Some(unpublished) = unpublished {
            let place = self.barrier_place(by.rank, barrier);
            self.find(Defect::Uninitialised { place, unpublished }, at, self.first(by));
        }
    }

    pub(super) fn arrive_in_memory(&mut self, by: Lanes, at: At, barrier: Mbarrier, release: bool) {
        self.uses_barrier(by, at, barrier);
        match by.rank == barrier.rank {
            true => self.knows_phase(by, at, barrier),
            false => self.is_alive(by, at, barrier.rank, barrier.address, 8),
        }
        if !release {
            return;
        }
        let (here, view) = (self.here.cluster, self.released(by));
        if let Some(state) = self.memories[barrier.rank as usize].barriers.get_mut(&barrier.address) {
            state.gathering.join(here, &view, here);
        }
        self.tick(by);
    }

    /// Checks that arriving lanes know that the previous phase has completed. Otherwise the arrival
    /// may count in that phase. Only threads of the mbarrier's own block are checked: a thread of
    /// another block may know it from bytes that it has received, which is not tracked here.
    fn knows_phase(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        let (code, here) = (self.grid.code, self.here);
        let Some(state) = self.memories[barrier.rank as usize].barriers.get(&barrier.address) else { return };
        let (slot, phase) = (state.slot, state.over);
        if phase == 0 || phase >= u64::from(code.max_count() - FIRST_COUNT) {
            return;
        }
        let before = code.event(self.block(barrier.rank), code.loads(slot), 0, 0, phase as u32 + FIRST_COUNT - 1);
        let warp = &self.warps[self.warp_at(by)];
        let unknown = lanes(by.mask).find(|lane| !warp.view.of(*lane).known.covers(&code, here, before, u32::MAX));
        if let Some(lane) = unknown {
            let place = self.barrier_place(by.rank, barrier);
            let defect = Defect::Phase { place, phase: phase as i64, fault: PhaseFault::Arrival };
            self.find(defect, at, self.thread(by, lane));
        }
    }

    pub(super) fn arrive_by_copies(&mut self, by: Lanes, at: At, barrier: Mbarrier) {
        self.uses_barrier(by, at, barrier);
        let count = self.warps[self.warp_at(by)].count;
        let local = self.grid.code.local(by.warp, Agency::Copy);
        self.warp_mut(by).copies.hand_over(by.mask);
        if let Some(state) = self.memories[barrier.rank as usize].barriers.get_mut(&barrier.address) {
            state.gathering.known.raise(by.rank, local, count, by.mask);
        }
        self.tick(by);
    }

    /// The slot and the phase number of an mbarrier, for a bulk load that arrives there.
    pub(super) fn loads_at(&mut self, barrier: Mbarrier, at: At) -> (u32, u32) {
        match self.memories[barrier.rank as usize].barriers.get_mut(&barrier.address) {
            Some(state) => {
                state.load = Some((at, state.over));
                (state.slot, u32::try_from(state.over).unwrap_or(u32::MAX))
            }
            None => (0, 0),
        }
    }

    pub(super) fn complete_phase(&mut self, barrier: Mbarrier, phase: u64) {
        let (code, here) = (self.grid.code, self.here);
        let Some(state) = self.memories[barrier.rank as usize].barriers.get_mut(&barrier.address) else { return };
        let mut view = std::mem::take(&mut state.gathering);
        let count = u32::try_from(phase).unwrap_or(u32::MAX).saturating_add(FIRST_COUNT).min(code.max_count());
        view.known.raise(barrier.rank, code.loads(state.slot), count, u32::MAX);
        state.over = phase + 1;
        // Each thread that waited for the previous phase must have observed it before this phase
        // completed.
        let waits = std::mem::take(&mut state.waits);
        let missed = waits.into_iter().find_map(|(event, mask)| {
            let lane = lanes(mask).find(|lane| !view.known.covers(&code, here, event, 1 << lane))?;
            // The warp is excused if it issued wgmma after its wait, and these are known to have
            // completed.
            let warp = code.agency(code.local_of(event)).map_or(0, |(warp, _)| warp);
            let local = code.local(warp, Agency::Multiply);
            let products = code.event(code.block(event), local, 0, 0, code.count(event));
            (!view.known.covers(&code, here, products, u32::MAX)).then_some((event, lane))
        });
        state.gathered[phase as usize % PHASES] = Arc::new(view);
        if let Some((event, lane)) = missed {
            let block = code.block(event);
            let warp = code.agency(code.local_of(event)).map_or(0, |(warp, _)| warp);
            let place = self.barrier_place(block % here.ranks, barrier);
            let defect = Defect::Phase { place, phase: phase as i64 - 1, fault: PhaseFault::Missed };
            self.find(defect, code.at(event), self.grid.thread(block, warp, lane));
        }
    }

    pub(super) fn see_phase(&mut self, by: Lanes, at: At, barrier: Mbarrier, phase: i64, acquire: bool) {
        self.uses_barrier(by, at, barrier);
        let Ok(phase) = u64::try_from(phase) else { return };
        let (code, here) = (self.grid.code, self.here);
        let (block, count) = (self.block(by.rank), self.warps[self.warp_at(by)].count);
        let Some(state) = self.memories[barrier.rank as usize].barriers.get_mut(&barrier.address) else { return };
        state.waited = state.waited.max(Some(phase));
        let own = code.event(block, code.local(by.warp, Agency::Thread), 0, at, count);
        match state.waits.iter_mut().find(|(event, _)| *event == own) {
            _ if phase + 1 != state.over => {}
            Some((_, mask)) => *mask |= by.mask,
            None => state.waits.push((own, by.mask)),
        }
        let gathered = Arc::clone(&state.gathered[phase as usize % PHASES]);
        let slot = state.slot;
        // If bulk loads arrive at an mbarrier, the previous phase must be known to have completed.
        // Otherwise the wait might succeed on the phase two before.
        let before = code.event(self.block(barrier.rank), code.loads(slot), 0, 0, phase as u32 + FIRST_COUNT - 1);
        let loads = self.memories[barrier.rank as usize]
            .barriers
            .get(&barrier.address)
            .is_some_and(|state| state.load.is_some());
        let warp = &self.warps[self.warp_at(by)];
        if loads && phase > 0 && phase < u64::from(u32::MAX) {
            let unknown = lanes(by.mask).find(|lane| !warp.view.of(*lane).known.covers(&code, here, before, u32::MAX));
            if let Some(lane) = unknown {
                let place = self.barrier_place(by.rank, barrier);
                let defect = Defect::Phase { place, phase: phase as i64, fault: PhaseFault::Early };
                self.find(defect, at, self.thread(by, lane));
            }
        }
        self.learn(by, |view| match acquire {
            true => view.join(here.cluster, &gathered, here.cluster),
            false => view.suspend(here.cluster, Scope::Cluster as usize, &gathered.known, here.cluster),
        });
    }

    /// The bulk loads of a block that no thread has waited for when the block exits.
    pub(super) fn open_loads(&self, rank: u32) -> Option<At> {
        let barriers = self.memories[rank as usize].barriers.values();
        let open = barriers.filter_map(|state| state.load.filter(|(_, phase)| Some(*phase) > state.waited));
        open.map(|(at, _)| at).min()
    }
}
