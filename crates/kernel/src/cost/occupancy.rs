//! Occupancy: the number of blocks that are resident on a multiprocessor.
//!
//! Law: threads, registers, shared memory and the limit of blocks each bound the number; it is the
//! minimum. Registers are allocated to warps, in units of 8 for each thread, from four parts of the
//! register file. Shared memory is allocated to blocks in units of 128 bytes, plus a reserved
//! amount.

use crate::machine::Multiprocessor;

/// The resource that limits the number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The number of threads.
    Threads,
    /// The number of blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
}

impl Limit {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Threads => "threads",
            Limit::Blocks => "blocks",
            Limit::Registers => "registers",
            Limit::SharedMemory => "shared memory",
        }
    }
}

/// The resident blocks and warps of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// The number of blocks; 0 if a block needs more than a multiprocessor has.
    pub blocks: u32,
    /// The number of their warps.
    pub warps: u32,
    /// The most warps that a multiprocessor holds.
    pub most_warps: u32,
    /// The limiting resource.
    pub limit: Limit,
}

impl Occupancy {
    /// The occupancy for blocks with this many threads, registers for each thread, and bytes of
    /// shared memory.
    ///
    /// ```
    /// use tilewright_kernel::cost::{Limit, Machine, Occupancy};
    ///
    /// let h200 = Machine::named("H200").unwrap().multiprocessor;
    /// let held = Occupancy::of(&h200, 256, 40, 32 << 10);
    /// assert_eq!((held.blocks, held.warps, held.limit), (6, 48, Limit::Registers));
    /// assert_eq!(Occupancy::of(&h200, 256, 168, 0).blocks, 1);
    /// ```
    pub fn of(multiprocessor: &Multiprocessor, threads: u32, registers: u32, shared_bytes: u32) -> Occupancy {
        let warps = threads.div_ceil(32).max(1);
        let of_warp = registers.clamp(1, 255).next_multiple_of(8) * 32;
        let by_registers = 4 * (multiprocessor.registers / 4 / of_warp) / warps;
        let of_block = shared_bytes.saturating_add(multiprocessor.reserved_bytes).next_multiple_of(128);
        let by_shared = match shared_bytes {
            bytes if bytes > multiprocessor.block_shared_bytes => 0,
            _ => multiprocessor.shared_bytes / of_block.max(1),
        };
        let limits = [
            (multiprocessor.threads / (warps * 32), Limit::Threads),
            (multiprocessor.blocks, Limit::Blocks),
            (by_registers, Limit::Registers),
            (by_shared, Limit::SharedMemory),
        ];
        let (blocks, limit) = limits.into_iter().min_by_key(|(blocks, _)| *blocks).unwrap_or((0, Limit::Blocks));
        Occupancy { blocks, warps: blocks * warps, most_warps: multiprocessor.threads / 32, limit }
    }
}
