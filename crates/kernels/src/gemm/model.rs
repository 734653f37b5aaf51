//! How long a plan takes, from sizes alone.
//!
//! Law: the time is that of the blocks that run together, the slowest last: turns of a block, each as
//! long as its products take, or the copies into shared memory, whichever is longer, and what is at the
//! beginning and at the end of a tile; and never less than device memory takes for each element once.
//! The numbers are cycles of a processor, measured on an H200.

use tilewright_kernel::cost::Machine;

use super::plan::{Plan, Tile};
use super::problem::{LINE_BYTES, Problem};
use crate::product::count;

/// Bytes that copies bring into the shared memory of a processor in a cycle.
const FILL: i64 = 64;
/// Cycles at the beginning and at the end of a tile in which nothing is multiplied, about, and for
/// each column of 64 rows.
const TILE: i64 = 1000;
const COLUMN: i64 = 3;
/// Cycles until the first stage is there, and from the last store to the end.
const LAUNCH: i64 = 3000;
/// Cycles of a second kernel that adds the sums of blocks that share a tile.
const SECOND: i64 = 4000;
/// Share of the bandwidth of the data sheet that copies reach, in percent.
const REACHED: f64 = 0.9;

/// Cycles of a step along K of one block.
fn step(plan: &Plan, problem: &Problem) -> i64 {
    let row_blocks = plan.rows / 64;
    // An instruction of 64 rows reads its factors from shared memory, 128 bytes in a cycle.
    let instruction = (plan.columns / 2).max(plan.columns / 4 + 16);
    // Each takes 32 bytes along K.
    let products = row_blocks * instruction * (LINE_BYTES / 32);
    let fill = (plan.rows + plan.columns) * LINE_BYTES / FILL;
    // Rows that begin in the middle of a line take nearly twice as long.
    let fill = if problem.begins_at_lines() { fill } else { fill * 7 / 4 };
    products.max(fill)
}

/// Cycles of a product.
pub(crate) fn cycles(plan: &Plan, problem: &Problem, machine: &Machine) -> i64 {
    let [m, n, k] = plan.extents(problem);
    let bands = count(m, plan.rows * plan.group).saturating_mul(plan.group);
    let units =
        bands.saturating_mul(count(n, plan.columns)).saturating_mul(problem.batch()).saturating_mul(plan.splits);
    let slots = i64::from(machine.multiprocessors) * plan.resident;
    let turns = count(units, slots);
    let steps = count(count(k, problem.depth()), plan.splits);
    // Blocks on one processor take turns at its units; there may be fewer than fit.
    let together = count(units.min(slots), i64::from(machine.multiprocessors)).min(plan.resident);
    let tile = TILE + COLUMN * plan.columns * (plan.rows / 64);
    let own = steps.saturating_mul(step(plan, problem)).saturating_mul(together).saturating_add(tile);
    // The widest tile has the fewest reads of factors in a product.
    let own = if plan.rows * plan.columns >= 128 * 256 { own } else { own + own / 33 };
    let memory = |bytes: i64| (bytes as f64 / (machine.bandwidth * REACHED) * machine.clock) as i64;
    let work = turns.saturating_mul(own).max(memory(problem.bytes()));
    // Sums are written and read, mostly in the cache.
    let second = if plan.splits > 1 { SECOND.saturating_add(memory(plan.workspace(problem))) } else { 0 };
    work.saturating_add(LAUNCH).saturating_add(second)
}

/// The plan of which the time is least, among those that are admitted.
pub(super) fn fastest(problem: &Problem, machine: &Machine, admitted: impl Fn(&Plan) -> bool) -> Plan {
    let plan = |tile| Plan::tiled(problem, machine, tile);
    let mut best = plan(Tile { swapped: false, rows: 128, columns: 64, groups: 2, splits: 1, resident: 1 });
    let mut least = cycles(&best, problem, machine);
    for tile in tiles(problem) {
        let plan = plan(tile);
        if plan.refusal(problem).is_some() || !admitted(&plan) {
            continue;
        }
        let time = cycles(&plan, problem, machine);
        if time < least {
            (best, least) = (plan, time);
        }
    }
    best
}

/// The tiles that are looked at, the preferred ones first.
fn tiles(_problem: &Problem) -> impl Iterator<Item = Tile> {
    [256, 192, 128, 64].into_iter().map(|columns| Tile {
        swapped: false,
        rows: 128,
        columns,
        groups: 2,
        splits: 1,
        resident: 1,
    })
}
