//! Tiled copies.
//!
//! Law: element `i` of the destination becomes element `i` of the source, for the parts of a
//! thread. The copy atom determines the instruction, and the layouts of both ends determine its
//! width. An element is written only if it is proved to exist, or if a predicate for its edge
//! holds; in shared memory, every written element must exist.

use tilewright_layout::atoms::{CopyAtom, CopyEnd};

use super::Build;
use super::access::{Edge, Piece};
use super::ends::{CopyBy, End, same_modes};
use super::fragment::Fragment;
use super::number::Flag;
use super::predicates::{Conditions, Predicates};
use super::tensor::{Cuttable, View};
use crate::error::{KernelError, Reason};
use crate::program::memory::Cache;
use crate::program::operation::Operation;
use crate::program::register::Register;

/// The kind of a copy instruction.
enum CopyKind {
    /// Loads and stores of at most this many bits.
    Move(u32),
    /// `cp.async` of this many bits.
    Async { bits: u32, past_first_level: bool },
    /// `ldmatrix`.
    LoadMatrix { count: u32, transposed: bool },
    /// `stmatrix`.
    StoreMatrix { count: u32, transposed: bool },
}

fn kind_of(atom: &CopyAtom) -> Result<CopyKind, Reason> {
    let name = atom.name();
    let number = |from: &str| -> Option<u32> {
        let rest = name.split_once(from)?.1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    if name.starts_with("UniversalCopy") {
        return Ok(CopyKind::Move(number("<uint").unwrap_or(8)));
    }
    if name.starts_with("AutoVectorizingCopyWithAssumedAlignment") {
        return Ok(CopyKind::Move(number("<").unwrap_or(128)));
    }
    if name == "DefaultCopy" || name == "AutoVectorizingCopy" {
        return Ok(CopyKind::Move(128));
    }
    if name.starts_with("SM80_CP_ASYNC") {
        let bits = number("<uint").unwrap_or(128);
        return Ok(CopyKind::Async { bits, past_first_level: name.contains("CACHEGLOBAL") });
    }
    if name.contains("LDSM") {
        let transposed = name.ends_with("_T");
        let count = if transposed { number("_U16x").map(|n| n / 2) } else { number("_U32x") };
        return Ok(CopyKind::LoadMatrix { count: count.unwrap_or(1), transposed });
    }
    if name.contains("STSM") {
        let transposed = name.ends_with("_T");
        let count = if transposed { number("_U16x").map(|n| n / 2) } else { number("_U32x") };
        return Ok(CopyKind::StoreMatrix { count: count.unwrap_or(1), transposed });
    }
    let because = "copies of kernels are UniversalCopy, AutoVectorizingCopy, SM80_CP_ASYNC, LDSM and STSM".to_string();
    Err(Reason::Instruction { name: name.to_string(), because })
}

/// A tensor in memory or in registers, which `copy` accepts.
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

/// Which elements a copy moves.
#[derive(Clone, Copy)]
enum CopiedElements<'p, 'k> {
    /// All elements, which must exist.
    All,
    /// The elements that exist.
    Existing,
    /// The elements that exist and whose predicate is true.
    Where(&'p Predicates<'k>),
    /// The elements that exist, if a condition of this thread is true.
    When(Flag<'k>),
}

impl CopiedElements<'_, '_> {
    fn edge(self) -> Edge {
        match self {
            CopiedElements::All => Edge::Proved,
            _ => Edge::Predicated,
        }
    }
}

impl Build {
    /// Copies a tile. Each thread copies the part that the tiled copy assigns to it (CuTe
    /// `copy(tiled_copy, src, dst)`).
    ///
    /// Source and destination are two tiles in memory, or two parts of this thread. A part is a
    /// result of [`View::partition`], which is not partitioned again, or a fragment. An instruction
    /// alone ([`CopyAtom`]) copies parts. An asynchronous instruction (`SM80_CP_ASYNC`) returns at
    /// once; see [`Build::commit_async`].
    ///
    /// ```
    /// use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let atom = CopyAtom::named("UniversalCopy<uint128_t>")?;
    /// let copy = TiledCopy::new(atom, 32, &"(8,4):(4,1)".parse()?, &"(1,4)".parse()?)?;
    /// let kernel = Kernel::build("copied", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(64,16):(16,1)")?, k.output::<f32>("y", "(64,16):(1,64)")?);
    ///     let (from, to) = (x.partition(&copy, CopyEnd::Source)?, y.partition(&copy, CopyEnd::Destination)?);
    ///     k.copy(&copy, &from, &to) // as k.copy(&copy, &x, &y)
    /// })?;
    /// let run = interpret::check(kernel.program(), &[])?.run;
    /// assert_eq!(run.tensor::<f32>(1)?[1], run.tensor::<f32>(0)?[16]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: one end is a tile and the other a part, or they are parts of different elements or
    /// threads; shapes or types differ; an element of either may not exist; the elements of one
    /// instruction are not contiguous and aligned for every admissible size.
    #[track_caller]
    pub fn copy<'k>(
        &'k self,
        by: &impl CopyBy,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
    ) -> Result<(), KernelError> {
        self.copied("copy", by, (source, destination), CopiedElements::All)
    }

    /// As [`Build::copy`], but past the edges of a tensor, reads give 0 and writes do nothing.
    /// Destination elements in shared memory must exist; they become 0 where the source has no
    /// element.
    ///
    /// Errors: as [`Build::copy`], except that elements in global memory may not exist.
    #[track_caller]
    pub fn copy_predicated<'k>(
        &'k self,
        by: &impl CopyBy,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
    ) -> Result<(), KernelError> {
        self.copied("copy_predicated", by, (source, destination), CopiedElements::Existing)
    }

    /// As [`Build::copy_predicated`], for the elements whose predicate is true (CuTe `copy_if`).
    /// There is a predicate for each element, or for each execution of the instruction. If it is
    /// false, `cp.async` writes zeros; any other instruction leaves the destination unchanged, and
    /// an element of a fragment without a value becomes 0.
    ///
    /// Errors: as [`Build::copy_predicated`]; the number of predicates is wrong; one execution of
    /// an instruction of fixed width has several predicates.
    #[track_caller]
    pub fn copy_if<'k>(
        &'k self,
        by: &impl CopyBy,
        predicates: &Predicates<'k>,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
    ) -> Result<(), KernelError> {
        self.copied("copy_if", by, (source, destination), CopiedElements::Where(predicates))
    }

    /// As [`Build::copy_if`], with one condition for all elements that this thread copies.
    ///
    /// ```
    /// use tilewright_layout::atoms::{CopyAtom, TiledCopy};
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let atom = CopyAtom::named("UniversalCopy<uint32_t>")?;
    /// let copy = TiledCopy::new(atom, 32, &"(8,4):(4,1)".parse()?, &"(1,2)".parse()?)?;
    /// // Threads 0 to 9 copy, and the others leave what is there.
    /// let kernel = Kernel::build("some", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(8,8):(8,1)")?, k.tensor::<f32>("y", "(8,8):(8,1)")?);
    ///     k.threads(32)?;
    ///     let first = k.index(&k.thread()?)?.lt(k.number(10));
    ///     k.copy_when(&copy, first, &x, &y)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.tensor(0, &[2.0_f32; 64])?.tensor(1, &[-1.0_f32; 64])?;
    /// let y = interpreter.check()?.run.tensor::<f32>(1)?;
    /// assert_eq!(y.iter().filter(|y| **y == 2.0).count(), 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: as [`Build::copy_predicated`].
    #[track_caller]
    pub fn copy_when<'k>(
        &'k self,
        by: &impl CopyBy,
        condition: Flag<'k>,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
    ) -> Result<(), KernelError> {
        self.copied("copy_when", by, (source, destination), CopiedElements::When(condition))
    }

    #[track_caller]
    fn copied<'k>(
        &'k self,
        statement: &'static str,
        by: &impl CopyBy,
        (source, destination): (&impl Tensor<'k>, &impl Tensor<'k>),
        taken: CopiedElements<'_, 'k>,
    ) -> Result<(), KernelError> {
        self.statement(statement, || self.moved(by, source, destination, taken))
    }

    fn moved<'k>(
        &'k self,
        by: &impl CopyBy,
        source: &impl Tensor<'k>,
        destination: &impl Tensor<'k>,
        taken: CopiedElements<'_, 'k>,
    ) -> Result<(), Reason> {
        let atom = by.instruction();
        let kind = kind_of(atom)?;
        let ends = match (source.as_view(), destination.as_view(), source.as_fragment(), destination.as_fragment()) {
            (Some(from), Some(to), ..) => [End::View(from), End::View(to)],
            (Some(from), _, _, Some(to)) => [End::View(from), End::Fragment(to)],
            (_, Some(to), Some(from), _) => [End::Fragment(from), End::View(to)],
            _ => return Err(not_for_these(atom)),
        };
        let tiling = by.tiling();
        let is_tile = self.matched(tiling, ends)?;
        let cut = |view: &View<'k>, end: CopyEnd| match tiling {
            Some(copy) if is_tile => view.partition_copy(copy, end, None),
            _ => Ok(view.clone()),
        };
        let values = |view: &View<'k>| {
            let own = atom.values(atom.reference(), i64::from(view.element.bits())).ok();
            own.and_then(|own| own.mode(1)).map_or(1, |values| values.size())
        };
        let conditions = |view: &View<'k>| match taken {
            CopiedElements::Where(predicates) => Conditions::of(predicates, view, values(view)).map(Some),
            CopiedElements::When(condition) => Conditions::one(condition, view).map(Some),
            _ => Ok(None),
        };
        let edge = taken.edge();
        match (source.as_view(), destination.as_view(), source.as_fragment(), destination.as_fragment()) {
            (Some(from), Some(to), ..) => {
                let (from, to) = (cut(from, CopyEnd::Source)?, cut(to, CopyEnd::Destination)?);
                same_modes(&from, &to)?;
                let conditions = conditions(&from)?;
                match kind {
                    CopyKind::Move(bits) => {
                        if to.is_shared() {
                            to.pieces_inside()?;
                        }
                        let fragment = from.fragment_like(from.element)?;
                        from.read_if(conditions.as_ref(), &fragment, bits, edge)?;
                        // The fragment has the shape of the source, so indices count the same
                        // elements.
                        to.write_if(conditions.as_ref(), &fragment, bits, edge)
                    }
                    CopyKind::Async { bits, past_first_level } => {
                        self.copy_async(atom, (&from, &to), (bits, past_first_level), conditions.as_ref(), edge)
                    }
                    _ => Err(not_for_these(atom)),
                }
            }
            (Some(from), _, _, Some(to)) => {
                let from = cut(from, CopyEnd::Source)?;
                match (kind, conditions(&from)?) {
                    (CopyKind::Move(bits), conditions) => from.read_if(conditions.as_ref(), to, bits, edge),
                    (CopyKind::LoadMatrix { count, transposed }, None) => {
                        self.load_matrix(&from, to, count, transposed)
                    }
                    _ => Err(not_for_these(atom)),
                }
            }
            (_, Some(to), Some(from), _) => {
                let to = cut(to, CopyEnd::Destination)?;
                match (kind, conditions(&to)?) {
                    (CopyKind::Move(bits), conditions) => {
                        if to.is_shared() {
                            to.pieces_inside()?;
                        }
                        to.write_if(conditions.as_ref(), from, bits, edge)
                    }
                    (CopyKind::StoreMatrix { count, transposed }, None) => {
                        self.store_matrix(from, &to, count, transposed)
                    }
                    _ => Err(not_for_these(atom)),
                }
            }
            _ => Err(not_for_these(atom)),
        }
    }

    /// `cp.async` of parts. The instruction writes the destination even if the predicate is false,
    /// with zeros. So all of the destination must exist.
    pub(super) fn copy_async<'k>(
        &'k self,
        atom: &CopyAtom,
        (from, to): (&View<'k>, &View<'k>),
        (bits, past_first_level): (u32, bool),
        conditions: Option<&Conditions>,
        edge: Edge,
    ) -> Result<(), Reason> {
        let spaces = (from.is_shared(), to.is_shared());
        if spaces != (false, true) || from.element != to.element {
            return Err(not_for_these(atom));
        }
        from.readable()?;
        let each = bits / from.element.bits();
        let (sources, targets) = (from.pieces(each)?, to.pieces(each)?);
        let refuse = |view: &View<'k>, because: &str| Reason::Width {
            tensor: view.text(),
            atom: atom.name().to_string(),
            elements: each,
            because: because.to_string(),
        };
        for (view, pieces) in [(from, &sources), (to, &targets)] {
            if pieces.iter().any(|piece| piece.elements.len() as u32 != each) {
                let because = "they are not contiguous and aligned to that, or an edge may separate them";
                return Err(refuse(view, because));
            }
        }
        for source in &sources {
            let target = targets.iter().find(|target| target.elements == source.elements);
            let target = target
                .ok_or_else(|| refuse(to, "the elements that are contiguous in one memory are not in the other"))?;
            from.own_block("an asynchronous copy")?;
            to.own_block("an asynchronous copy")?;
            let edge = match conditions {
                None => edge,
                Some(conditions) => {
                    let condition = conditions.of_piece(source);
                    let condition = condition.ok_or_else(|| refuse(from, "they have several predicates"))?;
                    from.where_inside(source, condition)?
                }
            };
            let (mut read, read_at, guard) = from.one(source, edge)?;
            let (write, write_at, _) = to.one(target, Edge::Proved)?;
            if past_first_level {
                read.cache = Cache::NoAllocate;
            }
            let inputs: Vec<Register> = write_at.into_iter().chain(read_at).chain(guard).collect();
            let operation = Operation::CopyAsync { to: write, from: read, or_zeros: guard.is_some() };
            self.core().effect(operation, inputs, &[], None);
        }
        Ok(())
    }
}

impl<'k> View<'k> {
    /// Proves that each element exists, because writes to shared memory are never skipped.
    fn pieces_inside(&self) -> Result<(), Reason> {
        for piece in self.pieces(1)? {
            let conditions = self.conditions(&piece, Edge::Proved)?;
            self.build.core().guard(self, &conditions, Edge::Proved)?;
        }
        Ok(())
    }

    /// The predicate of an access with a condition. If the condition and the bounds check coincide,
    /// only one is evaluated.
    fn where_inside(&self, piece: &Piece, condition: Register) -> Result<Edge, Reason> {
        // The condition, and not the edge, excludes a coordinate that may be negative.
        let Ok(edges) = self.conditions(piece, Edge::Predicated) else { return Ok(Edge::Where(condition)) };
        let implied = self.build.core().says_inside(condition, &edges);
        Ok(if implied { Edge::Predicated } else { Edge::Where(condition) })
    }

    /// Loads the elements whose condition is true. Other elements keep their value, or become 0 if
    /// they had none.
    fn read_if(
        &self,
        conditions: Option<&Conditions>,
        fragment: &Fragment<'k>,
        bits: u32,
        edge: Edge,
    ) -> Result<(), Reason> {
        let Some(conditions) = conditions else { return self.read_into(fragment, bits, edge) };
        self.same_size(fragment)?;
        self.readable()?;
        let slots = fragment.slots()?;
        if (1..slots.len()).any(|at| slots[..at].contains(&slots[at])) {
            return Err(Reason::Overlap { layout: fragment.layout.to_string(), in_registers: true });
        }
        for piece in conditions.apart(self.pieces((bits / self.element.bits()).max(1))?)? {
            let Some(condition) = conditions.of_piece(&piece) else { continue };
            let own: Vec<usize> = piece.elements.iter().map(|element| slots[*element]).collect();
            self.read_piece(&piece, self.where_inside(&piece, condition)?, condition, fragment.cell, &own)?;
        }
        Ok(())
    }

    /// Writes the elements whose condition is true.
    fn write_if(
        &self,
        conditions: Option<&Conditions>,
        fragment: &Fragment<'k>,
        bits: u32,
        edge: Edge,
    ) -> Result<(), Reason> {
        let Some(conditions) = conditions else { return self.write_from(fragment, bits, edge) };
        self.same_size(fragment)?;
        self.writable()?;
        let pieces = conditions.apart(self.pieces((bits / self.element.bits()).max(1))?)?;
        if pieces.iter().any(|piece| piece.again) {
            return Err(Reason::Overlap { layout: self.text(), in_registers: false });
        }
        let mut edges = Vec::new();
        for piece in &pieces {
            let Some(condition) = conditions.of_piece(piece) else { continue };
            edges.push(self.where_inside(piece, condition)?);
        }
        if edges.iter().all(|edge| *edge == Edge::Predicated) {
            self.remember_write(None)?;
        } else {
            for (condition, elements) in conditions.groups() {
                self.remember_elements(Some(condition), Some(&elements))?;
            }
        }
        let slots = fragment.slots()?;
        for (piece, edge) in pieces.iter().zip(edges) {
            let own: Vec<usize> = piece.elements.iter().map(|element| slots[*element]).collect();
            self.write_piece(piece, edge, fragment.cell, &own)?;
        }
        Ok(())
    }
}

pub(super) fn not_for_these(atom: &CopyAtom) -> Reason {
    Reason::Instruction {
        name: atom.name().to_string(),
        because: "it does not copy between these memories".to_string(),
    }
}
