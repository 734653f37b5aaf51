//! Findings: the defects of a kernel.
//!
//! A finding is data with a stable [code](Finding::code); its sentence is made when it is printed,
//! in `message.rs`.

use crate::element::Element;
use crate::interpret::Schedule;
use crate::program::Source;
use crate::program::memory::Role;

/// A thread of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its block.
    pub block: [u32; 3],
    /// Its number in the block.
    pub thread: u32,
}

/// Bytes of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the buffer.
    pub buffer: String,
    /// Its layout, as it was written.
    pub layout: String,
    /// The type of its elements.
    pub element: Element,
    /// The first byte, from where the buffer begins.
    pub byte: i64,
    /// How many.
    pub bytes: u64,
}

/// How an access took part in a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// By which thread; of a bulk load, none.
    pub thread: Option<Thread>,
    /// By which statement.
    pub source: Source,
    /// Whether it went on behind the thread's back.
    pub background: bool,
}

/// Threads that wait for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The first and the last thread of a run of them.
    pub threads: (u32, u32),
    /// The rank of their block, in a cluster of several.
    pub rank: Option<u32>,
    /// The statement at which they wait; none for threads that have ended.
    pub source: Option<Source>,
    /// The purpose.
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
        /// How many bytes the buffer has.
        size: u64,
    },
    /// E1011: an access that is not a multiple of what it has to be.
    Misaligned {
        /// The bytes of the access.
        place: Place,
        /// The required alignment.
        alignment: u32,
    },
    /// E1012: a read of bytes that nobody has written.
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
    /// E1014: elements of an output that nobody writes.
    NeverWritten {
        /// The first of them.
        place: Place,
        /// How many elements.
        elements: u64,
    },
    /// E1015: an input that is written, or an output that is read by a block that was told of no
    /// other.
    Role {
        /// The bytes that are accessed.
        place: Place,
        /// The declared role.
        role: Role,
    },
    /// E1016: two accesses that nothing orders, by threads of one block or of blocks of one
    /// cluster.
    Race {
        /// The bytes.
        place: Place,
        /// The earlier access.
        before: Party,
    },
    /// E1017: two accesses by threads of two blocks, which nothing orders.
    RaceBetweenBlocks {
        /// The bytes.
        place: Place,
        /// The earlier access.
        before: Party,
    },
    /// E1018: bytes touched while an asynchronous copy may still be under way, or an asynchronous
    /// copy issued while they may still be touched.
    Unfinished {
        /// The bytes.
        place: Place,
        /// The earlier of the two.
        before: Party,
    },
    /// E1019: bytes written by ordinary stores that a bulk copy takes or replaces, without a fence
    /// between the two.
    Unfenced {
        /// The bytes.
        place: Place,
        /// The store.
        before: Party,
        /// Whether they are in global memory.
        global: bool,
    },
    /// E1020: a thread that ends before its asynchronous work.
    PendingAtExit {
        /// The pending work.
        what: &'static str,
    },
    /// E1021: a barrier that some threads of a warp, or of a block, do not reach.
    BarrierNotReached {
        /// The threads that are missing; none if some came and went on, and nobody else before
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
    /// E1026: loop bounds that differ, or a loop variable that does not fit.
    LoopBounds {
        /// How many iterations these threads take.
        iterations: u64,
        /// The value in other lanes; None if the variable would overflow.
        others: Option<u64>,
    },
    /// E1027: an instruction of a whole warp that part of it executes.
    Divergence {
        /// The lanes that do.
        active: u32,
    },
    /// E1028: an output that depends on the schedule.
    OrderDependent {
        /// Its first element that differs.
        place: Place,
        /// The other schedule.
        other: Schedule,
    },
    /// E1029: the limit of steps; what was checked so far is right.
    StepLimit {
        /// How many instructions of warps were executed.
        steps: u64,
        /// How many blocks were finished.
        blocks: u64,
        /// How many blocks there are.
        of: u64,
    },
    /// E1030: the kernel ended itself.
    Trap,
    /// E1031: bytes of a barrier touched by an ordinary access, or a barrier initialised again.
    BarrierBytes {
        /// The bytes.
        place: Place,
    },
    /// E1032: the check was stopped.
    Interrupted,
    /// E1033: an accumulator is read while a wgmma may still be in flight, or a wgmma adds to a
    /// register before a fence for registers.
    Sums {
        /// The statement that wrote the register, where it is known.
        before: Option<Source>,
        /// Whether it is the fence that is missing.
        fence: bool,
    },
    /// E1034: the warps of a warpgroup do not execute the same wgmma, or the same `setmaxnreg`,
    /// together.
    Group {
        /// The first warp of the warpgroup.
        first: u32,
        /// How many of both each has executed.
        products: [u64; 4],
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
    /// E1036: an arrival at the barrier of the cluster, or a wait for it, out of iteration.
    ClusterBarrier {
        /// The operation out of order.
        what: &'static str,
    },
    /// E1037: registers that a warpgroup takes and the block has not, or releases and has not.
    Registers {
        /// The defect.
        what: &'static str,
        /// How many registers a thread is to have.
        asked: u32,
        /// How many registers are free.
        free: u32,
    },
    /// E1039: bytes of an operand of a wgmma, which a bulk load left with another swizzle than that
    /// of the matrix descriptor.
    Permuted {
        /// The bytes.
        place: Place,
        /// The load.
        before: Party,
        /// Bytes of a line of the swizzle with which it wrote: 16, which is none, 32, 64 or 128.
        wrote: u32,
        /// The swizzle of the descriptor.
        reads: u32,
    },
    /// E1040: numbers of the count of a launch taken so that it is not where it was behind it.
    Count {
        /// The defect.
        what: &'static str,
    },
    /// E1041: a bulk store that TMA does not keep inside its tensor. It writes whole chunks of 16
    /// bytes, also past the extent of the innermost mode, and it traps where a coordinate of the
    /// box is negative.
    BulkEdge {
        /// The bytes past the extent that it would write, or the first byte of the box.
        place: Place,
        /// The mode of the tensor map and the coordinate, where one is negative.
        before: Option<(usize, i64)>,
    },
    /// E1042: a wait that may see another phase of a barrier in memory than it does here, or an
    /// arrival that may count in another one.
    Phase {
        /// The barrier.
        place: Place,
        /// The phase that the wait sees here, or in which the arrival counts; -1 is the one before
        /// the first, which counts as over.
        phase: i64,
        /// The possible fault.
        fault: PhaseFault,
    },
    /// E1043: atomic operations of two kinds at one element, which nothing orders and which leave
    /// something else in the other order.
    MixedAtomics {
        /// The bytes.
        place: Place,
        /// The earlier operation.
        before: Party,
    },
    /// E1038: memory of the device touched before the launches before this one are known to be
    /// over, in a kernel that waits for them.
    Launches {
        /// The bytes.
        place: Place,
    },
}

/// How a wait for a phase, or an arrival, may differ under another schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseFault {
    /// The next phase may be over before the wait looks.
    Missed,
    /// The wait may take the phase two before for its own.
    Early,
    /// The arrival may count in the phase before.
    Arrival,
}

/// Something wrong with a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The defect.
    pub defect: Defect,
    /// The statement; none if a whole run shows it.
    pub source: Option<Source>,
    /// The thread that came upon it.
    pub thread: Option<Thread>,
    /// The schedule under which it did.
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
