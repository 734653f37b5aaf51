//! Which phase of an mbarrier a wait observes, and in which phase an arrival counts.
//!
//! Law: in every execution, a wait observes the same phase as in this one, and an arrival counts in
//! the same phase; otherwise there is a finding. A wait sees only parities: a thread that is too
//! early takes the phase two before for its own, and one that is too late waits for the phase after
//! the next. So for phase `p`, all of this must follow from what is known:
//!
//! * a thread that waits for it knows that phase `p - 1` has completed;
//! * the thread that completes phase `p + 1` knows of the wait;
//! * a thread that arrives in it, or issues a bulk load that arrives in it, knows that phase `p -
//!   1` has completed.
//!
//! ARCHITECTURE.md shows why these three are enough. `clock/known.rs` defines what is known: here
//! arrivals that publish no data count, too. A thread that knows of all arrivals of a phase without
//! bytes knows that the phase has completed.

use super::clock::{Clock, Clocks, Event, Known};
use super::finding::{Defect, PhaseFault};
use super::machine::{InterpretedRun, MAX_FINDINGS, Stop};
use super::touch::Actor;

/// The events of one phase of an mbarrier.
#[derive(Debug, Default)]
struct BarrierPhase {
    arrivals: Vec<Event>,
    /// Whether bytes arrived, or were expected.
    bytes: bool,
}

/// The recorded phases of an mbarrier.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// The current phase, the last completed one, and the one before it.
    recent: [BarrierPhase; 3],
    /// The waits for the last finished phase.
    waits: Vec<Event>,
    /// The knowledge of threads that issued the loads of the current phase.
    setters: Vec<Known>,
    /// The first arrival that may count in the phase before its own, and the number of its own
    /// phase.
    misplaced: Option<(Actor, i64)>,
}

impl Phases {
    /// Records an arrival of a thread.
    pub(super) fn arrive(&mut self, event: Event, expects: bool) {
        self.recent[0].arrivals.push(event);
        self.recent[0].bytes |= expects;
    }

    /// Records the arrival of a bulk load.
    pub(super) fn load(&mut self, setter: &Known) {
        self.recent[0].bytes = true;
        if self.setters.last().is_none_or(|last| !last.is_same(setter)) {
            self.setters.push(setter.clone());
        }
    }

    /// Begins a phase. Returns the knowledge of the threads that wait for the completed phase, and
    /// a wait for the phase before it that they do not know of.
    pub(super) fn next(
        &mut self,
        clocks: &Clocks,
        arrived: &[u32],
        object: usize,
        over: u32,
    ) -> (Clock, Option<Event>) {
        let clock = clocks.of_phase(arrived, &self.setters, object, over);
        let unknown = |wait: &Event| clock.get(wait.agent()).is_none_or(|known| *known < wait.count());
        let missed = self.waits.iter().copied().find(unknown);
        self.waits.clear();
        self.setters.clear();
        self.recent.rotate_right(1);
        self.recent[0] = BarrierPhase::default();
        (clock, missed)
    }

    /// Whether a thread knows that a phase has completed, from its knowledge of the arrivals: the
    /// last completed phase, or the one `before` it.
    fn are_known(&self, clocks: &Clocks, thread: usize, before: usize) -> bool {
        let phase = &self.recent[1 + before];
        !phase.bytes && phase.arrivals.iter().all(|arrival| clocks.ordered(*arrival, thread))
    }
}

impl InterpretedRun<'_> {
    /// Whether a thread knows that the last completed phase of an mbarrier has completed, or the
    /// one `before` it.
    fn knows_over(&self, thread: usize, at: usize, before: u32) -> bool {
        let (object, clocks) = (&self.block.objects[at], &self.block.clocks);
        match object.phase.checked_sub(before) {
            None | Some(0) => true,
            Some(over) => {
                clocks.knows_phases(thread, at, over) || object.phases.are_known(clocks, thread, before as usize)
            }
        }
    }

    /// Keeps a finding for the end of the run. Other findings say more, and often are the cause.
    fn report_phase(&mut self, by: Actor, at: usize, phase: i64, fault: PhaseFault) {
        let defect = Defect::Phase { place: self.object_place(at), phase, fault };
        if let Some(finding) = self.finding(defect, by.place, Some(by.thread))
            && self.phase_findings.len() < MAX_FINDINGS
        {
            self.phase_findings.push(finding);
        }
    }

    /// Reports phase findings, if there are no other findings than deadlocks or unfinished phases.
    pub(super) fn report_phases(&mut self) {
        let kept = std::mem::take(&mut self.phase_findings);
        let of_ending = |defect: &Defect| {
            matches!(defect, Defect::Deadlock { .. } | Defect::StepLimit { .. } | Defect::Interrupted)
        };
        if self.findings.iter().all(|finding| of_ending(&finding.defect)) {
            self.findings.splice(..0, kept);
        }
    }

    /// Checks an arrival at an mbarrier, or a bulk load that will arrive there, before it counts in
    /// the current phase.
    pub(super) fn counts_in_phase(&mut self, by: Actor, at: usize) {
        if self.knows_over(by.thread, at, 0) {
            return;
        }
        let object = &mut self.block.objects[at];
        let phase = i64::from(object.phase);
        // If no thread waits, no thread observes the phase in which it counts.
        match object.phases.waits.is_empty() {
            true => {
                object.phases.misplaced.get_or_insert((by, phase));
            }
            false => self.report_phase(by, at, phase, PhaseFault::Arrival),
        }
    }

    /// Checks a wait that has observed that the last phase has completed.
    pub(super) fn sees_phase(&mut self, by: Actor, at: usize) -> Result<(), Stop> {
        let phase = i64::from(self.block.objects[at].phase) - 1;
        if phase > 0 && !self.knows_over(by.thread, at, 1) {
            self.report_phase(by, at, phase, PhaseFault::Early);
        }
        // The phase before that of the arrival, or a later one.
        if let Some((arrival, own)) = self.block.objects[at].phases.misplaced.take_if(|(_, own)| *own <= phase + 1) {
            self.report_phase(arrival, at, own, PhaseFault::Arrival);
        }
        let event = self.block.clocks.wait(by.thread, by.place);
        let event = self.counted(event)?;
        self.block.objects[at].phases.waits.push(event);
        Ok(())
    }

    /// Reports a wait for the phase before the last one that nothing orders before the last one.
    pub(super) fn misses_phase(&mut self, wait: Event, at: usize) {
        let by = Actor { place: wait.place(), thread: self.block.clocks.owner(wait) };
        let phase = i64::from(self.block.objects[at].phase) - 2;
        self.report_phase(by, at, phase, PhaseFault::Missed);
    }

    /// For a thread that waits forever: reports if the phase that it waits for may have completed
    /// earlier, so that the wait has missed it.
    pub(super) fn came_too_late(&mut self, by: Actor, at: usize) {
        let phase = i64::from(self.block.objects[at].phase) - 2;
        if phase >= 0 && !self.knows_over(by.thread, at, 0) {
            self.report_phase(by, at, phase, PhaseFault::Missed);
        }
    }
}
