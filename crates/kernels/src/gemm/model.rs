//! How long a plan takes, from sizes alone.
//!
//! Law: a block's part of the work takes as long as its products, or as the copies into the shared
//! memory of its processor, or as a step takes at least, whichever is longest, and what is at the
//! beginning and at the end of a tile; the work takes as many turns as blocks need for it, and about as
//! long as device memory where that is longer. The numbers were fitted to 411 plans of 18 products that
//! were timed on an H200; the plan that the model chose of each took 0.5 % longer than the best one of
//! them in the mean, 2 % at most.

use std::cmp::Ordering;

use tilewright_kernel::cost::Machine;

use super::plan::{Plan, Tile};
use super::problem::{LINE_BYTES, Problem};
use crate::product::count;

/// The clock while a processor multiplies, of that of the data sheet.
const LOADED: f64 = 0.86;
/// Bytes that copies bring into the shared memory of a processor in a cycle.
const FILL: f64 = 69.0;
/// How much longer copies take of which the rows begin in the middle of a line.
const MISALIGNED: f64 = 1.75;
/// The least cycles of a step along K.
const STEP: f64 = 120.0;
/// Cycles of a tile in which nothing is multiplied, and for each 64 sums of it.
const TILE: f64 = 130.0;
const SUMS: f64 = 3.4;
/// How much longer tiles take that read their factors more often than the widest.
const NARROW: f64 = 1.07;
/// The bandwidth that is reached, of that of the data sheet, and how much of it idle processors cost.
const REACHED: f64 = 0.79;
const IDLE: f64 = 0.03;
/// Seconds of a launch, and of a second kernel.
const LAUNCH: f64 = 1.4e-6;
const SECOND: f64 = 0.9e-6;
/// The bandwidth at which sums of shared tiles are written and read again, of the data sheet's.
const SUMS_REACHED: f64 = 0.87;

/// Cycles of a step along K of the blocks of one processor.
fn step(plan: &Plan, problem: &Problem, together: f64) -> f64 {
    // An instruction of 64 rows reads its factors from shared memory, 128 bytes in a cycle.
    let columns = plan.columns as f64;
    let instruction = (columns / 2.0).max(columns / 4.0 + 16.0);
    let products = (plan.rows / 64 * (LINE_BYTES / 32)) as f64 * instruction;
    let bytes = (plan.rows + plan.columns) * LINE_BYTES;
    let aligned = problem.begins_at_lines();
    let fill = bytes as f64 / FILL * if aligned { 1.0 } else { MISALIGNED };
    (products * together).max(fill * together).max(STEP)
}

/// Seconds of a product.
pub(crate) fn seconds(plan: &Plan, problem: &Problem, machine: &Machine) -> f64 {
    let [m, n, k] = plan.extents(problem);
    let processors = f64::from(machine.multiprocessors);
    let bands = count(m, plan.rows * plan.group).saturating_mul(plan.group) as f64;
    let units = bands * count(n, plan.columns) as f64 * problem.batch() as f64 * plan.splits as f64;
    let turns = (units / plan.blocks as f64).ceil();
    let steps = count(count(k, problem.depth()), plan.splits) as f64;
    let together = (units / processors).ceil().min(plan.resident as f64);
    let sums = (plan.rows * plan.columns / 64) as f64;
    let tile = TILE + SUMS * sums * plan.panels(problem);
    let narrow = if plan.rows * plan.columns < 128 * 256 { NARROW } else { 1.0 };
    let own = (steps * step(plan, problem, together) + tile * together) * narrow;
    let work = turns * own / (machine.clock * LOADED);
    let idle = 1.0 + IDLE * (1.0 - plan.blocks as f64 / processors).max(0.0);
    let memory = problem.bytes() as f64 / (machine.bandwidth * REACHED) * idle;
    // Neither hides behind the other altogether where both take as long.
    let both = (work.powi(6) + memory.powi(6)).powf(1.0 / 6.0);
    let second = match plan.splits {
        1 => 0.0,
        _ => SECOND + 2.0 * plan.workspace(problem) as f64 / (machine.bandwidth * SUMS_REACHED),
    };
    LAUNCH + both + second
}

/// The plan of which the time is least, among those that are admitted.
pub(super) fn fastest(problem: &Problem, machine: &Machine, admitted: impl Fn(&Plan) -> bool) -> Plan {
    let first = Tile { swapped: false, rows: 64, columns: 64, groups: 1, splits: 1, cluster: 1, resident: 1 };
    let plans = plans(problem, machine).into_iter().filter(|(_, plan)| admitted(plan));
    let least = plans.min_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    least.map_or_else(|| Plan::tiled(problem, machine, first), |(_, plan)| plan)
}

/// The plans that can be carried out, each with its seconds.
pub(super) fn plans(problem: &Problem, machine: &Machine) -> Vec<(f64, Plan)> {
    let mut plans = Vec::new();
    for swapped in [false, true] {
        let [m, n, k] = problem.sizes();
        let [m, n] = if swapped { [n, m] } else { [m, n] };
        for (rows, groups) in [(128, 2), (64, 1), (256, 2), (128, 1)] {
            for columns in widths(n) {
                for resident in 1..=3 {
                    let tile = |splits| Tile { swapped, rows, columns, groups, splits, cluster: 1, resident };
                    let tiles = count(m, rows).saturating_mul(count(n, columns)).saturating_mul(problem.batch());
                    let slots = i64::from(machine.multiprocessors) * resident;
                    for splits in shares(tiles, slots, count(k, problem.depth())) {
                        let plan = Plan::tiled(problem, machine, tile(splits));
                        if plan.refusal(problem).is_none() {
                            plans.push((seconds(&plan, problem, machine), plan));
                        }
                    }
                }
            }
        }
    }
    plans
}

/// Columns of tiles that are looked at: powers of two and what lies between, and what takes all
/// columns of a narrow matrix.
fn widths(columns: i64) -> Vec<i64> {
    let mut widths: Vec<i64> = [256, 192, 128, 96, 64, 32, 16, 8].into_iter().collect();
    for parts in 1..=4 {
        let own = count(count(columns, parts), 8) * 8;
        if own <= 256 && !widths.contains(&own) {
            widths.push(own);
        }
    }
    widths
}

/// How many blocks may share a tile: one, and as many as make one or two rounds of all blocks.
fn shares(tiles: i64, slots: i64, steps: i64) -> Vec<i64> {
    let mut shares = vec![1];
    for rounds in 1..=2 {
        for splits in [slots * rounds / tiles.max(1), slots * rounds / tiles.max(1) / 8 * 8] {
            if splits > 1 && splits <= steps && splits <= 64 && !shares.contains(&splits) {
                shares.push(splits);
            }
        }
    }
    if tiles < slots {
        shares.extend(
            [2, 4, 16].into_iter().filter(|splits| *splits <= steps && !shares.contains(splits)).collect::<Vec<_>>(),
        );
    }
    shares
}
