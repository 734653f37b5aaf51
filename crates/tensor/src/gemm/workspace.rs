//! The memory that a product needs besides its operands.
//!
//! Law: a workspace has at least as many bytes as were asked for, aligned to a cache line, and one
//! owner. Each thread keeps one, as large as its largest product needed, and one more that it
//! shares.
//!
//! Reason for unsafe code: an allocation that is aligned, without a type, and not initialised.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

use crate::memory::LINE;

/// Memory without a type.
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

    /// At least this many bytes: what the thread kept, if that is enough.
    pub fn take(bytes: usize) -> ProductWorkspace {
        ProductWorkspace::of(KEPT.take(), bytes)
    }

    /// The same for memory that this thread shares with others.
    pub fn take_shared(bytes: usize) -> ProductWorkspace {
        ProductWorkspace::of(SHARED.take(), bytes)
    }

    /// What was kept, if that has this many bytes, and otherwise new memory.
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

    /// Leaves the memory to the next product of this thread.
    pub fn keep(self) {
        KEPT.set(Some(self));
    }

    /// The same for memory that it shares.
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

/// How a workspace is divided: parts one after another, each aligned to a cache line.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The bytes of all parts.
    pub bytes: usize,
}

impl Room {
    /// Room for this many elements: the byte at which they begin.
    pub fn of<T>(&mut self, elements: usize) -> usize {
        let start = self.bytes;
        // More bytes than there are addresses are refused by `Workspace::take`.
        let bytes = elements.saturating_mul(size_of::<T>()).min(isize::MAX as usize);
        self.bytes = start.saturating_add(bytes.div_ceil(LINE) * LINE);
        start
    }
}
