//! Processes with socket connections between each pair.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilewright_mesh::{self as mesh, Engine, Interrupter, MeshError, Place, Token};

use super::refused;

/// The interval at which signals are checked.
const INTERVAL: Duration = Duration::from_millis(20);
/// The longest timeout, in seconds.
const MAX_PATIENCE: f64 = 86_400.0;

/// Processes connected by sockets, each with each: `Processes(rank, ranks, address, port)`, or
/// `Processes.of_environment()` if torchrun, mpirun, srun or `tilewright launch` started them.
///
/// All processes of a job share a token, the argument or else the variable TILEWRIGHT_TOKEN: 8 to
/// 256 characters that cannot be guessed. `tilewright launch` sets it; a single process needs none.
/// Connections without it are ignored, and logged by `logging.getLogger("tilewright")`.
///
/// A process that dies is reported immediately, one that hangs after `patience` seconds without a
/// message. After an error every call raises that error.
#[pyclass(frozen, module = "tilewright")]
pub struct Processes {
    engine: Mutex<mesh::Processes>,
    interrupter: Interrupter,
    rank: usize,
    ranks: usize,
    patience: f64,
}

fn patient(seconds: f64) -> PyResult<Duration> {
    match seconds > 0.0 && seconds <= MAX_PATIENCE {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(PyValueError::new_err(format!("the patience is from 0 to 86400 seconds, not {seconds}"))),
    }
}

impl Processes {
    fn connected(py: Python<'_>, place: &Place, patience: f64) -> PyResult<Processes> {
        let within = patient(patience)?;
        let engine = py.detach(|| mesh::Processes::connect(place, within)).map_err(refused(py))?;
        if !engine.ignored().is_empty() {
            let log = py.import("logging")?.call_method1("getLogger", ("tilewright",))?;
            for who in engine.ignored() {
                log.call_method1("warning", ("ignored a connection from %s", who))?;
            }
        }
        let (interrupter, rank, ranks) = (engine.interrupter(), engine.rank(), engine.ranks());
        Ok(Processes { engine: Mutex::new(engine), interrupter, rank, ranks, patience })
    }

    fn engine(&self) -> MutexGuard<'_, mesh::Processes> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of a call of the engine. If a signal handler raises meanwhile, such as that of
    /// Ctrl-C, all connections are closed.
    fn call<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut mesh::Processes) -> Result<R, MeshError> + Send,
    ) -> PyResult<R> {
        let (done, raised) = thread::scope(|scope| {
            let (report, mut reports) = mpsc::channel();
            let worker = scope.spawn(move || {
                let done = work(&mut self.engine());
                // The receiver is gone only if the caller is.
                let _ = report.send(());
                done
            });
            let mut raised = None;
            loop {
                let answer;
                (answer, reports) = py.detach(move || (reports.recv_timeout(INTERVAL), reports));
                if answer != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
                if raised.is_none()
                    && let Err(error) = py.check_signals()
                {
                    self.interrupter.interrupt();
                    raised = Some(error);
                }
            }
            (worker.join(), raised)
        });
        match (done, raised) {
            (_, Some(error)) => Err(error),
            (Ok(done), None) => done.map_err(refused(py)),
            (Err(panic), None) => std::panic::resume_unwind(panic),
        }
    }
}

#[pymethods]
impl Processes {
    #[new]
    #[pyo3(signature = (rank, ranks, address, port, patience = 30.0, *, token = None))]
    fn new(
        py: Python<'_>,
        rank: usize,
        ranks: usize,
        address: String,
        port: u16,
        patience: f64,
        token: Option<String>,
    ) -> PyResult<Processes> {
        if rank >= ranks {
            return Err(PyValueError::new_err(format!("there is no rank {rank} of {ranks} processes")));
        }
        let token = token.or_else(|| std::env::var(Token::VARIABLE).ok());
        let token = token.map(|text| Token::new(&text)).transpose().map_err(refused(py))?;
        Processes::connected(py, &Place { rank, ranks, address, port, token }, patience)
    }

    /// The processes of the environment: the variables of torchrun, Open MPI, MPICH or Slurm.
    #[staticmethod]
    #[pyo3(signature = (patience = 30.0))]
    fn of_environment(py: Python<'_>, patience: f64) -> PyResult<Processes> {
        let place = Place::of_environment().map_err(refused(py))?;
        Processes::connected(py, &place, patience)
    }

    /// The rank of this process.
    #[getter]
    fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    #[getter]
    fn ranks(&self) -> usize {
        self.ranks
    }

    /// The connections that were ignored because they were no processes of this job: the address of
    /// each, and the reason.
    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.engine().ignored().to_vec()
    }

    /// The seconds to wait for a process that does not answer.
    #[getter]
    fn patience(&self) -> f64 {
        self.patience
    }

    /// Waits until every process has sent the same text, lines of `name: value`. With `devices`,
    /// there must be as many processes.
    #[pyo3(signature = (step, text, devices = None))]
    fn agree(&self, py: Python<'_>, step: &str, text: &str, devices: Option<usize>) -> PyResult<()> {
        if let Some(devices) = devices.filter(|devices| *devices != self.ranks) {
            let error = MeshError::Processes { processes: self.ranks, devices };
            return Err(refused(py)(self.engine().give_up(error)));
        }
        self.call(py, |engine| engine.agree(step, text))
    }

    /// Sends bytes, each with its rank, and receives the given number of bytes from each of these
    /// ranks.
    fn exchange<'py>(
        &self,
        py: Python<'py>,
        step: &str,
        sends: Vec<(usize, Vec<u8>)>,
        receives: Vec<(usize, usize)>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let come = self.call(py, |engine| {
            let mut places: Vec<(usize, Vec<u8>)> =
                receives.into_iter().map(|(rank, length)| (rank, vec![0; length])).collect();
            engine.exchange(step, &sends, &mut places)?;
            Ok(places)
        })?;
        Ok(come.into_iter().map(|(_, bytes)| PyBytes::new(py, &bytes)).collect())
    }

    /// Raises the error of a step in which another library failed to transfer elements: it names
    /// the lost process. This process waited for these ranks; `why` is the message of the library.
    fn blame(&self, py: Python<'_>, step: &str, waiting: Vec<usize>, why: &str) -> PyResult<()> {
        self.call(py, |engine| Err(engine.blame(step, &waiting, why)))
    }

    /// Raises, on all processes, the error that this one has memory for fewer elements than a
    /// layout needs.
    fn too_small(&self, py: Python<'_>, elements: usize, needed: i64) -> PyResult<()> {
        let error = MeshError::Memory { rank: self.rank, elements, needed };
        self.call(py, |engine| Err(engine.give_up(error)))
    }

    /// Raises, on all processes, the error of this one.
    fn give_up(&self, py: Python<'_>, step: &str, why: &str) -> PyResult<()> {
        let what = format!("rank {} cannot go on, {step}: {why}", self.rank).into();
        self.call(py, |engine| Err(engine.give_up(MeshError::Operation { what })))
    }

    /// Tells all others that this process was interrupted and is lost.
    fn interrupted(&self, py: Python<'_>, step: &str) {
        let error = MeshError::Interrupted { rank: self.rank, step: step.into() };
        py.detach(|| drop(self.engine().give_up(error)));
    }

    fn __repr__(&self) -> String {
        format!("<process {} of {}>", self.rank, self.ranks)
    }
}
