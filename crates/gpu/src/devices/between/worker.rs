//! The thread that calls NCCL.
//!
//! Law: any call of NCCL may wait for another process forever: joining, the first transfer, which
//! connects to the others, and even aborting. So one thread makes all calls, and callers wait for
//! it for a limited time. A thread that does not answer in time is abandoned with everything that
//! it owns: memory that NCCL may still write is neither freed nor reused, and the program continues
//! or ends without the thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Device, Memory, NcclError, NcclId, NcclProcess, Stream, Transfer};
use tilewright_mesh::MeshError;

/// How much longer the caller waits than the thread, so that the thread can report what was late.
const GRACE: Duration = Duration::from_millis(500);

/// How often a waiting caller checks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes for other ranks, or from them.
pub(super) type Messages = Vec<(usize, Vec<u8>)>;

/// Why the bytes were not exchanged.
pub(super) enum Trouble {
    /// This process failed. It must inform the others.
    Own(MeshError),
    /// Another process failed, or NCCL reports that.
    Other(String),
}

/// The data with which a process joins.
pub(super) struct Joining {
    pub(super) device: Device,
    pub(super) id: NcclId,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    pub(super) patience: Duration,
}

/// The messages to send, and the receive buffers.
type Ask = (Messages, Messages);
type Answer = Result<Messages, Trouble>;

/// The handle of the thread.
pub(super) struct Worker {
    asks: Option<Sender<Ask>>,
    answers: Receiver<Answer>,
    version: String,
    patience: Duration,
    /// Whether the thread must never free what it owns.
    left: Arc<AtomicBool>,
}

impl Worker {
    /// Starts the thread, which joins the other processes.
    ///
    /// Errors: NCCL refuses ([`Trouble::Own`]); the others do not join in time; `is_interrupted`
    /// returned true.
    pub(super) fn join(joining: Joining, is_interrupted: &dyn Fn() -> bool) -> Result<Worker, Trouble> {
        let (asks, asked) = mpsc::channel::<Ask>();
        let (answer, answers) = mpsc::channel::<Answer>();
        let (say, said) = mpsc::channel::<Result<String, Trouble>>();
        let (patience, left) = (joining.patience, Arc::new(AtomicBool::new(false)));
        let is_left = left.clone();
        let served = move || {
            let mut moving = match Moving::join(&joining) {
                Ok(moving) => moving,
                Err(error) => return drop(say.send(Err(Trouble::Own(error)))),
            };
            // If nobody receives the answer, the process has given up.
            let _ = say.send(Ok(moving.nccl.version()));
            for (sends, places) in asked {
                let done = moving.moved(&sends, places);
                let is_lost = matches!(done, Err(Trouble::Other(_)));
                let _ = answer.send(done);
                if is_lost {
                    // The abort may also wait forever, so the answer is sent first.
                    return moving.nccl.abort();
                }
            }
            if is_left.load(Ordering::Acquire) {
                // A process is lost, so NCCL would not return from freeing. Everything is leaked.
                std::mem::forget(moving);
            }
        };
        let started = thread::Builder::new().name("nccl".to_owned()).spawn(served);
        started.map_err(|error| Trouble::Own(MeshError::Engine { what: error.to_string().into() }))?;
        let version = answered(&said, patience, is_interrupted)??;
        Ok(Worker { asks: Some(asks), answers, version, patience, left })
    }

    /// Abandons the thread and everything that it owns, because another process is lost.
    pub(super) fn leave(&mut self) {
        self.left.store(true, Ordering::Release);
        self.asks = None;
    }

    /// The version of NCCL.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Sends messages, and returns the receive buffers filled.
    pub(super) fn moved(&mut self, sends: Messages, places: Messages, is_interrupted: &dyn Fn() -> bool) -> Answer {
        let asked = self.asks.as_ref().is_some_and(|asks| asks.send((sends, places)).is_ok());
        let answer = if asked {
            answered(&self.answers, self.patience, is_interrupted).and_then(|answer| answer)
        } else {
            Err(Trouble::Other("NCCL was given up before".to_owned()))
        };
        if let Err(Trouble::Other(_)) = answer {
            self.asks = None;
        }
        answer
    }
}

impl Drop for Worker {
    /// Waits until the thread has freed what it owns, unless it was abandoned.
    fn drop(&mut self) {
        if self.asks.take().is_some() {
            let _ = self.answers.recv_timeout(self.patience);
        }
    }
}

/// The answer of a thread; an error if it does not come in time.
fn answered<T>(answers: &Receiver<T>, patience: Duration, is_interrupted: &dyn Fn() -> bool) -> Result<T, Trouble> {
    let since = Instant::now();
    while since.elapsed() < patience + GRACE {
        match answers.recv_timeout(LOOK) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => return Err(Trouble::Other("its thread ended".to_owned())),
            Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                return Err(Trouble::Other("this process was interrupted".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Err(Trouble::Other(late(patience)))
}

fn late(patience: Duration) -> String {
    format!("it did not answer within {} s", patience.as_secs_f64())
}

/// The state that the thread owns.
struct Moving {
    // Dropped first, because it may use the others.
    nccl: NcclProcess,
    device: Device,
    stream: Stream,
    /// Buffers for sent and received elements. They grow as needed.
    buffers: [Memory; 2],
    rank: usize,
    patience: Duration,
}

fn refused(error: impl std::fmt::Display) -> Trouble {
    Trouble::Own(MeshError::Operation { what: error.to_string().into() })
}

impl Moving {
    fn join(joining: &Joining) -> Result<Moving, MeshError> {
        let Joining { device, id, rank, ranks, patience } = joining;
        let none = |_| MeshError::Engine { what: "the device has no stream or memory".into() };
        let stream = device.stream().map_err(none)?;
        let buffers = [device.allocate(0).map_err(none)?, device.allocate(0).map_err(none)?];
        let engine = |error: NcclError| MeshError::Engine { what: error.to_string().into() };
        let nccl = NcclProcess::join(device, id, *rank, *ranks).map_err(engine)?;
        Ok(Moving { nccl, device: device.clone(), stream, buffers, rank: *rank, patience: *patience })
    }

    /// Exchanges bytes through the device.
    fn moved(&mut self, sends: &Messages, mut places: Messages) -> Answer {
        let transfers = self.given(sends, &places)?;
        self.waited(&transfers).map_err(Trouble::Other)?;
        let mut at = 0;
        for (_, place) in &mut places {
            self.buffers[1].read(&self.stream, at, place).map_err(refused)?;
            at += place.len() as u64;
        }
        Ok(places)
    }

    /// Copies the messages to the device, and lists the transfers.
    fn given(&mut self, sends: &Messages, places: &Messages) -> Result<Vec<Transfer>, Trouble> {
        let all = |messages: &Messages| messages.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        for (buffer, needed) in self.buffers.iter_mut().zip([all(sends), all(places)]) {
            if buffer.bytes() < needed {
                *buffer = self.device.allocate(needed).map_err(refused)?;
            }
        }
        let own = self.rank;
        let (mut transfers, mut at) = (Vec::new(), 0);
        for (rank, bytes) in sends {
            self.buffers[0].write(&self.stream, at, bytes).map_err(refused)?;
            transfers.push(Transfer { from: own, to: *rank, read: at, write: 0, bytes: bytes.len() as u64 });
            at += bytes.len() as u64;
        }
        at = 0;
        for (rank, place) in places {
            transfers.push(Transfer { from: *rank, to: own, read: 0, write: at, bytes: place.len() as u64 });
            at += place.len() as u64;
        }
        Ok(transfers)
    }

    /// Enqueues transfers on the stream, and waits for them, at most for the patience.
    fn waited(&mut self, transfers: &[Transfer]) -> Result<(), String> {
        let [sent, received] = &mut self.buffers;
        self.nccl.transfer(&self.stream, sent, received, transfers).map_err(|error| error.to_string())?;
        let since = Instant::now();
        while !self.stream.is_done().map_err(|error| error.to_string())? {
            self.nccl.check().map_err(|error| error.to_string())?;
            if since.elapsed() > self.patience {
                return Err(late(self.patience));
            }
            // During short transfers, the thread polls without sleeping.
            if since.elapsed() > Duration::from_millis(1) {
                thread::sleep(Duration::from_micros(50));
            }
        }
        self.nccl.check().map_err(|error| error.to_string())
    }
}
