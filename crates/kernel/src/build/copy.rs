//! Copies between memory and registers.
//!
//! Law: element `i` of the destination becomes element `i` of the source. Which instruction moves
//! it is decided by where the elements lie on either side: as many as lie side by side, aligned,
//! for every admissible size, and no more than the instruction of the copy takes.

use tilewright_atoms::{CopyAtom, CopyEnd, TiledCopy};

use super::Build;
use super::access::Piece;
use super::core::{Core, Slot};
use super::fragment::Fragment;
use super::number::{Num, width_of};
use super::tensor::View;
use crate::error::{KernelError, Reason};
use crate::program::Source;
use crate::program::memory::{Access, Cache, Role, Space};
use crate::program::operation::{Binary, Number, Operation};
use crate::program::register::{Register, Width};

/// What a copy does where an element may not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// It must exist.
    Proved,
    /// A read gives 0, and a write does nothing.
    Predicated,
}

/// How an instruction moves.
enum Kind {
    /// Loads and stores of at most so many bits.
    Move(u32),
    /// `cp.async` of so many bits.
    Async { bits: u32, past_first_level: bool },
    /// `ldmatrix`.
    LoadMatrix { count: u32, transposed: bool },
    /// `stmatrix`.
    StoreMatrix { count: u32, transposed: bool },
}

fn kind_of(atom: &CopyAtom) -> Result<Kind, Reason> {
    let name = atom.name();
    let number = |from: &str| -> Option<u32> {
        let rest = name.split_once(from)?.1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    if name.starts_with("UniversalCopy") {
        return Ok(Kind::Move(number("<uint").unwrap_or(8)));
    }
    if name.starts_with("AutoVectorizingCopyWithAssumedAlignment") {
        return Ok(Kind::Move(number("<").unwrap_or(128)));
    }
    if name == "DefaultCopy" || name == "AutoVectorizingCopy" {
        return Ok(Kind::Move(128));
    }
    if name.starts_with("SM80_CP_ASYNC") {
        let bits = number("<uint").unwrap_or(128);
        return Ok(Kind::Async { bits, past_first_level: name.contains("CACHEGLOBAL") });
    }
    if name.contains("LDSM") {
        let transposed = name.ends_with("_T");
        let count = if transposed { number("_U16x").map(|n| n / 2) } else { number("_U32x") };
        return Ok(Kind::LoadMatrix { count: count.unwrap_or(1), transposed });
    }
    if name.contains("STSM") {
        let transposed = name.ends_with("_T");
        let count = if transposed { number("_U16x").map(|n| n / 2) } else { number("_U32x") };
        return Ok(Kind::StoreMatrix { count: count.unwrap_or(1), transposed });
    }
    let because = "copies of kernels are UniversalCopy, AutoVectorizingCopy, SM80_CP_ASYNC, LDSM and STSM".to_string();
    Err(Reason::Instruction { name: name.to_string(), because })
}

/// A tensor in memory or in registers: what `copy` takes.
pub trait Tensor<'k> {
    #[doc(hidden)]
    fn as_view(&self) -> Option<&View<'k>>;

    #[doc(hidden)]
    fn as_fragment(&self) -> Option<&Fragment<'k>>;
}

impl<'k> Tensor<'k> for View<'k> {
    fn as_view(&self) -> Option<&View<'k>> {
        Some(self)
    }

    fn as_fragment(&self) -> Option<&Fragment<'k>> {
        None
    }
}

impl<'k> Tensor<'k> for Fragment<'k> {
    fn as_view(&self) -> Option<&View<'k>> {
        None
    }

    fn as_fragment(&self) -> Option<&Fragment<'k>> {
        Some(self)
    }
}

impl Core {
    /// A predicate that is true where an access exists; none where it always does.
    fn guard(
        &mut self,
        view: &View<'_>,
        conditions: &[(usize, tilewright_layout::symbolic::Expr, tilewright_layout::symbolic::Expr)],
        edge: Edge,
    ) -> Result<Option<Register>, Reason> {
        let mut guard = None;
        for (mode, at, extent) in conditions {
            if edge == Edge::Proved {
                return Err(Reason::Outside {
                    tensor: self.buffers[view.buffer.index()].name.clone(),
                    coordinate: at.to_string(),
                    mode: *mode,
                    extent: extent.to_string(),
                });
            }
            let inside = self.less(at, extent)?;
            guard = Some(match guard {
                None => inside,
                Some(both) => self.pure(Operation::Binary(Binary::And, Number::U16), [both, inside], Width::Predicate),
            });
        }
        Ok(guard)
    }

    /// The pieces of registers that an access of so many elements has: bits and count.
    fn pieces_of(bits: u32, elements: u32) -> (u32, u32) {
        let total = bits * elements;
        let piece = if bits == 64 { 64 } else { total.min(32) };
        (piece, total / piece)
    }

    /// Reads an access into elements of a cell.
    fn load(
        &mut self,
        access: Access,
        address: Option<Register>,
        guard: Option<Register>,
        cell: usize,
        slots: &[usize],
    ) {
        let bits = self.cells[cell].bits;
        let width = Width::of_bits(access.bits.max(16)).unwrap_or(Width::Bits64);
        let outputs = vec![width; access.count as usize];
        let registers = self.effect(Operation::Load(access), address, &outputs, guard);
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
            // Two bytes in 16 bits: a word of which they are the low half.
            let word = self.packed(&[register], 16);
            self.set_word(cell, part, word);
        }
    }

    /// Writes elements of a cell by an access.
    fn store(
        &mut self,
        access: Access,
        address: Option<Register>,
        guard: Option<Register>,
        cell: usize,
        slots: &[usize],
    ) -> Result<(), Reason> {
        let bits = self.cells[cell].bits;
        let mut inputs: Vec<Register> = address.into_iter().collect();
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
        self.effect(Operation::Store(access), inputs, &[], guard);
        Ok(())
    }
}

impl<'k> View<'k> {
    fn readable(&self) -> Result<(), Reason> {
        let core = self.build.core();
        let buffer = &core.buffers[self.buffer.index()];
        match buffer.role {
            Role::Output => Err(Reason::Role { tensor: buffer.name.clone(), tried: "read: it is an output" }),
            _ => Ok(()),
        }
    }

    fn writable(&self) -> Result<(), Reason> {
        let core = self.build.core();
        let buffer = &core.buffers[self.buffer.index()];
        match buffer.role {
            Role::Input => Err(Reason::Role { tensor: buffer.name.clone(), tried: "written: it is an input" }),
            _ => Ok(()),
        }
    }

    /// Reads the view into a new fragment of its shape, in the widest accesses that its layout
    /// allows (`tensor.load()` of the DSL).
    ///
    /// Errors: an extent is not known when the kernel is built; an element may not exist.
    #[track_caller]
    pub fn load(&self) -> Result<Fragment<'k>, KernelError> {
        self.loaded(Edge::Proved, "load", std::panic::Location::caller())
    }

    /// As [`View::load`]; elements past the edges of the tensor are 0.
    ///
    /// Errors: an extent is not known when the kernel is built.
    #[track_caller]
    pub fn load_predicated(&self) -> Result<Fragment<'k>, KernelError> {
        self.loaded(Edge::Predicated, "load_predicated", std::panic::Location::caller())
    }

    fn loaded(
        &self,
        edge: Edge,
        statement: &'static str,
        location: &'static std::panic::Location<'static>,
    ) -> Result<Fragment<'k>, KernelError> {
        self.build.core().begin(Source { statement, location });
        let load = || {
            let fragment = self.fragment_like(self.element)?;
            self.read_into(&fragment, 128, edge)?;
            Ok(fragment)
        };
        load().map_err(|refusal: Reason| refusal.at(statement, location))
    }

    /// Writes a fragment of the same shape to the view, in the widest accesses that its layout
    /// allows.
    ///
    /// Errors: sizes or types differ; an element may not exist, or has no value.
    #[track_caller]
    pub fn store(&self, fragment: &Fragment<'k>) -> Result<(), KernelError> {
        let location = std::panic::Location::caller();
        self.build.core().begin(Source { statement: "store", location });
        self.write_from(fragment, 128, Edge::Proved).map_err(|refusal| refusal.at("store", location))
    }

    /// As [`View::store`]; elements past the edges of the tensor are left out.
    ///
    /// Errors: sizes or types differ; an element has no value.
    #[track_caller]
    pub fn store_predicated(&self, fragment: &Fragment<'k>) -> Result<(), KernelError> {
        let location = std::panic::Location::caller();
        self.build.core().begin(Source { statement: "store_predicated", location });
        self.write_from(fragment, 128, Edge::Predicated).map_err(|refusal| refusal.at("store_predicated", location))
    }

    fn same_size(&self, fragment: &Fragment<'k>) -> Result<(), Reason> {
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

    fn read_into(&self, fragment: &Fragment<'k>, bits: u32, edge: Edge) -> Result<(), Reason> {
        self.same_size(fragment)?;
        self.readable()?;
        let slots = fragment.slots()?;
        for piece in self.pieces((bits / self.element.bits()).max(1))? {
            let slots: Vec<usize> = piece.elements.iter().map(|element| slots[*element]).collect();
            let (access, address, guard) = self.one(&piece, edge)?;
            self.build.core().load(access, address, guard, fragment.cell, &slots);
        }
        Ok(())
    }

    fn write_from(&self, fragment: &Fragment<'k>, bits: u32, edge: Edge) -> Result<(), Reason> {
        self.same_size(fragment)?;
        self.writable()?;
        let slots = fragment.slots()?;
        for piece in self.pieces((bits / self.element.bits()).max(1))? {
            let slots: Vec<usize> = piece.elements.iter().map(|element| slots[*element]).collect();
            let (access, address, guard) = self.one(&piece, edge)?;
            self.build.core().store(access, address, guard, fragment.cell, &slots)?;
        }
        Ok(())
    }

    /// The access of a piece, its address, and the predicate under which it exists.
    fn one(&self, piece: &Piece, edge: Edge) -> Result<(Access, Option<Register>, Option<Register>), Reason> {
        let conditions = self.conditions(piece)?;
        let mut core = self.build.core();
        let guard = core.guard(self, &conditions, edge)?;
        let (address, offset) = self.address(&mut core, &piece.offset)?;
        let (bits, count) = Core::pieces_of(self.element.bits(), piece.elements.len() as u32);
        drop(core);
        Ok((self.access(address, offset, bits, count), address, guard))
    }
}

impl Build {
    /// Copies a tile: each thread what the tiled copy gives it (CuTe `copy(tiled_copy, src, dst)`).
    ///
    /// Source and destination are tiles in memory, or parts of this thread: a fragment, or what
    /// [`View::partition`] returned. An asynchronous instruction (`SM80_CP_ASYNC`) returns at once;
    /// see [`Build::commit_async`].
    ///
    /// Errors: shapes or types differ; an element of either may not exist; the elements of one
    /// instruction do not lie side by side, for every admissible size, and aligned.
    #[track_caller]
    pub fn copy<'k>(
        &'k self,
        copy: &TiledCopy,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
    ) -> Result<(), KernelError> {
        let location = std::panic::Location::caller();
        self.core().begin(Source { statement: "copy", location });
        self.tiled(copy, source, destination, Edge::Proved).map_err(|refusal| refusal.at("copy", location))
    }

    /// As [`Build::copy`]; past the edges of a tensor, reads give 0 and writes do nothing (CuTe
    /// `copy_if` with the predicate of the identity tensor).
    ///
    /// Errors: as [`Build::copy`], but for elements that may not exist.
    #[track_caller]
    pub fn copy_predicated<'k>(
        &'k self,
        copy: &TiledCopy,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
    ) -> Result<(), KernelError> {
        let location = std::panic::Location::caller();
        self.core().begin(Source { statement: "copy_predicated", location });
        let copied = self.tiled(copy, source, destination, Edge::Predicated);
        copied.map_err(|refusal| refusal.at("copy_predicated", location))
    }

    fn tiled<'k>(
        &'k self,
        copy: &TiledCopy,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
        edge: Edge,
    ) -> Result<(), Reason> {
        let cut = |view: &View<'k>, end: CopyEnd| view.partition_copy(copy, end);
        let kind = kind_of(copy.atom())?;
        match (source.as_view(), destination.as_view(), source.as_fragment(), destination.as_fragment()) {
            (Some(from), Some(to), ..) => {
                let (from, to) = (cut(from, CopyEnd::Source)?, cut(to, CopyEnd::Destination)?);
                self.between(&kind, copy.atom(), &from, &to, edge)
            }
            (Some(from), _, _, Some(to)) => {
                let from = cut(from, CopyEnd::Source)?;
                match kind {
                    Kind::Move(bits) => from.read_into(to, bits, edge),
                    Kind::LoadMatrix { count, transposed } => self.load_matrix(&from, to, count, transposed),
                    _ => Err(not_for_these(copy.atom())),
                }
            }
            (_, Some(to), Some(from), _) => {
                let to = cut(to, CopyEnd::Destination)?;
                match kind {
                    Kind::Move(bits) => to.write_from(from, bits, edge),
                    Kind::StoreMatrix { count, transposed } => self.store_matrix(from, &to, count, transposed),
                    _ => Err(not_for_these(copy.atom())),
                }
            }
            _ => Err(not_for_these(copy.atom())),
        }
    }

    fn between<'k>(
        &'k self,
        kind: &Kind,
        atom: &CopyAtom,
        from: &View<'k>,
        to: &View<'k>,
        edge: Edge,
    ) -> Result<(), Reason> {
        match kind {
            Kind::Move(bits) => {
                let fragment = from.fragment_like(from.element)?;
                from.read_into(&fragment, *bits, edge)?;
                // The fragment has the shape of the source; indices count the same elements.
                to.write_from(&fragment, *bits, edge)
            }
            Kind::Async { bits, past_first_level } => self.copy_async(atom, from, to, *bits, *past_first_level, edge),
            _ => Err(not_for_these(atom)),
        }
    }

    fn copy_async<'k>(
        &'k self,
        atom: &CopyAtom,
        from: &View<'k>,
        to: &View<'k>,
        bits: u32,
        past_first_level: bool,
        edge: Edge,
    ) -> Result<(), Reason> {
        let spaces = (from.is_shared(), to.is_shared());
        if spaces != (false, true) || from.element != to.element {
            return Err(not_for_these(atom));
        }
        from.readable()?;
        let each = bits / from.element.bits();
        let (sources, targets) = (from.pieces(each)?, to.pieces(each)?);
        let narrow = |view: &View<'k>, pieces: &[Piece]| {
            pieces.iter().any(|piece| piece.elements.len() as u32 != each).then(|| Reason::Width {
                tensor: view.text(),
                atom: atom.name().to_string(),
                elements: each,
                because: "they do not lie side by side at a multiple of that, or an edge may part them".to_string(),
            })
        };
        if let Some(refusal) = narrow(from, &sources).or_else(|| narrow(to, &targets)) {
            return Err(refusal);
        }
        for source in &sources {
            let target =
                targets.iter().find(|target| target.elements == source.elements).ok_or_else(|| Reason::Width {
                    tensor: to.text(),
                    atom: atom.name().to_string(),
                    elements: each,
                    because: "the elements that lie side by side in one memory do not in the other".to_string(),
                })?;
            let (mut read, read_at, guard) = from.one(source, edge)?;
            let (write, write_at, _) = to.one(target, edge)?;
            if past_first_level {
                read.cache = Cache::NoAllocate;
            }
            let inputs: Vec<Register> = write_at.into_iter().chain(read_at).chain(guard).collect();
            let operation = Operation::CopyAsync { to: write, from: read, or_zeros: guard.is_some() };
            self.core().effect(operation, inputs, &[], None);
        }
        Ok(())
    }

    fn load_matrix<'k>(
        &'k self,
        from: &View<'k>,
        to: &Fragment<'k>,
        count: u32,
        transposed: bool,
    ) -> Result<(), Reason> {
        self.same_matrices(from, to, count)?;
        let slots = to.slots()?;
        let each = (32 / to.element.bits()) as usize;
        let per = each * count as usize;
        for (number, row) in self.rows(from, count)?.into_iter().enumerate() {
            let (access, address) = row;
            let mut core = self.core();
            let outputs = vec![Width::Bits32; count as usize];
            let operation = Operation::LoadMatrix { access, transposed };
            let registers = core.effect(operation, address, &outputs, None);
            for (part, register) in registers.iter().enumerate() {
                let at = number * per + part * each;
                core.set_word(to.cell, &slots[at..at + each], *register);
            }
        }
        Ok(())
    }

    fn store_matrix<'k>(
        &'k self,
        from: &Fragment<'k>,
        to: &View<'k>,
        count: u32,
        transposed: bool,
    ) -> Result<(), Reason> {
        self.same_matrices(to, from, count)?;
        let slots = from.slots()?;
        let each = (32 / from.element.bits()) as usize;
        let per = each * count as usize;
        for (number, row) in self.rows(to, count)?.into_iter().enumerate() {
            let (access, address) = row;
            let mut core = self.core();
            let mut inputs: Vec<Register> = address.into_iter().collect();
            for part in 0..count as usize {
                let at = number * per + part * each;
                inputs.push(core.word_of(from.cell, &slots[at..at + each])?);
            }
            core.effect(Operation::StoreMatrix { access, transposed }, inputs, &[], None);
        }
        Ok(())
    }

    fn same_matrices<'k>(&'k self, view: &View<'k>, fragment: &Fragment<'k>, count: u32) -> Result<(), Reason> {
        let each = (32 / fragment.element.bits()).max(1) as usize * count as usize;
        let rows = view.count()? / (128 / view.element.bits() as usize).max(1);
        if !fragment.size().is_multiple_of(each) || fragment.size() / each != rows {
            return Err(Reason::Sizes {
                left: view.text(),
                left_size: format!("{rows} rows of 16 bytes"),
                right: fragment.layout.to_string(),
                right_size: format!("{} matrices", fragment.size() as f64 / each as f64),
            });
        }
        Ok(())
    }

    /// The row of 16 bytes that each lane names, for each instruction.
    fn rows<'k>(&'k self, view: &View<'k>, count: u32) -> Result<Vec<(Access, Option<Register>)>, Reason> {
        let each = 128 / view.element.bits();
        let space = self.core().buffers[view.buffer.index()].space;
        let refusal = |because: &str| Reason::Width {
            tensor: view.text(),
            atom: "a matrix instruction".to_string(),
            elements: each,
            because: because.to_string(),
        };
        if space != Space::Shared {
            return Err(refusal("it is not in shared memory"));
        }
        let pieces = view.pieces(each)?;
        let mut rows = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let first = number * each as usize;
            if piece.elements.len() as u32 != each || piece.elements.iter().copied().ne(first..first + each as usize) {
                return Err(refusal("a row is not 16 bytes side by side at a multiple of 16"));
            }
            let mut core = self.core();
            let (address, offset) = view.address(&mut core, &piece.offset)?;
            drop(core);
            rows.push((view.access(address, offset, 32, count), address));
        }
        Ok(rows)
    }

    /// The asynchronous copies of this thread since the last call are a group
    /// (`cp.async.commit_group`).
    #[track_caller]
    pub fn commit_async(&self) {
        let mut core = self.core();
        core.begin(Source { statement: "commit_async", location: std::panic::Location::caller() });
        core.effect(Operation::CommitAsync, [], &[], None);
    }

    /// Waits until at most so many groups of this thread are under way (`cp.async.wait_group`).
    /// What they wrote is seen by this thread; by others after a barrier.
    #[track_caller]
    pub fn wait_async(&self, groups: u32) {
        let mut core = self.core();
        core.begin(Source { statement: "wait_async", location: std::panic::Location::caller() });
        core.effect(Operation::WaitAsync(groups), [], &[], None);
    }

    /// All threads of the block wait for each other (`__syncthreads`).
    #[track_caller]
    pub fn barrier(&self) {
        let mut core = self.core();
        core.begin(Source { statement: "barrier", location: std::panic::Location::caller() });
        core.effect(Operation::Barrier, [], &[], None);
    }

    /// A number of another lane, whose number is one's own XOR the mask.
    #[track_caller]
    pub fn shuffle_xor<'k>(&'k self, value: Num<'k>, mask: u32) -> Num<'k> {
        use crate::program::operation::Shuffle;
        let mut core = self.core();
        core.begin(Source { statement: "shuffle_xor", location: std::panic::Location::caller() });
        let shuffle = Operation::Shuffle(Shuffle::Butterfly(mask));
        let width = width_of(value.element());
        let register = match width {
            Width::Bits32 => core.effect(shuffle, [value.register()], &[Width::Bits32], None)[0],
            Width::Bits64 => {
                let halves = core.pure_many(Operation::Unpack, [value.register()], &[Width::Bits32; 2]);
                let low = core.effect(shuffle.clone(), [halves[0]], &[Width::Bits32], None)[0];
                let high = core.effect(shuffle, [halves[1]], &[Width::Bits32], None)[0];
                core.effect(Operation::Pack, [low, high], &[Width::Bits64], None)[0]
            }
            _ => {
                let zero = core.constant(0, Width::Bits16);
                let word = core.pure(Operation::Pack, [value.register(), zero], Width::Bits32);
                let word = core.effect(shuffle, [word], &[Width::Bits32], None)[0];
                core.effect(Operation::Unpack, [word], &[Width::Bits16; 2], None)[0]
            }
        };
        drop(core);
        Num::new(self, register, value.element())
    }
}

fn not_for_these(atom: &CopyAtom) -> Reason {
    Reason::Instruction {
        name: atom.name().to_string(),
        because: "it does not copy between these memories".to_string(),
    }
}
