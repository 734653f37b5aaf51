//! Bulk copies: boxes of tensors and bytes of shared memory, copied by TMA.
//!
//! Law: as for any asynchronous copy (`background.rs`). A load arrives at an mbarrier of its block
//! with its bytes. A store has finished when its thread has waited for its group. Bytes from
//! ordinary stores are read or overwritten only after a proxy fence by the thread that stored.
//!
//! At the edges of a tensor, TMA differs by direction, as measured on an H200 (the book, "What the
//! device was compared with"). A load fills element by element: elements before the first
//! coordinate or past an extent are 0. A store writes whole chunks of 16 bytes, so a row that ends
//! inside a chunk is written past its end; it skips rows and boxes past an extent, and traps at a
//! negative coordinate. Both trap if the innermost coordinate is not a multiple of 16 bytes.

use std::collections::VecDeque;

use super::access::addresses;
use super::clock::{Event, Known, MAX_COUNT, Work};
use super::finding::Defect;
use super::lanes::{lanes, signed};
use super::machine::{InterpretedRun, Stop};
use super::schedule::Order;
use super::setup::MapBoxes;
use super::touch::{AccessKind, Actor, Memory, Span, Touch};
use super::warp::Warp;
use crate::program::memory::{Access, MapId};
use crate::program::{BULK_CHUNK_BYTES, Instruction};

/// The alignment of boxes in shared memory, in bytes.
const PLACES: u32 = 128;

/// A bulk store that was issued.
#[derive(Debug, Clone)]
struct Store {
    group: u32,
    map: MapId,
    from: Span,
    coordinates: [i64; 5],
}

/// The bulk stores of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct BulkStores {
    committed: u32,
    /// The last group with a store, and the node at which that store was issued.
    pub(super) last: (u32, usize),
    pending: VecDeque<Store>,
}

/// The source of a bulk load.
#[derive(Debug, Clone)]
enum BytesOrigin {
    /// The box of a map with this origin.
    Box(MapId, [i64; 5]),
    /// Bytes of shared memory.
    Shared(Span),
}

/// A bulk load that was issued, into the shared memory of one block.
#[derive(Debug, Clone)]
pub(super) struct Load {
    from: BytesOrigin,
    to: Span,
    object: usize,
    /// The phase of its mbarrier when it was issued.
    phase: u32,
    by: Actor,
    /// The knowledge of the thread that issued it.
    known: Known,
}

/// A row of a box.
struct Row {
    /// Its first byte in the box.
    boxed: i64,
    /// Its part inside the tensor: the offset in the row, the offset in the tensor, and the length,
    /// in bytes.
    real: Option<(i64, i64, u64)>,
}

impl MapBoxes {
    /// The rows of the box at some coordinates.
    fn rows(&self, coordinates: &[i64; 5]) -> Vec<Row> {
        let element = i64::from(self.element);
        let length = i64::from(self.boxed[0]);
        let count: i64 = self.boxed[1..].iter().map(|extent| i64::from(*extent)).product();
        let low = coordinates[0].max(0);
        let high = (coordinates[0] + length).min(self.extents[0]);
        (0..count)
            .map(|row| {
                let (mut rest, mut at, mut exists) = (row, low * element, low < high);
                let others = self.boxed.iter().zip(&self.extents).zip(&self.strides).zip(coordinates).skip(1);
                for (((boxed, extent), stride), corner) in others {
                    let coordinate = corner + rest % i64::from(*boxed);
                    rest /= i64::from(*boxed);
                    exists &= (0..*extent).contains(&coordinate);
                    at = at.saturating_add(coordinate.saturating_mul(*stride));
                }
                let bytes = ((high - low).max(0) * element).unsigned_abs();
                let skipped = (low - coordinates[0]) * element;
                Row { boxed: row * length * element, real: exists.then_some((skipped, at, bytes)) }
            })
            .collect()
    }

    /// The swizzled address of a byte of a box, in the shared memory of the block.
    fn swizzled(&self, address: i64) -> i64 {
        address ^ (address >> 3 & self.flips)
    }
}

impl InterpretedRun<'_> {
    /// The origin of a box, from an input on.
    fn corner(&self, warp: &Warp, instruction: &Instruction, input: usize, lane: usize) -> [i64; 5] {
        let mut coordinates = [0; 5];
        for (coordinate, register) in coordinates.iter_mut().zip(&instruction.inputs[input..]) {
            *coordinate = signed(warp.registers[register.index()][lane], 32);
        }
        coordinates
    }

    /// Stops the run if a box may not be copied because of its alignment in shared memory or the
    /// address of its first row.
    fn box_inside(&mut self, by: Actor, map: MapId, shared: Span, coordinates: &[i64; 5]) -> Result<(), Stop> {
        let boxes = &self.setup.maps[map.index()];
        if !self.inside(by, &shared, PLACES)? {
            return Err(Stop);
        }
        let first = coordinates[0] * i64::from(boxes.element);
        if first % i64::from(BULK_CHUNK_BYTES) != 0 {
            let place = self.place(boxes.buffer, first, boxes.element.into());
            self.report_by(by, Defect::Misaligned { place, alignment: BULK_CHUNK_BYTES })?;
            return Err(Stop);
        }
        Ok(())
    }

    /// Stops the run if a stored box does not stay inside its tensor: if a coordinate is negative,
    /// or a row ends inside a chunk. Rows begin at chunk boundaries, because strides are multiples
    /// of chunks.
    fn store_inside(&mut self, by: Actor, map: MapId, coordinates: &[i64; 5]) -> Result<(), Stop> {
        let boxes = &self.setup.maps[map.index()];
        let element = i64::from(boxes.element);
        let corner = coordinates.iter().zip(&boxes.extents);
        let before = corner.enumerate().find(|(_, (at, _))| **at < 0).map(|(mode, (at, _))| (mode, *at));
        if let Some((mode, at)) = before {
            let stride = if mode == 0 { element } else { boxes.strides[mode] };
            let place = self.place(boxes.buffer, at.saturating_mul(stride), boxes.element.into());
            self.report_by(by, Defect::BulkEdge { place, before })?;
            return Err(Stop);
        }
        let chunk = u64::from(BULK_CHUNK_BYTES);
        let past = boxes.rows(coordinates).into_iter().filter_map(|row| row.real);
        let past = past.map(|(_, at, bytes)| (at + bytes as i64, bytes.next_multiple_of(chunk) - bytes));
        if let Some((end, rest)) = past.into_iter().find(|(_, rest)| *rest > 0) {
            let place = self.place(boxes.buffer, end, rest);
            self.report_by(by, Defect::BulkEdge { place, before: None })?;
            return Err(Stop);
        }
        Ok(())
    }

    /// Records the accesses of a bulk copy to the tensor.
    fn touch_rows(
        &mut self,
        by: Actor,
        map: MapId,
        coordinates: &[i64; 5],
        kind: AccessKind,
        event: Event,
    ) -> Result<(), Stop> {
        let boxes = &self.setup.maps[map.index()];
        let memory = self.own(boxes.buffer, by.thread);
        for row in boxes.rows(coordinates) {
            let Some((_, address, bytes)) = row.real else { continue };
            let span = Span { memory, address, bytes };
            if !self.inside(by, &span, boxes.element)? || !self.touch(&Touch { by, span, kind, event })? {
                return Err(Stop);
            }
        }
        Ok(())
    }

    /// Checks that a fence follows the ordinary stores to bytes of shared memory that a bulk copy
    /// is about to read or overwrite.
    pub(super) fn fenced(&mut self, by: Actor, shared: Span) -> Result<(), Stop> {
        let shift = self.setup.shared_shift;
        let first = self.shared_at(shared.memory, shared.address);
        let cells = (first >> shift) as usize..=((first + shared.bytes - 1) >> shift) as usize;
        let block = &self.block;
        let found = block.cells[cells].iter().find_map(|cell| block.groups.unfenced(cell, by.thread, &block.clocks));
        if let Some(before) = found {
            let (place, before) = (self.place_of(&shared), self.party(before));
            self.report_by(by, Defect::Unfenced { place, before, global: false })?;
        }
        Ok(())
    }

    pub(super) fn bulk_load(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        map: MapId,
        (to, barrier): (&Access, &Access),
        multicast: bool,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let targets = addresses(warp, instruction, to, false, &mut input);
        let objects = addresses(warp, instruction, barrier, false, &mut input);
        let bytes = u64::from(self.setup.maps[map.index()].bytes);
        for lane in lanes(self.active(warp, instruction)) {
            let by = Actor { place, thread: warp.thread(lane) };
            let coordinates = self.corner(warp, instruction, input, lane);
            let target = Span { memory: self.own(to.buffer, by.thread), address: targets[lane], bytes };
            self.box_inside(by, map, target, &coordinates)?;
            let mask = match instruction.inputs.last().filter(|_| multicast) {
                Some(mask) => warp.registers[mask.index()][lane],
                None => 1 << warp.rank,
            };
            if mask == 0 || mask >> self.program.cluster_size() != 0 {
                let rank = if mask == 0 { 0 } else { mask.ilog2() };
                self.report_by(by, Defect::Lifetime { place: self.place_of(&target), rank, ended: false })?;
                return Err(Stop);
            }
            for rank in (0..self.program.cluster_size() as usize).filter(|rank| mask >> rank & 1 == 1) {
                let object = self.object(by, Memory { buffer: barrier.buffer, rank }, objects[lane], true)?;
                let event = self.load_event(object, place);
                self.touch_rows(by, map, &coordinates, AccessKind::Read, event)?;
                let target = Span { memory: Memory { buffer: to.buffer, rank }, ..target };
                self.set_off(by, BytesOrigin::Box(map, coordinates), target, object)?;
            }
        }
        Ok(())
    }

    /// Sends bytes of shared memory to another block of the cluster.
    pub(super) fn bulk_send(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        [to, barrier, from]: [&Access; 3],
        bytes: u32,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let [targets, objects, sources] =
            [to, barrier, from].map(|access| addresses(warp, instruction, access, false, &mut input));
        let ranks = self.ranks(warp, place, instruction, to, input)?;
        let bytes = u64::from(bytes);
        for lane in lanes(self.active(warp, instruction)) {
            let by = Actor { place, thread: warp.thread(lane) };
            let rank = ranks[lane];
            let target = Span { memory: Memory { buffer: to.buffer, rank }, address: targets[lane], bytes };
            let source = Span { memory: self.own(from.buffer, by.thread), address: sources[lane], bytes };
            for span in [target, source] {
                if !self.inside(by, &span, 16)? {
                    return Err(Stop);
                }
            }
            let object = self.object(by, Memory { buffer: barrier.buffer, rank }, objects[lane], true)?;
            let event = self.load_event(object, place);
            self.fenced(by, source)?;
            self.touch(&Touch { by, span: source, kind: AccessKind::Read, event })?;
            self.set_off(by, BytesOrigin::Shared(source), target, object)?;
        }
        Ok(())
    }

    /// The event of a bulk load that completes on an mbarrier now.
    fn load_event(&self, object: usize, place: usize) -> Event {
        Event::new(self.block.clocks.load_agent(object), self.block.objects[object].phase + 1, place)
    }

    /// Issues a bulk load into the shared memory of one block.
    fn set_off(&mut self, by: Actor, from: BytesOrigin, to: Span, object: usize) -> Result<(), Stop> {
        let (event, phase) = (self.load_event(object, by.place), self.block.objects[object].phase);
        self.fenced(by, to)?;
        self.touch(&Touch { by, span: to, kind: AccessKind::Write, event })?;
        self.counts_in_phase(by, object);
        self.block.objects[object].last_load = Some((phase + 1, by));
        let known = self.block.clocks.known_to(by.thread);
        self.block.loads.push_back(Load { from, to, object, phase, by, known });
        if self.at_once() {
            let last = self.block.loads.len() - 1;
            self.complete(last)?;
        }
        Ok(())
    }

    /// Completes one of the bulk loads in flight.
    pub(super) fn complete_load(&mut self) -> Result<(), Stop> {
        let at = match self.schedule.order {
            Order::Random(_) => self.random.below(self.block.loads.len() as u64) as usize,
            _ => 0,
        };
        self.complete(at)
    }

    fn complete(&mut self, at: usize) -> Result<(), Stop> {
        let Some(load) = self.block.loads.remove(at) else { return Ok(()) };
        match &load.from {
            BytesOrigin::Box(map, coordinates) => self.move_box(*map, load.to, coordinates, true),
            BytesOrigin::Shared(from) => {
                let moved = self.bytes_of(*from).to_vec();
                self.bytes_of(load.to).copy_from_slice(&moved);
            }
        }
        let bytes = load.to.bytes as i64;
        let object = &mut self.block.objects[load.object];
        object.expects -= bytes;
        object.phases.load(&load.known);
        if object.phase != load.phase {
            let place = self.object_place(load.object);
            self.report_by(load.by, Defect::TransactionBytes { place, expects: -bytes })?;
        }
        self.end_phase(load.object);
        Ok(())
    }

    /// Copies a box to shared memory or from it.
    fn move_box(&mut self, map: MapId, shared: Span, coordinates: &[i64; 5], to_shared: bool) {
        let boxes = &self.setup.maps[map.index()];
        let start = shared.address + i64::from(self.program.buffer(shared.memory.buffer).start);
        // TMA applies the swizzle to bits of addresses in the block.
        let begin = shared.memory.rank * self.setup.shared_bytes;
        let length = i64::from(boxes.boxed[0] * boxes.element);
        let tensor = &mut self.globals[boxes.buffer.index()].data;
        for row in boxes.rows(coordinates) {
            let (skipped, address, bytes) = row.real.unwrap_or((0, 0, 0));
            for at in 0..length {
                let inner = begin + boxes.swizzled(start + row.boxed + at) as usize;
                let real = at >= skipped && ((at - skipped) as u64) < bytes;
                let outer = (address + at - skipped) as usize;
                match (to_shared, real) {
                    (true, true) => self.block.shared[inner] = tensor[outer],
                    (true, false) => self.block.shared[inner] = 0,
                    (false, true) => tensor[outer] = self.block.shared[inner],
                    (false, false) => {}
                }
            }
        }
    }

    pub(super) fn bulk_store(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        map: MapId,
        from: &Access,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let sources = addresses(warp, instruction, from, false, &mut input);
        let bytes = u64::from(self.setup.maps[map.index()].bytes);
        for lane in lanes(self.active(warp, instruction)) {
            let thread = warp.thread(lane);
            let by = Actor { place, thread };
            let coordinates = self.corner(warp, instruction, input, lane);
            let source = Span { memory: self.own(from.buffer, thread), address: sources[lane], bytes };
            self.box_inside(by, map, source, &coordinates)?;
            self.store_inside(by, map, &coordinates)?;
            let group = self.block.stores[thread].committed + 1;
            let reading = self.block.clocks.background(thread, Work::StoreRead, group, place);
            let writing = self.block.clocks.background(thread, Work::StoreWrite, group, place);
            self.fenced(by, source)?;
            self.touch(&Touch { by, span: source, kind: AccessKind::Read, event: reading })?;
            self.touch_rows(by, map, &coordinates, AccessKind::Write, writing)?;
            self.block.stores[thread].last = (group, place);
            if self.at_once() {
                self.move_box(map, source, &coordinates, false);
            } else {
                self.block.stores[thread].pending.push_back(Store { group, map, from: source, coordinates });
            }
        }
        Ok(())
    }

    pub(super) fn commit_stores(&mut self, warp: &Warp) {
        for thread in warp.threads(warp.mask) {
            if let Some(stores) = self.block.stores.get_mut(thread) {
                stores.committed = (stores.committed + 1).min(MAX_COUNT - 1);
            }
        }
    }

    pub(super) fn wait_stores(&mut self, warp: &Warp, groups: u32, read: bool) {
        for thread in warp.threads(warp.mask) {
            let Some(stores) = self.block.stores.get(thread) else { continue };
            let done = stores.committed.saturating_sub(groups);
            self.finish_stores(thread, done);
            self.block.clocks.finish(thread, Work::StoreRead, done);
            if !read {
                self.block.clocks.finish(thread, Work::StoreWrite, done);
            }
        }
    }

    /// Performs the bulk stores of a thread up to a group.
    pub(super) fn finish_stores(&mut self, thread: usize, done: u32) {
        let stores = &mut self.block.stores[thread];
        let count = stores.pending.iter().take_while(|store| store.group <= done).count();
        let ready: Vec<Store> = stores.pending.drain(..count).collect();
        for store in &ready {
            self.move_box(store.map, store.from, &store.coordinates, false);
        }
    }
}
