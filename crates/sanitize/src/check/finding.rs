//! Findings: the defects of a kernel.
//!
//! A finding is data with a stable [code](Finding::code), the same that the interpreter of our own
//! kernels gives; its sentence is made when it is printed.

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

/// Bytes of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The name of the memory: `` `x` `` of an argument, or `shared memory`.
    pub memory: String,
    /// The first byte, from its beginning; negative before it.
    pub byte: i64,
    /// How many bytes.
    pub bytes: u64,
}

/// The earlier access of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Party {
    /// By which thread; none for a bulk load, which is known by its barrier.
    pub thread: Option<Thread>,
    /// By which instruction.
    pub at: At,
    /// Whether it writes.
    pub writes: bool,
}

/// Threads that wait for something, or that have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The first thread of a run of them.
    pub first: Thread,
    /// How many threads.
    pub threads: u32,
    /// The instruction at which they wait; none if they have ended.
    pub at: Option<At>,
    /// What they wait for, as in `for phase 3 of the barrier at byte 64 of shared memory`.
    pub what: String,
}

/// What would order two accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// A barrier of the block between them.
    BlockBarrier,
    /// `__syncwarp`, or a barrier of the block: both are in one warp.
    WarpBarrier,
    /// Nothing can: lanes of one instruction write different values.
    OneLane,
    /// A barrier of the cluster.
    ClusterBarrier,
    /// Nothing in one launch, except a release and an acquire through a flag.
    ReleaseAcquire,
    /// The flag is there, and what is missing is a release before the write of it.
    Release,
    /// The flag is there, and what is missing is an acquire after the read of it.
    Acquire,
    /// The flag is there with both, and the scope of one of them is too narrow.
    Scope(Scope),
}

/// A fence between the proxy of ordinary accesses and another.
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
    /// A bulk copy that ends in a phase of a barrier in memory.
    BulkLoad,
    /// The reads of a bulk store.
    BulkRead,
    /// The writes of a bulk store.
    BulkWrite,
    /// The reads of wgmma.
    Wgmma,
}

/// How a wait for a phase, or an arrival, may differ under another schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseFault {
    /// The next phase may be over before the wait looks.
    Missed,
    /// The wait may take the phase two before for its own.
    Early,
    /// The arrival may count in the phase before.
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
        /// How many bytes the memory has.
        size: u64,
        /// Whether it writes.
        writes: bool,
    },
    /// E1011: an address that is not a multiple of what it has to be.
    Misaligned {
        /// The bytes of the access.
        place: Place,
        /// The required alignment in bytes.
        alignment: u32,
    },
    /// E1012: a read of bytes that nobody has written.
    Unwritten {
        /// The bytes that are read.
        place: Place,
    },
    /// E1016: two accesses by threads of one block, or of blocks of one cluster, that nothing
    /// orders.
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
    /// E1017: two accesses by threads of two blocks that nothing orders.
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
    /// E1018: bytes touched while an asynchronous access may be in flight, or an asynchronous
    /// access issued while they may still be touched.
    Unfinished {
        /// The bytes.
        place: Place,
        /// The earlier of the two.
        before: Party,
        /// The asynchronous work, if it is the earlier one.
        work: Option<Work>,
    },
    /// E1019: bytes written by ordinary stores that another proxy reads or replaces, without a
    /// proxy fence between.
    Unfenced {
        /// The bytes.
        place: Place,
        /// The store.
        before: Party,
        /// The fence.
        missing: ProxyFence,
    },
    /// E1020: a thread that ends before its asynchronous work.
    PendingAtExit {
        /// The pending work.
        work: Work,
    },
    /// E1021: a barrier that some threads do not reach.
    BarrierNotReached {
        /// The number of the barrier.
        barrier: u32,
        /// How many threads came.
        came: u32,
        /// How many are expected.
        expected: u32,
        /// A thread that did not come.
        missing: Option<Thread>,
        /// Where that thread is instead; none if it has ended.
        missing_at: Option<At>,
    },
    /// E1022: threads that wait for each other.
    Deadlock {
        /// The waiting threads, and where they wait.
        waiting: Vec<Waiting>,
    },
    /// E1023: more arrivals at a barrier than it counts, or a phase left unfinished.
    Arrivals {
        /// The barrier.
        place: Place,
        /// How many arrivals complete a phase.
        count: u32,
        /// How many came.
        came: u32,
    },
    /// E1024: bytes that a barrier expects and never get, or gets and did not expect.
    TransactionBytes {
        /// The barrier.
        place: Place,
        /// How many more bytes it expects; negative for those too many.
        expects: i64,
    },
    /// E1025: a barrier in memory that is used before it is initialised, or before that is
    /// published.
    Uninitialised {
        /// The barrier.
        place: Place,
        /// Whether it is initialised, but not for this thread or for TMA yet.
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
        /// Its first element that differs.
        place: Place,
        /// The schedules.
        schedules: [String; 2],
    },
    /// E1030: the kernel ended itself.
    Trap {
        /// `trap`, or the text of an assertion that failed.
        what: String,
    },
    /// E1031: bytes of an mbarrier touched by an ordinary access.
    BarrierBytes {
        /// The bytes.
        place: Place,
    },
    /// E1033: a register of a product is touched while it may be in flight, or a product uses a
    /// register that was written since the last fence for registers.
    Registers {
        /// The product, or the instruction that wrote the register.
        before: At,
        /// Whether it is the fence that is missing; else it is the wait.
        fence: bool,
    },
    /// E1035: shared memory of another block of the cluster, used when that block may not have
    /// begun yet, or may have ended.
    Lifetime {
        /// The bytes.
        place: Place,
        /// The rank of the block that has them.
        rank: u32,
        /// Whether it may have ended; else it may not have begun.
        ended: bool,
    },
    /// E1042: a wait that may see another phase of a barrier in memory than it does here.
    Phase {
        /// The barrier.
        place: Place,
        /// The phase that the wait sees here, or in which the arrival counts; -1 is the one before
        /// the first, which counts as over.
        phase: i64,
        /// The possible fault.
        fault: PhaseFault,
    },
    /// E1044: memory that the launch writes is read through the cache that is not coherent.
    NonCoherent {
        /// The bytes.
        place: Place,
        /// The write.
        before: Party,
    },
    /// E1045: NaN made from numbers; asked for.
    NotANumber {
        /// The operation, as it is written.
        what: String,
    },
    /// E1046: a write of constant memory, or of an array that the launch only reads.
    ReadOnly {
        /// The bytes.
        place: Place,
    },
}

/// Something wrong with a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The defect.
    pub defect: Defect,
    /// The instruction; none if a whole run shows it.
    pub at: Option<At>,
    /// The thread that came upon it.
    pub thread: Option<Thread>,
    /// How often these statements were found with this defect.
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
