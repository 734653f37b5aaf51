//! How long a plan takes, from sizes and layouts alone.
//!
//! Law: a k-tile takes as long as its MMA instructions, or as its loads, whichever is longer, and
//! longer than that if both take about as long; it takes a minimum in any case. An output tile
//! takes its k-tiles and its epilogue. The launch takes as many tiles as the busiest block has, and
//! at least as long as device memory needs for the tensors. The numbers of the law are in
//! `fitted.rs`: one set for bare GEMMs of 16-bit types, another for all other kinds.

mod warps;

use tilewright_kernel::machine::Machine;

use crate::fitted::CACHED_L2_PERCENT;
use crate::gemm::fitted::{Areas, BARE, ByteLoads, CACHED, Fitted, GENERAL, LineLoads, Loads, SHORT_WORK};
use crate::gemm::implicit;
use crate::gemm::panel::width;
use crate::gemm::plan::Plan;
use crate::gemm::plan::staging::FEW_PARTS;
use crate::gemm::problem::matrix::{Contiguous, Matrix};
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::gemm::schedule::edges::{Edges, zeroed};
use crate::law::l2_share;
use crate::units::count;

/// The time of a plan for a problem on a machine.
struct Timed<'a> {
    plan: &'a Plan,
    problem: &'a Problem,
    machine: &'a Machine,
    fitted: &'static Fitted,
}

/// Seconds of a GEMM.
pub(crate) fn seconds(plan: &Plan, problem: &Problem, machine: &Machine) -> f64 {
    if plan.warps.is_some() {
        return warps::seconds(plan, &[(problem, plan)], machine);
    }
    let fitted = if is_bare(problem) { &BARE } else { &GENERAL };
    Timed { plan, problem, machine, fitted }.seconds()
}

/// Seconds of a list of GEMMs, in the order in which blocks take their tiles.
pub(crate) fn seconds_of_list(plan: &Plan, problems: &[Problem], machine: &Machine) -> f64 {
    let fitted = &GENERAL;
    let plans: Vec<Plan> = problems.iter().map(|problem| plan.of_problem(problem)).collect();
    if plan.warps.is_some() {
        let all: Vec<(&Problem, &Plan)> = problems.iter().zip(&plans).collect();
        return warps::seconds(plan, &all, machine);
    }
    let units: Vec<i64> = plans.iter().zip(problems).map(|(plan, problem)| plan.units(problem)).collect();
    let all = units.iter().fold(0, |sum: i64, own| sum.saturating_add(*own));
    let sms = f64::from(machine.multiprocessors);
    let resident = (all as f64 / sms).ceil().min(plan.blocks_per_sm as f64);
    // In each wave the first block has a tile of the longest remaining problem.
    let (mut work, mut before) = (0.0, 0_i64);
    for ((plan, problem), own) in plans.iter().zip(problems).zip(units) {
        let timed = Timed { plan, problem, machine, fitted };
        let waves = count(before.saturating_add(own), plan.blocks) - count(before, plan.blocks);
        before = before.saturating_add(own);
        let cycles = timed.k_tiles(1) * timed.k_tile(resident) + timed.epilogue() * resident;
        work += waves as f64 * cycles * timed.longer() / (machine.clock * fitted.loaded_clock);
    }
    let bytes = problems.iter().map(|problem| problem.bytes() as f64).sum::<f64>();
    let memory = bytes / (machine.bandwidth * fitted.bandwidth);
    fitted.launch + smooth_max(work, memory, fitted.overlap)
}

/// Whether a problem is of the kinds to which [`BARE`] was fitted.
pub(crate) fn is_bare(problem: &Problem) -> bool {
    let halves = problem.operand_type().bytes() == 2 && problem.result_type().bytes() == 2;
    let more = problem.epilogue().is_some() || problem.pairs().is_some() || problem.reductions().next().is_some();
    halves && !more && problem.batch() == 1 && problem.row_groups().is_none() && implicit::of(problem).is_none()
}

/// The time of two overlapping activities: the longer time, and more than that if both take about
/// as long. A higher exponent means better overlap.
fn smooth_max(one: f64, other: f64, exponent: i32) -> f64 {
    (one.powi(exponent) + other.powi(exponent)).powf(1.0 / f64::from(exponent))
}

impl Timed<'_> {
    fn seconds(&self) -> f64 {
        let Timed { plan, problem, machine, fitted } = *self;
        let units = plan.units(problem) as f64;
        let waves = plan.waves(problem) as f64;
        let resident = (units / f64::from(machine.multiprocessors)).ceil().min(plan.blocks_per_sm as f64);
        let (k_tile, epilogue) = (self.k_tile(resident), self.epilogue());
        let mainloop = self.k_tiles(if plan.tail > 0 { 1 } else { plan.split_k }) * k_tile;
        let cycles = match plan.ping_pong {
            // One warpgroup stores while the other one multiplies, except for the last tile.
            true => {
                let stored = epilogue + fitted.handover * plan.pieces(problem, machine) as f64;
                waves * (mainloop + fitted.handover).max((mainloop + stored) / 2.0) + epilogue
            }
            false => waves * (mainloop + epilogue * resident),
        };
        let work = (cycles + self.tail(k_tile)) * self.longer() / (machine.clock * fitted.loaded_clock);
        let workspace = match plan.split_k {
            1 => 0.0,
            _ => {
                let bandwidth = machine.bandwidth * fitted.workspace_bandwidth;
                fitted.second_kernel + 2.0 * plan.workspace(problem) as f64 / bandwidth
            }
        };
        let launch = if plan.programmatic_launch { fitted.overlapped_launch } else { fitted.launch };
        launch + self.with_memory(work) + workspace + self.last_wave()
    }

    /// K-tiles of a block, if this many blocks share those of a tile.
    fn k_tiles(&self, split_k: i64) -> f64 {
        count(count(self.plan.extents(self.problem)[2], self.problem.k_tile()), split_k) as f64
    }

    /// Cycles of the tail, whose tiles several blocks share.
    fn tail(&self, k_tile: f64) -> f64 {
        let Timed { plan, fitted, .. } = *self;
        if plan.tail == 0 {
            return 0.0;
        }
        let waves = count(plan.tail * plan.split_k, plan.blocks) as f64;
        waves * (self.k_tiles(plan.split_k) * k_tile + fitted.partial_store * self.accumulators())
    }

    /// The accumulators of a tile, in units of 64.
    fn accumulators(&self) -> f64 {
        (self.plan.rows * self.plan.columns / 64) as f64
    }

    /// Cycles of a k-tile of the blocks that are resident on one SM.
    fn k_tile(&self, resident: f64) -> f64 {
        let multiplied = (self.mma() + self.promotion()) * resident;
        match &self.fitted.loads {
            Loads::Lines(loads) => self.loaded_by_lines(loads, multiplied, resident),
            Loads::Bytes(loads) => self.loaded_by_bytes(loads, multiplied, resident),
        }
    }

    /// Cycles in which a block multiplies a k-tile. An instruction of 64 rows reads its operands
    /// from shared memory, 128 bytes in a cycle.
    fn mma(&self) -> f64 {
        let parts = if self.problem.pairs().is_none() { self.plan.halves(self.problem) } else { 1 };
        let (columns, parts) = (self.plan.columns as f64, parts as f64);
        let instruction = parts * (columns / parts / 2.0).max(columns / parts / 4.0 + 16.0);
        (self.plan.rows / 64 * (LINE_BYTES / 32)) as f64 * instruction
    }

    /// Cycles of a k-tile in which accumulators are promoted and nothing is multiplied.
    fn promotion(&self) -> f64 {
        let Timed { plan, problem, .. } = *self;
        if !problem.is_promoted() {
            return 0.0;
        }
        // An accumulator is added to the total in f32 by one instruction. The four partitions of an
        // SM issue one for 32 threads each in a cycle.
        let issued = (plan.rows * plan.columns) as f64 / 128.0;
        let seen = if plan.warpgroups * plan.blocks_per_sm > 1 { self.fitted.promotion_seen } else { 1.0 };
        issued * seen
    }

    /// Cycles of a k-tile with loads that are counted in cache lines.
    fn loaded_by_lines(&self, loads: &LineLoads, multiplied: f64, resident: f64) -> f64 {
        let Timed { plan, problem, machine, .. } = *self;
        let line = LINE_BYTES as f64;
        let sides = [0, 1].map(|number| Side::of(plan, problem, number));
        let all: f64 = sides.iter().map(|side| side.own * side.inside * side.lines(loads.second_line)).sum();
        let busy = plan.blocks as f64 / (f64::from(machine.multiprocessors) * plan.blocks_per_sm as f64);
        let all = all * line / loads.delivered * busy;
        let second = sides.iter().map(|side| side.second).fold(0.0, f64::max);
        let ready = loads.cluster_ready + loads.cluster_ready_second_line * second;
        let of = |outside: [bool; 2]| {
            let asked = |(side, outside): (&Side, bool)| {
                let outside = if outside { side.outside } else { 0.0 };
                let inside = (side.own - outside) * side.lines(loads.second_line) * line / loads.asked;
                inside + self.fitted.outside_line * outside * side.seen
            };
            let asked: f64 = sides.iter().zip(outside).map(asked).sum();
            let asked = match plan.cluster {
                1 => asked,
                _ => asked.max((plan.rows + plan.columns) as f64 * line / loads.received) + ready,
            };
            let loaded = smooth_max(asked, all, self.fitted.overlap) * resident;
            smooth_max(multiplied, loaded, self.fitted.overlap).max(self.fitted.k_tile)
        };
        // The slowest block decides. With one tile it may have the last one along both modes; with
        // several, one in this many of its tiles is at an edge.
        let waves = plan.waves(problem) as f64;
        let inside = of([false; 2]);
        let [rows, columns, both] = [[true, false], [false, true], [true, true]].map(of);
        if waves <= 1.0 {
            return inside.max(rows).max(columns).max(both);
        }
        let more = |edge: f64, side: &Side| (edge - inside).max(0.0) * (1.0 / side.tiles).max(1.0 / waves);
        inside + more(rows, &sides[0]) + more(columns, &sides[1])
    }

    /// Cycles of a k-tile with loads that are counted in bytes.
    fn loaded_by_bytes(&self, loads: &ByteLoads, multiplied: f64, resident: f64) -> f64 {
        let Timed { plan, problem, .. } = *self;
        let unaligned = match problem.begins_at_lines() {
            true => 1.0,
            false => loads.unaligned[usize::from(is_long_and_unaligned(problem))],
        };
        let lines = |extent: f64| extent * LINE_BYTES as f64 * unaligned;
        let (rows, columns, whole) = (plan.rows as f64, plan.columns as f64, (plan.rows + plan.columns) as f64);
        // The blocks of a cluster ask for half of what they share, and receive all.
        let shared = if plan.side_by_side() { rows } else { columns };
        let rate = loads.fill[usize::from(problem.operations() >= SHORT_WORK)];
        let fill = match plan.cluster {
            1 => lines(whole) / rate,
            _ => lines(whole - shared / 2.0) / rate + loads.cluster_ready,
        };
        let of = |outside: i64| {
            let fill = (fill + self.fitted.outside_line * outside as f64) * resident;
            let both = match is_long_and_unaligned(problem) {
                true => smooth_max(multiplied, fill, self.fitted.overlap),
                false => multiplied.max(fill),
            };
            both.max(self.fitted.k_tile)
        };
        if plan.split_k > 1 || !problem.begins_at_lines() {
            return of(0);
        }
        // At least one tile of the slowest block is at an edge. If tails are loaded alone, the
        // first stages of the tile are loaded whole all the same, unless threads fill them with
        // zeros; boxes of implicit GEMM always are.
        let plain = problem.pairs().is_none() && problem.reductions().next().is_none();
        let alone = plain && implicit::of(problem).is_none();
        let [m, n, k] = plan.extents(problem);
        let first = plan.stages as f64 / count(k, problem.k_tile()) as f64;
        let seen = if alone { first.min(1.0) } else { 1.0 };
        let edge = |extent: i64, of_tile: i64| {
            let tiles = count(extent, of_tile);
            let share = (1.0 / tiles as f64).max(1.0 / plan.waves(problem) as f64);
            (of(tiles * of_tile - count(extent, 8) * 8) - of(0)) * share * seen
        };
        let along = if plan.swapped { problem.b() } else { problem.a() };
        let are_zeros = problem.readable(along).is_ok_and(|own| zeroed(problem, plan, own).is_some());
        of(0) + if are_zeros { 0.0 } else { edge(m, plan.rows) } + edge(n, plan.columns)
    }

    /// Cycles of a tile in which nothing is multiplied.
    fn epilogue(&self) -> f64 {
        let Timed { plan, problem, machine, fitted } = *self;
        if fitted.partial_stores_alone && plan.is_shared() {
            return fitted.partial_store * self.accumulators();
        }
        let parts = plan.parts(problem, machine).0;
        let further = if plan.ping_pong || plan.is_plain(problem, machine) { 0 } else { (parts - FEW_PARTS).max(0) };
        let stored = fitted.accumulators * self.accumulators() * plan.panels(problem, machine);
        stored + fitted.further_part * further as f64
    }

    /// The ratio of the time of tiles to the sum of their k-tiles and epilogue.
    fn longer(&self) -> f64 {
        let Timed { plan, problem, fitted, .. } = *self;
        let long = problem.operations() >= SHORT_WORK;
        let Areas { long_alone, small, small_unaligned, largest, large } = fitted.areas;
        let small = if is_long_and_unaligned(problem) { small_unaligned } else { small };
        let read_often = match plan.rows * plan.columns {
            // All accumulators of tf32 are stored, so wide tiles took no longer.
            area if plan.ping_pong && problem.is_tf32() && area > 128 * 128 => 1.0,
            _ if plan.ping_pong => fitted.ping_pong[usize::from(long)],
            _ if long_alone && !long => 1.0,
            area if area < 128 * 256 => small,
            area if area >= 256 * 192 => largest,
            area if area > 128 * 256 => large,
            _ if plan.rows == 256 => small,
            _ => 1.0,
        };
        let waiting = if plan.stages == 3 && plan.cluster > 1 { fitted.three_stages_in_cluster } else { 1.0 };
        waiting * read_often
    }

    /// Seconds of work that overlaps what device memory does.
    fn with_memory(&self, work: f64) -> f64 {
        let Timed { plan, problem, machine, fitted } = *self;
        let [_, n, k] = plan.extents(problem);
        let operand = |lines: i64| lines as f64 * k as f64 * f64::from(problem.operand_type().bytes());
        let bandwidth = machine.bandwidth * fitted.bandwidth;
        let bytes = problem.bytes() as f64;
        let Some([again, once]) = fitted.reread else { return smooth_max(work, bytes / bandwidth, fitted.overlap) };
        // What the L2 cache holds is not evicted; twice as many bytes are evicted completely.
        let stay = l2_share(machine, CACHED_L2_PERCENT) as f64;
        let evicted = |bytes: f64| (bytes / stay - 1.0).clamp(0.0, 1.0);
        let read_once = bytes * evicted(bytes) / bandwidth;
        // The tiles of a raster band read the operand along the columns together; so do those that
        // other blocks take meanwhile.
        let [along, across] = plan.tiles(problem).map(|tiles| tiles as f64);
        let meanwhile = plan.blocks as f64 / (plan.blocks_per_sm as f64 * across);
        let reads = along / along.min(meanwhile.max(plan.raster_band as f64));
        let columns = operand(n);
        let read_again = columns * (reads - 1.0) * evicted(columns + operand(plan.raster_band * plan.rows));
        let read_again = if plan.is_shared() { 0.0 } else { read_again / bandwidth };
        smooth_max(smooth_max(work, read_again, again), read_once, once)
    }

    /// Seconds of the stores of the last wave, which nothing overlaps.
    fn last_wave(&self) -> f64 {
        let Timed { plan, problem, machine, fitted } = *self;
        let is_seen = plan.split_k == 1 && problem.bytes() > CACHED && problem.operations() < SHORT_WORK;
        let Some(last) = fitted.last_wave.as_ref().filter(|_| is_seen) else { return 0.0 };
        let stored = plan.rows * plan.columns * plan.blocks * i64::from(problem.result_type().bytes());
        (stored - last.cached).max(0) as f64 / (machine.bandwidth * last.bandwidth)
    }
}

/// Whether work is long and its rows are not aligned to cache lines. With an epilogue function,
/// other plans were faster than those fitted without one.
fn is_long_and_unaligned(problem: &Problem) -> bool {
    !problem.begins_at_lines() && problem.operations() >= SHORT_WORK && problem.epilogue().is_none()
}

/// The loads of one operand in a k-tile by a block.
struct Side {
    /// The lines of a tile that the block requests itself, and the requests for each line.
    own: f64,
    pieces: f64,
    /// The share of requests that continue in a second cache line.
    second: f64,
    /// The share of the area of all tiles that is inside of the operand.
    inside: f64,
    /// The number of tiles; the lines of the last tile that are outside and requested; and the
    /// share of the k-tiles in which they are.
    tiles: f64,
    outside: f64,
    seen: f64,
}

impl Side {
    /// The loads of the operand along the rows of tiles, 0, or along the columns, 1.
    fn of(plan: &Plan, problem: &Problem, number: usize) -> Side {
        let operand = if plan.swapped == (number == 1) { problem.a() } else { problem.b() };
        let major = |operand| problem.readable(operand).unwrap_or(Contiguous::Columns);
        let tile = [plan.rows, plan.columns][number];
        let (extent, all) = (plan.extents(problem)[number], plan.tiles(problem)[number]);
        // Each block of a cluster requests a part of what both share.
        let shared = plan.cluster > 1 && plan.side_by_side() == (number == 0);
        let own = if shared { tile / plan.cluster } else { tile };
        let tiles = count(extent, tile);
        let outside = if all > tiles { own } else { (tiles * tile - count(extent, 8) * 8).min(own) };
        let k_tiles = count(plan.extents(problem)[2], problem.k_tile()) / plan.split_k.max(1);
        let along = if plan.swapped { [problem.b(), problem.a()] } else { [problem.a(), problem.b()] };
        let edges = Edges::of(problem, plan, along.map(major), plan.side_by_side());
        let together = [64, plan.tile_of_d(problem)[1]][number];
        let (pieces, second) = requests(operand, major(operand), together);
        Side {
            own: own as f64,
            pieces,
            second,
            inside: extent as f64 / (all * tile) as f64,
            tiles: tiles as f64,
            outside: outside as f64,
            seen: edges.share_outside(number, plan.stages, k_tiles),
        }
    }

    /// The cost of a line of a tile in cache lines, given the cost of continuing in a second line.
    fn lines(&self, second: f64) -> f64 {
        self.pieces * (1.0 + second * self.second)
    }
}

/// The number of requests for a line of 128 bytes of a tile, and the share of them that continue in
/// a second cache line, if tiles are loaded in panels whose width divides `together` columns.
fn requests(operand: &Matrix, major: Contiguous, together: i64) -> (f64, f64) {
    let bytes = i64::from(operand.element().bytes());
    let [rows, columns, _] = operand.strides().unwrap_or([0; 3]);
    let (step, own) = match major {
        Contiguous::Columns => (rows, LINE_BYTES),
        Contiguous::Rows => (columns, width(together, bytes) * bytes),
    };
    // Lines begin at multiples of the greatest power of two in their step, up to a cache line.
    let common = 1 << (step * bytes).trailing_zeros().min(LINE_BYTES.trailing_zeros());
    let share = own as f64 / LINE_BYTES as f64;
    (1.0 / share, (1.0 - common as f64 / LINE_BYTES as f64) * share)
}
