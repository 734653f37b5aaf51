//! Findings: the defects of a kernel.
//!
//! A finding is data with a stable [code](Finding::code), which is the same as that of the
//! interpreter of Tilewright's own kernels. Its text is made when it is printed.

use super::checker::{At, Scope};

/// A thread of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Its block, x first.
    pub block: [u32; 3],
    /// The number of its warp in the block.
    pub warp: u32,
    /// Its lane.
    pub lane: u32,
}

/// A range of bytes of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The name of the memory: `` `x` `` of an argument, or `shared memory`.
    pub memory: String,
    /// The first byte, counted from the beginning of the memory; negative before it.
    pub byte: i64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The earlier access of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Party {
    /// The thread; None for a bulk load, which is identified by its mbarrier.
    pub thread: Option<Thread>,
    /// The instruction.
    pub at: At,
    /// Whether it writes.
    pub writes: bool,
}

/// Consecutive threads that wait at the same place, or that have exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The first of the threads.
    pub first: Thread,
    /// The number of threads.
    pub threads: u32,
    /// The instruction at which they wait; None if they have exited.
    pub at: Option<At>,
    /// What they wait for, as in `for phase 3 of the barrier at byte 64 of shared memory`.
    pub what: String,
}

/// What is missing to order two accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// A barrier of the block between them.
    BlockBarrier,
    /// `__syncwarp`, or a barrier of the block: both threads are in one warp.
    WarpBarrier,
    /// Nothing helps: lanes of one instruction write different values to the same bytes.
    OneLane,
    /// A barrier of the cluster.
    ClusterBarrier,
    /// A release and an acquire through a flag. Nothing else orders blocks within one launch.
    ReleaseAcquire,
    /// A flag exists, but a release before its write is missing.
    Release,
    /// A flag exists, but an acquire after its read is missing.
    Acquire,
    /// A flag exists with release and acquire, but the scope of one of them is too narrow.
    Scope(Scope),
}

/// A fence between the generic proxy and another proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyFence {
    /// `fence.proxy.async`, for shared memory.
    AsyncShared,
    /// `fence.proxy.async`, for global memory.
    AsyncGlobal,
    /// `fence.proxy.tensormap`, for a tensor map.
    TensorMap,
}

/// A kind of asynchronous work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// `cp.async`.
    Copy,
    /// A bulk copy that completes on an mbarrier.
    BulkLoad,
    /// The reads of a bulk store.
    BulkRead,
    /// The writes of a bulk store.
    BulkWrite,
    /// The reads of wgmma.
    Wgmma,
}

/// How a wait for a phase, or an arrival, may go wrong under another schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseFault {
    /// The next phase may complete before the wait tests the mbarrier.
    Missed,
    /// The wait may succeed on the phase two before.
    Early,
    /// The arrival may count in the previous phase.
    Arrival,
}

/// A kind of defect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// E1010: an access outside its memory.
    OutOfBounds {
        /// The bytes of the access.
        place: Place,
        /// The number of bytes of the memory.
        size: u64,
        /// Whether it writes.
        writes: bool,
    },
    /// E1011: an address that is not sufficiently aligned.
    Misaligned {
        /// The bytes of the access.
        place: Place,
        /// The required alignment in bytes.
        alignment: u32,
    },
    /// E1012: a read of bytes that were never written.
    Unwritten {
        /// The bytes that are read.
        place: Place,
    },
    /// E1016: two unordered accesses by threads of one block, or of blocks of one cluster.
    Race {
        /// The bytes.
        place: Place,
        /// Whether this access writes.
        writes: bool,
        /// The earlier access.
        before: Party,
        /// What would order them.
        missing: Missing,
    },
    /// E1017: two unordered accesses by threads of two blocks.
    RaceBetweenBlocks {
        /// The bytes.
        place: Place,
        /// Whether this access writes.
        writes: bool,
        /// The earlier access.
        before: Party,
        /// What would order them.
        missing: Missing,
    },
    /// E1018: an access to bytes while an asynchronous access may be in flight, or an asynchronous
    /// access that is issued while the bytes may still be accessed.
    Unfinished {
        /// The bytes.
        place: Place,
        /// The earlier of the two accesses.
        before: Party,
        /// The kind of asynchronous work, if the earlier access is asynchronous.
        work: Option<Work>,
    },
    /// E1019: bytes that ordinary stores wrote and that another proxy reads or overwrites, without
    /// a proxy fence between.
    Unfenced {
        /// The bytes.
        place: Place,
        /// The store.
        before: Party,
        /// The missing fence.
        missing: ProxyFence,
    },
    /// E1020: a thread that exits before its asynchronous work has completed.
    PendingAtExit {
        /// The pending work.
        work: Work,
    },
    /// E1021: a barrier that some threads do not reach.
    BarrierNotReached {
        /// The number of threads that arrived.
        barrier: u32,
        /// The number of threads that are expected.
        came: u32,
        /// The number that is expected.
        expected: u32,
        /// A thread that did not arrive.
        missing: Option<Thread>,
        /// The instruction at which that thread is; None if it has exited.
        missing_at: Option<At>,
    },
    /// E1022: threads that wait for each other.
    Deadlock {
        /// The waiting threads, and where they wait.
        waiting: Vec<Waiting>,
    },
    /// E1023: more arrivals at an mbarrier than its count, or a phase that never completes.
    Arrivals {
        /// The mbarrier.
        place: Place,
        /// The number of arrivals that complete a phase.
        count: u32,
        /// The number of arrivals.
        came: u32,
    },
    /// E1024: an mbarrier expects bytes that never arrive, or bytes arrive that it does not expect.
    TransactionBytes {
        /// The mbarrier.
        place: Place,
        /// The number of bytes that are missing; negative if there are too many.
        expects: i64,
    },
    /// E1025: an mbarrier that is used before it is initialised, or before the initialisation is
    /// visible.
    Uninitialised {
        /// The mbarrier.
        place: Place,
        /// Whether it is initialised, but not yet visible to this thread or to TMA.
        unpublished: bool,
    },
    /// E1027: an instruction of a whole warp that not all lanes of its mask execute, or
    /// `barrier.sync` in divergent code.
    Divergence {
        /// The lanes that execute it.
        active: u32,
        /// The lanes that are expected.
        expected: u32,
    },
    /// E1028: an output that depends on the schedule.
    OrderDependent {
        /// The first element that differs.
        place: Place,
        /// The names of two schedules with different results.
        schedules: [String; 2],
    },
    /// E1030: the kernel stopped with an error.
    Trap {
        /// `trap`, or the text of the failed assertion.
        what: String,
    },
    /// E1031: an ordinary access to bytes of an mbarrier.
    BarrierBytes {
        /// The bytes.
        place: Place,
    },
    /// E1033: an access to a register of a wgmma that may be in flight, or a wgmma that uses a
    /// register written since the last `wgmma.fence`.
    Registers {
        /// The wgmma, or the instruction that wrote the register.
        before: At,
        /// Whether the fence is missing. If not, the wait is missing.
        fence: bool,
    },
    /// E1035: an access to shared memory of another block of the cluster, which may not have
    /// started yet, or may have exited.
    Lifetime {
        /// The bytes.
        place: Place,
        /// The rank of that block.
        rank: u32,
        /// Whether that block may have exited. If not, it may not have started.
        ended: bool,
    },
    /// E1042: a wait at an mbarrier that may observe another phase under another schedule.
    Phase {
        /// The mbarrier.
        place: Place,
        /// The phase that the wait observes in this run, or in which the arrival counts. Phase -1
        /// is the one before the first, which counts as completed.
        phase: i64,
        /// The possible fault.
        fault: PhaseFault,
    },
    /// E1044: a non-coherent read of memory that the launch writes.
    NonCoherent {
        /// The bytes.
        place: Place,
        /// The write.
        before: Party,
    },
    /// E1045: NaN computed from numbers; only reported if it is asked for.
    NotANumber {
        /// The operation, as in the source.
        what: String,
    },
    /// E1046: a write to constant memory, or to an array that the launch only reads.
    ReadOnly {
        /// The bytes.
        place: Place,
    },
}

/// A defect that was found in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The defect.
    pub defect: Defect,
    /// The instruction; None if the defect is one of the whole run.
    pub at: Option<At>,
    /// The thread that the defect was found in.
    pub thread: Option<Thread>,
    /// How often these statements had this defect.
    pub count: u64,
}

impl Finding {
    /// A finding at an instruction of a thread.
    pub fn new(defect: Defect, at: At, thread: Thread) -> Finding {
        Finding { defect, at: Some(at), thread: Some(thread), count: 1 }
    }

    /// The stable code of this kind of finding.
    pub fn code(&self) -> &'static str {
        self.defect.code()
    }
}

impl Defect {
    /// The stable code of this kind of defect.
    pub fn code(&self) -> &'static str {
        match self {
            Defect::OutOfBounds { .. } => "E1010",
            Defect::Misaligned { .. } => "E1011",
            Defect::Unwritten { .. } => "E1012",
            Defect::Race { .. } => "E1016",
            Defect::RaceBetweenBlocks { .. } => "E1017",
            Defect::Unfinished { .. } => "E1018",
            Defect::Unfenced { .. } => "E1019",
            Defect::PendingAtExit { .. } => "E1020",
            Defect::BarrierNotReached { .. } => "E1021",
            Defect::Deadlock { .. } => "E1022",
            Defect::Arrivals { .. } => "E1023",
            Defect::TransactionBytes { .. } => "E1024",
            Defect::Uninitialised { .. } => "E1025",
            Defect::Divergence { .. } => "E1027",
            Defect::OrderDependent { .. } => "E1028",
            Defect::Trap { .. } => "E1030",
            Defect::BarrierBytes { .. } => "E1031",
            Defect::Registers { .. } => "E1033",
            Defect::Lifetime { .. } => "E1035",
            Defect::Phase { .. } => "E1042",
            Defect::NonCoherent { .. } => "E1044",
            Defect::NotANumber { .. } => "E1045",
            Defect::ReadOnly { .. } => "E1046",
        }
    }
}
