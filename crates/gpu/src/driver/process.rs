//! Detects whether this process was forked after the driver was opened.
//!
//! Law: a forked process has the memory of its parent, but none of its threads. The driver does not
//! work in it: its calls fail, hang, or answer for the parent. So no call is made there.
//!
//! Reason for unsafe code: only the C library reports that a process was forked.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether the driver was opened by a parent of this process.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Detects forks from now on.
#[cfg(unix)]
pub(super) fn watch() {
    use std::ffi::c_int;
    use std::sync::Once;

    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }
    extern "C" fn note() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static WATCHED: Once = Once::new();
    // SAFETY: the parameters are those of POSIX, and `note` stores to an atomic, which a forked
    // child may do. The library that contains it is never unloaded while the driver is open.
    WATCHED.call_once(|| unsafe {
        pthread_atfork(None, None, Some(note));
    });
}

#[cfg(not(unix))]
pub(super) fn watch() {}
