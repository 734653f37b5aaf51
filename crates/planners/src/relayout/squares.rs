//! Relayout by tiles that are transposed in registers, square by square.
//!
//! Law: the axes of a run of the source and those of a run of the destination are disjoint, and
//! vectors are aligned on both sides. A block reads vectors along the source into shared memory,
//! and a thread transposes a square: as many vectors as a vector has elements of the wider type.
//! Chunks of 16 bytes are swizzled by the index of their square, so that adjacent squares are in
//! different banks.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Element, Kernel, KernelError, View};
use tilewright_layout::atoms::{CopyAtom, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, Layout, Swizzle, Tiler, Tree};

use super::sum::Sum;
use super::tile::side_by_side;
use super::{Sides, blocks, coordinate};
use crate::axes::Axis;
use crate::error::PlanError;
use crate::fitted::{self, RELAYOUTS};
use crate::law::{DATA_REGISTERS, SEVERAL_THREADS};
use crate::units::{LANES, div_up};

const FITTED: &fitted::FittedSquares = &RELAYOUTS.squares;

/// The box of a block, and its squares.
#[derive(Debug, Clone)]
pub(super) struct SquaresPlan {
    /// Axes of a run of the source, and the extent of the box along each: powers of two.
    source: Vec<(usize, i64)>,
    /// The same for the destination.
    destination: Vec<(usize, i64)>,
    square: i64,
    /// Squares along the source, and along the destination.
    sides: (i64, i64),
}

/// The consecutive axes of a run with `side` elements in a box: whole axes whose extents are powers
/// of two, and a part of the last axis.
fn run(axes: &[Axis], step: impl Fn(&Axis) -> i64, side: i64) -> Option<Vec<(usize, i64)>> {
    let (mut found, mut length, mut left): (Vec<(usize, i64)>, i64, i64) = (Vec::new(), 1, side);
    loop {
        let next = (0..axes.len()).find(|axis| axes[*axis].extent > 1 && step(&axes[*axis]) == length)?;
        let extent = axes[next].extent;
        // A single axis may be a little shorter: the rest of the box is skipped.
        if extent >= left || found.is_empty() && 4 * extent >= 3 * left {
            found.push((next, left));
            return Some(found);
        }
        if !(extent as u64).is_power_of_two() {
            return None;
        }
        found.push((next, extent));
        left /= extent;
        length *= extent;
    }
}

/// Whether both sides fit in the L2 cache, for element types for which that was measured to matter.
fn cached(sides: &Sides) -> bool {
    let bytes = sides.widest();
    let most = sides.limits.cached_squares.get(bytes as usize - 1);
    let size = sides.axes.iter().fold(bytes, |size, axis| size.saturating_mul(axis.extent));
    most.is_some_and(|most| size <= *most)
}

impl SquaresPlan {
    /// The box with the longest runs on both sides that makes enough blocks; None if the law does
    /// not hold.
    pub(super) fn plan(sides: &Sides) -> Option<SquaresPlan> {
        let powers = || (0..).map(|power| 1 << power).take_while(|n| *n <= FITTED.side);
        let boxes = powers()
            .flat_map(|a| powers().map(move |b| (a, b)))
            .filter(|(a, b)| (LANES..=SEVERAL_THREADS).contains(&(a * b)));
        // Vectors as wide as the alignment allows, at least one word.
        let widest = sides.widest();
        let aligned = |square: &i64| SquaresPlan::new(sides, (1, 1), *square).is_some();
        let vectors: &[i64] = if widest == 1 && cached(sides) { &[8] } else { &[16, 8] };
        let square = vectors.iter().map(|bytes| bytes / widest).filter(|square| *square > 1).find(aligned)?;
        let boxes = boxes.filter_map(|squares| SquaresPlan::new(sides, squares, square));
        let rated = boxes.filter_map(|found| Some((found.rate(sides)?, found)));
        // Of boxes with equal ratings the first, whose runs of the source are shorter.
        rated.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, found)| found)
    }

    /// Whether both sides of a box have enough contiguous bytes and neither is much shorter than
    /// the other, or everything is in L2: such boxes are faster than any windows.
    pub(super) fn is_whole(&self, sides: &Sides) -> bool {
        let (a, b) = self.sides;
        cached(sides) || self.side_bytes(sides) == (RELAYOUTS.run, RELAYOUTS.run) && a.max(b) <= 4 * a.min(b)
    }

    /// Contiguous bytes of a box in the source and in the destination, up to the useful maximum.
    fn side_bytes(&self, sides: &Sides) -> (i64, i64) {
        let (axes, extents) = (&sides.axes, self.extents(&sides.axes));
        let most = if cached(sides) { RELAYOUTS.run / 2 } else { RELAYOUTS.run };
        let bytes =
            |(whole, parts): (i64, i64), element: Element| (whole / parts * i64::from(element.bytes())).min(most);
        let read = bytes(side_by_side(axes, |axis| axis.source, &extents), sides.source);
        (read, bytes(side_by_side(axes, |axis| axis.destination, &extents), sides.destination))
    }

    /// The rating of a box: contiguous bytes on both sides, then its size, and its shape.
    fn rate(&self, sides: &Sides) -> Option<(i64, i64, i64)> {
        let (axes, extents) = (&sides.axes, self.extents(&sides.axes));
        let (read, written) = self.side_bytes(sides);
        let (a, b) = self.sides;
        let enough = self.count(axes) >= sides.limits.blocks;
        // A box that is cut off at the end of an axis leaves threads idle.
        let (all, boxed) = axes.iter().zip(&extents).fold((1.0, 1.0), |(all, boxed), (axis, part)| {
            (all * axis.extent as f64, boxed * (div_up(axis.extent, *part) * part) as f64)
        });
        // For words, vectors do not have to be long.
        let wide = sides.source.bytes() >= 4;
        // 8-bit elements need many short vectors.
        let cached = cached(sides);
        if sides.source.bytes() == 1 && self.square < 16 && written < RELAYOUTS.run && !cached {
            return None;
        }
        if wide && (read.min(written) < RELAYOUTS.run / 2 || self.square * i64::from(sides.source.bytes()) < 8) {
            return None;
        }
        let filled = FITTED.filled[usize::from(wide)];
        if all < filled * boxed || read.min(written) < RELAYOUTS.run / 4 || !enough && a * b > FITTED.side {
            return None;
        }
        // From L2, longer runs of the source are better than longer runs of the destination.
        let (size, shape) = if cached { (-a * b, a - b) } else { (a * b, -(a - b).abs()) };
        Some((read * written, size, shape))
    }

    fn new(sides: &Sides, squares: (i64, i64), square: i64) -> Option<SquaresPlan> {
        let axes = &sides.axes;
        let source = run(axes, |axis| axis.source, squares.0 * square)?;
        let destination = run(axes, |axis| axis.destination, squares.1 * square)?;
        let apart = source.iter().all(|(axis, _)| destination.iter().all(|(other, _)| axis != other));
        let (first, last) = (source[0].0, destination[0].0);
        let aligned = |first: usize, step: &dyn Fn(&Axis) -> i64, base: i64| {
            base % square == 0
                && axes[first].extent % square == 0
                && axes.iter().enumerate().all(|(axis, own)| axis == first || step(own) % square == 0)
        };
        let whole = aligned(first, &|axis| axis.source, sides.bases.0)
            && aligned(last, &|axis| axis.destination, sides.bases.1)
            && sides.kept >= square;
        // 8-bit elements have squares of 256 elements, and need runs of 256 on both sides.
        let few = squares.0 * squares.1 * square * square <= FITTED.elements.max(256 * square * square);
        (apart && whole && few).then_some(SquaresPlan { source, destination, square, sides: squares })
    }

    /// The extent of the box along each axis.
    fn extents(&self, axes: &[Axis]) -> Vec<i64> {
        let mut extents = vec![1; axes.len()];
        for (axis, extent) in self.source.iter().chain(&self.destination) {
            extents[*axis] = *extent;
        }
        extents
    }

    fn count(&self, axes: &[Axis]) -> i64 {
        let counts = axes.iter().zip(self.extents(axes)).map(|(axis, part)| div_up(axis.extent, part));
        counts.fold(1, |count: i64, n| count.saturating_mul(n))
    }

    /// The plan, as text.
    pub(super) fn describe(&self) -> String {
        let text = |list: &[(usize, i64)]| {
            let parts: Vec<String> = list.iter().map(|(_, extent)| extent.to_string()).collect();
            if parts.len() == 1 { parts[0].clone() } else { format!("({})", parts.join(",")) }
        };
        format!(
            "tiles of {} x {} through shared memory, turned in squares of {} x {}; blocks go along the output",
            text(&self.source),
            text(&self.destination),
            self.square,
            self.square
        )
    }
}

/// The kernel.
pub(super) fn kernel(sides: &Sides, plan: &SquaresPlan) -> Result<Kernel, PlanError> {
    let axes = &sides.axes;
    let (square, (across, down)) = (plan.square, plan.sides);
    let (row, rows) = (across * square, down * square);
    let extents = plan.extents(axes);
    let counts: Vec<i64> = axes.iter().zip(&extents).map(|(axis, part)| div_up(axis.extent, *part)).collect();
    let total = counts.iter().try_fold(1_i64, |total, count| total.checked_mul(*count));
    let total = blocks(total.unwrap_or(i64::MAX))?;
    // Modes: those of the box, the source's first, and the others in the order of the output.
    let boxed: Vec<usize> = plan.source.iter().chain(&plan.destination).map(|(axis, _)| *axis).collect();
    let others: Vec<usize> = (0..axes.len()).filter(|axis| !boxed.contains(axis)).collect();
    let order: Vec<usize> = boxed.iter().chain(&others).copied().collect();
    let modes = |step: &dyn Fn(&Axis) -> i64| -> Vec<(i64, i64)> {
        order.iter().map(|axis| (axes[*axis].extent, step(&axes[*axis]))).collect()
    };
    let (from, to) = (modes(&|axis| axis.source), modes(&|axis| axis.destination));
    let threads = across * down;
    let (log_square, bits) = (square.trailing_zeros(), across.min(down).trailing_zeros().min(3));
    let swizzle = Swizzle::new(bits.into(), log_square.into(), row.trailing_zeros().into())?;
    let tile_layout = Composed::new(swizzle, 0, Layout::strided((row, rows), (1, row))?)?;
    let boxed_extents = Tree::flat(boxed.iter().map(|axis| extents[*axis]))?;
    let vector = square * i64::from(sides.source.bits());
    let load = TiledCopy::new(
        CopyAtom::named(&format!("UniversalCopy<uint{vector}_t>"))?,
        i64::from(sides.source.bits()),
        &Layout::strided((across, down), (1, across))?,
        &Layout::strided((square, 1), (1, 0))?,
    )?;
    Ok(Kernel::build("relayout_squares", |k| {
        let from = k.tensor_of(sides.source, "source", sides.declared(0, &from), Role::Input)?;
        let to = k.tensor_of(sides.destination, "destination", sides.declared(1, &to), Role::Output)?;
        let tile = k.shared_of(sides.source, &tile_layout)?;
        k.threads(threads)?;
        // Squares of 16 vectors are not limited in registers.
        if square < 16 {
            let bytes = row * rows * i64::from(sides.source.bytes());
            let registers = if square >= 4 { 4 * DATA_REGISTERS } else { 8 * DATA_REGISTERS / 3 };
            k.resident(sides.limits.resident(bytes, threads, registers) as u32)?;
        }
        k.grid(operation::Axis::X, total)?;
        let block = k.block_number(operation::Axis::X);
        let digits = k.coordinate(&block, &counts)?;
        let outer = others.iter().map(|axis| Some(digits[*axis].clone()));
        let outer = coordinate(boxed.iter().map(|_| None).chain(outer))?;
        let inner = coordinate(boxed.iter().map(|axis| Some(digits[*axis].clone())))?;
        let (source_tile, target_tile) =
            (box_at(&from, plan, &outer, &boxed_extents, &inner)?, box_at(&to, plan, &outer, &boxed_extents, &inner)?);
        k.copy_predicated(&load, &source_tile, &tile)?;
        k.barrier();
        // Thread (c, r) transposes square (r, c): adjacent threads write adjacent memory.
        let strips = [across, down].map(|count| Layout::strided((square, count), (1, square)));
        let strips = strips.map(|strip| strip.map(|strip| Tiler::Layout(Layout::<Expr>::from(&strip))));
        let squares = Tiler::modes(strips.into_iter().collect::<Result<Vec<_>, _>>()?)?;
        let digits = k.coordinate(&k.thread()?, &[down, across])?;
        let one = |digit: &Expr| coordinate([None, Some(digit.clone())]);
        let mine = Tree::tuple([&one(&digits[1])?, &one(&digits[0])?])?;
        // The same for the tensor. If squares go along several axes, each coordinate is split into
        // digits.
        let along = |digit: &Expr, list: &[(usize, i64)]| -> Result<Coord<Expr>, KernelError> {
            let counts = list.iter().enumerate().map(|(at, (_, part))| if at == 0 { part / square } else { *part });
            let counts: Vec<i64> = counts.collect();
            let mut step = 1;
            let mut sum = Sum { base: 0, terms: Vec::new() };
            for (part, count) in k.coordinate(digit, &counts)?.into_iter().zip(counts) {
                sum.terms.push((part, step));
                step *= count;
            }
            Ok(one(&sum.expr()?)?)
        };
        let theirs = Tree::tuple([&along(&digits[1], &plan.source)?, &along(&digits[0], &plan.destination)?])?;
        let values = tile.compose(squares.clone())?.slice(mine)?.load()?;
        target_tile.compose(squares)?.slice(theirs)?.store_predicated(&sides.converted(values)?)
    })?)
}

/// The box of a block as two modes: along a run of the source, and along a run of the destination.
fn box_at<'k>(
    view: &View<'k>,
    plan: &SquaresPlan,
    outer: &Coord<Expr>,
    tile: &Tree<i64>,
    inner: &Coord<Expr>,
) -> Result<View<'k>, KernelError> {
    let part = view.slice(outer.clone())?.local_tile(tile, inner.clone())?;
    let (first, all) = (plan.source.len(), plan.source.len() + plan.destination.len());
    part.group(first..all)?.group(0..first)
}
