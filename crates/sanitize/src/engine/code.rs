//! Programs as the engine runs them: a flat list of operations for each function, without names.

use crate::check::checker::{Fence, Order, Scope};

/// The values of a register for the lanes of a warp.
pub(crate) type Row = [u64; 32];

/// No operation: what a target or a join has where there is none.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The join of lanes that leave a function at several places: behind its call.
pub(crate) const AT_RETURN: u32 = u32::MAX - 1;

/// Where an operand comes from: a register of the frame, or a constant of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(pub(crate) u32);

impl Source {
    pub(crate) const CONSTANT: u32 = 1 << 31;
}

/// Where a result goes: a register, its bits, and from which bit the sign is copied upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) slot: u32,
    pub(crate) bits: u8,
    /// 0: the result is not extended.
    pub(crate) sign_from: u8,
}

impl Target {
    /// What the register holds after a result.
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

/// A predicate that is read: a register of predicates, or a constant.
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
/// What an atomic operation leaves: from what was there, and its operands.
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

/// The memory that an address is of.
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
    /// Bytes of an element.
    pub(crate) bytes: u8,
    /// Elements.
    pub(crate) count: u8,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
}

/// What lanes of a warp do together.
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
    /// Of f32: whether it is the maximum, takes absolute values, and keeps NaN.
    Float {
        is_max: bool,
        absolute: bool,
        nan: bool,
    },
}

/// An operation of lanes of a warp that wait for each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) what: Together,
    /// The lanes that take part.
    pub(crate) mask: Source,
    pub(crate) a: Source,
    pub(crate) b: Source,
    pub(crate) c: Source,
    pub(crate) p: Truth,
    pub(crate) d: Option<Target>,
    pub(crate) q: Option<u32>,
    /// Bits of a value that is compared.
    pub(crate) bits: u8,
}

/// How lanes come to a barrier of the block.
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
    /// The halves of the address of what the blocks of a grid meet at.
    MeetingPlace,
    MeetingPlaceHigh,
    /// Where the local memory of the frame begins.
    LocalFrame,
}

/// What a call goes to.
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
    /// An instruction that is not known, or an operand that it does not have.
    Refuse(Box<str>),
    Alu1(Target, Source, Function1),
    Alu2(Target, [Source; 2], Function2),
    Alu3(Target, [Source; 3], Function3),
    AluMany(Box<[Target]>, Box<[Source]>, FunctionMany),
    /// `setp`: two predicates, and what they are combined with.
    Compare {
        p: Option<u32>,
        q: Option<u32>,
        a: Source,
        b: Source,
        test: Comparer,
        with: Option<(Logic, Truth)>,
    },
    /// `set`: a value for true.
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
    /// A value of 32 bits in which bit i is predicate i, and back: `mov.b32` of predicates.
    /// `lop3` with a predicate.
    Nonzero {
        p: u32,
        a: Source,
        logic: Logic,
        q: Truth,
    },
    /// A sum or difference with a carry in and out: `add.cc` and its kin.
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
    /// `alloca`: bytes of the stack of each lane, at a multiple of the last number.
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
    /// `atom.exch` and `atom.cas` of 128 bits: the halves of the new value, or of the expected and
    /// the new one.
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
    /// `mapa` and `getctarank`, of a generic address or one of a window.
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
    /// `cp.async`: bytes of shared memory, and those that are read, or a predicate that reads none.
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

/// An operation with its guard and its statement.
pub(crate) struct Micro {
    pub(crate) op: Op,
    pub(crate) guard: Truth,
    /// The statement, counted over the module.
    pub(crate) at: u32,
    /// The registers that it touches, in a function with products of warpgroups.
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
    /// The registers that it touches; none of operations of the asynchronous engines, which tell of
    /// them by themselves.
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

/// A parameter: where it begins among the registers of a frame, in units of 8 bytes.
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

/// A statement for messages.
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
    /// From the beginning of the launch's memory for variables.
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) is_const: bool,
    /// Whether it holds values before the launch.
    pub(crate) is_initialised: bool,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryCode {
    pub(crate) function: u32,
    /// For each parameter its offset, its bytes and whether it is 8 bytes of one element.
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
