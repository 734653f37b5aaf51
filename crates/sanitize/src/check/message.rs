//! Findings as text: the defect, the statement, the thread, and the remedy.

use std::fmt;

use super::checker::{At, Scope};
use super::finding::{Defect, Finding, Missing, Party, PhaseFault, Place, ProxyFence, Thread, Work};

/// Finds the location of an instruction in the source.
pub trait Sources {
    /// The location, such as `mm.py:23`, with the calls that it was inlined through: `mm.py:23,
    /// inlined at mm.py:40`.
    fn source(&self, at: At) -> String;
}

/// Knows no source: gives the numbers of instructions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn source(&self, at: At) -> String {
        format!("instruction {at}")
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "block ({x},{y},{z}) warp {} lane {}", self.warp, self.lane)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes == 1 {
            return write!(f, "byte {} of {}", self.byte, self.memory);
        }
        let last = i128::from(self.byte) + i128::from(self.bytes) - 1;
        write!(f, "bytes {} to {last} of {}", self.byte, self.memory)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::BlockBarrier => f.write_str("a barrier of the block (`__syncthreads`) between would"),
            Missing::WarpBarrier => f.write_str("a barrier of the warp (`__syncwarp`) between would"),
            Missing::OneLane => f.write_str(
                "lanes of one instruction write different values, and any of them stays; let one lane write",
            ),
            Missing::ClusterBarrier => f.write_str("a barrier of the cluster between would"),
            Missing::ReleaseAcquire => f.write_str(
                "a release by the first block and an acquire by the second, through a flag or a counter, would; or launch twice",
            ),
            Missing::Release => f.write_str(
                "the flag that was read is written without a release; a fence (`__threadfence`) before that write, or `.release` at it, would",
            ),
            Missing::Acquire => f.write_str(
                "the flag is read without an acquire; a fence (`__threadfence`) after that read, or `.acquire` at it, would",
            ),
            Missing::Scope(scope) => {
                let (name, whom) = match scope {
                    Scope::Block => ("cta", "both threads"),
                    Scope::Cluster => ("cluster", "both blocks"),
                    Scope::Device | Scope::System => ("gpu", "both blocks"),
                };
                write!(f, "the scope of one of the two does not include the other; `.{name}` includes {whom}")
            }
        }
    }
}

/// A kind of asynchronous work, as the subject of a sentence.
fn named(work: Work) -> &'static str {
    match work {
        Work::Copy => "a `cp.async`",
        Work::BulkLoad => "a bulk copy",
        Work::BulkRead => "a bulk store, which reads them,",
        Work::BulkWrite => "a bulk store, which writes them,",
        Work::Wgmma => "a wgmma, which reads them,",
    }
}

/// The wait that ensures its completion.
fn ending(work: Work) -> &'static str {
    match work {
        Work::Copy => "wait for its group (`cp.async.wait_group`), then a barrier tells the other threads",
        Work::BulkLoad => "wait for the phase of its mbarrier",
        Work::BulkRead => {
            "wait for its group (`cp.async.bulk.wait_group.read`), then a barrier tells the other threads"
        }
        Work::BulkWrite => "wait for its group (`cp.async.bulk.wait_group`), then a barrier tells the other threads",
        Work::Wgmma => "wait for its group (`wgmma.wait_group`), then a barrier tells the other threads",
    }
}

fn verb(writes: bool) -> &'static str {
    if writes { "write" } else { "read" }
}

/// A finding with the locations of its statements.
pub(super) struct Told<'a> {
    finding: &'a Finding,
    sources: &'a dyn Sources,
}

impl Told<'_> {
    fn party(&self, party: &Party) -> String {
        let source = self.sources.source(party.at);
        match party.thread {
            Some(thread) => format!("{thread}, {source}"),
            None => source,
        }
    }

    fn defect(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.finding.defect {
            Defect::OutOfBounds { place, size, writes } => {
                write!(f, "a {} outside: {place}, which has {size} bytes; ", verb(*writes))?;
                f.write_str("a predicate would keep it inside")
            }
            Defect::ReadOnly { place } => write!(f, "a write of memory that is only read: {place}"),
            Defect::Misaligned { place, alignment } => {
                write!(f, "a misaligned access: {place} do not begin at a multiple of {alignment} bytes")
            }
            Defect::Unwritten { place } => write!(f, "a read of memory that was not written: {place}"),
            Defect::Race { place, writes, before, missing } => {
                write!(f, "a race: nothing orders this {} of {place} ", verb(*writes))?;
                write!(f, "after the {} of {}; {missing}", verb(before.writes), self.party(before))
            }
            Defect::RaceBetweenBlocks { place, writes, before, missing } => {
                write!(f, "a race between blocks: nothing orders this {} of {place} ", verb(*writes))?;
                write!(f, "after the {} of {}; {missing}", verb(before.writes), self.party(before))
            }
            Defect::Unfinished { place, before, work: Some(work) } => {
                write!(f, "{place} are accessed while {} may be in flight, ", named(*work))?;
                write!(f, "that of {}; {}", self.party(before), ending(*work))
            }
            Defect::Unfinished { place, before, work: None } => {
                write!(f, "an asynchronous access to {place} that nothing orders after the ")?;
                write!(f, "{} of {}; ", verb(before.writes), self.party(before))?;
                f.write_str("a barrier before it is issued would")
            }
            Defect::Unfenced { place, before, missing } => {
                let what = if *missing == ProxyFence::TensorMap {
                    "a use of the tensor map in"
                } else {
                    "an asynchronous access to"
                };
                write!(f, "{what} {place} follows the stores of {} without a proxy fence; ", self.party(before))?;
                f.write_str(match missing {
                    ProxyFence::AsyncGlobal => {
                        "`fence.proxy.async` is needed after the barrier or the flag, in the block that issues it"
                    }
                    ProxyFence::AsyncShared => "the threads that store need `fence.proxy.async` before the barrier",
                    ProxyFence::TensorMap => {
                        "the thread that uses it needs `fence.proxy.tensormap::generic.acquire` before that"
                    }
                })
            }
            Defect::PendingAtExit { work } => {
                let what = match work {
                    Work::BulkRead | Work::BulkWrite => "a bulk store",
                    Work::Wgmma => "a wgmma",
                    work => named(*work),
                };
                write!(f, "the thread ends while {what} may be in flight; {}", ending(*work))
            }
            Defect::BarrierNotReached { barrier, came, expected, missing, missing_at } => {
                write!(f, "barrier {barrier} of {expected} threads that not all reach: {came} came")?;
                match (missing, missing_at) {
                    (Some(thread), Some(at)) => write!(f, "; {thread} is at {}", self.sources.source(*at)),
                    (Some(thread), None) => write!(f, "; {thread} has ended"),
                    (None, _) => Ok(()),
                }
            }
            Defect::Deadlock { waiting } => {
                f.write_str("a deadlock")?;
                for (at, waiting) in waiting.iter().enumerate() {
                    let (first, threads) = (waiting.first, waiting.threads);
                    write!(f, "{} {threads} threads from {first} ", if at == 0 { ":" } else { ";" })?;
                    match waiting.at {
                        None => write!(f, "{}", waiting.what)?,
                        Some(at) => write!(f, "wait {}, {}", waiting.what, self.sources.source(at))?,
                    }
                }
                Ok(())
            }
            Defect::Arrivals { place, count, came } if came > count => {
                write!(f, "more arrivals than a phase of the barrier counts: {came} of {count}, at {place}")
            }
            Defect::Arrivals { place, count, came } => {
                write!(f, "the kernel ends in the middle of a phase: ")?;
                write!(f, "{came} of {count} arrivals at the barrier in {place}")
            }
            Defect::TransactionBytes { place, expects } if *expects < 0 => {
                write!(f, "{} bytes more than were expected arrive at the barrier in {place}", expects.unsigned_abs())
            }
            Defect::TransactionBytes { place, expects } => {
                write!(f, "{expects} bytes never arrive that the barrier in {place} expects")
            }
            Defect::Uninitialised { place, unpublished: false } => {
                write!(f, "a barrier that is not initialised: {place}")
            }
            Defect::Uninitialised { place, unpublished: true } => {
                write!(f, "the initialisation of the barrier in {place} is not known here yet; ")?;
                f.write_str("a fence for barriers by the thread that initialises, ")?;
                f.write_str("then a barrier of the block, publish it")
            }
            Defect::Divergence { active, expected } => {
                let (came, of) = (active.count_ones(), expected.count_ones());
                write!(f, "an instruction of {of} lanes of the warp ({expected:#010x}) that {came} execute ")?;
                write!(f, "({active:#010x}); take it out of the condition")
            }
            Defect::OrderDependent { place, schedules: [first, second] } => {
                write!(f, "the result depends on the schedule: {place} differ between {first} and {second}")
            }
            Defect::Trap { what } => write!(f, "the kernel ended itself: {what}"),
            Defect::BarrierBytes { place } => {
                write!(f, "the bytes of an mbarrier are accessed as other data: {place}")
            }
            Defect::Registers { before, fence: true } => {
                f.write_str("a wgmma uses registers that were written since the last fence for registers")?;
                write!(f, ", {}; `wgmma.fence` between", self.sources.source(*before))
            }
            Defect::Registers { before, fence: false } => {
                f.write_str("a register is touched while the wgmma that uses it may be in flight")?;
                write!(f, ", {}; wait for its group (`wgmma.wait_group`)", self.sources.source(*before))
            }
            Defect::Lifetime { place, rank, ended: true } => {
                write!(f, "the block of rank {rank} may have ended when {place} are used; ")?;
                f.write_str("a barrier of the cluster at the end of the kernel would keep it")
            }
            Defect::Lifetime { place, rank, ended: false } => {
                write!(f, "the block of rank {rank} may not have begun when {place} are used; ")?;
                f.write_str("a barrier of the cluster at the beginning of the kernel would show that it has")
            }
            Defect::Phase { place, phase, fault } => self.phase(f, place, *phase, *fault),
            Defect::NonCoherent { place, before } => {
                write!(f, "a read of {place} through the non-coherent cache (`ld.global.nc`) ")?;
                write!(f, "after the write of {} in the same launch; use an ordinary load", self.party(before))
            }
            Defect::NotANumber { what } => write!(f, "`{what}` makes NaN from numbers"),
        }
    }

    fn phase(&self, f: &mut fmt::Formatter<'_>, place: &Place, phase: i64, fault: PhaseFault) -> fmt::Result {
        match fault {
            PhaseFault::Missed => {
                write!(f, "a wait may miss phase {phase} of the barrier in {place}: nothing orders the wait before ")?;
                write!(f, "phase {} is over, and then the wait sees a later phase or none; ", phase + 1)?;
                f.write_str("let the arrivals of the next phase come after this wait, as a release of the stage does")
            }
            PhaseFault::Early => {
                write!(f, "a wait for phase {phase} of the barrier in {place} may see phase {} instead, ", phase - 2)?;
                write!(f, "which has the same parity: the thread does not know that phase {} is over; ", phase - 1)?;
                f.write_str("wait for each phase in turn")
            }
            PhaseFault::Arrival => {
                write!(f, "an arrival for phase {phase} of the barrier in {place} may count in phase {}: ", phase - 1)?;
                f.write_str("the thread does not know that this phase is over; wait for it before the arrival")
            }
        }
    }
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.finding.code())?;
        self.defect(f)?;
        if let Some(at) = self.finding.at {
            write!(f, " [{}]", self.sources.source(at))?;
        }
        if let Some(thread) = &self.finding.thread {
            write!(f, " [{thread}]")?;
        }
        if self.finding.count > 1 {
            write!(f, " [{} times]", self.finding.count)?;
        }
        Ok(())
    }
}

impl Finding {
    /// The finding as one line: the code, the defect, the other access, the remedy, the location,
    /// the thread, and the count.
    pub fn text(&self, sources: &dyn Sources) -> String {
        Told { finding: self, sources }.to_string()
    }

    /// The other statement that takes part; None if there is none.
    pub fn other(&self) -> Option<At> {
        match &self.defect {
            Defect::Race { before, .. }
            | Defect::RaceBetweenBlocks { before, .. }
            | Defect::Unfinished { before, .. }
            | Defect::NonCoherent { before, .. }
            | Defect::Unfenced { before, .. } => Some(before.at),
            Defect::Registers { before, .. } => Some(*before),
            Defect::BarrierNotReached { missing_at, .. } => *missing_at,
            _ => None,
        }
    }
}
