//! MPI messages while a process works.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use super::requests::Request;
use super::{MESSAGE, Mpi};
use crate::engine::{Meanwhile, Progress, missing_message};
use crate::error::MeshError;

impl Mpi {
    /// Sends and receives while `meanwhile` works: between two pieces of work, it checks for
    /// arrivals and answers other processes.
    pub(super) fn overlapped(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError> {
        let tag = self.begin()?;
        let lost = |rank: usize, why: String| MeshError::Lost { rank, step: step.into(), why: why.into() };
        let (mut requests, mut done, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        // For each incoming message: the rank, the number of missing pieces, and the pieces that
        // have arrived.
        let mut come: Vec<(usize, usize, BTreeMap<usize, Vec<u8>>)> = Vec::new();
        let mut ended: Option<MeshError> = None;
        for (rank, length) in sources {
            let pieces = length.div_ceil(MESSAGE).max(1);
            for number in 0..pieces {
                let place = vec![0; (length - number * MESSAGE).min(MESSAGE)];
                match self.begin_receive(*rank, tag, place) {
                    Ok(mut request) => {
                        request.number = number + 1;
                        requests.push(request);
                    }
                    Err(why) => ended = Some(lost(*rank, why)),
                }
            }
            come.push((*rank, pieces, BTreeMap::new()));
        }
        let (mut since, mut unsent) = (Instant::now(), targets.len());
        while ended.is_none() {
            let progress = match meanwhile.work() {
                Ok(progress) => progress,
                Err(error) => {
                    ended = Some(error);
                    break;
                }
            };
            let is_idle = progress.is_none();
            if !is_idle {
                since = Instant::now();
            }
            if let Some(Progress::Ready(rank, bytes)) = progress {
                for piece in 0..bytes.len().div_ceil(MESSAGE).max(1) {
                    let end = bytes.len().min((piece + 1) * MESSAGE);
                    match self.begin_send(rank, tag, bytes.get(piece * MESSAGE..end).unwrap_or_default()) {
                        Ok(request) => requests.push(request),
                        Err(why) => ended = Some(lost(rank, why)),
                    }
                }
                sent.push(bytes);
                unsent = unsent.saturating_sub(1);
            }
            if let Err(error) = self.look(step, &mut requests, &mut done, &mut since) {
                std::mem::forget(sent);
                return Err(error);
            }
            let mut has_come = false;
            for request in done.drain(..).filter(|request: &Request| request.number > 0) {
                let Some((rank, pieces, parts)) = come.iter_mut().find(|(rank, ..)| *rank == request.rank) else {
                    continue;
                };
                parts.insert(request.number, request.bytes);
                if parts.len() == *pieces {
                    let mut parts = std::mem::take(parts).into_values();
                    let mut whole = parts.next().unwrap_or_default();
                    parts.for_each(|mut part| whole.append(&mut part));
                    has_come = true;
                    ended = ended.take().or(meanwhile.take(*rank, whole).err());
                }
            }
            if is_idle && requests.is_empty() && !has_come {
                break;
            }
            if is_idle && since.elapsed() > Duration::from_millis(1) {
                thread::sleep(Duration::from_micros(50));
            }
        }
        match ended {
            Some(error) => {
                std::mem::forget(sent);
                Err(self.abandon(&mut requests, error))
            }
            None if unsent > 0 => Err(self.fail(missing_message(step))),
            None => Ok(()),
        }
    }
}
