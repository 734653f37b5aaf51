//! Loads and stores of fragments.
//!
//! Law: element `i` of a fragment corresponds to element `i` of a view in memory. An access is as
//! wide as the elements are contiguous and aligned, for every admissible size, up to the width of
//! the instruction.

use std::collections::HashMap;

use tilewright_layout::symbolic::Expr;

use super::access::{Edge, EdgeCondition, Piece};
use super::core::{Core, Slot};
use super::fragment::Fragment;
use super::number::Num;
use super::tensor::View;
use crate::error::{KernelError, Reason};
use crate::program::memory::{Access, Role};
use crate::program::operation::{Binary, Number, Operation};
use crate::program::register::{Register, Width};

impl Core {
    /// A predicate that is true if an access exists; None if it always does.
    pub(super) fn guard(
        &mut self,
        view: &View<'_>,
        conditions: &[EdgeCondition],
        edge: Edge,
    ) -> Result<Option<Register>, Reason> {
        let mut guard = match edge {
            Edge::Where(condition) => Some(condition),
            _ => None,
        };
        for (mode, at, extent) in conditions {
            if edge == Edge::Proved {
                return Err(Reason::Outside {
                    tensor: self.buffers[view.buffer.index()].name.clone(),
                    coordinate: at.to_string(),
                    mode: *mode,
                    extent: extent.to_string(),
                });
            }
            let inside = self.inside(at, extent)?;
            guard = Some(match guard {
                None => inside,
                Some(both) => self.pure(Operation::Binary(Binary::And, Number::U16), [both, inside], Width::Predicate),
            });
        }
        Ok(guard)
    }

    /// The register pieces of an access with this many elements: bits and number.
    fn pieces_of(bits: u32, elements: u32) -> (u32, u32) {
        let total = bits * elements;
        let piece = if bits == 64 { 64 } else { total.min(32) };
        (piece, total / piece)
    }

    /// Loads an access into elements of a cell.
    fn load(
        &mut self,
        (access, rank): (Access, Option<Register>),
        address: Option<Register>,
        guard: Option<Register>,
        cell: usize,
        slots: &[usize],
    ) {
        let bits = self.cells[cell].bits;
        let width = Width::of_bits(access.bits.max(16)).unwrap_or(Width::Bits64);
        let outputs = vec![width; access.count as usize];
        let operation = if rank.is_some() { Operation::RemoteLoad(access) } else { Operation::Load(access) };
        let registers = self.effect(operation, address.into_iter().chain(rank), &outputs, guard);
        if bits >= access.bits {
            for (slot, register) in slots.iter().zip(registers) {
                self.cells[cell].slots[*slot] = Slot::Whole(register);
            }
            return;
        }
        let each = (access.bits / bits) as usize;
        for (part, register) in slots.chunks(each).zip(registers) {
            if access.bits == 32 {
                self.set_word(cell, part, register);
                continue;
            }
            // Two bytes in 16 bits: the low half of a word.
            let word = self.packed(&[register], 16);
            self.set_word(cell, part, word);
        }
    }

    /// Sets elements of a cell to the value of elements that never exist: 0, or another one.
    fn fill(&mut self, cell: usize, slots: &[usize], other: Option<Register>) {
        let bits = self.cells[cell].bits;
        let each = if bits < 32 { (32 / bits) as usize } else { 1 };
        for part in slots.chunks(each) {
            match other {
                Some(other) if each == 1 => self.cells[cell].slots[part[0]] = Slot::Whole(other),
                None if each == 1 => {
                    let zero = self.constant(0, Width::of_bits(bits).unwrap_or(Width::Bits64));
                    self.cells[cell].slots[part[0]] = Slot::Whole(zero);
                }
                _ => {
                    let word = match other {
                        Some(other) => self.packed(&vec![other; each], bits),
                        None => self.constant(0, Width::Bits32),
                    };
                    self.set_word(cell, part, word);
                }
            }
        }
    }

    /// Whether an access exists in no thread.
    pub(super) fn exists_nowhere(&self, conditions: &[EdgeCondition]) -> bool {
        conditions.iter().any(|(_, at, extent)| self.is_at_least(at, extent))
    }

    /// Sets elements of a cell to another value if a predicate is false.
    fn replace_unless(&mut self, guard: Register, cell: usize, slots: &[usize], other: Register) -> Result<(), Reason> {
        let bits = self.cells[cell].bits;
        let each = if bits < 32 { (32 / bits) as usize } else { 1 };
        let words = each > 1 && slots.len().is_multiple_of(each);
        for part in slots.chunks(if words { each } else { 1 }) {
            let (own, other) = if words {
                (self.word_of(cell, part)?, self.packed(&vec![other; each], bits))
            } else {
                (self.element_register(cell, part[0])?, other)
            };
            let width = self.width(own);
            let chosen = self.pure(Operation::Select, [guard, own, other], width);
            if words {
                self.set_word(cell, part, chosen);
            } else {
                self.cells[cell].slots[part[0]] = Slot::Whole(chosen);
            }
        }
        Ok(())
    }

    /// Stores elements of a cell by an access.
    fn store(
        &mut self,
        (access, rank): (Access, Option<Register>),
        address: Option<Register>,
        guard: Option<Register>,
        cell: usize,
        slots: &[usize],
    ) -> Result<(), Reason> {
        let bits = self.cells[cell].bits;
        let mut inputs: Vec<Register> = address.into_iter().chain(rank).collect();
        if bits >= access.bits {
            for slot in slots {
                inputs.push(self.element_register(cell, *slot)?);
            }
        } else {
            for part in slots.chunks((access.bits / bits) as usize) {
                let word = self.word_of(cell, part)?;
                inputs.push(match access.bits {
                    32 => word,
                    _ => self.pure_many(Operation::Unpack, [word], &[Width::Bits16, Width::Bits16])[0],
                });
            }
        }
        let operation = if rank.is_some() { Operation::RemoteStore(access) } else { Operation::Store(access) };
        self.effect(operation, inputs, &[], guard);
        Ok(())
    }
}

impl<'k> View<'k> {
    pub(super) fn readable(&self) -> Result<(), Reason> {
        let core = self.build.core();
        let buffer = &core.buffers[self.buffer.index()];
        match buffer.role {
            Role::Output if !core.is_of_last_block() => {
                Err(Reason::Role { tensor: buffer.name.clone(), tried: "read: it is an output" })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn writable(&self) -> Result<(), Reason> {
        let core = self.build.core();
        let buffer = &core.buffers[self.buffer.index()];
        match buffer.role {
            Role::Input => Err(Reason::Role { tensor: buffer.name.clone(), tried: "written: it is an input" }),
            _ => Ok(()),
        }
    }

    /// Loads the view into a new fragment of its shape, by the widest accesses that its layout
    /// allows (`tensor.load()` of the DSL).
    ///
    /// Errors: an extent is not known when the kernel is built; an element may not exist.
    #[track_caller]
    pub fn load(&self) -> Result<Fragment<'k>, KernelError> {
        self.loaded(Edge::Proved, "load")
    }

    /// As [`View::load`]; elements past the edges of the tensor are 0.
    ///
    /// Errors: an extent is not known when the kernel is built.
    #[track_caller]
    pub fn load_predicated(&self) -> Result<Fragment<'k>, KernelError> {
        self.loaded(Edge::Predicated, "load_predicated")
    }

    #[track_caller]
    pub(super) fn loaded(&self, edge: Edge, statement: &'static str) -> Result<Fragment<'k>, KernelError> {
        self.build.statement(statement, || {
            let mut fragment = self.fragment_like(self.element)?;
            // Elements with equal offsets share a register only if all of them exist.
            if edge == Edge::Predicated && fragment.layout.cosize()? < fragment.layout.size() {
                fragment = self.build.fragment_of(self.element, &fragment.layout.shape())?;
            }
            self.read_into(&fragment, 128, edge)?;
            Ok(fragment)
        })
    }

    /// Stores a fragment of the same shape to the view, by the widest accesses that its layout
    /// allows.
    ///
    /// Errors: sizes or types differ; an element may not exist, or has no value.
    #[track_caller]
    pub fn store(&self, fragment: &Fragment<'k>) -> Result<(), KernelError> {
        self.build.statement("store", || self.write_from(fragment, 128, Edge::Proved))
    }

    /// As [`View::store`]; elements past the edges of the tensor are not stored.
    ///
    /// Errors: sizes or types differ; an element has no value.
    #[track_caller]
    pub fn store_predicated(&self, fragment: &Fragment<'k>) -> Result<(), KernelError> {
        self.build.statement("store_predicated", || self.write_from(fragment, 128, Edge::Predicated))
    }

    pub(crate) fn same_size(&self, fragment: &Fragment<'k>) -> Result<(), Reason> {
        if fragment.element != self.element {
            return Err(Reason::Elements { wanted: self.element, given: fragment.element });
        }
        let count = self.count()?;
        if count != fragment.size() {
            return Err(Reason::Sizes {
                left: self.text(),
                left_size: count.to_string(),
                right: fragment.layout.to_string(),
                right_size: fragment.size().to_string(),
            });
        }
        Ok(())
    }

    /// Checks that a fragment holds the part that the view is, if both come from tiled
    /// instructions.
    fn same_part(&self, fragment: &Fragment<'k>) -> Result<(), Reason> {
        match (&self.part, &fragment.part) {
            (Some(own), Some(held)) if own.is_instructed() && held.is_instructed() => {
                own.agrees(held, ["the tensor", "the fragment"])
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn read_into(&self, fragment: &Fragment<'k>, bits: u32, edge: Edge) -> Result<(), Reason> {
        self.read_or(None, fragment, bits, edge)
    }

    /// Loads the view. Elements that do not exist become `other`.
    pub(crate) fn read_or(
        &self,
        other: Option<Num<'k>>,
        fragment: &Fragment<'k>,
        bits: u32,
        edge: Edge,
    ) -> Result<(), Reason> {
        self.same_size(fragment)?;
        self.readable()?;
        if let Some(other) = other.filter(|other| other.element() != self.element) {
            return Err(Reason::Elements { wanted: self.element, given: other.element() });
        }
        let slots = fragment.slots()?;
        let mut read: HashMap<Vec<usize>, (Expr, Vec<EdgeCondition>)> = HashMap::new();
        for piece in self.pieces((bits / self.element.bits()).max(1))? {
            let slots: Vec<usize> = piece.elements.iter().map(|element| slots[*element]).collect();
            let conditions = self.conditions(&piece, edge)?;
            let now = (piece.offset.clone(), conditions);
            // Elements with equal offsets share registers, and are loaded once.
            match read.get(&slots) {
                Some(before) if *before == now => continue,
                Some(_) => return Err(Reason::Overlap { layout: fragment.layout.to_string(), in_registers: true }),
                None => {}
            }
            if edge == Edge::Predicated && self.build.core().exists_nowhere(&now.1) {
                self.build.core().fill(fragment.cell, &slots, other.map(|other| other.register()));
                read.insert(slots, now);
                continue;
            }
            let (access, address, guard) = self.guarded(&piece, &now.1, edge)?;
            let mut core = self.build.core();
            core.load((access, self.rank), address, guard, fragment.cell, &slots);
            if let (Some(other), Some(guard)) = (other, guard) {
                core.replace_unless(guard, fragment.cell, &slots, other.register())?;
            }
            drop(core);
            read.insert(slots, now);
        }
        Ok(())
    }

    pub(crate) fn write_from(&self, fragment: &Fragment<'k>, bits: u32, edge: Edge) -> Result<(), Reason> {
        self.write_where(None, fragment, bits, edge)
    }

    /// Stores in the threads in which a predicate is true, if there is one.
    pub(crate) fn write_where(
        &self,
        only: Option<Register>,
        fragment: &Fragment<'k>,
        bits: u32,
        edge: Edge,
    ) -> Result<(), Reason> {
        self.same_size(fragment)?;
        self.same_part(fragment)?;
        self.writable()?;
        let condition = match edge {
            Edge::Where(condition) => Some(condition),
            _ => only,
        };
        self.remember_write(condition)?;
        let slots = fragment.slots()?;
        let mut written: Vec<(Piece, Vec<EdgeCondition>)> = Vec::new();
        for piece in self.pieces((bits / self.element.bits()).max(1))? {
            let slots: Vec<usize> = piece.elements.iter().map(|element| slots[*element]).collect();
            let conditions = self.conditions(&piece, edge)?;
            // Of several elements with the same offset, only one may exist.
            if piece.again && written.iter().any(|(other, when)| *when == conditions && other.meets(&piece)) {
                return Err(Reason::Overlap { layout: self.text(), in_registers: false });
            }
            if edge == Edge::Predicated && self.build.core().exists_nowhere(&conditions) {
                continue;
            }
            let (access, address, guard) = self.guarded(&piece, &conditions, edge)?;
            written.push((piece, conditions));
            let mut core = self.build.core();
            let guard = match (only, guard) {
                (Some(a), Some(b)) => {
                    Some(core.pure(Operation::Binary(Binary::And, Number::U16), [a, b], Width::Predicate))
                }
                (a, b) => a.or(b),
            };
            core.store((access, self.rank), address, guard, fragment.cell, &slots)?;
        }
        Ok(())
    }

    /// Loads a piece into elements of a cell. If a condition is false, they keep their values.
    pub(super) fn read_piece(
        &self,
        piece: &Piece,
        edge: Edge,
        condition: Register,
        cell: usize,
        slots: &[usize],
    ) -> Result<(), Reason> {
        let (access, address, guard) = self.one(piece, edge)?;
        let mut core = self.build.core();
        let before: Vec<Slot> = slots.iter().map(|slot| core.cells[cell].slots[*slot]).collect();
        core.load((access, self.rank), address, guard, cell, slots);
        for (slot, before) in slots.iter().zip(before).filter(|(_, before)| *before != Slot::Empty) {
            let read = core.element_register(cell, *slot)?;
            let loaded = core.cells[cell].slots[*slot];
            core.cells[cell].slots[*slot] = before;
            let kept = core.element_register(cell, *slot)?;
            core.cells[cell].slots[*slot] = loaded;
            let width = core.width(read);
            let chosen = core.pure(Operation::Select, [condition, read, kept], width);
            core.cells[cell].slots[*slot] = Slot::Whole(chosen);
        }
        Ok(())
    }

    /// Stores elements of a cell to a piece.
    pub(super) fn write_piece(&self, piece: &Piece, edge: Edge, cell: usize, slots: &[usize]) -> Result<(), Reason> {
        let (access, address, guard) = self.one(piece, edge)?;
        self.build.core().store((access, self.rank), address, guard, cell, slots)
    }

    /// The access of a piece, its address, and the predicate under which it exists.
    pub(super) fn one(
        &self,
        piece: &Piece,
        edge: Edge,
    ) -> Result<(Access, Option<Register>, Option<Register>), Reason> {
        self.guarded(piece, &self.conditions(piece, edge)?, edge)
    }

    fn guarded(
        &self,
        piece: &Piece,
        conditions: &[EdgeCondition],
        edge: Edge,
    ) -> Result<(Access, Option<Register>, Option<Register>), Reason> {
        let mut core = self.build.core();
        let guard = core.guard(self, conditions, edge)?;
        let (address, offset) = self.address(&mut core, &piece.offset)?;
        let (bits, count) = Core::pieces_of(self.element.bits(), piece.elements.len() as u32);
        drop(core);
        Ok((self.access(address, offset, bits, count), address, guard))
    }
}
