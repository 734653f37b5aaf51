//! Bytes of global memory that are in flight at the same time.
//!
//! Law: these bytes are counted over the instructions of the program, in order, with the addresses
//! that the walk computes (`walk/under_way.rs`):
//!
//! * A load to registers counts the 32-byte sectors that the lanes of its warp access. It is in
//!   flight until the warp executes an instruction that reads one of its registers, or until all of
//!   them are overwritten. Packing and unpacking registers, and carrying a value to the next
//!   iteration of a loop, only rename registers, and read nothing.
//! * An asynchronous copy counts the bytes that it reads in the same way. It is in flight until a
//!   wait that leaves fewer groups than were committed since.
//! * A TMA box counts all of its bytes, including those past the edges of the tensor. It is in
//!   flight until its warp waits at the mbarrier at which it arrives, or issues another box to the
//!   same place; in the latter case another warp has waited. A multicast box counts once, for the
//!   block that issues it.
//!
//! For a warp, the maximum over time counts; for a block, the sum over its warps; for the kernel,
//! the maximum over the walked blocks. A multiprocessor has this number of bytes for each resident
//! block, of which it has at most an even share of the grid.
//!
//! So it is an upper bound for a program whose order is kept. An assembler may issue loads earlier
//! than the program does, and then more bytes are in flight. A barrier ends no load. Stores, atomic
//! operations, and accesses to the shared memory of other blocks are not counted. Assumption: no
//! load finds its sector in a cache, and no two loads request the same sector at the same time.
//!
//! [`Machine::in_flight`](super::Machine::in_flight) is the number of bytes that saturates the
//! memory.

/// The bytes of global memory that a launch has in flight at the same time: see
/// [`Cost::in_flight`](super::Cost::in_flight).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// Those of one block.
    pub block_bytes: u64,
    /// The number of blocks of a multiprocessor: the resident ones, or fewer if the grid is small.
    pub blocks: u32,
    /// Whether it is an upper bound, because an address or a predicate depends on memory.
    pub at_most: bool,
}

impl InFlight {
    /// Those of the blocks of a multiprocessor.
    pub fn bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.blocks.into())
    }
}
