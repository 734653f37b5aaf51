//! The memory that a GEMM needs besides its operands.
//!
//! Law: a workspace has at least the requested number of bytes, is aligned to a cache line, and has
//! one owner. Each thread keeps one that is as large as its largest GEMM needed, and another one
//! for memory that threads share.
//!
//! Reason for unsafe code: an untyped, aligned allocation that is not initialised.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

use crate::memory::LINE;

/// Untyped memory.
///
/// *Invariant*: `start` is valid for `bytes` bytes, and was allocated by
/// [`ProductWorkspace::layout`] of them.
pub(super) struct ProductWorkspace {
    start: NonNull<u8>,
    bytes: usize,
}

thread_local! {
    static KEPT: Cell<Option<ProductWorkspace>> = const { Cell::new(None) };
    static SHARED: Cell<Option<ProductWorkspace>> = const { Cell::new(None) };
}

impl ProductWorkspace {
    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, LINE).ok()
    }

    /// A workspace of at least this many bytes: the one that the thread kept, if it is large
    /// enough.
    pub fn take(bytes: usize) -> ProductWorkspace {
        ProductWorkspace::of(KEPT.take(), bytes)
    }

    /// As [`ProductWorkspace::take`], for memory that this thread shares with others.
    pub fn take_shared(bytes: usize) -> ProductWorkspace {
        ProductWorkspace::of(SHARED.take(), bytes)
    }

    /// The kept workspace if it has this many bytes; otherwise a new one.
    fn of(kept: Option<ProductWorkspace>, bytes: usize) -> ProductWorkspace {
        if let Some(kept) = kept
            && kept.bytes >= bytes
        {
            return kept;
        }
        let bytes = bytes.max(LINE);
        let Some(layout) = ProductWorkspace::layout(bytes) else {
            handle_alloc_error(Layout::new::<[u8; LINE]>());
        };
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        NonNull::new(start).map_or_else(|| handle_alloc_error(layout), |start| ProductWorkspace { start, bytes })
    }

    /// Keeps the memory for the next GEMM of this thread.
    pub fn keep(self) {
        KEPT.set(Some(self));
    }

    /// As [`ProductWorkspace::keep`], for memory that this thread shares with others.
    pub fn keep_shared(self) {
        SHARED.set(Some(self));
    }

    /// The first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for ProductWorkspace {
    fn drop(&mut self) {
        if let Some(layout) = ProductWorkspace::layout(self.bytes) {
            // SAFETY: by the invariant this is what was allocated, and it is freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// The division of a workspace into consecutive parts, each aligned to a cache line.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The bytes of all parts.
    pub bytes: usize,
}

impl Room {
    /// Adds a part for this many elements. Returns the byte at which it begins.
    pub fn of<T>(&mut self, elements: usize) -> usize {
        let start = self.bytes;
        // `ProductWorkspace::take` refuses more bytes than there are addresses.
        let bytes = elements.saturating_mul(size_of::<T>()).min(isize::MAX as usize);
        self.bytes = start.saturating_add(bytes.div_ceil(LINE) * LINE);
        start
    }
}
