//! The signals that end a launcher.
//!
//! Law: the handler records the signal and does nothing else; the loop that polls the processes
//! reads it. A signal that was ignored when the launcher started, as under `nohup`, stays ignored.
//!
//! Reason for unsafe code: the standard library neither handles nor sends signals, and only a call
//! between `fork` and `exec` makes a process end with its parent.
#![allow(unsafe_code)]

use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::c_int;

static CAUGHT: AtomicI32 = AtomicI32::new(0);

const ENDING: [(c_int, &str); 3] = [(libc::SIGTERM, "SIGTERM"), (libc::SIGINT, "SIGINT"), (libc::SIGHUP, "SIGHUP")];

extern "C" fn note(signal: c_int) {
    // The first signal determines how the launcher ends.
    let _ = CAUGHT.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

/// Records signals from now on.
pub fn watch() {
    for (signal, _) in ENDING {
        let handler: extern "C" fn(c_int) = note;
        // SAFETY: `note` touches an atomic alone, which a handler may. `signal` takes two numbers,
        // of which the second is the address of a function of the type that it wants.
        unsafe {
            if libc::signal(signal, handler as libc::sighandler_t) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// The recorded signal, and its name.
pub fn caught() -> Option<(c_int, &'static str)> {
    let caught = CAUGHT.load(Ordering::Relaxed);
    ENDING.into_iter().find(|(signal, _)| *signal == caught)
}

/// Sends a signal to a process that has not been waited for yet, or to its whole group.
pub fn send(child: &Child, to_group: bool, signal: c_int) {
    let Ok(id) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: `kill` takes two numbers. One that is gone is no error here.
    unsafe {
        libc::kill(if to_group { -id } else { id }, signal);
    }
}

/// Lets the kernel kill a process when the launcher's main thread ends.
pub fn end_with_launcher(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt as _;
        let launcher = std::process::id();
        let ask = move || {
            // SAFETY: both are system calls that take numbers, and may be made after `fork`.
            let is_gone = unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
                // The launcher may have ended before that call.
                libc::getppid() as u32 != launcher
            };
            if is_gone { Err(std::io::ErrorKind::NotFound.into()) } else { Ok(()) }
        };
        // SAFETY: `ask` makes two system calls and neither allocates nor locks.
        unsafe {
            command.pre_exec(ask);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}
