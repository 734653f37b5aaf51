//! An engine that sends its bytes by MPI.
//!
//! Law: MPI only transports bytes between processes; the protocol is that of all engines. No
//! blocking call of MPI is made: requests are started and tested, so that a waiting process still
//! receives control messages. A process waits for another one for at most the engine's *patience*;
//! then it asks the processes for which it waits for whom they are waiting. A process that does not
//! respond within a second is lost, and all others are informed. So every process returns the same
//! kind of error within the patience and three seconds. After a failure, MPI is not finalised,
//! because that would wait for the lost process.
//!
//! MPI is loaded by name at run time, like the driver: it is not needed to build this crate, and
//! one program runs with it and without it. Only Open MPI 4 and 5 are supported (`mpi/library.rs`).
//!
//! Reason for unsafe code: MPI is finalised when the engine is dropped.
#![allow(unsafe_code)]

mod library;
mod meanwhile;
mod requests;

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use library::{Functions, Opened};
use requests::Request;

use super::frame::{decoded, encoded};
use super::{Engine, Interrupter, Meanwhile, difference};
use crate::error::MeshError;

/// MPI_ANY_SOURCE.
const ANY_SOURCE: c_int = -1;
/// Message tags: a failure; the question for whom a process waits; its answer; and the first tag of
/// calls.
const FAILED: c_int = 1;
const ASK: c_int = 2;
const ANSWER: c_int = 3;
const CALLS: c_int = 16;
/// The number of tags of calls; after that, tags are reused.
const TAGS: u64 = 16_384;
/// The most bytes of one message.
const MESSAGE: usize = 1 << 30;
/// The most bytes of a control message.
const MAX_TEXT: usize = 1 << 24;
/// The time limit for an answer, and for reporting a failure to others.
const GRACE: Duration = Duration::from_secs(1);

/// Processes that are connected by MPI. It must be used by the thread that opened it.
pub struct Mpi {
    functions: Functions,
    rank: usize,
    ranks: usize,
    patience: Duration,
    calls: u64,
    failed: Option<MeshError>,
    interrupter: Interrupter,
    version: String,
}

impl Mpi {
    /// Initialises MPI in a process that mpirun or srun started.
    ///
    /// Errors: there is no library, it is not Open MPI 4 or 5, or it cannot be initialised
    /// ([`MeshError::Engine`]); MPI was opened before in this process.
    pub fn open(patience: Duration) -> Result<Mpi, MeshError> {
        let Opened { functions, rank, ranks, version } = Opened::new()?;
        let (calls, failed, interrupter) = (0, None, Interrupter::default());
        Ok(Mpi { functions, rank, ranks, patience, calls, failed, interrupter, version })
    }

    /// The version text of the library.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A handle that ends the calls of this engine from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    fn tag(&self) -> c_int {
        CALLS + (self.calls % TAGS) as c_int
    }

    /// The error with which another process gave up, if one did. Also answers processes that ask
    /// for whom this one waits.
    fn listen(&self, waiting: &[usize]) -> Option<MeshError> {
        while let Some((rank, _)) = self.heard(ANY_SOURCE, ASK) {
            let text = waiting.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            self.say(rank, ANSWER, &text);
        }
        let (_, text) = self.heard(ANY_SOURCE, FAILED)?;
        Some(decoded(&String::from_utf8_lossy(&text)))
    }

    /// Tests all requests once, and reads control messages. Completed requests are moved to `done`.
    /// `since` is the last time that a request completed, or that this process worked.
    fn look(
        &mut self,
        step: &str,
        requests: &mut Vec<Request>,
        done: &mut Vec<Request>,
        since: &mut Instant,
    ) -> Result<(), MeshError> {
        let (before, mut broken) = (requests.len(), None);
        for mut request in std::mem::take(requests) {
            match self.is_done(&mut request) {
                Ok(true) => done.push(request),
                Ok(false) => requests.push(request),
                Err(why) => broken = Some((request.rank, why)),
            }
        }
        if requests.len() < before {
            *since = Instant::now();
        }
        let ranks: Vec<usize> = requests.iter().map(|request| request.rank).collect();
        let mut ended = broken.map(|(rank, why)| MeshError::Lost { rank, step: step.into(), why: why.into() });
        if ended.is_none() {
            ended = self.listen(&ranks);
        }
        if self.interrupter.is_interrupted() {
            ended = Some(MeshError::Interrupted { rank: self.rank, step: step.into() });
        }
        if ended.is_none() && !requests.is_empty() && since.elapsed() > self.patience {
            ended = self.investigate(step, &ranks);
            *since = Instant::now();
        }
        match ended {
            Some(error) => Err(self.abandon(requests, error)),
            None => Ok(()),
        }
    }

    /// Ends the engine with an error while requests are pending: MPI may still access their bytes,
    /// which are leaked.
    fn abandon(&mut self, requests: &mut Vec<Request>, error: MeshError) -> MeshError {
        requests.drain(..).for_each(|request| std::mem::forget(request.bytes));
        self.fail(error)
    }

    /// Waits for all requests, and returns the received bytes.
    fn finish(&mut self, step: &str, mut requests: Vec<Request>) -> Result<Vec<(usize, Vec<u8>)>, MeshError> {
        let (mut done, mut since) = (Vec::new(), Instant::now());
        requests.iter_mut().enumerate().for_each(|(number, request)| request.number = number);
        while !requests.is_empty() {
            self.look(step, &mut requests, &mut done, &mut since)?;
            if !requests.is_empty() && since.elapsed() > Duration::from_millis(1) {
                thread::sleep(Duration::from_micros(50));
            }
        }
        done.sort_by_key(|request| request.number);
        Ok(done.into_iter().map(|request| (request.rank, request.bytes)).collect())
    }

    /// The process that is lost: one of `waiting`, or of those for which these wait. None if all
    /// respond.
    fn investigate(&self, step: &str, waiting: &[usize]) -> Option<MeshError> {
        let (mut asked, mut answered) = (BTreeSet::new(), BTreeSet::from([self.rank]));
        let mut next: Vec<usize> = waiting.to_vec();
        let mut until = Instant::now() + GRACE;
        loop {
            for rank in next.drain(..) {
                if rank != self.rank && asked.insert(rank) {
                    self.say(rank, ASK, "");
                    until = Instant::now() + GRACE;
                }
            }
            if let Some(error) = self.listen(waiting) {
                return Some(error);
            }
            while let Some((rank, text)) = self.heard(ANY_SOURCE, ANSWER) {
                answered.insert(rank);
                next.extend(String::from_utf8_lossy(&text).split(',').filter_map(|rank| rank.parse::<usize>().ok()));
            }
            let silent = asked.iter().find(|rank| !answered.contains(*rank));
            match silent {
                None if next.is_empty() => return None,
                Some(rank) if next.is_empty() && Instant::now() > until => {
                    let why = format!("it did not answer within {} s", self.patience.as_secs_f64());
                    return Some(MeshError::Lost { rank: *rank, step: step.into(), why: why.into() });
                }
                _ => thread::sleep(Duration::from_micros(100)),
            }
        }
    }

    /// Ends the engine with an error, and sends the error to all others.
    fn fail(&mut self, error: MeshError) -> MeshError {
        let text = encoded(&error);
        let others = (0..self.ranks).filter(|rank| *rank != self.rank);
        let mut requests: Vec<Request> = others.filter_map(|rank| self.say(rank, FAILED, &text)).collect();
        let until = Instant::now() + GRACE;
        while !requests.is_empty() && Instant::now() < until {
            requests.retain_mut(|request| self.is_done(request) == Ok(false));
            thread::sleep(Duration::from_micros(100));
        }
        self.failed = Some(error.clone());
        error
    }

    /// Begins a call; refuses after a failure.
    fn begin(&mut self) -> Result<c_int, MeshError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.calls += 1;
        Ok(self.tag())
    }

    /// Exchanges bytes. Returns the receive buffers, filled, in the order of `places`.
    fn transfer(
        &mut self,
        step: &str,
        sends: &[(usize, &[u8])],
        places: Vec<(usize, Vec<u8>)>,
    ) -> Result<Vec<(usize, Vec<u8>)>, MeshError> {
        let tag = self.begin()?;
        let lost = |rank: usize, why: String| MeshError::Lost { rank, step: step.into(), why: why.into() };
        let (mut requests, mut broken) = (Vec::new(), None);
        let lengths: Vec<(usize, usize)> = places.iter().map(|(rank, bytes)| (*rank, bytes.len())).collect();
        for (rank, mut bytes) in places {
            // Messages of one sender arrive in order, so long messages are split.
            while bytes.len() > MESSAGE {
                let rest = bytes.split_off(MESSAGE);
                match self.begin_receive(rank, tag, std::mem::replace(&mut bytes, rest)) {
                    Ok(request) => requests.push(request),
                    Err(why) => broken = Some(lost(rank, why)),
                }
            }
            match self.begin_receive(rank, tag, bytes) {
                Ok(request) => requests.push(request),
                Err(why) => broken = Some(lost(rank, why)),
            }
        }
        for (rank, bytes) in sends {
            let mut pieces: Vec<&[u8]> = bytes.chunks(MESSAGE).collect();
            if pieces.is_empty() {
                pieces.push(&[]);
            }
            for piece in pieces {
                match self.begin_send(*rank, tag, piece) {
                    Ok(request) => requests.push(request),
                    Err(why) => broken = Some(lost(*rank, why)),
                }
            }
        }
        if let Some(error) = broken {
            return Err(self.abandon(&mut requests, error));
        }
        let mut come = self.finish(step, requests)?;
        let mut filled = Vec::new();
        for (rank, length) in lengths {
            let mut whole: Vec<u8> = Vec::new();
            while whole.len() < length {
                let next = come.iter().position(|(from, bytes)| *from == rank && !bytes.is_empty());
                let Some(next) = next else { break };
                let (_, mut piece) = come.remove(next);
                if whole.is_empty() { whole = piece } else { whole.append(&mut piece) }
            }
            filled.push((rank, whole));
        }
        Ok(filled)
    }
}

impl Engine for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn exchange(
        &mut self,
        step: &str,
        sends: &[(usize, Vec<u8>)],
        receives: &mut [(usize, Vec<u8>)],
    ) -> Result<(), MeshError> {
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|(rank, bytes)| (*rank, bytes.as_slice())).collect();
        let places = receives.iter_mut().map(|(rank, bytes)| (*rank, std::mem::take(bytes))).collect();
        let filled = self.transfer(step, &sends, places)?;
        receives.iter_mut().zip(filled).for_each(|((_, place), (_, bytes))| *place = bytes);
        Ok(())
    }

    fn exchange_while(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError> {
        self.overlapped(step, targets, sources, meanwhile)
    }

    fn agree(&mut self, step: &str, text: &str) -> Result<(), MeshError> {
        let own = text.as_bytes();
        // First the lengths are exchanged, then the texts, then the agreement of each process.
        let length = (own.len().min(MAX_TEXT) as u64).to_le_bytes();
        if self.rank > 0 {
            self.transfer(step, &[(0, &length)], Vec::new())?;
            self.transfer(step, &[(0, own)], Vec::new())?;
            return self.transfer(step, &[], vec![(0, vec![0; 1])]).map(drop);
        }
        let others = 1..self.ranks;
        let lengths = self.transfer(step, &[], others.clone().map(|rank| (rank, vec![0; 8])).collect())?;
        let place = |(rank, bytes): (usize, Vec<u8>)| {
            let length = <[u8; 8]>::try_from(bytes.as_slice()).map_or(0, u64::from_le_bytes);
            (rank, vec![0; usize::try_from(length).unwrap_or(0).min(MAX_TEXT)])
        };
        let answers = self.transfer(step, &[], lengths.into_iter().map(place).collect())?;
        for (rank, answer) in answers {
            if let Some(error) = difference(text, &String::from_utf8_lossy(&answer), rank) {
                return Err(self.fail(error));
            }
        }
        let yes: Vec<(usize, &[u8])> = others.map(|rank| (rank, [1].as_slice())).collect();
        self.transfer(step, &yes, Vec::new()).map(drop)
    }

    fn give_up(&mut self, error: MeshError) -> MeshError {
        if self.failed.is_some() { error } else { self.fail(error) }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if self.failed.is_none() {
            // SAFETY: MPI was initialised, and all requests have completed.
            let _ = unsafe { (self.functions.finalize)() };
        }
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi(rank {} of {}, {})", self.rank, self.ranks, self.version)
    }
}
