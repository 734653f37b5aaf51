//! Work that ctrl-C ends.
//!
//! Law: work runs on a thread of its own, without the interpreter's lock. The thread that called
//! looks for signals meanwhile; where a handler raises, the work is asked to end, and what it
//! returns is given up for the exception. The request reaches every search and every interpreter of
//! the process (`tilewright_layout::interrupt`), as a signal does.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use tilewright_layout::interrupt;

/// How often signals are looked for.
const INTERVAL: Duration = Duration::from_millis(20);
/// As much stack as the first thread of a process has.
const STACK: usize = 8 << 20;

/// What some work returns.
///
/// Errors: a handler of a signal raised, as that of ctrl-C does; there is no other thread to be
/// had.
pub fn interruptible<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    thread::scope(|scope| {
        let (done, mut waits) = channel();
        let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            let result = work();
            // Nobody listens any more only where the caller is gone.
            let _ = done.send(());
            result
        })?;
        let mut raised = None;
        loop {
            let answer;
            (answer, waits) = py.detach(move || (waits.recv_timeout(INTERVAL), waits));
            if answer != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if raised.is_none()
                && let Err(error) = py.check_signals()
            {
                interrupt::request();
                raised = Some(error);
            }
        }
        if raised.is_some() {
            interrupt::clear();
        }
        match (worker.join(), raised) {
            (_, Some(error)) => Err(error),
            (Ok(result), None) => Ok(result),
            (Err(panic), None) => std::panic::resume_unwind(panic),
        }
    })
}

/// Calls a function of Python as such work, so that tests see what becomes of a panic in it. It is
/// only in the wheel that they build.
#[cfg(debug_assertions)]
#[pyfunction]
#[pyo3(name = "_on_a_worker")]
pub fn on_a_worker(py: Python<'_>, call: Py<PyAny>) -> PyResult<Py<PyAny>> {
    interruptible(py, || Python::attach(|py| call.call0(py)))?
}
