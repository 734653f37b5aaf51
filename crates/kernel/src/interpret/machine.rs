//! A run of a grid: its memory, its clusters one after another, and its findings.
//!
//! Law: a run ends with every block, or with a finding. Blocks of a launch may run in any order, or
//! concurrently, so nothing orders one before another, except the counter of the launch. Running
//! them one after another is one order that the hardware may choose. The blocks of one cluster run
//! concurrently: the schedule interleaves their warps, and their communication orders them. A block
//! without a cluster is a cluster of one.
//!
//! Threads, warps and bytes of shared memory are numbered through the cluster, those of a block
//! adjacent; threads are numbered as if all warps were full.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::arrivals::Arrivals;
use super::background::Copies;
use super::barriers::{Object, Rendezvous};
use super::bulk::{BulkStores, Load};
use super::claims::Claims;
use super::clock::Clocks;
use super::cluster::{Gathering, RemoteUse};
use super::code::Code;
use super::counts::{Class, Counts, Tally};
use super::finding::{Defect, Finding};
use super::mixed::Histories;
use super::products::Product;
use super::schedule::{Completion, Order, Random, Schedule};
use super::setup::Setup;
use super::shadow::{Foreign, GlobalCell, Groups, ShadowCell};
use super::touch::Touch;
use super::warp::{State, Warp};
use crate::program::Program;
use crate::program::memory::{Role, Space};

/// The number of findings after which a run stops.
pub const MAX_FINDINGS: usize = 16;

/// The number of steps after which a run checks whether it was asked to stop.
const ASKED_EVERY: u64 = 1 << 12;

/// The run stops. Its findings are kept.
#[derive(Debug)]
pub(super) struct Stop;

/// A tensor in global memory, and its history.
#[derive(Debug, Default)]
pub(super) struct Global {
    pub(super) data: Vec<u8>,
    /// For an output, the writer of each cell.
    pub(super) writers: Vec<Foreign>,
    /// For an output that is read again, the last reader of each cell.
    pub(super) readers: HashMap<usize, Foreign>,
    /// For a tensor that is read and written, the history of each cell.
    pub(super) cells: Vec<GlobalCell>,
}

/// The state of the blocks of a cluster.
#[derive(Debug)]
pub(super) struct Block {
    /// The index of the first block.
    pub(super) first: [u32; 3],
    /// The index of the cluster, from 1, in the order of execution.
    pub(super) number: u64,
    pub(super) shared: Vec<u8>,
    pub(super) cells: Vec<ShadowCell>,
    pub(super) groups: Groups,
    pub(super) clocks: Clocks,
    /// The barriers of each block, by number.
    pub(super) rendezvous: Vec<[Rendezvous; 16]>,
    /// For each block, the registers that its warps have released.
    pub(super) pools: Vec<u32>,
    /// The barrier of the cluster.
    pub(super) gathering: Gathering,
    /// The last access to the shared memory of another block, by its rank and the agent.
    pub(super) uses: BTreeMap<(usize, usize), RemoteUse>,
    pub(super) objects: Vec<Object>,
    pub(super) copies: Vec<Copies>,
    pub(super) stores: Vec<BulkStores>,
    pub(super) loads: VecDeque<Load>,
    /// The wgmma that each warp has issued: the node, and the addresses of the operands.
    pub(super) products: Vec<Vec<Product>>,
    /// Reads of unwritten cells, by node: the first cell, the thread and the finding.
    pub(super) unwritten: BTreeMap<usize, (u64, usize, Defect)>,
    /// Cells of shared memory that were written in a race.
    pub(super) raced: HashSet<u64>,
    /// The number of iterations of a loop, by its number, the rank of the block and the iterations
    /// of enclosing loops.
    pub(super) iterations: HashMap<(usize, usize, Box<[u32]>), u64>,
}

/// The state of a run.
#[derive(Debug)]
pub(super) struct InterpretedRun<'a> {
    pub(super) program: &'a Program,
    pub(super) code: &'a Code<'a>,
    pub(super) setup: &'a Setup,
    pub(super) scalars: Vec<u64>,
    pub(super) schedule: Schedule,
    pub(super) random: Random,
    pub(super) globals: Vec<Global>,
    pub(super) groups: Groups,
    pub(super) claims: Claims,
    pub(super) arrivals: Arrivals,
    /// The turns for which the current cluster has waited and that it has not passed: the buffer
    /// and the address of their word.
    pub(super) turns: HashSet<(usize, i64)>,
    /// Atomic operations on cells that receive several kinds of them.
    pub(super) mixed: Histories,
    pub(super) block: Block,
    pub(super) tallies: Vec<[Tally; 2]>,
    pub(super) classes: [u64; Class::ALL.len()],
    /// The clusters that have run, by their indices, in order.
    pub(super) order: Vec<u64>,
    /// The accesses since the trail was emptied; None if nobody records them (`stepper.rs`).
    pub(super) trail: Option<Vec<Touch>>,
    pub(super) findings: Vec<Finding>,
    /// Findings about phases (`phases.rs`). They count only if there are no other findings.
    pub(super) phase_findings: Vec<Finding>,
    /// The codes of findings, with their nodes.
    pub(super) seen: HashSet<(&'static str, usize)>,
    steps: u64,
    limit: u64,
    finished: u64,
}

impl<'a> InterpretedRun<'a> {
    pub(super) fn new(
        program: &'a Program,
        code: &'a Code<'a>,
        setup: &'a Setup,
        scalars: Vec<u64>,
        contents: &[Vec<u8>],
        schedule: Schedule,
        limit: u64,
    ) -> InterpretedRun<'a> {
        let mut globals = Vec::new();
        for (buffer, extent) in program.buffers.iter().zip(&setup.extents) {
            let mut global = Global::default();
            if buffer.space == Space::Global {
                let cells = (extent.bytes as usize).div_ceil(1 << extent.shift);
                global.data = match contents.get(globals.len()) {
                    Some(contents) if !contents.is_empty() => contents.clone(),
                    _ => vec![0; extent.bytes as usize],
                };
                match buffer.role {
                    Role::Input => {}
                    Role::Output => global.writers = vec![Foreign::default(); cells],
                    Role::Both => global.cells = vec![GlobalCell::default(); cells],
                }
            }
            globals.push(global);
        }
        let cluster = program.cluster_size() as usize;
        let threads = setup.padded * cluster;
        let shared_bytes = setup.shared_bytes * cluster;
        let seed = if let Order::Random(seed) = schedule.order { seed } else { 0 };
        InterpretedRun {
            program,
            code,
            setup,
            scalars,
            schedule,
            random: Random::new(seed),
            globals,
            groups: Groups::default(),
            claims: Claims::default(),
            arrivals: Arrivals::default(),
            turns: HashSet::new(),
            mixed: Histories::new(),
            block: Block {
                first: [0; 3],
                number: 0,
                shared: vec![0; shared_bytes],
                cells: vec![ShadowCell::default(); shared_bytes >> setup.shared_shift],
                groups: Groups::default(),
                clocks: Clocks::new(threads, setup.background, setup.reads),
                rendezvous: vec![Default::default(); cluster],
                pools: vec![0; cluster],
                gathering: Gathering::new(threads.div_ceil(32)),
                uses: BTreeMap::new(),
                objects: Vec::new(),
                copies: vec![Copies::default(); if setup.background { threads } else { 0 }],
                stores: vec![BulkStores::default(); if setup.background { threads } else { 0 }],
                loads: VecDeque::new(),
                products: vec![Vec::new(); threads.div_ceil(32)],
                unwritten: BTreeMap::new(),
                raced: HashSet::new(),
                iterations: HashMap::new(),
            },
            tallies: vec![Default::default(); code.nodes.len()],
            classes: [0; Class::ALL.len()],
            order: Vec::new(),
            trail: None,
            findings: Vec::new(),
            phase_findings: Vec::new(),
            seen: HashSet::new(),
            steps: 0,
            limit,
            finished: 0,
        }
    }

    /// The warps of a cluster, at the beginning of the program.
    pub(super) fn warps(&self) -> Vec<Warp> {
        let threads = self.program.threads;
        let count = threads.div_ceil(32) as usize * self.program.cluster_size() as usize;
        (0..count).map(|number| Warp::new(number, threads, self.program.widths.len())).collect()
    }

    /// Runs all blocks. Returns the contents of the tensors and the counts, or the findings.
    pub(super) fn run(mut self) -> Result<(Vec<Vec<u8>>, Counts), Vec<Finding>> {
        let cluster = u64::from(self.program.cluster_size());
        let mut warps = self.warps();
        let clusters = self.setup.blocks / cluster;
        for iteration in 0..clusters {
            let number = match self.has_turns() {
                true => iteration,
                false => self.schedule.order.nth_of(clusters, iteration),
            };
            let result = self.run_cluster(iteration, number, &mut warps);
            if self.report_unwritten().is_err() || result.is_err() {
                break;
            }
            self.finished += cluster;
        }
        self.report_phases();
        if self.findings.is_empty() && self.check_count().is_ok() && self.check_arrivals().is_ok() {
            self.check_outputs();
        }
        if self.findings.is_empty() { Ok(self.results()) } else { Err(self.findings) }
    }

    fn results(self) -> (Vec<Vec<u8>>, Counts) {
        let mut counts = Counts { classes: self.classes, accesses: Vec::new() };
        for (node, tallies) in self.code.nodes.iter().zip(&self.tallies) {
            let super::code::Node::Instruction(instruction) = node else { continue };
            for (access, tally) in instruction.operation.accesses().zip(tallies) {
                if tally.requests > 0 {
                    let name = self.program.buffer(access.buffer).name.clone();
                    let class = Class::of(&instruction.operation);
                    counts.accesses.push(tally.count(*self.program.source(instruction.source), class, name));
                }
            }
        }
        (self.globals.into_iter().map(|global| global.data).collect(), counts)
    }

    /// Counts a node, and checks the limits of steps and of findings.
    pub(super) fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > self.limit {
            let (blocks, of) = (self.finished, self.setup.blocks);
            self.report(Defect::StepLimit { steps: self.limit, blocks, of }, usize::MAX, None)?;
            return Err(Stop);
        }
        if self.steps.is_multiple_of(ASKED_EVERY) && tilewright_layout::interrupt::is_requested() {
            self.report(Defect::Interrupted, usize::MAX, None)?;
            return Err(Stop);
        }
        Ok(())
    }

    /// Converts the overflow of a count into a refusal.
    pub(super) fn counted<T>(&mut self, value: Option<T>) -> Result<T, Stop> {
        match value {
            Some(value) => Ok(value),
            None => {
                let (steps, blocks, of) = (self.steps, self.finished, self.setup.blocks);
                self.report(Defect::StepLimit { steps, blocks, of }, usize::MAX, None)?;
                Err(Stop)
            }
        }
    }

    /// The index of the block with a rank.
    pub(super) fn block_of(&self, rank: usize) -> [u32; 3] {
        let within = self.program.place_in_cluster(rank as u32);
        std::array::from_fn(|axis| self.block.first[axis] + within[axis])
    }

    /// The index of the first block of a cluster. Clusters divide the grid along each axis.
    pub(super) fn coordinates(&self, cluster: u64) -> [u32; 3] {
        let extents = self.program.cluster;
        let count = |axis: usize| u64::from(self.setup.grid[axis] / extents[axis]).max(1);
        let [x, y] = [count(0), count(1)];
        let at = [cluster % x, cluster / x % y, cluster / x / y];
        std::array::from_fn(|axis| at[axis] as u32 * extents[axis])
    }

    /// The number of the current cluster.
    pub(super) fn current_cluster(&self) -> u64 {
        self.order.last().copied().unwrap_or(0)
    }

    /// Sets the run and the warps to the beginning of a cluster.
    pub(super) fn begin_cluster(&mut self, iteration: u64, number: u64, warps: &mut [Warp]) {
        self.order.push(number);
        self.arrivals.begin();
        self.turns.clear();
        // Shared memory has no history yet.
        self.mixed.retain(|(buffer, ..), _| self.program.buffers[*buffer].space == Space::Global);
        let first = self.coordinates(number);
        let block = &mut self.block;
        block.number = iteration + 1;
        block.cells.fill(ShadowCell::default());
        block.groups.reset();
        block.clocks = Clocks::new(
            self.setup.padded * self.program.cluster_size() as usize,
            self.setup.background,
            self.setup.reads,
        );
        block.rendezvous.fill_with(Default::default);
        block.pools.fill(0);
        block.gathering = Gathering::new(warps.len());
        block.uses.clear();
        block.objects.clear();
        block.copies.fill(Copies::default());
        block.stores.fill(BulkStores::default());
        block.loads.clear();
        block.products.iter_mut().for_each(Vec::clear);
        block.iterations.clear();
        block.raced.clear();
        block.first = first;
        for warp in warps.iter_mut() {
            warp.restart();
        }
    }

    /// Ends a cluster whose warps have all exited.
    pub(super) fn end_of_warps(&mut self) -> Result<(), Stop> {
        while !self.block.loads.is_empty() {
            self.complete_load()?;
        }
        self.check_groups()?;
        self.check_uses()?;
        self.end_of_cluster()
    }

    fn run_cluster(&mut self, iteration: u64, number: u64, warps: &mut [Warp]) -> Result<(), Stop> {
        self.begin_cluster(iteration, number, warps);
        // The order begins with the first warp, so that the reverse order differs even in short
        // programs.
        let mut last = warps.len().saturating_sub(1);
        loop {
            match self.next_warp(warps, last)? {
                Some(at) => {
                    let most = match self.schedule.order {
                        Order::InTurn => 16,
                        Order::Backward => u64::MAX,
                        Order::Random(_) => 1 + self.random.below(32),
                    };
                    let mut warp = std::mem::take(&mut warps[at]);
                    let result = self.advance(&mut warp, most);
                    warps[at] = warp;
                    result?;
                    self.meet(warps, at)?;
                    last = at;
                }
                None if warps.iter().all(|warp| warp.state == State::Done) => break,
                None if !self.block.loads.is_empty() => self.complete_load()?,
                None => return self.stuck(warps),
            }
            if matches!(self.schedule.order, Order::Random(_))
                && !self.block.loads.is_empty()
                && self.random.below(8) == 0
            {
                self.complete_load()?;
            }
        }
        self.end_of_warps()
    }

    /// Lets a warp proceed if what it waits for has arrived.
    pub(super) fn wake(&mut self, warp: &mut Warp) -> Result<(), Stop> {
        match warp.state {
            State::Phase { .. } => self.poll(warp)?,
            State::Cluster { .. } => self.leave_cluster_barrier(warp),
            State::Registers { place, count } => self.take_registers(warp, place, count),
            State::Ready | State::Barrier { .. } | State::Done => {}
        }
        Ok(())
    }

    /// The next warp that can proceed.
    fn next_warp(&mut self, warps: &mut [Warp], last: usize) -> Result<Option<usize>, Stop> {
        let count = warps.len();
        let random = match self.schedule.order {
            Order::Random(_) => self.random.below(count as u64) as usize,
            _ => 0,
        };
        for iteration in 0..count {
            let at = match self.schedule.order {
                Order::InTurn => (last + 1 + iteration) % count,
                Order::Backward => count - 1 - iteration,
                Order::Random(_) => (random + iteration) % count,
            };
            if !matches!(warps[at].state, State::Ready | State::Barrier { .. } | State::Done) {
                let mut warp = std::mem::take(&mut warps[at]);
                let result = self.wake(&mut warp);
                warps[at] = warp;
                result?;
            }
            if warps[at].state == State::Ready {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Whether asynchronous work is performed immediately.
    pub(super) fn at_once(&self) -> bool {
        self.schedule.completion == Completion::Early
    }
}
