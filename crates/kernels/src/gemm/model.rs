//! How long a plan takes, from sizes and layouts alone.
//!
//! Law: a step along K takes as long as its products, or as what a block asks for until it comes,
//! or as the cache takes for what all blocks ask for, whichever is longest, and longer where two of
//! these take about as long; and as a step takes at least. A tile takes its steps and what is
//! written of it. The work takes as many turns as blocks need for it, and as long as device memory
//! at least. The numbers were fitted to the times of 1,900 plans of 240 products on an H200, cool:
//! bare products of types of 16 bits. All others keep the law of `others.rs`.

mod others;

pub(super) use self::others::seconds_of_list;

use std::cmp::Ordering;

use tilewright_kernel::cost::Machine;

use super::edges::Edges;
use super::epilogue::width;
use super::matrix::{Contiguous, Matrix};
use super::plan::{FEW_PARTS, Plan, SHORT, Tile};
use super::problem::{LINE_BYTES, Problem};
use crate::product::count;

/// The clock while a processor multiplies, of that of the data sheet.
const LOADED: f64 = 0.892;
/// Bytes in a cycle: of what a block asks for itself, of what the blocks of a cluster get together,
/// and what the cache gives to each processor where all ask.
const ASKED: f64 = 172.0;
const RECEIVED: f64 = 110.0;
const GIVEN: f64 = 84.0;
/// How much more a request costs that goes on in a second line of the cache: the block that asks,
/// and the cache.
const SECOND_ASKED: f64 = 1.5;
const SECOND_GIVEN: f64 = 1.16;
/// How much more requests of less than half a line cost than their bytes say.
const SMALL: f64 = 1.3;
/// Cycles until the blocks of a cluster are ready for what both get; more where requests go on in a
/// second line.
const TOGETHER: f64 = 30.0;
const TOGETHER_SECOND: f64 = 240.0;
/// Cycles that the copy engine takes for a line that lies outside of a factor.
const PAST: f64 = 2.85;
/// How much of the shorter one of two things is seen beside the longer one, the less the greater:
/// of products and loads, of a block's work and what is read from memory again and again, and of
/// all work and what is read from memory once.
const LOADS: i32 = 5;
const AGAIN: i32 = 2;
const ONCE: i32 = 16;
/// The least cycles of a step along K.
const STEP: f64 = 195.0;
/// Cycles for each 64 sums of a tile, and of one that is shared, which are written from registers.
const SUMS: f64 = 4.2;
const SHARED: f64 = 18.8;
/// Cycles for each row of such a tile, whose sums are written piece by piece.
const SHARED_ROW: f64 = 2.0;
/// Of long work, in which power decides: how much longer tiles take that read their factors more
/// often than those of 128 x 256, the widest, and those between; narrow ones where rows begin
/// within lines.
const NARROW: f64 = 1.08;
const NARROW_WITHIN: f64 = 1.015;
const WIDE: f64 = 1.009;
const BETWEEN: f64 = 1.035;
/// The same of three groups.
const THREE: f64 = 1.003;
/// The same of groups that take tiles in turn, and of those in short work.
const IN_TURN: f64 = 1.015;
const IN_TURN_SHORT: f64 = 0.955;
/// Cycles until the other group multiplies, where groups take tiles in turn, and of a part or a
/// panel of a tile that one of them stores.
const HANDED: f64 = 815.0;
const PART: f64 = 740.0;
/// Cycles of each part beyond a few, and of each whose rows lie one behind the other.
const MORE_PARTS: f64 = 107.0;
const PLAIN_PART: f64 = 400.0;
/// How much longer a tile takes with two stages.
const TWO_STAGES: f64 = 1.45;
/// How much of the bandwidth rows cost of which most lie outside.
const OUTSIDE: f64 = 0.01;
/// The bandwidth that is reached, of that of the data sheet, and how much of it idle processors
/// cost.
const REACHED: f64 = 0.854;
const IDLE: f64 = 0.02;
/// Bytes of a factor that stay in the cache while all of it is read again, and of all tensors from
/// one launch to the next; of twice as many nothing does.
const STAY: f64 = 27e6;
const STAY_ALL: f64 = 40e6;
/// Bytes of tensors that come from memory, not from the cache.
const FROM_MEMORY: i64 = 120 << 20;
/// The fewest columns of tiles that groups take in turn.
const ALTERNATING: i64 = 128;
/// The most turns that tiles are made to fill.
const TURNS: i64 = 4;
/// Fewer tiles along the rows one after the other than these may read the factor along the columns
/// too often.
const FEW: i64 = 4;
/// Seconds of a launch, of one that overlaps the one before, and of a second kernel.
const LAUNCH: f64 = 2.15e-6;
const OVERLAPPED: f64 = 1.53e-6;
const SECOND: f64 = 0.9e-6;
/// The bandwidth at which sums of shared tiles are written and read again, out of the cache, of the
/// data sheet's of memory.
const SUMS_REACHED: f64 = 2.375;

/// How many blocks may share a tile that is left of whole turns.
const SHARES: [i64; 5] = [2, 3, 4, 5, 6];

/// What a block loads of one factor in a step along K.
struct Side {
    /// Lines of a tile that it asks for itself, and requests for each.
    own: f64,
    pieces: f64,
    /// How often a request goes on in a second line of the cache.
    second: f64,
    /// How much of all tiles lies inside of the factor.
    inside: f64,
    /// How many tiles there are, lines of the last one that lie outside and are asked for, and in
    /// how many of the steps.
    tiles: f64,
    outside: f64,
    seen: f64,
}

impl Side {
    /// Of the factor along the rows of tiles, 0, or along the columns, 1.
    fn of(plan: &Plan, problem: &Problem, number: usize) -> Side {
        let factor = if plan.swapped == (number == 1) { problem.a() } else { problem.b() };
        let lies = |factor| problem.readable(factor).unwrap_or(Contiguous::Columns);
        let tile = [plan.rows, plan.columns][number];
        let (extent, all) = (plan.extents(problem)[number], plan.tiles(problem)[number]);
        // The blocks of a cluster ask for a part each of what they share.
        let shared = plan.cluster > 1 && plan.side_by_side() == (number == 0);
        let own = if shared { tile / plan.cluster } else { tile };
        let tiles = count(extent, tile);
        let outside = if all > tiles { own } else { (tiles * tile - count(extent, 8) * 8).min(own) };
        let steps = count(plan.extents(problem)[2], problem.depth()) / plan.splits.max(1);
        let along = if plan.swapped { [problem.b(), problem.a()] } else { [problem.a(), problem.b()] };
        let alone = Edges::of(problem, plan, along.map(lies), plan.side_by_side()).has_tail(number);
        let (pieces, second) = requests(factor, lies(factor), [64, plan.tile_of_d(problem)[1]][number]);
        Side {
            own: own as f64,
            pieces,
            second,
            inside: extent as f64 / (all * tile) as f64,
            tiles: tiles as f64,
            outside: outside as f64,
            seen: if alone { plan.stages as f64 / steps as f64 } else { 1.0 },
        }
    }

    /// Lines of the cache that answer for a line of a tile, where those count so much in which
    /// requests go on.
    fn lines(&self, second: f64) -> f64 {
        self.pieces * (1.0 + second * self.second)
    }
}

/// How many lines of requests a line of 128 bytes of a tile is, and how often a request goes on in
/// a second line of the cache, where tiles are loaded in panels that divide so many columns.
fn requests(factor: &Matrix, lies: Contiguous, together: i64) -> (f64, f64) {
    let bytes = i64::from(factor.element().bytes());
    let [rows, columns, _] = factor.strides().unwrap_or([0; 3]);
    let (step, own) = match lies {
        Contiguous::Columns => (rows, LINE_BYTES),
        Contiguous::Rows => (columns, width(together, bytes) * bytes),
    };
    // Lines begin at multiples of what their step and a line of the cache have in common.
    let common = 1 << (step * bytes).trailing_zeros().min(LINE_BYTES.trailing_zeros());
    let share = own as f64 / LINE_BYTES as f64;
    let pieces = if share < 0.5 { SMALL / share } else { 1.0 / share };
    (pieces, (1.0 - common as f64 / LINE_BYTES as f64) * share)
}

/// How long two things take that go on at once: neither hides behind the other altogether where
/// both take as long.
fn together_of(one: f64, other: f64, sharp: i32) -> f64 {
    (one.powi(sharp) + other.powi(sharp)).powf(1.0 / f64::from(sharp))
}

/// Cycles in which a block multiplies the rows of a tile, in a step along K, so many parts of its
/// columns apart. An instruction of 64 rows reads its factors from shared memory, 128 bytes in a
/// cycle.
fn products(plan: &Plan, parts: i64) -> f64 {
    let (columns, parts) = (plan.columns as f64, parts as f64);
    let instruction = parts * (columns / parts / 2.0).max(columns / parts / 4.0 + 16.0);
    (plan.rows / 64 * (LINE_BYTES / 32)) as f64 * instruction
}

/// How much longer memory takes where processors are idle, or rows lie outside mostly.
fn idle(plan: &Plan, rows: i64, machine: &Machine) -> f64 {
    let idle = 1.0 + IDLE * (1.0 - plan.blocks as f64 / f64::from(machine.multiprocessors)).max(0.0);
    if 2 * rows <= plan.rows { idle + OUTSIDE } else { idle }
}

/// Cycles of a step along K of the blocks of one processor.
fn step(plan: &Plan, problem: &Problem, machine: &Machine, together: f64) -> f64 {
    let multiplied = products(plan, plan.halves(problem)) * together;
    let line = LINE_BYTES as f64;
    let sides = [0, 1].map(|number| Side::of(plan, problem, number));
    let all: f64 = sides.iter().map(|side| side.own * side.inside * side.lines(SECOND_GIVEN)).sum();
    let others = plan.blocks as f64 / (f64::from(machine.multiprocessors) * plan.resident as f64);
    let all = all * line / GIVEN * others;
    let ready = TOGETHER + TOGETHER_SECOND * sides.iter().map(|side| side.second).fold(0.0, f64::max);
    let of = |outside: [bool; 2]| {
        let asked = |(side, outside): (&Side, bool)| {
            let outside = if outside { side.outside } else { 0.0 };
            (side.own - outside) * side.lines(SECOND_ASKED) * line / ASKED + PAST * outside * side.seen
        };
        let asked: f64 = sides.iter().zip(outside).map(asked).sum();
        let asked = match plan.cluster {
            1 => asked,
            _ => asked.max((plan.rows + plan.columns) as f64 * line / RECEIVED) + ready,
        };
        together_of(multiplied, together_of(asked, all, LOADS) * together, LOADS).max(STEP)
    };
    // The slowest block decides. With one tile it may have the last of both; with several, of one
    // in so many tiles.
    let turns = plan.turns(problem) as f64;
    let inside = of([false; 2]);
    let [rows, columns, both] = [[true, false], [false, true], [true, true]].map(of);
    if turns <= 1.0 {
        return inside.max(rows).max(columns).max(both);
    }
    let more = |edge: f64, side: &Side| (edge - inside).max(0.0) * (1.0 / side.tiles).max(1.0 / turns);
    inside + more(rows, &sides[0]) + more(columns, &sides[1])
}

/// Cycles of a tile in which nothing is multiplied.
fn tile(plan: &Plan, problem: &Problem) -> f64 {
    let sums = (plan.rows * plan.columns / 64) as f64;
    if plan.is_shared() {
        return SHARED * sums + SHARED_ROW * plan.rows as f64;
    }
    let stored = plan.parts(problem).0;
    let parts = match stored {
        2.. if !plan.alternates && plan.is_plain(problem) => PLAIN_PART * stored as f64,
        2.. if !plan.alternates => MORE_PARTS * (stored - FEW_PARTS).max(0) as f64,
        _ => 0.0,
    };
    SUMS * sums * plan.panels(problem) + parts
}

/// How much longer tiles take than their steps say: of long work by how often they read their
/// factors; where groups take tiles in turn; and where few stages are.
fn longer(plan: &Plan, problem: &Problem) -> f64 {
    let long = problem.operations() >= SHORT;
    let narrow = if problem.begins_at_lines() { NARROW } else { NARROW_WITHIN };
    let read_often = match plan.rows * plan.columns {
        _ if plan.alternates && !long => IN_TURN_SHORT,
        _ if plan.alternates => IN_TURN,
        _ if !long => 1.0,
        area if area < 128 * 256 => narrow,
        area if area >= 256 * 192 => WIDE,
        area if area > 128 * 256 => BETWEEN,
        _ if plan.rows == 256 => narrow,
        _ => 1.0,
    };
    let waiting = if plan.stages < 3 && !plan.streams(problem) { TWO_STAGES } else { 1.0 };
    let three = if plan.groups > 2 { THREE } else { 1.0 };
    waiting * read_often * three
}

/// Seconds of what is read from memory once, and of what is read again since it does not stay in
/// the cache.
fn memory(plan: &Plan, problem: &Problem, machine: &Machine) -> (f64, f64) {
    let [m, n, k] = plan.extents(problem);
    let bandwidth = machine.bandwidth * REACHED;
    let lost = |bytes: f64, stay: f64| (bytes / stay - 1.0).clamp(0.0, 1.0);
    let all = problem.bytes() as f64;
    let once = all * lost(all, STAY_ALL) * idle(plan, m, machine) / bandwidth;
    // The tiles that are taken one after the other along the rows read the factor along the columns
    // together; so do those that other blocks take meanwhile.
    let [along, across] = plan.tiles(problem).map(|tiles| tiles as f64);
    let meanwhile = plan.blocks as f64 / (plan.resident as f64 * across);
    let reads = along / along.min(meanwhile.max(plan.group as f64));
    let bytes = |lines: i64| lines as f64 * k as f64 * f64::from(problem.factors().bytes());
    let columns = bytes(n);
    let again = columns * (reads - 1.0) * lost(columns + bytes(plan.group * plan.rows), STAY);
    (once, if plan.is_shared() { 0.0 } else { again / bandwidth })
}

/// Whether a problem is of those to which the numbers were fitted.
fn is_bare(problem: &Problem) -> bool {
    let halves = problem.factors().bytes() == 2 && problem.result().bytes() == 2;
    let more = problem.function().is_some() || problem.pairs().is_some() || problem.by_products().next().is_some();
    halves && !more && problem.batch() == 1 && problem.groups().is_none() && problem.fold().is_none()
}

/// Seconds of a product.
pub(crate) fn seconds(plan: &Plan, problem: &Problem, machine: &Machine) -> f64 {
    if !is_bare(problem) {
        return others::seconds(plan, problem, machine);
    }
    let processors = f64::from(machine.multiprocessors);
    let alone = if plan.tail > 0 { 1 } else { plan.splits };
    let units = plan.units(problem) as f64;
    let turns = plan.turns(problem) as f64;
    let all = count(plan.extents(problem)[2], problem.depth());
    let together = (units / processors).ceil().min(plan.resident as f64);
    let each = step(plan, problem, machine, together);
    let tile = tile(plan, problem);
    let multiplied = count(all, alone) as f64 * each;
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
    let sums = (plan.rows * plan.columns / 64) as f64;
    let last = count(all, plan.splits) as f64 * each + SHARED * sums;
    let last = if plan.tail > 0 { last_turns * last } else { 0.0 };
    let work = (cycles + last) * longer(plan, problem) / (machine.clock * LOADED);
    let (once, again) = memory(plan, problem, machine);
    let both = together_of(together_of(work, again, AGAIN), once, ONCE);
    let second = match plan.splits {
        1 => 0.0,
        _ => SECOND + 2.0 * plan.workspace(problem) as f64 / (machine.bandwidth * SUMS_REACHED),
    };
    let launch = if plan.overlaps { OVERLAPPED } else { LAUNCH };
    launch + both + second
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
                    for plan in banded(problem, machine, tile) {
                        if plan.refusal(problem).is_none() && plan.turns(problem) > 1 {
                            plans.push((seconds(&plan, problem, machine), plan));
                        }
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
                        let tiles = clusters.iter().map(|cluster| tile(splits, *cluster));
                        for plan in tiles.flat_map(|tile| banded(problem, machine, tile)) {
                            // Fewer blocks on a processor have more stages.
                            let fewer = plan.blocks <= i64::from(machine.multiprocessors) * (resident - 1);
                            // Half of the columns alone pays where rows of D are stored as wholes.
                            let alone = plan.cluster == 1 && half;
                            let thin = alone && columns % 16 != 0 && plan.panel_bytes(problem) < 64;
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

/// The plan of a tile; and of long work that would take few tiles along the rows one after the
/// other, since those leave none outside, also the plan that takes several, and reads less again.
fn banded(problem: &Problem, machine: &Machine, tile: Tile) -> impl Iterator<Item = Plan> {
    let plan = Plan::tiled(problem, machine, tile);
    let few = plan.group < FEW && is_bare(problem) && problem.operations() >= SHORT;
    let other = few.then(|| Plan::in_bands(problem, machine, tile, FEW)).filter(|other| other.group > plan.group);
    std::iter::once(plan).chain(other)
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
