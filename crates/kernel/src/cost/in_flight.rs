//! Bytes of global memory that are under way at once.
//!
//! Law: these are counted in the instructions of the program, in its order, with the addresses that
//! the walk computes (`walk/under_way.rs`):
//!
//! * A load to registers takes the sectors of 32 bytes that the lanes of its warp reach. It is
//!   under way until the warp executes an instruction that reads one of its registers, or until all
//!   of them are written again. Putting registers side by side, taking them apart, and carrying a
//!   value to the next iteration of a loop read nothing: they give registers other names.
//! * An asynchronous copy takes the same of what it reads, and is under way until a wait that
//!   leaves fewer groups than were committed since.
//! * A box of TMA takes all of its bytes, what is past the edges of the tensor included. It is
//!   under way until its warp waits at the barrier at which it arrives, or has another box brought
//!   to the same place: then somebody else has waited. A box for several blocks of a cluster counts
//!   once, for the block that asks for it.
//!
//! Of each warp the most at a time counts, then the sum over the warps of a block, and of the
//! blocks that were walked the one with the most. A multiprocessor has that as often as it has
//! blocks: as many as it holds, and no more than there are if the grid is dealt out evenly.
//!
//! So it is the most that there can be of a program whose order is kept. An assembler may issued
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
