//! Knowledge of waits for phases and of arrivals: the order by which phases are checked
//! (`phases.rs`).
//!
//! Law: a wait or an arrival is known to a thread exactly if a chain leads from it to what the
//! thread does now. The links are barriers, arrivals and waits, arrivals that publish no data, and
//! bulk loads, from the issuing thread to those that wait for them. So more waits and arrivals are
//! known than accesses.

use std::rc::Rc;

use super::{Clock, Clocks, Event, Work};

/// The knowledge and the past of a thread at some time.
#[derive(Debug, Clone)]
pub(in crate::interpret) struct Known {
    pub(super) told: Clock,
    pub(super) thread: usize,
    /// The count up to which its own events are included.
    pub(super) count: u32,
}

impl Known {
    /// Whether an event of the thread, or of its asynchronous work, was known to be over.
    pub(in crate::interpret) fn covers(&self, event: Event) -> bool {
        let agent = event.agent();
        let told = self.told.get(agent).is_some_and(|known| *known >= event.count());
        told || (agent == self.thread && event.count() <= self.count)
    }

    /// Whether it equals another.
    pub(in crate::interpret) fn is_same(&self, other: &Known) -> bool {
        Rc::ptr_eq(&self.told, &other.told) && (self.thread, self.count) == (other.thread, other.count)
    }
}

impl Clocks {
    /// A thread has waited for a phase at a node; later events come after it. None if a count
    /// overflows.
    pub(in crate::interpret) fn wait(&mut self, thread: usize, place: usize) -> Option<Event> {
        let event = self.background(thread, Work::Phase, self.counts[thread], place);
        self.advance(thread)?;
        Some(event)
    }

    /// The event of an arrival with release that a thread has just made at an mbarrier.
    pub(in crate::interpret) fn arrival(&self, thread: usize, place: usize) -> Event {
        self.background(thread, Work::Phase, self.counts[thread] - 1, place)
    }

    /// The thread that waited or arrived.
    pub(in crate::interpret) fn owner(&self, event: Event) -> usize {
        event.agent() % self.threads
    }

    /// The past of a thread up to its last release or wait, and its knowledge.
    pub(in crate::interpret) fn known_to(&self, thread: usize) -> Known {
        Known { told: Rc::clone(&self.told[thread]), thread, count: self.counts[thread] - 1 }
    }

    /// Whether a thread knows that this many phases of an mbarrier have completed.
    pub(in crate::interpret) fn knows_phases(&self, thread: usize, object: usize, count: u32) -> bool {
        count == 0 || self.told[thread].get(self.phase_agent(object)).is_some_and(|known| *known >= count)
    }

    /// The knowledge of threads that wait for a phase of an mbarrier after `over` phases: that of
    /// the threads that arrived; and from the threads that issued loads, only waits and arrivals.
    pub(in crate::interpret) fn of_phase(
        &self,
        arrived: &[u32],
        setters: &[Known],
        object: usize,
        count: u32,
    ) -> Clock {
        let mut clock = arrived.to_vec();
        let last = self.phase_agent(object);
        clock.resize(clock.len().max(last + 1), 0);
        for agent in [self.load_agent(object), last] {
            clock[agent] = clock[agent].max(count);
        }
        let waits = Work::Phase as usize * self.threads;
        let first = self.phase_agent(0);
        for Known { told, thread, count } in setters {
            clock.resize(clock.len().max(told.len()), 0);
            let agents = (waits..waits + self.threads).chain((first..told.len()).step_by(2));
            for agent in agents.take_while(|agent| *agent < told.len()) {
                clock[agent] = clock[agent].max(told[agent]);
            }
            clock[waits + thread] = clock[waits + thread].max(*count);
        }
        clock.into()
    }
}
