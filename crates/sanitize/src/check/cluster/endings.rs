//! Threads and blocks that exit, and the asynchronous work that they leave behind.

use super::super::checker::{At, Lanes};
use super::super::event::Agency;
use super::super::finding::{Defect, Work};
use super::ClusterChecker;

impl ClusterChecker<'_> {
    pub(super) fn exit_lanes(&mut self, by: Lanes, at: At) {
        let warp = &self.warps[self.warp_at(by)];
        let open = [(&warp.copies, Work::Copy), (&warp.bulk_read, Work::BulkRead), (&warp.products, Work::Wgmma)];
        let open: Vec<(At, u32, Work)> =
            open.iter().filter_map(|(groups, work)| groups.open(by.mask).map(|(at, mask)| (at, mask, *work))).collect();
        for (issued, mask, work) in open {
            let thread = self.first(Lanes { mask, ..by });
            self.find(Defect::PendingAtExit { work }, issued, thread);
        }
        let (here, view) = (self.here.cluster, self.released(by));
        self.memories[by.rank as usize].exit_view.join(here, &view, here);
        self.tick(by);
        let _ = at;
        self.warp_mut(by).live &= !by.mask;
    }

    pub(super) fn end_block(&mut self, rank: u32) {
        if let Some(at) = self.open_loads(rank) {
            let thread = self.grid.thread(self.block(rank), 0, 0);
            self.find(Defect::PendingAtExit { work: Work::BulkLoad }, at, thread);
        }
        let (code, here) = (self.grid.code, self.here);
        let memory = &mut self.memories[rank as usize];
        memory.ended = true;
        memory.pages.iter_mut().for_each(|page| *page = None);
        let remote = std::mem::take(&mut memory.remote);
        let view = std::mem::take(&mut memory.exit_view);
        for (event, place, at, thread) in std::mem::take(&mut self.memories[rank as usize].sources) {
            if !view.known.covers(&code, here, event, u32::MAX) {
                self.find(Defect::Lifetime { place, rank, ended: true }, at, thread);
            }
        }
        for (event, mask, place) in remote.into_values() {
            if !view.known.covers(&code, here, event, mask) {
                let thread = code
                    .agency(code.local_of(event))
                    .map(|(warp, _)| self.grid.thread(code.block(event), warp, mask.trailing_zeros() & 31));
                if let Some(thread) = thread {
                    self.find(Defect::Lifetime { place, rank, ended: true }, code.at(event), thread);
                }
            }
        }
    }

    /// Checks that another block of the cluster has started and not exited, as far as lanes know.
    pub(super) fn is_alive(&mut self, by: Lanes, at: At, rank: u32, address: u64, bytes: u32) {
        let place = self.shared_place(by.rank, rank, address, bytes);
        if self.memories[rank as usize].ended {
            return self.find(Defect::Lifetime { place, rank, ended: true }, at, self.first(by));
        }
        let view = self.joint(by);
        let known = view.known.of_rank(rank).is_some_and(|block| block.is_something());
        if !known && !self.memories[by.rank as usize].met_cluster {
            self.find(Defect::Lifetime { place: place.clone(), rank, ended: false }, at, self.first(by));
        }
        let (code, warp) = (self.grid.code, &self.warps[self.warp_at(by)]);
        let event = code.event(self.block(by.rank), code.local(by.warp, Agency::Thread), 0, at, warp.count);
        let key = code.agent(event);
        let entry = self.memories[rank as usize].remote.entry(key).or_insert((event, 0, place));
        // A later access of the same warp replaces earlier ones of the same lanes.
        entry.0 = event;
        entry.1 |= by.mask;
    }
}
