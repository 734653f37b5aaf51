//! Shadow memory: the accesses to each byte, and whether they are ordered.
//!
//! Law: two accesses to a byte must be ordered if one of them is a write and they are not both
//! atomic. Otherwise the later one conflicts with the earlier one, and this is found in any order
//! of execution. A cell has as many bytes as the narrowest access to its memory, and every access
//! covers whole cells.
//!
//! A cell stores its last write, and the reads and atomic operations since. Entries before which a
//! later entry is ordered are dropped, because every access that is ordered after the later one is
//! ordered after both.

use super::arrivals::{Arrivals, Others};
use super::clock::{Clocks, Event};
use super::touch::AccessKind;

/// The history of a cell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShadowCell {
    write: Event,
    reads: Group,
    atomics: Group,
}

impl ShadowCell {
    /// The last write that was not an atomic operation.
    pub(super) fn last_write(&self) -> Event {
        self.write
    }

    /// Whether it was ever written.
    pub(super) fn is_written(&self) -> bool {
        self.write.is_some() || !self.atomics.is_empty()
    }
}

/// A set of events: none, one, or an index into [`Groups`], marked by the highest bit.
#[derive(Debug, Clone, Copy, Default)]
struct Group(u64);

const MARK: u64 = 1 << 63;

impl Group {
    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A group with more events than this is a table by agent.
const MAX_LISTED: usize = 16;

/// The events of cells that have several.
#[derive(Debug, Default)]
pub(super) struct Groups {
    lists: Vec<Vec<Event>>,
    free: Vec<usize>,
}

impl Groups {
    /// An event of the group that is not ordered before what a thread does next.
    fn unordered(&self, group: Group, thread: usize, clocks: &Clocks) -> Option<Event> {
        if group.0 & MARK == 0 {
            let event = Event::from_bits(group.0);
            return (event.is_some() && !clocks.ordered(event, thread)).then_some(event);
        }
        let list = &self.lists[(group.0 & !MARK) as usize];
        list.iter().copied().find(|event| event.is_some() && !clocks.ordered(*event, thread))
    }

    /// Any event of the group.
    fn any(&self, group: Group) -> Event {
        self.events(group).next().unwrap_or_default()
    }

    /// The events of the group.
    fn events(&self, group: Group) -> impl Iterator<Item = Event> {
        let (one, list) = match group.0 & MARK {
            0 => (Event::from_bits(group.0), &[][..]),
            _ => (Event::NONE, &self.lists[(group.0 & !MARK) as usize][..]),
        };
        std::iter::once(one).chain(list.iter().copied()).filter(|event| event.is_some())
    }

    /// Adds an event of a thread, and drops those that are ordered before it.
    fn add(&mut self, group: &mut Group, event: Event, thread: usize, clocks: &Clocks) {
        if group.0 & MARK == 0 {
            let other = Event::from_bits(group.0);
            // Asynchronous work is ordered after earlier events of its thread, but not before later
            // ones.
            if !other.is_some() || other == event || clocks.ordered(other, thread) {
                *group = Group(event.bits());
                return;
            }
            let place = self.free.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                self.lists.len() - 1
            });
            self.lists[place].extend([other, event]);
            *group = Group(place as u64 | MARK);
            return;
        }
        let list = &mut self.lists[(group.0 & !MARK) as usize];
        if list.len() <= MAX_LISTED {
            list.retain(|other| *other != event && !clocks.ordered(*other, thread));
            list.push(event);
            if list.len() <= MAX_LISTED {
                return;
            }
            let agents = list.iter().map(|event| event.agent()).max().unwrap_or(0);
            let mut table = vec![Event::NONE; agents.max(MAX_LISTED) + 1];
            for event in list.iter() {
                table[event.agent()] = *event;
            }
            *list = table;
            return;
        }
        // A table is as long as its greatest agent, and always longer than a list.
        if list.len() <= event.agent() {
            list.resize(event.agent() + 1, Event::NONE);
        }
        list[event.agent()] = event;
    }

    /// An ordinary store to a cell that the given thread knows of, without a later fence of the
    /// storing thread that it also knows of.
    pub(super) fn unfenced(&self, cell: &ShadowCell, thread: usize, clocks: &Clocks) -> Option<Event> {
        let open = |event: &Event| event.is_some() && clocks.ordered(*event, thread) && !clocks.fenced(*event, thread);
        let listed = if cell.atomics.0 & MARK == 0 {
            None
        } else {
            self.lists[(cell.atomics.0 & !MARK) as usize].iter().copied().find(open)
        };
        let single = Some(self.any(cell.atomics)).filter(open);
        Some(cell.write).filter(open).or(single).or(listed)
    }

    fn clear(&mut self, group: &mut Group) {
        if group.0 & MARK != 0 {
            let place = (group.0 & !MARK) as usize;
            self.lists[place].clear();
            self.free.push(place);
        }
        *group = Group::default();
    }

    /// Removes all groups.
    pub(super) fn reset(&mut self) {
        self.lists.clear();
        self.free.clear();
    }

    /// Records an access of a thread to a cell, and returns an earlier event that conflicts with
    /// it. The access may be asynchronous work that the thread issues now.
    #[inline]
    pub(super) fn touch(
        &mut self,
        cell: &mut ShadowCell,
        kind: AccessKind,
        event: Event,
        thread: usize,
        clocks: &Clocks,
    ) -> Option<Event> {
        let written = cell.write.is_some() && !clocks.ordered(cell.write, thread);
        let mut conflict = written.then_some(cell.write);
        if kind != AccessKind::Read && conflict.is_none() && !cell.reads.is_empty() {
            conflict = self.unordered(cell.reads, thread, clocks);
        }
        if kind != AccessKind::Atomic && conflict.is_none() && !cell.atomics.is_empty() {
            conflict = self.unordered(cell.atomics, thread, clocks);
        }
        match kind {
            AccessKind::Read => self.add(&mut cell.reads, event, thread, clocks),
            AccessKind::Atomic => self.add(&mut cell.atomics, event, thread, clocks),
            AccessKind::Write => {
                cell.write = event;
                self.clear(&mut cell.reads);
                self.clear(&mut cell.atomics);
            }
        }
        conflict
    }
}

/// An access by a block of some cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Foreign {
    /// The event; none for a block without an access.
    pub(super) event: Event,
    /// The number of the block's cluster.
    pub(super) block: u64,
}

/// The history of a cell of global memory: all of it for the last cluster that accessed it, and for
/// other clusters as many events of each kind as are needed to find every conflict with them. Only
/// the counter of the launch orders clusters of one launch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GlobalCell {
    block: u64,
    own: ShadowCell,
    write: Others,
    read: Others,
    atomic: Others,
}

/// The earlier access of a conflict.
#[derive(Debug, Clone, Copy)]
pub(super) enum Conflict {
    /// An access of the same cluster.
    Block(Event),
    /// An access of another cluster.
    Grid(Foreign),
}

impl Groups {
    /// A cluster begins to access a cell. The events of the previous cluster become those of
    /// another cluster.
    fn enter(&mut self, cell: &mut GlobalCell, block: u64, arrivals: &Arrivals) {
        if cell.block == block {
            return;
        }
        let before = cell.block;
        let of = |event| Foreign { event, block: before };
        if cell.own.write.is_some() {
            cell.write.add(of(cell.own.write), arrivals);
        }
        self.events(cell.own.reads).for_each(|event| cell.read.add(of(event), arrivals));
        self.events(cell.own.atomics).for_each(|event| cell.atomic.add(of(event), arrivals));
        self.clear(&mut cell.own.reads);
        self.clear(&mut cell.own.atomics);
        cell.own = ShadowCell::default();
        cell.block = block;
    }

    /// A write to a cell that an access of TMA may not see: a write of the cluster itself for which
    /// `crosses` holds, or a write of another cluster that each thread did not know of when it
    /// executed its fence, given the arrivals that it knew of.
    pub(super) fn crossed(
        &mut self,
        cell: &mut GlobalCell,
        crosses: impl Fn(Event) -> bool,
        fenced: u32,
        (block, arrivals): (u64, &Arrivals),
    ) -> Option<Conflict> {
        self.enter(cell, block, arrivals);
        let own = Some(cell.own.write).filter(|event| event.is_some() && crosses(*event));
        let own = own.or_else(|| self.events(cell.own.atomics).find(|event| crosses(*event)));
        let foreign = || cell.write.unordered(fenced).or_else(|| cell.atomic.unordered(fenced));
        own.map(Conflict::Block).or_else(|| foreign().map(Conflict::Grid))
    }

    /// As [`Groups::touch`], for a cell of global memory.
    pub(super) fn touch_global(
        &mut self,
        cell: &mut GlobalCell,
        kind: AccessKind,
        event: Event,
        (block, thread): (u64, usize),
        (clocks, arrivals): (&Clocks, &Arrivals),
    ) -> Option<Conflict> {
        self.enter(cell, block, arrivals);
        let known = clocks.known_arrivals(thread);
        let mut foreign = cell.write.unordered(known);
        if kind != AccessKind::Read {
            foreign = foreign.or_else(|| cell.read.unordered(known));
        }
        if kind != AccessKind::Atomic {
            foreign = foreign.or_else(|| cell.atomic.unordered(known));
        }
        let own = self.touch(&mut cell.own, kind, event, thread, clocks);
        own.map(Conflict::Block).or(foreign.map(Conflict::Grid))
    }
}
