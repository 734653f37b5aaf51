//! An engine that connects every pair of processes by a socket.
//!
//! Law: a process that exits is detected at once, because its connections close. A process that
//! hangs is detected when nothing has arrived from it for the engine's *patience*. A process that
//! learns of a failure reports it to all others, and refuses every later call. Before a process
//! blames another one, it asks for whom that one is waiting. So every process returns the same kind
//! of error within twice the patience and two seconds.

mod blame;
mod connect;
mod door;

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::frame::{Failure, FrameKind, encoded, receive, send};
use super::{Engine, Meanwhile, Place, Progress, difference, missing_message};
use crate::error::MeshError;
use crate::limits::MAX_DEVICES;
use door::Ignored;

/// The step that is reported when no plan is running.
const CONNECTING: &str = "while processes connect";

/// How long a process that waited in vain waits for a report from the other.
const GRACE: Duration = Duration::from_millis(500);

/// Processes of which every pair is connected by a socket.
///
/// [`Place::of_environment`] reads the rank of this process from the variables that torchrun,
/// `mpirun`, `srun` and `tilewright launch` set.
///
/// ```
/// use std::time::Duration;
///
/// use tilewright_mesh::{Engine, Machine, Mesh, Place, Processes, ShardedLayout, reshard};
///
/// # fn main() -> Result<(), tilewright_mesh::MeshError> {
/// // One process is all there are, so nothing is sent.
/// let place = Place { rank: 0, ranks: 1, address: "127.0.0.1".into(), port: 0, token: None };
/// let mut processes = Processes::connect(&place, Duration::from_secs(5))?;
/// assert_eq!((processes.rank(), processes.ranks()), (0, 1));
///
/// let mesh: Mesh = "x=1".parse()?;
/// let rows = ShardedLayout::parse(&mesh, "(2,3):(3,1)")?;
/// let columns = ShardedLayout::parse(&mesh, "(2,3):(1,2)")?;
/// let plan = reshard(&rows, &columns, 8, &Machine::HGX_H200)?;
/// assert_eq!(plan.run(&mut processes, &[0_i64, 1, 2, 3, 4, 5])?, [0, 3, 1, 4, 2, 5]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Processes {
    rank: usize,
    patience: Duration,
    /// The connection to each other process.
    peers: Vec<Option<TcpStream>>,
    calls: u64,
    failed: Option<MeshError>,
    interrupter: Interrupter,
    /// Connections that were not from processes of this job.
    ignored: Ignored,
}

/// Ends the calls of an engine from another thread, such as a signal handler's.
///
/// ```
/// use std::time::Duration;
/// use tilewright_mesh::{Engine, MeshError, Place, Processes};
///
/// let place = Place { rank: 0, ranks: 1, address: "127.0.0.1".to_owned(), port: 29_500, token: None };
/// let mut engine = Processes::connect(&place, Duration::from_secs(1)).unwrap();
/// engine.interrupter().interrupt();
/// let refused = engine.agree("step 1", "").unwrap_err();
/// assert_eq!(refused, MeshError::Interrupted { rank: 0, step: "step 1".into() });
/// ```
#[derive(Debug, Clone, Default)]
pub struct Interrupter {
    connections: Arc<Mutex<Vec<TcpStream>>>,
    interrupted: Arc<AtomicBool>,
}

impl Interrupter {
    /// Closes all connections. The current call, and every later one, returns
    /// [`MeshError::Interrupted`]; those of other processes return [`MeshError::Lost`].
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
        for stream in self.connections.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether the engine was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    /// Registers a connection; if the engine was already interrupted, the connection is closed at
    /// once.
    fn note(&self, stream: &TcpStream) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_interrupted() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        connections.extend(stream.try_clone());
    }
}

/// The frames that a call sends, and those that it waits for: for each, rank and kind, and the
/// bytes or their number.
type Sends<'a> = Vec<(usize, FrameKind, &'a [u8])>;
type Receives = Vec<(usize, FrameKind, Option<usize>)>;

impl Processes {
    /// The default limit of the time to wait for a process that does not respond.
    pub const PATIENCE: Duration = Duration::from_secs(30);

    /// Connects this process with all others.
    ///
    /// The first process listens at its address and port. The others connect to it, send the job's
    /// token, and receive the addresses of all. Other connections are ignored
    /// ([`Processes::ignored`]).
    ///
    /// Errors: processes do not connect ([`MeshError::Absent`]); there are several processes but no
    /// token, or a token differs from that of the first process ([`MeshError::Token`]); the version
    /// or number of processes differs from that of the first process ([`MeshError::Differs`]); the
    /// address cannot be listened at.
    pub fn connect(place: &Place, patience: Duration) -> Result<Processes, MeshError> {
        let rank = place.rank;
        let mut all = Processes {
            rank,
            patience,
            peers: Vec::new(),
            calls: 0,
            failed: None,
            interrupter: Interrupter::default(),
            ignored: Ignored::default(),
        };
        if place.ranks == 0 || place.ranks as u64 > MAX_DEVICES as u64 || rank >= place.ranks {
            let what =
                format!("there is no rank {rank} of {} processes, of which there are 1 to {MAX_DEVICES}", place.ranks);
            return Err(MeshError::Environment { what: what.into() });
        }
        all.peers.resize_with(place.ranks, || None);
        let until = Instant::now() + patience;
        if place.ranks == 1 {
            return Ok(all);
        }
        if place.token.is_none() {
            return Err(MeshError::Token { what: "this process has no job token".into() });
        }
        let joined = if rank == 0 { all.gather(place, until) } else { all.join(place, until) };
        match joined {
            Ok(()) => Ok(all),
            Err(error) => Err(all.fail(error)),
        }
    }

    /// The connections that were ignored because they were not from processes of this job: the
    /// address of each, and the reason. The first 16 are kept.
    pub fn ignored(&self) -> &[String] {
        &self.ignored.named
    }

    /// A handle that ends the calls of this engine from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// Sends and receives frames concurrently.
    fn transfer(&mut self, step: &str, sends: Sends<'_>, receives: Receives) -> Result<Vec<Vec<u8>>, MeshError> {
        self.refuse_after_failure(step)?;
        let (call, peers) = (self.calls, &self.peers);
        let peer = |rank: usize| peers.get(rank).and_then(Option::as_ref).ok_or_else(unconnected);
        let (sent, received) = thread::scope(|scope| {
            let sending: Vec<_> = sends
                .into_iter()
                .map(|(rank, kind, bytes)| (rank, scope.spawn(move || send(peer(rank)?, kind, call, bytes))))
                .collect();
            let receiving: Vec<_> = receives
                .into_iter()
                .map(|(rank, kind, length)| (rank, scope.spawn(move || receive(&mut peer(rank)?, kind, call, length))))
                .collect();
            let sent: Vec<_> = sending.into_iter().map(|(rank, hand)| (rank, joined(hand.join()))).collect();
            let received: Vec<_> = receiving.into_iter().map(|(rank, hand)| (rank, joined(hand.join()))).collect();
            (sent, received)
        });
        let mut frames = Vec::new();
        let mut failures: Vec<(usize, Failure)> = Vec::new();
        for (rank, frame) in received {
            match frame {
                Ok(frame) => frames.push(frame),
                Err(failure) => failures.push((rank, failure)),
            }
        }
        failures.extend(sent.into_iter().filter_map(|(rank, sent)| Some((rank, sent.err()?))));
        if failures.is_empty() { Ok(frames) } else { Err(self.blamed(step, failures)) }
    }

    /// Sends and receives while `meanwhile` works. One thread waits for each message.
    fn overlapped(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError> {
        self.refuse_after_failure(step)?;
        let (call, peers) = (self.calls, &self.peers);
        let peer = |rank: usize| peers.get(rank).and_then(Option::as_ref).ok_or_else(unconnected);
        let (report, reports) = mpsc::channel::<(usize, Result<Option<Vec<u8>>, Failure>)>();
        let (mut failures, mut refused, mut unsent) = (Vec::new(), None, targets.len());
        thread::scope(|scope| {
            for (rank, length) in sources.iter().copied() {
                let report = report.clone();
                scope.spawn(move || {
                    let come = peer(rank).and_then(|mut peer| receive(&mut peer, FrameKind::Data, call, Some(length)));
                    // After a failure, nothing receives this report.
                    let _ = report.send((rank, come.map(Some)));
                });
            }
            let mut running = sources.len();
            while failures.is_empty() && refused.is_none() {
                let progress = meanwhile.work().unwrap_or_else(|error| {
                    refused = Some(error);
                    None
                });
                let is_idle = progress.is_none();
                if let Some(Progress::Ready(rank, bytes)) = progress {
                    let report = report.clone();
                    scope.spawn(move || {
                        let sent = peer(rank).and_then(|peer| send(peer, FrameKind::Data, call, &bytes));
                        let _ = report.send((rank, sent.map(|()| None)));
                    });
                    running += 1;
                    unsent = unsent.saturating_sub(1);
                }
                if is_idle && running == 0 || refused.is_some() {
                    break;
                }
                // An idle process waits for one report, then handles all that have arrived.
                let mut next = if is_idle { reports.recv().ok() } else { reports.try_recv().ok() };
                while let Some((rank, done)) = next {
                    running -= 1;
                    match done {
                        Ok(Some(bytes)) => refused = refused.take().or(meanwhile.take(rank, bytes).err()),
                        Ok(None) => {}
                        Err(failure) => failures.push((rank, failure)),
                    }
                    next = reports.try_recv().ok();
                }
            }
            // Then the other processes give up, and the threads that wait for them end.
            refused.iter().for_each(|error| self.report(error));
        });
        failures.extend(reports.try_iter().filter_map(|(rank, done)| Some((rank, done.err()?))));
        match refused {
            Some(error) => Err(error),
            None if !failures.is_empty() => Err(self.blamed(step, failures)),
            None if unsent > 0 => Err(missing_message(step)),
            None => Ok(()),
        }
    }

    /// Refuses calls after a failure, or after the process was interrupted.
    fn refuse_after_failure(&self, step: &str) -> Result<(), MeshError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.interrupter.is_interrupted() => {
                Err(MeshError::Interrupted { rank: self.rank, step: step.into() })
            }
            None => Ok(()),
        }
    }

    fn lost(&self, rank: usize, step: &str, failure: &Failure) -> MeshError {
        if self.interrupter.is_interrupted() {
            return MeshError::Interrupted { rank: self.rank, step: step.into() };
        }
        let why = match failure {
            Failure::Reported(error) => return error.clone(),
            Failure::NoMemory(bytes) => {
                return MeshError::OutOfMemory { rank: self.rank, step: step.into(), bytes: *bytes };
            }
            Failure::Gone(why) => why.clone(),
            Failure::Late { .. } => format!("it did not answer within {} s", self.patience.as_secs_f64()),
        };
        MeshError::Lost { rank, step: step.into(), why: why.into() }
    }

    /// Sends the failure to all other processes that can be reached.
    fn report(&self, error: &MeshError) {
        for peer in self.peers.iter().flatten() {
            let _ = peer.set_write_timeout(Some(GRACE / 2));
            let _ = send(peer, FrameKind::Failed, self.calls, encoded(error).as_bytes());
        }
    }

    /// Closes all connections with an error, which every later call returns too.
    fn fail(&mut self, error: MeshError) -> MeshError {
        self.report(&error);
        // If a connection is closed with unread bytes, it is reset, and the failure that was sent
        // is lost. So unread bytes are received first.
        let until = Instant::now() + 2 * GRACE;
        for peer in self.peers.iter().flatten() {
            let _ = peer.shutdown(Shutdown::Write);
        }
        for mut peer in self.peers.iter().flatten() {
            let mut rest = [0; 4096];
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                let _ = peer.set_read_timeout(Some(left));
                if !peer.read(&mut rest).is_ok_and(|bytes| bytes > 0) {
                    break;
                }
            }
        }
        self.peers.iter_mut().for_each(|peer| *peer = None);
        self.failed = Some(error.clone());
        error
    }

    /// Makes one call, with the next number for its frames.
    fn call(&mut self, step: &str, sends: Sends<'_>, receives: Receives) -> Result<Vec<Vec<u8>>, MeshError> {
        self.calls += 1;
        self.transfer(step, sends, receives)
            .map_err(|error| if self.failed.is_some() { error } else { self.fail(error) })
    }
}

/// The result of a thread.
fn joined<T>(done: thread::Result<Result<T, Failure>>) -> Result<T, Failure> {
    done.unwrap_or_else(|_| Err(Failure::Gone("a thread of this process ended".to_owned())))
}

fn unconnected() -> Failure {
    Failure::Gone("there is no connection".to_owned())
}

impl Engine for Processes {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.peers.len()
    }

    fn exchange(
        &mut self,
        step: &str,
        sends: &[(usize, Vec<u8>)],
        receives: &mut [(usize, Vec<u8>)],
    ) -> Result<(), MeshError> {
        let outgoing = sends.iter().map(|(rank, bytes)| (*rank, FrameKind::Data, bytes.as_slice())).collect();
        let incoming = receives.iter().map(|(rank, bytes)| (*rank, FrameKind::Data, Some(bytes.len()))).collect();
        // The received frames replace these buffers, so their memory is freed first.
        receives.iter_mut().for_each(|(_, place)| *place = Vec::new());
        let frames = self.call(step, outgoing, incoming)?;
        receives.iter_mut().zip(frames).for_each(|((_, place), frame)| *place = frame);
        Ok(())
    }

    fn exchange_while(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError> {
        self.calls += 1;
        self.overlapped(step, targets, sources, meanwhile)
            .map_err(|error| if self.failed.is_some() { error } else { self.fail(error) })
    }

    fn agree(&mut self, step: &str, text: &str) -> Result<(), MeshError> {
        let others: Vec<usize> = (1..self.ranks()).collect();
        if self.rank > 0 {
            return self
                .call(step, vec![(0, FrameKind::Text, text.as_bytes())], vec![(0, FrameKind::Text, None)])
                .map(drop);
        }
        let answers =
            self.call(step, Vec::new(), others.iter().map(|rank| (*rank, FrameKind::Text, None)).collect())?;
        for (rank, answer) in others.iter().zip(&answers) {
            if let Some(error) = difference(text, &String::from_utf8_lossy(answer), *rank) {
                return Err(self.fail(error));
            }
        }
        self.transfer(step, others.iter().map(|rank| (*rank, FrameKind::Text, [].as_slice())).collect(), Vec::new())
            .map_err(|error| if self.failed.is_some() { error } else { self.fail(error) })
            .map(drop)
    }

    fn give_up(&mut self, error: MeshError) -> MeshError {
        if self.failed.is_some() { error } else { self.fail(error) }
    }
}
