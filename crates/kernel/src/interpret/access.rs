//! Loads, stores and atomic operations, and what every access is checked for.
//!
//! Law: an access is carried out if it lies inside its buffer and is aligned; it is ordered after
//! every access that it conflicts with; it reads what was written, and writes what may be written.

mod matrix;

use super::arithmetic;
use super::clock::Event;
use super::cluster::Memory;
use super::finding::Defect;
use super::lanes::{LANES, Lanes, lanes};
use super::machine::{Machine, Stop};
use super::shadow::{Conflict, Foreign, Touch};
use super::stepper::Trace;
use super::warp::Warp;
use crate::program::Instruction;
use crate::program::memory::{Access, BufferId, Role, Space};
use crate::program::operation::{AtomicOperation, Binary, Number};

/// The addresses of an access in each lane; the next input that is not an address of it.
pub(super) fn addresses(
    warp: &Warp,
    instruction: &Instruction,
    access: &Access,
    wide: bool,
    input: &mut usize,
) -> [i64; LANES] {
    if !access.addressed {
        return [access.offset; LANES];
    }
    let values = &warp.registers[instruction.inputs[*input].index()];
    *input += 1;
    let extended = |value: u64| if wide { value as i64 } else { i64::from(value as u32 as i32) };
    values.map(|value| extended(value).wrapping_add(access.offset))
}

/// The little-endian number in some bytes.
fn read_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn write_bytes(bytes: &mut [u8], value: u64) {
    for (byte, value) in bytes.iter_mut().zip(value.to_le_bytes()) {
        *byte = value;
    }
}

impl Machine<'_> {
    pub(super) fn is_global(&self, buffer: BufferId) -> bool {
        self.program.buffer(buffer).space == Space::Global
    }

    /// Whether an access of some bytes at an address is inside its buffer and aligned.
    pub(super) fn inside(
        &mut self,
        place: usize,
        thread: usize,
        buffer: BufferId,
        address: i64,
        bytes: u64,
        alignment: u32,
    ) -> Result<bool, Stop> {
        let size = self.setup.extents[buffer.index()].bytes;
        let end = i128::from(address) + i128::from(bytes);
        if address < 0 || end > i128::from(size) {
            let of = self.place(buffer, address, bytes);
            self.report(Defect::OutOfBounds { place: of, size }, place, Some(thread))?;
            return Ok(false);
        }
        let own = self.program.buffer(buffer);
        let absolute = address + i64::from(own.start);
        let promised = own.space == Space::Shared || alignment <= own.alignment;
        if absolute % i64::from(alignment) != 0 || !promised {
            let of = self.place(buffer, address, bytes);
            self.report(Defect::Misaligned { place: of, alignment }, place, Some(thread))?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Records that a thread touches bytes that are inside, and checks that it may; whether to go
    /// on.
    pub(super) fn touch(
        &mut self,
        (place, thread): (usize, usize),
        memory: Memory,
        address: i64,
        bytes: u64,
        touch: Touch,
        event: Event,
    ) -> Result<bool, Stop> {
        if let Some(trail) = &mut self.trail {
            trail.push(Trace { place, thread, memory, byte: address, bytes, touch, event });
        }
        if self.is_global(memory.buffer) {
            self.touch_global((place, thread), memory.buffer, address, bytes, touch, event)
        } else {
            self.remember_use((place, thread), memory, (address, bytes), event)?;
            self.touch_shared((place, thread), memory, address, bytes, touch, event)?;
            Ok(true)
        }
    }

    fn touch_shared(
        &mut self,
        (place, thread): (usize, usize),
        memory: Memory,
        address: i64,
        bytes: u64,
        touch: Touch,
        event: Event,
    ) -> Result<(), Stop> {
        let (buffer, first) = (memory.buffer, self.shared_at(memory, address));
        if self.block.objects.iter().any(|object| object.meets(first, bytes)) {
            let of = self.place(buffer, address, bytes);
            self.report(Defect::BarrierBytes { place: of }, place, Some(thread))?;
        }
        let shift = self.setup.shared_shift;
        let (mut unwritten, mut conflict) = (None, None);
        for number in (first >> shift)..=((first + bytes - 1) >> shift) {
            let block = &mut self.block;
            let cell = &mut block.cells[number as usize];
            if touch != Touch::Write && !cell.is_written() {
                unwritten = unwritten.or(Some(number));
            }
            let found = block.groups.touch(cell, touch, event, thread, &block.clocks);
            if found.is_some() && touch != Touch::Read {
                block.raced.insert(number);
            }
            conflict = conflict.or(found);
        }
        if let Some(cell) = unwritten {
            let of = self.place(buffer, address, bytes);
            self.block.unwritten.entry(place).or_insert((cell, thread, Defect::Unwritten { place: of }));
        }
        if let Some(before) = conflict {
            self.report_conflict((place, thread), buffer, address, bytes, (before, event))?;
        }
        Ok(())
    }

    fn report_conflict(
        &mut self,
        (place, thread): (usize, usize),
        buffer: BufferId,
        address: i64,
        bytes: u64,
        (before, now): (Event, Event),
    ) -> Result<(), Stop> {
        let (of, before) = (self.place(buffer, address, bytes), self.party(before));
        let defect = if before.background || self.party(now).background {
            Defect::Unfinished { place: of, before }
        } else {
            Defect::Race { place: of, before }
        };
        self.report(defect, place, Some(thread))
    }

    fn touch_global(
        &mut self,
        (place, thread): (usize, usize),
        buffer: BufferId,
        address: i64,
        bytes: u64,
        touch: Touch,
        event: Event,
    ) -> Result<bool, Stop> {
        if self.setup.waits && !self.block.clocks.knows_launches(thread) {
            let of = self.place(buffer, address, bytes);
            self.report(Defect::Launches { place: of }, place, Some(thread))?;
        }
        let role = self.program.buffer(buffer).role;
        let shift = self.setup.extents[buffer.index()].shift;
        let (first, last) = ((address as usize) >> shift, (address as u64 + bytes - 1) as usize >> shift);
        match (role, touch) {
            (Role::Input, Touch::Read) => Ok(true),
            (Role::Input, _) => {
                let of = self.place(buffer, address, bytes);
                self.report(Defect::Role { place: of, role }, place, Some(thread))?;
                Ok(false)
            }
            (Role::Output, Touch::Read) if self.block.clocks.known_arrivals(thread) > 0 => {
                self.read_output((place, thread), buffer, (address, bytes), (first, last), event)?;
                Ok(true)
            }
            (Role::Output, Touch::Read | Touch::Atomic) => {
                let writers = &self.globals[buffer.index()].writers[first..=last];
                let unwritten = writers.iter().any(|writer| !writer.event.is_some());
                let of = self.place(buffer, address, bytes);
                let defect = if unwritten { Defect::Unwritten { place: of } } else { Defect::Role { place: of, role } };
                self.report(defect, place, Some(thread))?;
                Ok(true)
            }
            (Role::Output, Touch::Write) => {
                let block = self.block.number;
                let global = &mut self.globals[buffer.index()];
                let (mut before, mut reader) = (None, None);
                for cell in first..=last {
                    let writer = &mut global.writers[cell];
                    before = before.or(Some(*writer).filter(|writer| writer.event.is_some()));
                    reader = reader.or(global.readers.get(&cell).copied());
                    *writer = Foreign { event, block };
                }
                if let Some(reader) = reader {
                    // A thread that read the byte may already have read the value that is written
                    // here.
                    let (of, before) = (self.place(buffer, address, bytes), self.foreign_party(reader));
                    self.report(Defect::RaceBetweenBlocks { place: of, before }, place, Some(thread))?;
                }
                if let Some(before) = before {
                    self.report_second_write((place, thread), buffer, address, bytes, (before, event))?;
                }
                Ok(true)
            }
            (Role::Both, _) => {
                let block = self.block.number;
                let clocks = &self.block.clocks;
                let mut conflict = None;
                for cell in &mut self.globals[buffer.index()].cells[first..=last] {
                    let told = (clocks, &self.arrivals);
                    let found = self.groups.touch_global(cell, touch, event, (block, thread), told);
                    conflict = conflict.or(found);
                }
                match conflict {
                    Some(Conflict::Block(before)) => {
                        self.report_conflict((place, thread), buffer, address, bytes, (before, event))?;
                    }
                    Some(Conflict::Grid(before)) => {
                        let (of, before) = (self.place(buffer, address, bytes), self.foreign_party(before));
                        self.report(Defect::RaceBetweenBlocks { place: of, before }, place, Some(thread))?;
                    }
                    None => {}
                }
                Ok(true)
            }
        }
    }

    /// An output that is read by a thread that other blocks have told what they knew: each byte was
    /// written before.
    fn read_output(
        &mut self,
        (place, thread): (usize, usize),
        buffer: BufferId,
        (address, bytes): (i64, u64),
        (first, last): (usize, usize),
        event: Event,
    ) -> Result<(), Stop> {
        let block = self.block.number;
        let mut unwritten = false;
        let mut conflict = None;
        for cell in first..=last {
            let writer = self.globals[buffer.index()].writers[cell];
            unwritten |= !writer.event.is_some();
            let ordered = match writer.block == block {
                true => self.block.clocks.ordered(writer.event, thread),
                false => self.passed_on(writer, thread),
            };
            if writer.event.is_some() && !ordered {
                conflict = conflict.or(Some(writer));
            }
            self.globals[buffer.index()].readers.insert(cell, Foreign { event, block });
        }
        let of = self.place(buffer, address, bytes);
        match conflict {
            Some(before) if before.block == block => {
                self.report_conflict((place, thread), buffer, address, bytes, (before.event, event))
            }
            Some(before) => {
                let before = self.foreign_party(before);
                self.report(Defect::RaceBetweenBlocks { place: of, before }, place, Some(thread))
            }
            None if unwritten => self.report(Defect::Unwritten { place: of }, place, Some(thread)),
            None => Ok(()),
        }
    }

    /// An output that is written again: by the same thread, later, it may be.
    fn report_second_write(
        &mut self,
        (place, thread): (usize, usize),
        buffer: BufferId,
        address: i64,
        bytes: u64,
        (before, now): (Foreign, Event),
    ) -> Result<(), Stop> {
        if before.block != self.block.number {
            let (of, before) = (self.place(buffer, address, bytes), self.foreign_party(before));
            return self.report(Defect::WrittenTwice { place: of, before }, place, Some(thread));
        }
        let party = self.party(before.event);
        if party.thread.is_some_and(|by| by.thread as usize == thread) {
            if self.block.clocks.ordered(before.event, thread) {
                return Ok(());
            }
            return self.report_conflict((place, thread), buffer, address, bytes, (before.event, now));
        }
        let of = self.place(buffer, address, bytes);
        self.report(Defect::WrittenTwice { place: of, before: party }, place, Some(thread))
    }

    /// Bytes of a buffer that are inside.
    pub(super) fn bytes_of(&mut self, memory: Memory, address: i64, bytes: u64) -> &mut [u8] {
        let (data, first) = match self.program.buffer(memory.buffer).space {
            Space::Global => (&mut self.globals[memory.buffer.index()].data, address as usize),
            Space::Shared => {
                let first = self.shared_at(memory, address);
                (&mut self.block.shared, first as usize)
            }
        };
        &mut data[first..first + bytes as usize]
    }

    /// Counts what an instruction takes of one memory.
    pub(super) fn tally(
        &mut self,
        (place, which): (usize, usize),
        buffer: BufferId,
        mask: u32,
        addresses: &[i64; LANES],
        bytes: u32,
    ) {
        let tally = &mut self.tallies[place][which];
        let own = self.program.buffer(buffer);
        match own.space {
            Space::Global => tally.global(mask, addresses, bytes),
            Space::Shared => {
                let start = i64::from(own.start);
                tally.shared(mask, &addresses.map(|address| address.wrapping_add(start)), bytes);
            }
        }
    }

    /// The lanes of an access that are inside and may go on, after it was recorded.
    fn admit(
        &mut self,
        warp: &Warp,
        place: usize,
        mask: u32,
        access: &Access,
        (addresses, ranks): (&[i64; LANES], &[usize; LANES]),
        touch: Touch,
    ) -> Result<u32, Stop> {
        let bytes = access.bytes();
        let mut admitted = 0;
        for lane in lanes(mask) {
            let thread = warp.thread(lane);
            if self.inside(place, thread, access.buffer, addresses[lane], bytes.into(), bytes)? {
                let event = match touch {
                    Touch::Read => self.block.clocks.reading(thread, place),
                    _ => self.block.clocks.now(thread, place),
                };
                let own = (place, thread);
                let memory = Memory { buffer: access.buffer, rank: ranks[lane] };
                if self.touch(own, memory, addresses[lane], bytes.into(), touch, event)? {
                    admitted |= 1 << lane;
                }
            }
        }
        self.tally((place, 0), access.buffer, admitted, addresses, bytes);
        Ok(admitted)
    }

    pub(super) fn load(
        &mut self,
        warp: &mut Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        remote: bool,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let addresses = addresses(warp, instruction, access, self.is_global(access.buffer), &mut input);
        let ranks = if remote { self.ranks(warp, place, instruction, access, input)? } else { [warp.rank; LANES] };
        let mask = self.active(warp, instruction);
        let admitted = self.admit(warp, place, mask, access, (&addresses, &ranks), Touch::Read)?;
        for output in &instruction.outputs {
            warp.registers[output.index()] = [0; LANES];
        }
        let piece = access.bits as usize / 8;
        for lane in lanes(admitted) {
            let memory = Memory { buffer: access.buffer, rank: ranks[lane] };
            let bytes = self.bytes_of(memory, addresses[lane], access.bytes().into());
            for (output, bytes) in instruction.outputs.iter().zip(bytes.chunks_exact(piece)) {
                warp.registers[output.index()][lane] = read_bytes(bytes);
            }
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        remote: bool,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let addresses = addresses(warp, instruction, access, self.is_global(access.buffer), &mut input);
        let mut ranks = [warp.rank; LANES];
        if remote {
            ranks = self.ranks(warp, place, instruction, access, input)?;
            input += 1;
        }
        let mask = self.active(warp, instruction);
        let admitted = self.admit(warp, place, mask, access, (&addresses, &ranks), Touch::Write)?;
        let piece = access.bits as usize / 8;
        for lane in lanes(admitted) {
            let memory = Memory { buffer: access.buffer, rank: ranks[lane] };
            let bytes = self.bytes_of(memory, addresses[lane], access.bytes().into());
            for (register, bytes) in instruction.inputs[input..].iter().zip(bytes.chunks_exact_mut(piece)) {
                write_bytes(bytes, warp.registers[register.index()][lane]);
            }
        }
        Ok(())
    }

    pub(super) fn atomic(
        &mut self,
        warp: &mut Warp,
        place: usize,
        instruction: &Instruction,
        (operation, number): (AtomicOperation, Number),
        access: &Access,
        remote: bool,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let addresses = addresses(warp, instruction, access, self.is_global(access.buffer), &mut input);
        let mut ranks = [warp.rank; LANES];
        if remote {
            ranks = self.ranks(warp, place, instruction, access, input)?;
            input += 1;
        }
        let mask = self.active(warp, instruction);
        let admitted = self.admit(warp, place, mask, access, (&addresses, &ranks), Touch::Atomic)?;
        let piece = access.bits as usize / 8;
        let mut old = [0; LANES];
        for lane in lanes(admitted) {
            let memory = Memory { buffer: access.buffer, rank: ranks[lane] };
            let bytes = self.bytes_of(memory, addresses[lane], access.bytes().into());
            for (at, bytes) in bytes.chunks_exact_mut(piece).enumerate() {
                let operand = |at: usize| warp.registers[instruction.inputs[input + at].index()][lane];
                let before = read_bytes(bytes);
                if at == 0 {
                    old[lane] = before;
                }
                let after = match operation {
                    AtomicOperation::Exchange => operand(at),
                    AtomicOperation::CompareExchange if before == operand(0) => operand(1),
                    AtomicOperation::CompareExchange => before,
                    _ => combined(operation, number, before, operand(at)),
                };
                write_bytes(bytes, after);
            }
        }
        for output in &instruction.outputs {
            warp.registers[output.index()] = old;
        }
        Ok(())
    }
}

/// What an atomic operation leaves in memory.
fn combined(operation: AtomicOperation, number: Number, before: u64, value: u64) -> u64 {
    let operation = match operation {
        AtomicOperation::Add => Binary::Add,
        AtomicOperation::Minimum => Binary::Minimum,
        AtomicOperation::Maximum => Binary::Maximum,
        AtomicOperation::And => Binary::And,
        AtomicOperation::Or => Binary::Or,
        AtomicOperation::Xor => Binary::Xor,
        AtomicOperation::Exchange | AtomicOperation::CompareExchange => return value,
    };
    let alike = |value: u64| -> Lanes { [value; LANES] };
    let mut out = [0; LANES];
    arithmetic::binary(operation, number, &alike(before), &alike(value), &mut out);
    out[0]
}
