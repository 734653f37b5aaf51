//! Events: an access in the history of a launch, in 64 bits.
//!
//! The bits are shared out when a launch begins: as many as it needs for its blocks and its agents,
//! and for the instructions of its program; the rest counts.

use super::checker::{At, Launch, Scope};

/// An access: by which agent and lane, how strong, by which instruction, at which count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub(super) struct Event(u64);

impl Event {
    /// No access: what nobody has written.
    pub(super) const NONE: Event = Event(0);
    /// The state before the launch.
    pub(super) const INITIAL: Event = Event(1);

    /// Whether it stands for an access of the launch.
    #[inline]
    pub(super) fn is_access(self) -> bool {
        self.0 > 1
    }
}

/// The first count of every agent, so that no event is [`Event::INITIAL`].
pub(super) const FIRST_COUNT: u32 = 2;

/// The kinds of agents that each warp has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agency {
    /// The threads themselves.
    Thread = 0,
    /// Their copies by `cp.async`.
    Copy = 1,
    /// Their bulk stores, reading.
    BulkRead = 2,
    /// Their bulk stores, writing.
    BulkWrite = 3,
    /// Their products by wgmma, reading.
    Multiply = 4,
}

/// How many kinds of agents a warp has.
pub(super) const AGENCIES: u32 = 5;

/// Barriers in shared memory of one block that bulk copies arrive at; more share a number, which
/// finds less and nothing that is not there.
pub(super) const BARRIERS: u32 = 256;

/// How strong an access is: 0 is weak, then by its scope.
pub(super) fn strength(scope: Scope) -> u32 {
    match scope {
        Scope::Block => 1,
        Scope::Cluster => 2,
        Scope::Device | Scope::System => 3,
    }
}

/// How the bits of an event are shared out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code {
    count_bits: u32,
    place_bits: u32,
    local_bits: u32,
    /// Warps of a block.
    pub(super) warps: u32,
}

const LANE_BITS: u32 = 5;
/// Two for the scope, one for whether a strong access writes.
const STRENGTH_BITS: u32 = 3;
/// The bit of a strong access that writes.
pub(super) const STRONG_WRITE: u32 = 4;

fn bits_for(values: u64) -> u32 {
    u64::BITS - values.saturating_sub(1).leading_zeros()
}

impl Code {
    /// The code of a launch; none if its blocks and instructions leave no bits to count with.
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

    /// The greatest count.
    pub(super) fn max_count(&self) -> u32 {
        (1 << self.count_bits) - 1
    }

    /// The agent of a warp, in its block.
    pub(super) fn local(&self, warp: u32, agency: Agency) -> u32 {
        warp * AGENCIES + agency as u32
    }

    /// The agent of the bulk loads that arrive at a barrier of the block.
    pub(super) fn loads(&self, barrier: u32) -> u32 {
        self.warps * AGENCIES + barrier
    }

    /// Whether an agent is the threads of a warp themselves.
    #[inline]
    pub(super) fn is_thread(&self, local: u32) -> bool {
        local < self.warps * AGENCIES && local.is_multiple_of(AGENCIES)
    }

    /// The kind of an agent, and its warp; none for bulk loads.
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

    /// What all events of an agent at a count by an instruction have in common: lane 0.
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

    /// The same event, of another lane.
    #[inline]
    pub(super) fn with_lane(&self, event: Event, lane: u32) -> Event {
        Event(event.0 | u64::from(lane) << self.lane_shift())
    }

    /// The same event, of lane 0.
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

    /// The block and the agent in one number.
    #[inline]
    pub(super) fn agent(&self, event: Event) -> u64 {
        event.0 >> (self.lane_shift() + LANE_BITS)
    }
}
