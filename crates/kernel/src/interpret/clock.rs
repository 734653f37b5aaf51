//! Vector clocks: which events happened before what a thread of a cluster does next.
//!
//! Law: an access is ordered before what a thread does next exactly if the thread made it itself,
//! or if a chain of barriers leads from one to the other. Each *agent* counts its events; a
//! thread's clock holds, for each agent, the count up to which it knows them. Agents are the
//! threads. For each thread, further agents are its asynchronous copies, and the reads and the
//! writes of its bulk stores; and, for arrivals at mbarriers of other blocks that publish only
//! this, its own reads, and its waits for phases and arrivals (`phases.rs`). Also agents are the
//! mbarriers on which bulk loads complete, and their completed phases; and the counter of the
//! launch (`arrivals.rs`). Asynchronous events of an agent are known to a thread that waits for
//! them, and to those that this thread synchronizes with.
//!
//! Threads that left a barrier together share one clock. Each also has its own counts, so a barrier
//! costs one pass over the agents.

mod fences;
mod known;

use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) use known::Known;

/// An access in the history of a cluster: its agent, its count, and its instruction.
///
/// Zero means no access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Event(u64);

const COUNT_BITS: u32 = 26;
const PLACE_BITS: u32 = 20;
const AGENT_BITS: u32 = 17;

/// The greatest count of an agent.
pub(super) const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;
/// The most instructions of a program.
pub(super) const MAX_PLACES: usize = 1 << PLACE_BITS;
/// The most agents of a cluster.
pub(super) const MAX_AGENTS: usize = 1 << AGENT_BITS;

impl Event {
    pub(super) const NONE: Event = Event(0);

    /// The event of an agent at a count, from 1 to [`MAX_COUNT`], by the instruction of a node.
    pub(super) fn new(agent: usize, count: u32, place: usize) -> Event {
        Event((agent as u64) << (COUNT_BITS + PLACE_BITS) | (place as u64) << COUNT_BITS | u64::from(count))
    }

    pub(super) fn is_some(self) -> bool {
        self.0 != 0
    }

    pub(super) fn agent(self) -> usize {
        (self.0 >> (COUNT_BITS + PLACE_BITS)) as usize
    }

    pub(super) fn place(self) -> usize {
        (self.0 >> COUNT_BITS) as usize & (MAX_PLACES - 1)
    }

    pub(super) fn count(self) -> u32 {
        self.0 as u32 & MAX_COUNT
    }

    /// The bits. The highest one is never set.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    pub(super) fn from_bits(bits: u64) -> Event {
        Event(bits)
    }
}

/// A kind of asynchronous work of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Asynchronous copies; the count is that of the group.
    Copy = 1,
    /// The reads of bulk stores in shared memory.
    StoreRead = 2,
    /// The writes of bulk stores in global memory.
    StoreWrite = 3,
    /// The reads of wgmma in shared memory, recorded for the first thread of the warp; the count is
    /// that of the group.
    Multiply = 4,
    /// Reads of the thread itself, if they have separate clocks; the count is that of the thread.
    Read = 5,
    /// The thread's waits for phases of mbarriers, and its arrivals there; the count is that of the
    /// thread. Arrivals that publish no data still publish these.
    Phase = 6,
}

/// The number of kinds of work.
const WORKS: usize = 6;

/// The agent of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agent {
    /// A thread itself.
    Thread(usize),
    /// Work that a thread has issued.
    Work(usize, Work),
    /// A bulk load that arrives at the mbarrier with this number.
    Load(usize),
    /// The launches before this one.
    Launches,
    /// The counter of the launch; its count is the number of counted blocks.
    Grid,
}

impl Agent {
    /// Whether its events are asynchronous to a thread.
    pub(super) fn is_background(self) -> bool {
        !matches!(self, Agent::Thread(_) | Agent::Work(_, Work::Read | Work::Phase))
    }
}

/// A clock: for each agent, the count up to which its events are known; 0 for agents past its end.
pub(super) type Clock = Rc<[u32]>;

/// The clocks of all threads of a cluster.
#[derive(Debug)]
pub(super) struct Clocks {
    threads: usize,
    /// Whether reads of threads have clocks that are separate from those of writes.
    reads: bool,
    /// The clock of each thread.
    told: Vec<Clock>,
    /// The current count of each thread, from 1.
    counts: Vec<u32>,
    /// For each [`Work`], the count up to which each thread's own asynchronous work has completed;
    /// empty if a program has none.
    done: [Vec<u32>; WORKS],
    /// For each thread, its fences in ascending order: the count that the fence ends, and the group
    /// up to which its copies had completed.
    fences: Vec<Vec<(u32, u32)>>,
    /// As `fences`, for fences that publish mbarriers.
    published: Vec<Vec<(u32, u32)>>,
    /// For each thread that has made fences for global memory, these fences in order.
    global_fences: BTreeMap<usize, Vec<Known>>,
}

impl Clocks {
    /// The clocks at the beginning of a cluster. Reads have separate clocks only if there is
    /// asynchronous work.
    pub(super) fn new(threads: usize, background: bool, reads: bool) -> Clocks {
        let nothing: Clock = Rc::from([]);
        let done = || vec![0; if background { threads } else { 0 }];
        Clocks {
            threads,
            reads: reads && background,
            told: vec![nothing; threads],
            counts: vec![1; threads],
            done: std::array::from_fn(|_| done()),
            fences: vec![Vec::new(); threads],
            published: vec![Vec::new(); threads],
            global_fences: BTreeMap::new(),
        }
    }

    /// The agent of an event.
    pub(super) fn agent(&self, agent: usize) -> Agent {
        let thread = agent % self.threads;
        match agent / self.threads {
            0 => Agent::Thread(thread),
            1 => Agent::Work(thread, Work::Copy),
            2 => Agent::Work(thread, Work::StoreRead),
            3 => Agent::Work(thread, Work::StoreWrite),
            4 => Agent::Work(thread, Work::Multiply),
            5 => Agent::Work(thread, Work::Read),
            6 => Agent::Work(thread, Work::Phase),
            _ => match agent - (WORKS + 1) * self.threads {
                0 => Agent::Launches,
                1 => Agent::Grid,
                object => Agent::Load((object - 2) / 2),
            },
        }
    }

    /// The number of the agent for bulk loads at an mbarrier.
    pub(super) fn load_agent(&self, object: usize) -> usize {
        (WORKS + 1) * self.threads + 2 + 2 * object
    }

    /// The number of the agent whose count is the number of completed phases of an mbarrier.
    fn phase_agent(&self, object: usize) -> usize {
        self.load_agent(object) + 1
    }

    /// The number of the agent for the launch counter.
    fn grid_agent(&self) -> usize {
        (WORKS + 1) * self.threads + 1
    }

    /// An event of a thread at the present time, by a node.
    pub(super) fn now(&self, thread: usize, place: usize) -> Event {
        Event::new(thread, self.counts[thread], place)
    }

    /// A read of a thread at the present time, by a node.
    pub(super) fn reading(&self, thread: usize, place: usize) -> Event {
        if self.reads {
            self.background(thread, Work::Read, self.counts[thread], place)
        } else {
            self.now(thread, place)
        }
    }

    /// The event of asynchronous work of a thread.
    pub(super) fn background(&self, thread: usize, work: Work, count: u32, place: usize) -> Event {
        Event::new(work as usize * self.threads + thread, count, place)
    }

    /// Whether an event is ordered before what a thread does now.
    #[inline]
    pub(super) fn ordered(&self, event: Event, thread: usize) -> bool {
        let agent = event.agent();
        if agent == thread {
            return true;
        }
        let known = self.told[thread].get(agent).copied().unwrap_or(0);
        known >= event.count() || (agent >= self.threads && self.own(agent, thread) >= event.count())
    }

    /// The count up to which a thread knows that its own asynchronous work has completed; 0 for
    /// that of another thread.
    fn own(&self, agent: usize, thread: usize) -> u32 {
        let (work, owner) = (agent / self.threads, agent % self.threads);
        if owner != thread || !(1..=WORKS).contains(&work) {
            return 0;
        }
        if work == Work::Read as usize || work == Work::Phase as usize {
            return MAX_COUNT;
        }
        self.done[work - 1].get(thread).copied().unwrap_or(0)
    }

    /// The count up to which a thread's asynchronous work has completed.
    pub(super) fn done(&self, thread: usize, work: Work) -> u32 {
        self.done[work as usize - 1][thread]
    }

    /// A thread has waited for its background work up to a count.
    pub(super) fn finish(&mut self, thread: usize, work: Work, count: u32) {
        let done = &mut self.done[work as usize - 1][thread];
        *done = (*done).max(count);
    }

    /// The greatest count of an agent that any thread knows.
    pub(super) fn known_to_any(&self, agent: usize) -> u32 {
        self.told.iter().filter_map(|clock| clock.get(agent)).copied().max().unwrap_or(0)
    }

    /// All given threads learn that asynchronous work of one of them has completed up to a count.
    pub(super) fn finish_for(&mut self, threads: impl Iterator<Item = usize>, owner: usize, work: Work, count: u32) {
        let nothing: Clock = Rc::from([]);
        let clock = with(&nothing, work as usize * self.threads + owner, count);
        self.acquire(threads, &clock);
    }

    /// The joint knowledge of the given threads, including their own events so far. None if a count
    /// overflows.
    pub(super) fn release(&mut self, threads: impl Iterator<Item = usize> + Clone) -> Option<Clock> {
        let agents = if self.done[0].is_empty() { self.threads } else { (WORKS + 1) * self.threads };
        let mut clock = vec![0; agents];
        let mut last: Option<&Clock> = None;
        for thread in threads.clone() {
            let told = &self.told[thread];
            if last.is_some_and(|last| Rc::ptr_eq(last, told)) {
                continue;
            }
            join(&mut clock, told);
            last = Some(told);
        }
        for thread in threads {
            clock[thread] = self.counts[thread];
            if self.reads {
                clock[Work::Read as usize * self.threads + thread] = self.counts[thread];
            }
            if let Some(entry) = clock.get_mut(Work::Phase as usize * self.threads + thread) {
                *entry = self.counts[thread];
            }
            for (work, done) in self.done.iter().enumerate() {
                if let Some(done) = done.get(thread) {
                    let entry = &mut clock[(work + 1) * self.threads + thread];
                    *entry = (*entry).max(*done);
                }
            }
            self.advance(thread)?;
        }
        Some(clock.into())
    }

    /// The reads that a thread has made or knows of, for threads that may not rely on its writes:
    /// an arrival without release. None if a count overflows.
    pub(super) fn release_reads(&mut self, thread: usize) -> Option<Clock> {
        let mut clock = self.told[thread].to_vec();
        clock.resize(clock.len().max((WORKS + 1) * self.threads), 0);
        for work in [0, Work::Copy as usize, Work::StoreWrite as usize] {
            clock[work * self.threads..][..self.threads].fill(0);
        }
        if let Some(arrivals) = clock.get_mut(self.grid_agent()) {
            *arrivals = 0;
        }
        for work in [Work::StoreRead, Work::Multiply] {
            let entry = &mut clock[work as usize * self.threads + thread];
            *entry = (*entry).max(self.done(thread, work));
        }
        for work in [Work::Read, Work::Phase] {
            clock[work as usize * self.threads + thread] = self.counts[thread];
        }
        self.advance(thread)?;
        Some(clock.into())
    }

    /// The given threads have waited for the previous launches.
    pub(super) fn wait_for_launches(&mut self, threads: impl Iterator<Item = usize>) {
        let nothing: Clock = Rc::from([]);
        let clock = with(&nothing, (WORKS + 1) * self.threads, 1);
        self.acquire(threads, &clock);
    }

    /// Whether a thread knows that the previous launches have finished.
    pub(super) fn knows_launches(&self, thread: usize) -> bool {
        self.told[thread].get((WORKS + 1) * self.threads).is_some_and(|count| *count > 0)
    }

    /// A thread learns of the first `count` counted blocks of the launch.
    pub(super) fn know_arrivals(&mut self, thread: usize, count: u32) {
        let nothing: Clock = Rc::from([]);
        let clock = with(&nothing, self.grid_agent(), count);
        self.acquire(std::iter::once(thread), &clock);
    }

    /// The number of counted blocks of the launch that a thread knows of.
    pub(super) fn known_arrivals(&self, thread: usize) -> u32 {
        self.told[thread].get(self.grid_agent()).copied().unwrap_or(0)
    }

    /// Whether a thread knows anything of what some threads have done.
    pub(super) fn knows_any(&self, thread: usize, mut others: std::ops::Range<usize>) -> bool {
        others.any(|other| self.told[thread].get(other).is_some_and(|count| *count > 0))
    }

    /// The given threads learn what is in a clock.
    pub(super) fn acquire(&mut self, threads: impl Iterator<Item = usize>, clock: &Clock) {
        // Threads with equal knowledge before have equal knowledge afterwards.
        let mut last: Option<(Clock, Clock)> = None;
        for thread in threads {
            let before = Rc::clone(&self.told[thread]);
            let after = match &last {
                Some((known, after)) if Rc::ptr_eq(known, &before) => Rc::clone(after),
                _ => joined(&before, clock),
            };
            self.told[thread] = Rc::clone(&after);
            last = Some((before, after));
        }
    }

    fn advance(&mut self, thread: usize) -> Option<()> {
        let count = &mut self.counts[thread];
        *count = Some(*count + 1).filter(|count| *count < MAX_COUNT)?;
        Some(())
    }
}

/// Joins a clock with another one.
fn join(clock: &mut Vec<u32>, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (entry, other) in clock.iter_mut().zip(other) {
        *entry = (*entry).max(*other);
    }
}

/// The union of two clocks.
pub(super) fn joined(first: &Clock, second: &Clock) -> Clock {
    if Rc::ptr_eq(first, second) {
        return Rc::clone(first);
    }
    let mut clock = first.to_vec();
    join(&mut clock, second);
    clock.into()
}

/// A clock that also knows the events of an agent up to a count.
pub(super) fn with(clock: &Clock, agent: usize, count: u32) -> Clock {
    let mut clock = clock.to_vec();
    if clock.len() <= agent {
        clock.resize(agent + 1, 0);
    }
    clock[agent] = clock[agent].max(count);
    clock.into()
}
