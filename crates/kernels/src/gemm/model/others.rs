//! How long a plan takes of products that are more than bare ones of types of 16 bits: with
//! functions of the sums, pairs, by-products, scales, batches, groups, lists, folded modes and
//! other types.
//!
//! Law: a block's part of the work takes as long as its products, or as the copies into the shared
//! memory of its processor, or as a step takes at least, whichever is longest, and what is at the
//! beginning and at the end of a tile; the work takes as many turns as blocks need for it, and
//! about as long as device memory where that is longer. The numbers were fitted to the times of
//! some hundred plans of 33 products on an H200, those of long work whose rows begin within lines
//! to 180 plans of 36 more.

use tilewright_kernel::cost::Machine;

use super::{IDLE, PLAIN_PART, SECOND, TWO_STAGES, idle, products, together_of};
use crate::gemm::plan::{CACHED, FEW_PARTS, Plan, SHORT};
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::product::count;

/// The clock while a processor multiplies, of that of the data sheet.
const LOADED: f64 = 0.86;
/// Bytes that copies bring into the shared memory of a processor in a cycle.
const FILL: f64 = 69.0;
/// The same where the work is long: power lowers the clock of the processors then, not that of the
/// cache.
const FILL_LONG: f64 = 73.0;
/// Bytes that copies of other blocks of the cluster may bring besides, and cycles until both are
/// ready.
const RECEIVED: f64 = 154.0;
const TOGETHER: f64 = 60.0;
/// How much longer copies take of which the rows begin in the middle of a line, in short work and
/// in long.
const MISALIGNED: f64 = 2.05;
const MISALIGNED_LONG: f64 = 1.75;
/// Cycles that the copy engine takes for a line that lies outside of a factor, more than for one
/// inside.
const PAST: f64 = 4.5;
/// How much of that is seen in the first stages of a tile, which wait for memory.
const FIRST: f64 = 0.5;
/// Instructions for each sum that is promoted, cycles of the load of a scale by four warps, and how
/// much of both is to be seen where others multiply meanwhile.
const PROMOTED: f64 = 1.0;
const SCALE: f64 = 8.0;
const OVERLAID: f64 = 0.5;
/// The least cycles of a step along K.
const STEP: f64 = 120.0;
/// Cycles of a tile in which nothing is multiplied, and for each 64 sums of it.
const TILE: f64 = 130.0;
const SUMS: f64 = 3.4;
/// Cycles for each 64 sums of a tile that is shared, which are written from registers.
const SHARED: f64 = 6.0;
/// How much longer tiles take that read their factors more often than those of 128 x 256, the
/// widest, and those between; the first also where long work has rows that begin within lines.
const NARROW: f64 = 1.07;
const NARROW_WITHIN: f64 = 1.03;
/// How much longer the latter takes where blocks share nothing in clusters.
const ALONE: f64 = 1.03;
const WIDE: f64 = 0.985;
const BETWEEN: f64 = 1.02;
/// The same of groups that take tiles in turn, and of three groups.
const IN_TURN: f64 = 1.03;
const THREE: f64 = 1.01;
/// Cycles until the other group multiplies, where groups take tiles in turn, and of a part or a
/// panel of a tile that one of them stores.
const HANDED: f64 = 900.0;
const PART: f64 = 900.0;
/// How much longer a tile takes that is stored in parts, and a cluster that has few stages.
const PARTS: f64 = 1.4;
const WAITING: f64 = 1.08;
/// Cycles of each part beyond a few.
const MORE_PARTS: f64 = 210.0;
/// The bandwidth that is reached, of that of the data sheet.
const REACHED: f64 = 0.79;
/// Share of the bytes that a second tile of columns reads from memory again.
const AGAIN: f64 = 0.05;
/// Bytes of D that the cache takes at once.
const AT_ONCE: i64 = 4 << 20;
/// The bandwidth at which the rest of the last tiles is written, of the data sheet's.
const LAST_REACHED: f64 = 0.6;
/// Seconds of a launch, and of one that overlaps the one before.
const LAUNCH: f64 = 1.4e-6;
const OVERLAPPED: f64 = 0.3e-6;
/// How sharply the longer of two things hides the shorter.
const SHARP: i32 = 6;
/// The bandwidth at which sums of shared tiles are written and read again, of the data sheet's.
const SUMS_REACHED: f64 = 0.5;

/// Whether work is long and has rows that begin in the middle of a line. With functions of the sums
/// other plans were faster than what was fitted without them.
fn is_long_within(problem: &Problem) -> bool {
    !problem.begins_at_lines() && problem.operations() >= SHORT && problem.function().is_none()
}

/// Cycles of a step along K of the blocks of one processor.
fn step(plan: &Plan, problem: &Problem, together: f64) -> f64 {
    let products = products(plan, if problem.pairs().is_none() { plan.halves(problem) } else { 1 });
    let misaligned = match problem.begins_at_lines() {
        true => 1.0,
        false if is_long_within(problem) => MISALIGNED_LONG,
        false => MISALIGNED,
    };
    let lines = |extent: f64| extent * LINE_BYTES as f64 * misaligned;
    let (rows, columns, whole) = (plan.rows as f64, plan.columns as f64, (plan.rows + plan.columns) as f64);
    // The blocks of a cluster ask for a part each, and get all.
    let shared = if plan.side_by_side() { rows } else { columns };
    let rate = if problem.operations() < SHORT { FILL } else { FILL_LONG };
    let fill = match plan.cluster {
        1 => lines(whole) / rate,
        _ => (lines(whole - shared / 2.0) / rate).max(lines(whole) / RECEIVED) + TOGETHER,
    };
    let multiplied = (products + promotion(plan, problem)) * together;
    let of = |past: i64| {
        let fill = (fill + PAST * past as f64) * together;
        // Products and copies that take as long wait for each other, where those of a stage take
        // now longer and now less long.
        let both = if is_long_within(problem) { together_of(multiplied, fill, SHARP) } else { multiplied.max(fill) };
        both.max(STEP)
    };
    // Of the tiles of the slowest block one at least is at an edge. Where tails are loaded alone,
    // its first stages are not; tiles of folded modes are boxes, which are loaded as wholes.
    let plain = problem.pairs().is_none() && problem.by_products().next().is_none();
    let alone = plain && problem.fold().is_none();
    let [m, n, k] = plan.extents(problem);
    if plan.splits > 1 || !problem.begins_at_lines() {
        return of(0);
    }
    let first = plan.stages as f64 / count(k, problem.depth()) as f64;
    let seen = if alone && first < 1.0 { FIRST * first } else { 1.0 };
    let edge = |extent: i64, of_tile: i64| {
        let tiles = count(extent, of_tile);
        let share = (1.0 / tiles as f64).max(1.0 / plan.turns(problem) as f64);
        (of(tiles * of_tile - count(extent, 8) * 8) - of(0)) * share * seen
    };
    of(0) + edge(m, plan.rows) + edge(n, plan.columns)
}

/// Cycles of a step in which sums are promoted and nothing is multiplied.
fn promotion(plan: &Plan, problem: &Problem) -> f64 {
    if !problem.is_promoted() {
        return 0.0;
    }
    // Four parts of a processor issue an instruction for 32 sums each in a cycle.
    let issued = PROMOTED * (plan.rows * plan.columns) as f64 / 128.0;
    let loads = plan.scale_loads(problem) as f64 * SCALE * plan.groups as f64;
    // Others multiply meanwhile, where there are others.
    let alone = if plan.groups * plan.resident > 1 { OVERLAID } else { 1.0 };
    (issued + loads) * alone
}

/// Cycles of a tile in which nothing is multiplied.
fn tile(plan: &Plan, problem: &Problem) -> f64 {
    let sums = (plan.rows * plan.columns / 64) as f64;
    let stored = plan.parts(problem).0;
    let parts = if stored > 1 && !plan.alternates { PARTS } else { 1.0 };
    let each = if plan.is_plain(problem) {
        PLAIN_PART * stored as f64
    } else {
        MORE_PARTS * (stored - FEW_PARTS).max(0) as f64
    };
    let each = if stored > 1 && !plan.alternates { each } else { 0.0 };
    TILE + SUMS * sums * plan.panels(problem) * parts + each
}

/// How much longer tiles take that read their factors more often than those of 128 x 256, the
/// widest and those between, and where few stages are.
fn longer(plan: &Plan, problem: &Problem) -> f64 {
    let narrow = if is_long_within(problem) { NARROW_WITHIN } else { NARROW };
    let read_often = match plan.rows * plan.columns {
        // Of tf32, whose sums are all written, wide ones took no longer.
        area if plan.alternates && problem.is_tf32() => {
            if area > 128 * 128 {
                1.0
            } else {
                IN_TURN
            }
        }
        _ if plan.alternates => IN_TURN,
        area if area < 128 * 256 => narrow,
        area if area >= 256 * 192 => WIDE,
        area if area > 128 * 256 => BETWEEN,
        _ if plan.rows == 256 => narrow,
        _ => 1.0,
    };
    let waiting = match plan.stages {
        ..3 if !plan.streams(problem) => TWO_STAGES,
        3 if plan.cluster > 1 => WAITING,
        _ if plan.cluster == 1 && is_long_within(problem) => ALONE,
        _ => 1.0,
    };
    let three = if plan.groups > 2 { THREE } else { 1.0 };
    waiting * read_often * three
}

/// Seconds of a list of problems, in the order in which blocks take their tiles.
pub(in crate::gemm) fn seconds_of_list(plan: &Plan, problems: &[Problem], machine: &Machine) -> f64 {
    let plans: Vec<Plan> = problems.iter().map(|problem| plan.of_problem(problem)).collect();
    let units: Vec<i64> = plans.iter().zip(problems).map(|(plan, problem)| plan.units(problem)).collect();
    let all = units.iter().fold(0, |sum: i64, own| sum.saturating_add(*own));
    let processors = f64::from(machine.multiprocessors);
    let together = (all as f64 / processors).ceil().min(plan.resident as f64);
    // The first block has tiles of the longest problem that is left in each turn.
    let (mut work, mut before) = (0.0, 0_i64);
    for ((plan, problem), own) in plans.iter().zip(problems).zip(units) {
        let turns = count(before.saturating_add(own), plan.blocks) - count(before, plan.blocks);
        before = before.saturating_add(own);
        let steps = count(plan.extents(problem)[2], problem.depth()) as f64;
        let cycles = steps * step(plan, problem, together) + tile(plan, problem) * together;
        work += turns as f64 * cycles * longer(plan, problem) / (machine.clock * LOADED);
    }
    let bytes = problems.iter().map(|problem| problem.bytes() as f64).sum::<f64>();
    let idle = 1.0 + IDLE * (1.0 - plan.blocks as f64 / processors).max(0.0);
    let memory = bytes / (machine.bandwidth * REACHED) * idle;
    LAUNCH + together_of(work, memory, SHARP)
}

/// Seconds of a product.
pub(super) fn seconds(plan: &Plan, problem: &Problem, machine: &Machine) -> f64 {
    let [m, n, k] = plan.extents(problem);
    let processors = f64::from(machine.multiprocessors);
    let alone = if plan.tail > 0 { 1 } else { plan.splits };
    let units = plan.units(problem) as f64;
    let turns = plan.turns(problem) as f64;
    let steps = count(count(k, problem.depth()), alone) as f64;
    let together = (units / processors).ceil().min(plan.resident as f64);
    let sums = (plan.rows * plan.columns / 64) as f64;
    let tile = tile(plan, problem);
    let longer = longer(plan, problem);
    let multiplied = steps * step(plan, problem, together);
    let cycles = match plan.alternates {
        // One group writes while the other one multiplies, but for the last tile.
        true => {
            let written = tile + PART * plan.pieces(problem) as f64;
            turns * (multiplied + HANDED).max((multiplied + written) / 2.0) + tile
        }
        false => turns * (multiplied + tile * together),
    };
    // The last tiles, which blocks share.
    let last_turns = count(plan.tail * plan.splits, plan.blocks) as f64;
    let last_steps = count(count(k, problem.depth()), plan.splits) as f64;
    let last = last_steps * step(plan, problem, together) + TILE + SHARED * sums;
    let last = if plan.tail > 0 { last_turns * last } else { 0.0 };
    let work = (cycles + last) * longer / (machine.clock * LOADED);
    let idle = idle(plan, m, machine);
    // What several tiles of columns read is in the cache, mostly.
    let readers = count(n, plan.columns * plan.beside());
    let again = AGAIN * (m * k) as f64 * f64::from(problem.factors().bytes()) * (readers - 1) as f64;
    let again = if readers <= 4 { again } else { 0.0 };
    let memory = (problem.bytes() as f64 + again) / (machine.bandwidth * REACHED) * idle;
    let both = together_of(work, memory, SHARP);
    let second = match plan.splits {
        1 => 0.0,
        _ => SECOND + 2.0 * plan.workspace(problem) as f64 / (machine.bandwidth * SUMS_REACHED),
    };
    // The last tiles are stored when nothing else is done: what the cache does not take at once.
    let stored = plan.rows * plan.columns * plan.blocks * i64::from(problem.result().bytes());
    let last = match plan.splits {
        1 if problem.bytes() > CACHED && problem.operations() < SHORT => {
            (stored - AT_ONCE).max(0) as f64 / (machine.bandwidth * LAST_REACHED)
        }
        _ => 0.0,
    };
    let launch = if plan.overlaps { OVERLAPPED } else { LAUNCH };
    launch + both + second + last
}
