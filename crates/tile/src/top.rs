//! Sorting networks for the greatest elements along a mode: which bits they sort and merge.
//!
//! Law: some bits of the mode, as many as the result has, are sorted: each set of elements that
//! differ only in these bits becomes descending. Of two sorted sets, the maximum of each element
//! and its mirror image gives the largest elements of both, and further steps along the sorted bits
//! sort them again. So every other bit of the mode is merged away: first bits of values, which
//! halves the number of values, then bits of lanes, which leaves copies, and finally bits of warps,
//! which one conversion through shared memory moves to lanes that hold copies.

use crate::held::Held;

/// The position of a bit of an element's number in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A bit of the value's index.
    Value(usize),
    /// A bit of the thread's index.
    Thread(usize),
}

/// A sorting network for a tile in one layout.
#[derive(Debug, Clone)]
pub(crate) struct TopNetwork {
    /// The layout in which the network starts. If the tile has another layout, it is converted
    /// first.
    pub(crate) begins: Held,
    /// The bits that are sorted, the lowest of the result first.
    pub(crate) sorted: Vec<Slot>,
    /// The bits that are merged within warps, in order.
    pub(crate) merged: Vec<Slot>,
    /// If bits remain between warps: the layout of the tile at that point, whose mode has the
    /// sorted bits and then those of warps, and the layout to which it is converted.
    pub(crate) moved: Option<(Held, Held)>,
    /// The bits that are merged after that conversion.
    pub(crate) merged_then: Vec<Slot>,
    /// The layout of the result.
    pub(crate) result: Held,
}

/// The number of bits of a thread's index that belong to the lane.
fn lanes(held: &Held) -> usize {
    held.threads.len().min(5)
}

/// The first bit of a mode, and its number of bits.
fn bits_of(shape: &[i64], mode: usize) -> (u8, u8) {
    let before: u32 = shape[..mode].iter().map(|extent| extent.trailing_zeros()).sum();
    (before as u8, shape[mode].trailing_zeros() as u8)
}

/// A layout in which lanes hold the first bits of the mode, as many as fit, and warps hold bits of
/// other modes.
fn arranged(held: &Held, (first, count): (u8, u8), total: u8) -> Held {
    let own = (first..first + count).collect::<Vec<u8>>();
    let others: Vec<u8> = (0..total).filter(|bit| !own.contains(bit)).collect();
    let in_lanes = own.len().min(lanes(held));
    let mut threads: Vec<Option<u8>> = own[..in_lanes].iter().copied().map(Some).collect();
    let room = held.threads.len() - in_lanes;
    threads.extend(others.iter().copied().map(Some).take(room));
    threads.resize(held.threads.len(), None);
    let rest = others.iter().skip(room);
    Held { threads, values: own[in_lanes..].iter().chain(rest).copied().collect() }
}

impl TopNetwork {
    /// The network for the `1 << kept` greatest elements along a mode of a tile, in a layout.
    pub(crate) fn new(shape: &[i64], mode: usize, kept: u32, held: &Held) -> TopNetwork {
        let (first, count) = bits_of(shape, mode);
        let along = |bit: u8| first <= bit && bit < first + count;
        let places = |held: &Held| {
            let values = held.values.iter().enumerate().filter(|(_, bit)| along(**bit)).map(|(at, _)| Slot::Value(at));
            let threads = held.threads.iter().enumerate().filter(|(_, bit)| bit.is_some_and(along));
            let (lane, warp): (Vec<usize>, Vec<usize>) = threads.map(|(at, _)| at).partition(|at| *at < lanes(held));
            let within: Vec<Slot> = values.chain(lane.into_iter().map(Slot::Thread)).collect();
            (within, warp.into_iter().map(Slot::Thread).collect::<Vec<_>>())
        };
        let total = shape.iter().map(|extent| extent.trailing_zeros()).sum::<u32>() as u8;
        let mut begins = held.clone();
        let (mut within, mut across) = places(&begins);
        if within.len() < kept as usize {
            begins = arranged(held, (first, count), total);
            (within, across) = places(&begins);
        }
        let merged = within.split_off((kept as usize).min(within.len()));
        let sorted = within;
        // The mode then consists of the sorted bits, followed by those of warps.
        let gone = count - (sorted.len() + across.len()) as u8;
        let left = |slots: &[Slot], gone: u8| {
            let place = |slot: Slot, bit: u8| match slots.iter().position(|own| *own == slot) {
                Some(at) => Some(first + at as u8),
                None if along(bit) => None,
                None => Some(if bit < first { bit } else { bit - gone }),
            };
            let threads = begins.threads.iter().enumerate();
            let threads = threads.map(|(at, bit)| bit.and_then(|bit| place(Slot::Thread(at), bit))).collect();
            let values = begins.values.iter().enumerate().filter_map(|(at, bit)| place(Slot::Value(at), *bit));
            Held { threads, values: values.collect() }
        };
        if across.is_empty() {
            let result = left(&sorted, gone);
            return TopNetwork { begins, sorted, merged, moved: None, merged_then: Vec::new(), result };
        }
        let all: Vec<Slot> = sorted.iter().chain(&across).copied().collect();
        let from = left(&all, gone);
        // Lanes that hold copies take the bits of warps as far as possible; values take the rest.
        let mut to = from.clone();
        for slot in &across {
            let Slot::Thread(warp) = *slot else { continue };
            let bit = to.threads[warp].take();
            match (0..lanes(&to)).find(|lane| to.threads[*lane].is_none()) {
                Some(lane) => to.threads[lane] = bit,
                None => to.values.extend(bit),
            }
        }
        let of_warps = |bit: &u8| {
            let low = first + sorted.len() as u8;
            (low..low + across.len() as u8).contains(bit)
        };
        let values = to.values.iter().enumerate().filter(|(_, bit)| of_warps(bit)).map(|(at, _)| Slot::Value(at));
        let threads = to.threads.iter().enumerate().filter(|(_, bit)| bit.as_ref().is_some_and(of_warps));
        let merged_then = values.chain(threads.map(|(at, _)| Slot::Thread(at))).collect();
        let warps = across.len() as u8;
        let low = first + sorted.len() as u8;
        let result = to.mapped(|bit| match bit {
            bit if bit < low => Some(bit),
            bit if bit < low + warps => None,
            bit => Some(bit - warps),
        });
        // The sorted bits get new positions after the merged bits of values.
        TopNetwork { begins, sorted, merged, moved: Some((from, to)), merged_then, result }
    }

    /// The positions of the sorted bits after some bits of values are merged away.
    pub(crate) fn after(slots: &[Slot], merged: &[Slot]) -> Vec<Slot> {
        let below = |at: usize| merged.iter().filter(|own| matches!(own, Slot::Value(gone) if *gone < at)).count();
        let one = |slot: &Slot| match slot {
            Slot::Value(at) => Slot::Value(at - below(*at)),
            other => *other,
        };
        slots.iter().map(one).collect()
    }

    /// The approximate number of instructions of a thread.
    pub(crate) fn instructions(&self) -> u64 {
        let each = |slot: &Slot| match slot {
            Slot::Value(_) => 1,
            Slot::Thread(_) => 4,
        };
        let sort: u64 = (0..self.sorted.len()).map(|at| self.sorted[..=at].iter().map(each).sum::<u64>()).sum();
        let again: u64 = self.sorted.iter().map(each).sum();
        let mut values = 1_u64 << self.begins.values.len();
        let mut total = values * sort;
        for slot in self.merged.iter().chain(&self.merged_then) {
            total += values * 4;
            if let Slot::Value(_) = slot {
                values /= 2;
            }
            total += values.max(1) * again;
        }
        total
    }
}
