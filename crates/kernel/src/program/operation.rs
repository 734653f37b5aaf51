//! What one instruction of a thread does.
//!
//! Law: an operation has one meaning, said here. The interpreter executes it, the PTX writer prints
//! an instruction that has it, the cost report counts it. Registers are bits; each operation says
//! how it reads them.

use std::collections::HashMap;

use super::group::{Described, GroupFactors};
use super::memory::{Access, BufferId, MapId};

/// How an arithmetic operation reads the bits of its registers.
///
/// Integers wrap. Floating-point numbers round to nearest, ties to even, and keep subnormal
/// numbers, except where [`Unary`] names an approximation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// 16 bits, signed.
    I16,
    /// 16 bits.
    U16,
    /// 32 bits, signed.
    I32,
    /// 32 bits.
    U32,
    /// 64 bits, signed.
    I64,
    /// 64 bits.
    U64,
    /// IEEE binary16, in 16 bits.
    F16,
    /// Upper half of a binary32, in 16 bits.
    Bf16,
    /// Two [`Number::F16`] in 32 bits.
    F16x2,
    /// Two [`Number::Bf16`] in 32 bits.
    Bf16x2,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Number {
    /// How many bits a register of it has.
    pub fn bits(self) -> u32 {
        match self {
            Number::I16 | Number::U16 | Number::F16 | Number::Bf16 => 16,
            Number::I32 | Number::U32 | Number::F16x2 | Number::Bf16x2 | Number::F32 => 32,
            Number::I64 | Number::U64 | Number::F64 => 64,
        }
    }

    /// Whether it is a floating-point number, or two.
    pub fn is_float(self) -> bool {
        !matches!(self, Number::I16 | Number::U16 | Number::I32 | Number::U32 | Number::I64 | Number::U64)
    }
}

/// What a conversion reads or gives: numbers in registers, and narrower ones that registers hold in
/// their low bits.
///
/// A register of a type of 8 bits has 16: the byte is in the low half, and the high half is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// As [`Number`] says. [`Number::F16x2`] and [`Number::Bf16x2`] are given by
    /// [`Operation::ConvertPair`] alone.
    Number(Number),
    /// 8 bits, signed, extended to 16.
    I8,
    /// 8 bits, extended by zeros to 16.
    U8,
    /// 8 bits: 4 of exponent, 3 of mantissa. Target of [`Operation::ConvertPair`] alone.
    E4M3,
    /// 8 bits: 5 of exponent, 2 of mantissa. Target of [`Operation::ConvertPair`] alone.
    E5M2,
}

/// Operations on one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-a`.
    Negate,
    /// `|a|`.
    Magnitude,
    /// Each bit flipped; of a predicate too.
    Not,
    /// `1/a`, f32 within 1 unit in the last place; exact rounding for f64.
    Reciprocal,
    /// The square root, rounded to nearest.
    SquareRoot,
    /// `1/sqrt(a)`, f32 within a relative error of 2^-22.
    ReciprocalSquareRoot,
    /// `2^a`, f32 within 2 units in the last place; subnormal results are 0.
    Exp2,
    /// `log2(a)`, f32 within an absolute error of 2^-22 near 1.
    Log2,
    /// `sin(a)`, f32, absolute error 2^-20 for `|a| <= pi`.
    Sine,
    /// `cos(a)`, as the sine.
    Cosine,
    /// `tanh(a)`, f32 within a relative error of 2^-11.
    HyperbolicTangent,
    /// How many bits are set; 32 and 64 bits, gives 32.
    CountOnes,
    /// The place of the highest set bit counted from the top (`clz`); gives 32 bits.
    CountLeadingZeros,
}

/// Operations on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a * b`, the low half for integers.
    Multiply,
    /// The high half of the product of two integers.
    MultiplyHigh,
    /// Two 32-bit integers to the whole product of 64.
    MultiplyWide,
    /// `a / b`: toward zero for integers (0 for `b = 0`), rounded to nearest for floating-point
    /// numbers.
    Divide,
    /// What [`Binary::Divide`] leaves of integers.
    Remainder,
    /// The lesser; the other one if one is NaN.
    Minimum,
    /// The greater; the other one if one is NaN.
    Maximum,
    /// The lesser; NaN if one is NaN (sm_80, f32, f16, bf16).
    MinimumNan,
    /// The greater; NaN if one is NaN.
    MaximumNan,
    /// Bit by bit; of predicates too.
    And,
    /// Bit by bit; of predicates too.
    Or,
    /// Bit by bit; of predicates too.
    Xor,
    /// `a` to the left by `b` (32 bits); 0 from the width on.
    ShiftLeft,
    /// `a` to the right by `b` (32 bits), filled with the sign of a signed number.
    ShiftRight,
}

/// Comparisons. Of floating-point numbers, all but [`Comparison::NotEqual`] are false where one is
/// NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `a = b`.
    Equal,
    /// `a != b`; true where one is NaN.
    NotEqual,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessEqual,
    /// `a > b`.
    Greater,
    /// `a >= b`.
    GreaterEqual,
}

/// How a conversion rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Toward zero. A floating-point number beyond an integer type becomes its end. NaN becomes 0,
    /// or the highest bit alone where one of both types is f64 or a 64-bit integer.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
}

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
    /// From the lane whose number is one's own XOR this mask.
    Butterfly(u32),
    /// From the lane this many below; a lane that has none keeps its own.
    Up(u32),
    /// From the lane this many above; a lane that has none keeps its own.
    Down(u32),
}

/// What an atomic operation does with the element in memory and the register.
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

/// The types of factors and sums of a matrix instruction of one warp (`mma.sync`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// m16n8k16, f16 times f16, sums in f32.
    F16F32,
    /// m16n8k16, f16 times f16, sums in f16.
    F16F16,
    /// m16n8k16, bf16 times bf16, sums in f32.
    Bf16F32,
    /// m16n8k8, tf32 times tf32, sums in f32.
    Tf32F32,
    /// m8n8k4, f64 throughout.
    F64,
    /// m16n8k32, s8 times s8, sums in s32.
    I8I32,
    /// m16n8k32, u8 times u8, sums in s32.
    U8I32,
    /// m16n8k32, e4m3 times e4m3, sums in f32 (sm_89).
    E4M3F32,
    /// m16n8k32, e5m2 times e5m2, sums in f32 (sm_89).
    E5M2F32,
}

impl Matrix {
    /// Rows, columns and depth of the product.
    pub fn shape(self) -> [u32; 3] {
        match self {
            Matrix::F16F32 | Matrix::F16F16 | Matrix::Bf16F32 => [16, 8, 16],
            Matrix::Tf32F32 => [16, 8, 8],
            Matrix::F64 => [8, 8, 4],
            Matrix::I8I32 | Matrix::U8I32 | Matrix::E4M3F32 | Matrix::E5M2F32 => [16, 8, 32],
        }
    }

    /// How many registers a thread gives for A, B and C; D has as many as C. Those of
    /// [`Matrix::F64`] have 64 bits.
    pub fn registers(self) -> [usize; 3] {
        match self {
            Matrix::F16F32 | Matrix::Bf16F32 => [4, 2, 4],
            Matrix::F16F16 => [4, 2, 2],
            Matrix::Tf32F32 => [4, 2, 4],
            Matrix::F64 => [1, 1, 2],
            Matrix::I8I32 | Matrix::U8I32 | Matrix::E4M3F32 | Matrix::E5M2F32 => [4, 2, 4],
        }
    }
}

/// Which memory accesses a fence orders, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fence {
    /// This thread's accesses before it, for the threads of its block.
    Block,
    /// For all threads of the device.
    Device,
    /// This thread's ordinary accesses to shared memory, for asynchronous ones (bulk copies,
    /// `wgmma`) that follow.
    AsyncShared,
    /// That barriers of shared memory have been initialised, for the other threads and the copy
    /// engine.
    BarrierInit,
}

/// What an instruction does. The comment of each says its inputs and outputs, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Operation {
    /// These bits. -> value
    Constant(u64),
    /// -> value
    Special(Special),
    /// A number that the launch passes, by its place in [`super::Program::scalars`]. -> value
    Scalar(usize),
    /// a -> value
    Unary(Unary, Number),
    /// a, b -> value
    Binary(Binary, Number),
    /// a, b, c -> `a * b + c`, rounded once for floating-point numbers, the low half for integers.
    MultiplyAdd(Number),
    /// Two 32-bit integers and one of 64: `a * b + c`. a, b, c -> value
    MultiplyAddWide(Number),
    /// a, b -> predicate
    Compare(Comparison, Number),
    /// predicate, a, b -> a where it is true, b elsewhere
    Select,
    /// a -> value. To a float from a wider float or an integer, or to an integer from a float, it
    /// rounds; between integers it extends or cuts.
    Convert {
        /// What is read.
        from: Format,
        /// What is given.
        to: Format,
        /// How it rounds, where it must.
        rounding: Rounding,
    },
    /// Two f32 to two narrower floats in one register, the first in the low half: 32 bits for f16
    /// and bf16, 16 for e4m3 and e5m2, which saturate. low, high -> value
    ConvertPair {
        /// [`Number::F16`], [`Number::Bf16`], [`Format::E4M3`] or [`Format::E5M2`].
        to: Format,
    },
    /// Two e4m3 or e5m2 in 16 bits to two f16 in 32. pair -> value
    WidenPair {
        /// [`Format::E4M3`] or [`Format::E5M2`].
        from: Format,
    },
    /// Registers side by side in a wider one, the first lowest: two or four of 16 bits, two of 32.
    /// parts.. -> value
    Pack,
    /// The opposite of [`Operation::Pack`]. value -> parts..
    Unpack,
    /// Four bytes of eight: byte `i` of the result is that which digit `i` of the selector names,
    /// those of `a` being 0 to 3 and those of `b` 4 to 7. a, b -> value
    Permute(u16),
    /// The high 32 bits of `(a,b) << (c mod 32)`, `b` the high half. a, b, c -> value
    FunnelShiftLeft,
    /// The low 32 bits of `(a,b) >> (c mod 32)`, `b` the high half. a, b, c -> value
    FunnelShiftRight,
    /// 32 bits of another lane. value, and the lane for [`Shuffle::Index`] -> value
    Shuffle(Shuffle),
    /// Whose predicate is true, a bit for each lane. predicate -> 32 bits
    Ballot,
    /// Elements from memory, side by side in registers. address? -> registers..
    Load(Access),
    /// Registers to memory. address?, registers.. ->
    Store(Access),
    /// One element in memory replaced, indivisibly. address?, value, and for a compare-exchange the
    /// new one -> what it was
    Atomic(AtomicOperation, Number, Access),
    /// The same, vectors of up to four f32 included, where nobody asks what it was. address?,
    /// values.. ->
    Reduce(AtomicOperation, Number, Access),
    /// Bytes from global to shared memory, behind the thread's back (`cp.async`): 4, 8 or 16. Where
    /// a last register is given, a predicate, and it is false, zeros are written and nothing is
    /// read. shared address?, global address?, predicate? ->
    CopyAsync {
        /// Where to.
        to: Access,
        /// Where from.
        from: Access,
        /// Whether the last register is a predicate that chooses between bytes and zeros.
        or_zeros: bool,
    },
    /// The copies since the last such instruction are a group.
    CommitAsync,
    /// Waits until no more than this many groups of this thread are under way.
    WaitAsync(u32),
    /// 8x8 matrices of 16 bits from shared memory to the fragments of a warp (`ldmatrix`), 1, 2 or
    /// 4; lanes 8q to 8q+7 give the rows of matrix q. address? -> a register of 32 bits for each
    LoadMatrix {
        /// The addresses and the count; each row has 16 bytes.
        access: Access,
        /// Whether rows and columns change places.
        transposed: bool,
    },
    /// The opposite (`stmatrix`, sm_90). address?, registers.. ->
    StoreMatrix {
        /// As above.
        access: Access,
        /// Whether rows and columns change places.
        transposed: bool,
    },
    /// D = A B + C of one warp. a.., b.., c.. -> d..
    Multiply(Matrix),
    /// The same values in registers of their own, as accumulators need them. values.. -> values..
    Move,
    /// D += A B of four warps whose first has a number that is a multiple of four (`wgmma`, sm_90a):
    /// 64 rows, 16 for each warp, and this many columns. It goes on behind the threads' backs: A and B
    /// are read, and the sums written, until a wait for the group that it is committed to. a address?
    /// or its four registers, b address?, sums.. -> sums..
    MultiplyGroup {
        /// The types of A and B.
        factors: GroupFactors,
        /// Columns: a multiple of 8, at most 256.
        columns: u32,
        /// A, 64 rows in shared memory; none where each warp has its 16 rows in registers, as an
        /// `mma.sync` of 16 rows takes them.
        a: Option<Described>,
        /// B, a row for each column of the sums.
        b: Described,
    },
    /// What this thread did with registers comes before the products that follow (`wgmma.fence`).
    FenceRegisters,
    /// The products of the warp since the last such instruction are a group.
    CommitMultiply,
    /// Waits until no more than this many groups of products of the warp are under way.
    WaitMultiply(u32),
    /// All threads of the block wait for each other; their accesses before it come before those
    /// after it.
    Barrier,
    /// As [`Operation::Barrier`], for the given number of threads, a multiple of 32, at barrier 1
    /// to 15.
    NamedBarrier {
        /// Which barrier.
        number: u32,
        /// How many threads arrive.
        threads: u32,
    },
    /// The threads of the warp wait for each other; their accesses before it come before those
    /// after it.
    WarpBarrier,
    /// Orders accesses.
    Fence(Fence),
    /// An object in shared memory that counts arrivals and bytes (`mbarrier`) begins its phase 0.
    /// address? ->
    BarrierInit {
        /// Where it lies: 8 bytes.
        access: Access,
        /// How many arrivals complete a phase.
        count: u32,
    },
    /// One arrival, after which this many bytes more are expected in the phase. address? ->
    BarrierArrive {
        /// Where it lies.
        access: Access,
        /// Bytes of asynchronous copies that the phase waits for besides.
        expect: u32,
    },
    /// Waits until the phase of this parity (32 bits, 0 or 1) is over. address?, parity ->
    BarrierWait {
        /// Where it lies.
        access: Access,
    },
    /// A box of a tensor from global to shared memory by the copy engine. shared address?, barrier
    /// address?, coordinates.. (32 bits each, as many as the map has dimensions) ->
    BulkLoad {
        /// The tensor map.
        map: MapId,
        /// Where the box goes.
        to: Access,
        /// The barrier at which its bytes arrive.
        barrier: Access,
    },
    /// A box of a tensor from shared to global memory by the copy engine. shared address?,
    /// coordinates.. ->
    BulkStore {
        /// The tensor map.
        map: MapId,
        /// Where the box comes from.
        from: Access,
    },
    /// The bulk stores since the last such instruction are a group.
    CommitBulk,
    /// Waits until no more than this many groups of this thread are under way: until their source
    /// has been read, or until all is written.
    WaitBulk {
        /// How many may remain.
        groups: u32,
        /// Whether it is enough that shared memory has been read.
        read: bool,
    },
    /// Ends the launch with an error.
    Trap,
}

/// Registers of A of a product of four warps, where A is in registers.
pub(crate) const FACTOR_REGISTERS: usize = 4;

/// The accesses of an operation, the one that is written first, of a reference of either kind.
macro_rules! accesses {
    ($operation:expr) => {{
        let pair = match $operation {
            Operation::Load(access)
            | Operation::Store(access)
            | Operation::Atomic(_, _, access)
            | Operation::Reduce(_, _, access)
            | Operation::LoadMatrix { access, .. }
            | Operation::StoreMatrix { access, .. }
            | Operation::BarrierInit { access, .. }
            | Operation::BarrierArrive { access, .. }
            | Operation::BarrierWait { access }
            | Operation::BulkStore { from: access, .. } => [Some(access), None],
            Operation::CopyAsync { to, from, .. } => [Some(to), Some(from)],
            Operation::MultiplyGroup {
                a: Some(Described { access: a, .. }), b: Described { access: b, .. }, ..
            } => [Some(a), Some(b)],
            Operation::MultiplyGroup { a: None, b: Described { access: b, .. }, .. } => [Some(b), None],
            Operation::BulkLoad { to, barrier, .. } => [Some(to), Some(barrier)],
            _ => [None, None],
        };
        pair.into_iter().flatten()
    }};
}

impl Operation {
    /// Where the sums of a product of four warps begin among its inputs; none for other operations.
    pub(crate) fn first_sum(&self) -> Option<usize> {
        let Operation::MultiplyGroup { a, b, .. } = self else { return None };
        Some(a.as_ref().map_or(FACTOR_REGISTERS, |a| usize::from(a.access.addressed)) + usize::from(b.access.addressed))
    }

    /// The accesses to memory, the one that is written first.
    pub fn accesses(&self) -> impl Iterator<Item = &Access> {
        accesses!(self)
    }

    /// Gives the buffers that it names other numbers.
    pub(crate) fn rename(&mut self, numbers: &HashMap<BufferId, BufferId>) {
        for access in accesses!(self) {
            access.buffer = numbers.get(&access.buffer).copied().unwrap_or(access.buffer);
        }
    }
}
