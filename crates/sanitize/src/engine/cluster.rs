//! A running cluster of blocks: turns of its warps, barriers, hangs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::code::{Callee, NOWHERE, Program};
use super::execute::MAX_LOCAL;
use super::memory::{Memory, Words};
use super::schedule::Schedule;
use super::warp::{Fragment, State, Warp};
use crate::check::checker::{Checker, Lanes};
use crate::check::finding::{Defect, Finding, Thread, Waiting};

/// How often a fragment polls an unchanged value before it gives way to others.
pub(super) const POLLS_FOR_TURN: u32 = 16;
/// How often a fragment polls before it counts as hanging, if all others hang too.
const POLLS_FOR_HANG: u32 = 4096;
/// The number of instructions of a turn.
const TURN: u64 = 1024;
/// The most lines that a launch prints.
const MAX_PRINTED: usize = 10_000;

/// Why a run stops early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// An unknown instruction: the statement, and the reason.
    Refused(u32, String),
    /// `trap` or a failed assertion, which has been reported.
    Trapped,
    /// A hang, which has been reported.
    Hung,
    /// The limit of instructions is reached.
    Limit,
    /// The caller interrupted the run.
    Interrupted,
    /// There are so many findings that further ones would be of no use.
    Full,
}

/// The state that all clusters of a launch share.
pub(crate) struct Grid<'g> {
    pub(crate) program: &'g Program,
    pub(crate) memory: &'g Memory,
    pub(crate) parameters: Words,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) is_cluster: bool,
    pub(crate) shared_bytes: u64,
    pub(crate) dynamic_bytes: u64,
    /// Whether one thread of the host runs all clusters.
    pub(crate) alone: bool,
    pub(crate) schedule: Schedule,
    /// The number of thread instructions that were executed, and that are allowed.
    pub(crate) steps: AtomicU64,
    pub(crate) limit: u64,
    /// A counter of events that may let a waiting thread continue.
    pub(crate) news: AtomicU64,
    /// Held while an access that may synchronise is both reported and performed.
    pub(crate) strong: Mutex<()>,
    pub(crate) printed: Mutex<Vec<String>>,
    /// The bytes of the heap that `malloc` has allocated.
    pub(crate) allocated: AtomicU64,
    pub(crate) stop: &'g (dyn Fn() -> bool + Sync),
}

/// The bytes of a register for all lanes of a warp.
const ROW_BYTES: u64 = 256;

impl Grid<'_> {
    /// The bytes of the registers and the shared memory of a cluster.
    pub(crate) fn cluster_bytes(&self) -> u64 {
        let product = |own: [u32; 3]| own.iter().map(|own| u64::from(*own)).product::<u64>();
        let code = &self.program.functions[self.program.entry.function as usize];
        let warps = product(self.block).div_ceil(32);
        product(self.cluster) * (self.shared_bytes + warps * ROW_BYTES * u64::from(code.slots))
    }

    pub(super) fn print(&self, line: String) {
        if let Ok(mut printed) = self.printed.lock()
            && printed.len() < MAX_PRINTED
        {
            printed.push(line);
        }
    }
}

/// The arrivals at a barrier of a block.
#[derive(Default)]
pub(super) struct BarrierState {
    /// The number of threads that the instruction names; None for all threads of the block.
    pub(super) count: Option<u32>,
    pub(super) arrivals: Vec<BarrierArrival>,
}

#[derive(Clone, Copy)]
pub(super) struct BarrierArrival {
    pub(super) warp: u32,
    pub(super) mask: u32,
    pub(super) at: u32,
    pub(super) waits: bool,
    /// Diverged lanes of the warp, which are expected only after the barrier. 0 if the lanes of a
    /// warp need not arrive together.
    pub(super) parted: u32,
    /// The lanes whose predicate is true.
    pub(super) votes: u32,
}

/// A block.
pub(crate) struct Block {
    pub(super) rank: u32,
    pub(super) index: [u32; 3],
    pub(super) shared: Words,
    pub(super) warps: Vec<Warp>,
    pub(super) barriers: Vec<BarrierState>,
    pub(super) is_done: bool,
}

/// The result of a cluster's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// All threads have exited.
    Done,
    /// Some threads can continue.
    More,
    /// All threads wait, and some of them wait for other clusters.
    Waits,
}

/// A cluster of blocks; a single block in a launch without clusters.
pub(crate) struct Cluster<'g> {
    pub(super) grid: &'g Grid<'g>,
    pub(crate) check: Box<dyn Checker + Send + 'g>,
    /// Whether each instruction is reported to the checker.
    pub(super) counts: bool,
    pub(super) blocks: Vec<Block>,
    /// Its index in the grid, along x, y and z.
    pub(super) index: [u32; 3],
    /// The number of completed phases of the cluster barrier, and the lanes that have arrived in
    /// the current phase.
    pub(super) phase: u64,
    pub(super) arrived: u32,
    pub(super) near: usize,
    /// Thread instructions that were not yet added to those of the launch.
    pub(super) steps: u64,
    pub(super) asynchronous: super::engines::AsyncState,
    /// The marks on values, if the checker watches uses.
    pub(super) marks: Option<Box<super::marks::MarksOfCluster>>,
    random: super::schedule::Random,
}

impl<'g> Cluster<'g> {
    pub(crate) fn new(grid: &'g Grid<'g>, number: u64, check: Box<dyn Checker + Send + 'g>) -> Self {
        let extent = |axis: usize| u64::from(grid.grid[axis].div_ceil(grid.cluster[axis]));
        let index = [
            (number % extent(0)) as u32,
            (number / extent(0) % extent(1)) as u32,
            (number / extent(0) / extent(1)) as u32,
        ];
        let code = &grid.program.functions[grid.program.entry.function as usize];
        let threads = grid.block.iter().product::<u32>();
        let blocks = (0..grid.cluster.iter().product::<u32>()).map(|rank| {
            let place = [
                rank % grid.cluster[0],
                rank / grid.cluster[0] % grid.cluster[1],
                rank / grid.cluster[0] / grid.cluster[1],
            ];
            let warps = (0..threads.div_ceil(32)).map(|number| {
                let count = (threads - 32 * number).min(32);
                let mask = if count == 32 { u32::MAX } else { (1 << count) - 1 };
                let mut warp = Warp::new(number, mask);
                let frame = warp.frame(code, grid.program.entry.function, (0, [MAX_LOCAL; 32]), mask);
                warp.fragments.push(Fragment::new(mask, frame));
                warp
            });
            Block {
                rank,
                index: [0, 1, 2].map(|axis| index[axis] * grid.cluster[axis] + place[axis]),
                shared: Words::new(grid.shared_bytes),
                warps: warps.collect(),
                barriers: (0..16).map(|_| BarrierState::default()).collect(),
                is_done: false,
            }
        });
        Self {
            grid,
            counts: check.counts(),
            marks: check.watches_uses().then(Box::default),
            check,
            blocks: blocks.collect(),
            index,
            phase: 0,
            arrived: 0,
            near: 0,
            steps: 0,
            asynchronous: super::engines::AsyncState::default(),
            random: grid.schedule.random(number),
        }
    }

    /// Some lanes of a warp.
    pub(super) fn lanes(&self, block: usize, warp: &Warp, mask: u32) -> Lanes {
        Lanes { rank: self.blocks[block].rank, warp: warp.number, mask }
    }

    /// A thread, for a message.
    pub(super) fn thread(&self, block: usize, warp: u32, lane: u32) -> Thread {
        Thread { block: self.blocks[block].index, warp, lane }
    }

    /// Reports a finding of the first lane of a mask.
    pub(super) fn found(&mut self, block: usize, warp: u32, mask: u32, at: u32, defect: Defect) {
        let thread = self.thread(block, warp, mask.trailing_zeros().min(31));
        self.check.report(Finding::new(defect, at, thread));
    }

    /// Records an event that other threads may wait for.
    #[inline]
    pub(super) fn tell_news(&self) {
        self.grid.news.fetch_add(1, Relaxed);
    }

    pub(super) fn news(&self) -> u64 {
        self.grid.news.load(Relaxed)
    }

    /// Gives each warp a turn.
    pub(crate) fn turn(&mut self) -> Result<Turn, Stop> {
        self.advance_transfers();
        let mut order: Vec<(usize, usize)> = self
            .blocks
            .iter()
            .enumerate()
            .flat_map(|(block, own)| (0..own.warps.len()).map(move |warp| (block, warp)))
            .filter(|(block, warp)| self.blocks[*block].warps[*warp].live != 0)
            .collect();
        self.grid.schedule.arrange(&mut order, &mut self.random);
        let mut is_moved = false;
        for (block, warp) in order {
            let turn = self.grid.schedule.turn(TURN, &mut self.random);
            let mut own = std::mem::take(&mut self.blocks[block].warps[warp]);
            let result = self.run_warp(block, &mut own, turn);
            self.blocks[block].warps[warp] = own;
            let moved = result?;
            is_moved |= moved;
            self.settle(block)?;
            if moved && self.grid.schedule.stays() {
                break;
            }
        }
        self.count_steps()?;
        if self.blocks.iter().all(|block| block.warps.iter().all(|warp| warp.live == 0)) {
            self.finish();
            return Ok(Turn::Done);
        }
        if is_moved {
            return Ok(Turn::More);
        }
        // No warp can continue. Performs a delayed transfer of the engines, or releases fragments
        // that wait only for other lanes of their warp.
        if self.force_transfer() {
            return Ok(Turn::More);
        }
        let mut is_released = false;
        for block in &mut self.blocks {
            for warp in &mut block.warps {
                is_released |= warp.release();
            }
        }
        if is_released || self.force()? {
            return Ok(Turn::More);
        }
        Ok(Turn::Waits)
    }

    fn count_steps(&mut self) -> Result<(), Stop> {
        let all = self.grid.steps.fetch_add(self.steps, Relaxed) + self.steps;
        self.steps = 0;
        if all > self.grid.limit {
            return Err(Stop::Limit);
        }
        if (self.grid.stop)() {
            return Err(Stop::Interrupted);
        }
        if self.check.is_full() {
            return Err(Stop::Full);
        }
        Ok(())
    }

    /// Runs fragments of a warp for a number of instructions. Returns whether any made progress.
    fn run_warp(&mut self, block: usize, warp: &mut Warp, turn: u64) -> Result<bool, Stop> {
        let until = warp.clock + turn;
        let mut is_moved = false;
        let mut tries = warp.fragments.len();
        while warp.clock < until && tries > 0 && !warp.fragments.is_empty() {
            let at = warp.turn % warp.fragments.len();
            let fragment = &warp.fragments[at];
            if fragment.state != State::Ready || (fragment.polls >= POLLS_FOR_TURN && self.has_no_news(fragment)) {
                // A polling fragment polls once more in each turn, which is no progress.
                if fragment.state == State::Ready {
                    let fragment = warp.fragments.swap_remove(at);
                    self.run_fragment(block, warp, fragment, 64)?;
                }
                warp.turn = warp.turn.wrapping_add(1);
                tries -= 1;
                continue;
            }
            let fragment = warp.fragments.swap_remove(at);
            let before = warp.clock;
            self.run_fragment(block, warp, fragment, until - before)?;
            is_moved |= warp.clock != before;
            warp.turn = warp.turn.wrapping_add(1);
            if warp.fragments.len() > 1 {
                warp.merge();
            }
            tries = warp.fragments.len();
        }
        Ok(is_moved)
    }

    pub(super) fn has_no_news(&self, fragment: &Fragment) -> bool {
        fragment.poll_news == self.news()
    }

    /// Completes the barriers of a block at which all threads have arrived.
    pub(super) fn settle(&mut self, block: usize) -> Result<(), Stop> {
        for id in 0..self.blocks[block].barriers.len() {
            if !self.blocks[block].barriers[id].arrivals.is_empty() {
                self.settle_barrier(block, id);
            }
        }
        if !self.blocks[block].is_done && self.blocks[block].warps.iter().all(|warp| warp.live == 0) {
            self.blocks[block].is_done = true;
            let rank = self.blocks[block].rank;
            self.check_bytes(rank);
            self.check.block_exit(rank);
            self.tell_news();
        }
        self.settle_cluster();
        Ok(())
    }

    /// Completes a barrier of the block if all expected threads have arrived.
    fn settle_barrier(&mut self, block: usize, id: usize) {
        let own = &self.blocks[block];
        let state = &own.barriers[id];
        let mut masks = vec![0_u32; own.warps.len()];
        for arrival in &state.arrivals {
            masks[arrival.warp as usize] |= arrival.mask;
        }
        let is_complete = match state.count {
            None => own.warps.iter().zip(&masks).all(|(warp, mask)| warp.live & !mask == 0),
            Some(count) => {
                // If all live lanes of a warp have arrived, the warp counts as 32 threads.
                let came: u32 = own
                    .warps
                    .iter()
                    .zip(&masks)
                    .map(|(warp, mask)| match mask {
                        0 => 0,
                        mask if warp.live & !mask == 0 => 32.min(count),
                        mask => mask.count_ones(),
                    })
                    .sum();
                came >= count
            }
        };
        if !is_complete {
            return;
        }
        let state = std::mem::take(&mut self.blocks[block].barriers[id]);
        let rank = self.blocks[block].rank;
        for arrival in &state.arrivals {
            let same = |other: &&BarrierArrival| other.warp == arrival.warp && other.at == arrival.at;
            let here = state.arrivals.iter().filter(same).fold(0, |all, other| all | other.mask);
            if arrival.parted & !here != 0 {
                let defect = Defect::Divergence { active: here, expected: here | arrival.parted };
                self.found(block, arrival.warp, arrival.mask, arrival.at, defect);
            }
        }
        let waiters: Vec<Lanes> = state
            .arrivals
            .iter()
            .filter(|arrival| arrival.waits)
            .map(|arrival| Lanes { rank, warp: arrival.warp, mask: arrival.mask })
            .collect();
        self.check.barrier_complete(rank, id as u32, &waiters);
        let count: u32 = state.arrivals.iter().map(|arrival| arrival.votes.count_ones()).sum();
        let all = state.arrivals.iter().all(|arrival| arrival.votes & arrival.mask == arrival.mask);
        for number in 0..self.blocks[block].warps.len() {
            let mut warp = std::mem::take(&mut self.blocks[block].warps[number]);
            for fragment in &mut warp.fragments {
                if fragment.state == State::AtBarrier(id as u32) {
                    fragment.state = State::Ready;
                    fragment.polls = 0;
                    self.barrier_result(&mut warp.frames[fragment.frame], fragment, count, all);
                    fragment.pc += 1;
                }
            }
            self.blocks[block].warps[number] = warp;
        }
        self.tell_news();
    }

    /// Completes a phase of the cluster barrier if all threads have arrived.
    pub(super) fn settle_cluster(&mut self) {
        let live: u32 =
            self.blocks.iter().flat_map(|block| &block.warps).map(|warp| warp.live.count_ones()).sum::<u32>();
        if self.arrived == 0 && !self.blocks.iter().flat_map(|block| &block.warps).any(has_waiter) {
            return;
        }
        // Lanes that have exited no longer arrive.
        let phase = self.phase;
        let came: u32 = self
            .blocks
            .iter()
            .flat_map(|block| &block.warps)
            .map(|warp| {
                (0..32)
                    .filter(|lane| warp.live >> lane & 1 == 1 && warp.cluster_arrivals[*lane as usize] > phase)
                    .count() as u32
            })
            .sum();
        if came == live && self.arrived > 0 {
            self.phase += 1;
            self.arrived = 0;
            self.check.cluster_complete();
            self.tell_news();
        }
        let phase = self.phase;
        for block in &mut self.blocks {
            for warp in &mut block.warps {
                for at in 0..warp.fragments.len() {
                    let mask = warp.fragments[at].mask;
                    if warp.fragments[at].state == State::AtCluster && warp.may_leave_cluster(mask, phase) {
                        warp.fragments[at].state = State::Ready;
                    }
                }
            }
        }
    }

    /// Releases fragments that wait for lanes of their warp that do not arrive, and reports them.
    /// Returns whether there were any.
    fn force(&mut self) -> Result<bool, Stop> {
        let mut is_any = false;
        for block in 0..self.blocks.len() {
            for number in 0..self.blocks[block].warps.len() {
                let mut warp = std::mem::take(&mut self.blocks[block].warps[number]);
                let result = self.force_meetings(block, &mut warp);
                is_any |= self.force_aligned(block, &mut warp);
                self.blocks[block].warps[number] = warp;
                is_any |= result?;
                self.settle(block)?;
            }
        }
        Ok(is_any)
    }

    /// Whether no thread of the cluster can continue without an event from another cluster.
    pub(crate) fn hangs(&self) -> bool {
        self.blocks.iter().flat_map(|block| &block.warps).flat_map(|warp| &warp.fragments).all(|fragment| {
            fragment.state != State::Ready || (fragment.polls >= POLLS_FOR_HANG && self.has_no_news(fragment))
        })
    }

    /// Reports which threads wait, and for what.
    pub(crate) fn tell_hang(&mut self) {
        self.tell_barriers();
        // A barrier that some threads do not reach explains more than a list of waiting threads.
        for block in 0..self.blocks.len() {
            for id in 0..self.blocks[block].barriers.len() {
                let own = &self.blocks[block];
                let state = &own.barriers[id];
                let Some(first) = state.arrivals.first().copied() else { continue };
                let came = state.arrivals.iter().map(|arrival| arrival.mask.count_ones()).sum();
                let expected = state.count.unwrap_or(self.grid.block.iter().product());
                let absent = own.warps.iter().find_map(|warp| {
                    let here: u32 =
                        state.arrivals.iter().filter(|own| own.warp == warp.number).fold(0, |all, own| all | own.mask);
                    let lanes = warp.threads & !here;
                    (lanes != 0).then(|| {
                        let lane = lanes.trailing_zeros();
                        let at = warp.fragments.iter().find(|fragment| fragment.mask >> lane & 1 == 1);
                        (warp.number, lane, at.map(|fragment| self.statement(warp, fragment)))
                    })
                });
                let defect = Defect::BarrierNotReached {
                    barrier: id as u32,
                    came,
                    expected,
                    missing: absent.map(|(warp, lane, _)| self.thread(block, warp, lane)),
                    missing_at: absent.and_then(|(_, _, at)| at),
                };
                self.found(block, first.warp, first.mask, first.at, defect);
            }
        }
        let mut waiting: Vec<Waiting> = Vec::new();
        for block in &self.blocks {
            for warp in &block.warps {
                for fragment in &warp.fragments {
                    let what = self.waits_for(block, warp, fragment);
                    let first =
                        Thread { block: block.index, warp: warp.number, lane: fragment.mask.trailing_zeros().min(31) };
                    let at = Some(self.statement(warp, fragment));
                    match waiting
                        .iter_mut()
                        .find(|own| own.first.block == block.index && own.at == at && own.what == what)
                    {
                        Some(own) => own.threads += fragment.mask.count_ones(),
                        None => waiting.push(Waiting { first, threads: fragment.mask.count_ones(), at, what }),
                    }
                }
                let ended = warp.threads & !warp.live;
                if ended != 0 && waiting.len() < 64 {
                    let first = Thread { block: block.index, warp: warp.number, lane: ended.trailing_zeros() };
                    match waiting.iter_mut().find(|own| own.first.block == block.index && own.at.is_none()) {
                        Some(own) => own.threads += ended.count_ones(),
                        None => {
                            waiting.push(Waiting { first, threads: ended.count_ones(), at: None, what: String::new() })
                        }
                    }
                }
            }
        }
        let first = waiting.iter().find(|own| own.at.is_some()).map(|own| (own.first, own.at));
        let (thread, at) = first.map_or((None, None), |(thread, at)| (Some(thread), at));
        self.check.report(Finding { defect: Defect::Deadlock { waiting }, at, thread, count: 1 });
    }

    /// The statement at which a fragment is.
    pub(super) fn statement(&self, warp: &Warp, fragment: &Fragment) -> u32 {
        let code = &self.grid.program.functions[warp.frames[fragment.frame].function as usize];
        let pc = match fragment.state {
            State::Ready if fragment.poll_at != NOWHERE => fragment.poll_at,
            _ => fragment.pc,
        };
        code.ops.get(pc as usize).or(code.ops.last()).map_or(0, |micro| micro.at)
    }

    fn waits_for(&self, _block: &Block, warp: &Warp, fragment: &Fragment) -> String {
        match fragment.state {
            State::AtBarrier(id) => format!("for the other threads at barrier {id}"),
            State::AtCluster => "for the other threads of the cluster at its barrier".to_string(),
            State::Meeting { mask } => {
                format!("for lanes {:#010x} of its warp", mask & warp.live & !fragment.mask)
            }
            State::Aligned => format!("for lanes {:#010x} of its warp", warp.live & !fragment.mask),
            State::AtJoin => "for lanes of its warp that went another way".to_string(),
            State::Ready => self.polled(warp, fragment),
        }
    }

    /// Finishes the cluster after all threads have exited.
    fn finish(&mut self) {
        self.end_transfers();
        self.tell_news();
    }
}

fn has_waiter(warp: &Warp) -> bool {
    warp.fragments.iter().any(|fragment| fragment.state == State::AtCluster)
}

/// The built-in function that a declaration without a body calls, if the engine knows it.
pub(super) fn builtin(name: &str) -> Option<Callee> {
    match name {
        "vprintf" => Some(Callee::Print),
        "__assertfail" => Some(Callee::Assert),
        "malloc" => Some(Callee::Allocate),
        "free" => Some(Callee::Free),
        _ => None,
    }
}
