//! The memory that a product needs beside its operands.
//!
//! One allocation a thread, aligned to a cache line, which grows to what the largest product of the thread needed and is kept for the next.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

/// The bytes of a cache line, and of the widest vector.
pub(super) const LINE: usize = 64;

/// Memory without a type.
///
/// *Invariant*: `start` is valid for `bytes` bytes, and was allocated by [`Workspace::layout`] of them.
pub(super) struct Workspace {
    start: NonNull<u8>,
    bytes: usize,
}

thread_local! {
    static KEPT: Cell<Option<Workspace>> = const { Cell::new(None) };
    static SHARED: Cell<Option<Workspace>> = const { Cell::new(None) };
}

impl Workspace {
    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, LINE).ok()
    }

    /// At least so many bytes: what the thread kept, if it is large enough.
    pub fn take(bytes: usize) -> Workspace {
        Workspace::of(KEPT.take(), bytes)
    }

    /// The same, of what this thread shares with others.
    pub fn take_shared(bytes: usize) -> Workspace {
        Workspace::of(SHARED.take(), bytes)
    }

    /// What was kept, if it has so many bytes, or else new memory.
    fn of(kept: Option<Workspace>, bytes: usize) -> Workspace {
        if let Some(kept) = kept
            && kept.bytes >= bytes
        {
            return kept;
        }
        let bytes = bytes.max(LINE);
        let Some(layout) = Workspace::layout(bytes) else {
            handle_alloc_error(Layout::new::<[u8; LINE]>());
        };
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        NonNull::new(start).map_or_else(|| handle_alloc_error(layout), |start| Workspace { start, bytes })
    }

    /// Leaves the memory to the next product of this thread.
    pub fn keep(self) {
        KEPT.set(Some(self));
    }

    /// The same, of what it shares.
    pub fn keep_shared(self) {
        SHARED.set(Some(self));
    }

    /// The first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Some(layout) = Workspace::layout(self.bytes) {
            // SAFETY: the invariant.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// How a workspace is divided: parts one after another, each from the beginning of a cache line.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The bytes of all parts.
    pub bytes: usize,
}

impl Room {
    /// Room for so many elements: the byte at which they begin.
    pub fn of<T>(&mut self, elements: usize) -> usize {
        let start = self.bytes;
        // More than there are addresses is refused when it is taken.
        let bytes = elements.saturating_mul(size_of::<T>()).min(isize::MAX as usize);
        self.bytes = start.saturating_add(bytes.div_ceil(LINE) * LINE);
        start
    }
}
