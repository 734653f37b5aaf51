//! Asynchronous copies (`cp.async`).
//!
//! Law: from its issue until a thread has waited for it, an asynchronous copy may read its source
//! and write its destination at any time. So it must be ordered after earlier accesses to either,
//! and later accesses to either must be ordered after the wait. The history of memory records it
//! with agents of its own (`clock.rs`). The schedule decides whether the bytes are moved early or
//! late.

use std::collections::VecDeque;

use super::access::addresses;
use super::clock::{MAX_COUNT, Work};
use super::finding::Defect;
use super::lanes::lanes;
use super::machine::{InterpretedRun, Stop};
use super::touch::{AccessKind, Actor, Span, Touch};
use super::warp::Warp;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::memory::Access;

/// An asynchronous copy that was issued.
#[derive(Debug, Clone)]
struct Copy {
    group: u32,
    to: Span,
    /// The source; None if zeros are written.
    from: Option<Span>,
}

/// The asynchronous copies of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Copies {
    /// The number of groups.
    committed: u32,
    /// The last group with a copy, and the node at which that copy was issued.
    last: (u32, usize),
    pending: VecDeque<Copy>,
}

impl InterpretedRun<'_> {
    /// The ranges of the cluster's shared memory that copies in flight have yet to write, in
    /// ascending order.
    pub(super) fn bytes_under_way(&self) -> Vec<(u64, u64)> {
        let pending = self.block.copies.iter().flat_map(|copies| &copies.pending);
        let mut ranges: Vec<(u64, u64)> = pending
            .map(|copy| (self.shared_at(copy.to.memory, copy.to.address), copy.to.bytes))
            .map(|(first, bytes)| (first, first + bytes))
            .collect();
        ranges.sort_unstable();
        ranges
    }

    pub(super) fn copy_async(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        to: &Access,
        from: &Access,
        or_zeros: bool,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let targets = addresses(warp, instruction, to, false, &mut input);
        let sources = addresses(warp, instruction, from, true, &mut input);
        let bytes = to.bytes();
        let copied = if or_zeros { warp.holds(instruction.inputs[input].index()) } else { u32::MAX };
        let (mut written, mut read) = (0, 0);
        for lane in lanes(self.active(warp, instruction)) {
            let thread = warp.thread(lane);
            let group = self.block.copies[thread].committed + 1;
            let event = self.block.clocks.background(thread, Work::Copy, group, place);
            let by = Actor { place, thread };
            let mut source = None;
            if copied >> lane & 1 == 1 {
                let span = Span { memory: self.own(from.buffer, thread), address: sources[lane], bytes: bytes.into() };
                // Bytes outside of the tensor are reported, and read as zeros.
                if self.inside(by, &span, bytes)? {
                    self.touch(&Touch { by, span, kind: AccessKind::Read, event })?;
                    source = Some(span);
                    read |= 1 << lane;
                }
            }
            let span = Span { memory: self.own(to.buffer, thread), address: targets[lane], bytes: bytes.into() };
            if !self.inside(by, &span, bytes)? {
                continue;
            }
            self.touch(&Touch { by, span, kind: AccessKind::Write, event })?;
            written |= 1 << lane;
            self.block.copies[thread].last = (group, place);
            let copy = Copy { group, to: span, from: source };
            if self.at_once() {
                self.carry_out(&copy);
            } else {
                self.block.copies[thread].pending.push_back(copy);
            }
        }
        self.tally((place, 0), to.buffer, written, &targets, bytes);
        self.tally((place, 1), from.buffer, read, &sources, bytes);
        Ok(())
    }

    fn carry_out(&mut self, copy: &Copy) {
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..copy.to.bytes as usize];
        if let Some(from) = copy.from {
            bytes.copy_from_slice(self.bytes_of(from));
        }
        self.bytes_of(copy.to).copy_from_slice(bytes);
    }

    pub(super) fn commit_copies(&mut self, warp: &Warp) {
        for thread in warp.threads(warp.mask) {
            if let Some(copies) = self.block.copies.get_mut(thread) {
                // The number of steps is limited below the number of possible groups.
                copies.committed = (copies.committed + 1).min(MAX_COUNT - 1);
            }
        }
    }

    pub(super) fn wait_copies(&mut self, warp: &Warp, groups: u32) {
        for thread in warp.threads(warp.mask) {
            let Some(copies) = self.block.copies.get_mut(thread) else { continue };
            let done = copies.committed.saturating_sub(groups);
            let count = copies.pending.iter().take_while(|copy| copy.group <= done).count();
            let ready: Vec<Copy> = copies.pending.drain(..count).collect();
            for copy in &ready {
                self.carry_out(copy);
            }
            self.block.clocks.finish(thread, Work::Copy, done);
        }
    }

    /// Reports the asynchronous work that is pending when a warp exits.
    pub(super) fn end_of_warp(&mut self, warp: &Warp) -> Result<(), Stop> {
        self.end_of_products(warp)?;
        if self.block.copies.is_empty() {
            return Ok(());
        }
        for lane in (0..WARP_LANES).filter(|lane| warp.exists >> lane & 1 == 1) {
            let thread = warp.thread(lane);
            let (group, place) = self.block.copies[thread].last;
            if group > self.block.clocks.done(thread, Work::Copy) {
                let what = "asynchronous copies of it are in flight";
                self.report(Defect::PendingAtExit { what }, place, Some(thread))?;
            }
            let (group, place) = self.block.stores[thread].last;
            if group > self.block.clocks.done(thread, Work::StoreRead) {
                let what = "bulk stores of it still read shared memory";
                self.report(Defect::PendingAtExit { what }, place, Some(thread))?;
            }
            self.finish_stores(thread, u32::MAX);
        }
        Ok(())
    }
}
