//! Operations about threads: indices, exchange between lanes, and the order of accesses.

use std::fmt;

use super::Number;
use crate::program::WARP_LANES;

/// One coordinate of three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The fastest.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

impl Axis {
    /// All three.
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        })
    }
}

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// The number of the thread in its block, 32 bits. Blocks have one axis.
    Thread,
    /// The number of the block along an axis of the grid, 32 bits.
    Block(Axis),
    /// How many blocks the grid has along an axis, 32 bits.
    Blocks(Axis),
    /// The number of the thread in its warp, 32 bits.
    Lane,
    /// The number of the block in its cluster, 32 bits.
    ClusterRank,
}

/// From which lane a shuffle takes. All 32 lanes of the warp take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shuffle {
    /// From the lane that the second register names (modulo 32).
    Index,
    /// From the lane with one's own index XOR this mask.
    Butterfly(u32),
    /// From the lane this many below; a lane that has none keeps its own.
    Up(u32),
    /// From the lane this many above; a lane that has none keeps its own.
    Down(u32),
}

/// The lane that a lane reads from; `index` is the value of the second register.
pub(crate) fn shuffled(shuffle: Shuffle, lane: usize, index: u64) -> usize {
    match shuffle {
        Shuffle::Index => index as usize % WARP_LANES,
        Shuffle::Butterfly(mask) => lane ^ (mask as usize % WARP_LANES),
        Shuffle::Up(by) => lane.checked_sub(by as usize).unwrap_or(lane),
        Shuffle::Down(by) => Some(lane.saturating_add(by as usize)).filter(|from| *from < WARP_LANES).unwrap_or(lane),
    }
}

/// How an atomic operation combines the element in memory with the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AtomicOperation {
    /// Adds.
    Add,
    /// Keeps the lesser.
    Minimum,
    /// Keeps the greater.
    Maximum,
    /// Bit by bit.
    And,
    /// Bit by bit.
    Or,
    /// Bit by bit.
    Xor,
    /// Stores the register.
    Exchange,
    /// Stores the second register where memory is equal to the first.
    CompareExchange,
}

impl AtomicOperation {
    /// Whether the hardware does it in one step in shared memory of another block of the cluster.
    /// For 64 bits it only adds integers there: other operations are compiled to a load and a
    /// store, between which another thread may write.
    pub(crate) fn reaches_other_blocks(self, number: Number) -> bool {
        match number {
            Number::I32 | Number::U32 => !matches!(self, AtomicOperation::Exchange | AtomicOperation::CompareExchange),
            Number::I64 | Number::U64 | Number::F32 => self == AtomicOperation::Add,
            _ => false,
        }
    }
}

/// The accesses that a fence orders, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fence {
    /// This thread's accesses before it, for the threads of its block.
    Block,
    /// For all threads of the device.
    Device,
    /// Ordinary accesses of this thread to shared memory, before asynchronous ones (bulk copies,
    /// `wgmma`) that follow.
    AsyncShared,
    /// Accesses to global memory that this thread has made or knows of, ordinary ones and those of
    /// bulk copies of other blocks, before asynchronous ones of its block that follow.
    AsyncGlobal,
    /// The initialisation of mbarriers, for the other threads and for TMA.
    BarrierInit,
}
