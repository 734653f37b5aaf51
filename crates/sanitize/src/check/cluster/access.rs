//! Accesses: each is compared with earlier ones, and recorded in the shadow memory.

mod actor;
mod cells;

use self::actor::Actor;
use self::cells::{Conflict, Effect, Found, for_each_actor, read_behind_proxy, touch, touch_group};
use super::{ClusterChecker, Proxy, WarpView};
use crate::check::checker::{Access, At, Kind, Lanes, Order, Scope, Space, Span};
use crate::check::clock::Known;
use crate::check::event::{Agency, Event, STRONG_WRITE, strength};
use crate::check::finding::{Defect, Finding, Missing, Party, Place, ProxyFence, Work};
use crate::check::grid::needed;
use crate::check::shadow::{PAGE_BYTES, Page};
use crate::check::uses::{Bytes, ReadOfLane};

/// The strength of an access, and whether it writes, as bits of an event.
pub(super) fn access_strength(access: &Access<'_>) -> u32 {
    match access.order {
        Order::Weak | Order::NonCoherent => 0,
        Order::Volatile => 3,
        _ => strength(access.scope),
    }
}

/// The later access of a conflict, of one lane.
#[derive(Clone, Copy)]
struct Later {
    by: Lanes,
    at: At,
    writes: bool,
    strength: u32,
    /// The asynchronous work that it is of.
    work: Option<Work>,
}

impl ClusterChecker<'_> {
    /// Checks and records an access of some lanes.
    pub(super) fn touch_lanes(&mut self, access: &Access<'_>) {
        let strength = access_strength(access);
        let atomic = matches!(access.kind, Kind::Atomic | Kind::Reduction);
        let effect = Effect {
            reads: access.kind == Kind::Read || atomic,
            writes: access.kind != Kind::Read,
            strong: strength > 0,
            coherent: access.order != Order::NonCoherent,
            stands: self.grid.stands(access.at, access.kind),
        };
        let strength = if effect.strong && effect.writes { strength | STRONG_WRITE } else { strength };
        let local = self.grid.code.local(access.by.warp, Agency::Thread);
        match access.space {
            Space::Shared { rank } => {
                self.touch_shared(access, rank, local, strength, effect);
            }
            Space::Global => self.touch_global(access, local, strength, effect),
        }
    }

    fn touch_shared(&mut self, access: &Access<'_>, rank: u32, local: u32, strength: u32, effect: Effect) {
        let by = access.by;
        if by.rank != rank {
            self.is_alive(by, access.at, rank, access.addresses[by.mask.trailing_zeros() as usize & 31], access.bytes);
        }
        let (code, here, block) = (self.grid.code, self.here, self.block(by.rank));
        let warp = &self.warps[(by.rank * code.warps + by.warp) as usize];
        let event = code.event(block, local, strength, access.at, warp.count);
        let memory = &mut self.memories[rank as usize];
        let mut found: Vec<(u32, Found)> = Vec::new();
        let mut barrier_bytes: Option<(u32, u64)> = None;
        for_each_actor(access, effect, &warp.view, |group, known| {
            let address = access.addresses[group.trailing_zeros() as usize & 31];
            let Some(slot) = memory.pages.get_mut((address / PAGE_BYTES) as usize) else { return };
            let page = slot.get_or_insert_with(|| Box::new(Page::new(Event::NONE, address, access.bytes)));
            if page.barriers {
                let before = memory.barriers.range(..address + u64::from(access.bytes)).next_back();
                if before.is_some_and(|(barrier, _)| barrier + 8 > address) {
                    let last = 31 - group.leading_zeros();
                    barrier_bytes = barrier_bytes.filter(|(lane, _)| *lane > last).or(Some((last, address)));
                    return;
                }
            }
            let actor = Actor::new(code, here, by.rank, event, group, known);
            touch_group(page, access, address, actor, effect, &mut |lane, own| found.push((lane, own)));
        });
        found.sort_by_key(|(lane, _)| *lane);
        if let Some((lane, address)) = barrier_bytes {
            let place = self.shared_place(by.rank, rank, address, access.bytes);
            self.find(Defect::BarrierBytes { place }, access.at, self.thread(by, lane));
        }
        for (lane, found) in found {
            let address = access.addresses[lane as usize];
            let place = self.shared_place(by.rank, rank, address, access.bytes);
            let by = Lanes { mask: 1 << lane, ..by };
            let bytes = Bytes { rank: Some(rank), first: address + u64::from(found.first), bytes: found.bytes };
            let later = Later { by, at: access.at, writes: effect.writes, strength, work: None };
            self.conflict(later, (place, bytes), found.conflict);
        }
    }

    fn touch_global(&mut self, access: &Access<'_>, local: u32, strength: u32, effect: Effect) {
        let by = access.by;
        let (code, here, block) = (self.grid.code, self.here, self.block(by.rank));
        let warp = &self.warps[(by.rank * code.warps + by.warp) as usize];
        let event = code.event(block, local, strength, access.at, warp.count);
        let mut found: Vec<(u32, Found)> = Vec::new();
        let grid = self.grid;
        let mut guess = self.guess;
        let mut held: Option<(usize, u64, std::sync::MutexGuard<'_, super::super::grid::GlobalPage>)> = None;
        for_each_actor(access, effect, &warp.view, |group, known| {
            let address = access.addresses[group.trailing_zeros() as usize & 31];
            let Some(allocation) = grid.allocation(address, guess) else { return };
            guess = allocation;
            let offset = address - grid.launch.allocations[allocation].address;
            let number = offset / PAGE_BYTES;
            if held.as_ref().is_none_or(|(of, page, _)| *of != allocation || *page != number) {
                // The lock of one page is released before that of the next is taken.
                drop(held.take());
                held = Some((allocation, number, grid.page(allocation, offset, access.bytes)));
            }
            let Some((_, _, page)) = &mut held else { return };
            if !effect.strong && effect.writes && !page.flags.is_empty() {
                page.flags.remove(&address);
            }
            let actor = Actor::new(code, here, by.rank, event, group, known);
            let mut find = |lane, own| found.push((lane, own));
            touch_group(&mut page.page, access, offset, actor, effect, &mut find);
        });
        drop(held);
        self.guess = guess;
        found.sort_by_key(|(lane, _)| *lane);
        for (lane, found) in found {
            let address = access.addresses[lane as usize];
            let Some(allocation) = grid.allocation(address, guess) else { continue };
            let offset = address - grid.launch.allocations[allocation].address;
            let place = self.global_place(allocation, offset, access.bytes);
            let by = Lanes { mask: 1 << lane, ..by };
            let bytes = Bytes { rank: None, first: address + u64::from(found.first), bytes: found.bytes };
            let later = Later { by, at: access.at, writes: effect.writes, strength, work: None };
            self.conflict(later, (place, bytes), found.conflict);
        }
    }

    fn global_place(&self, allocation: usize, offset: u64, bytes: u32) -> Place {
        let name = &self.grid.launch.allocations[allocation].name;
        Place { memory: format!("`{name}`"), byte: offset as i64, bytes: u64::from(bytes) }
    }

    /// Checks and records an access by the async proxy that one lane has issued.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn touch_span(
        &mut self,
        by: Lanes,
        at: At,
        span: Span,
        local: u32,
        owner: u32,
        count: u32,
        writes: bool,
        strength: u32,
        proxy: Proxy,
    ) {
        let lane = by.mask.trailing_zeros() & 31;
        let (code, here) = (self.grid.code, self.here);
        let block = self.block(by.rank);
        let at_warp = self.warp_at(by);
        let event = code.event(self.block(owner), local, strength, at, count);
        let thread = code.agent(code.event(block, code.local(by.warp, Agency::Thread), 0, at, 0));
        let view = match &self.warps[at_warp].view {
            WarpView::One(view) => std::sync::Arc::clone(view),
            WarpView::Each(views) => std::sync::Arc::clone(&views[lane as usize]),
        };
        let nothing = Known::default();
        let fence = proxy.fence(span.space == Space::Global);
        let fenced = fence.map(|fence| view.fenced[fence as usize].as_deref().unwrap_or(&nothing));
        let floor = view.known.floor(by.rank);
        let (lanes, own) = (1 << lane, view.known.of_rank(by.rank));
        let known = &view.known;
        let actor = Actor { code, here, block, lane, lanes, known, own, floor, fenced, thread, event };
        let stands = self.grid.stands_of_engines();
        let effect = Effect { reads: !writes, writes, strong: strength > 0, coherent: true, stands };
        let end = span.address + u64::from(span.bytes);
        let mut address = span.address;
        let mut last = None;
        while address < end {
            // Pieces of at most 16 bytes, each aligned to its size.
            let bytes = piece(address, end);
            let mut found: Vec<Found> = Vec::new();
            let place = match span.space {
                Space::Shared { rank } => {
                    let memory = &mut self.memories[rank as usize];
                    let Some(slot) = memory.pages.get_mut((address / PAGE_BYTES) as usize) else { break };
                    let page = slot.get_or_insert_with(|| Box::new(Page::new(Event::NONE, address, bytes)));
                    let is_read = effect.is_weak_read()
                        && !page.strong
                        && read_behind_proxy(page, address, bytes, &actor, stands, &mut last);
                    if !is_read {
                        touch(page, address, bytes, &actor, effect, |_| false, |own| found.push(own));
                    }
                    (!found.is_empty()).then(|| self.shared_place(by.rank, rank, address, bytes))
                }
                Space::Global => {
                    let Some(allocation) = self.grid.allocation(address, self.guess) else { break };
                    self.guess = allocation;
                    let offset = address - self.grid.launch.allocations[allocation].address;
                    let mut page = self.grid.page(allocation, offset, bytes);
                    touch(&mut page.page, offset, bytes, &actor, effect, |_| false, |own| found.push(own));
                    drop(page);
                    (!found.is_empty()).then(|| self.global_place(allocation, offset, bytes))
                }
            };
            let rank = match span.space {
                Space::Shared { rank } => Some(rank),
                Space::Global => None,
            };
            let work = code.agency(local).map_or(Work::BulkLoad, |(_, agency)| work_of(agency));
            let work = (proxy != Proxy::TensorMap).then_some(work);
            for Found { conflict, first, bytes } in found {
                let Some(place) = place.clone() else { continue };
                let bytes = Bytes { rank, first: address + u64::from(first), bytes };
                self.conflict(Later { by, at, writes, strength, work }, (place, bytes), conflict);
            }
            address += u64::from(bytes);
        }
    }

    /// Reports a conflict of an access. Where one of the two is a read of a thread, the finding
    /// waits for the use of what was read.
    fn conflict(&mut self, later: Later, (place, bytes): (Place, Bytes), conflict: Conflict) {
        let (code, Later { by, at, writes, strength, work }) = (self.grid.code, later);
        let lane = by.mask.trailing_zeros() & 31;
        let reader = match conflict {
            _ if !writes && work.is_none() => {
                let count = self.warps[self.warp_at(by)].count;
                let local = code.local(by.warp, Agency::Thread);
                Some((code.event(self.block(by.rank), local, strength, at, count), lane))
            }
            Conflict::With { event, lane, wrote: false, .. } if code.is_thread(code.local_of(event)) => {
                Some((event, lane))
            }
            _ => None,
        };
        let fence = match (work, bytes.rank) {
            (None, _) => ProxyFence::TensorMap,
            (_, None) => ProxyFence::AsyncGlobal,
            (_, Some(_)) => ProxyFence::AsyncShared,
        };
        let defect = self.defect_of(later, place, conflict, fence);
        let finding = Finding::new(defect, at, self.first(by));
        match reader {
            Some((event, lane)) => self.find_read(finding, ReadOfLane { event, lane, bytes }),
            None => self.reports.add(finding),
        }
    }

    fn defect_of(&self, later: Later, place: Place, conflict: Conflict, fence: ProxyFence) -> Defect {
        let (code, Later { by, at, writes, strength, work }) = (self.grid.code, later);
        let (event, lane, wrote, unfenced) = match conflict {
            Conflict::Unwritten => return Defect::Unwritten { place },
            Conflict::NonCoherent { event, lane } => {
                return Defect::NonCoherent { place, before: self.party(event, lane, true) };
            }
            Conflict::With { event, lane, wrote, unfenced } => (event, lane, wrote, unfenced),
        };
        let before = self.party(event, lane, wrote);
        if unfenced {
            return Defect::Unfenced { place, before, missing: fence };
        }
        let agency = code.agency(code.local_of(event)).map(|(_, agency)| agency);
        if agency != Some(Agency::Thread) || work.is_some() {
            let earlier =
                agency.map_or(Some(Work::BulkLoad), |agency| (agency != Agency::Thread).then(|| work_of(agency)));
            return Defect::Unfinished { place, before, work: earlier };
        }
        let (mine, theirs) = (self.block(by.rank), code.block(event));
        let ranks = self.here.ranks;
        let both_strong = strength > 0 && code.strength(event) > 0;
        let same_warp = mine == theirs && code.agency(code.local_of(event)).is_some_and(|(warp, _)| warp == by.warp);
        let missing = match needed(mine, theirs, ranks) {
            scope if both_strong => Missing::Scope(scope),
            Scope::Block if same_warp && at == code.at(event) && wrote && writes => Missing::OneLane,
            Scope::Block if same_warp => Missing::WarpBarrier,
            Scope::Block => Missing::BlockBarrier,
            Scope::Cluster => Missing::ClusterBarrier,
            _ => self.suspicion.unwrap_or(Missing::ReleaseAcquire),
        };
        match mine / ranks == theirs / ranks {
            true => Defect::Race { place, writes, before, missing },
            false => Defect::RaceBetweenBlocks { place, writes, before, missing },
        }
    }

    pub(super) fn party(&self, event: Event, lane: u32, writes: bool) -> Party {
        let code = &self.grid.code;
        let warp = code.agency(code.local_of(event)).map(|(warp, _)| warp);
        let thread = warp.map(|warp| self.grid.thread(code.block(event), warp, lane));
        Party { thread, at: code.at(event), writes }
    }
}

fn work_of(agency: Agency) -> Work {
    match agency {
        Agency::Copy => Work::Copy,
        Agency::BulkRead => Work::BulkRead,
        Agency::BulkWrite => Work::BulkWrite,
        Agency::Multiply | Agency::Thread => Work::Wgmma,
    }
}

/// The number of bytes of the next aligned piece of a span.
fn piece(address: u64, end: u64) -> u32 {
    let mut bytes = 16u64;
    while address & (bytes - 1) != 0 || address + bytes > end {
        bytes /= 2;
    }
    bytes as u32
}
