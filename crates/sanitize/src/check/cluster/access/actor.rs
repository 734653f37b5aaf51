//! The lane that accesses memory, and whether an earlier access is ordered before its access.

use crate::check::clock::{BlockKnown, Here, Known};
use crate::check::cluster::lanes;
use crate::check::event::{Agency, Code, Event, strength};
use crate::check::grid::needed;
use crate::check::shadow::Reading;

/// The lane that accesses memory.
pub(super) struct Actor<'a> {
    pub(super) code: Code,
    pub(super) here: Here,
    pub(super) block: u32,
    /// The lane. If several lanes with the same view read the same bytes, the first of them.
    pub(super) lane: u32,
    /// The mask of these lanes.
    pub(super) lanes: u32,
    /// What the lane knows.
    pub(super) known: &'a Known,
    /// What the lane knows about its own block.
    pub(super) own: Option<&'a BlockKnown>,
    /// The floor of its own block.
    pub(super) floor: u32,
    /// What happens before accesses of the async proxy; None for accesses of the generic proxy.
    pub(super) fenced: Option<&'a Known>,
    /// The agent of the thread itself.
    pub(super) thread: u64,
    /// The event of the access, with lane 0.
    pub(super) event: Event,
}

/// How two accesses are ordered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ordering {
    Ordered,
    /// Ordered in the generic proxy, but not in the async proxy.
    Unfenced,
    Unordered,
}

impl<'a> Actor<'a> {
    /// Lanes with the same view that access through the generic proxy.
    #[inline]
    pub(super) fn new(code: Code, here: Here, rank: u32, event: Event, lanes: u32, known: &'a Known) -> Actor<'a> {
        let own = known.of_rank(rank);
        let floor = own.map_or(0, |own| own.floor);
        let (block, thread) = (code.block(event), code.agent(event));
        let lane = lanes.trailing_zeros() & 31;
        Actor { code, here, block, lane, lanes, known, own, floor, fenced: None, thread, event }
    }

    /// Whether an earlier access is ordered before this one by program order or by the last barrier
    /// of the block. That is cheap to decide, and holds for nearly all accesses. Not for the async
    /// proxy.
    #[inline(always)]
    pub(super) fn is_plainly_after(&self, event: Event, mask: u32) -> bool {
        let code = &self.code;
        !event.is_access()
            || (code.agent(event) == self.thread && mask & !(1 << self.lane) == 0)
            || self.is_behind_barrier(event)
    }

    /// Whether all lanes come after a write by program order or by the last barrier.
    #[inline(always)]
    pub(super) fn is_behind_write(&self, write: Event) -> bool {
        let code = &self.code;
        let is_own = || code.agent(write) == self.thread && self.lanes == 1 << code.lane(write);
        !write.is_access() || is_own() || self.is_behind_barrier(write)
    }

    /// Whether an access came before the last barrier of the block.
    #[inline(always)]
    pub(super) fn is_behind_barrier(&self, event: Event) -> bool {
        let code = &self.code;
        code.block(event) == self.block && code.count(event) <= self.floor && code.is_thread(code.local_of(event))
    }

    /// Whether an earlier access of some lanes happened before this one.
    #[inline]
    pub(super) fn knows(&self, event: Event, mask: u32) -> bool {
        let code = &self.code;
        if code.block(event) != self.block {
            return self.known.covers(code, self.here, event, mask);
        }
        let local = code.local_of(event);
        self.own.is_some_and(|own| own.covers(local, code.is_thread(local), code.count(event), mask))
    }

    /// Whether an earlier access of some lanes is ordered before this one. `writes` says whether
    /// the earlier access wrote.
    #[inline]
    pub(super) fn order(&self, event: Event, mask: u32, writes: bool) -> Ordering {
        if !event.is_access() || (self.fenced.is_none() && self.is_plainly_after(event, mask)) {
            return Ordering::Ordered;
        }
        self.order_slowly(event, mask, writes)
    }

    /// Whether wgmma that the event's warp has issued after the event are known to have completed.
    /// Then the warp had also finished the reads before them.
    fn knows_products_after(&self, event: Event) -> bool {
        let code = &self.code;
        let Some((warp, Agency::Thread)) = code.agency(code.local_of(event)) else { return false };
        let products = code.event(code.block(event), code.local(warp, Agency::Multiply), 0, 0, code.count(event));
        self.known.covers(code, self.here, products, u32::MAX)
    }

    pub(super) fn order_slowly(&self, event: Event, mask: u32, writes: bool) -> Ordering {
        let code = &self.code;
        let own = code.agent(event) == self.thread;
        let others = if own { mask & !(1 << self.lane) } else { mask };
        let known = others == 0 || self.knows(event, others) || (!writes && self.knows_products_after(event));
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

    /// Whether both accesses are strong, with scopes that include each other's thread.
    pub(super) fn is_morally_strong(&self, event: Event) -> bool {
        let least = strength(needed(self.block, self.code.block(event), self.here.ranks));
        self.code.strength(event) >= least && self.code.strength(self.event) >= least
    }

    /// The first lane of a mask whose access is not known.
    pub(super) fn unknown_lane(&self, event: Event, mask: u32) -> u32 {
        let unknown = |lane: &u32| self.order(event, 1 << lane, true) != Ordering::Ordered;
        lanes(mask).find(unknown).unwrap_or_else(|| mask.trailing_zeros() & 31)
    }
}

impl Actor<'_> {
    /// Whether a read is ordered before this one, so that this one can replace it. Only what is
    /// known counts.
    #[inline]
    pub(super) fn is_before(&self, old: Reading) -> bool {
        // What is known about a block includes its floor.
        self.knows(old.event, old.mask)
    }
}
