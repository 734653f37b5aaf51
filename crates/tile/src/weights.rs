//! What work costs, in hundredths of a cycle of a multiprocessor.
//!
//! Law: what is done is counted; what one of it takes is derived from rates of a machine, and
//! stands here. None is fitted to times. A multiprocessor of an H200, by NVIDIA's figures, issues
//! four instructions of warps a cycle, serves one line of 128 bytes of its first cache or of shared
//! memory, computes 16 special functions, half a warp's, and has 4.8 TB/s / 132 / 1.755 GHz = 20.7
//! bytes of device memory. What a barrier takes, and that `mma.sync` has half the rate of the
//! tensor cores, are assumptions: they stand where they are used.

use crate::memory::AccessCost;
use crate::program::{Binary, Operation, Unary};

/// An instruction of a warp: four a cycle.
pub(crate) const INSTRUCTION: u64 = 25;
/// A special function of a warp: a power, a root, a quotient. 16 a cycle, so two cycles.
const SPECIAL: u64 = 200;
/// A sector of 32 bytes of device memory: 32 / 20.7 cycles.
const SECTOR: u64 = 155;
/// A line that is asked for, or four sectors that are moved.
const LINE: u64 = 100;
/// A barrier of the block: assumed to be 30 cycles in which nothing else is done.
const BARRIER: u64 = 3000;
/// A product of 16 x 8 x 16, or of 32 bytes along K: 2048 multiplications and additions, and twice
/// as many at twice the rate. The tensor cores have 989 TFLOP/s / 132 / 1.755 GHz / 2 = 2135 a
/// cycle, and `mma.sync` is taken to have half of that.
const MATRIX: u64 = 200;

/// An access of a block.
pub(crate) fn access(cost: &AccessCost) -> u64 {
    let count = |number: i64, each: u64| number.unsigned_abs() * each;
    let lines = cost.lines.max(cost.moved / 4);
    count(cost.sectors, SECTOR) + count(lines, LINE) + count(cost.instructions, INSTRUCTION)
}

/// An operand that goes through shared memory to threads that hold so many bytes of it together: it
/// is written once and read by them, a line at a time.
pub(crate) fn staged(cost: &AccessCost, bytes: u64, held: u64) -> u64 {
    access(cost) + (bytes / 128 + held / 128) * LINE + held / 512 * INSTRUCTION
}

/// A conversion of so many instructions a warp; through shared memory it has a barrier.
pub(crate) fn conversion(instructions: u32, shared: bool, warps: u64) -> u64 {
    u64::from(instructions) * warps * INSTRUCTION + if shared { BARRIER } else { 0 }
}

/// A function of each of so many values of a thread.
pub(crate) fn elementwise(operation: &Operation, values: u64, warps: u64) -> u64 {
    let each = match operation {
        Operation::Unary(Unary::Negate | Unary::Abs) => INSTRUCTION,
        Operation::Unary(Unary::Exp) => SPECIAL + 2 * INSTRUCTION,
        Operation::Unary(_) => SPECIAL + INSTRUCTION,
        Operation::Binary(Binary::Divide) => SPECIAL + 8 * INSTRUCTION,
        Operation::Select(_) | Operation::Unpack { .. } => 2 * INSTRUCTION,
        Operation::Random(_) => 90 * INSTRUCTION,
        _ => INSTRUCTION,
    };
    values * warps * each
}

/// A combination of so many values a thread to `left` ones, along `lanes` bits of a lane's number
/// and `across` bits of a warp's.
pub(crate) fn reduction(values: u64, left: u64, lanes: u64, across: u64, warps: u64) -> u64 {
    let shuffles = left * (lanes + across) * 3 * INSTRUCTION;
    let meeting = if across > 0 { BARRIER + warps * left * 12 * INSTRUCTION } else { 0 };
    warps * (values * INSTRUCTION + shuffles) + meeting
}

/// So many instructions of each warp.
pub(crate) fn instructions(count: u64, warps: u64) -> u64 {
    count.saturating_mul(warps).saturating_mul(INSTRUCTION)
}

/// A histogram whose counts threads hold so many of each: cleared, met twice, and read.
pub(crate) fn histogram(values: u64, warps: u64) -> u64 {
    2 * BARRIER + warps * values * 2 * (INSTRUCTION + LINE)
}

/// A product of matrices, by instructions that take so many numbers along K.
pub(crate) fn product([m, n, k]: [i64; 3], depth: i64) -> u64 {
    (m / 16 * (n / 8) * (k / depth)).unsigned_abs() * MATRIX
}
