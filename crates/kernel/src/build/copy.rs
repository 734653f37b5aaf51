//! Tiled copies.
//!
//! Law: element `i` of the destination becomes element `i` of the source. The atom of the copy says
//! which instruction moves it, and where both ends lie decides how many elements it takes.

use tilewright_atoms::{CopyAtom, CopyEnd, TiledCopy};

use super::Build;
use super::access::Piece;
use super::fragment::Fragment;
use super::load_store::Edge;
use super::tensor::View;
use crate::error::{KernelError, Reason};
use crate::program::memory::Cache;
use crate::program::operation::Operation;
use crate::program::register::Register;
use crate::program::{Location, Source};

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
        let location = Location::caller();
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
        let location = Location::caller();
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

    pub(super) fn copy_async<'k>(
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
            from.own_block("an asynchronous copy")?;
            to.own_block("an asynchronous copy")?;
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
}

pub(super) fn not_for_these(atom: &CopyAtom) -> Reason {
    Reason::Instruction {
        name: atom.name().to_string(),
        because: "it does not copy between these memories".to_string(),
    }
}
