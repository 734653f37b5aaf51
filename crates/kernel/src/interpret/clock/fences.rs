//! Proxy fences between ordinary accesses of threads and those of TMA and wgmma.
//!
//! Law: in shared memory, a fence is made by the thread that stored, and must be known to the
//! thread that issues the access. In global memory, it is made by a thread of the block that issues
//! the access, which must know of the store when it makes it; the access is issued by a thread that
//! knows of the fence.

use std::ops::Range;

use super::{Agent, Clocks, Event, Known, MAX_COUNT, Work};

impl Clocks {
    /// Orders the past of a thread before asynchronous accesses of threads that it tells from now
    /// on.
    pub(in crate::interpret) fn fence(&mut self, thread: usize) -> Option<()> {
        let copies = self.done[0].get(thread).copied().unwrap_or(0);
        self.fences[thread].push((self.counts[thread], copies));
        self.advance(thread)
    }

    /// Orders accesses to global memory that a thread has made or knows of before asynchronous
    /// accesses of its block that follow.
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

    /// The number of blocks of the launch that a thread had been told of when it made the fence.
    pub(in crate::interpret) fn arrivals_at(&self, fence: &Known) -> u32 {
        fence.told.get(self.grid_agent()).copied().unwrap_or(0)
    }

    /// Barriers that a thread has initialised are published to those that it tells from now on.
    pub(in crate::interpret) fn publish(&mut self, thread: usize) -> Option<()> {
        self.published[thread].push((self.counts[thread], 0));
        self.advance(thread)
    }

    /// Whether the write of an event was followed by a fence of its thread that the given thread
    /// knows of. Writes of bulk copies need none.
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

    /// Whether the initialisation of a barrier was followed by its publication, of which the given
    /// thread knows.
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
