//! Tracks how a program uses the values that it reads.
//!
//! Law: a read whose value is never used is harmless, whatever it races with and whether or not its
//! bytes were written. A finding about a read is therefore held back until its use is known. The
//! engine tracks values only in a separate run, because that is slow: a first run finds the reading
//! instructions, and a second run watches them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::checker::{Access, At};
use super::event::{Code, Event};
use super::finding::Finding;

/// The most units of about 100 bytes that a launch keeps for watched reads and for findings that
/// wait: 400 MB.
const MAX_KEPT: u64 = 1 << 22;
/// Units for a read, and for a finding.
const UNITS_OF_READ: u64 = 1;
const UNITS_OF_FINDING: u64 = 4;

/// The units that all clusters keep.
#[derive(Debug, Default)]
pub(super) struct Kept(AtomicU64);

impl Kept {
    fn has_room(&self, units: u64) -> bool {
        self.0.fetch_add(units, Relaxed) + units <= MAX_KEPT
    }
}

/// A range of bytes of global memory, or of the shared memory of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes {
    /// The rank of the block whose shared memory it is; None for global memory.
    pub(super) rank: Option<u32>,
    pub(super) first: u64,
    pub(super) bytes: u32,
}

/// A read of one lane that takes part in a finding.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadOfLane {
    /// The event, with lane 0.
    pub(super) event: Event,
    pub(super) lane: u32,
    /// The bytes of the finding.
    pub(super) bytes: Bytes,
}

/// The addresses of the lanes of an instruction.
#[derive(Debug)]
enum Addresses {
    /// The address of lane 0, or where it would be, and the distance between neighbouring lanes.
    /// Most instructions have such addresses.
    Regular(u64, u64),
    Each(Box<[u64; 32]>),
}

impl Addresses {
    fn new(mask: u32, all: &[u64; 32]) -> Addresses {
        let lanes = || (0..32_u32).filter(|lane| mask >> lane & 1 == 1);
        let mut first = lanes();
        let (one, other) = (first.next().unwrap_or(0), first.next());
        let step = other.map_or(0, |other| {
            let distance = all[other as usize].wrapping_sub(all[one as usize]) as i64;
            (distance / i64::from(other - one)) as u64
        });
        let start = all[one as usize].wrapping_sub(step.wrapping_mul(one.into()));
        let regular = Addresses::Regular(start, step);
        if lanes().all(|lane| regular.of(lane) == all[lane as usize]) {
            regular
        } else {
            Addresses::Each(Box::new(*all))
        }
    }

    fn of(&self, lane: u32) -> u64 {
        match self {
            Addresses::Regular(start, step) => start.wrapping_add(step.wrapping_mul(lane.into())),
            Addresses::Each(all) => all[lane as usize & 31],
        }
    }
}

/// A read of some lanes of a warp whose use is watched.
#[derive(Debug)]
pub(super) struct WatchedRead {
    rank: Option<u32>,
    mask: u32,
    addresses: Addresses,
    /// The bytes that each lane reads.
    bytes: u32,
    /// The lanes whose values were used.
    used: u32,
}

impl WatchedRead {
    pub(super) fn new(rank: Option<u32>, access: &Access<'_>) -> WatchedRead {
        let mask = access.by.mask;
        WatchedRead { rank, mask, addresses: Addresses::new(mask, access.addresses), bytes: access.bytes, used: 0 }
    }

    /// Whether it is the read of a lane, and covers some of its bytes.
    fn has(&self, reader: &ReadOfLane) -> bool {
        let Bytes { rank, first, bytes } = reader.bytes;
        let own = self.addresses.of(reader.lane);
        self.mask >> reader.lane & 1 == 1
            && self.rank == rank
            && own < first + u64::from(bytes)
            && first < own + u64::from(self.bytes)
    }
}

/// What the checker of a cluster keeps about reads.
#[derive(Debug, Default)]
pub(super) struct Uses {
    reads: Vec<WatchedRead>,
    by_event: HashMap<Event, Vec<u32>>,
    held: Vec<(Finding, ReadOfLane)>,
    /// The reading instructions that appear in findings and are not watched.
    pub(super) suspects: BTreeSet<At>,
    /// Whether the limit was exceeded.
    pub(super) gave_up: bool,
}

impl Uses {
    /// Adds a watched read, and returns its number.
    pub(super) fn watch(&mut self, kept: &Kept, event: Event, read: WatchedRead) -> Option<u32> {
        if !kept.has_room(UNITS_OF_READ) {
            self.gave_up = true;
            return None;
        }
        let number = self.reads.len() as u32;
        self.reads.push(read);
        self.by_event.entry(event).or_default().push(number);
        Some(number)
    }

    /// The value that a lane has read is used.
    pub(super) fn used(&mut self, read: u32, lane: u32) {
        if let Some(own) = self.reads.get_mut(read as usize) {
            own.used |= 1 << lane;
        }
    }

    /// Keeps a finding about a read until the use of the read is known.
    pub(super) fn hold(&mut self, kept: &Kept, finding: Finding, reader: ReadOfLane) {
        match kept.has_room(UNITS_OF_FINDING) {
            true => self.held.push((finding, reader)),
            false => self.gave_up = true,
        }
    }

    /// Whether the value that a lane has read was used. A read without a number counts as used.
    fn is_used(&self, reader: &ReadOfLane) -> bool {
        let all = self.by_event.get(&reader.event).map_or(&[][..], Vec::as_slice);
        let mut reads =
            all.iter().map(|number| &self.reads[*number as usize]).filter(|read| read.has(reader)).peekable();
        reads.peek().is_none() || reads.any(|read| read.used >> reader.lane & 1 == 1)
    }
}

/// What all clusters have kept about reads, by the number of the cluster.
#[derive(Debug, Default)]
pub(super) struct UsesOfGrid {
    clusters: BTreeMap<u32, Uses>,
    pub(super) suspects: BTreeSet<At>,
    pub(super) gave_up: bool,
}

impl UsesOfGrid {
    pub(super) fn add(&mut self, cluster: u32, mut uses: Uses) {
        self.suspects.append(&mut uses.suspects);
        self.gave_up |= uses.gave_up;
        if !uses.reads.is_empty() || !uses.held.is_empty() {
            self.clusters.insert(cluster, uses);
        }
    }

    /// The findings whose reads were used. The reader may belong to another cluster than the
    /// checker that made the finding. Each finding is returned once.
    pub(super) fn decide(&mut self, code: &Code, ranks: u32) -> Vec<Finding> {
        let held: Vec<(Finding, ReadOfLane)> =
            self.clusters.values_mut().flat_map(|uses| std::mem::take(&mut uses.held)).collect();
        let is_used = |reader: &ReadOfLane| {
            let cluster = code.block(reader.event) / ranks;
            self.clusters.get(&cluster).is_none_or(|uses| uses.is_used(reader))
        };
        held.into_iter().filter(|(_, reader)| is_used(reader)).map(|(finding, _)| finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: the addresses of lanes are the same after packing.
    #[test]
    fn addresses_are_kept() {
        let rising: [u64; 32] = std::array::from_fn(|lane| 4096 + 12 * lane as u64);
        let falling: [u64; 32] = std::array::from_fn(|lane| 4096 - 8 * lane as u64);
        let mixed: [u64; 32] = std::array::from_fn(|lane| 64 + (lane as u64 * 37) % 50);
        for (all, is_regular) in [(rising, true), (falling, true), ([7; 32], true), (mixed, false)] {
            for mask in [u32::MAX, 0x8000_0001, 0x00f0_0100, 1 << 9] {
                let kept = Addresses::new(mask, &all);
                for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
                    assert_eq!(kept.of(lane), all[lane as usize], "{mask:x} {lane}");
                }
                assert!(mask != u32::MAX || matches!(kept, Addresses::Regular(..)) == is_regular);
            }
        }
    }
}
