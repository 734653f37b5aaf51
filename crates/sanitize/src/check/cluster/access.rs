//! Accesses: the conflicts of each with those before it, and its note in the shadow memory.

use super::super::checker::{Access, At, Kind, Lanes, Order, Scope, Space, Span};
use super::super::clock::{BlockKnown, Here, Known};
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
    /// The lane, or the first of several that read the same bytes and know the same.
    lane: u32,
    /// All of them.
    lanes: u32,
    /// What the lane knows.
    known: &'a Known,
    /// What it knows of its own block.
    own: Option<&'a BlockKnown>,
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

impl<'a> Actor<'a> {
    /// Lanes that know this; of the generic proxy.
    #[inline]
    fn new(code: Code, here: Here, rank: u32, event: Event, lanes: u32, known: &'a Known) -> Actor<'a> {
        let own = known.of_rank(rank);
        let floor = own.map_or(0, |own| own.floor);
        let (block, thread) = (code.block(event), code.agent(event));
        let lane = lanes.trailing_zeros() & 31;
        Actor { code, here, block, lane, lanes, known, own, floor, fenced: None, thread, event }
    }

    /// Whether an earlier access of some lanes is ordered before this one by the order of the
    /// program, or by the last barrier of the block: what nearly all are. Not for the asynchronous
    /// proxy.
    #[inline(always)]
    fn is_plainly_after(&self, event: Event, mask: u32) -> bool {
        let code = &self.code;
        !event.is_access()
            || (code.agent(event) == self.thread && mask & !(1 << self.lane) == 0)
            || self.is_behind_barrier(event)
    }

    /// Whether all lanes come after a write by the order of the program or by the last barrier.
    #[inline(always)]
    fn is_behind_write(&self, write: Event) -> bool {
        let code = &self.code;
        let is_own = || code.agent(write) == self.thread && self.lanes == 1 << code.lane(write);
        !write.is_access() || is_own() || self.is_behind_barrier(write)
    }

    /// Whether an access was before the last barrier of the block.
    #[inline(always)]
    fn is_behind_barrier(&self, event: Event) -> bool {
        let code = &self.code;
        code.block(event) == self.block && code.count(event) <= self.floor && code.is_thread(code.local_of(event))
    }

    /// Whether an earlier access of some lanes is known.
    #[inline]
    fn knows(&self, event: Event, mask: u32) -> bool {
        let code = &self.code;
        if code.block(event) != self.block {
            return self.known.covers(code, self.here, event, mask);
        }
        let local = code.local_of(event);
        self.own.is_some_and(|own| own.covers(local, code.is_thread(local), code.count(event), mask))
    }

    /// Whether an earlier access of some lanes is ordered before this one. `writes` says whether
    /// that access wrote.
    #[inline]
    fn order(&self, event: Event, mask: u32, writes: bool) -> Ordering {
        if !event.is_access() || (self.fenced.is_none() && self.is_plainly_after(event, mask)) {
            return Ordering::Ordered;
        }
        self.order_slowly(event, mask, writes)
    }

    fn order_slowly(&self, event: Event, mask: u32, writes: bool) -> Ordering {
        let code = &self.code;
        let own = code.agent(event) == self.thread;
        let others = if own { mask & !(1 << self.lane) } else { mask };
        let known = others == 0 || self.knows(event, others);
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

impl Effect {
    /// Whether it is a read that may race with writes alone.
    #[inline]
    fn is_weak_read(self) -> bool {
        self.reads && !self.writes && !self.strong && self.coherent
    }
}

/// Checks and notes a weak access that is ordered plainly after all before it; whether it is.
/// Nothing is noted of others.
#[inline(always)]
fn touch_plainly(page: &mut Page, address: u64, bytes: u32, actor: &Actor<'_>, writes: bool) -> bool {
    let Some(cells) = page.cells_that_fit(address, bytes) else { return false };
    let code = &actor.code;
    for cell in &*cells {
        if (!writes && cell.write == Event::NONE) || !actor.is_behind_write(cell.write) {
            return false;
        }
        if cell.has_readings() && !cell.single().is_some_and(|old| is_replaced(actor, old, writes)) {
            return false;
        }
    }
    for cell in cells {
        match writes {
            true => cell.write_after_all(code.with_lane(actor.event, actor.lane)),
            false => cell.read_after_all(Reading { event: actor.event, mask: actor.lanes }),
        }
    }
    true
}

/// Checks and notes a weak read of several lanes, if the last write is ordered plainly before it;
/// whether it is.
fn read_together(page: &mut Page, address: u64, bytes: u32, actor: &Actor<'_>) -> bool {
    page.fit(address, bytes);
    let cells = page.cells_of(address, bytes);
    let is_fine = |write: Event| write != Event::NONE && actor.is_behind_write(write);
    if !cells.clone().all(|at| is_fine(page.cell(at).write)) {
        return false;
    }
    for at in cells {
        let new = Reading { event: actor.event, mask: actor.lanes };
        page.note_read(&actor.code, at, new, |old| actor.is_before(old));
    }
    true
}

/// Checks and notes a weak read by an asynchronous engine, if what last wrote the bytes is ordered
/// before it whichever lane wrote; whether it is. `last` is such a write, so that bytes that an
/// instruction of a warp wrote are asked for once.
fn read_behind_proxy(page: &mut Page, address: u64, bytes: u32, actor: &Actor<'_>, last: &mut Option<Event>) -> bool {
    let code = &actor.code;
    page.fit(address, bytes);
    let cells = page.cells_of(address, bytes);
    for at in cells.clone() {
        let write = code.with_no_lane(page.cell(at).write);
        if *last == Some(write) {
            continue;
        }
        if write == Event::NONE || actor.order(write, u32::MAX, true) != Ordering::Ordered {
            return false;
        }
        *last = Some(write);
    }
    for at in cells {
        let new = Reading { event: actor.event, mask: actor.lanes };
        page.note_read(code, at, new, |old| actor.is_before(old));
    }
    true
}

/// Whether an access takes the place of the only read or strong write of a cell, or, where it is
/// the same one, joins it.
#[inline(always)]
fn is_replaced(actor: &Actor<'_>, old: Reading, writes: bool) -> bool {
    let is_plain = actor.is_plainly_after(old.event, old.mask);
    match writes {
        true => is_plain,
        false => old.event == actor.event || (is_plain && actor.code.strength(old.event) == 0),
    }
}

/// Checks an access to some bytes of a page and notes it. `unchanged` says, of a write that
/// conflicts, whether it changes nothing: then it is left out.
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
        // What is known of a block has its floor.
        self.knows(old.event, old.mask)
    }
}

/// Calls a function for each lane of an access with what it knows, or for all lanes that read the
/// same bytes at once, where the order of reads is no matter and all know the same.
#[inline(always)]
fn for_each_actor(access: &Access<'_>, effect: Effect, view: &WarpView, mut visit: impl FnMut(u32, &Known)) {
    match view {
        WarpView::One(view) if effect.is_weak_read() && !is_rising(access.addresses, access.by.mask) => {
            let mut left = access.by.mask;
            while left != 0 {
                let address = access.addresses[left.trailing_zeros() as usize & 31];
                let mut same = 0;
                for (lane, own) in access.addresses.iter().enumerate() {
                    same |= u32::from(*own == address) << lane;
                }
                visit(same & left, &view.known);
                left &= !same;
            }
        }
        WarpView::One(view) => lanes(access.by.mask).for_each(|lane| visit(1 << lane, &view.known)),
        WarpView::Each(views) => {
            lanes(access.by.mask).for_each(|lane| visit(1 << lane, &views[lane as usize].known));
        }
    }
}

/// Whether each lane has a higher address than the one before it.
#[inline]
fn is_rising(addresses: &[u64; 32], mask: u32) -> bool {
    if mask == u32::MAX {
        return addresses.iter().zip(&addresses[1..]).fold(true, |rising, (a, b)| rising & (a < b));
    }
    let mut last = None;
    lanes(mask).all(|lane| {
        let own = Some(addresses[lane as usize]);
        std::mem::replace(&mut last, own) < own
    })
}

/// Checks and notes an access of lanes that know the same to the same bytes, at an address of a
/// page.
#[inline(always)]
fn touch_group(
    page: &mut Page,
    access: &Access<'_>,
    address: u64,
    actor: Actor<'_>,
    effect: Effect,
    find: &mut impl FnMut(u32, Conflict),
) {
    let is_plain = !effect.strong && effect.coherent && effect.reads != effect.writes && !page.strong;
    if is_plain && touch_plainly(page, address, access.bytes, &actor, effect.writes) {
        return;
    }
    touch_slowly(page, access, address, actor, effect, is_plain, find);
}

#[inline(never)]
fn touch_slowly(
    page: &mut Page,
    access: &Access<'_>,
    address: u64,
    actor: Actor<'_>,
    effect: Effect,
    is_plain: bool,
    find: &mut impl FnMut(u32, Conflict),
) {
    let all = actor.lanes;
    if is_plain && all & (all - 1) != 0 && read_together(page, address, access.bytes, &actor) {
        return;
    }
    for lane in lanes(all) {
        let actor = Actor { lane, lanes: 1 << lane, ..actor };
        let unchanged = |other| is_unchanged(access, lane, other);
        if let Some(conflict) = touch(page, address, access.bytes, &actor, effect, unchanged) {
            find(lane, conflict);
        }
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
        let memory = &mut self.memories[rank as usize];
        let mut found: Vec<(u32, Conflict)> = Vec::new();
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
            touch_group(page, access, address, actor, effect, &mut |lane, conflict| found.push((lane, conflict)));
        });
        found.sort_by_key(|(lane, _)| *lane);
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
        let mut found: Vec<(u32, Conflict)> = Vec::new();
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
                // The lock of one page is given back before that of the next is taken.
                drop(held.take());
                held = Some((allocation, number, grid.page(allocation, offset, access.bytes)));
            }
            let Some((_, _, page)) = &mut held else { return };
            if !effect.strong && effect.writes && !page.flags.is_empty() {
                page.flags.remove(&address);
            }
            let actor = Actor::new(code, here, by.rank, event, group, known);
            let mut find = |lane, conflict| found.push((lane, conflict));
            touch_group(&mut page.page, access, offset, actor, effect, &mut find);
        });
        drop(held);
        self.guess = guess;
        found.sort_by_key(|(lane, _)| *lane);
        for (lane, conflict) in found {
            let Some(allocation) = grid.allocation(access.addresses[lane as usize], guess) else { continue };
            let offset = access.addresses[lane as usize] - grid.launch.allocations[allocation].address;
            let place = self.global_place(allocation, offset, access.bytes);
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
        let (lanes, own) = (1 << lane, view.known.of_rank(by.rank));
        let known = &view.known;
        let actor = Actor { code, here, block, lane, lanes, known, own, floor, fenced, thread, event };
        let effect = Effect { reads: !writes, writes, strong: strength > 0, coherent: true };
        let end = span.address + u64::from(span.bytes);
        let mut address = span.address;
        let mut last = None;
        while address < end {
            // Pieces of at most 16 bytes that do not cross one of their own size.
            let bytes = piece(address, end);
            let (conflict, place) = match span.space {
                Space::Shared { rank } => {
                    let memory = &mut self.memories[rank as usize];
                    let Some(slot) = memory.pages.get_mut((address / PAGE_BYTES) as usize) else { break };
                    let page = slot.get_or_insert_with(|| Box::new(Page::new(Event::NONE, address, bytes)));
                    let is_read = effect.is_weak_read()
                        && !page.strong
                        && read_behind_proxy(page, address, bytes, &actor, &mut last);
                    (if is_read { None } else { touch(page, address, bytes, &actor, effect, |_| false) }, None)
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
    while address & (bytes - 1) != 0 || address + bytes > end {
        bytes /= 2;
    }
    bytes as u32
}

/// Whether lanes of one instruction write the same, or floats of 32 bits that differ in their last
/// places alone: lanes that sum one set of numbers by shuffles do so in several orders, and any of
/// the sums will do.
fn is_alike(own: &[u8], other: &[u8]) -> bool {
    /// By how many of the last place sums of 32 or 64 numbers differ.
    const LAST_PLACES: u32 = 64;
    /// Sizes of numbers that are sums. Integers below 507 million are the bits of smaller ones.
    const SUMS: std::ops::Range<f32> = 1e-20..1e20;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
    let is_near = |own: u32, other: u32| {
        let both_sums = [own, other].iter().all(|bits| SUMS.contains(&f32::from_bits(*bits).abs()));
        both_sums && own.abs_diff(other) <= LAST_PLACES && own >> 31 == other >> 31
    };
    own == other
        || own.len() >= 4
            && own.chunks_exact(4).zip(other.chunks_exact(4)).all(|(own, other)| {
                let (own, other) = (word(own), word(other));
                own == other || is_near(own, other)
            })
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
        return access
            .values
            .written(other as usize)
            .is_some_and(|theirs| is_alike(&theirs[..bytes], &written[..bytes]));
    }
    access.values.held(lane as usize)[..bytes] == written[..bytes]
}
