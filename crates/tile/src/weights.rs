//! The cost of operations, in hundredths of a cycle of a multiprocessor.
//!
//! Law: operations are counted, and the cost of each unit follows from the rates of a machine. None
//! is fitted to measured times. By NVIDIA's figures, a multiprocessor of every card in the table
//! issues four warp instructions per cycle, serves one line of 128 bytes of L1 or shared memory,
//! and computes 16 special functions, half a warp's. The rates of device memory and of tensor cores
//! are those of the card ([`Weights::of`]). The cost of a barrier, and the rate of `mma.sync`
//! relative to the tensor cores, are assumptions, stated where they are used.

use tilewright_kernel::machine::Machine;

use crate::memory::AccessCost;
use crate::program::{Binary, Operation, Unary};

/// An instruction of a warp: four per cycle.
pub(crate) const INSTRUCTION: u64 = 25;
/// A special function of a warp, such as a power, a root or a quotient: 16 lanes per cycle, so two
/// cycles.
const SPECIAL: u64 = 200;
/// An access to a line of L1 or shared memory, or four sectors that L1 moves.
const LINE: u64 = 100;
/// A barrier of the block. Assumption: it stalls the block for 30 cycles.
const BARRIER: u64 = 3000;
/// Operations of an `mma.sync` of 16 x 8 x 16 elements of 16 bits. Narrower types have the same
/// number of bytes along K.
const MATRIX_OPERATIONS: f64 = (2 * 16 * 8 * 16) as f64;
/// Bytes of a sector of device memory.
const SECTOR_BYTES: f64 = 32.0;

/// The cost of device memory and MMA on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weights {
    /// The cost of a sector of device memory.
    sector: u64,
    /// The cost of an `mma.sync` of 16 x 8 elements and 32 bytes along K. It is the same for every
    /// type, because the rate of a narrower type is higher by the factor by which it has more
    /// elements.
    matrix: u64,
}

impl Weights {
    /// The costs on a machine: its bandwidth and its MMA rate at its clock, divided by the number
    /// of multiprocessors. `mma.sync` is assumed to have half the rate of the tensor cores if these
    /// have instructions of their own (compute capabilities 9.0 and 10.0).
    pub(crate) fn of(machine: &Machine) -> Weights {
        let cycles = f64::from(machine.multiprocessors.max(1)) * machine.clock;
        let hundredths = |work: f64, rate: f64| ((100.0 * work * cycles / rate).round() as u64).max(1);
        let of_cores = if matches!(machine.capability.0, 9 | 10) { 0.5 } else { 1.0 };
        Weights {
            sector: hundredths(SECTOR_BYTES, machine.bandwidth),
            matrix: hundredths(MATRIX_OPERATIONS, machine.rates.matrix_16 * of_cores),
        }
    }

    /// The cost of a load or a store of a block.
    pub(crate) fn access(&self, cost: &AccessCost) -> u64 {
        let count = |number: i64, each: u64| number.unsigned_abs() * each;
        let lines = cost.lines.max(cost.moved / 4);
        count(cost.sectors, self.sector) + count(lines, LINE) + count(cost.instructions, INSTRUCTION)
    }

    /// The cost of staging an operand of `bytes` bytes in shared memory. It is written once, and
    /// the threads together read `held` bytes of it, a line at a time.
    pub(crate) fn staged(&self, cost: &AccessCost, bytes: u64, held: u64) -> u64 {
        self.access(cost) + (bytes / 128 + held / 128) * LINE + held / 512 * INSTRUCTION
    }

    /// The cost of `dot` by instructions with extent `depth` along K.
    pub(crate) fn product(&self, [m, n, k]: [i64; 3], depth: i64) -> u64 {
        (m / 16 * (n / 8) * (k / depth)).unsigned_abs() * self.matrix
    }
}

/// The cost of a conversion with this many instructions of each warp. Through shared memory it has
/// a barrier.
pub(crate) fn conversion(instructions: u32, shared: bool, warps: u64) -> u64 {
    u64::from(instructions) * warps * INSTRUCTION + if shared { BARRIER } else { 0 }
}

/// The cost of an elementwise operation on this many values of each thread.
pub(crate) fn elementwise(operation: &Operation, values: u64, warps: u64) -> u64 {
    let each = match operation {
        Operation::Unary(Unary::Negate | Unary::Abs) => INSTRUCTION,
        Operation::Unary(Unary::Exp | Unary::Log) => SPECIAL + 2 * INSTRUCTION,
        Operation::Unary(Unary::Sin | Unary::Cos) => 25 * INSTRUCTION,
        Operation::Unary(Unary::Erf) => SPECIAL + 20 * INSTRUCTION,
        Operation::Unary(_) => SPECIAL + INSTRUCTION,
        Operation::Binary(Binary::Remainder) => 25 * INSTRUCTION,
        Operation::Binary(Binary::Divide) => SPECIAL + 8 * INSTRUCTION,
        Operation::Select(_) | Operation::Unpack { .. } => 2 * INSTRUCTION,
        Operation::Random(_) => 90 * INSTRUCTION,
        _ => INSTRUCTION,
    };
    values * warps * each
}

/// The cost of a reduction of this many values of each thread to `left` values, along `lanes` bits
/// of the lane's index and `across` bits of the warp's index.
pub(crate) fn reduction(values: u64, left: u64, lanes: u64, across: u64, warps: u64) -> u64 {
    let shuffles = left * (lanes + across) * 3 * INSTRUCTION;
    let meeting = if across > 0 { BARRIER + warps * left * 12 * INSTRUCTION } else { 0 };
    warps * (values * INSTRUCTION + shuffles) + meeting
}

/// The cost of a number of instructions of each warp.
pub(crate) fn instructions(count: u64, warps: u64) -> u64 {
    count.saturating_mul(warps).saturating_mul(INSTRUCTION)
}

/// The cost of a histogram with a number of counts in each thread. The counts are cleared and read,
/// with two barriers.
pub(crate) fn histogram(values: u64, warps: u64) -> u64 {
    2 * BARRIER + warps * values * 2 * (INSTRUCTION + LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: the weights equal those computed by hand from the table: bytes per cycle of a
    /// multiprocessor, and operations per cycle.
    #[test]
    fn weights_follow_from_the_machine() {
        let of = |name: &str| Weights::of(&Machine::named(name).unwrap());
        // 4.8 TB/s / 132 / 1.83 GHz = 19.87 bytes; 2048 operations per cycle by mma.sync.
        assert_eq!(of("H200"), Weights { sector: 161, matrix: 200 });
        // 3.35 TB/s: 13.87 bytes.
        assert_eq!(of("H100"), Weights { sector: 231, ..of("H200") });
        // 2.039 TB/s / 108 / 1.41 GHz = 13.39 bytes; 2049 operations per cycle.
        assert_eq!(of("A100"), Weights { sector: 239, matrix: 200 });
        // 1.008 TB/s / 128 / 2.52 GHz = 3.125 bytes; 512 operations per cycle.
        assert_eq!(of("RTX 4090"), Weights { sector: 1024, matrix: 800 });
        // A machine without rates still has costs above zero.
        let none = Machine { multiprocessors: 0, clock: 0.0, ..Machine::named("H200").unwrap() };
        assert_eq!(Weights::of(&none), Weights { sector: 1, matrix: 1 });
    }
}
