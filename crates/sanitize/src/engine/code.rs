//! Programs in the form that the engine runs: a flat list of operations for each function, without
//! names.

use crate::check::checker::{Fence, Order, Scope};

/// The values of a register for all lanes of a warp.
pub(crate) type Row = [u64; 32];

/// The index of no operation: a missing target or join.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The join of lanes that return from a function at several places: after the call.
pub(crate) const AT_RETURN: u32 = u32::MAX - 1;

/// The source of an operand: a register of the frame, or a constant of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(pub(crate) u32);

impl Source {
    pub(crate) const CONSTANT: u32 = 1 << 31;
}

/// The destination of a result: a register, its width in bits, and the bit from which on the sign
/// is extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) slot: u32,
    pub(crate) bits: u8,
    /// 0: the result is not extended.
    pub(crate) sign_from: u8,
}

impl Target {
    /// The contents of the register after a result.
    #[inline]
    pub(crate) fn fit(self, value: u64) -> u64 {
        let value = match self.sign_from {
            0 => value,
            from => {
                let shift = 64 - u32::from(from);
                ((value << shift) as i64 >> shift) as u64
            }
        };
        if self.bits >= 64 { value } else { value & ((1 << self.bits) - 1) }
    }
}

/// A source predicate: a predicate register, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Register(u32, bool),
    Constant(bool),
}

pub(crate) type Function1 = Box<dyn Fn(&Row, &mut Row) + Send + Sync>;
pub(crate) type Function2 = Box<dyn Fn(&Row, &Row, &mut Row) + Send + Sync>;
pub(crate) type Function3 = Box<dyn Fn(&Row, &Row, &Row, &mut Row) + Send + Sync>;
pub(crate) type FunctionMany = Box<dyn Fn(&[Row], &mut [Row]) + Send + Sync>;
pub(crate) type Comparer = Box<dyn Fn(&Row, &Row) -> u32 + Send + Sync>;
/// The new value that an atomic operation stores, from the old value and its operands.
pub(crate) type Update = Box<dyn Fn(u64, u64, u64) -> u64 + Send + Sync>;

/// How predicates are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

impl Logic {
    pub(crate) fn of(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// The state space of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Generic,
    Global,
    Const,
    Shared,
    SharedCluster,
    Local,
    Param,
}

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub(crate) window: Window,
    pub(crate) base: Source,
    pub(crate) offset: i64,
    /// Bytes of an element of a vector access.
    pub(crate) bytes: u8,
    /// The number of elements.
    pub(crate) count: u8,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
}

/// An operation that lanes of a warp compute together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    Sync,
    ShuffleUp,
    ShuffleDown,
    ShuffleXor,
    ShuffleIndex,
    VoteAll,
    VoteAny,
    VoteUniform,
    Ballot,
    MatchAny,
    MatchAll,
    Elect,
    Reduce(Reduction),
}

/// What `redux` computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Add,
    And,
    Or,
    Xor,
    MinUnsigned,
    MaxUnsigned,
    MinSigned,
    MaxSigned,
    /// For f32: whether it is the maximum, takes absolute values, and propagates NaN.
    Float {
        is_max: bool,
        absolute: bool,
        nan: bool,
    },
}

/// An operation for which lanes of a warp wait for each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) what: Together,
    /// The mask of the lanes that take part.
    pub(crate) mask: Source,
    pub(crate) a: Source,
    pub(crate) b: Source,
    pub(crate) c: Source,
    pub(crate) p: Truth,
    pub(crate) d: Option<Target>,
    pub(crate) q: Option<u32>,
    /// The number of bits that are compared.
    pub(crate) bits: u8,
}

/// How lanes arrive at a barrier of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Sync,
    Arrive,
    ReduceAnd,
    ReduceOr,
    ReduceCount,
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(u8),
    Threads(u8),
    Block(u8),
    Blocks(u8),
    Cluster(u8),
    Clusters(u8),
    BlockInCluster(u8),
    BlocksOfCluster(u8),
    ClusterRank,
    ClusterSize,
    IsCluster,
    Lane,
    Warp,
    Warps,
    Processor,
    Processors,
    Grid,
    LanesEqual,
    LanesUpTo,
    LanesBelow,
    LanesFrom,
    LanesAbove,
    Clock,
    ClockHigh,
    Nanoseconds,
    NanosecondsHigh,
    DynamicShared,
    AllShared,
    /// The lower and the upper half of the address of the memory through which the blocks of a
    /// cooperative launch synchronise.
    MeetingPlace,
    MeetingPlaceHigh,
    /// The address of the local memory of the frame.
    LocalFrame,
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    Function(u32),
    Address(Source),
    Print,
    Assert,
    Allocate,
    Free,
}

/// An operation.
pub(crate) enum Op {
    Nothing,
    /// An unknown instruction, or an instruction with unknown operands. Executing it stops the run
    /// with this text.
    Refuse(Box<str>),
    Alu1(Target, Source, Function1),
    Alu2(Target, [Source; 2], Function2),
    Alu3(Target, [Source; 3], Function3),
    AluMany(Box<[Target]>, Box<[Source]>, FunctionMany),
    /// `setp`: two result predicates, and the predicate with which they are combined.
    Compare {
        p: Option<u32>,
        q: Option<u32>,
        a: Source,
        b: Source,
        test: Comparer,
        with: Option<(Logic, Truth)>,
    },
    /// `set`: a number that stands for true or false.
    CompareValue {
        d: Target,
        a: Source,
        b: Source,
        test: Comparer,
        with: Option<(Logic, Truth)>,
        one: u64,
    },
    Predicate {
        d: u32,
        a: Truth,
        b: Truth,
        logic: Logic,
    },
    Select {
        d: Target,
        a: Source,
        b: Source,
        p: Truth,
    },
    /// Whether a value is not zero, combined with another predicate: for `mov.b32` to predicates,
    /// and for `lop3` with a predicate.
    Nonzero {
        p: u32,
        a: Source,
        logic: Logic,
        q: Truth,
    },
    /// An addition or subtraction with carry: `add.cc`, `addc`, `sub.cc` and so on.
    Carry {
        d: Target,
        a: Source,
        b: Source,
        subtracts: bool,
        reads: bool,
        writes: bool,
        bits: u8,
    },
    Special(Target, Special),
    /// `alloca`: the result, the number of bytes on the stack of each lane, and their alignment.
    StackTake(Target, Source, u64),
    /// `stacksave`
    StackSave(Target),
    /// `stackrestore`
    StackRestore(Source),
    Load {
        from: Reference,
        to: Box<[Option<Target>]>,
    },
    Store {
        to: Reference,
        from: Box<[Source]>,
    },
    Atomic {
        at: Reference,
        to: Box<[Option<Target>]>,
        b: Box<[Source]>,
        c: Option<Source>,
        update: Update,
        returns: bool,
    },
    /// `atom.exch` and `atom.cas` of 128 bits: the two halves of the new value, or of the expected
    /// and of the new value.
    AtomicPair {
        at: Reference,
        to: [Target; 2],
        from: Box<[Source]>,
    },
    /// `isspacep`.
    IsWindow {
        p: u32,
        a: Source,
        window: Window,
    },
    /// `mapa` and `getctarank`, for a generic address or an address in a window.
    MapShared {
        d: Target,
        a: Source,
        rank: Source,
        generic: bool,
    },
    RankOf {
        d: Target,
        a: Source,
        generic: bool,
    },
    Call {
        callee: Callee,
        arguments: Box<[Source]>,
        results: Box<[u32]>,
    },
    Return,
    Exit,
    Trap,
    Branch {
        target: u32,
        join: u32,
    },
    BranchIndexed {
        index: Source,
        targets: Box<[u32]>,
        join: u32,
    },
    Barrier {
        arrival: Arrival,
        id: Source,
        count: Option<Source>,
        aligned: bool,
        p: Truth,
        to: Option<Target>,
        q: Option<u32>,
    },
    ClusterArrive {
        release: bool,
    },
    ClusterWait {
        acquire: bool,
    },
    Meet(Meeting),
    ActiveMask(Target),
    Fence(Fence),
    /// `cp.async`: the number of bytes of shared memory, and the number of bytes that are read, or
    /// a predicate that skips the read.
    Copy {
        shared: Reference,
        global: Reference,
        size: Option<Source>,
        ignore: Truth,
    },
    CopyCommit,
    CopyWait(u32),
    CopyWaitAll,
    Matrix(super::matrix::MatrixOp),
    Async(super::engines::AsyncOp),
}

/// An operation with its guard predicate and its statement.
pub(crate) struct Micro {
    pub(crate) op: Op,
    pub(crate) guard: Truth,
    /// The number of the statement in the module.
    pub(crate) at: u32,
    /// The registers that it accesses, in a function with wgmma.
    pub(crate) touches: Option<Box<Touched>>,
}

/// Registers that an operation reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) reads: Vec<u32>,
    pub(crate) writes: Vec<u32>,
}

impl Touched {
    /// Adds registers that are written, and those that are read; constants are none.
    pub(crate) fn add(&mut self, to: &[Target], from: &[Source]) {
        self.writes.extend(to.iter().map(|target| target.slot));
        self.reads.extend(from.iter().map(|source| source.0).filter(|slot| slot & Source::CONSTANT == 0));
    }
}

impl Op {
    /// The registers that it accesses. None for operations of the asynchronous engines, which
    /// report their own.
    pub(crate) fn touches(&self) -> Option<Touched> {
        let mut own = Touched::default();
        match self {
            Self::Alu1(d, a, _) | Self::StackTake(d, a, _) => own.add(&[*d], &[*a]),
            Self::Alu2(d, from, _) => own.add(&[*d], from),
            Self::Alu3(d, from, _) => own.add(&[*d], from),
            Self::AluMany(to, from, _) => own.add(to, from),
            Self::Compare { a, b, .. } => own.add(&[], &[*a, *b]),
            Self::CompareValue { d, a, b, .. } | Self::Select { d, a, b, .. } | Self::Carry { d, a, b, .. } => {
                own.add(&[*d], &[*a, *b]);
            }
            Self::Special(d, _) | Self::StackSave(d) => own.add(&[*d], &[]),
            Self::StackRestore(a) => own.add(&[], &[*a]),
            Self::Load { from, to } => {
                own.add(&[], &[from.base]);
                own.writes.extend(to.iter().flatten().map(|target| target.slot));
            }
            Self::Store { to, from } => {
                own.add(&[], &[to.base]);
                own.add(&[], from);
            }
            Self::Atomic { at, to, b, c, .. } => {
                own.add(&[], &[at.base]);
                own.add(&[], b);
                own.add(&[], c.as_slice());
                own.writes.extend(to.iter().flatten().map(|target| target.slot));
            }
            Self::AtomicPair { at, to, from } => {
                own.add(&[], &[at.base]);
                own.add(to, from);
            }
            Self::Call { arguments, results, .. } => {
                own.add(&[], arguments);
                own.writes.extend(results.iter());
            }
            Self::Meet(meeting) => own.add(meeting.d.as_slice(), &[meeting.a, meeting.b, meeting.c]),
            Self::Matrix(matrix) => matrix.touches(&mut own),
            _ => return None,
        }
        Some(own)
    }
}

/// A parameter: its position among the registers of a frame, in units of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParameterPlace {
    pub(crate) slot: u32,
    pub(crate) slots: u32,
}

/// A function.
pub(crate) struct FunctionCode {
    pub(crate) name: String,
    pub(crate) ops: Vec<Micro>,
    pub(crate) slots: u32,
    pub(crate) predicates: u32,
    pub(crate) constants: Vec<Row>,
    pub(crate) parameters: Vec<ParameterPlace>,
    pub(crate) returns: Vec<ParameterPlace>,
    pub(crate) local_bytes: u32,
    pub(crate) has_body: bool,
}

/// A statement, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatementPlace {
    pub(crate) function: u32,
    pub(crate) line: u32,
    pub(crate) location: Option<u32>,
}

/// A variable of the module in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) name: String,
    /// The address, counted from the beginning of the launch's memory for variables.
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) is_const: bool,
    /// Whether it is initialised before the launch.
    pub(crate) is_initialised: bool,
}

/// A kernel entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryCode {
    pub(crate) function: u32,
    /// For each parameter, its name, offset and number of bytes.
    pub(crate) parameters: Vec<(String, u64, u64)>,
    pub(crate) parameter_bytes: u64,
}

/// A module.
pub(crate) struct Program {
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) entry: EntryCode,
    pub(crate) statements: Vec<StatementPlace>,
    pub(crate) variables: Vec<Placed>,
    pub(crate) static_shared: u64,
    pub(crate) has_async: bool,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) most_threads: Option<[u32; 3]>,
    pub(crate) required_cluster: Option<[u32; 3]>,
}
