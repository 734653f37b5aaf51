//! The data of a finding: its location, its thread, and the earlier thread.
//!
//! Law: each statement has at most one finding of a kind, the first. A run stops after the limit of
//! findings.

use super::clock::{Agent, Event};
use super::finding::{Defect, Finding, Party, Place, Thread};
use super::machine::{InterpretedRun, MAX_FINDINGS, Stop};
use super::shadow::Foreign;
use super::touch::{Actor, Span};
use crate::program::Source;
use crate::program::memory::BufferId;

impl InterpretedRun<'_> {
    /// Keeps a finding, one of each kind for each node.
    pub(super) fn report(&mut self, defect: Defect, place: usize, thread: Option<usize>) -> Result<(), Stop> {
        let finding = self.finding(defect, place, thread);
        self.findings.extend(finding);
        if self.findings.len() >= MAX_FINDINGS { Err(Stop) } else { Ok(()) }
    }

    /// Makes a finding, unless its node already has one of this kind.
    pub(super) fn finding(&mut self, defect: Defect, place: usize, thread: Option<usize>) -> Option<Finding> {
        if !self.seen.insert((defect.code(), place)) {
            return None;
        }
        let source = self.code.sources.get(place).map(|source| *self.program.source(*source));
        let thread = thread.map(|thread| self.thread_in(self.block.first, thread));
        Some(Finding { defect, source, thread, schedule: self.schedule })
    }

    /// Records a finding by an actor.
    pub(super) fn report_by(&mut self, by: Actor, defect: Defect) -> Result<(), Stop> {
        self.report(defect, by.place, Some(by.thread))
    }

    /// Bytes of a buffer, for a finding.
    pub(super) fn place_of(&self, span: &Span) -> Place {
        self.place(span.memory.buffer, span.address, span.bytes)
    }

    /// Bytes of a buffer, given by numbers.
    pub(super) fn place(&self, buffer: BufferId, byte: i64, bytes: u64) -> Place {
        let buffer = self.program.buffer(buffer);
        Place { buffer: buffer.name.clone(), layout: buffer.layout.clone(), element: buffer.element, byte, bytes }
    }

    pub(super) fn source_at(&self, place: usize) -> Source {
        *self.program.source(self.code.sources[place])
    }

    /// A thread of the cluster whose first block has this index.
    fn thread_in(&self, first: [u32; 3], thread: usize) -> Thread {
        let within = self.program.place_in_cluster(self.rank_of(thread) as u32);
        Thread { block: std::array::from_fn(|axis| first[axis] + within[axis]), thread: self.in_block(thread) }
    }

    /// The thread of an event of this cluster.
    pub(super) fn party(&self, event: Event) -> Party {
        self.party_of(event, self.block.first)
    }

    fn party_of(&self, event: Event, first: [u32; 3]) -> Party {
        let agent = self.block.clocks.agent(event.agent());
        let thread = match agent {
            Agent::Thread(thread) | Agent::Work(thread, _) => Some(self.thread_in(first, thread)),
            Agent::Load(_) | Agent::Launches | Agent::Grid => None,
        };
        Party { thread, source: self.source_at(event.place()), background: agent.is_background() }
    }

    /// The thread of an event of some cluster.
    pub(super) fn foreign_party(&self, foreign: Foreign) -> Party {
        let iteration = foreign.block.saturating_sub(1) as usize;
        let number = self.order.get(iteration).copied().unwrap_or(0);
        self.party_of(foreign.event, self.coordinates(number))
    }

    /// Reports bytes that a cluster has read before they were written. If the write races with the
    /// read, that was reported instead: the read came first by chance.
    pub(super) fn report_unwritten(&mut self) -> Result<(), Stop> {
        for (place, (cell, thread, defect)) in std::mem::take(&mut self.block.unwritten) {
            if !self.block.raced.contains(&cell) {
                self.report(defect, place, Some(thread))?;
            }
        }
        Ok(())
    }
}
