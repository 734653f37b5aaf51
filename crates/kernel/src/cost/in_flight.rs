//! Bytes of global memory that are under way at once.
//!
//! Law: these are counted in the instructions of the program, in its order, with the addresses that
//! the walk computes (`walk/under_way.rs`):
//!
//! * A load to registers takes the sectors of 32 bytes that the lanes of its warp reach. It is
//!   under way until the warp executes an instruction that reads one of its registers, or until all
//!   of them are written again. Putting registers side by side, taking them apart, and carrying a
//!   value to the next iteration of a loop read nothing: they give registers other names.
//! * An asynchronous copy counts the bytes that it reads in the same way. It is in flight until a
//!   wait that leaves fewer groups than were committed since.
//! * A box of TMA takes all of its bytes, what is past the edges of the tensor included. It is
//!   under way until its warp waits at the barrier at which it arrives, or has another box brought
//!   to the same place: then somebody else has waited. A box for several blocks of a cluster counts
//!   once, for the block that asks for it.
//!
//! The maximum over time counts for each warp, the sum over its warps for a block, and the maximum
//! over the blocks that were walked for the kernel. A multiprocessor has this number of bytes for
//! each resident block, of which it has no more than an even share of the grid.
//!
//! So it is the most that there can be of a program whose order is kept. An assembler may issue
//! loads earlier than the program does, and then there is more. A barrier ends no load. Not counted
//! are stores, atomic operations, and what comes from the shared memory of other blocks. It is
//! taken that no load finds its sector in a cache, and that none asks for a sector that another one
//! brings.
//!
//! [`Machine::in_flight`](super::Machine::in_flight) says how many bytes there must be.

/// Bytes of global memory that a launch has under way at once: see
/// [`Cost::in_flight`](super::Cost::in_flight).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// Of the warps of a block.
    pub block_bytes: u64,
    /// How many blocks a multiprocessor has: those that are resident, or fewer, where the grid has
    /// no more for each.
    pub blocks: u32,
    /// Whether an address or a predicate came from memory, so that it is the most that it can be.
    pub at_most: bool,
}

impl InFlight {
    /// Of the blocks of a multiprocessor.
    pub fn bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.blocks.into())
    }
}
