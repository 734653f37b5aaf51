//! What every byte that is touched is checked for: what was written, who may touch it, and in which
//! order.

use crate::interpret::clock::Event;
use crate::interpret::cluster::Memory;
use crate::interpret::finding::Defect;
use crate::interpret::machine::{Machine, Stop};
use crate::interpret::shadow::{Conflict, Foreign, Touch};
use crate::interpret::stepper::Trace;
use crate::program::memory::{BufferId, Role};

impl Machine<'_> {
    /// Records that a thread touches bytes that are inside, and checks that it may; whether to go
    /// on.
    pub(in crate::interpret) fn touch(
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
                self.write_output((place, thread), buffer, (address, bytes), (first, last), event)?;
                Ok(true)
            }
            (Role::Both, _) => {
                self.touch_both((place, thread), buffer, (address, bytes), (first, last), (touch, event))?;
                Ok(true)
            }
        }
    }

    /// An output that is written: nobody may have written a byte of it, or read one.
    fn write_output(
        &mut self,
        (place, thread): (usize, usize),
        buffer: BufferId,
        (address, bytes): (i64, u64),
        (first, last): (usize, usize),
        event: Event,
    ) -> Result<(), Stop> {
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
            // A thread that read the byte may already have read the value that is written here.
            let (of, before) = (self.place(buffer, address, bytes), self.foreign_party(reader));
            self.report(Defect::RaceBetweenBlocks { place: of, before }, place, Some(thread))?;
        }
        match before {
            Some(before) => self.report_second_write((place, thread), buffer, address, bytes, (before, event)),
            None => Ok(()),
        }
    }

    /// A tensor that is read and written.
    fn touch_both(
        &mut self,
        (place, thread): (usize, usize),
        buffer: BufferId,
        (address, bytes): (i64, u64),
        (first, last): (usize, usize),
        (touch, event): (Touch, Event),
    ) -> Result<(), Stop> {
        let block = self.block.number;
        let clocks = &self.block.clocks;
        let mut conflict = None;
        for cell in &mut self.globals[buffer.index()].cells[first..=last] {
            let known = (clocks, &self.arrivals);
            let found = self.groups.touch_global(cell, touch, event, (block, thread), known);
            conflict = conflict.or(found);
        }
        match conflict {
            Some(Conflict::Block(before)) => {
                self.report_conflict((place, thread), buffer, address, bytes, (before, event))
            }
            Some(Conflict::Grid(before)) => {
                let (of, before) = (self.place(buffer, address, bytes), self.foreign_party(before));
                self.report(Defect::RaceBetweenBlocks { place: of, before }, place, Some(thread))
            }
            None => Ok(()),
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
}
