//! Whether standard output was closed when the program began.
//!
//! Law: results that nobody can read are an error, and are not lost silently.
//!
//! Reason for unsafe code: before `main`, the standard library opens `/dev/null` in place of a
//! closed standard stream, and then every write succeeds. Only code that runs earlier can tell this
//! from a program whose output is `/dev/null` on purpose.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed when the program began.
pub fn standard_output() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
extern "C" fn look() {
    // SAFETY: `fcntl` with `F_GETFD` takes two integers and changes nothing; a descriptor that is
    // not open gives -1.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: what stands in this section is called by the loader once, with the C calling convention,
// before `main` and before there are other threads. `look` needs nothing that the standard library
// sets up: it makes one system call and stores to an atomic, and neither allocates nor panics.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
