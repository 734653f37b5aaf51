//! Findings as text: the defect, the statement, the thread, and the remedy.

use std::error::Error;
use std::fmt;

use tilewright_layout::Refusal;

use super::finding::{Defect, Finding, Party, PhaseFault, Place, Thread, Waiting};
use crate::launch::SetupError;
use crate::program::memory::Role;

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::Malformed { what, source: None } => write!(f, "the program is malformed: {what}"),
            SetupError::Malformed { what, source: Some(source) } => {
                write!(f, "the program is malformed: {what}, in {source}")
            }
            SetupError::Size { what } | SetupError::Argument { what } => f.write_str(what),
            SetupError::TooLarge { what, size, limit } => {
                write!(f, "{size} {what}, and at most {limit} can be checked")
            }
        }
    }
}

impl SetupError {
    /// What would help, as a sentence; None if the message is complete.
    pub fn help(&self) -> Option<String> {
        match self {
            SetupError::TooLarge { .. } => {
                let edges = "defects that depend on sizes, such as a partial last tile, show at small sizes too";
                Some(format!("check smaller sizes; {edges}"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "thread {} of block ({x},{y},{z})", self.thread)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (byte, bytes) = (i128::from(self.byte), i128::from(self.bytes));
        if bytes == 1 {
            write!(f, "byte {byte} of `{}`", self.buffer)?;
        } else {
            write!(f, "bytes {byte} to {} of `{}`", byte + bytes - 1, self.buffer)?;
        }
        write!(f, " (element {} of {})", byte.div_euclid(self.element.bytes().into()), self.layout)
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.thread {
            Some(thread) => write!(f, "{thread}, {}", self.source),
            None => write!(f, "{}", self.source),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.threads;
        write!(f, "threads {first} to {last} ")?;
        if let Some(rank) = self.rank {
            write!(f, "of the block of rank {rank} ")?;
        }
        match &self.source {
            None => write!(f, "{}", self.what),
            Some(source) => write!(f, "wait {}, {source}", self.what),
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::OutOfBounds { place, size } => {
                write!(f, "an access outside: {place}, which has {size} bytes; a predicate would keep it inside")
            }
            Defect::Misaligned { place, alignment } => {
                write!(
                    f,
                    "a misaligned access: {place} do not begin at a multiple of {alignment} bytes that is known to be one"
                )
            }
            Defect::Unwritten { place } => write!(f, "a read of memory that was not written: {place}"),
            Defect::WrittenTwice { place, before } => {
                write!(f, "an output written by two threads: {place}, written before by {before}")
            }
            Defect::NeverWritten { place, elements } => {
                write!(
                    f,
                    "an output that is not written: {elements} elements of `{}`, the first at {place}",
                    place.buffer
                )
            }
            Defect::Role { place, role: Role::Input } => write!(f, "a write to an input: {place}"),
            Defect::Role { place, .. } => write!(f, "a read of an output: {place}; declare it as read and written"),
            Defect::Race { place, before } => {
                write!(
                    f,
                    "a race: nothing orders this access to {place} after that of {before}; a barrier between would"
                )
            }
            Defect::RaceBetweenBlocks { place, before } => {
                write!(
                    f,
                    "a race between blocks, which nothing orders: {place}, and before {before}; make both atomic, let the last block do it, or launch twice"
                )
            }
            Defect::Unfinished { place, before } if !before.background => {
                write!(f, "an asynchronous access to {place} that nothing orders after the access of {before}; ")?;
                f.write_str("a barrier before it is issued would")
            }
            Defect::Unfinished { place, before } => {
                write!(
                    f,
                    "{place} are accessed while an asynchronous access to them may be in flight, that of {before}; "
                )?;
                f.write_str("wait for it, and let the thread that waited tell the others")
            }
            Defect::Unfenced { place, before, global: true } => {
                write!(f, "a bulk copy accesses {place} in global memory after the write of {before}, ")?;
                f.write_str(
                    "without a proxy fence between the two; after the barrier, make a fence for asynchronous ",
                )?;
                f.write_str("accesses to global memory (`fence_async_global`) in the block that issues the copy")
            }
            Defect::Phase { place, phase, fault: PhaseFault::Missed } => {
                write!(f, "a wait may miss phase {phase} of the barrier in {place}: nothing orders the wait before ")?;
                write!(f, "phase {} is over, and then the wait sees a later phase or none; ", phase + 1)?;
                f.write_str("let the arrivals of the next phase come after this wait, as a release of the stage does")
            }
            Defect::Phase { place, phase, fault: PhaseFault::Early } => {
                write!(f, "a wait for phase {phase} of the barrier in {place} may see phase {} instead, ", phase - 2)?;
                write!(f, "which has the same parity: the thread does not know that phase {} is over; ", phase - 1)?;
                f.write_str("wait for each phase in turn")
            }
            Defect::Phase { place, phase, fault: PhaseFault::Arrival } => {
                write!(f, "an arrival for phase {phase} of the barrier in {place} may count in phase {}: ", phase - 1)?;
                f.write_str("the thread does not know that this phase is over; wait for it before the arrival")
            }
            Defect::MixedAtomics { place, before } => {
                write!(f, "the result depends on the order of two atomic operations of different kinds on {place}, ")?;
                write!(f, "this one and that of {before}; a barrier between would order them")
            }
            Defect::Unfenced { place, before, global: false } => {
                write!(f, "an asynchronous access to {place} follows the stores of {before} without a proxy fence; ")?;
                f.write_str("the threads that store need a fence for asynchronous accesses before the barrier")
            }
            Defect::PendingAtExit { what } => write!(f, "the kernel ends while {what}; wait for it"),
            Defect::BarrierNotReached { missing, expected } if missing.is_empty() => {
                write!(f, "a barrier of {expected} threads that not all reach before the kernel ends")
            }
            Defect::BarrierNotReached { missing, expected } => {
                write!(
                    f,
                    "a barrier of {expected} threads that not all reach: thread {}",
                    missing.first().unwrap_or(&0)
                )?;
                match missing.len() {
                    0 | 1 => f.write_str(" does not"),
                    more => write!(f, " and {} others do not", more - 1),
                }
            }
            Defect::Deadlock { waiting } => {
                f.write_str("a deadlock")?;
                for (at, waiting) in waiting.iter().enumerate() {
                    write!(f, "{} {waiting}", if at == 0 { ":" } else { ";" })?;
                }
                Ok(())
            }
            Defect::Arrivals { place, count, came } if came > count => {
                write!(f, "more arrivals than a phase of the barrier counts: {came} of {count}, at {place}")
            }
            Defect::Arrivals { place, count, came } => {
                write!(
                    f,
                    "the kernel ends in the middle of a phase: {came} of {count} arrivals at the barrier in {place}"
                )
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
                f.write_str(
                    "a fence for barriers by the thread that initialises, then a barrier of the block, publish it",
                )
            }
            Defect::LoopBounds { iterations, others: Some(others) } => {
                write!(f, "a loop of {iterations} iterations here and {others} iterations in other threads")
            }
            Defect::LoopBounds { iterations, others: None } => {
                write!(f, "a loop of {iterations} iterations whose variable leaves 32 bits with a sign")
            }
            Defect::Divergence { active } => {
                write!(f, "an instruction of the whole warp that {} of 32 lanes execute ", active.count_ones())?;
                write!(f, "({active:#010x}); take it out of the condition")
            }
            Defect::OrderDependent { place, other } => {
                write!(f, "the result depends on the schedule: {place} differ from those under {other}")
            }
            Defect::StepLimit { steps, blocks, of } => {
                write!(
                    f,
                    "stopped after {steps} instructions of warps: {blocks} of {of} blocks were checked, and nothing wrong found in them"
                )
            }
            Defect::Trap => f.write_str("the kernel ended itself with a trap"),
            Defect::BarrierBytes { place } => {
                write!(f, "the bytes of an mbarrier are accessed as other data: {place}")
            }
            Defect::Interrupted => f.write_str("the check was interrupted"),
            Defect::Sums { fence: true, .. } => {
                f.write_str("a wgmma adds to registers that were written since the last fence for ")?;
                f.write_str("registers; fence between")
            }
            Defect::Sums { before, fence: false } => {
                f.write_str("an accumulator is read while the wgmma that writes it may be in flight")?;
                if let Some(before) = before {
                    write!(f, ", {before}")?;
                }
                f.write_str("; wait for its group")
            }
            Defect::Lifetime { place, rank, ended: true } => {
                write!(f, "the block of rank {rank} may have ended when its {place} are used from another block; ")?;
                f.write_str("a barrier of the cluster at the end of the kernel would keep it")
            }
            Defect::Lifetime { place, rank, ended: false } => {
                write!(
                    f,
                    "the block of rank {rank} may not have begun when its {place} are used from another block; "
                )?;
                f.write_str("a barrier of the cluster at the beginning of the kernel would show that it has")
            }
            Defect::Registers { what, asked, free } => {
                write!(f, "{asked} registers for each thread are not available: {what}; {free} of the block are free")
            }
            Defect::Permuted { place, before, wrote, reads } => {
                let swizzle = |line: &u32| match line {
                    16 => "no swizzle".to_string(),
                    line => format!("the swizzle of {line} bytes"),
                };
                let (wrote, reads) = (swizzle(wrote), swizzle(reads));
                write!(f, "a wgmma reads {place} with {reads}, and they were written with {wrote}, by {before}")
            }
            Defect::Launches { place } => {
                write!(f, "{place} are accessed before the previous launches are known to have finished; ")?;
                f.write_str("wait for them first")
            }
            Defect::BulkEdge { place, before: None } => {
                write!(f, "a bulk store writes past the extent of its tensor: {place}. It writes whole chunks of 16 ")?;
                f.write_str(
                    "bytes, and the last row of the box ends inside one; store the last columns with ordinary ",
                )?;
                f.write_str("stores, or make the extent a whole number of chunks")
            }
            Defect::BulkEdge { place, before: Some((mode, coordinate)) } => {
                write!(f, "a bulk store at coordinate {coordinate} of mode {mode} of its tensor map, {place}: ")?;
                f.write_str("the device traps at a negative coordinate of a store")
            }
            Defect::Count { what } => write!(f, "the counter of the launch is not at 0 after it: {what}"),
            Defect::ClusterBarrier { what } => write!(f, "the barrier of the cluster is used out of order: {what}"),
            Defect::Group { first, products } => {
                write!(f, "warps {first} to {} do not execute the same wgmma and setmaxnreg together: ", first + 3)?;
                let [a, b, c, d] = products;
                write!(f, "they have executed {a}, {b}, {c} and {d}, or operands that begin elsewhere")
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.defect)?;
        if let Some(source) = &self.source {
            write!(f, " [{source}]")?;
        }
        if let Some(thread) = &self.thread {
            write!(f, " [{thread}]")?;
        }
        write!(f, " [{}]", self.schedule)
    }
}

impl Error for Finding {}

impl Refusal for Finding {
    fn code(&self) -> &'static str {
        Finding::code(self)
    }

    fn help(&self) -> Option<String> {
        None
    }
}
