//! An access as the machine records it: the thread, the bytes, and the kind.

use super::clock::Event;
use crate::program::memory::BufferId;

/// A thread, and the instruction at which it is, by its place in the code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Actor {
    pub(super) place: usize,
    pub(super) thread: usize,
}

/// A buffer: that of the block of a rank, if it is in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) buffer: BufferId,
    pub(super) rank: usize,
}

/// Neighbouring bytes of a buffer, from an address on that counts from where the buffer begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) memory: Memory,
    pub(super) address: i64,
    pub(super) bytes: u64,
}

/// How memory is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is read and written indivisibly.
    Atomic,
}

/// An access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    /// The thread that makes or issued it.
    pub(super) by: Actor,
    pub(super) span: Span,
    pub(super) kind: AccessKind,
    /// Its event for the clocks: an action of the thread, or asynchronous work.
    pub(super) event: Event,
}
