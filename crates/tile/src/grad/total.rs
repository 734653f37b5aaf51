//! The program that adds the parts of a derivative.
//!
//! Law: each element is the sum of its parts, added in an order that depends on their number alone.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, LayoutError};

use super::destination::Parts;
use super::wide;
use crate::build::{Build, TensorId, Value};
use crate::error::{Reason, TileError};
use crate::program::{Axis, Index, Program, Reduction, padded};

/// How many blocks a derivative shall have at least: some for each multiprocessor.
const BLOCKS: i64 = 256;
/// The columns of the derivative that a block computes: a sector to a line of 512 bytes of f32.
const COLUMNS: [i64; 2] = [8, 128];
/// The elements of parts that a block loads at once: 32 KiB in flight.
const ELEMENTS_AT_ONCE: i64 = 8192;

pub(super) fn total(parts: &Parts) -> Result<Program, TileError> {
    let (name, element, layout) = &parts.result;
    let real: Vec<usize> = (0..parts.extents.len()).filter(|mode| parts.extents[*mode].known() != Some(1)).collect();
    if real.len() > Axis::ALL.len() {
        let because = "the grid that adds its parts would have more than three axes".to_string();
        return Err(Reason::Gradient { of: name.clone(), because }.at("input", parts.place));
    }
    // The last mode is taken in tiles, the others one by one.
    let known = |mode: &usize| parts.extents[*mode].known().unwrap_or(1).max(1);
    let elements = real.iter().map(known).fold(1, i64::saturating_mul);
    let columns = padded(elements / BLOCKS).clamp(COLUMNS[0], COLUMNS[1]);
    let tile = |mode: usize| match (real.last() == Some(&mode), parts.extents[mode].known()) {
        (false, _) => 1,
        (true, Some(known)) => padded(known).min(columns),
        (true, None) => columns,
    };
    let shape: Vec<i64> = (0..parts.extents.len()).map(tile).collect();
    Program::build(&format!("total_{name}"), |t| {
        let x = t.input(wide(*element), &parts.name, &parts.layout)?;
        let y = t.output(*element, name, layout)?;
        let mut grid = Vec::new();
        let mut at = vec![Index::from(0); shape.len()];
        for (axis, mode) in Axis::ALL.into_iter().zip(real.iter().rev()) {
            grid.push(tiles(&parts.extents[*mode], shape[*mode])?);
            at[*mode] = Index::block(axis);
        }
        t.grid(grid)?;
        let zero = t.full(&[vec![1; parts.counts.len()], shape.clone()].concat(), 0.0).to(wide(*element));
        let sum = added(t, x, (&parts.counts, &shape), (&[], &at), zero)?;
        t.store(y, &at, sum.reshape(&shape).to(*element));
        Ok(())
    })
}

/// A sum, and all parts along the axes that are left.
fn added<'t>(
    t: &'t Build,
    x: TensorId,
    (counts, shape): (&[String], &[i64]),
    (outer, at): (&[Index], &[Index]),
    sum: Value<'t>,
) -> Result<Value<'t>, TileError> {
    let Some((count, rest)) = counts.split_first() else { return Ok(sum) };
    let together = if rest.is_empty() { ELEMENTS_AT_ONCE / shape.iter().product::<i64>() } else { 1 };
    let iterations = tiles(&count.parse()?, together)?.to_string();
    let sums = t.range(iterations.as_str(), &[sum], |iteration, carried| {
        let outer = [outer, &[iteration]].concat();
        if !rest.is_empty() {
            return Ok(vec![added(t, x, (rest, shape), (&outer, at), carried[0])?]);
        }
        let tile = [vec![1; outer.len() - 1], vec![together], shape.to_vec()].concat();
        let own = t.load(x, &tile, &[&outer, at].concat());
        Ok(vec![carried[0] + own.reduce(Reduction::Sum, &[outer.len() - 1])])
    })?;
    Ok(sums[0])
}

/// How many tiles of an extent there are.
fn tiles(extent: &Expr, tile: i64) -> Result<Expr, TileError> {
    extent.divide_up(&Expr::from(tile)).ok_or_else(|| LayoutError::Expression { op: "grid" }.into())
}
