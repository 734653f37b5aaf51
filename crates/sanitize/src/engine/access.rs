//! Accesses to memory: where they go, whether they may, what is reported to the checker, what they
//! do.

use super::cluster::{Cluster, Stop};
use super::code::{FunctionCode, Reference, Row, Source, Target, Truth, Update, Window};
use super::execute::{Flow, MAX_LOCAL};
use super::memory::{Memory, Words};
use super::warp::{Fragment, State, Warp};
use super::windows;
use crate::check::checker::{Access, CopyAsync, Kind, Lanes, Order, Space, Values};
use crate::check::finding::{Defect, Place};

/// The most elements of a vector that is loaded or stored.
const MAX_ELEMENTS: usize = 8;

/// The memory that lanes access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Global,
    Shared(u32),
    Local,
    Parameters,
}

/// Whether a generic address is of a window: `isspacep`.
pub(super) fn is_in(address: u64, window: Window) -> bool {
    let within = |start: u64| address.wrapping_sub(start) < windows::WINDOW;
    match window {
        Window::Generic => true,
        Window::Global => address >= windows::GLOBAL,
        Window::Const => false,
        Window::Shared => within(windows::SHARED) && address - windows::SHARED < windows::RANK,
        Window::SharedCluster => within(windows::SHARED),
        Window::Local => within(windows::LOCAL),
        Window::Param => within(windows::PARAMETERS),
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let lane = left.trailing_zeros();
            left &= left - 1;
            lane as usize
        })
    })
}

/// The bytes that lanes write, and those that are there.
struct Written<'a> {
    memory: &'a Memory,
    shared: Option<&'a Words>,
    addresses: &'a Row,
    rows: &'a [Row],
    bytes: usize,
    count: usize,
    is_known: bool,
}

impl Values for Written<'_> {
    fn written(&self, lane: usize) -> Option<[u8; 32]> {
        if !self.is_known {
            return None;
        }
        let mut all = [0; 32];
        for (row, into) in self.rows.iter().zip(all.chunks_exact_mut(self.bytes)) {
            into.copy_from_slice(&row[lane].to_le_bytes()[..self.bytes]);
        }
        Some(all)
    }

    fn held(&self, lane: usize) -> [u8; 32] {
        let mut all = [0; 32];
        let bytes = (self.bytes * self.count).min(32);
        let address = self.addresses[lane];
        match self.shared {
            Some(words) => words.read_into(address, &mut all[..bytes]),
            None => {
                if let Some(region) = self.memory.find(address, &mut 0) {
                    region.words.read_into(address - region.address, &mut all[..bytes]);
                }
            }
        }
        all
    }
}

/// The operands of an atomic operation.
pub(super) struct AtomicOperands<'a> {
    pub(super) to: &'a [Option<Target>],
    pub(super) b: &'a [Source],
    pub(super) c: Option<Source>,
    pub(super) update: &'a Update,
    pub(super) returns: bool,
}

fn is_strong(order: Order) -> bool {
    !matches!(order, Order::Weak | Order::NonCoherent)
}

/// The factor of the hash FNV-1a of 64 bits.
const FNV_PRIME: u64 = 0x100_0000_01b3;

/// Puts a row of each element into its register.
fn put_rows(warp: &mut Warp, fragment: &Fragment, active: u32, to: &[Option<Target>], rows: &[Row]) {
    let full = active == warp.live;
    let frame = &mut warp.frames[fragment.frame];
    for (target, values) in to.iter().zip(rows) {
        if let Some(target) = target {
            frame.put(*target, values, active, full);
        }
    }
}

impl Cluster<'_> {
    /// The address of each lane.
    #[inline]
    pub(super) fn addresses(&self, warp: &Warp, frame: usize, code: &FunctionCode, reference: &Reference) -> Row {
        let base = warp.frames[frame].row(code, reference.base);
        let mut row = [0; 32];
        let offset = reference.offset as u64;
        for lane in 0..32 {
            row[lane] = base[lane].wrapping_add(offset);
        }
        if matches!(reference.window, Window::Shared | Window::SharedCluster | Window::Local) {
            row.iter_mut().for_each(|address| *address &= 0xffff_ffff);
        }
        row
    }

    /// The memory of an address of a window, and the address in it.
    #[inline]
    pub(super) fn side(&self, block: usize, window: Window, address: u64) -> (Side, u64) {
        let own = self.blocks[block].rank;
        match window {
            Window::Global | Window::Const => (Side::Global, address),
            Window::Shared => (Side::Shared(own), address),
            Window::SharedCluster => {
                let (rank, offset) = windows::rank_of(address, own);
                (Side::Shared(rank), offset)
            }
            Window::Local => (Side::Local, address),
            Window::Param => (Side::Parameters, address),
            Window::Generic => {
                if address >= windows::GLOBAL {
                    (Side::Global, address)
                } else if is_in(address, Window::SharedCluster) {
                    let (rank, offset) = windows::rank_of(address - windows::SHARED, own);
                    (Side::Shared(rank), offset)
                } else if is_in(address, Window::Local) {
                    (Side::Local, address - windows::LOCAL)
                } else if is_in(address, Window::Param) {
                    (Side::Parameters, address - windows::PARAMETERS)
                } else {
                    (Side::Global, address)
                }
            }
        }
    }

    /// Takes from `left` the lanes whose memory is that of its first, and puts their addresses
    /// there into `row`.
    fn group(&self, block: usize, window: Window, addresses: &Row, left: &mut u32, row: &mut Row) -> (Side, u32) {
        let first = left.trailing_zeros() as usize & 31;
        let (side, _) = self.side(block, window, addresses[first]);
        if matches!(window, Window::Global | Window::Const | Window::Shared | Window::Local | Window::Param) {
            *row = *addresses;
            return (side, std::mem::take(left));
        }
        let mut mask = 0;
        for lane in lanes(*left) {
            let (own, address) = self.side(block, window, addresses[lane]);
            if own == side {
                mask |= 1 << lane;
                row[lane] = address;
            }
        }
        *left &= !mask;
        (side, mask)
    }

    /// The lanes whose access of so many bytes is inside and aligned; the others are reported.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn allowed(
        &mut self,
        block: usize,
        warp: &Warp,
        at: u32,
        side: Side,
        mask: u32,
        row: &Row,
        bytes: u64,
        writes: bool,
    ) -> u32 {
        let (mut outside, mut crooked, mut frozen) = (0, 0, 0);
        match side {
            Side::Global => {
                let mut near = self.near;
                for lane in lanes(mask) {
                    let address = row[lane];
                    match self.grid.memory.find(address, &mut near) {
                        Some(region) if bytes <= region.words.bytes() - (address - region.address) => {
                            frozen |= u32::from(writes && region.is_read_only) << lane;
                        }
                        _ => outside |= 1 << lane,
                    }
                    crooked |= u32::from(address & (bytes - 1) != 0) << lane;
                }
                self.near = near;
            }
            _ => {
                let size = self.size(side);
                for lane in lanes(mask) {
                    let address = row[lane];
                    outside |= u32::from(address >= size || bytes > size - address) << lane;
                    crooked |= u32::from(address & (bytes - 1) != 0) << lane;
                }
            }
        }
        if outside | crooked | frozen == 0 {
            return mask;
        }
        let bad = [outside, frozen, crooked].into_iter().find(|own| *own != 0).unwrap_or(0);
        let address = row[bad.trailing_zeros() as usize & 31];
        let (place, size) = self.place(side, address, bytes);
        let defect = match (outside != 0, frozen != 0) {
            (true, _) => Defect::OutOfBounds { place, size, writes },
            (_, true) => Defect::ReadOnly { place },
            _ => Defect::Misaligned { place, alignment: bytes as u32 },
        };
        self.found(block, warp.number, bad, at, defect);
        mask & !(outside | crooked | frozen)
    }

    /// The bytes of a memory that is not global.
    fn size(&self, side: Side) -> u64 {
        match side {
            Side::Shared(rank) if (rank as usize) < self.blocks.len() => self.grid.shared_bytes,
            Side::Shared(_) => 0,
            Side::Local => MAX_LOCAL,
            Side::Parameters => self.grid.parameters.bytes(),
            Side::Global => 0,
        }
    }

    /// Bytes for a message, and the size of their memory.
    pub(super) fn place(&self, side: Side, address: u64, bytes: u64) -> (Place, u64) {
        match side {
            Side::Global => match self.grid.memory.nearest(address) {
                Some(region) => {
                    let byte = address.wrapping_sub(region.address) as i64;
                    (Place { memory: format!("`{}`", region.name), byte, bytes }, region.words.bytes())
                }
                None => (Place { memory: "global memory".to_string(), byte: address as i64, bytes }, 0),
            },
            _ => {
                let memory = match side {
                    Side::Local => "local memory",
                    Side::Parameters => "the parameters",
                    _ => "shared memory",
                };
                (Place { memory: memory.to_string(), byte: address as i64, bytes }, self.size(side))
            }
        }
    }

    /// Tells the checker of an access of some lanes.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn tell(
        &mut self,
        by: Lanes,
        at: u32,
        side: Side,
        row: &Row,
        reference: &Reference,
        kind: Kind,
        rows: &[Row],
        is_known: bool,
    ) {
        let space = match side {
            Side::Global => Space::Global,
            Side::Shared(rank) => Space::Shared { rank },
            Side::Local | Side::Parameters => return,
        };
        if reference.window == Window::Const {
            return;
        }
        let shared = match side {
            Side::Shared(rank) => Some(&self.blocks[rank as usize].shared),
            _ => None,
        };
        let values = Written {
            memory: self.grid.memory,
            shared,
            addresses: row,
            rows,
            bytes: reference.bytes as usize,
            count: reference.count as usize,
            is_known,
        };
        self.check.access(&Access {
            by,
            at,
            space,
            kind,
            order: reference.order,
            scope: reference.scope,
            bytes: u32::from(reference.bytes) * u32::from(reference.count),
            addresses: row,
            values: &values,
        });
    }

    /// Reads the elements of some lanes into rows.
    fn fetch(&mut self, warp: &Warp, side: Side, mask: u32, row: &Row, reference: &Reference, rows: &mut [Row]) {
        let bytes = u32::from(reference.bytes);
        let mut near = self.near;
        for lane in lanes(mask) {
            for (element, into) in rows.iter_mut().enumerate() {
                let address = row[lane] + element as u64 * u64::from(bytes);
                into[lane] = match side {
                    Side::Global => match self.grid.memory.find(address, &mut near) {
                        Some(region) => region.words.read(address - region.address, bytes),
                        None => 0,
                    },
                    Side::Shared(rank) => self.blocks[rank as usize].shared.read(address, bytes),
                    Side::Parameters => self.grid.parameters.read(address, bytes),
                    Side::Local => local_read(warp, lane, address, bytes),
                };
            }
        }
        self.near = near;
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn load(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        code: &FunctionCode,
        at: u32,
        active: u32,
        from: &Reference,
        to: &[Option<Target>],
    ) -> Result<Flow, Stop> {
        let addresses = self.addresses(warp, fragment.frame, code, from);
        let total = u64::from(from.bytes) * u64::from(from.count);
        let mut rows = [[0; 32]; MAX_ELEMENTS];
        let rows = &mut rows[..(from.count as usize).min(MAX_ELEMENTS)];
        let mut left = active;
        let mut row = [0; 32];
        while left != 0 {
            let (side, mask) = self.group(block, from.window, &addresses, &mut left, &mut row);
            let good = self.allowed(block, warp, at, side, mask, &row, total, false);
            if good == 0 {
                continue;
            }
            let by = self.lanes(block, warp, good);
            let grid = self.grid;
            let lock = (is_strong(from.order) && !grid.alone && side == Side::Global).then(|| grid.strong.lock());
            self.tell(by, at, side, &row, from, Kind::Read, &[], false);
            self.fetch(warp, side, good, &row, from, rows);
            drop(lock);
        }
        put_rows(warp, fragment, active, to, rows);
        Ok(if is_strong(from.order) { self.given_way(fragment, active, rows) } else { Flow::Next })
    }

    /// Parks a fragment that has read the same values again and again.
    fn given_way(&mut self, fragment: &mut Fragment, active: u32, rows: &[Row]) -> Flow {
        let seen = lanes(active).fold(u64::from(active), |all, lane| {
            rows.iter().fold(all, |all, values| all.rotate_left(7).wrapping_mul(FNV_PRIME) ^ values[lane])
        });
        if !self.poll(fragment, seen) {
            return Flow::Next;
        }
        fragment.pc += 1;
        Flow::Parked
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn store(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        code: &FunctionCode,
        at: u32,
        active: u32,
        to: &Reference,
        from: &[Source],
    ) -> Result<Flow, Stop> {
        let addresses = self.addresses(warp, fragment.frame, code, to);
        let bytes = u32::from(to.bytes);
        let total = u64::from(to.bytes) * u64::from(to.count);
        let mut rows = [[0; 32]; MAX_ELEMENTS];
        let count = from.len().min(MAX_ELEMENTS);
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
            for lane in lanes(good) {
                for (element, values) in rows.iter().enumerate() {
                    let address = row[lane] + element as u64 * u64::from(bytes);
                    match side {
                        Side::Global => {
                            if let Some(region) = grid.memory.find(address, &mut near) {
                                region.words.write(address - region.address, bytes, values[lane], grid.alone);
                            }
                        }
                        Side::Shared(rank) => {
                            self.blocks[rank as usize].shared.write(address, bytes, values[lane], true);
                        }
                        Side::Local => local_write(warp, lane, address, bytes, values[lane]),
                        Side::Parameters => {
                            return Err(Stop::Refused(at, "a store to the parameters of an entry".to_string()));
                        }
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

    #[allow(clippy::too_many_arguments)]
    pub(super) fn atomic(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        code: &FunctionCode,
        at: u32,
        active: u32,
        reference: &Reference,
        operands: &AtomicOperands<'_>,
    ) -> Result<Flow, Stop> {
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

    /// `cp.async`: the bytes are there at once; what may not be seen of them yet is the checker's.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn copy(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &mut Fragment,
        code: &FunctionCode,
        at: u32,
        active: u32,
        (shared, global): (&Reference, &Reference),
        (size, ignore): (Option<Source>, Truth),
    ) -> Result<Flow, Stop> {
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
        // An address that nothing is read from may be anywhere.
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
            // Its bytes must be inside; its address is aligned to the whole.
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

    /// What a fragment that polls looks at.
    pub(super) fn polled(&self, warp: &Warp, fragment: &Fragment) -> String {
        let code = &self.grid.program.functions[warp.frames[fragment.frame].function as usize];
        let reference = match code.ops.get(fragment.poll_at as usize).map(|micro| &micro.op) {
            Some(super::code::Op::Load { from, .. }) => from,
            Some(super::code::Op::Atomic { at, .. }) => at,
            Some(super::code::Op::Async(op)) => return self.awaited(op),
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

    // What the device calls of the run time do.

    /// A byte at a generic address; none where nothing is.
    fn byte(&mut self, block: usize, warp: &Warp, lane: usize, address: u64) -> Option<u8> {
        let (side, offset) = self.side(block, Window::Generic, address);
        Some(match side {
            Side::Global => {
                let region = self.grid.memory.find(offset, &mut self.near)?;
                region.words.read(offset - region.address, 1) as u8
            }
            Side::Shared(rank) => self.blocks.get(rank as usize)?.shared.read(offset, 1) as u8,
            Side::Parameters => self.grid.parameters.read(offset, 1) as u8,
            Side::Local => local_read(warp, lane, offset, 1) as u8,
        })
    }

    fn text(&mut self, block: usize, warp: &Warp, lane: usize, address: u64) -> String {
        let bytes = (0..4096).map_while(|at| self.byte(block, warp, lane, address + at).filter(|byte| *byte != 0));
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }

    /// `vprintf`.
    pub(super) fn print(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &Fragment,
        code: &FunctionCode,
        active: u32,
        arguments: &[Source],
    ) {
        let row =
            |at: usize| arguments.get(at).map_or([0; 32], |source| *warp.frames[fragment.frame].row(code, *source));
        let (formats, buffers) = (row(0), row(1));
        for lane in lanes(active) {
            let format = self.text(block, warp, lane, formats[lane]);
            let mut at = buffers[lane];
            let line = super::print::format(&format, |bytes| {
                at = at.next_multiple_of(bytes);
                let value = (0..bytes).fold(0, |value, byte| {
                    value | u64::from(self.byte(block, warp, lane, at + byte).unwrap_or(0)) << (8 * byte)
                });
                at += bytes;
                value
            });
            // Texts are read where their addresses stand.
            let line = line.into_iter().map(|piece| match piece {
                super::print::PrintPiece::Text(text) => text,
                super::print::PrintPiece::TextAt(address) => self.text(block, warp, lane, address),
            });
            let line = line.collect();
            self.grid.print(line);
        }
    }

    /// `__assertfail`: the assertion, its file and its line.
    pub(super) fn assertion(
        &mut self,
        block: usize,
        warp: &mut Warp,
        fragment: &Fragment,
        code: &FunctionCode,
        active: u32,
        arguments: &[Source],
    ) -> String {
        let lane = active.trailing_zeros() as usize & 31;
        let value =
            |at: usize| arguments.get(at).map_or(0, |source| warp.frames[fragment.frame].row(code, *source)[lane]);
        let (what, file, line, function) = (value(0), value(1), value(2) as u32, value(3));
        let what = self.text(block, warp, lane, what);
        let file = self.text(block, warp, lane, file);
        let function = self.text(block, warp, lane, function);
        format!("the assertion `{what}` fails, {file}:{line} in {function}")
    }
}

fn local_read(warp: &Warp, lane: usize, address: u64, bytes: u32) -> u64 {
    let Some(own) = warp.local.get(lane) else { return 0 };
    (0..u64::from(bytes)).fold(0, |value, byte| {
        value | u64::from(own.get((address + byte) as usize).copied().unwrap_or(0)) << (8 * byte)
    })
}

fn local_write(warp: &mut Warp, lane: usize, address: u64, bytes: u32, value: u64) {
    if warp.local.is_empty() {
        warp.local = vec![Vec::new(); 32];
    }
    let own = &mut warp.local[lane];
    let end = address as usize + bytes as usize;
    if own.len() < end {
        own.resize(end.next_multiple_of(64), 0);
    }
    own[address as usize..end].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
}
