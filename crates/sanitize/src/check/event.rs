//! Events: an access in the history of a launch, packed into 64 bits.
//!
//! The widths of the bit fields are chosen when a launch begins: enough for its blocks, its agents,
//! and the instructions of its program. The remaining bits hold the count.

use super::checker::{At, Launch, Scope};

/// An access: its agent, lane, strength, instruction, and count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub(super) struct Event(u64);

impl Event {
    /// No access: the bytes were never written.
    pub(super) const NONE: Event = Event(0);
    /// The initial contents, from before the launch.
    pub(super) const INITIAL: Event = Event(1);

    /// Whether it is an access of the launch.
    #[inline]
    pub(super) fn is_access(self) -> bool {
        self.0 > 1
    }
}

/// The first count of every agent. It is chosen so that no event equals [`Event::INITIAL`].
pub(super) const FIRST_COUNT: u32 = 2;

/// The kinds of agents of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agency {
    /// The threads of the warp.
    Thread = 0,
    /// The copies by `cp.async` that the warp issues.
    Copy = 1,
    /// The reads of bulk stores that the warp issues.
    BulkRead = 2,
    /// The writes of bulk stores that the warp issues.
    BulkWrite = 3,
    /// The reads of wgmma that the warp issues.
    Multiply = 4,
}

/// The number of kinds of agents of a warp.
pub(super) const AGENCIES: u32 = 5;

/// The number of mbarriers of a block that are distinguished for bulk copies. If a block has more,
/// several share a number: the checker then finds fewer defects, but reports none that do not
/// exist.
pub(super) const BARRIERS: u32 = 256;

/// The strength of an access: 0 for weak, otherwise by its scope.
pub(super) fn strength(scope: Scope) -> u32 {
    match scope {
        Scope::Block => 1,
        Scope::Cluster => 2,
        Scope::Device | Scope::System => 3,
    }
}

/// The layout of an event's bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code {
    count_bits: u32,
    place_bits: u32,
    local_bits: u32,
    /// The number of warps of a block.
    pub(super) warps: u32,
}

const LANE_BITS: u32 = 5;
/// Bits of the strength: two for the scope, and one for whether a strong access writes.
const STRENGTH_BITS: u32 = 3;
/// The bit of a strong access that writes.
pub(super) const STRONG_WRITE: u32 = 4;

fn bits_for(values: u64) -> u32 {
    u64::BITS - values.saturating_sub(1).leading_zeros()
}

impl Code {
    /// The layout for a launch; None if its blocks and instructions leave too few bits for the
    /// count.
    pub(super) fn new(launch: &Launch) -> Option<Code> {
        let threads: u64 = launch.block.iter().map(|extent| u64::from(*extent)).product();
        let blocks = launch.grid.iter().try_fold(1u64, |all, extent| all.checked_mul(u64::from(*extent)))?;
        let warps = u32::try_from(threads.div_ceil(32)).ok()?;
        let barriers = if launch.asynchronous { BARRIERS } else { 1 };
        let local_bits = bits_for(u64::from(warps.checked_mul(AGENCIES)?.checked_add(barriers)?));
        let place_bits = bits_for(u64::from(launch.instructions).max(2));
        let used = bits_for(blocks) + local_bits + LANE_BITS + STRENGTH_BITS + place_bits;
        let count_bits = 64u32.checked_sub(used).filter(|bits| *bits >= 10)?.min(31);
        Some(Code { count_bits, place_bits, local_bits, warps })
    }

    /// The largest count.
    pub(super) fn max_count(&self) -> u32 {
        (1 << self.count_bits) - 1
    }

    /// The number of an agent of a warp in its block.
    pub(super) fn local(&self, warp: u32, agency: Agency) -> u32 {
        warp * AGENCIES + agency as u32
    }

    /// The number of the agent for the bulk loads that arrive at an mbarrier of the block.
    pub(super) fn loads(&self, barrier: u32) -> u32 {
        self.warps * AGENCIES + barrier
    }

    /// Whether an agent is the threads of a warp.
    #[inline]
    pub(super) fn is_thread(&self, local: u32) -> bool {
        local < self.warps * AGENCIES && local.is_multiple_of(AGENCIES)
    }

    /// The warp and the kind of an agent; None for bulk loads.
    pub(super) fn agency(&self, local: u32) -> Option<(u32, Agency)> {
        let (warp, kind) = (local / AGENCIES, local % AGENCIES);
        if warp >= self.warps {
            return None;
        }
        let agency = match kind {
            0 => Agency::Thread,
            1 => Agency::Copy,
            2 => Agency::BulkRead,
            3 => Agency::BulkWrite,
            _ => Agency::Multiply,
        };
        Some((warp, agency))
    }

    /// The event of an agent, with lane 0.
    #[inline]
    pub(super) fn event(&self, block: u32, local: u32, strength: u32, at: At, count: u32) -> Event {
        let agent = u64::from(block) << self.local_bits | u64::from(local);
        let who = (agent << LANE_BITS) << STRENGTH_BITS | u64::from(strength);
        Event((who << self.place_bits | u64::from(at)) << self.count_bits | u64::from(count))
    }

    #[inline]
    fn lane_shift(&self) -> u32 {
        STRENGTH_BITS + self.place_bits + self.count_bits
    }

    /// The same event with another lane.
    #[inline]
    pub(super) fn with_lane(&self, event: Event, lane: u32) -> Event {
        Event(event.0 | u64::from(lane) << self.lane_shift())
    }

    /// The same event with lane 0.
    #[inline]
    pub(super) fn with_no_lane(&self, event: Event) -> Event {
        Event(event.0 & !(31 << self.lane_shift()))
    }

    #[inline]
    pub(super) fn lane(&self, event: Event) -> u32 {
        (event.0 >> self.lane_shift()) as u32 & 31
    }

    #[inline]
    pub(super) fn block(&self, event: Event) -> u32 {
        (event.0 >> (self.lane_shift() + LANE_BITS + self.local_bits)) as u32
    }

    #[inline]
    pub(super) fn local_of(&self, event: Event) -> u32 {
        (event.0 >> (self.lane_shift() + LANE_BITS)) as u32 & ((1 << self.local_bits) - 1)
    }

    #[inline]
    pub(super) fn count(&self, event: Event) -> u32 {
        event.0 as u32 & self.max_count()
    }

    #[inline]
    pub(super) fn at(&self, event: Event) -> At {
        (event.0 >> self.count_bits) as u32 & ((1 << self.place_bits) - 1)
    }

    #[inline]
    pub(super) fn strength(&self, event: Event) -> u32 {
        (event.0 >> (self.count_bits + self.place_bits)) as u32 & 3
    }

    /// Whether it is a strong access that writes.
    #[inline]
    pub(super) fn is_strong_write(&self, event: Event) -> bool {
        (event.0 >> (self.count_bits + self.place_bits)) as u32 & STRONG_WRITE != 0
    }

    /// The block and the agent as one number.
    #[inline]
    pub(super) fn agent(&self, event: Event) -> u64 {
        event.0 >> (self.lane_shift() + LANE_BITS)
    }
}
