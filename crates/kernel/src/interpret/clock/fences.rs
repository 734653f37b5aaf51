//! Proxy fences between the generic proxy and the async proxy (TMA and wgmma).
//!
//! Law: in shared memory, the thread that stored executes the fence, and the thread that issues the
//! access must know of it. In global memory, a thread of the block that issues the access executes
//! the fence, and must know of the store at that time; the access is issued by a thread that knows
//! of the fence.

use std::ops::Range;

use super::{Agent, Clocks, Event, Known, MAX_COUNT, Work};

impl Clocks {
    /// Orders what a thread has done before asynchronous accesses of threads that learn of the
    /// fence.
    pub(in crate::interpret) fn fence(&mut self, thread: usize) -> Option<()> {
        let copies = self.done[0].get(thread).copied().unwrap_or(0);
        self.fences[thread].push((self.counts[thread], copies));
        self.advance(thread)
    }

    /// Orders accesses to global memory that a thread has made or knows of before later
    /// asynchronous accesses of its block.
    pub(in crate::interpret) fn fence_global(&mut self, thread: usize) -> Option<()> {
        let known = Known { count: self.counts[thread], ..self.known_to(thread) };
        self.global_fences.entry(thread).or_default().push(known);
        self.advance(thread)
    }

    /// For each of some threads, the last fence for global memory that a thread knows of.
    pub(in crate::interpret) fn fences_known(&self, thread: usize, of: Range<usize>) -> Vec<&Known> {
        let last = |(other, fences): (&usize, &'_ Vec<Known>)| {
            let known = match *other == thread {
                true => MAX_COUNT,
                false => self.told[thread].get(*other).copied().unwrap_or(0),
            };
            fences.partition_point(|fence| fence.count <= known).checked_sub(1)
        };
        let found = self.global_fences.range(of);
        found.filter_map(|(other, fences)| fences.get(last((other, fences))?)).collect()
    }

    /// The number of counted blocks of the launch that a thread knew of when it executed the fence.
    pub(in crate::interpret) fn arrivals_at(&self, fence: &Known) -> u32 {
        fence.told.get(self.grid_agent()).copied().unwrap_or(0)
    }

    /// Publishes mbarriers that a thread has initialised to threads that learn of this.
    pub(in crate::interpret) fn publish(&mut self, thread: usize) -> Option<()> {
        self.published[thread].push((self.counts[thread], 0));
        self.advance(thread)
    }

    /// Whether a fence that the given thread knows of follows the write of an event, by the same
    /// thread. Writes of bulk copies need none.
    pub(in crate::interpret) fn fenced(&self, event: Event, thread: usize) -> bool {
        match self.agent(event.agent()) {
            Agent::Thread(writer) => {
                let next = self.fences[writer].partition_point(|(count, _)| *count < event.count());
                self.knows(&self.fences[writer], next, writer, thread)
            }
            Agent::Work(writer, Work::Copy) => {
                let next = self.fences[writer].partition_point(|(_, copies)| *copies < event.count());
                self.knows(&self.fences[writer], next, writer, thread)
            }
            Agent::Work(..) | Agent::Load(_) | Agent::Launches | Agent::Grid => true,
        }
    }

    /// Whether a publication that the given thread knows of follows the initialisation of an
    /// mbarrier.
    pub(in crate::interpret) fn is_published(&self, event: Event, thread: usize) -> bool {
        let writer = event.agent();
        let Some(published) = self.published.get(writer) else { return true };
        let next = published.partition_point(|(count, _)| *count < event.count());
        self.knows(published, next, writer, thread)
    }

    /// Whether a thread knows of a fence of another.
    fn knows(&self, fences: &[(u32, u32)], at: usize, writer: usize, thread: usize) -> bool {
        fences.get(at).is_some_and(|(fence, _)| {
            writer == thread || self.told[thread].get(writer).is_some_and(|known| known >= fence)
        })
    }
}
