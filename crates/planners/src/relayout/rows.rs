//! Relayout by vectors: one vector for a thread, threads in the order of the output.
//!
//! Law: thread `n` copies vector `n` of the destination, counted in the order of its addresses, and
//! finds it in the source by dividing `n` by the extents. This is the fastest structure if one axis
//! is contiguous on both sides, and long, because adjacent threads then read adjacent memory. A
//! block copies about 4 KiB: if vectors are narrow, a thread has several of them.
//!
//! [`indexed`] is the same for shapes without a common refinement: a thread divides the index of
//! the element. [`over_bits`] is the same for layouts that are linear over bits.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Kernel, KernelError, LayoutArgument, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout};

use super::sum::{Sum, plus, times};
use super::{Sides, blocks, coordinate};
use crate::error::PlanError;
use crate::law::REGISTER_VECTORS;
use crate::terms::Place;
use crate::units::{MOVE_THREADS, VECTOR};

const THREADS: i64 = MOVE_THREADS;

/// The number of vectors of a thread, by their size in bytes.
pub(super) fn each(bytes: i64) -> i64 {
    (VECTOR / bytes).clamp(1, 2 * REGISTER_VECTORS)
}

/// Iterations, one after the other, and the number of blocks. `each` is called with the index of
/// each vector of a thread. All vectors are read before one is written.
fn vectors(total: i64, each: i64) -> Result<i64, PlanError> {
    let most = i64::from(i32::MAX) - THREADS * each;
    if total > most {
        return Err(PlanError::TooLarge { what: "vectors", asked: total, limit: most });
    }
    blocks((total + THREADS * each - 1) / (THREADS * each))
}

/// `block * threads * each + iteration * threads + thread`.
fn number(k: &Build, each: i64, iteration: i64) -> Result<Expr, KernelError> {
    let block = times(&k.block_number(operation::Axis::X), THREADS * each)?;
    plus(&plus(&block, &Expr::from(iteration * THREADS))?, &k.thread()?)
}

/// A kernel whose threads copy `each` of `total` vectors, between tensors with these modes.
/// `places` gives the coordinates of a vector in the source and in the destination.
fn by_vectors(
    name: &str,
    sides: &Sides,
    [source, target]: [&[(i64, i64)]; 2],
    (total, each): (i64, i64),
    places: impl Fn(&Build, &Expr) -> Result<[Coord<Expr>; 2], KernelError>,
) -> Result<Kernel, PlanError> {
    let count = vectors(total, each)?;
    Ok(Kernel::build(name, |k| {
        let from = k.tensor_of(sides.source, "source", sides.declared(0, source), Role::Input)?;
        let to = k.tensor_of(sides.destination, "destination", sides.declared(1, target), Role::Output)?;
        k.threads(THREADS)?;
        k.grid(operation::Axis::X, count)?;
        let mut parts = Vec::new();
        for iteration in 0..each {
            let [source, target] = places(k, &number(k, each, iteration)?)?;
            parts.push((from.slice(source)?, to.slice(target)?));
        }
        let values = parts.iter().map(|(from, _)| from.load_predicated()).collect::<Result<Vec<_>, _>>()?;
        for ((_, to), values) in parts.iter().zip(values) {
            to.store_predicated(&sides.converted(values)?)?;
        }
        Ok(())
    })?)
}

/// Vectors of `vector` elements along the first axis.
pub(super) fn rows(sides: &Sides, vector: i64) -> Result<Kernel, PlanError> {
    let axes = &sides.axes;
    let mut extents = vec![axes[0].extent / vector];
    extents.extend(axes[1..].iter().map(|axis| axis.extent));
    let total = extents.iter().try_fold(1_i64, |total, extent| total.checked_mul(*extent)).unwrap_or(i64::MAX);
    let modes = |stride: &dyn Fn(usize) -> i64| {
        let mut modes = vec![(vector, stride(0)), (axes[0].extent / vector, stride(0) * vector)];
        modes.extend((1..axes.len()).map(|axis| (axes[axis].extent, stride(axis))));
        modes
    };
    let (from, to) = (modes(&|axis| axes[axis].source), modes(&|axis| axes[axis].destination));
    by_vectors("relayout_rows", sides, [&from, &to], (total, each(vector * sides.widest())), |k, number| {
        let digits = k.coordinate(number, &extents)?;
        let at = coordinate(std::iter::once(None).chain(digits.into_iter().map(Some)))?;
        Ok([at.clone(), at])
    })
}

/// Single elements, if the shapes have no common refinement: the index of an element gives its
/// offset on either side.
pub(super) fn indexed(sides: &Sides, from: &Layout, to: &Layout) -> Result<Kernel, PlanError> {
    let (source, mut target) = (leaves(from), leaves(to));
    target.sort_by_key(|mode| mode.1);
    let extents = |modes: &[(i64, i64, i64)]| modes.iter().map(|mode| mode.0).collect::<Vec<i64>>();
    let (inner, outer) = (extents(&source), extents(&target));
    let modes = [strided(&source), strided(&target)];
    let total = (from.size(), each(sides.widest()));
    by_vectors("relayout_indexed", sides, [&modes[0], &modes[1]], total, |k, number| {
        let digits = k.coordinate(number, &outer)?;
        let terms = digits.iter().cloned().zip(target.iter().map(|mode| mode.2)).collect();
        let source = k.coordinate(&Sum { base: 0, terms }.expr()?, &inner)?;
        Ok([coordinate(source.into_iter().map(Some))?, coordinate(digits.into_iter().map(Some))?])
    })
}

/// The extents and strides of modes.
fn strided(modes: &[(i64, i64, i64)]) -> Vec<(i64, i64)> {
    modes.iter().map(|mode| (mode.0, mode.1)).collect()
}

/// The modes of a layout: extent, stride, and stride of the index.
fn leaves(layout: &Layout) -> Vec<(i64, i64, i64)> {
    let mut step = 1;
    let mut found = Vec::new();
    for leaf in layout.leaves().iter().filter(|leaf| leaf.extent > 1) {
        found.push((leaf.extent, leaf.stride, step));
        step *= leaf.extent;
    }
    found
}

/// The offset of an index for a layout that is linear over bits: each bit of the offset is the
/// parity of some bits of the index. Adjacent bits that come from adjacent bits of the index are
/// moved together.
fn offset_over_bits(k: &Build, index: &Expr, columns: &[u64]) -> Result<Expr, KernelError> {
    let inputs = |output: u32| -> u64 {
        let chosen = columns.iter().enumerate().filter(|(_, column)| *column >> output & 1 == 1);
        chosen.fold(0, |inputs, (bit, _)| inputs | 1 << bit)
    };
    let outputs = 64 - columns.iter().fold(0, |all, column| all | column).leading_zeros();
    let (mut sum, mut at) = (Expr::from(0), 0);
    while at < outputs {
        let own = inputs(at);
        let first = own.trailing_zeros();
        let mut length = 1;
        let part = if own.count_ones() == 1 {
            while at + length < outputs && inputs(at + length) == own << length {
                length += 1;
            }
            k.remainder(&k.quotient(index, 1 << first)?, 1 << length)?
        } else {
            let mut ones = Expr::from(0);
            for bit in (0..64).filter(|bit| own >> bit & 1 == 1) {
                ones = plus(&ones, &k.remainder(&k.quotient(index, 1 << bit)?, 2)?)?;
            }
            k.remainder(&ones, 2)?
        };
        sum = plus(&sum, &times(&part, 1 << at)?)?;
        at += length;
    }
    Ok(sum)
}

/// The element at an index.
fn element_at<'k>(k: &'k Build, view: &View<'k>, place: &Place, index: &Expr) -> Result<View<'k>, KernelError> {
    if let Some(columns) = &place.bits {
        return view.at(&offset_over_bits(k, index, columns)?);
    }
    let extents: Vec<i64> = leaves(&place.layout).iter().map(|mode| mode.0).collect();
    let digits = if extents.is_empty() { Vec::new() } else { k.coordinate(index, &extents)? };
    view.slice(coordinate(digits.into_iter().map(Some))?)
}

/// Single elements, if a side is linear over bits.
pub(super) fn over_bits(sides: &Sides, from: &Place, to: &Place) -> Result<Kernel, PlanError> {
    let total = from.size();
    let each = each(sides.widest());
    let count = vectors(total, each)?;
    let places = match &to.bits {
        None => Vec::new(),
        Some(_) => to.modes_over_bits().ok_or_else(|| PlanError::Kind { layout: to.to_string() })?,
    };
    // Threads follow the order of the output, if it is strided.
    let mut order = if to.bits.is_some() { vec![(total, 1, 1)] } else { leaves(&to.layout) };
    order.sort_by_key(|mode| mode.1);
    let extents: Vec<i64> = order.iter().map(|mode| mode.0).collect();
    Ok(Kernel::build("relayout_over_bits", |k| {
        let side = |side: usize, place: &Place| {
            let (element, name, role) = match side {
                0 => (sides.source, "source", Role::Input),
                _ => (sides.destination, "destination", Role::Output),
            };
            let reach = if side == 0 { sides.reach.0 } else { sides.reach.1 };
            let Some(_) = &place.bits else {
                return k.tensor_of(element, name, sides.declared(side, &strided(&leaves(&place.layout))), role);
            };
            // The whole memory of an output is declared.
            let whole = match side {
                0 => LayoutArgument::Layout(Layout::strided(reach, 1)?),
                _ => sides.declared(1, &places)?,
            };
            k.tensor_of(element, name, whole, role)?.recast(element, Layout::strided(reach, 1))
        };
        let (source, target) = (side(0, from)?, side(1, to)?);
        k.threads(THREADS)?;
        k.grid(operation::Axis::X, count)?;
        let mut parts = Vec::new();
        for iteration in 0..each {
            let number = number(k, each, iteration)?;
            let exists = k.unless_less(&number, &Expr::from(total))?.unwrap_or_else(|| k.flag(true));
            let digits = k.coordinate(&k.remainder(&number, total)?, &extents)?;
            let terms = digits.into_iter().zip(order.iter().map(|mode| mode.2)).collect();
            let index = Sum { base: 0, terms }.expr()?;
            let value = element_at(k, &source, from, &index)?.load_where(exists)?;
            parts.push((element_at(k, &target, to, &index)?, exists, value));
        }
        for (place, exists, value) in parts {
            place.store_where(exists, &sides.converted(value)?)?;
        }
        Ok(())
    })?)
}
