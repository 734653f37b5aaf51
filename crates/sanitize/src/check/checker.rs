//! What an engine reports to a checker while it runs a kernel.
//!
//! One [`Checker`] watches one cluster of blocks, or one block if a launch has no clusters. The
//! engine reports each access and each synchronisation, for whole warps, in an order in which they
//! may happen. Clusters may run in parallel, each with its own checker; the checkers share what
//! they know about global memory. Two rules make that correct:
//!
//! 1. *The engine reports an access before it performs it.* A checker asks [`Values`] for the
//!    present bytes and for those that will be written, and only if two accesses conflict.
//! 2. *The engine reports and performs a strong access in one step.* An access with an order other
//!    than [`Order::Weak`] and [`Order::NonCoherent`] may synchronise. The engine holds a lock for
//!    the address while it reports and performs the access, so that accesses to one address are
//!    reported in the order in which they take effect. Weak accesses need no lock.
//!
//! The engine itself detects defects that need no history: accesses out of bounds, misaligned
//! addresses, hangs, barriers in divergent code, wrong counts of arrivals and bytes. It reports
//! these through [`Checker::report`], and does not report the access.

use super::finding::Finding;

/// The index of an instruction in its program. The engine numbers instructions; an index is below
/// [`MAX_PLACES`].
pub type At = u32;

/// The most instructions of a program.
pub const MAX_PLACES: u32 = 1 << 20;

/// Some lanes of one warp of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lanes {
    /// The rank of the block in its cluster; 0 without clusters.
    pub rank: u32,
    /// The number of the warp in its block.
    pub warp: u32,
    /// The mask of the lanes; never 0.
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
    /// `.weak`, or an access without an order.
    Weak,
    /// `ld.global.nc`: weak, through a cache that does not see writes of the launch.
    NonCoherent,
    /// `.relaxed`, or an atomic operation without an order.
    Relaxed,
    /// `.acquire`.
    Acquire,
    /// `.release`.
    Release,
    /// `.acq_rel`.
    AcquireRelease,
    /// `.volatile`: as relaxed, at system scope.
    Volatile,
}

/// Whether an access reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes atomically and returns the old value: `atom`.
    Atomic,
    /// It reads and writes atomically and returns nothing: `red`.
    Reduction,
}

/// The memory of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Global memory; addresses are those of the engine.
    Global,
    /// The shared memory of a block of the cluster. Addresses count from the beginning of that
    /// block's shared memory.
    Shared {
        /// The rank of the block whose memory it is.
        rank: u32,
    },
}

/// The bytes of an access, before and after it.
pub trait Values {
    /// The bytes that lane `lane` writes. The bytes beyond the size of the access are ignored. None
    /// if they are not known yet, as for an atomic operation.
    fn written(&self, lane: usize) -> Option<[u8; 32]>;
    /// The bytes in memory before the access.
    fn held(&self, lane: usize) -> [u8; 32];
}

/// The values of an access that does not write.
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

/// One access of some lanes of a warp. It is inside its memory and aligned to its size. A vector
/// access counts as one: `ld.v4.f32` has 16 bytes and is aligned to 16.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// The lanes that access.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// The memory.
    pub space: Space,
    /// Whether it reads or writes.
    pub kind: Kind,
    /// Its order.
    pub order: Order,
    /// Its scope; ignored for weak accesses.
    pub scope: Scope,
    /// The number of bytes that each lane accesses: 1, 2, 4, 8, 16 or 32.
    pub bytes: u32,
    /// The address of each lane in the mask.
    pub addresses: &'a [u64; 32],
    /// The bytes that a write stores.
    pub values: &'a dyn Values,
}

/// Contiguous bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The memory.
    pub space: Space,
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub bytes: u32,
}

/// The address of an mbarrier in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mbarrier {
    /// The rank of the block in whose shared memory it is.
    pub rank: u32,
    /// Its address, counted from the beginning of that block's shared memory.
    pub address: u64,
}

/// How the completion of a bulk copy is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// By a phase of an mbarrier.
    Mbarrier(Mbarrier),
    /// By a bulk group of the thread.
    Group,
}

/// A copy or a reduction by the async proxy (`cp.async.bulk`, with or without a tensor map), issued
/// by one thread. The engine reports each destination of a multicast copy separately.
#[derive(Debug, Clone, Copy)]
pub struct Bulk<'a> {
    /// The one lane that issues the copy.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// The bytes that the copy reads.
    pub reads: &'a [Span],
    /// The bytes that the copy writes.
    pub writes: &'a [Span],
    /// Whether it is a reduction, which is atomic for each element.
    pub reduces: bool,
    /// How its completion is observed.
    pub completion: Completion,
}

/// A copy by `cp.async` from global memory to the block's own shared memory.
#[derive(Debug, Clone, Copy)]
pub struct CopyAsync<'a> {
    /// The lanes that issue the copy.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// The number of bytes of shared memory that each lane writes: 4, 8 or 16.
    pub bytes: u32,
    /// The address in shared memory of each lane.
    pub shared: &'a [u64; 32],
    /// The address in global memory of each lane.
    pub global: &'a [u64; 32],
    /// The number of bytes that each lane reads. The remaining bytes of the destination are filled
    /// with zeros.
    pub read: &'a [u32; 32],
}

/// A `wgmma.mma_async`. The engine reports it for one warp at a time, or once for all four warps
/// through the first warp of the warpgroup.
#[derive(Debug, Clone, Copy)]
pub struct Wgmma<'a> {
    /// The warp that issues it.
    pub by: Lanes,
    /// The instruction.
    pub at: At,
    /// The bytes of shared memory that it reads.
    pub reads: &'a [Span],
    /// The numbers of the registers of the accumulator.
    pub accumulators: &'a [u32],
    /// The numbers of the registers of operand A; empty if A is in shared memory.
    pub operands: &'a [u32],
}

/// A fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fence {
    /// `fence.acq_rel`, `fence.sc`, or `membar`, which is one of these.
    Memory(Scope),
    /// `fence.proxy.async`, for all memory, or only for shared or only for global memory.
    ProxyAsync {
        /// Whether it holds for shared memory.
        shared: bool,
        /// Whether it holds for global memory.
        global: bool,
    },
    /// `fence.proxy.tensormap`, by a thread that uses a tensor map, or by a thread that has written
    /// one.
    ProxyTensormap {
        /// Whether the thread uses the map (acquire).
        acquires: bool,
    },
    /// `fence.mbarrier_init`.
    MbarrierInit,
}

/// An allocation of global memory that a launch may access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Its name in messages: that of the argument, or of the variable.
    pub name: String,
    /// The address of its first byte, a multiple of 256.
    pub address: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// Whether it is initialised before the launch.
    pub initialised: bool,
}

/// The properties of a launch that a checker needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The number of blocks of the grid along x, y and z.
    pub grid: [u32; 3],
    /// The number of threads of a block along x, y and z.
    pub block: [u32; 3],
    /// The number of blocks of a cluster along x, y and z; `[1, 1, 1]` without clusters.
    pub cluster: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: u32,
    /// Global memory: arguments and variables of the module.
    pub allocations: Vec<Allocation>,
    /// The number of instructions of the program.
    pub instructions: u32,
    /// Whether the program uses the async proxy: bulk copies or wgmma.
    pub asynchronous: bool,
}

/// Receives all reports about a cluster. Each method has an empty default, so `impl Checker for X
/// {}` checks nothing.
pub trait Checker {
    /// Some lanes access memory.
    fn access(&mut self, _access: &Access<'_>) {}

    /// Whether the engine should track how the program uses values that were read. The answer never
    /// changes.
    fn watches_uses(&self) -> bool {
        false
    }

    /// A number for the read that [`access`](Self::access) reported last, or for a part of it. With
    /// a number, the engine calls [`used`](Self::used) when the value is used. None if the use does
    /// not matter.
    fn watched(&mut self, _access: &Access<'_>) -> Option<u32> {
        None
    }

    /// The value that a lane has read is used: a result of the launch, an address, or the control
    /// flow of a thread may depend on it.
    fn used(&mut self, _read: u32, _lane: u32) {}

    /// Lanes arrive at a barrier of the block (`bar.sync`, `bar.red`, `bar.arrive`).
    fn barrier_arrive(&mut self, _by: Lanes, _barrier: u32) {}

    /// A barrier of the block of a rank has completed. `_waited` are the lanes that continue: those
    /// that arrived by `bar.sync` or `bar.red`.
    fn barrier_complete(&mut self, _rank: u32, _barrier: u32, _waiters: &[Lanes]) {}

    /// Lanes of a warp have synchronised at `bar.warp.sync`. Votes, shuffles and `match` order no
    /// memory accesses and are not reported.
    fn warp_sync(&mut self, _by: Lanes) {}

    /// Lanes arrive at the cluster barrier, with or without release.
    fn cluster_arrive(&mut self, _by: Lanes, _release: bool) {}

    /// All threads of the cluster have arrived at its barrier: a phase has completed.
    fn cluster_complete(&mut self) {}

    /// Lanes continue after the last phase of the cluster barrier, with or without acquire.
    fn cluster_wait(&mut self, _by: Lanes, _acquire: bool) {}

    /// One lane initialises an mbarrier (`mbarrier.init`).
    fn mbarrier_init(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier) {}

    /// One lane invalidates an mbarrier (`mbarrier.inval`).
    fn mbarrier_invalidate(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier) {}

    /// Lanes arrive at an mbarrier, or add to its expected bytes, or both. It is reported before
    /// the phase completes. `release` is false for `.relaxed`.
    fn mbarrier_arrive(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier, _release: bool) {}

    /// The mbarrier will track the `cp.async` that lanes have issued: it gets an arrival when they
    /// have completed (`cp.async.mbarrier.arrive`). It is reported when the instruction is
    /// executed.
    fn mbarrier_arrive_copies(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier) {}

    /// A phase of an mbarrier has completed; the first phase has number 0. It is reported after the
    /// arrival or the bytes that complete it, and before any thread observes it.
    fn mbarrier_complete(&mut self, _barrier: Mbarrier, _phase: u64) {}

    /// Lanes have observed that a phase has completed. Phase -1 is the one before the first, which
    /// counts as completed. `acquire` is false for `.relaxed`. A test that fails is not reported.
    fn mbarrier_wait(&mut self, _by: Lanes, _at: At, _barrier: Mbarrier, _phase: i64, _acquire: bool) {}

    /// Lanes issue `cp.async`.
    fn copy(&mut self, _copy: &CopyAsync<'_>) {}

    /// Lanes close a group of `cp.async` (`cp.async.commit_group`).
    fn copy_commit(&mut self, _by: Lanes) {}

    /// Lanes have waited until at most `pending` of their groups are in flight. `cp.async.wait_all`
    /// is a commit and a wait for 0.
    fn copy_wait(&mut self, _by: Lanes, _pending: u32) {}

    /// A lane issues a bulk copy.
    fn bulk(&mut self, _bulk: &Bulk<'_>) {}

    /// A lane passes a tensor map in global memory to a copy, which reads the map through the
    /// tensormap proxy.
    fn map_read(&mut self, _by: Lanes, _at: At, _map: Span) {}

    /// Lanes close a group of bulk copies (`cp.async.bulk.commit_group`).
    fn bulk_commit(&mut self, _by: Lanes) {}

    /// Lanes have waited until at most `pending` of their bulk groups are in flight. With `reads`
    /// (`.read`), a group counts as finished when it has read its sources.
    fn bulk_wait(&mut self, _by: Lanes, _pending: u32, _reads: bool) {}

    /// A fence of some lanes.
    fn fence(&mut self, _by: Lanes, _fence: Fence) {}

    /// A warp issues `wgmma.fence`.
    fn wgmma_fence(&mut self, _by: Lanes) {}

    /// A warp issues a wgmma.
    fn wgmma(&mut self, _wgmma: &Wgmma<'_>) {}

    /// A warp closes a group of wgmma (`wgmma.commit_group`).
    fn wgmma_commit(&mut self, _by: Lanes) {}

    /// A warp has waited until at most `pending` of its wgmma groups are in flight.
    fn wgmma_wait(&mut self, _by: Lanes, _pending: u32) {}

    /// Whether the engine should report register accesses of a warp
    /// ([`registers`](Self::registers)). That is only necessary if the warp has issued a wgmma;
    /// once true, the answer stays true.
    fn watches_registers(&self, _rank: u32, _warp: u32) -> bool {
        false
    }

    /// A warp reads and writes registers, given by their numbers, in an instruction other than
    /// `wgmma`.
    fn registers(&mut self, _by: Lanes, _at: At, _reads: &[u32], _writes: &[u32]) {}

    /// A warp copies one register to another by `mov`. The engine reports it instead of
    /// [`registers`](Self::registers), because compilers write such moves while a wgmma is in
    /// flight, and the assembler removes them.
    fn register_copy(&mut self, _by: Lanes, _from: u32, _to: u32) {}

    /// Lanes exit.
    fn exit(&mut self, _by: Lanes, _at: At) {}

    /// All threads of a block have exited.
    fn block_exit(&mut self, _rank: u32) {}

    /// Whether the engine should report each instruction to [`executed`](Self::executed). The
    /// answer never changes.
    fn counts(&self) -> bool {
        false
    }

    /// Lanes have executed an instruction. The mask is 0 if the guard predicate was false for all
    /// of them.
    fn executed(&mut self, _at: At, _mask: u32) {}

    /// A finding of the engine itself.
    fn report(&mut self, _finding: Finding) {}

    /// Whether there are so many findings that further ones would be of no use.
    fn is_full(&self) -> bool {
        false
    }
}

/// A checker that checks nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unchecked;

impl Checker for Unchecked {}
