//! Loads, stores and atomic operations, and the checks of every access.
//!
//! Law: an access is executed if it is inside its buffer and aligned. It must be ordered after
//! every access that it conflicts with, must read only written bytes, and must write only to
//! writable buffers.

mod check;
mod matrix;

use super::arithmetic;
use super::finding::Defect;
use super::lanes::{Lanes, lanes};
use super::machine::{InterpretedRun, Stop};
use super::touch::{AccessKind, Actor, Memory, Span, Touch};
use super::warp::Warp;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::memory::{Access, BufferId, Space};
use crate::program::operation::{AtomicOperation, Binary, Number};

/// The addresses of an access in each lane, and the index of the first input that is no address.
pub(super) fn addresses(
    warp: &Warp,
    instruction: &Instruction,
    access: &Access,
    wide: bool,
    input: &mut usize,
) -> [i64; WARP_LANES] {
    if !access.addressed {
        return [access.offset; WARP_LANES];
    }
    let values = &warp.registers[instruction.inputs[*input].index()];
    *input += 1;
    let extended = |value: u64| if wide { value as i64 } else { i64::from(value as u32 as i32) };
    values.map(|value| extended(value).wrapping_add(access.offset))
}

/// The little-endian number in some bytes.
pub(super) fn read_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

pub(super) fn write_bytes(bytes: &mut [u8], value: u64) {
    for (byte, value) in bytes.iter_mut().zip(value.to_le_bytes()) {
        *byte = value;
    }
}

/// The target of an access.
struct Reached {
    /// The lanes whose access is valid.
    admitted: u32,
    /// The address in each lane, and the block of the cluster whose memory it is in.
    addresses: [i64; WARP_LANES],
    ranks: [usize; WARP_LANES],
    /// The index of the first input that is no part of the address.
    values: usize,
}

impl InterpretedRun<'_> {
    pub(super) fn is_global(&self, buffer: BufferId) -> bool {
        self.program.buffer(buffer).space == Space::Global
    }

    /// Whether a range of bytes is inside its buffer and aligned; reports it if not.
    pub(super) fn inside(&mut self, by: Actor, span: &Span, alignment: u32) -> Result<bool, Stop> {
        let buffer = span.memory.buffer;
        let size = self.setup.extents[buffer.index()].bytes;
        let end = i128::from(span.address) + i128::from(span.bytes);
        if span.address < 0 || end > i128::from(size) {
            self.report_by(by, Defect::OutOfBounds { place: self.place_of(span), size })?;
            return Ok(false);
        }
        let own = self.program.buffer(buffer);
        let absolute = span.address + i64::from(own.start);
        let promised = own.space == Space::Shared || alignment <= own.alignment;
        if absolute % i64::from(alignment) != 0 || !promised {
            self.report_by(by, Defect::Misaligned { place: self.place_of(span), alignment })?;
            return Ok(false);
        }
        Ok(true)
    }

    /// The contents of a range of bytes inside its buffer.
    pub(super) fn bytes_of(&mut self, span: Span) -> &mut [u8] {
        let Span { memory, address, bytes } = span;
        let (data, first) = match self.program.buffer(memory.buffer).space {
            Space::Global => (&mut self.globals[memory.buffer.index()].data, address as usize),
            Space::Shared => {
                let first = self.shared_at(memory, address);
                (&mut self.block.shared, first as usize)
            }
        };
        &mut data[first..first + bytes as usize]
    }

    /// Counts the traffic of an instruction to one memory.
    pub(super) fn tally(
        &mut self,
        (place, which): (usize, usize),
        buffer: BufferId,
        mask: u32,
        addresses: &[i64; WARP_LANES],
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

    /// The lanes whose access is inside and may proceed. Records the accesses.
    fn admit(
        &mut self,
        warp: &Warp,
        place: usize,
        mask: u32,
        access: &Access,
        (addresses, ranks): (&[i64; WARP_LANES], &[usize; WARP_LANES]),
        kind: AccessKind,
    ) -> Result<u32, Stop> {
        let bytes = access.bytes();
        let mut admitted = 0;
        for lane in lanes(mask) {
            let by = Actor { place, thread: warp.thread(lane) };
            let memory = Memory { buffer: access.buffer, rank: ranks[lane] };
            let event = match kind {
                AccessKind::Read => self.block.clocks.reading(by.thread, place),
                _ => self.block.clocks.now(by.thread, place),
            };
            let span = Span { memory, address: addresses[lane], bytes: bytes.into() };
            let touch = Touch { by, span, kind, event };
            if self.inside(by, &touch.span, bytes)? && self.touch(&touch)? {
                admitted |= 1 << lane;
            }
        }
        self.tally((place, 0), access.buffer, admitted, addresses, bytes);
        Ok(admitted)
    }

    /// The target of an access, and the lanes whose access is valid.
    fn reached(
        &mut self,
        warp: &Warp,
        (place, instruction): (usize, &Instruction),
        access: &Access,
        remote: bool,
        kind: AccessKind,
    ) -> Result<Reached, Stop> {
        let mut values = 0;
        let addresses = addresses(warp, instruction, access, self.is_global(access.buffer), &mut values);
        let mut ranks = [warp.rank; WARP_LANES];
        if remote {
            ranks = self.ranks(warp, place, instruction, access, values)?;
            values += 1;
        }
        let mask = self.active(warp, instruction);
        let admitted = self.admit(warp, place, mask, access, (&addresses, &ranks), kind)?;
        Ok(Reached { admitted, addresses, ranks, values })
    }

    /// The bytes that a lane accesses.
    fn bytes_reached(&mut self, reached: &Reached, access: &Access, lane: usize) -> &mut [u8] {
        let memory = Memory { buffer: access.buffer, rank: reached.ranks[lane] };
        self.bytes_of(Span { memory, address: reached.addresses[lane], bytes: access.bytes().into() })
    }

    pub(super) fn load(
        &mut self,
        warp: &mut Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        remote: bool,
    ) -> Result<(), Stop> {
        let reached = self.reached(warp, (place, instruction), access, remote, AccessKind::Read)?;
        for output in &instruction.outputs {
            warp.registers[output.index()] = [0; WARP_LANES];
        }
        let piece = access.bits as usize / 8;
        for lane in lanes(reached.admitted) {
            let bytes = self.bytes_reached(&reached, access, lane);
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
        let reached = self.reached(warp, (place, instruction), access, remote, AccessKind::Write)?;
        let piece = access.bits as usize / 8;
        for lane in lanes(reached.admitted) {
            let bytes = self.bytes_reached(&reached, access, lane);
            for (register, bytes) in instruction.inputs[reached.values..].iter().zip(bytes.chunks_exact_mut(piece)) {
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
        let reached = self.reached(warp, (place, instruction), access, remote, AccessKind::Atomic)?;
        let piece = access.bits as usize / 8;
        let mut old = [0; WARP_LANES];
        for lane in lanes(reached.admitted) {
            let by = Actor { place, thread: warp.thread(lane) };
            let memory = Memory { buffer: access.buffer, rank: reached.ranks[lane] };
            for (at, input) in instruction.inputs[reached.values..].iter().take(access.count as usize).enumerate() {
                let address = reached.addresses[lane] + (at * piece) as i64;
                let span = Span { memory, address, bytes: piece as u64 };
                self.mixes(by, &span, (operation, number), warp.registers[input.index()][lane])?;
            }
            let bytes = self.bytes_reached(&reached, access, lane);
            for (at, bytes) in bytes.chunks_exact_mut(piece).enumerate() {
                let operand = |at: usize| warp.registers[instruction.inputs[reached.values + at].index()][lane];
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

/// The value that an atomic operation writes to memory.
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
    let alike = |value: u64| -> Lanes { [value; WARP_LANES] };
    let mut out = [0; WARP_LANES];
    arithmetic::binary(operation, number, &alike(before), &alike(value), &mut out);
    out[0]
}
