//! An access as the machine records it: the thread, the bytes, and the kind.

use super::clock::Event;
use crate::program::memory::BufferId;

/// A thread, and the node of its current instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Actor {
    pub(super) place: usize,
    pub(super) thread: usize,
}

/// A buffer. For shared memory, with the rank of the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) buffer: BufferId,
    pub(super) rank: usize,
}

/// Contiguous bytes of a buffer. The address counts from the beginning of the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) memory: Memory,
    pub(super) address: i64,
    pub(super) bytes: u64,
}

/// The kind of an access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// An atomic read and write.
    Atomic,
}

/// An access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    /// The thread that makes or issued it.
    pub(super) by: Actor,
    pub(super) span: Span,
    pub(super) kind: AccessKind,
    /// Its event: an action of the thread, or asynchronous work.
    pub(super) event: Event,
}
