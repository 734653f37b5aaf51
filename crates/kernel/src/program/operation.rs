//! The operations of the instructions of a thread.
//!
//! Law: an operation has one meaning, which is stated here. The interpreter executes it, the PTX
//! writer prints an instruction that has it, the cost report counts it. Registers are bits; each
//! operation says how it interprets them.

mod arithmetic;
mod matrix;
mod thread;

use std::collections::HashMap;

pub use arithmetic::{Binary, Comparison, Format, Number, Rounding, Unary};
pub use matrix::{BlockScaled, Matrix};
pub(crate) use thread::shuffled;
pub use thread::{AtomicOperation, Axis, Fence, Shuffle, Special};

use super::memory::{Access, BufferId, MapId};
use super::wgmma::{Described, WgmmaOperands};

/// An operation. Each comment lists its inputs and outputs, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Operation {
    /// These bits. -> value
    Constant(u64),
    /// -> value
    Special(Special),
    /// A launch argument, by its index in [`super::Program::scalars`]. -> value
    Scalar(usize),
    /// a -> value
    Unary(Unary, Number),
    /// a, b -> value
    Binary(Binary, Number),
    /// a, b, c -> `a * b + c`, rounded once for floating-point numbers, the low half for integers.
    MultiplyAdd(Number),
    /// A bitwise function of three operands of 32 bits: bit `4a + 2b + c` of the table is the
    /// result for the bits `a`, `b` and `c`. a, b, c -> value
    Logic(u8),
    /// Two 32-bit integers and one of 64: `a * b + c`. a, b, c -> value
    MultiplyAddWide(Number),
    /// a, b -> predicate
    Compare(Comparison, Number),
    /// predicate, a, b -> a if it is true, otherwise b
    Select,
    /// a -> value. A conversion to a float from a wider float or an integer, and one to an integer
    /// from a float, rounds. A conversion between integers extends or truncates.
    Convert {
        /// The source format.
        from: Format,
        /// The destination format.
        to: Format,
        /// The rounding mode, if it rounds.
        rounding: Rounding,
    },
    /// Converts two f32 to two narrower floats in one register, the first in the low half: 32 bits
    /// for f16 and bf16, 16 for e4m3 and e5m2, which saturate. low, high -> value
    ConvertPair {
        /// [`Number::F16`], [`Number::Bf16`], [`Format::E4M3`] or [`Format::E5M2`].
        to: Format,
    },
    /// Converts two e4m3 or e5m2 in 16 bits to two f16 in 32. pair -> value
    WidenPair {
        /// [`Format::E4M3`] or [`Format::E5M2`].
        from: Format,
    },
    /// Packs registers in a wider one, the first in the lowest bits: two or four registers of 16
    /// bits, or two of 32 bits. parts.. -> value
    /// 32. parts.. -> value
    Pack,
    /// The opposite of [`Operation::Pack`]. value -> parts..
    Unpack,
    /// Selects four of eight bytes: byte `i` of the result is given by digit `i` of the selector;
    /// the bytes of `a` are 0 to 3 and those of `b` 4 to 7. a, b -> value
    Permute(u16),
    /// The high 32 bits of `(a,b) << (c mod 32)`, `b` the high half. a, b, c -> value
    FunnelShiftLeft,
    /// The low 32 bits of `(a,b) >> (c mod 32)`, `b` the high half. a, b, c -> value
    FunnelShiftRight,
    /// 32 bits of another lane. value, and the lane for [`Shuffle::Index`] -> value
    Shuffle(Shuffle),
    /// A mask of the lanes whose predicate is true. predicate -> 32 bits
    Ballot,
    /// Loads elements from memory to registers. address? -> registers..
    Load(Access),
    /// Stores registers to memory. address?, registers.. ->
    Store(Access),
    /// An atomic operation on one element in memory. address?, value, and for a compare-exchange
    /// the new value -> the old value
    Atomic(AtomicOperation, Number, Access),
    /// An atomic operation that does not return the old value, including vectors of up to four f32.
    /// address?, values.. ->
    Reduce(AtomicOperation, Number, Access),
    /// The next value of the counter of the launch (`atom.inc`): 0, 1, .. and, after `last`, 0
    /// again, in the order of arrival over all blocks. The index of the counter in the module is an
    /// input ([`Scalar::Count`](super::scalar::Scalar::Count)). counter, last (32 bits each) ->
    /// number
    Claim,
    /// Counts a block in the counter of the launch. The result is the number of blocks before it.
    /// Everything that its thread knows is known to threads that count a block later, and to those
    /// that synchronize with them (`atom.acq_rel.gpu.inc`). After `last`, the counter is 0 again.
    /// counter, last (32 bits each) -> number
    CountBlock,
    /// Waits until a word of global memory equals the number of a turn, and then knows everything
    /// that the threads knew that passed the earlier turns (`ld.acquire.gpu`). address?, turn (32
    /// bits) ->
    AwaitTurn {
        /// The word, which counts the turns that are over.
        access: Access,
    },
    /// Ends a turn: increments the word. Everything that this thread knows is then known to the
    /// thread that waits for the next turn (`red.release.gpu.add`). address? ->
    PassTurn {
        /// The word.
        access: Access,
    },
    /// An asynchronous copy of 4, 8 or 16 bytes from global to shared memory (`cp.async`). If the
    /// last register, an optional predicate, is false, zeros are written and nothing is read.
    /// shared address?, global address?, predicate? ->
    CopyAsync {
        /// The destination.
        to: Access,
        /// The source.
        from: Access,
        /// Whether the last register is a predicate. If it is false, zeros are written.
        or_zeros: bool,
    },
    /// Closes a group of this thread's asynchronous copies since the last such instruction.
    CommitAsync,
    /// Waits until at most this many groups of this thread are in flight.
    WaitAsync(u32),
    /// Loads 1, 2 or 4 matrices of 8x8 elements of 16 bits from shared memory to the fragments of a
    /// warp (`ldmatrix`). Lanes 8q to 8q+7 supply the rows of matrix q. address? -> a register of
    /// 32 bits for each
    LoadMatrix {
        /// The addresses and the count; each row has 16 bytes.
        access: Access,
        /// Whether the matrices are transposed.
        transposed: bool,
    },
    /// The opposite of [`Operation::LoadMatrix`] (`stmatrix`, sm_90). address?, registers.. ->
    StoreMatrix {
        /// The addresses and the count; each row has 16 bytes.
        access: Access,
        /// Whether the matrices are transposed.
        transposed: bool,
    },
    /// D = A B + C by one warp. a.., b.., c.. -> d..
    Multiply(Matrix),
    /// Copies values to new registers, as accumulators need them. values.. -> values..
    Move,
    /// D += A B, or D = A B, by a warpgroup: four warps, the first with an index that is a multiple
    /// of four (`wgmma`, sm_90a). It has 64 rows, 16 for each warp, and this many columns. It is
    /// asynchronous: A and B are read, and the accumulators written, until a wait for the group
    /// that it is committed to. a address? or its four registers, b address?, accumulators.. ->
    /// accumulators..
    Wgmma {
        /// The types of A and B.
        operands: WgmmaOperands,
        /// Columns: a multiple of 8, at most 256.
        columns: u32,
        /// A, 64 rows in shared memory. None if each warp has its 16 rows in registers, in the
        /// layout of an `mma.sync` of 16 rows.
        a: Option<Described>,
        /// B, with a row for each column of the accumulators.
        b: Described,
        /// Whether the product is added to the accumulators.
        adds: bool,
    },
    /// Orders register accesses of this thread before wgmma that follow (`wgmma.fence`).
    FenceRegisters,
    /// Closes a group of the warp's wgmma since the last such instruction.
    CommitMultiply,
    /// Waits until at most this many wgmma groups of the warp are in flight.
    WaitMultiply(u32),
    /// A barrier of all threads of the block: accesses before it are ordered before accesses after
    /// it.
    Barrier,
    /// As [`Operation::Barrier`], for the given number of threads, a multiple of 32, at barrier 1
    /// to 15.
    NamedBarrier {
        /// The index of the barrier.
        number: u32,
        /// The number of threads that arrive.
        threads: u32,
    },
    /// As [`Operation::NamedBarrier`], but the thread arrives without waiting.
    NamedArrive {
        /// The index of the barrier.
        number: u32,
        /// The number of threads that arrive, including those that wait.
        threads: u32,
    },
    /// The threads of the warp synchronize: their accesses before it are ordered before those after
    /// it.
    WarpBarrier,
    /// A predicate that is true in one lane of the warp, always the same one. -> predicate
    Elect,
    /// Reallocates the registers of each thread of this warpgroup from here on (`setmaxnreg`):
    /// releases registers to the block, or waits until the block has more.
    SetRegisters {
        /// The new number of registers: a multiple of 8, from 24 to 256.
        count: u32,
        /// Whether this is more than before.
        more: bool,
    },
    /// Waits until the previous launches on the stream have finished, and sees their writes
    /// (`griddepcontrol.wait`). A program with it may start before that.
    WaitLaunches,
    /// Lets the next launch on the stream start, as far as this block is concerned.
    LaunchNext,
    /// Arrives at the cluster barrier. A wait must follow.
    ClusterArrive,
    /// Waits until all threads of the cluster that have not exited have arrived: their accesses
    /// before the arrival are ordered before those after the wait.
    ClusterWait,
    /// Executes a fence.
    Fence(Fence),
    /// Initialises an `mbarrier` in shared memory, which counts arrivals and bytes, in its phase 0.
    /// address? ->
    BarrierInit {
        /// Its address: 8 bytes.
        access: Access,
        /// The number of arrivals that complete a phase.
        count: u32,
    },
    /// Arrives once at an mbarrier, after adding this many bytes to those that the phase expects.
    /// address? ->
    BarrierArrive {
        /// Its address.
        access: Access,
        /// Bytes of asynchronous copies that the phase expects in addition.
        expect: u32,
    },
    /// Waits until the phase with this parity (32 bits, 0 or 1) has completed. address?, parity ->
    BarrierWait {
        /// Its address.
        access: Access,
    },
    /// Arrives once at the mbarrier at this address in the shared memory of a block of the cluster.
    /// address?, rank of the block (32 bits) ->
    RemoteArrive {
        /// Its address.
        access: Access,
        /// Whether the arrival is a release: what this thread wrote and knows is visible after the
        /// wait. Otherwise it only says that the thread has finished reading.
        releases: bool,
    },
    /// Loads elements from the shared memory of a block of the cluster. address?, rank ->
    /// registers..
    RemoteLoad(Access),
    /// Stores registers to the shared memory of a block of the cluster. address?, rank, registers..
    /// ->
    RemoteStore(Access),
    /// [`Operation::Reduce`] in the shared memory of a block of the cluster. address?, rank, value
    /// ->
    RemoteReduce(AtomicOperation, Number, Access),
    /// Copies a box of a tensor from global to shared memory by TMA. shared address?, barrier
    /// address?, coordinates.. (32 bits each, one for each dimension of the map), mask? ->
    BulkLoad {
        /// The tensor map.
        map: MapId,
        /// The destination of the box.
        to: Access,
        /// The mbarrier at which its bytes arrive.
        barrier: Access,
        /// Whether a last register (32 bits) is a mask of ranks of the cluster: the box is copied
        /// to the same address in each of these blocks, and its bytes arrive at the mbarrier of
        /// each.
        multicast: bool,
    },
    /// Copies bytes from the shared memory of this block to that of a block of the cluster, by a
    /// bulk copy. destination address?, barrier address?, source address?, rank ->
    BulkSend {
        /// The destination, in the other block.
        to: Access,
        /// The mbarrier of the other block at which they arrive.
        barrier: Access,
        /// The source.
        from: Access,
        /// The number of bytes: a multiple of 16.
        bytes: u32,
    },
    /// Copies a box of a tensor from shared to global memory by TMA. shared address?, coordinates..
    /// ->
    BulkStore {
        /// The tensor map.
        map: MapId,
        /// The source of the box.
        from: Access,
    },
    /// Closes a group of this thread's bulk stores since the last such instruction.
    CommitBulk,
    /// Waits until at most this many groups of this thread's bulk stores are in flight: until the
    /// others have read their source, or until all of them is written.
    WaitBulk {
        /// The number of groups that may remain.
        groups: u32,
        /// Whether it is enough that the others have read shared memory.
        read: bool,
    },
    /// Ends the launch with an error.
    Trap,
}

/// The registers of A of a wgmma, if A is in registers.
pub(crate) const OPERAND_REGISTERS: usize = 4;

/// The accesses of an operation, the written one first, as references of either kind.
macro_rules! accesses {
    ($operation:expr) => {{
        let found = match $operation {
            Operation::Load(access)
            | Operation::Store(access)
            | Operation::RemoteLoad(access)
            | Operation::RemoteStore(access)
            | Operation::RemoteArrive { access, .. }
            | Operation::RemoteReduce(_, _, access)
            | Operation::Atomic(_, _, access)
            | Operation::Reduce(_, _, access)
            | Operation::LoadMatrix { access, .. }
            | Operation::StoreMatrix { access, .. }
            | Operation::BarrierInit { access, .. }
            | Operation::BarrierArrive { access, .. }
            | Operation::BarrierWait { access }
            | Operation::AwaitTurn { access }
            | Operation::PassTurn { access }
            | Operation::BulkStore { from: access, .. } => [Some(access), None, None],
            Operation::CopyAsync { to, from, .. } => [Some(to), Some(from), None],
            Operation::Wgmma { a: Some(Described { access: a, .. }), b: Described { access: b, .. }, .. } => {
                [Some(a), Some(b), None]
            }
            Operation::Wgmma { a: None, b: Described { access: b, .. }, .. } => [Some(b), None, None],
            Operation::BulkLoad { to, barrier, .. } => [Some(to), Some(barrier), None],
            Operation::BulkSend { to, barrier, from, .. } => [Some(to), Some(barrier), Some(from)],
            _ => [None, None, None],
        };
        found.into_iter().flatten()
    }};
}

/// The effects of an operation besides its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None. Its outputs depend only on its inputs, lane by lane.
    None,
    /// None, but its outputs depend on more than its inputs: on the index of the thread, on memory,
    /// or on other lanes.
    Observes,
    /// It changes memory, orders accesses, waits, or issues asynchronous work: it is not dead code
    /// even if its outputs are not read.
    Acts,
}

/// The pattern of operations without effects whose outputs depend only on their inputs.
macro_rules! computes {
    () => {
        $crate::program::operation::Operation::Constant(_)
            | $crate::program::operation::Operation::Unary(..)
            | $crate::program::operation::Operation::Binary(..)
            | $crate::program::operation::Operation::MultiplyAdd(_)
            | $crate::program::operation::Operation::MultiplyAddWide(_)
            | $crate::program::operation::Operation::Logic(_)
            | $crate::program::operation::Operation::Compare(..)
            | $crate::program::operation::Operation::Select
            | $crate::program::operation::Operation::Convert { .. }
            | $crate::program::operation::Operation::ConvertPair { .. }
            | $crate::program::operation::Operation::WidenPair { .. }
            | $crate::program::operation::Operation::Pack
            | $crate::program::operation::Operation::Unpack
            | $crate::program::operation::Operation::Permute(_)
            | $crate::program::operation::Operation::FunnelShiftLeft
            | $crate::program::operation::Operation::FunnelShiftRight
    };
}
pub(crate) use computes;

impl Operation {
    /// The effects besides outputs. The match has no `_`, so that a new operation is not forgotten.
    pub(crate) fn effect(&self) -> Effect {
        match self {
            computes!() => Effect::None,
            Operation::Special(_)
            | Operation::Scalar(_)
            | Operation::Load(_)
            | Operation::RemoteLoad(_)
            | Operation::LoadMatrix { .. }
            | Operation::Shuffle(_)
            | Operation::Ballot
            | Operation::Elect
            | Operation::Multiply(_) => Effect::Observes,
            Operation::Store(_)
            | Operation::Atomic(..)
            | Operation::Reduce(..)
            | Operation::Claim
            | Operation::CountBlock
            | Operation::AwaitTurn { .. }
            | Operation::PassTurn { .. }
            | Operation::CopyAsync { .. }
            | Operation::CommitAsync
            | Operation::WaitAsync(_)
            | Operation::StoreMatrix { .. }
            | Operation::Move
            | Operation::Wgmma { .. }
            | Operation::FenceRegisters
            | Operation::CommitMultiply
            | Operation::WaitMultiply(_)
            | Operation::Barrier
            | Operation::NamedBarrier { .. }
            | Operation::NamedArrive { .. }
            | Operation::SetRegisters { .. }
            | Operation::WaitLaunches
            | Operation::LaunchNext
            | Operation::WarpBarrier
            | Operation::ClusterArrive
            | Operation::ClusterWait
            | Operation::RemoteArrive { .. }
            | Operation::RemoteStore(_)
            | Operation::RemoteReduce(..)
            | Operation::BulkSend { .. }
            | Operation::Fence(_)
            | Operation::BarrierInit { .. }
            | Operation::BarrierArrive { .. }
            | Operation::BarrierWait { .. }
            | Operation::BulkLoad { .. }
            | Operation::BulkStore { .. }
            | Operation::CommitBulk
            | Operation::WaitBulk { .. }
            | Operation::Trap => Effect::Acts,
        }
    }

    /// The index of the first accumulator of a wgmma among its inputs; None for other operations.
    pub(crate) fn first_sum(&self) -> Option<usize> {
        let Operation::Wgmma { a, b, .. } = self else { return None };
        Some(
            a.as_ref().map_or(OPERAND_REGISTERS, |a| usize::from(a.access.addressed)) + usize::from(b.access.addressed),
        )
    }

    /// The accesses to memory, the written one first.
    pub fn accesses(&self) -> impl Iterator<Item = &Access> {
        accesses!(self)
    }

    /// Renumbers the buffers that it names.
    pub(crate) fn rename(&mut self, numbers: &HashMap<BufferId, BufferId>) {
        for access in accesses!(self) {
            access.buffer = numbers.get(&access.buffer).copied().unwrap_or(access.buffer);
        }
    }
}
