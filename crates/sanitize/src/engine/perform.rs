//! Loads, stores, atomic operations and `cp.async` of the lanes of a warp.

use super::access::{Side, is_strong, lanes, local_read, local_write};
use super::cluster::{Cluster, Stop};
use super::code::{Op, Reference, Row, Source, Target, Truth, Update};
use super::execute::{Executes, Flow};
use super::warp::{Fragment, State, Warp};
use crate::check::checker::{CopyAsync, Kind};
use crate::check::finding::Defect;

/// The most elements of a vector that is loaded or stored.
pub(super) const MAX_ELEMENTS: usize = 8;

/// The multiplier of the 64-bit hash FNV-1a.
const FNV_PRIME: u64 = 0x100_0000_01b3;

/// The operands of an atomic operation.
pub(super) struct AtomicOperands<'a> {
    pub(super) to: &'a [Option<Target>],
    pub(super) b: &'a [Source],
    pub(super) c: Option<Source>,
    pub(super) update: &'a Update,
    pub(super) returns: bool,
}

/// Writes a row for each element to the element's register.
pub(super) fn put_rows(warp: &mut Warp, fragment: &Fragment, active: u32, to: &[Option<Target>], rows: &[Row]) {
    let full = active == warp.live;
    let frame = &mut warp.frames[fragment.frame];
    for (target, values) in to.iter().zip(rows) {
        if let Some(target) = target {
            frame.put(*target, values, active, full);
        }
    }
}

impl Cluster<'_> {
    /// Reads the elements of some lanes into rows.
    fn fetch(&mut self, warp: &Warp, side: Side, mask: u32, row: &Row, reference: &Reference, rows: &mut [Row]) {
        let bytes = u32::from(reference.bytes);
        let mut near = self.near;
        for (element, into) in rows.iter_mut().enumerate() {
            let offset = element as u64 * u64::from(bytes);
            match side {
                Side::Global => {
                    for lane in lanes(mask) {
                        let address = row[lane] + offset;
                        into[lane] = match self.grid.memory.find(address, &mut near) {
                            Some(region) => region.words.read(address - region.address, bytes),
                            None => 0,
                        };
                    }
                }
                Side::Shared(rank) => {
                    let shared = &self.blocks[rank as usize].shared;
                    lanes(mask).for_each(|lane| into[lane] = shared.read(row[lane] + offset, bytes));
                }
                Side::Parameters => {
                    lanes(mask).for_each(|lane| into[lane] = self.grid.parameters.read(row[lane] + offset, bytes));
                }
                Side::Local => {
                    lanes(mask).for_each(|lane| into[lane] = local_read(warp, lane, row[lane] + offset, bytes));
                }
            }
        }
        self.near = near;
    }

    pub(super) fn load(
        &mut self,
        by: &mut Executes<'_>,
        from: &Reference,
        to: &[Option<Target>],
    ) -> Result<Flow, Stop> {
        // Only as many rows are cleared as there are elements. Most loads have one.
        match from.count {
            0 | 1 => self.load_rows(by, from, to, &mut [[0; 32]; 1]),
            2 => self.load_rows(by, from, to, &mut [[0; 32]; 2]),
            3 | 4 => self.load_rows(by, from, to, &mut [[0; 32]; 4]),
            _ => self.load_rows(by, from, to, &mut [[0; 32]; MAX_ELEMENTS]),
        }
    }

    #[inline(never)]
    fn load_rows(
        &mut self,
        by: &mut Executes<'_>,
        from: &Reference,
        to: &[Option<Target>],
        rows: &mut [Row],
    ) -> Result<Flow, Stop> {
        let Executes { block, at, active, .. } = *by;
        let addresses = self.addresses(by.warp, by.fragment.frame, by.code, from);
        let total = u64::from(from.bytes) * u64::from(from.count);
        let count = rows.len().min(from.count.into());
        let rows = &mut rows[..count];
        let mut left = active;
        let mut row = [0; 32];
        while left != 0 {
            let (side, mask) = self.group(block, from.window, &addresses, &mut left, &mut row);
            let good = self.allowed(block, by.warp, at, side, mask, &row, total, false);
            if good == 0 {
                continue;
            }
            let threads = self.lanes(block, by.warp, good);
            let grid = self.grid;
            let lock = (is_strong(from.order) && !grid.alone && side == Side::Global).then(|| grid.strong.lock());
            self.tell(threads, at, side, &row, from, Kind::Read, &[], false);
            self.fetch(by.warp, side, good, &row, from, rows);
            drop(lock);
            if self.marks.is_some() {
                self.trace_load(by, (side, good), &row, from, to);
            }
        }
        put_rows(by.warp, by.fragment, active, to, rows);
        Ok(if is_strong(from.order) { self.given_way(by.fragment, active, rows) } else { Flow::Next })
    }

    /// Parks a fragment that has read the same values repeatedly.
    pub(super) fn given_way(&mut self, fragment: &mut Fragment, active: u32, rows: &[Row]) -> Flow {
        let seen = lanes(active).fold(u64::from(active), |all, lane| {
            rows.iter().fold(all, |all, values| all.rotate_left(7).wrapping_mul(FNV_PRIME) ^ values[lane])
        });
        if !self.poll(fragment, seen) {
            return Flow::Next;
        }
        fragment.pc += 1;
        Flow::Parked
    }

    pub(super) fn store(&mut self, by: &mut Executes<'_>, to: &Reference, from: &[Source]) -> Result<Flow, Stop> {
        match from.len() {
            0 | 1 => self.store_rows(by, to, from, &mut [[0; 32]; 1]),
            2 => self.store_rows(by, to, from, &mut [[0; 32]; 2]),
            3 | 4 => self.store_rows(by, to, from, &mut [[0; 32]; 4]),
            _ => self.store_rows(by, to, from, &mut [[0; 32]; MAX_ELEMENTS]),
        }
    }

    #[inline(never)]
    fn store_rows(
        &mut self,
        by: &mut Executes<'_>,
        to: &Reference,
        from: &[Source],
        rows: &mut [Row],
    ) -> Result<Flow, Stop> {
        let Executes { block, code, at, active, .. } = *by;
        let (warp, fragment) = (&mut *by.warp, &mut *by.fragment);
        let addresses = self.addresses(warp, fragment.frame, code, to);
        let bytes = u32::from(to.bytes);
        let total = u64::from(to.bytes) * u64::from(to.count);
        let count = from.len().min(rows.len());
        for (source, row) in from.iter().zip(rows.iter_mut()) {
            *row = *warp.frames[fragment.frame].row(code, *source);
        }
        let rows = &rows[..count];
        let mut left = active;
        let mut row = [0; 32];
        while left != 0 {
            let (side, mask) = self.group(block, to.window, &addresses, &mut left, &mut row);
            let good = self.allowed(block, warp, at, side, mask, &row, total, true);
            if good == 0 {
                continue;
            }
            let by = self.lanes(block, warp, good);
            let grid = self.grid;
            let lock = (is_strong(to.order) && !grid.alone && side == Side::Global).then(|| grid.strong.lock());
            self.tell(by, at, side, &row, to, Kind::Write, rows, true);
            let mut near = self.near;
            for (element, values) in rows.iter().enumerate() {
                let offset = element as u64 * u64::from(bytes);
                match side {
                    Side::Global => {
                        for lane in lanes(good) {
                            let address = row[lane] + offset;
                            if let Some(region) = grid.memory.find(address, &mut near) {
                                region.words.write(address - region.address, bytes, values[lane], grid.alone);
                            }
                        }
                    }
                    Side::Shared(rank) => {
                        let shared = &self.blocks[rank as usize].shared;
                        lanes(good).for_each(|lane| shared.write(row[lane] + offset, bytes, values[lane], true));
                    }
                    Side::Local => {
                        lanes(good).for_each(|lane| local_write(warp, lane, row[lane] + offset, bytes, values[lane]));
                    }
                    Side::Parameters => {
                        return Err(Stop::Refused(at, "a store to the parameters of an entry".to_string()));
                    }
                }
            }
            self.near = near;
            drop(lock);
            if side != Side::Local {
                self.tell_news();
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn atomic(
        &mut self,
        by: &mut Executes<'_>,
        reference: &Reference,
        operands: &AtomicOperands<'_>,
    ) -> Result<Flow, Stop> {
        let Executes { block, code, at, active, .. } = *by;
        let (warp, fragment) = (&mut *by.warp, &mut *by.fragment);
        let addresses = self.addresses(warp, fragment.frame, code, reference);
        let bytes = u32::from(reference.bytes);
        let total = u64::from(reference.bytes) * u64::from(reference.count);
        let frame = &warp.frames[fragment.frame];
        let b: Vec<Row> = operands.b.iter().map(|source| *frame.row(code, *source)).collect();
        let c = operands.c.map_or([0; 32], |source| *frame.row(code, source));
        let mut old = vec![[0; 32]; b.len()];
        let mut is_changed = false;
        let mut left = active;
        let mut row = [0; 32];
        while left != 0 {
            let (side, mask) = self.group(block, reference.window, &addresses, &mut left, &mut row);
            let good = self.allowed(block, warp, at, side, mask, &row, total, true);
            if good == 0 {
                continue;
            }
            let by = self.lanes(block, warp, good);
            let grid = self.grid;
            let lock = (!grid.alone && side == Side::Global).then(|| grid.strong.lock());
            let kind = if operands.returns { Kind::Atomic } else { Kind::Reduction };
            self.tell(by, at, side, &row, reference, kind, &b, false);
            let mut near = self.near;
            for lane in lanes(good) {
                for (element, values) in b.iter().enumerate() {
                    let address = row[lane] + element as u64 * u64::from(bytes);
                    let change = |was: u64| (operands.update)(was, values[lane], c[lane]);
                    let was = match side {
                        Side::Global => match grid.memory.find(address, &mut near) {
                            Some(region) => region.words.update(address - region.address, bytes, change),
                            None => 0,
                        },
                        Side::Shared(rank) => self.blocks[rank as usize].shared.update(address, bytes, change),
                        Side::Local | Side::Parameters => {
                            let why = "an atomic operation on memory of a thread".to_string();
                            return Err(Stop::Refused(at, why));
                        }
                    };
                    is_changed |= change(was) != was;
                    old[element][lane] = was;
                }
            }
            self.near = near;
            drop(lock);
        }
        put_rows(warp, fragment, active, operands.to, &old);
        if is_changed {
            self.tell_news();
            return Ok(Flow::Next);
        }
        Ok(self.given_way(fragment, active, &old))
    }

    /// `cp.async`: the bytes are copied at once. The checker detects accesses that come too early.
    pub(super) fn copy(
        &mut self,
        by: &mut Executes<'_>,
        (shared, global): (&Reference, &Reference),
        (size, ignore): (Option<Source>, Truth),
    ) -> Result<Flow, Stop> {
        let Executes { block, code, at, active, .. } = *by;
        let (warp, fragment) = (&mut *by.warp, &mut *by.fragment);
        let frame = &warp.frames[fragment.frame];
        let ignored = frame.truth(ignore);
        let bytes = u64::from(shared.bytes);
        let mut read = [bytes as u32; 32];
        if let Some(size) = size {
            let size = frame.row(code, size);
            for lane in lanes(active) {
                if size[lane] > bytes {
                    let why = format!("`cp.async` reads {} bytes into {bytes}", size[lane]);
                    return Err(Stop::Refused(at, why));
                }
                read[lane] = size[lane] as u32;
            }
        }
        for lane in lanes(active & ignored) {
            read[lane] = 0;
        }
        let to = self.addresses(warp, fragment.frame, code, shared);
        let from = self.addresses(warp, fragment.frame, code, global);
        let own = self.blocks[block].rank;
        let mut good = self.allowed(block, warp, at, Side::Shared(own), active, &to, bytes, true);
        let reads = lanes(good).filter(|lane| read[*lane] > 0).fold(0, |mask, lane| mask | 1 << lane);
        // If nothing is read, the source address need not be valid.
        let mut whole = 0;
        let mut partial = 0;
        for lane in lanes(reads) {
            if u64::from(read[lane]) == bytes { whole |= 1 << lane } else { partial |= 1 << lane }
        }
        let mut fine = 0;
        if whole != 0 {
            fine |= self.allowed(block, warp, at, Side::Global, whole, &from, bytes, false);
        }
        for lane in lanes(partial) {
            let size = u64::from(read[lane]);
            // The bytes that are read must be inside of their memory. The address must be aligned
            // to the full size.
            let is_inside = self
                .grid
                .memory
                .find(from[lane], &mut self.near)
                .is_some_and(|region| size <= region.words.bytes() - (from[lane] - region.address));
            if is_inside {
                fine |= 1 << lane;
            } else {
                let (place, size) = self.place(Side::Global, from[lane], size);
                self.found(block, warp.number, 1 << lane, at, Defect::OutOfBounds { place, size, writes: false });
            }
        }
        good &= fine | !reads;
        if good == 0 {
            return Ok(Flow::Next);
        }
        let by = self.lanes(block, warp, good);
        self.check.copy(&CopyAsync { by, at, bytes: bytes as u32, shared: &to, global: &from, read: &read });
        let mut near = self.near;
        for lane in lanes(good) {
            let mut all = [0; 16];
            let part = &mut all[..(read[lane] as usize).min(16)];
            if !part.is_empty()
                && let Some(region) = self.grid.memory.find(from[lane], &mut near)
            {
                region.words.read_into(from[lane] - region.address, part);
            }
            self.blocks[block].shared.write_from(to[lane], &all[..bytes as usize], true);
        }
        self.near = near;
        self.tell_news();
        Ok(Flow::Next)
    }

    /// The memory that a polling fragment reads, as text.
    pub(super) fn polled(&self, warp: &Warp, fragment: &Fragment) -> String {
        let code = &self.grid.program.functions[warp.frames[fragment.frame].function as usize];
        let reference = match code.ops.get(fragment.poll_at as usize).map(|micro| &micro.op) {
            Some(Op::Load { from, .. }) => from,
            Some(Op::Atomic { at, .. }) => at,
            Some(Op::Async(op)) => return self.awaited(op),
            _ => return "and runs".to_string(),
        };
        if fragment.state != State::Ready {
            return String::new();
        }
        let row = self.addresses(warp, fragment.frame, code, reference);
        let address = row[fragment.mask.trailing_zeros() as usize & 31];
        let (side, address) = self.side(0, reference.window, address);
        let (place, _) = self.place(side, address, u64::from(reference.bytes));
        format!("for byte {} of {} to change", place.byte, place.memory)
    }
}
