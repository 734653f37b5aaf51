//! Asynchronous work: `cp.async`, bulk copies and wgmma; and their groups.

use super::super::checker::{At, Bulk, Completion, CopyAsync, Lanes, Space, Span, Wgmma};
use super::super::event::{Agency, FIRST_COUNT, STRONG_WRITE};
use super::{ClusterChecker, Proxy, lanes};

/// Warps of a warpgroup.
const WARPS_OF_GROUP: u32 = 4;

/// The groups of one kind of asynchronous work of a warp. Counts are those of the warp: a group
/// holds the work issued up to the count at which it was closed.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Closed groups that are not known to have completed: the count, and the lanes that closed the
    /// group.
    closed: Vec<(u32, u32)>,
    /// Issued work that is not known to have completed: the count, the lanes, and the instruction.
    issued: Vec<(u32, u32, At)>,
}

impl Groups {
    pub(super) fn issue(&mut self, count: u32, mask: u32, at: At) {
        match self.issued.last_mut() {
            Some(last) if last.0 == count && last.2 == at => last.1 |= mask,
            _ => self.issued.push((count, mask, at)),
        }
    }

    /// Lanes close a group.
    pub(super) fn commit(&mut self, count: u32, mask: u32) {
        self.closed.push((count, mask));
    }

    /// Lanes wait until at most `pending` groups are in flight. Returns the counts up to which work
    /// has completed, with the lanes.
    pub(super) fn wait(&mut self, mask: u32, pending: u32) -> Vec<(u32, u32)> {
        let pending = pending as usize;
        let mut done: Vec<(u32, u32)> = Vec::new();
        if self.closed.iter().all(|(_, closed)| mask & !closed == 0) {
            let over = self.closed.len().checked_sub(pending + 1).map(|last| (self.closed[last].0, mask));
            done.extend(over);
        } else {
            for lane in lanes(mask) {
                let mut own = self.closed.iter().rev().filter(|(_, closed)| closed >> lane & 1 == 1);
                if let Some((count, _)) = own.nth(pending) {
                    match done.iter_mut().find(|(same, _)| same == count) {
                        Some((_, lanes)) => *lanes |= 1 << lane,
                        None => done.push((*count, 1 << lane)),
                    }
                }
            }
        }
        for (count, over) in &done {
            self.forget(*count, *over);
        }
        done
    }

    /// The work of lanes up to a count has completed.
    fn forget(&mut self, count: u32, mask: u32) {
        for closed in self.closed.iter_mut().filter(|closed| closed.0 <= count) {
            closed.1 &= !mask;
        }
        self.closed.retain(|closed| closed.1 != 0);
        for issued in self.issued.iter_mut().filter(|issued| issued.0 <= count) {
            issued.1 &= !mask;
        }
        self.issued.retain(|issued| issued.1 != 0);
    }

    /// An mbarrier tracks all work that lanes have issued so far, so the warp no longer does.
    pub(super) fn hand_over(&mut self, mask: u32) {
        self.issued.iter_mut().for_each(|issued| issued.1 &= !mask);
        self.issued.retain(|issued| issued.1 != 0);
    }

    /// An instruction of lanes whose work is not known to have completed.
    pub(super) fn open(&self, mask: u32) -> Option<(At, u32)> {
        self.issued.iter().find(|issued| issued.1 & mask != 0).map(|issued| (issued.2, issued.1 & mask))
    }
}

impl ClusterChecker<'_> {
    /// Lanes learn that work of theirs has completed.
    pub(super) fn finish(&mut self, by: Lanes, agency: Agency, done: &[(u32, u32)]) {
        let local = self.grid.code.local(by.warp, agency);
        for (count, mask) in done {
            let all = self.warps[self.warp_at(by)].lanes;
            let known = if mask & all == all { u32::MAX } else { *mask };
            self.learn(Lanes { mask: *mask, ..by }, |view| view.known.raise(by.rank, local, *count, known));
        }
    }

    pub(super) fn issue_copy(&mut self, copy: &CopyAsync<'_>) {
        let by = copy.by;
        let count = self.warps[self.warp_at(by)].count;
        let local = self.grid.code.local(by.warp, Agency::Copy);
        self.warp_mut(by).copies.issue(count, by.mask, copy.at);
        for lane in lanes(by.mask) {
            let one = Lanes { mask: 1 << lane, ..by };
            let at = lane as usize;
            let read = Span { space: Space::Global, address: copy.global[at], bytes: copy.read[at] };
            let write = Span { space: Space::Shared { rank: by.rank }, address: copy.shared[at], bytes: copy.bytes };
            self.touch_span(one, copy.at, read, local, by.rank, count, false, 0, Proxy::Generic);
            self.touch_span(one, copy.at, write, local, by.rank, count, true, 0, Proxy::Generic);
        }
    }

    pub(super) fn issue_bulk(&mut self, bulk: &Bulk<'_>) {
        let (by, code) = (bulk.by, self.grid.code);
        let now = self.warps[self.warp_at(by)].count;
        let written = if bulk.reduces { 3 | STRONG_WRITE } else { 0 };
        match bulk.completion {
            Completion::Mbarrier(barrier) => {
                self.uses_barrier(by, bulk.at, barrier);
                let (slot, phase) = self.loads_at(barrier, bulk.at);
                let local = code.loads(slot);
                let count = phase.saturating_add(FIRST_COUNT).min(code.max_count());
                for span in bulk.reads {
                    self.reads_memory_of_block(by, bulk.at, *span, barrier.rank, (local, count));
                }
                for (spans, writes, strength) in [(bulk.reads, false, 0), (bulk.writes, true, written)] {
                    for span in spans {
                        self.touch_span(
                            by,
                            bulk.at,
                            *span,
                            local,
                            barrier.rank,
                            count,
                            writes,
                            strength,
                            Proxy::Asynchronous,
                        );
                    }
                }
            }
            Completion::Group => {
                let (read, write) = (code.local(by.warp, Agency::BulkRead), code.local(by.warp, Agency::BulkWrite));
                let warp = self.warp_mut(by);
                warp.bulk.issue(now, by.mask, bulk.at);
                warp.bulk_read.issue(now, by.mask, bulk.at);
                for span in bulk.reads {
                    self.touch_span(by, bulk.at, *span, read, by.rank, now, false, 0, Proxy::Asynchronous);
                }
                for span in bulk.writes {
                    self.touch_span(by, bulk.at, *span, write, by.rank, now, true, written, Proxy::Asynchronous);
                }
            }
        }
    }

    /// Records a copy that reads shared memory of a block and completes on an mbarrier of another
    /// block. The source block must not exit before the copy has read.
    fn reads_memory_of_block(&mut self, by: Lanes, at: At, span: Span, owner: u32, (local, count): (u32, u32)) {
        let Space::Shared { rank } = span.space else { return };
        if rank != owner {
            let event = self.grid.code.event(self.block(owner), local, 0, at, count);
            let place = self.shared_place(by.rank, rank, span.address, span.bytes);
            let thread = self.first(by);
            self.memories[rank as usize].sources.push((event, place, at, thread));
        }
    }

    /// A warp has waited until at most `pending` of its wgmma groups are in flight. A wgmma
    /// completes for the four warps of a warpgroup at once, so the wait also shows that the groups
    /// of the other warps with the same number have completed.
    pub(super) fn wait_products(&mut self, by: Lanes, pending: u32) {
        let at = self.warp_at(by);
        let done = self.warps[at].products.wait(by.mask, pending);
        self.finish(by, Agency::Multiply, &done);
        let Some(over) = self.warps[at].product_groups.len().checked_sub(pending as usize + 1) else { return };
        let first = by.warp / WARPS_OF_GROUP * WARPS_OF_GROUP;
        for other in (first..first + WARPS_OF_GROUP).filter(|other| *other != by.warp && *other < self.grid.code.warps)
        {
            let warp = &self.warps[self.warp_at(Lanes { warp: other, ..by })];
            if let Some(count) = warp.product_groups.get(over).copied() {
                let local = self.grid.code.local(other, Agency::Multiply);
                self.learn(by, |view| view.known.raise(by.rank, local, count, u32::MAX));
            }
        }
    }

    pub(super) fn issue_product(&mut self, wgmma: &Wgmma<'_>) {
        let by = wgmma.by;
        let count = self.warps[self.warp_at(by)].count;
        let local = self.grid.code.local(by.warp, Agency::Multiply);
        self.warp_mut(by).products.issue(count, by.mask, wgmma.at);
        for span in wgmma.reads {
            self.touch_span(by, wgmma.at, *span, local, by.rank, count, false, 0, Proxy::Asynchronous);
        }
        self.use_registers(wgmma);
    }
}
