//! The elements of a view that one instruction accesses.
//!
//! Law: the accesses of a part cover each of its elements once. The elements of an access are
//! contiguous in memory, for every size that the facts allow, and aligned to the width of the
//! access. Elements that are proved to exist are accessed directly; those that may lie past an edge
//! need a predicate, and then either all elements of an access exist, or none does.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coordinate, Extent, LayoutError, ModePath, Stride};

use super::core::Core;
use super::tensor::View;
use crate::error::Reason;
use crate::program::memory::{Access, Cache, Space};
use crate::program::register::Register;

/// How a copy treats elements that may not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// It is proved to exist.
    Proved,
    /// It may not exist: a read then gives 0, and a write does nothing.
    Predicated,
    /// As [`Edge::Predicated`], also if this predicate is false.
    Where(Register),
}

/// Elements that one instruction accesses.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// The indices of the elements in the part, in memory order.
    pub(crate) elements: Vec<usize>,
    /// The offset of the first element, in elements from the beginning of the buffer, before the
    /// swizzle.
    pub(crate) offset: Expr,
    /// Whether an earlier piece has an element at the same offset.
    pub(crate) again: bool,
}

impl Piece {
    /// The offset of one of its elements.
    pub(super) fn offset_at(&self, at: usize) -> Result<Expr, Reason> {
        let moved = Stride::plus(&self.offset, &Expr::from(at as i64));
        moved.ok_or(Reason::Layout(LayoutError::Overflow { op: "offset" }))
    }

    /// Whether both have an element at the same offset, as far as the distance between them is
    /// known.
    pub(crate) fn meets(&self, other: &Piece) -> bool {
        let apart = other.offset.minus(&self.offset).and_then(|apart| apart.known());
        apart.is_some_and(|apart| apart < self.elements.len() as i64 && -apart < other.elements.len() as i64)
    }
}

/// An edge condition: a mode of the tensor, the coordinate along it, and the extent, which must be
/// greater than the coordinate.
pub(crate) type EdgeCondition = (usize, Expr, Expr);

/// Elements whose offsets differ by known constants.
struct Family {
    base: Expr,
    members: Vec<(i64, usize)>,
}

impl View<'_> {
    /// The number of elements of the view.
    pub(crate) fn count(&self) -> Result<usize, Reason> {
        let open = || Reason::Open { what: "the number of elements", layout: self.text() };
        let size = self.layout.size().known().ok_or_else(open)?;
        super::elements_of_thread(size)
    }

    /// The offset of an element, in elements from the beginning of the buffer, before the swizzle.
    pub(crate) fn offset_of(&self, index: usize) -> Result<Expr, Reason> {
        let value = self.layout.eval(&Expr::from(index as i64)).map_err(Reason::Layout)?;
        Stride::plus(&self.offset, &value).ok_or(Reason::Layout(LayoutError::Overflow { op: "offset" }))
    }

    /// The coordinate of an element in the whole tensor.
    fn coordinate_of(&self, index: usize) -> Result<Coordinate<Expr>, Reason> {
        let value = self.place.layout.eval(&Expr::from(index as i64)).map_err(Reason::Layout)?;
        let overflow = LayoutError::Overflow { op: "coordinate" };
        self.place.start.plus(&value).ok_or(Reason::Layout(overflow))
    }

    /// The number of contiguous elements that the swizzle keeps contiguous.
    fn kept_by_map(&self) -> u32 {
        match self.map {
            None => u32::MAX,
            Some(swizzle) => {
                let (m, s) = (swizzle.base(), swizzle.shift());
                let lowest = m.min(m + s).clamp(0, 30);
                if swizzle.bits() == 0 { u32::MAX } else { 1 << lowest }
            }
        }
    }

    /// The accesses that cover the part, each with at most `most` elements, a power of two. Every
    /// element is in one of them, even if several elements have the same offset.
    pub(crate) fn pieces(&self, most: u32) -> Result<Vec<Piece>, Reason> {
        let count = self.count()?;
        let mut families: Vec<Family> = Vec::new();
        for index in 0..count {
            let offset = self.offset_of(index)?;
            let near = |family: &mut Family| {
                let apart = offset.minus(&family.base)?.known()?;
                family.members.push((apart, index));
                Some(())
            };
            if families.iter_mut().find_map(near).is_none() {
                families.push(Family { base: offset, members: vec![(0, index)] });
            }
        }
        let mut pieces = Vec::new();
        for family in &mut families {
            family.members.sort_unstable();
            // Of several elements with the same offset, all but the first are in later runs.
            let mut members = std::mem::take(&mut family.members);
            let mut again = false;
            while !members.is_empty() {
                let mut later = Vec::new();
                for member in members {
                    match family.members.last() {
                        Some(last) if last.0 == member.0 => later.push(member),
                        _ => family.members.push(member),
                    }
                }
                self.cut_run(family, most, again, &mut pieces)?;
                family.members.clear();
                (members, again) = (later, true);
            }
        }
        pieces.sort_by_key(|piece| (piece.again, piece.elements.iter().min().copied()));
        Ok(pieces)
    }

    /// Splits elements with different offsets, in order, into accesses.
    fn cut_run(&self, family: &Family, most: u32, again: bool, pieces: &mut Vec<Piece>) -> Result<(), Reason> {
        // Whether an access at this distance from the base is aligned to its width.
        let aligned = |width: i64, at: i64| {
            Stride::plus(&family.base, &Expr::from(at)).is_some_and(|start| Expr::from(width).divides(&start).proved())
        };
        let mut at = 0;
        while let Some((first, _)) = family.members.get(at).copied() {
            let mut width = most.min(self.kept_by_map()) as usize;
            while width > 1 {
                let run = family.members.get(at..at + width);
                let together =
                    run.is_some_and(|run| run.iter().zip(first..).all(|(member, offset)| member.0 == offset));
                if together && aligned(width as i64, first) && self.whole_or_none(at, width, &family.members)? {
                    break;
                }
                width /= 2;
            }
            let offset = Stride::plus(&family.base, &Expr::from(first));
            let offset = offset.ok_or(Reason::Layout(LayoutError::Overflow { op: "offset" }))?;
            let elements = family.members[at..at + width].iter().map(|member| member.1).collect();
            pieces.push(Piece { elements, offset, again });
            at += width;
        }
        Ok(())
    }

    /// Whether either all elements of an access exist, or none: along a mode of the tensor, the
    /// access begins at a multiple of its number of elements, and the extent is such a multiple.
    fn whole_or_none(&self, at: usize, width: usize, members: &[(i64, usize)]) -> Result<bool, Reason> {
        let first = self.coordinate_of(members[at].1)?;
        let last = self.coordinate_of(members[at + width - 1].1)?;
        for (path, extent) in self.bounds() {
            let (from, to) = (first.scale_at(path), last.scale_at(path));
            let exist = |core: &Core| core.is_natural(&from) && core.is_natural(&to) && core.is_less(&to, &extent);
            if from == to || exist(&self.build.core()) {
                continue;
            }
            let by = Expr::from(width as i64);
            let step = to.minus(&from).and_then(|apart| apart.known());
            if step != Some(width as i64 - 1) || !by.divides(&from).proved() || !by.divides(&extent).proved() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.build.core().buffers[self.buffer.index()].space == Space::Shared
    }

    /// The paths of the modes of the whole tensor, with their extents, or with an earlier end of a
    /// shortened view.
    pub(super) fn bounds(&self) -> Vec<(ModePath, Expr)> {
        let paths = super::tensor::paths(&self.whole);
        let mut found: Vec<(ModePath, Expr)> = paths.into_iter().zip(self.whole.leaves().iter().cloned()).collect();
        for (path, extent) in &mut found {
            if let Some((_, end)) = self.ends.iter().find(|(own, _)| own == path) {
                *extent = end.clone();
            }
        }
        found
    }

    /// Proves that all of the view is inside its tensor, in all threads, blocks and iterations.
    /// This is required for data that is moved as a whole, because no predicate can skip a part of
    /// it.
    ///
    /// Errors: that is not proved ([`Reason::Outside`], [`Reason::Before`]).
    pub(crate) fn shown_inside(&self) -> Result<(), Reason> {
        let overflow = || Reason::Layout(LayoutError::Overflow { op: "coordinate" });
        for (number, (path, extent)) in self.bounds().into_iter().enumerate() {
            let start = self.place.start.scale_at(path);
            let (mut least, mut greatest) = (start.clone(), start);
            for leaf in self.place.layout.leaves() {
                let step = leaf.stride.scale_at(path);
                let last = leaf.extent.minus(&Expr::from(1)).ok_or_else(overflow)?;
                let far = Stride::times(&step, &last).ok_or_else(overflow)?;
                let end = if Expr::from(-1).less(&step).proved() { &mut greatest } else { &mut least };
                *end = Stride::plus(end, &far).ok_or_else(overflow)?;
            }
            let core = self.build.core();
            let tensor = || core.buffers[self.buffer.index()].name.clone();
            if !core.is_natural(&least) {
                return Err(Reason::Before { tensor: tensor(), coordinate: least.to_string(), mode: number });
            }
            if !core.is_less(&greatest, &extent) {
                return Err(Reason::Outside {
                    tensor: tensor(),
                    coordinate: greatest.to_string(),
                    mode: number,
                    extent: extent.to_string(),
                });
            }
        }
        Ok(())
    }

    /// The conditions under which an access exists, each of the form `coordinate < extent`. Empty
    /// if it is proved to exist.
    pub(crate) fn conditions(&self, piece: &Piece, edge: Edge) -> Result<Vec<EdgeCondition>, Reason> {
        let mut open: Vec<EdgeCondition> = Vec::new();
        for (number, (path, extent)) in self.bounds().into_iter().enumerate() {
            for index in [piece.elements.first(), piece.elements.last()].into_iter().flatten() {
                let at = self.coordinate_of(*index)?.scale_at(path);
                let core = self.build.core();
                let natural = core.is_natural(&at);
                if !natural && edge == Edge::Proved {
                    let tensor = core.buffers[self.buffer.index()].name.clone();
                    return Err(Reason::Before { tensor, coordinate: at.to_string(), mode: number });
                }
                if natural && core.is_less(&at, &extent) {
                    continue;
                }
                // For elements that exist together, the first one decides.
                if open.iter().all(|(mode, ..)| *mode != number) {
                    open.push((number, at, extent.clone()));
                }
            }
        }
        Ok(open)
    }

    /// An access of several pieces with a width in bits.
    pub(crate) fn access(&self, address: Option<Register>, offset: i64, bits: u32, count: u32) -> Access {
        Access { buffer: self.buffer, addressed: address.is_some(), offset, bits, count, cache: self.cache }
    }
}

impl<'k> View<'k> {
    /// The same view, with loads that prefetch whole lines of 128 bytes into L2. That pays if a
    /// part of each line is read now, and the rest an iteration later: DRAM then serves long runs.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, ptx};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each thread sums a row of 128 bytes, 16 of them an iteration.
    /// let kernel = Kernel::build("sums", |k| {
    ///     let (x, y) = (k.input::<i32>("x", "(64,32):(32,1)")?, k.output::<i32>("y", "(64,1):(1,1)")?);
    ///     k.threads(64)?;
    ///     let sum = k.register(tilewright_kernel::Element::I32, 1)?;
    ///     sum.clear();
    ///     k.range(8, |iteration| {
    ///         let part = x.in_whole_lines().local_tile((64, 4), Tree::flat([Slot::At(0.into()), Slot::At(iteration)])?)?;
    ///         let parts = part.thread_part()?.load()?.numbers()?;
    ///         let all = parts.into_iter().fold(sum.numbers()?[0], |sum, x| sum + x);
    ///         sum.set(&[all])
    ///     })?;
    ///     y.thread_part()?.store(&sum)
    /// })?;
    /// let text = ptx::write(kernel.program(), ptx::Target::Sm80)?;
    /// assert!(text.contains("ld.global.L2::128B.v4.b32") && text.starts_with(".version 7.4"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_whole_lines(&self) -> View<'k> {
        View { cache: Cache::WholeLines, ..self.clone() }
    }

    /// As [`in_whole_lines`](View::in_whole_lines), without keeping the data in L1. That pays if
    /// each load reads whole sectors of 32 bytes that the block does not read again.
    pub fn in_whole_lines_once(&self) -> View<'k> {
        View { cache: Cache::WholeLinesOnce, ..self.clone() }
    }
}
