//! A counter of how often the process was forked since it was first asked.
//!
//! Law: two calls return different numbers if and only if there was a fork between them. The
//! process id would show the same, but costs a system call for each copy of a tensor.
//!
//! Reason for unsafe code: only a handler of the C library notifies a process of a fork.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The fork generation of this process.
pub fn generation() -> u32 {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::AcqRel) {
        watch();
    }
    GENERATION.load(Ordering::Acquire)
}

#[cfg(unix)]
fn watch() {
    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
    }
    extern "C" fn next() {
        GENERATION.fetch_add(1, Ordering::AcqRel);
    }
    // SAFETY: the parameters are those of POSIX, and `next` changes an atomic, which a child may
    // do.
    unsafe {
        pthread_atfork(None, None, Some(next));
    }
}

#[cfg(not(unix))]
fn watch() {}
