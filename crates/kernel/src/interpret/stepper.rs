//! Runs a block statement by statement, and shows the accesses of each statement, and the contents
//! of memory and registers after it.
//!
//! Law: the steps are a run of the interpreter under one schedule, so an order that the hardware
//! may choose, with all checks. In a step, each warp that can proceed executes the rest of its
//! current line: consecutive instructions that came from one line of the kernel, and in a loop
//! those of one iteration.

use std::fmt;

use super::code::Node;
use super::counts::Tally;
use super::finding::{Findings, Thread};
use super::lanes::lanes;
use super::machine::{InterpretedRun, Stop};
use super::reading::{Reading, Readings};
use super::touch::{AccessKind, Memory, Touch};
use super::warp::{State, Warp};
use crate::program::WARP_LANES;
use crate::program::memory::{BufferId, Role, Space};
use crate::program::operation::Operation;
use crate::program::register::Register;
use crate::program::{Instruction, Source};

/// Bytes that a thread accesses, or that TMA accesses for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The thread. For a TMA copy, the thread that issued it.
    pub thread: Thread,
    /// The memory, by its index in [`Program::buffers`](crate::Program::buffers).
    pub buffer: usize,
    /// The block whose shared memory it is; that of the thread for global memory.
    pub block: [u32; 3],
    /// The first byte, counted from the beginning of the buffer.
    pub byte: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The kind of access.
    pub kind: AccessKind,
    /// The statement.
    pub source: Source,
    /// The index of its instruction among those of the warp in this step. Accesses of one
    /// instruction to shared memory are served together, in wavefronts.
    pub request: usize,
    /// Whether it is asynchronous.
    pub background: bool,
}

/// A line of the kernel, and the warps that executed it in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The last of its statements.
    pub source: Source,
    /// The indices of the warps in the cluster. Those of a block are adjacent.
    pub warps: Vec<u32>,
    /// The number of warp instructions.
    pub instructions: u64,
    /// The wavefronts of shared memory of its loads and stores.
    pub wavefronts: u64,
    /// Wavefronts without bank conflicts.
    pub least_wavefronts: u64,
}

/// The events of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepEvents {
    /// The executed instructions, in the order of the warps; empty if only TMA made progress.
    pub executed: Vec<Executed>,
    /// The accesses.
    pub touched: Vec<Touched>,
}

/// A register that a thread wrote in a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held<'p> {
    /// The register.
    pub register: Register,
    /// The operation that wrote it.
    pub operation: &'p Operation,
    /// How its bits are displayed.
    pub reading: Reading,
    /// Its bits after the step.
    pub bits: u64,
}

impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.register, self.reading.text(self.bits))
    }
}

/// A block that is run line by line, together with the other blocks of its cluster. No other block
/// runs.
///
/// ```
/// use tilewright_kernel::Kernel;
/// use tilewright_kernel::interpret::{Completion, Interpreter, AccessKind};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kernel = Kernel::build("double", |k| {
///     let x = k.input::<f32>("x", "M{div=32}:1")?.local_tile(32, k.block("x")?)?;
///     let y = k.output::<f32>("y", "M:1")?.local_tile(32, k.block("x")?)?;
///     k.threads(32)?;
///     let values = x.thread_part()?.load()?;
///     y.thread_part()?.store(&values.map(|x| Ok(x + x))?)
/// })?;
/// let mut interpreter = Interpreter::new(kernel.program(), &[("M", 64)])?;
/// interpreter.tensor("x", &(0..64).map(|at| at as f32).collect::<Vec<_>>())?;
///
/// // The second block: it loads, computes, and stores.
/// let mut stepper = interpreter.stepper([1, 0, 0], Completion::Late)?;
/// let mut statements = Vec::new();
/// while let Some(step) = stepper.step()? {
///     statements.push(step.executed[0].source.statement);
///     if step.touched.iter().any(|touched| touched.kind == AccessKind::Write) {
///         assert_eq!((step.touched[5].byte, step.touched[5].thread.thread), (4 * 37, 5));
///     }
/// }
/// assert_eq!(statements.last(), Some(&"store"));
/// assert!(stepper.is_written(1, [1, 0, 0], 4 * 37) && !stepper.is_written(1, [1, 0, 0], 4 * 5));
/// # Ok(())
/// # }
/// ```
pub struct Stepper<'i> {
    machine: InterpretedRun<'i>,
    warps: Vec<Warp>,
    readings: Readings<'i>,
    /// The instructions of this step: the warp, its active lanes, and the node.
    executed: Vec<(usize, u32, usize)>,
    /// The length of the trail before each of these instructions.
    begins: Vec<usize>,
    /// The ranges that copies in flight have not yet written.
    under_way: Vec<(u64, u64)>,
    ended: bool,
}

impl fmt::Debug for Stepper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepper").field("block", &self.machine.block.first).field("ended", &self.ended).finish()
    }
}

impl<'i> Stepper<'i> {
    /// The cluster with this number, before its first statement.
    pub(super) fn new(mut machine: InterpretedRun<'i>, cluster: u64) -> Stepper<'i> {
        let mut warps = machine.warps();
        machine.begin_cluster(0, cluster, &mut warps);
        machine.trail = Some(Vec::new());
        let readings = Readings::new(machine.program);
        Stepper {
            machine,
            warps,
            readings,
            executed: Vec::new(),
            begins: Vec::new(),
            under_way: Vec::new(),
            ended: false,
        }
    }

    /// Executes a step. None if all threads have exited.
    ///
    /// Errors: the findings so far. Nothing can be run after that, but contents and registers can
    /// still be inspected.
    pub fn step(&mut self) -> Result<Option<StepEvents>, Findings> {
        self.executed.clear();
        self.begins.clear();
        self.machine.trail = Some(Vec::new());
        while !self.ended && self.executed.is_empty() && self.trail().is_empty() {
            self.ended = !self.round().unwrap_or(false);
        }
        self.under_way = self.machine.bytes_under_way();
        if self.ended {
            self.machine.report_phases();
        }
        if !self.machine.findings.is_empty() {
            self.ended = true;
            return Err(Findings(self.machine.findings.clone()));
        }
        let nothing = self.executed.is_empty() && self.trail().is_empty();
        Ok((!nothing).then(|| self.describe()))
    }

    fn trail(&self) -> &[Touch] {
        self.machine.trail.as_deref().unwrap_or_default()
    }

    /// Each warp that can proceed executes a statement; returns whether any could.
    fn round(&mut self) -> Result<bool, Stop> {
        for warp in &mut self.warps {
            self.machine.wake(warp)?;
        }
        let ready = |(at, warp): (usize, &Warp)| (warp.state == State::Ready).then_some(at);
        let ready: Vec<usize> = self.warps.iter().enumerate().filter_map(ready).collect();
        if ready.is_empty() {
            if self.warps.iter().all(|warp| warp.state == State::Done) {
                self.machine.end_of_warps()?;
                self.machine.report_unwritten()?;
                return Ok(false);
            }
            if self.machine.block.loads.is_empty() {
                self.machine.stuck(&self.warps)?;
                return Ok(false);
            }
            self.machine.complete_load()?;
            return Ok(true);
        }
        for at in ready {
            let mut warp = std::mem::take(&mut self.warps[at]);
            let result = self.statement(&mut warp);
            self.warps[at] = warp;
            result?;
            self.machine.meet(&mut self.warps, at)?;
        }
        Ok(true)
    }

    /// A warp executes the rest of its current statement.
    fn statement(&mut self, warp: &mut Warp) -> Result<(), Stop> {
        let code = self.machine.code;
        let mut current: Option<Source> = None;
        while warp.state == State::Ready {
            let place = warp.place;
            let here = code.sources.get(place).map(|source| *self.machine.program.source(*source));
            match code.nodes.get(place) {
                Some(_) if current.is_some_and(|current| here.is_none_or(|here| !here.is_beside(&current))) => break,
                // The next iteration of a loop belongs to another step.
                Some(Node::LoopEnd(_)) if current.is_some() => break,
                Some(Node::Instruction(_)) => {
                    current = here;
                    self.executed.push((warp.number, warp.mask, place));
                    self.begins.push(self.trail().len());
                }
                _ => {}
            }
            self.machine.advance(warp, 1)?;
        }
        Ok(())
    }

    /// The step, from its executed instructions and accesses.
    fn describe(&self) -> StepEvents {
        let mut step = StepEvents::default();
        for (request, (warp, _, place)) in self.executed.iter().enumerate() {
            let (warp, source) = (*warp as u32, self.machine.source_at(*place));
            let (wavefronts, least) = self.wavefronts(request, *place);
            match step.executed.iter_mut().find(|executed| executed.source.is_beside(&source)) {
                Some(executed) => {
                    executed.source = source;
                    if executed.warps.last() != Some(&warp) {
                        executed.warps.push(warp);
                    }
                    executed.instructions += 1;
                    executed.wavefronts += wavefronts;
                    executed.least_wavefronts += least;
                }
                None => {
                    let warps = vec![warp];
                    step.executed.push(Executed {
                        source,
                        warps,
                        instructions: 1,
                        wavefronts,
                        least_wavefronts: least,
                    });
                }
            }
        }
        let mut request = 0;
        for (at, touch) in self.trail().iter().enumerate() {
            while self.begins.get(request + 1).is_some_and(|begin| *begin <= at) {
                request += 1;
            }
            step.touched.push(self.touched(touch, request));
        }
        step
    }

    /// The accesses of an instruction.
    fn touches(&self, request: usize) -> &[Touch] {
        let begin = self.begins.get(request).copied().unwrap_or(0);
        let end = self.begins.get(request + 1).copied().unwrap_or(self.trail().len());
        self.trail().get(begin..end).unwrap_or_default()
    }

    /// The wavefronts of shared memory of an instruction, and their least number.
    fn wavefronts(&self, request: usize, place: usize) -> (u64, u64) {
        let mut tally = Tally::default();
        let counted = |operation: &Operation| {
            matches!(
                operation,
                Operation::Load(_)
                    | Operation::Store(_)
                    | Operation::RemoteLoad(_)
                    | Operation::RemoteStore(_)
                    | Operation::LoadMatrix { .. }
                    | Operation::StoreMatrix { .. }
                    | Operation::Atomic(..)
                    | Operation::Reduce(..)
                    | Operation::CopyAsync { .. }
            )
        };
        let Some(Node::Instruction(instruction)) = self.machine.code.nodes.get(place) else { return (0, 0) };
        if counted(&instruction.operation) {
            let (mut mask, mut addresses, mut bytes) = (0, [0; WARP_LANES], 0);
            for touch in self.touches(request).iter().filter(|touch| touch.by.place == place) {
                if let Some(start) = self.shared_start(touch.span.memory.buffer) {
                    let lane = touch.by.thread % WARP_LANES;
                    mask |= 1 << lane;
                    addresses[lane] = touch.span.address + start;
                    bytes = touch.span.bytes as u32;
                }
            }
            tally.shared(mask, &addresses, bytes);
        }
        (tally.wavefronts, tally.least)
    }

    /// The first byte of a shared array; None for a tensor in global memory.
    fn shared_start(&self, buffer: BufferId) -> Option<i64> {
        let own = self.machine.program.buffer(buffer);
        (own.space == Space::Shared).then_some(own.start.into())
    }

    fn touched(&self, touch: &Touch, request: usize) -> Touched {
        let Touch { by, span, kind, event } = *touch;
        let block = |rank: usize| self.machine.block_of(rank);
        let agent = self.machine.block.clocks.agent(event.agent());
        Touched {
            thread: Thread { block: block(self.machine.rank_of(by.thread)), thread: self.machine.in_block(by.thread) },
            buffer: span.memory.buffer.index(),
            block: block(span.memory.rank),
            byte: span.address.unsigned_abs(),
            bytes: span.bytes,
            kind,
            source: self.machine.source_at(by.place),
            request,
            background: agent.is_background(),
        }
    }

    /// The rank of a block in the running cluster; None for other blocks.
    fn rank(&self, block: [u32; 3]) -> Option<usize> {
        (0..self.machine.program.cluster_size() as usize).find(|rank| self.machine.block_of(*rank) == block)
    }

    /// The bytes of a tensor, or of a shared array of a block, by its index in
    /// [`Program::buffers`](crate::Program::buffers); None if there is no such memory.
    pub fn bytes(&self, buffer: usize, block: [u32; 3]) -> Option<&[u8]> {
        let own = self.machine.program.buffers.get(buffer)?;
        match own.space {
            Space::Global => Some(&self.machine.globals[buffer].data),
            Space::Shared => {
                let memory = Memory { buffer: BufferId(buffer as u32), rank: self.rank(block)? };
                let (begin, size) = (self.machine.shared_at(memory, 0), self.machine.setup.extents[buffer].bytes);
                self.machine.block.shared.get(begin as usize..(begin + size) as usize)
            }
        }
    }

    /// Whether a byte has contents. A byte of a shared array or of an output has contents if this
    /// run has written it, and no copy in flight is about to write it. A byte of another tensor
    /// always has.
    pub fn is_written(&self, buffer: usize, block: [u32; 3], byte: u64) -> bool {
        let Some(own) = self.machine.program.buffers.get(buffer) else { return false };
        match (own.space, own.role) {
            (Space::Shared, _) => self.rank(block).is_some_and(|rank| {
                let memory = Memory { buffer: BufferId(buffer as u32), rank };
                let byte = self.machine.shared_at(memory, byte as i64);
                let next = self.under_way.partition_point(|(first, _)| *first <= byte);
                let awaited = next > 0 && self.under_way.get(next - 1).is_some_and(|(_, end)| byte < *end);
                let at = byte >> self.machine.setup.shared_shift;
                !awaited && self.machine.block.cells.get(at as usize).is_some_and(super::shadow::ShadowCell::is_written)
            }),
            (_, Role::Output) => {
                let at = byte >> self.machine.setup.extents[buffer].shift;
                let writers = &self.machine.globals[buffer].writers;
                writers.get(at as usize).is_some_and(|writer| writer.event.is_some())
            }
            _ => true,
        }
    }

    /// The registers that a thread wrote in the last step, in the order in which they were written.
    pub fn registers(&self, thread: Thread) -> Vec<Held<'i>> {
        let Some(rank) = self.rank(thread.block).filter(|_| thread.thread < self.machine.program.threads) else {
            return Vec::new();
        };
        let number = rank * self.machine.setup.padded + thread.thread as usize;
        let (warp, lane) = (number / WARP_LANES, number % WARP_LANES);
        let mut held: Vec<Held<'i>> = Vec::new();
        let own = |(number, mask, _): &&(usize, u32, usize)| *number == warp && lanes(*mask).any(|own| own == lane);
        for (_, _, place) in self.executed.iter().filter(own) {
            let Some(Node::Instruction(instruction)) = self.machine.code.nodes.get(*place) else { continue };
            let instruction: &'i Instruction = instruction;
            for output in &instruction.outputs {
                let bits = self.warps[warp].registers[output.index()][lane];
                let reading = self.readings.of(*output);
                held.push(Held { register: *output, operation: &instruction.operation, reading, bits });
            }
        }
        held
    }
}
