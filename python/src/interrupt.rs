//! Work that Ctrl-C interrupts.
//!
//! Law: work runs on a thread of its own, without the interpreter's lock. The calling thread checks
//! for signals meanwhile. If a handler raises, the work is asked to end, and the exception replaces
//! its result. The request reaches every search and every interpreter of the process
//! (`tilewright_layout::interrupt`), as a signal does.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use tilewright_layout::interrupt;

/// The interval at which signals are checked.
const INTERVAL: Duration = Duration::from_millis(20);
/// The stack size of the main thread of a process.
const STACK: usize = 8 << 20;

/// The result of some work.
///
/// Errors: a signal handler raised, such as that of Ctrl-C; no thread could be started.
pub fn interruptible<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    thread::scope(|scope| {
        let (done, mut waits) = channel();
        let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            let result = work();
            // The receiver is gone only if the caller is.
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

/// Calls a function of Python as such work, so that tests can observe a panic in it. It exists only
/// in the wheel of the tests.
#[cfg(debug_assertions)]
#[pyfunction]
#[pyo3(name = "_on_a_worker")]
pub fn on_a_worker(py: Python<'_>, call: Py<PyAny>) -> PyResult<Py<PyAny>> {
    interruptible(py, || Python::attach(|py| call.call0(py)))?
}
