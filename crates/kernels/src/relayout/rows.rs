//! A vector a thread, threads in the order of the output.
//!
//! Law: thread `n` moves vector `n` of the destination, counted in the order of its addresses, and
//! finds where it is in the source by dividing `n` by the extents. That is the fastest where one
//! axis is contiguous on both sides, and long: neighbours then read neighbours. A block moves about
//! [`BLOCK`] bytes, however narrow its vectors are: a thread has several of them then.
//!
//! [`indexed`] is the same for shapes that are not cut at the same places: what a thread divides is
//! the index of the element.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Kernel, KernelError, View};
use tilewright_layout::Layout;
use tilewright_layout::symbolic::Expr;

use super::sum::{Sum, plus, times};
use super::{Sides, blocks, coordinate};
use crate::error::PlanError;

/// Threads of a block.
const THREADS: i64 = 256;
/// Bytes of the wider side that a block moves.
const BLOCK: i64 = 4096;
/// The most vectors of a thread.
const MOST: i64 = 8;

/// Vectors of a thread, where each has so many bytes.
pub(super) fn each(bytes: i64) -> i64 {
    (BLOCK / THREADS / bytes).clamp(1, MOST)
}

/// Turns, one after the other, and how many blocks there are: what is done with the numbers of the
/// vectors of a thread. All are read before one is written.
fn vectors(total: i64, each: i64) -> Result<i64, PlanError> {
    let most = i64::from(i32::MAX) - THREADS * each;
    if total > most {
        return Err(PlanError::TooLarge { what: "vectors", asked: total, limit: most });
    }
    blocks((total + THREADS * each - 1) / (THREADS * each))
}

/// `block * threads * each + turn * threads + thread`.
fn number(k: &Build, each: i64, turn: i64) -> Result<Expr, KernelError> {
    let block = times(&k.block_number(operation::Axis::X), THREADS * each)?;
    plus(&plus(&block, &Expr::from(turn * THREADS))?, &k.thread()?)
}

/// Moves parts of the source to those of the destination.
fn moved<'k>(sides: &Sides, parts: Vec<(View<'k>, View<'k>)>) -> Result<(), KernelError> {
    let mut values = Vec::new();
    for (from, _) in &parts {
        values.push(from.load_predicated()?);
    }
    for ((_, to), values) in parts.iter().zip(values) {
        let same = sides.source == sides.destination;
        let values = if same { values } else { values.map(|x| Ok(x.to(sides.destination)))? };
        to.store_predicated(&values)?;
    }
    Ok(())
}

/// Vectors of `vector` elements along the first axis.
pub(super) fn rows(sides: &Sides, vector: i64) -> Result<Kernel, PlanError> {
    let axes = &sides.axes;
    let mut extents = vec![axes[0].extent / vector];
    extents.extend(axes[1..].iter().map(|axis| axis.extent));
    let total = extents.iter().try_fold(1_i64, |total, extent| total.checked_mul(*extent)).unwrap_or(i64::MAX);
    let each = each(vector * i64::from(sides.source.bytes().max(sides.destination.bytes())));
    let count = vectors(total, each)?;
    let modes = |stride: &dyn Fn(usize) -> i64| {
        let mut modes = vec![(vector, stride(0)), (axes[0].extent / vector, stride(0) * vector)];
        modes.extend((1..axes.len()).map(|axis| (axes[axis].extent, stride(axis))));
        modes
    };
    let (from, to) = (modes(&|axis| axes[axis].source), modes(&|axis| axes[axis].destination));
    Ok(Kernel::build("relayout_rows", |k| {
        let from = k.tensor_of(sides.source, "source", &sides.text(0, &from), Role::Input)?;
        let to = k.tensor_of(sides.destination, "destination", &sides.text(1, &to), Role::Output)?;
        k.threads(THREADS)?;
        k.grid(operation::Axis::X, &count.to_string())?;
        let mut parts = Vec::new();
        for turn in 0..each {
            let digits = k.coordinate(&number(k, each, turn)?, &extents)?;
            let at = coordinate(std::iter::once(None).chain(digits.into_iter().map(Some)))?;
            parts.push((from.slice(at.clone())?, to.slice(at)?));
        }
        moved(sides, parts)
    })?)
}

/// Single elements, where neither shape is a refinement of the other: the index of an element says
/// where it is on either side.
pub(super) fn indexed(sides: &Sides, from: &Layout, to: &Layout) -> Result<Kernel, PlanError> {
    let leaves = |layout: &Layout| -> Vec<(i64, i64)> {
        let leaves = layout.leaves().iter().filter(|leaf| leaf.extent > 1);
        leaves.map(|leaf| (leaf.extent, leaf.stride)).collect()
    };
    let (source, mut target) = (leaves(from), Vec::new());
    // How far the index goes along each mode of the destination.
    let mut step = 1;
    for (extent, stride) in leaves(to) {
        target.push((extent, stride, step));
        step *= extent;
    }
    target.sort_by_key(|mode| mode.1);
    let each = each(i64::from(sides.source.bytes().max(sides.destination.bytes())));
    let count = vectors(from.size(), each)?;
    let extents: Vec<i64> = target.iter().map(|mode| mode.0).collect();
    let inner: Vec<i64> = source.iter().map(|mode| mode.0).collect();
    let modes: Vec<(i64, i64)> = target.iter().map(|mode| (mode.0, mode.1)).collect();
    Ok(Kernel::build("relayout_indexed", |k| {
        let from = k.tensor_of(sides.source, "source", &sides.text(0, &source), Role::Input)?;
        let to = k.tensor_of(sides.destination, "destination", &sides.text(1, &modes), Role::Output)?;
        k.threads(THREADS)?;
        k.grid(operation::Axis::X, &count.to_string())?;
        let mut parts = Vec::new();
        for turn in 0..each {
            let digits = k.coordinate(&number(k, each, turn)?, &extents)?;
            let terms = digits.iter().cloned().zip(target.iter().map(|mode| mode.2)).collect();
            let index = Sum { base: 0, terms }.expr()?;
            let source = k.coordinate(&index, &inner)?;
            parts.push((
                from.slice(coordinate(source.into_iter().map(Some))?)?,
                to.slice(coordinate(digits.into_iter().map(Some))?)?,
            ));
        }
        moved(sides, parts)
    })?)
}
