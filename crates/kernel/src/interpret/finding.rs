//! Findings: the defects of a kernel.
//!
//! A finding is data with a stable [code](Finding::code). Its text is made when it is printed, in
//! `message.rs`.

use crate::element::Element;
use crate::interpret::Schedule;
use crate::program::Source;
use crate::program::memory::Role;

/// A thread of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its block.
    pub block: [u32; 3],
    /// Its index in the block.
    pub thread: u32,
}

/// Bytes of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the buffer.
    pub buffer: String,
    /// Its layout, as written by the author.
    pub layout: String,
    /// The type of its elements.
    pub element: Element,
    /// The first byte, counted from the beginning of the buffer.
    pub byte: i64,
    /// The number of bytes.
    pub bytes: u64,
}

/// An access that takes part in a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// The thread; None for a bulk load.
    pub thread: Option<Thread>,
    /// The statement.
    pub source: Source,
    /// Whether it is asynchronous.
    pub background: bool,
}

/// Threads that wait for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The first and the last of consecutive threads.
    pub threads: (u32, u32),
    /// The rank of their block, if the cluster has several blocks.
    pub rank: Option<u32>,
    /// The statement at which they wait; None for threads that have exited.
    pub source: Option<Source>,
    /// What they wait for.
    pub what: String,
}

/// A kind of defect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// E1010: an access outside its buffer.
    OutOfBounds {
        /// The bytes of the access.
        place: Place,
        /// The number of bytes of the buffer.
        size: u64,
    },
    /// E1011: an access that is not sufficiently aligned.
    Misaligned {
        /// The bytes of the access.
        place: Place,
        /// The required alignment.
        alignment: u32,
    },
    /// E1012: a read of bytes that were never written.
    Unwritten {
        /// The bytes that are read.
        place: Place,
    },
    /// E1013: an element of an output that two threads write.
    WrittenTwice {
        /// The bytes that are written.
        place: Place,
        /// The earlier writer.
        before: Party,
    },
    /// E1014: elements of an output that are never written.
    NeverWritten {
        /// The first of them.
        place: Place,
        /// The number of elements.
        elements: u64,
    },
    /// E1015: an input that is written, or an output that is read by a block that knows of no other
    /// block.
    Role {
        /// The bytes that are accessed.
        place: Place,
        /// The declared role.
        role: Role,
    },
    /// E1016: two unordered accesses by threads of one block, or of blocks of one cluster.
    Race {
        /// The bytes.
        place: Place,
        /// The earlier access.
        before: Party,
    },
    /// E1017: two unordered accesses by threads of two blocks.
    RaceBetweenBlocks {
        /// The bytes.
        place: Place,
        /// The earlier access.
        before: Party,
    },
    /// E1018: an access to bytes while an asynchronous copy may be in flight, or an asynchronous
    /// copy that is issued while the bytes may still be accessed.
    Unfinished {
        /// The bytes.
        place: Place,
        /// The earlier of the two.
        before: Party,
    },
    /// E1019: bytes from ordinary stores that a bulk copy reads or overwrites, without a proxy
    /// fence between.
    Unfenced {
        /// The bytes.
        place: Place,
        /// The store.
        before: Party,
        /// Whether they are in global memory.
        global: bool,
    },
    /// E1020: a thread that exits before its asynchronous work has completed.
    PendingAtExit {
        /// The pending work.
        what: &'static str,
    },
    /// E1021: a barrier that some threads of a warp, or of a block, do not reach.
    BarrierNotReached {
        /// The missing threads; empty if some threads arrived and left, and no others came before
        /// the end.
        missing: Vec<u32>,
        /// The number of expected threads.
        expected: u32,
    },
    /// E1022: threads that wait for each other.
    Deadlock {
        /// The waiting warps, and where they wait.
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
    /// E1026: a number of iterations that differs between lanes, or a loop variable that does not
    /// fit.
    LoopBounds {
        /// The number of iterations of these threads.
        iterations: u64,
        /// The number in other lanes; None if the variable would overflow.
        others: Option<u64>,
    },
    /// E1027: an instruction of a whole warp that only a part of it executes.
    Divergence {
        /// The lanes that execute it.
        active: u32,
    },
    /// E1028: an output that depends on the schedule.
    OrderDependent {
        /// The first element that differs.
        place: Place,
        /// The other schedule.
        other: Schedule,
    },
    /// E1029: the limit of steps was reached; no defect was found before.
    StepLimit {
        /// The number of warp instructions that were executed.
        steps: u64,
        /// The number of blocks that finished.
        blocks: u64,
        /// The number of all blocks.
        of: u64,
    },
    /// E1030: the kernel executed a trap.
    Trap,
    /// E1031: an ordinary access to bytes of an mbarrier, or an mbarrier that is initialised again.
    BarrierBytes {
        /// The bytes.
        place: Place,
    },
    /// E1032: the check was stopped.
    Interrupted,
    /// E1033: an accumulator that is read while a wgmma may be in flight, or a wgmma that adds to a
    /// register without a `wgmma.fence` after its last write.
    Sums {
        /// The statement that wrote the register, if it is known.
        before: Option<Source>,
        /// Whether the fence is missing.
        fence: bool,
    },
    /// E1034: the warps of a warpgroup do not execute the same wgmma, or the same `setmaxnreg`,
    /// together.
    Group {
        /// The first warp of the warpgroup.
        first: u32,
        /// The number of these instructions that each warp has executed.
        products: [u64; 4],
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
    /// E1036: an arrival at the cluster barrier, or a wait for it, in the wrong order.
    ClusterBarrier {
        /// The operation.
        what: &'static str,
    },
    /// E1037: a `setmaxnreg` that requests registers that the block does not have, or releases
    /// registers that the warpgroup does not have.
    Registers {
        /// The defect.
        what: &'static str,
        /// The requested number of registers of a thread.
        asked: u32,
        /// The number of free registers.
        free: u32,
    },
    /// E1039: bytes of an operand of a wgmma that a bulk load wrote with another swizzle than that
    /// of the matrix descriptor.
    Permuted {
        /// The bytes.
        place: Place,
        /// The load.
        before: Party,
        /// Bytes of a line of the swizzle with which the load wrote: 32, 64 or 128, or 16 without a
        /// swizzle.
        wrote: u32,
        /// Bytes of a line of the descriptor's swizzle.
        reads: u32,
    },
    /// E1040: indices are claimed such that the counter of the launch does not end where it began.
    Count {
        /// The defect.
        what: &'static str,
    },
    /// E1041: a bulk store that does not stay inside its tensor. TMA writes whole chunks of 16
    /// bytes, even past the extent of the innermost mode, and traps if a coordinate of the box is
    /// negative.
    BulkEdge {
        /// The bytes past the extent that it would write, or the first byte of the box.
        place: Place,
        /// The mode of the tensor map and its coordinate, if the coordinate is negative.
        before: Option<(usize, i64)>,
    },
    /// E1042: a wait at an mbarrier that may observe another phase under another schedule, or an
    /// arrival that may count in another phase.
    Phase {
        /// The mbarrier.
        place: Place,
        /// The phase that the wait observes in this run, or in which the arrival counts. Phase -1
        /// is the one before the first, which counts as completed.
        phase: i64,
        /// The possible fault.
        fault: PhaseFault,
    },
    /// E1043: unordered atomic operations of two kinds on one element whose result depends on their
    /// order.
    MixedAtomics {
        /// The bytes.
        place: Place,
        /// The earlier operation.
        before: Party,
    },
    /// E1038: global memory that is accessed before the previous launches are known to have
    /// finished, in a kernel that waits for them.
    Launches {
        /// The bytes.
        place: Place,
    },
}

/// How a wait for a phase, or an arrival, may go wrong under another schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseFault {
    /// The next phase may complete before the wait tests the mbarrier.
    Missed,
    /// The wait may succeed on the phase two before.
    Early,
    /// The arrival may count in the previous phase.
    Arrival,
}

/// A defect that was found in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The defect.
    pub defect: Defect,
    /// The statement; None if the defect is one of the whole run.
    pub source: Option<Source>,
    /// The thread in which it was found.
    pub thread: Option<Thread>,
    /// The schedule under which it was found.
    pub schedule: Schedule,
}

/// The findings of a run, at least one, in the order in which they were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings(pub(crate) Vec<Finding>);

impl std::ops::Deref for Findings {
    type Target = [Finding];

    fn deref(&self) -> &[Finding] {
        &self.0
    }
}

impl From<Vec<Finding>> for Findings {
    fn from(findings: Vec<Finding>) -> Findings {
        Findings(findings)
    }
}

impl std::fmt::Display for Findings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, finding) in self.iter().enumerate() {
            write!(f, "{}{finding}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Findings {}

impl Finding {
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
            Defect::WrittenTwice { .. } => "E1013",
            Defect::NeverWritten { .. } => "E1014",
            Defect::Role { .. } => "E1015",
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
            Defect::LoopBounds { .. } => "E1026",
            Defect::Divergence { .. } => "E1027",
            Defect::OrderDependent { .. } => "E1028",
            Defect::StepLimit { .. } => "E1029",
            Defect::Trap => "E1030",
            Defect::BarrierBytes { .. } => "E1031",
            Defect::Interrupted => "E1032",
            Defect::Sums { .. } => "E1033",
            Defect::Group { .. } => "E1034",
            Defect::Lifetime { .. } => "E1035",
            Defect::ClusterBarrier { .. } => "E1036",
            Defect::Registers { .. } => "E1037",
            Defect::Launches { .. } => "E1038",
            Defect::Permuted { .. } => "E1039",
            Defect::Count { .. } => "E1040",
            Defect::BulkEdge { .. } => "E1041",
            Defect::Phase { .. } => "E1042",
            Defect::MixedAtomics { .. } => "E1043",
        }
    }
}
