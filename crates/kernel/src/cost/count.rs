//! Counts what a launch executes, by walking through its blocks.
//!
//! Law: if all blocks were walked, the counts are those of the launch. Otherwise the grid is
//! divided into its last blocks along each axis and the other blocks. Some blocks of each part are
//! walked, and the counts of a part are extrapolated from these. Iterations of long loops are then
//! extrapolated, too (`walk.rs`).

use super::Uncounted;
use super::walk::{BlockSums, Taken, Walk};
use crate::interpret::code::Code;
use crate::launch::LaunchNumbers;
use crate::program::Program;

/// The approximate number of warp nodes that are walked, unless one block has more.
const STEPS: u64 = 1 << 19;

/// The most nodes of a block that are walked.
const BLOCK_STEPS: u64 = 1 << 22;

/// The most blocks of a part of the grid that are walked.
const SAMPLE: u64 = 48;

/// The counts of a launch.
pub(super) struct Total {
    pub(super) sums: BlockSums,
    /// The number of blocks.
    pub(super) blocks: u64,
    /// The number of blocks that were walked.
    pub(super) walked: u64,
    /// The most bytes that the warps of a walked block have in flight; None if that is unknown.
    pub(super) under_way: Option<u64>,
    /// For each tensor, the sectors that accesses with known addresses touch, each counted once.
    /// None if not all blocks were walked.
    pub(super) touched: Option<Vec<u64>>,
}

/// A part of the grid: the first block and the number of blocks along each axis.
type GridPart = [(u32, u32); 3];

fn size(part: &GridPart) -> u64 {
    part.iter().map(|(_, count)| u64::from(*count)).product()
}

/// The block of a part with an index.
fn block(part: &GridPart, number: u64) -> [u32; 3] {
    let mut rest = number;
    part.map(|(first, count)| {
        let digit = rest % u64::from(count);
        rest /= u64::from(count);
        first + digit as u32
    })
}

/// The inner blocks and the last ones, for each axis.
fn parts(grid: [u32; 3]) -> Vec<GridPart> {
    let mut parts: Vec<GridPart> = vec![[(0, 1); 3]];
    for (axis, count) in grid.into_iter().enumerate() {
        let ranges = if count > 1 { vec![(0, count - 1), (count - 1, 1)] } else { vec![(0, count)] };
        parts = parts
            .into_iter()
            .flat_map(|part| {
                ranges.iter().map(move |range| {
                    let mut part = part;
                    part[axis] = *range;
                    part
                })
            })
            .collect();
    }
    parts
}

pub(super) fn count(program: &Program, code: &Code<'_>, launch: &LaunchNumbers) -> Result<Total, Uncounted> {
    let blocks: u64 = launch.grid.iter().map(|count| u64::from(*count)).product();
    let walk = |limit: u64| Walk::new(program, code, launch.grid, &launch.scalars, limit);
    if blocks == 0 {
        return Ok(Total { sums: walk(0).sums, blocks, walked: 0, under_way: Some(0), touched: None });
    }
    let mut first = walk(BLOCK_STEPS).multiplying();
    first.block([0; 3])?;
    let steps = first.sums.steps.max(1);
    let whole = [(0, launch.grid[0]), (0, launch.grid[1]), (0, launch.grid[2])];
    if blocks.saturating_mul(steps) <= STEPS {
        let mut all = walk(2 * STEPS).touching();
        for number in 0..blocks {
            all.block(block(&whole, number))?;
        }
        let (under_way, touched) = (all.under_way(), all.touched());
        return Ok(Total { sums: all.sums, blocks, walked: blocks, under_way, touched });
    }
    let parts = parts(launch.grid);
    let each = (STEPS / steps / parts.len() as u64).clamp(1, SAMPLE);
    let mut total = Total { sums: walk(0).sums, blocks, walked: 0, under_way: first.under_way(), touched: None };
    for part in &parts {
        let size = size(part);
        let taken = each.min(size);
        let mut own = walk(taken.saturating_mul(BLOCK_STEPS)).multiplying();
        for iteration in 0..taken {
            // Evenly spread with random offsets, so that the sample does not resonate with a period
            // of the grid.
            let apart = size / taken;
            let moved = (iteration.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % apart.max(1);
            own.block(block(part, iteration * size / taken + moved))?;
        }
        total.walked += taken;
        total.under_way = total.under_way.zip(own.under_way()).map(|(a, b)| a.max(b));
        add(&mut total.sums, &own.sums, size, taken);
    }
    Ok(total)
}

/// Adds the counts of a part, of which `taken` blocks of `size` were walked.
fn add(total: &mut BlockSums, part: &BlockSums, size: u64, taken: u64) {
    let scaled = |sum: u64| {
        let whole = u128::from(sum) * u128::from(size) / u128::from(taken);
        u64::try_from(whole).unwrap_or(u64::MAX)
    };
    total.steps = total.steps.saturating_add(scaled(part.steps));
    total.both_sides |= part.both_sides;
    total.multiplied |= part.multiplied;
    let executed = total.executed.iter_mut().zip(&part.executed);
    for (total, part) in executed.chain(total.surely.iter_mut().zip(&part.surely)) {
        *total = total.saturating_add(scaled(*part));
    }
    for (total, part) in total.taken.iter_mut().zip(&part.taken) {
        let Taken { of, at_most } = total;
        *at_most |= part.at_most;
        for (total, part) in of.iter_mut().zip(&part.of) {
            for (total, part) in total.fields().into_iter().zip(part.clone().fields()) {
                *total = total.saturating_add(scaled(*part));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{block, parts, size};

    #[test]
    fn parts_are_the_grid() {
        for grid in [[1, 1, 1], [7, 1, 1], [4, 3, 1], [2, 3, 5], [1, 6, 2]] {
            let mut found: Vec<[u32; 3]> = Vec::new();
            for part in parts(grid) {
                found.extend((0..size(&part)).map(|number| block(&part, number)));
            }
            found.sort_unstable();
            let mut all: Vec<[u32; 3]> = Vec::new();
            for x in 0..grid[0] {
                for y in 0..grid[1] {
                    all.extend((0..grid[2]).map(|z| [x, y, z]));
                }
            }
            assert_eq!(found, all);
        }
    }
}
