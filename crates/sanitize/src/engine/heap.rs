//! The heap of `malloc`, and atomic operations on 128 bits.

use std::sync::atomic::Ordering::Relaxed;

use super::access::{Side, lanes};
use super::cluster::{Cluster, Stop};
use super::code::{Reference, Row, Source, Target};
use super::execute::{Executes, Flow};
use super::windows;
use crate::check::checker::Kind;

/// The alignment of memory from `malloc`.
const ALIGNMENT: u64 = 16;
/// The bytes of one half of a 128-bit value.
const HALF: u64 = 8;

impl Cluster<'_> {
    /// `malloc`: memory that nobody else has, or a pointer to nothing where the heap is full.
    pub(super) fn allocate(&mut self, by: &mut Executes<'_>, arguments: &[Source], results: &[u32]) {
        let sizes: Row = arguments.first().map_or([0; 32], |size| *by.row(*size));
        let mut out = [0; 32];
        for lane in lanes(by.active) {
            let size = sizes[lane].max(1).checked_next_multiple_of(ALIGNMENT);
            let taken = size.and_then(|size| {
                let more = |end: u64| end.checked_add(size).filter(|end| *end <= windows::HEAP_BYTES);
                self.grid.allocated.fetch_update(Relaxed, Relaxed, more).ok()
            });
            out[lane] = taken.map_or(0, |offset| windows::HEAP + offset);
        }
        if let Some(slot) = results.first() {
            let target = Target { slot: *slot, bits: 64, sign_from: 0 };
            by.warp.frames[by.fragment.frame].put(target, &out, by.active, false);
        }
    }

    /// `atom.exch.b128` and `atom.cas.b128`.
    pub(super) fn atomic_pair(
        &mut self,
        by: &mut Executes<'_>,
        reference: &Reference,
        to: &[Target; 2],
        from: &[Source],
    ) -> Result<Flow, Stop> {
        let Executes { block, code, at, active, .. } = *by;
        let (warp, fragment) = (&mut *by.warp, &mut *by.fragment);
        let addresses = self.addresses(warp, fragment.frame, code, reference);
        let rows: Vec<Row> = from.iter().map(|source| *warp.frames[fragment.frame].row(code, *source)).collect();
        let (expected, new) = rows.split_at(rows.len().saturating_sub(2));
        let mut old = vec![[0; 32]; 2];
        let (mut left, mut row, mut is_changed) = (active, [0; 32], false);
        while left != 0 {
            let (side, mask) = self.group(block, reference.window, &addresses, &mut left, &mut row);
            let good = self.allowed(block, warp, at, side, mask, &row, 2 * HALF, true);
            if good == 0 {
                continue;
            }
            let by = self.lanes(block, warp, good);
            let grid = self.grid;
            let lock = (!grid.alone && side == Side::Global).then(|| grid.strong.lock());
            self.tell(by, at, side, &row, reference, Kind::Atomic, new, false);
            for lane in lanes(good) {
                let (words, place) = match side {
                    Side::Global => match grid.memory.find(row[lane], &mut self.near) {
                        Some(region) => (&region.words, row[lane] - region.address),
                        None => continue,
                    },
                    Side::Shared(rank) => (&self.blocks[rank as usize].shared, row[lane]),
                    Side::Local | Side::Parameters => {
                        return Err(Stop::Refused(at, "an atomic operation on memory of a thread".to_string()));
                    }
                };
                let was = [0, 1].map(|half| words.read(place + HALF * half, HALF as u32));
                let is_equal = expected.iter().zip(was).all(|(row, was)| row[lane] == was);
                for ((half, was), (old, new)) in (0..).zip(was).zip(old.iter_mut().zip(new)) {
                    old[lane] = was;
                    if is_equal {
                        words.write(place + HALF * half, HALF as u32, new[lane], grid.alone);
                        is_changed |= new[lane] != was;
                    }
                }
            }
            drop(lock);
        }
        let to = to.map(Some);
        super::perform::put_rows(warp, fragment, active, &to, &old);
        if is_changed {
            self.tell_news();
            return Ok(Flow::Next);
        }
        Ok(self.given_way(fragment, active, &old))
    }
}
