//! The end of a run: deadlocks, and unwritten outputs.
//!
//! Law: if no warp can proceed, a finding says where each one waits and for what. When all have
//! exited, each element of an output must have been written.

use super::finding::{Defect, Finding, Waiting};
use super::machine::{InterpretedRun, Stop};
use super::touch::Actor;
use super::warp::{State, Warp};
use crate::program::WARP_LANES;
use crate::program::memory::{BufferId, Role, Space};

impl InterpretedRun<'_> {
    /// Reports a deadlock.
    pub(super) fn stuck(&mut self, warps: &[Warp]) -> Result<(), Stop> {
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut ended = Vec::new();
        let mut barrier = None;
        let mut others = false;
        let (mut missing_bytes, mut registers, mut late) = (None, None, Vec::new());
        for warp in warps {
            let first = self.in_block(warp.thread(0));
            let last = first + warp.exists.count_ones().max(1) - 1;
            let (what, place) = match warp.state {
                State::Barrier { number, place } => {
                    let what = if number == 0 {
                        barrier = barrier.or(Some((place, warp.thread(0))));
                        "at the barrier of the block".to_string()
                    } else {
                        others = true;
                        self.rendezvous_text(warp.rank, number)
                    };
                    (what, Some(place))
                }
                State::Registers { place, count } => {
                    others = true;
                    let free = self.block.pools[warp.rank];
                    registers = registers.or(Some((count, free, place, warp.thread(0))));
                    (format!("for {count} registers a thread"), Some(place))
                }
                State::Cluster { place } => {
                    others = true;
                    (self.gathering_text(), Some(place))
                }
                State::Phase { place, lanes } => {
                    others = true;
                    let lane = lanes.trailing_zeros() as usize % WARP_LANES;
                    let by = Actor { place, thread: warp.thread(lane) };
                    late.extend(self.waited_for(warp, place, lane).map(|at| (by, at)));
                    let (what, bytes) = self.phase_text(warp, place, lanes);
                    missing_bytes =
                        missing_bytes.or(bytes.map(|(object, expects)| (object, expects, place, warp.thread(0))));
                    (what, Some(place))
                }
                State::Ready | State::Done => {
                    ended.extend(first..=last);
                    ("have ended".to_string(), None)
                }
            };
            let source = place.map(|place| self.source_at(place));
            match waiting.last_mut() {
                Some(run)
                    if run.source == source
                        && run.what == what
                        && run.rank == self.rank_named(warp.rank)
                        && run.threads.1 + 1 == first =>
                {
                    run.threads.1 = last;
                }
                _ => waiting.push(Waiting { threads: (first, last), rank: self.rank_named(warp.rank), source, what }),
            }
        }
        for (by, at) in late {
            self.came_too_late(by, at);
        }
        let (defect, place, thread) = match (barrier, missing_bytes) {
            _ if registers.is_some() => {
                let (asked, free, place, thread) = registers.unwrap_or_default();
                let what = "the block does not have that many";
                (Defect::Registers { what, asked, free }, place, Some(thread))
            }
            (Some((place, thread)), _) if !others && !ended.is_empty() => {
                let expected = self.program.threads;
                (Defect::BarrierNotReached { missing: ended, expected }, place, Some(thread))
            }
            (_, Some((object, expects, place, thread))) => {
                let place_of = self.object_place(object);
                (Defect::TransactionBytes { place: place_of, expects }, place, Some(thread))
            }
            _ => (Defect::Deadlock { waiting }, usize::MAX, None),
        };
        self.report(defect, place, thread)?;
        Err(Stop)
    }

    /// Reports outputs with elements that were not written.
    pub(super) fn check_outputs(&mut self) {
        for (index, buffer) in self.program.buffers.iter().enumerate() {
            if buffer.space != Space::Global || buffer.role != Role::Output {
                continue;
            }
            let extent = &self.setup.extents[index];
            let bytes = u64::from(buffer.element.bytes());
            let written = |element: u64| {
                let (first, last) = ((element * bytes) >> extent.shift, (element * bytes + bytes - 1) >> extent.shift);
                (first..=last).all(|cell| self.globals[index].writers[cell as usize].event.is_some())
            };
            let (mut missing, mut first) = (0, None);
            let mut look = |element: u64| {
                if !written(element) {
                    missing += 1;
                    first = first.or(Some(element));
                }
            };
            match &extent.elements {
                Some(elements) => elements.iter().copied().for_each(&mut look),
                None => (0..extent.bytes / bytes).for_each(&mut look),
            }
            if let Some(first) = first {
                let place = self.place(BufferId(index as u32), (first * bytes) as i64, bytes);
                // There is one finding for each output, without a node.
                self.findings.push(Finding {
                    defect: Defect::NeverWritten { place, elements: missing },
                    source: None,
                    thread: None,
                    schedule: self.schedule,
                });
            }
        }
    }
}
