//! The program that adds the parts of a derivative.
//!
//! Law: each element is the sum of its parts. The order of the additions depends only on the number
//! of parts.

use tilewright_kernel::machine::Machine;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, LayoutError};

use super::destination::Parts;
use super::wide;
use crate::build::{Build, TensorId, Value};
use crate::error::{Reason, TileError};
use crate::program::{Axis, Index, Program, Reduction, padded};

/// The least number of blocks of a derivative for each multiprocessor.
const BLOCKS_OF_MULTIPROCESSOR: i64 = 2;
/// The number of columns of the derivative that a block computes, at least and at most: from a
/// sector of 32 bytes to a line of 512 bytes of f32.
const COLUMNS: [i64; 2] = [8, 128];
/// The elements of parts that a block loads at once: 32 KiB in flight.
const ELEMENTS_AT_ONCE: i64 = 8192;

/// Tile sizes of the program that adds the parts of a derivative. Blocks of another program have
/// written the parts.
///
/// ```
/// use tilewright_kernel::machine::Machine;
/// use tilewright_tile::TotalTiles;
///
/// let tiles = TotalTiles::new(8192, Machine::named("H200").as_ref());
/// assert_eq!(tiles, TotalTiles { columns: 32, elements_at_once: 8192 });
/// // With fewer multiprocessors there are fewer blocks, and each has more columns.
/// assert_eq!(TotalTiles::new(8192, Machine::named("Orin").as_ref()).columns, 128);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TotalTiles {
    /// The most columns of the derivative that a block computes: a power of two.
    pub columns: i64,
    /// The number of elements of parts, in f32, that a block loads at once.
    pub elements_at_once: i64,
}

impl TotalTiles {
    /// Tile sizes for a derivative with this many elements on a machine. Without a machine, those
    /// for an H200.
    pub fn new(elements: i64, machine: Option<&Machine>) -> TotalTiles {
        let blocks = BLOCKS_OF_MULTIPROCESSOR * multiprocessors(machine);
        let columns = padded(elements / blocks).clamp(COLUMNS[0], COLUMNS[1]);
        TotalTiles { columns, elements_at_once: ELEMENTS_AT_ONCE }
    }
}

/// The multiprocessors of a machine, at least 1. Without a machine, those of an H200.
pub fn multiprocessors(machine: Option<&Machine>) -> i64 {
    let own = machine.map(|machine| machine.multiprocessors);
    let own = own.or_else(|| Machine::named("H200").map(|machine| machine.multiprocessors));
    own.map_or(1, i64::from).max(1)
}

pub(super) fn total(parts: &Parts) -> Result<Program, TileError> {
    let (name, element, layout) = &parts.result;
    let real: Vec<usize> = (0..parts.extents.len()).filter(|mode| parts.extents[*mode].known() != Some(1)).collect();
    if real.len() > Axis::ALL.len() {
        let because = "the grid that adds its parts would have more than three axes".to_string();
        return Err(Reason::Gradient { of: name.clone(), because }.at("input", parts.place));
    }
    // The last mode is cut into tiles. The other modes have tiles of extent 1.
    let known = |mode: &usize| parts.extents[*mode].known().unwrap_or(1).max(1);
    let elements = real.iter().map(known).fold(1, i64::saturating_mul);
    let TotalTiles { columns, .. } = TotalTiles::new(elements, None);
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

/// A sum, plus all parts along the axes that remain.
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

/// The number of tiles of an extent.
fn tiles(extent: &Expr, tile: i64) -> Result<Expr, TileError> {
    extent.divide_up(&Expr::from(tile)).ok_or_else(|| LayoutError::Expression { op: "grid" }.into())
}
