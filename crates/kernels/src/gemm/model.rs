//! How long a plan takes, from sizes alone.
//!
//! Law: a block's part of the work takes as long as its products, or as the copies into the shared
//! memory of its processor, or as a step takes at least, whichever is longest, and what is at the
//! beginning and at the end of a tile; the work takes as many turns as blocks need for it, and
//! about as long as device memory where that is longer. The numbers were fitted to the times of
//! some hundred plans of 33 products on an H200, those of long work whose rows begin within lines
//! to 180 plans of 36 more.

use std::cmp::Ordering;

use tilewright_kernel::cost::Machine;

use super::plan::{CACHED, FEW_PARTS, Plan, SHORT, Tile};
use super::problem::{LINE_BYTES, Problem};
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
/// Cycles of each part beyond a few, and of each whose rows lie one behind the other.
const MORE_PARTS: f64 = 210.0;
const PLAIN_PART: f64 = 400.0;
/// How much longer a tile takes with two stages.
const TWO_STAGES: f64 = 1.45;
/// How much of the bandwidth rows cost of which most lie outside.
const OUTSIDE: f64 = 0.01;
/// The bandwidth that is reached, of that of the data sheet, and how much of it idle processors
/// cost.
const REACHED: f64 = 0.79;
const IDLE: f64 = 0.02;
/// Bytes of tensors that come from memory, not from the cache.
const FROM_MEMORY: i64 = 120 << 20;
/// Share of the bytes that a second tile of columns reads from memory again.
const AGAIN: f64 = 0.05;
/// The fewest columns of tiles that groups take in turn.
const ALTERNATING: i64 = 128;
/// The most turns that tiles are made to fill.
const TURNS: i64 = 4;
/// Bytes of D that the cache takes at once.
const AT_ONCE: i64 = 4 << 20;
/// The bandwidth at which the rest of the last tiles is written, of the data sheet's.
const LAST_REACHED: f64 = 0.6;
/// Seconds of a launch, of one that overlaps the one before, and of a second kernel.
const LAUNCH: f64 = 1.4e-6;
const OVERLAPPED: f64 = 0.3e-6;
const SECOND: f64 = 0.9e-6;
/// The bandwidth at which sums of shared tiles are written and read again, of the data sheet's.
const SUMS_REACHED: f64 = 0.5;

/// How many blocks may share a tile that is left of whole turns.
const SHARES: [i64; 5] = [2, 3, 4, 5, 6];

/// Whether work is long and has rows that begin in the middle of a line. With functions of the sums
/// other plans were faster than what was fitted without them.
fn is_long_within(problem: &Problem) -> bool {
    !problem.begins_at_lines() && problem.operations() >= SHORT && problem.function().is_none()
}

/// Cycles of a step along K of the blocks of one processor.
fn step(plan: &Plan, problem: &Problem, together: f64) -> f64 {
    // An instruction of 64 rows reads its factors from shared memory, 128 bytes in a cycle.
    let columns = plan.columns as f64;
    let halves = if problem.pairs().is_none() { plan.halves(problem) as f64 } else { 1.0 };
    let instruction = halves * (columns / halves / 2.0).max(columns / halves / 4.0 + 16.0);
    let products = (plan.rows / 64 * (LINE_BYTES / 32)) as f64 * instruction;
    let misaligned = match problem.begins_at_lines() {
        true => 1.0,
        false if is_long_within(problem) => MISALIGNED_LONG,
        false => MISALIGNED,
    };
    let lines = |extent: f64| extent * LINE_BYTES as f64 * misaligned;
    let (rows, whole) = (plan.rows as f64, (plan.rows + plan.columns) as f64);
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
        let both = if is_long_within(problem) { together_of(multiplied, fill) } else { multiplied.max(fill) };
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

/// How long two things take at once: neither hides behind the other altogether where both take as
/// long.
fn together_of(one: f64, other: f64) -> f64 {
    (one.powi(6) + other.powi(6)).powf(1.0 / 6.0)
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
pub(super) fn seconds_of_list(plan: &Plan, problems: &[Problem], machine: &Machine) -> f64 {
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
    LAUNCH + together_of(work, memory)
}

/// Seconds of a product.
pub(crate) fn seconds(plan: &Plan, problem: &Problem, machine: &Machine) -> f64 {
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
    let idle = 1.0 + IDLE * (1.0 - plan.blocks as f64 / processors).max(0.0);
    let idle = if 2 * m <= plan.rows { idle + OUTSIDE } else { idle };
    // What several tiles of columns read is in the cache, mostly.
    let readers = count(n, plan.columns * plan.beside());
    let again = AGAIN * (m * k) as f64 * f64::from(problem.factors().bytes()) * (readers - 1) as f64;
    let again = if readers <= 4 { again } else { 0.0 };
    let memory = (problem.bytes() as f64 + again) / (machine.bandwidth * REACHED) * idle;
    let both = together_of(work, memory);
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

/// The plan of which the time is least, among those that are admitted.
pub(super) fn fastest(problem: &Problem, machine: &Machine, admitted: impl Fn(&Plan) -> bool) -> Plan {
    let first = Tile {
        swapped: false,
        rows: 64,
        columns: 64,
        groups: 1,
        splits: 1,
        cluster: 1,
        resident: 1,
        alternates: false,
    };
    let plans = plans(problem, machine).into_iter().filter(|(_, plan)| admitted(plan));
    let least = plans.min_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    least.map_or_else(|| Plan::tiled(problem, machine, first), |(_, plan)| plan)
}

/// The plans that can be carried out, each with its seconds.
pub(super) fn plans(problem: &Problem, machine: &Machine) -> Vec<(f64, Plan)> {
    let mut plans = Vec::new();
    for swapped in [false, true] {
        let [m, n, k] = problem.multiplied();
        let [m, n] = if swapped { [n, m] } else { [m, n] };
        // Three groups have few registers beside their sums, and products of bytes take half the time.
        let three = problem.pairs().is_none() && !problem.is_promoted() && problem.factors().bytes() > 1;
        let three = three.then_some((192, 3));
        for (rows, groups) in [(128, 2), (64, 1), (256, 2), (128, 1)].into_iter().chain(three) {
            let usual = widths(n);
            let filling = if problem.begins_at_lines() { Vec::new() } else { filling([m, n], rows, machine) };
            let others = filling.into_iter().filter(|columns| !usual.contains(columns));
            let others = others.map(|columns| (columns, false)).collect::<Vec<_>>();
            for (columns, usual) in usual.iter().map(|columns| (*columns, true)).chain(others) {
                if usual && (rows, groups) == (128, 2) && columns >= ALTERNATING {
                    let tile =
                        Tile { swapped, rows, columns, groups, splits: 1, cluster: 1, resident: 1, alternates: true };
                    let plan = Plan::tiled(problem, machine, tile);
                    if plan.refusal(problem).is_none() && plan.turns(problem) > 1 {
                        plans.push((seconds(&plan, problem, machine), plan));
                    }
                }
                for resident in 1..=3 {
                    let tile = |splits, cluster| Tile {
                        swapped,
                        rows,
                        columns,
                        groups,
                        splits,
                        cluster,
                        resident,
                        alternates: false,
                    };
                    let tiles = count(m, rows).saturating_mul(count(n, columns)).saturating_mul(problem.batch());
                    let slots = i64::from(machine.multiprocessors) * resident;
                    for splits in shares(tiles, slots, count(k, problem.depth())) {
                        // Where rows begin at lines of the cache, clusters pay where they read
                        // once what two tiles of columns read, from memory; which one of them
                        // reads after the other otherwise.
                        let half = columns >= 64 && count(n, columns) == 2;
                        let once = half && rows > columns && problem.bytes() > FROM_MEMORY;
                        let clusters: &[i64] = match problem.begins_at_lines() {
                            _ if !usual => &[2],
                            true if once => &[2],
                            true => &[1],
                            false => &[1, 2],
                        };
                        for cluster in clusters.iter().copied() {
                            let plan = Plan::tiled(problem, machine, tile(splits, cluster));
                            // Fewer blocks on a processor have more stages.
                            let fewer = plan.blocks <= i64::from(machine.multiprocessors) * (resident - 1);
                            // Half of the columns alone pays where rows of D are stored as wholes.
                            let thin = cluster == 1 && half && columns % 16 != 0 && plan.panel_bytes(problem) < 64;
                            if !fewer && !thin && plan.refusal(problem).is_none() {
                                let lasts = SHARES.iter().filter_map(|own| plan.sharing_last(problem, machine, *own));
                                plans.extend(lasts.map(|last| (seconds(&last, problem, machine), last)));
                                plans.push((seconds(&plan, problem, machine), plan));
                            }
                        }
                    }
                }
            }
        }
    }
    plans
}

/// The widths of tiles to try, wide ones first: multiples of 16, the width of a narrow matrix, and
/// half of that width.
fn widths(columns: i64) -> Vec<i64> {
    let whole = |columns: i64| count(columns, 8) * 8;
    let most = whole(columns).min(256);
    let mut widths: Vec<i64> = (1..=16).rev().map(|part| 16 * part).filter(|width| *width <= most.max(16)).collect();
    for width in [8, most, whole(count(columns, 2))] {
        if width <= most && !widths.contains(&width) {
            widths.push(width);
        }
    }
    widths
}

/// Columns with which an odd number of tiles side by side fills whole turns of all processors,
/// though they are no multiple of 16.
fn filling([m, n]: [i64; 2], rows: i64, machine: &Machine) -> Vec<i64> {
    let along = count(m, rows);
    let columns = (1..=TURNS).filter_map(|turns| {
        let across = turns * i64::from(machine.multiprocessors) / along;
        let columns = count(count(n, across.max(1)), 8) * 8;
        let odd = along % 2 == 0 && count(n, columns) % 2 == 1;
        (odd && columns < rows && (ALTERNATING..=256).contains(&columns)).then_some(columns)
    });
    columns.collect()
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
