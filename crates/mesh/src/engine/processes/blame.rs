//! Finds the process that caused a call to fail.
//!
//! Law: a report of another process has precedence, then a closed connection, then a missed
//! deadline. If another library transports the bytes, each process that waits in vain informs all
//! others for whom it waits. Of the processes that are waited for, one that sends nothing is lost.
//! A process whose connection closes without a report is lost at once. So all waiting processes
//! blame the same one.

use std::time::{Duration, Instant};

use super::{GRACE, Processes};
use crate::error::MeshError;

use super::super::frame::{Failure, FrameKind, encoded, receive, send, waiting};

/// How long a connection is checked for a message.
const LOOK: Duration = Duration::from_millis(5);

impl Processes {
    /// The error of a call whose bytes another transport failed to deliver: it names the lost
    /// process. `waiting` are the ranks from which this process receives bytes or to which it sends
    /// bytes, and `why` is the transport's message. Every later call returns the same error.
    ///
    /// It returns within two seconds. The other processes must call it too, or wait in a call of
    /// this engine; a process that does neither is lost.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tilewright_mesh::{MeshError, Place, Processes};
    ///
    /// let place = Place { rank: 0, ranks: 1, address: "127.0.0.1".to_owned(), port: 29_500, token: None };
    /// let mut engine = Processes::connect(&place, Duration::from_secs(1)).unwrap();
    /// let error = engine.blame("step 1", &[], "the connection was reset");
    /// let why = "the connection was reset".into();
    /// assert_eq!(error, MeshError::Lost { rank: 0, step: "step 1".into(), why });
    /// ```
    pub fn blame(&mut self, step: &str, waiting: &[usize], why: &str) -> MeshError {
        if let Err(error) = self.refuse_after_failure(step) {
            return error;
        }
        let rank = waiting.iter().copied().find(|rank| *rank != self.rank).unwrap_or(self.rank);
        let own = MeshError::Lost { rank, step: step.into(), why: why.into() };
        let error = self.common_cause(step, own, waiting);
        self.fail(error)
    }

    /// The cause among several failures: reports of others first, then a lack of memory, then
    /// closed connections, then missed deadlines.
    pub(super) fn blamed(&mut self, step: &str, mut failures: Vec<(usize, Failure)>) -> MeshError {
        failures.sort_by_key(|(_, failure)| match failure {
            Failure::Reported(_) => 0,
            Failure::NoMemory(_) => 1,
            Failure::Gone(_) => 2,
            Failure::Late { .. } => 3,
        });
        let Some((rank, failure)) = failures.into_iter().next() else {
            return MeshError::Lost { rank: self.rank, step: step.into(), why: "nothing is known".into() };
        };
        let error = self.lost(rank, step, &failure);
        if !matches!(failure, Failure::Late { midway: false }) {
            return error;
        }
        // The process that missed the deadline may itself be waiting. Then it reports for whom, as
        // this process does here.
        self.report(&error);
        let Some(Some(peer)) = self.peers.get(rank) else { return error };
        let _ = peer.set_read_timeout(Some(GRACE));
        match receive(&mut &*peer, FrameKind::Failed, self.calls, None) {
            Err(Failure::Reported(cause)) => cause,
            _ => error,
        }
    }

    /// The error that all waiting processes return. This one waits for `waiting_for`, and would
    /// return `own` if it received nothing from the others.
    fn common_cause(&self, step: &str, own: MeshError, waiting_for: &[usize]) -> MeshError {
        for peer in self.peers.iter().flatten() {
            let _ = peer.set_write_timeout(Some(GRACE / 2));
            let _ = send(peer, FrameKind::Waiting, self.calls, encoded(&own).as_bytes());
        }
        let mut answers: Vec<Option<MeshError>> = vec![None; self.peers.len()];
        answers.iter_mut().skip(self.rank).take(1).for_each(|answer| *answer = Some(own.clone()));
        let until = Instant::now() + 2 * GRACE;
        while Instant::now() < until && answers.iter().any(Option::is_none) {
            for (rank, (peer, answer)) in self.peers.iter().zip(&mut answers).enumerate() {
                let (Some(peer), None) = (peer, &answer) else { continue };
                let _ = peer.set_read_timeout(Some(LOOK));
                let gone = |why: &str| MeshError::Lost { rank, step: step.into(), why: why.into() };
                match peer.peek(&mut [0]) {
                    Ok(0) => return gone("it closed its connection"),
                    Ok(_) => {}
                    Err(error) if Failure::of_io(&error, false).is_late() => continue,
                    Err(error) => return gone(&error.to_string()),
                }
                let _ = peer.set_read_timeout(Some(GRACE));
                match waiting(peer) {
                    Ok(heard) => *answer = heard,
                    Err(Failure::Reported(error)) => return error,
                    Err(_) => return gone("it closed its connection"),
                }
            }
        }
        // A process that reports that it waits is not lost. Of several silent processes, all name
        // the first.
        let is_silent = |rank: usize| answers.get(rank).is_some_and(Option::is_none);
        let lost = |error: &MeshError| match error {
            MeshError::Lost { rank, .. } => Some(*rank),
            _ => None,
        };
        let named =
            answers.iter().flatten().filter(|error| lost(error).is_none_or(is_silent)).min_by_key(|error| lost(error));
        if let Some(error) = named {
            return error.clone();
        }
        // Each process reports only the first process for which it waits, and those may be waiting
        // for each other.
        let first = waiting_for.iter().copied().filter(|rank| is_silent(*rank)).min();
        match (first.or_else(|| answers.iter().position(Option::is_none)), own) {
            (Some(rank), MeshError::Lost { step, why, .. }) => MeshError::Lost { rank, step, why },
            (_, own) => own,
        }
    }
}
