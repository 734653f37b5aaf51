//! Atomic operations of several kinds on one element.
//!
//! Law: two unordered atomic operations may happen in either order, which is not a race. But the
//! final value of the element is unique only if they commute. Additions commute with additions,
//! minima with minima, and so on; minima commute with maxima if no minimum is less than a maximum;
//! setting bits commutes with masking bits if the bits are disjoint. Unordered operations of two
//! kinds that do not commute are reported, whether or not the two orders differ for the values of
//! this run. Floating-point additions count as commuting: their order is unspecified, and their
//! tensors are not compared. Exchanges with exchanges are left to that comparison.
//!
//! For each kind, a cell keeps the last operation of each thread, and the values of all operations.
//! Operations of one thread are ordered, so a thread that knows of the last one knows of all.

use std::collections::HashMap;

use super::arrivals::Others;
use super::clock::Event;
use super::code::Code;
use super::finding::Defect;
use super::machine::{InterpretedRun, Stop};
use super::rounding::{from_bf16, from_f16};
use super::shadow::Foreign;
use super::touch::{Actor, Span};
use crate::program::Program;
use crate::program::operation::{AtomicOperation, Number, Operation};

/// A kind of atomic operation, on this many bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AtomicKind {
    operation: AtomicOperation,
    number: Number,
    bits: u32,
}

impl AtomicKind {
    /// The kind of an operation. Signed and unsigned types are one kind if the sign makes no
    /// difference.
    fn new(operation: AtomicOperation, number: Number, bits: u32) -> AtomicKind {
        let signs = matches!(operation, AtomicOperation::Minimum | AtomicOperation::Maximum);
        let number = match number {
            Number::I16 | Number::I32 | Number::I64 if !signs => Number::U64,
            Number::U16 | Number::U32 if !signs => Number::U64,
            number => number,
        };
        AtomicKind { operation, number, bits }
    }

    /// Whether an operation with this value changes nothing.
    fn is_nothing(self, value: u64) -> bool {
        let all = u64::MAX >> (64 - self.bits.clamp(1, 64));
        match self.operation {
            AtomicOperation::Add if self.number.is_float() => false,
            AtomicOperation::Add | AtomicOperation::Or | AtomicOperation::Xor => value & all == 0,
            AtomicOperation::And => value & all == all,
            _ => false,
        }
    }

    /// The position of a value in the order of this kind.
    fn rank(self, value: u64) -> i128 {
        // The bits of floating-point numbers have the order of the numbers, except for the sign.
        let float = |number: f64| {
            let bits = number.to_bits() as i64;
            i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
        };
        match self.number {
            Number::I16 => i128::from(value as u16 as i16),
            Number::I32 => i128::from(value as u32 as i32),
            Number::I64 => i128::from(value as i64),
            Number::F16 => float(from_f16(value).into()),
            Number::Bf16 => float(from_bf16(value).into()),
            Number::F32 => float(f32::from_bits(value as u32).into()),
            Number::F64 => float(f64::from_bits(value)),
            _ => i128::from(value),
        }
    }
}

/// The operations of one kind on a cell.
#[derive(Debug, Clone)]
struct Done {
    kind: AtomicKind,
    /// The last event of each agent of the current cluster.
    own: Vec<Event>,
    others: Others,
    least: i128,
    greatest: i128,
    /// The bits that are set in any value, and those that are set in all values.
    any: u64,
    all: u64,
}

impl Done {
    fn new(kind: AtomicKind, value: u64) -> Done {
        let (rank, others) = (kind.rank(value), Others::default());
        Done { kind, own: Vec::new(), others, least: rank, greatest: rank, any: value, all: value }
    }

    fn add(&mut self, value: u64) {
        let rank = self.kind.rank(value);
        self.least = self.least.min(rank);
        self.greatest = self.greatest.max(rank);
        self.any |= value;
        self.all &= value;
    }

    /// Whether operations of two kinds give the same result in either order, for every initial
    /// value.
    fn commutes(&self, other: &Done) -> bool {
        use AtomicOperation::{And, Maximum, Minimum, Or, Xor};
        if self.kind == other.kind {
            return true;
        }
        if (self.kind.number, self.kind.bits) != (other.kind.number, other.kind.bits) {
            return false;
        }
        match (self.kind.operation, other.kind.operation) {
            (Minimum, Maximum) => other.greatest <= self.least,
            (Maximum, Minimum) => self.greatest <= other.least,
            (And, Or | Xor) => other.any & !self.all == 0,
            (Or | Xor, And) => self.any & !other.all == 0,
            (Or, Xor) | (Xor, Or) => self.any & other.any == 0,
            _ => false,
        }
    }
}

/// The atomic operations on a cell.
#[derive(Debug, Default)]
pub(super) struct AtomicHistory {
    /// The cluster to which the events belong.
    block: u64,
    kinds: Vec<Done>,
}

/// Cells by their buffer, the rank of the block for shared memory, and their index.
pub(super) type Histories = HashMap<(usize, usize, i64), AtomicHistory>;

/// The buffers that receive atomic operations of kinds that do not all commute.
pub(super) fn mixed_buffers(program: &Program, code: &Code<'_>) -> Vec<bool> {
    let mut kinds: Vec<Option<AtomicKind>> = vec![None; program.buffers.len()];
    let mut mixed = vec![false; program.buffers.len()];
    for instruction in code.instructions() {
        let (Operation::Atomic(operation, number, access)
        | Operation::Reduce(operation, number, access)
        | Operation::RemoteReduce(operation, number, access)) = &instruction.operation
        else {
            continue;
        };
        let (kind, index) = (AtomicKind::new(*operation, *number, access.bits), access.buffer.index());
        mixed[index] |= *kinds[index].get_or_insert(kind) != kind;
    }
    mixed
}

impl InterpretedRun<'_> {
    /// Records an atomic operation on an element, and checks whether an unordered earlier one would
    /// give another result if it came after it.
    pub(super) fn mixes(
        &mut self,
        by: Actor,
        span: &Span,
        (operation, number): (AtomicOperation, Number),
        value: u64,
    ) -> Result<(), Stop> {
        let buffer = span.memory.buffer.index();
        let kind = AtomicKind::new(operation, number, 8 * span.bytes as u32);
        if !self.setup.mixed[buffer] || kind.is_nothing(value) {
            return Ok(());
        }
        let global = self.is_global(span.memory.buffer);
        let shift = if global { self.setup.extents[buffer].shift } else { self.setup.shared_shift };
        let rank = if global { 0 } else { span.memory.rank };
        let mut found = None;
        for cell in (span.address >> shift)..=((span.address + span.bytes as i64 - 1) >> shift) {
            found = found.or(self.mixed_at((buffer, rank, cell), by, kind, value));
        }
        let Some(before) = found else { return Ok(()) };
        let (place, before) = (self.place_of(span), self.foreign_party(before));
        self.report_by(by, Defect::MixedAtomics { place, before })
    }

    fn mixed_at(&mut self, key: (usize, usize, i64), by: Actor, kind: AtomicKind, value: u64) -> Option<Foreign> {
        let (clocks, arrivals, block) = (&self.block.clocks, &self.arrivals, self.block.number);
        let AtomicHistory { block: of, kinds } = self.mixed.entry(key).or_default();
        if *of != block {
            for done in kinds.iter_mut() {
                for event in done.own.drain(..) {
                    done.others.add(Foreign { event, block: *of }, arrivals);
                }
            }
            *of = block;
        }
        let own = match kinds.iter_mut().position(|done| done.kind == kind) {
            Some(own) => {
                kinds[own].add(value);
                own
            }
            None => {
                kinds.push(Done::new(kind, value));
                kinds.len() - 1
            }
        };
        let known = clocks.known_arrivals(by.thread);
        let open = |done: &Done| {
            let event = done.own.iter().copied().find(|event| !clocks.ordered(*event, by.thread));
            event.map(|event| Foreign { event, block }).or_else(|| done.others.unordered(known))
        };
        let this = &kinds[own];
        let found = kinds.iter().filter(|done| !done.commutes(this)).find_map(open);
        let event = clocks.now(by.thread, by.place);
        let last = &mut kinds[own].own;
        match last.iter_mut().find(|before| before.agent() == event.agent()) {
            Some(before) => *before = event,
            None => last.push(event),
        }
        found
    }
}
