//! Fences between accesses of threads and those of TMA and of products.
//!
//! Law: in shared memory a fence is made by the thread that stored, and known to the one that sets
//! off the access. In global memory it is made by a thread of the block that issues the access,
//! which knows of the store when it makes it; the access is issued by who knows of the fence.

use std::ops::Range;

use super::{Agent, Clocks, Event, Known, MAX_COUNT, Work};

impl Clocks {
    /// What a thread has done is ordered before asynchronous accesses of those that it tells from
    /// now on.
    pub(in crate::interpret) fn fence(&mut self, thread: usize) -> Option<()> {
        let copies = self.done[0].get(thread).copied().unwrap_or(0);
        self.fences[thread].push((self.counts[thread], copies));
        self.advance(thread)
    }

    /// What a thread has done in global memory, and knows others to have done, is ordered before
    /// asynchronous accesses of its block that follow.
    pub(in crate::interpret) fn fence_global(&mut self, thread: usize) -> Option<()> {
        let known = Known { count: self.counts[thread], ..self.known_to(thread) };
        self.global_fences.entry(thread).or_default().push(known);
        self.advance(thread)
    }

    /// Of each of some threads the last fence for global memory that a thread knows of.
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

    /// How many blocks of the launch had told a thread, when it made the fence, what they knew.
    pub(in crate::interpret) fn arrivals_at(&self, fence: &Known) -> u32 {
        fence.told.get(self.grid_agent()).copied().unwrap_or(0)
    }

    /// Barriers that a thread has initialised are published to those that it tells from now on.
    pub(in crate::interpret) fn publish(&mut self, thread: usize) -> Option<()> {
        self.published[thread].push((self.counts[thread], 0));
        self.advance(thread)
    }

    /// Whether what an event wrote was followed by a fence of its thread that the given thread
    /// knows of. What bulk copies write needs none.
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
