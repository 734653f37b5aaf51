//! What an engine tells a checker while it runs a kernel.
//!
//! One [`Checker`] watches one cluster of blocks (one block, where a launch has no clusters). The
//! engine tells it of each access and of each synchronisation, for whole warps, in an order in
//! which they may happen. Clusters may run in parallel, each with its own checker; checkers share
//! what they know of global memory. Two rules make that right:
//!
//! 1. *The engine reports an access before it performs it.* A checker asks [`Values`] for what is in
//!    memory and for what will be, and only where two accesses conflict.
//! 2. *The engine reports and performs a strong access in one step.* An access with an order other
//!    than [`Order::Weak`] and [`Order::NonCoherent`] may synchronise. The engine holds a lock of its own
//!    for the address while it tells of the access and does it, so that accesses to one address are
//!    told in the order in which they take effect. Weak accesses need no lock.
//!
//! The engine itself finds what needs no history: accesses out of bounds, misaligned addresses,
//! hangs, barriers in divergent code, wrong counts of arrivals and bytes. It tells of these through
//! [`Checker::report`], and does not tell of the access.

use super::finding::Finding;

/// The index of an instruction in its program: the engine's own numbering, at most
/// [`MAX_PLACES`].
pub type At = u32;

/// How many instructions a program may have.
pub const MAX_PLACES: u32 = 1 << 20;

/// Lanes of one warp of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lanes {
    /// The rank of the block in its cluster; 0 without clusters.
    pub rank: u32,
    /// The number of the warp in its block.
    pub warp: u32,
    /// A bit for each lane; never 0.
    pub mask: u32,
}

/// The scope of a strong access or of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// `.cta`: the threads of the block.
    Block,
    /// `.cluster`: the threads of the cluster.
    Cluster,
    /// `.gpu`: the threads of the device.
    Device,
    /// `.sys`: all threads, also those of the host.
    System,
}

/// The order of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// `.weak`, and an access that says nothing.
    Weak,
    /// `ld.global.nc`: weak, and through a cache that sees no write of the launch.
    NonCoherent,
    /// `.relaxed`, and an atomic operation that says nothing.
    Relaxed,
    /// `.acquire`.
    Acquire,
    /// `.release`.
    Release,
    /// `.acq_rel`.
    AcquireRelease,
    /// `.volatile`: as relaxed, at the scope of the system.
    Volatile,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes in one piece: `atom`.
    Atomic,
    /// It reads and writes in one piece and returns nothing: `red`.
    Reduction,
}

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Global memory; addresses are those of the engine.
    Global,
    /// The shared memory of the block of a rank in the same cluster; addresses count from the
    /// beginning of that block's shared memory.
    Shared {
        /// The rank of the block whose memory it is.
        rank: u32,
    },
}

/// The bytes of an access, before and after it.
pub trait Values {
    /// The bytes that lane `lane` writes, as many as the access has; those behind are ignored. None
    /// where they are not known yet, as of an atomic operation.
    fn written(&self, lane: usize) -> Option<[u8; 32]>;
    /// The bytes that are there now.
    fn held(&self, lane: usize) -> [u8; 32];
}

/// The values of accesses that do not write.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoValues;

impl Values for NoValues {
    fn written(&self, _: usize) -> Option<[u8; 32]> {
        None
    }

    fn held(&self, _: usize) -> [u8; 32] {
        [0; 32]
    }
}

/// One access of the lanes of a warp. It is inside its memory and aligned to its bytes; a vector
/// access counts as one (`ld.v4.f32` has 16 bytes, aligned to 16).
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// By whom.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// Where.
    pub space: Space,
    /// Whether it reads or writes.
    pub kind: Kind,
    /// Its order.
    pub order: Order,
    /// Its scope; without meaning for weak accesses.
    pub scope: Scope,
    /// How many bytes each lane accesses: 1, 2, 4, 8, 16 or 32.
    pub bytes: u32,
    /// The address of each lane in the mask.
    pub addresses: &'a [u64; 32],
    /// The bytes that are written, for a write.
    pub values: &'a dyn Values,
}

/// Bytes in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where.
    pub space: Space,
    /// The first byte.
    pub address: u64,
    /// How many bytes.
    pub bytes: u32,
}

/// A barrier in shared memory (`mbarrier`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mbarrier {
    /// The rank of the block whose memory it is in.
    pub rank: u32,
    /// Its address, from the beginning of that block's shared memory.
    pub address: u64,
}

/// What the end of a bulk copy is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// A phase of a barrier in shared memory.
    Mbarrier(Mbarrier),
    /// A bulk group of the thread.
    Group,
}

/// A copy, or a reduction, by the asynchronous proxy (`cp.async.bulk`, with or without a tensor
/// map), issued by one thread. The engine reports each destination of a multicast copy in a call of
/// its own.
#[derive(Debug, Clone, Copy)]
pub struct Bulk<'a> {
    /// The one lane that issues it.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// The bytes that are read.
    pub reads: &'a [Span],
    /// The bytes that are written.
    pub writes: &'a [Span],
    /// Whether it adds, or reduces otherwise, in one piece for each element.
    pub reduces: bool,
    /// What its end is known by.
    pub completion: Completion,
}

/// A copy by `cp.async` from global memory to the block's own shared memory.
#[derive(Debug, Clone, Copy)]
pub struct CopyAsync<'a> {
    /// By whom.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// How many bytes of shared memory each lane writes: 4, 8 or 16.
    pub bytes: u32,
    /// The address in shared memory of each lane.
    pub shared: &'a [u64; 32],
    /// The address in global memory of each lane.
    pub global: &'a [u64; 32],
    /// How many bytes each lane reads; the others are filled with zeros.
    pub read: &'a [u32; 32],
}

/// A product by `wgmma.mma_async`. The engine tells of one warp at a time, or of the first warp of
/// the warpgroup for all four.
#[derive(Debug, Clone, Copy)]
pub struct Wgmma<'a> {
    /// By whom.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// The bytes of shared memory that are read.
    pub reads: &'a [Span],
    /// The numbers of the registers of the accumulator.
    pub accumulators: &'a [u32],
    /// The numbers of the registers of the first operand; empty if it is in shared memory.
    pub operands: &'a [u32],
}

/// A fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fence {
    /// `fence.acq_rel` and `fence.sc`, and `membar`, which is one of these.
    Memory(Scope),
    /// `fence.proxy.async`: for all memory, for shared memory or for global memory alone.
    ProxyAsync {
        /// Whether it holds for shared memory.
        shared: bool,
        /// Whether it holds for global memory.
        global: bool,
    },
    /// `fence.proxy.tensormap`: of a thread that uses a map, or else of one that has written it.
    ProxyTensormap {
        /// Whether it uses the map.
        acquires: bool,
    },
    /// `fence.mbarrier_init`.
    MbarrierInit,
}

/// Global memory that a launch may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Its name in messages: that of the argument, or of the variable.
    pub name: String,
    /// The address of its first byte, a multiple of 256.
    pub address: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// Whether it holds values before the launch.
    pub initialised: bool,
}

/// What a checker needs to know of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Blocks of the grid, x first.
    pub grid: [u32; 3],
    /// Threads of a block, x first.
    pub block: [u32; 3],
    /// Blocks of a cluster, x first; `[1, 1, 1]` without clusters.
    pub cluster: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: u32,
    /// Global memory: arguments and variables of the module.
    pub allocations: Vec<Allocation>,
    /// How many instructions the program has.
    pub instructions: u32,
    /// Whether it has instructions of the asynchronous proxy: bulk copies or wgmma.
    pub asynchronous: bool,
}

/// Told of all that happens in a cluster. Each method has an empty body, so that `impl Checker for
/// X {}` checks nothing.
pub trait Checker {
    /// Some lanes access memory.
    fn access(&mut self, _access: &Access<'_>) {}

    /// Whether the engine is to follow what becomes of values that were read. The answer stays.
    fn watches_uses(&self) -> bool {
        false
    }

    /// A number for the read that [`access`](Self::access) reported last, or for a part of it. None
    /// if nobody asks for its use. Otherwise the engine calls [`used`](Self::used) where the value
    /// is used.
    fn watched(&mut self, _access: &Access<'_>) -> Option<u32> {
        None
    }

    /// What a lane has read is used: a result of the launch, an address or the way of a thread may
    /// depend on it.
    fn used(&mut self, _read: u32, _lane: u32) {}

    /// Lanes arrive at a barrier of the block (`bar.sync`, `bar.red`, `bar.arrive`).
    fn barrier_arrive(&mut self, _by: Lanes, _barrier: u32) {}

    /// A barrier of the block of a rank is complete: these lanes go on (those that came by
    /// `bar.sync` or `bar.red`).
    fn barrier_complete(&mut self, _rank: u32, _barrier: u32, _waiters: &[Lanes]) {}

    /// Lanes of a warp have met at `bar.warp.sync`. Votes, shuffles and `match` order no memory and
    /// are not reported.
    fn warp_sync(&mut self, _by: Lanes) {}

    /// Lanes arrive at the barrier of the cluster, with release or without.
    fn cluster_arrive(&mut self, _by: Lanes, _release: bool) {}

    /// All threads of the cluster have arrived at its barrier: a phase is over.
    fn cluster_complete(&mut self) {}

    /// Lanes go on behind the last phase of the barrier of the cluster, with acquire or without.
    fn cluster_wait(&mut self, _by: Lanes, _acquire: bool) {}

    /// One lane initialises a barrier in shared memory (`mbarrier.init`).
    fn mbarrier_init(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier) {}

    /// One lane ends the life of a barrier in shared memory (`mbarrier.inval`).
    fn mbarrier_invalidate(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier) {}

    /// Lanes arrive at a barrier, or expect bytes there, or both; before the phase ends by it.
    /// `release` is false for `.relaxed`.
    fn mbarrier_arrive(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier, _release: bool) {}

    /// The copies by `cp.async` that lanes have issued arrive at a barrier when they are over
    /// (`cp.async.mbarrier.arrive`); reported when the instruction is executed.
    fn mbarrier_arrive_copies(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier) {}

    /// A phase of a barrier is over: the first has number 0. Told after the arrival, or the bytes,
    /// that end it and before anybody waits for it.
    fn mbarrier_complete(&mut self, _barrier: Mbarrier, _phase: u64) {}

    /// Lanes have seen that a phase is over; -1 is the one before the first, which counts as over.
    /// `acquire` is false for `.relaxed`. A test that fails is not reported.
    fn mbarrier_wait(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier, _phase: i64, _acquire: bool) {}

    /// Lanes issue `cp.async`.
    fn copy(&mut self, _copy: &CopyAsync<'_>) {}

    /// Lanes close a group of `cp.async` (`cp.async.commit_group`).
    fn copy_commit(&mut self, _by: Lanes) {}

    /// Lanes have waited until at most `pending` of their groups are in flight. `cp.async.wait_all`
    /// is a commit and a wait for 0.
    fn copy_wait(&mut self, _by: Lanes, _pending: u32) {}

    /// A lane issues a copy of the asynchronous proxy.
    fn bulk(&mut self, _bulk: &Bulk<'_>) {}

    /// A lane gives a tensor map in global memory to a copy: it is read through the proxy of tensor
    /// maps.
    fn map_read(&mut self, _by: Lanes, _at: At, _map: Span) {}

    /// Lanes close a group of bulk copies (`cp.async.bulk.commit_group`).
    fn bulk_commit(&mut self, _by: Lanes) {}

    /// Lanes have waited until at most `pending` of their bulk groups are in flight, or, with
    /// `reads`, have yet to read their sources (`.read`).
    fn bulk_wait(&mut self, _by: Lanes, _pending: u32, _reads: bool) {}

    /// A fence of some lanes.
    fn fence(&mut self, _by: Lanes, _fence: Fence) {}

    /// A warp issues `wgmma.fence`.
    fn wgmma_fence(&mut self, _by: Lanes) {}

    /// A warp issues a product.
    fn wgmma(&mut self, _wgmma: &Wgmma<'_>) {}

    /// A warp closes a group of products (`wgmma.commit_group`).
    fn wgmma_commit(&mut self, _by: Lanes) {}

    /// A warp has waited until at most `pending` of its groups of products are in flight.
    fn wgmma_wait(&mut self, _by: Lanes, _pending: u32) {}

    /// Whether accesses of a warp to registers are to be reported ([`registers`](Self::registers)):
    /// only where it has products. The answer changes with `wgmma` alone: once true it stays.
    fn watches_registers(&self, _rank: u32, _warp: u32) -> bool {
        false
    }

    /// A warp reads and writes registers, by their numbers, other than by `wgmma`.
    fn registers(&mut self, _by: Lanes, _at: At, _reads: &[u32], _writes: &[u32]) {}

    /// A warp copies one register to another by `mov`, which the engine reports instead of
    /// [`registers`](Self::registers): compilers write such moves while a product is in flight, and
    /// the assembler removes them.
    fn register_copy(&mut self, _by: Lanes, _from: u32, _to: u32) {}

    /// Lanes end.
    fn exit(&mut self, _by: Lanes, _at: At) {}

    /// All threads of a block have ended.
    fn block_exit(&mut self, _rank: u32) {}

    /// Whether [`executed`](Self::executed) is to be told of each instruction. The answer stays.
    fn counts(&self) -> bool {
        false
    }

    /// Lanes have executed an instruction, or a guard has kept all of them from it: a mask of 0.
    fn executed(&mut self, _at: At, _mask: u32) {}

    /// What the engine itself has found.
    fn report(&mut self, _finding: Finding) {}

    /// Whether so much was found that going on tells nothing new.
    fn is_full(&self) -> bool {
        false
    }
}

/// Checks nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unchecked;

impl Checker for Unchecked {}
