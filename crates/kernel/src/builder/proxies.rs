//! Orders reads of shared memory through the generic proxy before bulk copies that overwrite it.
//!
//! A load or an `ldmatrix` may still be in flight when its warp arrives at an mbarrier: the arrival
//! does not wait for it. The producer may then issue the next bulk copy into the same stage. On an
//! H200, TMA so overwrote a k-tile that the last `ldmatrix` of a warp was still reading.
//! `fence.proxy.async` orders the read before the copy.
//!
//! Law: on every path, such a fence stands between a read of memory that a bulk copy fills and the
//! next arrival, barrier or bulk copy.

use std::collections::HashSet;

use crate::program::memory::BufferId;
use crate::program::operation::{Fence, Operation};
use crate::program::{Instruction, SourceId, Step};

/// Inserts the fences into a program.
pub(super) fn order(steps: &mut Vec<Step>) {
    let mut filled = HashSet::new();
    collect_filled(steps, &mut filled);
    if !filled.is_empty() {
        fence(steps, &filled, false);
    }
}

/// Collects the shared memory that bulk copies fill.
fn collect_filled(steps: &[Step], filled: &mut HashSet<BufferId>) {
    for step in steps {
        match step {
            Step::Instruction(instruction) => match &instruction.operation {
                Operation::BulkLoad { to, .. } | Operation::BulkSend { to, .. } => {
                    filled.insert(to.buffer);
                }
                _ => {}
            },
            Step::Loop(looped) => collect_filled(&looped.body, filled),
            Step::Branch(branch) => {
                collect_filled(&branch.then, filled);
                collect_filled(&branch.otherwise, filled);
            }
        }
    }
}

/// Inserts a fence before each arrival, barrier or bulk copy at which reads may be in flight.
/// `in_flight` says whether reads may be in flight before the steps; the result says whether they
/// may be in flight after the steps.
fn fence(steps: &mut Vec<Step>, filled: &HashSet<BufferId>, mut in_flight: bool) -> bool {
    let mut at = 0;
    while at < steps.len() {
        match &mut steps[at] {
            Step::Instruction(instruction) => {
                if in_flight && hands_over(&instruction.operation) {
                    let source = instruction.source;
                    steps.insert(at, fence_of(source));
                    in_flight = false;
                    at += 1;
                } else {
                    in_flight = match &instruction.operation {
                        Operation::Fence(Fence::AsyncShared) => false,
                        operation => in_flight || reads(operation, filled),
                    };
                }
            }
            Step::Loop(looped) => {
                // An iteration begins with the reads that the previous one left in flight.
                if fence(&mut looped.body, filled, in_flight) && !in_flight {
                    in_flight = true;
                    fence(&mut looped.body, filled, true);
                }
            }
            Step::Branch(branch) => {
                let then = fence(&mut branch.then, filled, in_flight);
                let otherwise = fence(&mut branch.otherwise, filled, in_flight);
                in_flight = then || otherwise;
            }
        }
        at += 1;
    }
    in_flight
}

fn fence_of(source: SourceId) -> Step {
    Step::Instruction(Instruction {
        operation: Operation::Fence(Fence::AsyncShared),
        inputs: Default::default(),
        outputs: Default::default(),
        guard: None,
        source,
    })
}

/// Whether the operation reads memory that bulk copies fill through the generic proxy. A wgmma
/// reads through the async proxy.
fn reads(operation: &Operation, filled: &HashSet<BufferId>) -> bool {
    match operation {
        Operation::Load(access)
        | Operation::RemoteLoad(access)
        | Operation::Atomic(_, _, access)
        | Operation::LoadMatrix { access, .. } => filled.contains(&access.buffer),
        _ => false,
    }
}

/// Whether the operation lets other threads, or a bulk copy, proceed.
fn hands_over(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::WarpBarrier
            | Operation::Barrier
            | Operation::NamedBarrier { .. }
            | Operation::NamedArrive { .. }
            | Operation::ClusterArrive
            | Operation::BarrierArrive { .. }
            | Operation::RemoteArrive { .. }
            | Operation::BulkLoad { .. }
            | Operation::BulkSend { .. }
    )
}
