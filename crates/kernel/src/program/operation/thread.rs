//! Operations about threads: indices, exchange between lanes, and the order of accesses.

use std::fmt;

use super::Number;
use crate::program::WARP_LANES;

/// An axis of the grid or the block.
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

/// A special register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// The index of the thread in its block, 32 bits. Blocks have one axis.
    Thread,
    /// The index of the block along an axis of the grid, 32 bits.
    Block(Axis),
    /// The number of blocks of the grid along an axis, 32 bits.
    Blocks(Axis),
    /// The index of the thread in its warp, 32 bits.
    Lane,
    /// The rank of the block in its cluster, 32 bits.
    ClusterRank,
}

/// The lane from which a shuffle reads. All 32 lanes of the warp take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shuffle {
    /// The lane that the second register names (modulo 32).
    Index,
    /// The lane whose index is the lane's own index XOR this mask.
    Butterfly(u32),
    /// The lane this many below; a lane without such a lane keeps its own value.
    Up(u32),
    /// The lane this many above; a lane without such a lane keeps its own value.
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
    /// Stores the minimum.
    Minimum,
    /// Stores the maximum.
    Maximum,
    /// Stores the bitwise and.
    And,
    /// Stores the bitwise or.
    Or,
    /// Stores the bitwise exclusive or.
    Xor,
    /// Stores the register, whatever memory holds.
    Exchange,
    /// Stores the second register if memory equals the first.
    CompareExchange,
}

impl AtomicOperation {
    /// Whether the hardware performs it atomically in shared memory of another block of the
    /// cluster. For 64 bits, only additions of integers are atomic there: other operations are
    /// compiled to a load and a store, between which another thread may write.
    pub(crate) fn reaches_other_blocks(self, number: Number) -> bool {
        match number {
            Number::I32 | Number::U32 => !matches!(self, AtomicOperation::Exchange | AtomicOperation::CompareExchange),
            Number::I64 | Number::U64 | Number::F32 => self == AtomicOperation::Add,
            _ => false,
        }
    }
}

/// The accesses that a fence orders, and the threads for which it orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fence {
    /// This thread's earlier accesses, for the threads of its block.
    Block,
    /// This thread's earlier accesses, for all threads of the device.
    Device,
    /// This thread's earlier ordinary accesses to shared memory, before later asynchronous ones
    /// (bulk copies, `wgmma`).
    AsyncShared,
    /// Earlier accesses to global memory that this thread has made or knows of, ordinary ones and
    /// those of bulk copies of other blocks, before later asynchronous ones of its block.
    AsyncGlobal,
    /// The initialisation of mbarriers, for the other threads and for TMA.
    BarrierInit,
}
