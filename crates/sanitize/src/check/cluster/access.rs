//! Accesses: the conflicts of each with those before it, and its note in the shadow memory.

use super::super::checker::{Access, At, Kind, Lanes, Order, Scope, Space, Span};
use super::super::clock::{Here, Known};
use super::super::event::{Agency, Code, Event, STRONG_WRITE, strength};
use super::super::finding::{Defect, Missing, Party, Place, Work};
use super::super::grid::needed;
use super::super::shadow::{PAGE_BYTES, Page, Reading};
use super::{ClusterChecker, WarpView, lanes};

/// Who accesses.
pub(super) struct Actor<'a> {
    code: Code,
    here: Here,
    block: u32,
    lane: u32,
    /// What the lane knows.
    known: &'a Known,
    /// The floor of the own block.
    floor: u32,
    /// What the asynchronous proxy may rely on; none for accesses of the generic proxy.
    fenced: Option<&'a Known>,
    /// The agent of the thread itself.
    thread: u64,
    /// The event, of lane 0.
    event: Event,
}

/// How two accesses are ordered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ordering {
    Ordered,
    /// In the generic proxy, but not in the asynchronous one.
    Unfenced,
    Unordered,
}

impl Actor<'_> {
    /// Whether an earlier access of some lanes is ordered before this one. `writes` says whether
    /// that access wrote.
    #[inline]
    fn order(&self, event: Event, mask: u32, writes: bool) -> Ordering {
        if !event.is_access() {
            return Ordering::Ordered;
        }
        let code = &self.code;
        if self.fenced.is_none() {
            let local = code.local_of(event);
            if code.agent(event) == self.thread && mask & !(1 << self.lane) == 0 {
                return Ordering::Ordered;
            }
            let threads = code.is_thread(local);
            if threads && code.block(event) == self.block && code.count(event) <= self.floor {
                return Ordering::Ordered;
            }
        }
        self.order_slowly(event, mask, writes)
    }

    fn order_slowly(&self, event: Event, mask: u32, writes: bool) -> Ordering {
        let code = &self.code;
        let own = code.agent(event) == self.thread;
        let others = if own { mask & !(1 << self.lane) } else { mask };
        let known = others == 0 || self.known.covers(code, self.here, event, others);
        if let Some(fenced) = self.fenced {
            let generic = matches!(code.agency(code.local_of(event)), Some((_, Agency::Thread | Agency::Copy)));
            return match known {
                true if !generic || !writes || fenced.covers(code, self.here, event, mask) => Ordering::Ordered,
                _ if self.is_morally_strong(event) => Ordering::Ordered,
                true => Ordering::Unfenced,
                false => Ordering::Unordered,
            };
        }
        if known || self.is_morally_strong(event) { Ordering::Ordered } else { Ordering::Unordered }
    }

    /// Whether both accesses are strong, with scopes that include the other.
    fn is_morally_strong(&self, event: Event) -> bool {
        let least = strength(needed(self.block, self.code.block(event), self.here.ranks));
        self.code.strength(event) >= least && self.code.strength(self.event) >= least
    }

    /// The lanes of a mask whose accesses are not known.
    fn unknown_lane(&self, event: Event, mask: u32) -> u32 {
        let unknown = |lane: &u32| self.order(event, 1 << lane, true) != Ordering::Ordered;
        lanes(mask).find(unknown).unwrap_or_else(|| mask.trailing_zeros() & 31)
    }
}

/// A conflict.
#[derive(Clone, Copy)]
pub(super) enum Conflict {
    Unwritten,
    /// With an earlier access by a lane, and whether that wrote.
    With {
        event: Event,
        lane: u32,
        wrote: bool,
        unfenced: bool,
    },
    /// The write was made in this launch.
    NonCoherent {
        event: Event,
        lane: u32,
    },
}

/// What an access does to a cell.
#[derive(Clone, Copy)]
struct Effect {
    reads: bool,
    writes: bool,
    strong: bool,
    coherent: bool,
}

/// Checks an access to some bytes of a page and notes it. `unchanged` says, of a write that
/// conflicts, whether it changes nothing: then it is left out.
#[inline]
fn touch(
    page: &mut Page,
    address: u64,
    bytes: u32,
    actor: &Actor<'_>,
    effect: Effect,
    unchanged: impl Fn(Option<u32>) -> bool,
) -> Option<Conflict> {
    page.fit(address, bytes);
    let mut found = None;
    for at in page.cells_of(address, bytes) {
        let write = page.cell(at).write;
        let code = &actor.code;
        if effect.reads {
            if write == Event::NONE {
                found.get_or_insert(Conflict::Unwritten);
                // Once is enough.
                page.set_write(at, Event::INITIAL);
            } else if !effect.coherent && write.is_access() {
                found.get_or_insert(Conflict::NonCoherent { event: write, lane: code.lane(write) });
            }
        }
        let lane = code.lane(write);
        match actor.order(write, 1 << lane, true) {
            Ordering::Ordered => {}
            ordering => {
                let other =
                    (code.agent(write) == actor.thread && code.at(write) == code.at(actor.event)).then_some(lane);
                if effect.writes && !effect.reads && unchanged(other) {
                    continue;
                }
                let unfenced = ordering == Ordering::Unfenced;
                found.get_or_insert(Conflict::With { event: write, lane, wrote: true, unfenced });
            }
        }
        if effect.writes || page.strong {
            let mut skip = false;
            let mut check = |reading: Reading| {
                let wrote = code.is_strong_write(reading.event);
                if reading.mask == 0 || !(effect.writes || wrote) {
                    return;
                }
                let ordering = actor.order(reading.event, reading.mask, wrote);
                if ordering == Ordering::Ordered {
                    return;
                }
                if effect.writes && !effect.reads && unchanged(None) {
                    skip = true;
                    return;
                }
                let mask = reading.mask;
                let mask = if code.agent(reading.event) == actor.thread { mask & !(1 << actor.lane) } else { mask };
                let lane = actor.unknown_lane(reading.event, mask);
                let unfenced = ordering == Ordering::Unfenced;
                found.get_or_insert(Conflict::With { event: reading.event, lane, wrote, unfenced });
            };
            match page.single(at) {
                Some(reading) => check(reading),
                None => page.readings(at).for_each(check),
            }
            if skip {
                continue;
            }
        }
        if effect.writes && !effect.strong {
            page.set_write(at, code.with_lane(actor.event, actor.lane));
        } else {
            if effect.writes {
                page.set_written(at);
            }
            let new = Reading { event: actor.event, mask: 1 << actor.lane };
            page.note_read(code, at, new, |old| actor.is_before(old));
        }
    }
    found
}

impl Actor<'_> {
    /// Whether a read is ordered before this one, so that this one stands for both: by what is
    /// known alone.
    #[inline]
    fn is_before(&self, old: Reading) -> bool {
        let code = &self.code;
        let local = code.local_of(old.event);
        let threads = code.is_thread(local);
        (threads && code.block(old.event) == self.block && code.count(old.event) <= self.floor)
            || self.known.covers(code, self.here, old.event, old.mask)
    }
}

impl ClusterChecker<'_> {
    /// Checks and notes an access of some lanes.
    pub(super) fn touch_lanes(&mut self, access: &Access<'_>) {
        let strength = match access.order {
            Order::Weak | Order::NonCoherent => 0,
            Order::Volatile => 3,
            _ => strength(access.scope),
        };
        let atomic = matches!(access.kind, Kind::Atomic | Kind::Reduction);
        let effect = Effect {
            reads: access.kind == Kind::Read || atomic,
            writes: access.kind != Kind::Read,
            strong: strength > 0,
            coherent: access.order != Order::NonCoherent,
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
        let thread = code.agent(event);
        let memory = &mut self.memories[rank as usize];
        let mut found: Vec<(u32, Conflict)> = Vec::new();
        let mut barrier_bytes = None;
        for lane in lanes(by.mask) {
            let address = access.addresses[lane as usize];
            let Some(slot) = memory.pages.get_mut((address / PAGE_BYTES) as usize) else { continue };
            let page = slot.get_or_insert_with(|| Box::new(Page::new(Event::NONE, address, access.bytes)));
            if page.barriers {
                let before = memory.barriers.range(..address + u64::from(access.bytes)).next_back();
                if before.is_some_and(|(barrier, _)| barrier + 8 > address) {
                    barrier_bytes = Some((lane, address));
                    continue;
                }
            }
            let known = &warp.view.of(lane).known;
            let floor = known.floor(by.rank);
            let actor = Actor { code, here, block, lane, known, floor, fenced: None, thread, event };
            let unchanged = |other| is_unchanged(access, lane, other);
            if let Some(conflict) = touch(page, address, access.bytes, &actor, effect, unchanged) {
                found.push((lane, conflict));
            }
        }
        if let Some((lane, address)) = barrier_bytes {
            let place = self.shared_place(by.rank, rank, address, access.bytes);
            self.find(Defect::BarrierBytes { place }, access.at, self.thread(by, lane));
        }
        for (lane, conflict) in found {
            let place = self.shared_place(by.rank, rank, access.addresses[lane as usize], access.bytes);
            let by = Lanes { mask: 1 << lane, ..by };
            self.conflict(by, access.at, place, conflict, effect.writes, strength, false, None);
        }
    }

    fn touch_global(&mut self, access: &Access<'_>, local: u32, strength: u32, effect: Effect) {
        let by = access.by;
        let (code, here, block) = (self.grid.code, self.here, self.block(by.rank));
        let warp = &self.warps[(by.rank * code.warps + by.warp) as usize];
        let event = code.event(block, local, strength, access.at, warp.count);
        let thread = code.agent(event);
        let mut found: Vec<(u32, Conflict, Place)> = Vec::new();
        let mut held: Option<(usize, u64, std::sync::MutexGuard<'_, super::super::grid::GlobalPage>)> = None;
        for lane in lanes(by.mask) {
            let address = access.addresses[lane as usize];
            let Some(allocation) = self.grid.allocation(address, self.guess) else { continue };
            self.guess = allocation;
            let offset = address - self.grid.launch.allocations[allocation].address;
            let number = offset / PAGE_BYTES;
            if held.as_ref().is_none_or(|(of, page, _)| *of != allocation || *page != number) {
                // The lock of one page is given back before that of the next is taken.
                drop(held.take());
                held = Some((allocation, number, self.grid.page(allocation, offset, access.bytes)));
            }
            let Some((_, _, page)) = &mut held else { continue };
            let known = &warp.view.of(lane).known;
            let floor = known.floor(by.rank);
            let actor = Actor { code, here, block, lane, known, floor, fenced: None, thread, event };
            if !effect.strong && effect.writes && !page.flags.is_empty() {
                page.flags.remove(&address);
            }
            let unchanged = |other| is_unchanged(access, lane, other);
            if let Some(conflict) = touch(&mut page.page, offset, access.bytes, &actor, effect, unchanged) {
                found.push((lane, conflict, self.global_place(allocation, offset, access.bytes)));
            }
        }
        drop(held);
        for (lane, conflict, place) in found {
            let by = Lanes { mask: 1 << lane, ..by };
            self.conflict(by, access.at, place, conflict, effect.writes, strength, true, None);
        }
    }

    fn global_place(&self, allocation: usize, offset: u64, bytes: u32) -> Place {
        let name = &self.grid.launch.allocations[allocation].name;
        Place { memory: format!("`{name}`"), byte: offset as i64, bytes: u64::from(bytes) }
    }

    /// Checks and notes an access by an asynchronous engine that one lane has issued.
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
        proxy: bool,
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
        let global = span.space == Space::Global;
        let nothing = Known::default();
        let fenced = proxy.then(|| view.fenced[usize::from(global)].as_deref().unwrap_or(&nothing));
        let floor = view.known.floor(by.rank);
        let actor = Actor { code, here, block, lane, known: &view.known, floor, fenced, thread, event };
        let effect = Effect { reads: !writes, writes, strong: strength > 0, coherent: true };
        let end = span.address + u64::from(span.bytes);
        let mut address = span.address;
        while address < end {
            // Pieces of at most 16 bytes that do not cross one of their own size.
            let bytes = piece(address, end);
            let (conflict, place) = match span.space {
                Space::Shared { rank } => {
                    let memory = &mut self.memories[rank as usize];
                    let Some(slot) = memory.pages.get_mut((address / PAGE_BYTES) as usize) else { break };
                    let page = slot.get_or_insert_with(|| Box::new(Page::new(Event::NONE, address, bytes)));
                    (touch(page, address, bytes, &actor, effect, |_| false), None)
                }
                Space::Global => {
                    let Some(allocation) = self.grid.allocation(address, self.guess) else { break };
                    self.guess = allocation;
                    let offset = address - self.grid.launch.allocations[allocation].address;
                    let mut page = self.grid.page(allocation, offset, bytes);
                    let conflict = touch(&mut page.page, offset, bytes, &actor, effect, |_| false);
                    drop(page);
                    (conflict, conflict.map(|_| self.global_place(allocation, offset, bytes)))
                }
            };
            if let Some(conflict) = conflict {
                let place = match (place, span.space) {
                    (None, Space::Shared { rank }) => self.shared_place(by.rank, rank, address, bytes),
                    (place, _) => place.unwrap_or_else(|| self.shared_place(by.rank, by.rank, address, bytes)),
                };
                let work = code.agency(local).map_or(Work::BulkLoad, |(_, agency)| work_of(agency));
                self.conflict(by, at, place, conflict, writes, strength, global, Some(work));
            }
            address += u64::from(bytes);
        }
    }

    /// Reports a conflict of an access; `work` says whether it is asynchronous.
    #[allow(clippy::too_many_arguments)]
    fn conflict(
        &mut self,
        by: Lanes,
        at: At,
        place: Place,
        conflict: Conflict,
        writes: bool,
        own: u32,
        global: bool,
        work: Option<Work>,
    ) {
        let (code, thread) = (self.grid.code, self.first(by));
        let (event, lane, wrote, unfenced) = match conflict {
            Conflict::Unwritten => return self.find(Defect::Unwritten { place }, at, thread),
            Conflict::NonCoherent { event, lane } => {
                let before = self.party(event, lane, true);
                return self.find(Defect::NonCoherent { place, before }, at, thread);
            }
            Conflict::With { event, lane, wrote, unfenced } => (event, lane, wrote, unfenced),
        };
        let before = self.party(event, lane, wrote);
        if unfenced {
            return self.find(Defect::Unfenced { place, before, global }, at, thread);
        }
        let agency = code.agency(code.local_of(event)).map(|(_, agency)| agency);
        if agency != Some(Agency::Thread) || work.is_some() {
            let earlier =
                agency.map_or(Some(Work::BulkLoad), |agency| (agency != Agency::Thread).then(|| work_of(agency)));
            return self.find(Defect::Unfinished { place, before, work: earlier }, at, thread);
        }
        let (mine, theirs) = (self.block(by.rank), code.block(event));
        let ranks = self.here.ranks;
        let both_strong = own > 0 && code.strength(event) > 0;
        let same_warp = mine == theirs && code.agency(code.local_of(event)).is_some_and(|(warp, _)| warp == by.warp);
        let missing = match needed(mine, theirs, ranks) {
            scope if both_strong => Missing::Scope(scope),
            Scope::Block if same_warp && at == code.at(event) && wrote && writes => Missing::OneLane,
            Scope::Block if same_warp => Missing::WarpBarrier,
            Scope::Block => Missing::BlockBarrier,
            Scope::Cluster => Missing::ClusterBarrier,
            _ => self.suspicion.unwrap_or(Missing::ReleaseAcquire),
        };
        let defect = match mine / ranks == theirs / ranks {
            true => Defect::Race { place, writes, before, missing },
            false => Defect::RaceBetweenBlocks { place, writes, before, missing },
        };
        self.find(defect, at, thread);
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

/// The bytes of the next piece of a span.
fn piece(address: u64, end: u64) -> u32 {
    let mut bytes = 16u64;
    while !address.is_multiple_of(bytes) || address + bytes > end {
        bytes /= 2;
    }
    bytes as u32
}

/// Whether a write leaves its bytes as they are: as they were, or as another lane of the same
/// instruction writes them.
fn is_unchanged(access: &Access<'_>, lane: u32, other: Option<u32>) -> bool {
    let bytes = access.bytes as usize;
    let Some(written) = access.values.written(lane as usize) else { return false };
    let is_same_instruction = |other: &u32| {
        access.by.mask >> other & 1 == 1 && access.addresses[*other as usize] == access.addresses[lane as usize]
    };
    if let Some(other) = other.filter(is_same_instruction) {
        return access.values.written(other as usize).is_some_and(|theirs| theirs[..bytes] == written[..bytes]);
    }
    access.values.held(lane as usize)[..bytes] == written[..bytes]
}
