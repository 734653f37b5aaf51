//! Interruption of long searches, and their work limits.
//!
//! Law: once [`request`] has been called, every search ends within a bounded number of steps with
//! [`LayoutError::Interrupted`], in every thread, until [`clear`] is called. A search that is not
//! interrupted ends within its limit.
//!
//! The request is one flag for the whole process. A signal handler, such as one for ctrl-C, may set
//! it, because setting it takes no lock and allocates nothing. Operations without a search ignore
//! it; they take microseconds.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::refusal::error::LayoutError;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Makes every search, in every thread, end with [`LayoutError::Interrupted`] until [`clear`] is
/// called. A signal handler may call this.
///
/// ```
/// use tilewright_layout::{Layout, LayoutError, interrupt};
///
/// let layout: Layout = "(5,7,11,13):(1001,1309,1547,1729)".parse().unwrap();
/// interrupt::request();
/// assert!(matches!(layout.left_inverse(), Err(LayoutError::Interrupted { .. })));
/// interrupt::clear();
/// ```
pub fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Withdraws the request, so that searches run again.
pub fn clear() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Whether [`request`] has been called since the last [`clear`]. A caller may check this in its own
/// long loops.
#[inline]
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// The error if an interrupt is requested.
#[inline]
pub(crate) fn check(op: &'static str) -> Result<(), LayoutError> {
    if is_requested() { Err(LayoutError::Interrupted { op }) } else { Ok(()) }
}

/// The remaining work of a search, in steps of some ten nanoseconds each.
///
/// All parts of one operation share the same limit.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    left: Cell<u64>,
}

/// The most steps of all searches of one operation together: well below a second.
pub(crate) const MAX_WORK: u64 = 1 << 24;

/// The reason why a search stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Its limit is reached.
    Limit,
    /// An interrupt is requested.
    Interrupted,
}

impl Work {
    /// The full limit of one operation.
    pub(crate) fn new() -> Work {
        Work { left: Cell::new(MAX_WORK) }
    }

    /// Sets the remaining work to that of another counter.
    pub(crate) fn take_up(&self, other: &Work) {
        self.left.set(other.left.get());
    }

    /// Consumes this many steps.
    #[inline]
    pub(crate) fn spend(&self, steps: usize) -> Result<(), Halt> {
        if is_requested() {
            return Err(Halt::Interrupted);
        }
        let left = self.left.get().checked_sub(steps as u64);
        self.left.set(left.unwrap_or(0));
        if left.is_some() { Ok(()) } else { Err(Halt::Limit) }
    }

    /// Whether no work is left, or an interrupt is requested.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0 || is_requested()
    }
}

impl Halt {
    /// The error of `op` after a search of this many cases.
    #[cold]
    pub(crate) fn refusal(self, op: &'static str, cases: usize) -> LayoutError {
        match self {
            Halt::Limit => LayoutError::Undecided { op, limit: cases },
            Halt::Interrupted => LayoutError::Interrupted { op },
        }
    }
}
