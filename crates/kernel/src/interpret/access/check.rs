//! Checks of every accessed byte: whether it was written, whether it may be accessed, and whether
//! the accesses are ordered.

use std::ops::Range;

use crate::interpret::clock::Event;
use crate::interpret::finding::Defect;
use crate::interpret::machine::{InterpretedRun, Stop};
use crate::interpret::shadow::{Conflict, Foreign};
use crate::interpret::touch::{AccessKind, Span, Touch};
use crate::program::memory::Role;

impl InterpretedRun<'_> {
    /// Records an access to bytes inside of their buffer, and checks it. Returns whether to
    /// proceed.
    pub(in crate::interpret) fn touch(&mut self, touch: &Touch) -> Result<bool, Stop> {
        if let Some(trail) = &mut self.trail {
            trail.push(*touch);
        }
        if self.is_global(touch.span.memory.buffer) {
            self.touch_global(touch)
        } else {
            self.remember_use(touch.by, &touch.span, touch.event)?;
            self.touch_shared(touch)?;
            Ok(true)
        }
    }

    fn touch_shared(&mut self, touch: &Touch) -> Result<(), Stop> {
        let Touch { by, ref span, kind, event } = *touch;
        let first = self.shared_at(span.memory, span.address);
        if self.block.objects.iter().any(|object| object.meets(first, span.bytes)) {
            self.report_by(by, Defect::BarrierBytes { place: self.place_of(span) })?;
        }
        let shift = self.setup.shared_shift;
        let (mut unwritten, mut conflict) = (None, None);
        for number in (first >> shift)..=((first + span.bytes - 1) >> shift) {
            let block = &mut self.block;
            let cell = &mut block.cells[number as usize];
            if kind != AccessKind::Write && !cell.is_written() {
                unwritten = unwritten.or(Some(number));
            }
            let found = block.groups.touch(cell, kind, event, by.thread, &block.clocks);
            if found.is_some() && kind != AccessKind::Read {
                block.raced.insert(number);
            }
            conflict = conflict.or(found);
        }
        if let Some(cell) = unwritten {
            let defect = Defect::Unwritten { place: self.place_of(span) };
            self.block.unwritten.entry(by.place).or_insert((cell, by.thread, defect));
        }
        match conflict {
            Some(before) => self.report_conflict(touch, before),
            None => Ok(()),
        }
    }

    fn report_conflict(&mut self, touch: &Touch, before: Event) -> Result<(), Stop> {
        let (place, before) = (self.place_of(&touch.span), self.party(before));
        let defect = if before.background || self.party(touch.event).background {
            Defect::Unfinished { place, before }
        } else {
            Defect::Race { place, before }
        };
        self.report_by(touch.by, defect)
    }

    fn touch_global(&mut self, touch: &Touch) -> Result<bool, Stop> {
        let Touch { by, ref span, kind, .. } = *touch;
        if self.setup.waits && !self.block.clocks.knows_launches(by.thread) {
            self.report_by(by, Defect::Launches { place: self.place_of(span) })?;
        }
        let role = self.program.buffer(span.memory.buffer).role;
        match (role, kind) {
            (Role::Input, AccessKind::Read) => {}
            (Role::Input, _) => {
                self.report_by(by, Defect::Role { place: self.place_of(span), role })?;
                return Ok(false);
            }
            (Role::Output, AccessKind::Read) if self.block.clocks.known_arrivals(by.thread) > 0 => {
                self.read_output(touch)?;
            }
            (Role::Output, AccessKind::Read | AccessKind::Atomic) => {
                let writers = &self.globals[span.memory.buffer.index()].writers[self.global_cells(span)];
                let unwritten = writers.iter().any(|writer| !writer.event.is_some());
                let place = self.place_of(span);
                self.report_by(by, if unwritten { Defect::Unwritten { place } } else { Defect::Role { place, role } })?;
            }
            (Role::Output, AccessKind::Write) => self.write_output(touch)?,
            (Role::Both, _) => self.touch_both(touch)?,
        }
        Ok(true)
    }

    /// The cells of global memory that contain some bytes.
    pub(in crate::interpret) fn global_cells(&self, span: &Span) -> Range<usize> {
        let shift = self.setup.extents[span.memory.buffer.index()].shift;
        let last = (span.address as u64 + span.bytes - 1) as usize;
        (span.address as usize) >> shift..(last >> shift) + 1
    }

    /// A write to an output. No thread may have written or read a byte of it.
    fn write_output(&mut self, touch: &Touch) -> Result<(), Stop> {
        let Touch { by, ref span, event, .. } = *touch;
        let (block, cells) = (self.block.number, self.global_cells(span));
        let global = &mut self.globals[span.memory.buffer.index()];
        let (mut before, mut reader) = (None, None);
        for cell in cells {
            let writer = &mut global.writers[cell];
            before = before.or(Some(*writer).filter(|writer| writer.event.is_some()));
            reader = reader.or(global.readers.get(&cell).copied());
            *writer = Foreign { event, block };
        }
        if let Some(reader) = reader {
            // A thread that read the byte may have read the value that is written here.
            let (place, before) = (self.place_of(span), self.foreign_party(reader));
            self.report_by(by, Defect::RaceBetweenBlocks { place, before })?;
        }
        match before {
            Some(before) => self.report_second_write(touch, before),
            None => Ok(()),
        }
    }

    /// An access to a tensor that is both read and written.
    fn touch_both(&mut self, touch: &Touch) -> Result<(), Stop> {
        let Touch { by, ref span, kind, event } = *touch;
        let (block, cells) = (self.block.number, self.global_cells(span));
        let crossed = if self.is_asynchronous(event) { self.crossed(touch) } else { None };
        let clocks = &self.block.clocks;
        let mut conflict = None;
        for cell in &mut self.globals[span.memory.buffer.index()].cells[cells] {
            let known = (clocks, &self.arrivals);
            let found = self.groups.touch_global(cell, kind, event, (block, by.thread), known);
            conflict = conflict.or(found);
        }
        match conflict {
            Some(Conflict::Block(before)) => self.report_conflict(touch, before),
            Some(Conflict::Grid(before)) => {
                let (place, before) = (self.place_of(span), self.foreign_party(before));
                self.report_by(by, Defect::RaceBetweenBlocks { place, before })
            }
            None => match crossed {
                Some(Conflict::Block(event)) => self.report_crossed(touch, Foreign { event, block }),
                Some(Conflict::Grid(before)) => self.report_crossed(touch, before),
                None => Ok(()),
            },
        }
    }

    /// A read of an output. Its thread must know of other blocks through the launch counter, and
    /// each byte must have been written before.
    fn read_output(&mut self, touch: &Touch) -> Result<(), Stop> {
        let Touch { by, ref span, event, .. } = *touch;
        let (block, buffer) = (self.block.number, span.memory.buffer.index());
        let mut unwritten = false;
        let (mut conflict, mut crossed) = (None, None);
        let engine = self.is_asynchronous(event);
        for cell in self.global_cells(span) {
            let writer = self.globals[buffer].writers[cell];
            unwritten |= !writer.event.is_some();
            let ordered = match writer.block == block {
                true => self.block.clocks.ordered(writer.event, by.thread),
                false => self.passed_on(writer, by.thread),
            };
            if writer.event.is_some() && !ordered {
                conflict = conflict.or(Some(writer));
            }
            if engine && writer.event.is_some() && self.crosses_output(writer, touch) {
                crossed = crossed.or(Some(writer));
            }
            self.globals[buffer].readers.insert(cell, Foreign { event, block });
        }
        match conflict {
            Some(before) if before.block == block => self.report_conflict(touch, before.event),
            Some(before) => {
                let (place, before) = (self.place_of(span), self.foreign_party(before));
                self.report_by(by, Defect::RaceBetweenBlocks { place, before })
            }
            None if unwritten => self.report_by(by, Defect::Unwritten { place: self.place_of(span) }),
            None => crossed.map_or(Ok(()), |writer| self.report_crossed(touch, writer)),
        }
    }

    /// A second write to an output: it is allowed for the same thread, later.
    fn report_second_write(&mut self, touch: &Touch, before: Foreign) -> Result<(), Stop> {
        if before.block != self.block.number {
            let (place, before) = (self.place_of(&touch.span), self.foreign_party(before));
            return self.report_by(touch.by, Defect::WrittenTwice { place, before });
        }
        let party = self.party(before.event);
        if party.thread.is_some_and(|by| by.thread as usize == touch.by.thread) {
            if self.block.clocks.ordered(before.event, touch.by.thread) {
                let crosses = self.is_asynchronous(touch.event) && self.crosses_output(before, touch);
                return if crosses { self.report_crossed(touch, before) } else { Ok(()) };
            }
            return self.report_conflict(touch, before.event);
        }
        self.report_by(touch.by, Defect::WrittenTwice { place: self.place_of(&touch.span), before: party })
    }
}
