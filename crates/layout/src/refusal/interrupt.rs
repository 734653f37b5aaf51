//! A way to stop long searches, and their work limits.
//!
//! Law: once [`request`] has been called, every search ends within a bounded number of steps with
//! [`LayoutError::Interrupted`], in every thread, until [`clear`] is called. A search that is not
//! interrupted ends within its limit.
//!
//! The request is one flag for the process, as a signal is: a handler of ctrl-C may set it, for it
//! takes no lock and allocates nothing. Operations that need no search do not ask for it; they take
//! microseconds.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::refusal::error::LayoutError;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Asks every search, in every thread, to end with [`LayoutError::Interrupted`]; it holds until
/// [`clear`]. May be called by a signal handler.
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

/// Takes the request back: searches run again.
pub fn clear() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Whether [`request`] has been called since the last [`clear`]. A long loop of a caller may ask
/// this between two operations.
#[inline]
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Refuses to go on where an interrupt is requested.
#[inline]
pub(crate) fn check(op: &'static str) -> Result<(), LayoutError> {
    if is_requested() { Err(LayoutError::Interrupted { op }) } else { Ok(()) }
}

/// The remaining work of a search, in steps of some ten nanoseconds each.
///
/// It is handed on to all parts of one operation, so that they share one limit.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    left: Cell<u64>,
}

/// The most steps of all searches of one operation together: well below a second.
pub(crate) const MAX_WORK: u64 = 1 << 24;

/// Why a search does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Its limit is reached.
    Limit,
    /// An interrupt is requested.
    Interrupted,
}

impl Work {
    /// As much as one operation may do.
    pub(crate) fn new() -> Work {
        Work { left: Cell::new(MAX_WORK) }
    }

    /// Goes on with what another count has left.
    pub(crate) fn take_up(&self, other: &Work) {
        self.left.set(other.left.get());
    }

    /// Takes this many steps.
    #[inline]
    pub(crate) fn spend(&self, steps: usize) -> Result<(), Halt> {
        if is_requested() {
            return Err(Halt::Interrupted);
        }
        let left = self.left.get().checked_sub(steps as u64);
        self.left.set(left.unwrap_or(0));
        if left.is_some() { Ok(()) } else { Err(Halt::Limit) }
    }

    /// Whether nothing is left to spend, or an interrupt is requested.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0 || is_requested()
    }
}

impl Halt {
    /// The refusal of `op` after a search of this many cases.
    #[cold]
    pub(crate) fn refusal(self, op: &'static str, cases: usize) -> LayoutError {
        match self {
            Halt::Limit => LayoutError::Undecided { op, limit: cases },
            Halt::Interrupted => LayoutError::Interrupted { op },
        }
    }
}
