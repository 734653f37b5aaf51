//! The plans that are considered, and the one that is chosen.
//!
//! Law: every candidate can be carried out. The chosen one takes the least time by the model
//! (`model.rs`). The candidates are all combinations of tile shape, warpgroups, blocks per SM,
//! split-K and clusters that were fastest in some measurement.

mod warps;

use std::cmp::Ordering;

use tilewright_kernel::machine::Machine;

use crate::error::PlanError;
use crate::gemm::fitted::{BAND, FILLED_WAVES, LEAST_BAND, PING_PONG_COLUMNS, SHORT_WORK, TAIL_SPLITS};
use crate::gemm::model::{is_bare, seconds};
use crate::gemm::plan::{Plan, TileChoice};
use crate::gemm::problem::Problem;
use crate::gemm::schedule::grouped::{most_tiles, rows_of};
use crate::units::count;

impl Plan {
    /// The plan that takes the least time by the model of a machine. A plan with a [`Plan::tail`]
    /// is considered only if the tail is short and follows many waves; other tails were slower when
    /// measured. `--tune` measures all of them.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Plan, Problem};
    ///
    /// let machine = Machine::named("H200").unwrap();
    /// let problem = Problem::new(Element::Bf16, [4096, 4096, 4096]).unwrap();
    /// let plan = Plan::of(&problem, &machine);
    /// assert_eq!((plan.rows, plan.columns, plan.blocks), (128, 256, 128));
    /// assert_eq!(plan.workspace(&problem), 0);
    /// ```
    pub fn of(problem: &Problem, machine: &Machine) -> Plan {
        fastest(problem, machine, |plan| plan.tail == 0 || plan.shares_few(problem))
    }

    /// All candidates, the fastest one first, each with its seconds by the model.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_planners::gemm::{Plan, Problem};
    ///
    /// let machine = Machine::named("H200").unwrap();
    /// let problem = Problem::new(Element::Bf16, [16, 4096, 14336]).unwrap();
    /// let plans = Plan::candidates(&problem, &machine);
    /// // Operands are swapped: the rows of B, the weights, are the rows of tiles. They are read at
    /// // the bandwidth of memory.
    /// assert!(plans[0].1.swapped && plans[0].0 < 40e-6);
    /// assert!(plans.windows(2).all(|two| two[0].0 <= two[1].0));
    /// ```
    pub fn candidates(problem: &Problem, machine: &Machine) -> Vec<(f64, Plan)> {
        let mut plans = plans(problem, machine);
        plans.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        plans
    }
}

/// The admitted plan that takes the least time.
pub(crate) fn fastest(problem: &Problem, machine: &Machine, admitted: impl Fn(&Plan) -> bool) -> Plan {
    let warps = if problem.is_by_warpgroups(machine) { None } else { Some([2, 2]) };
    let first = TileChoice { warps, ..TileChoice::of(64, 64) };
    let plans = plans(problem, machine).into_iter().filter(|(_, plan)| admitted(plan));
    let least = plans.min_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    least.map_or_else(|| Plan::tiled(problem, machine, first), |(_, plan)| plan)
}

/// All plans that can be carried out, each with its seconds.
pub(crate) fn plans(problem: &Problem, machine: &Machine) -> Vec<(f64, Plan)> {
    if !problem.is_by_warpgroups(machine) {
        return warps::plans(problem, machine);
    }
    let mut plans = Vec::new();
    for swapped in [false, true] {
        let [m, n, k] = problem.mma_sizes();
        let [m, n] = if swapped { [n, m] } else { [m, n] };
        // Three warpgroups leave few registers besides the accumulators, and MMA of 8-bit types
        // takes half the time.
        let three = problem.pairs().is_none() && !problem.is_promoted() && problem.operand_type().bytes() > 1;
        let three = three.then_some((192, 3));
        for (rows, warpgroups) in [(128, 2), (64, 1), (256, 2), (128, 1)].into_iter().chain(three) {
            let usual = widths(n);
            let filling = if problem.begins_at_lines() { Vec::new() } else { filling([m, n], rows, machine) };
            let others = filling.into_iter().filter(|columns| !usual.contains(columns));
            let others = others.map(|columns| (columns, false)).collect::<Vec<_>>();
            for (columns, usual) in usual.iter().map(|columns| (*columns, true)).chain(others) {
                let own = TileChoice { swapped, warpgroups, ..TileChoice::of(rows, columns) };
                if usual && (rows, warpgroups) == (128, 2) && columns >= PING_PONG_COLUMNS {
                    let tile = TileChoice { ping_pong: true, ..own };
                    for plan in banded(problem, machine, tile) {
                        if plan.refusal(problem, machine).is_none() && plan.waves(problem) > 1 {
                            plans.push((seconds(&plan, problem, machine), plan));
                        }
                    }
                }
                for blocks_per_sm in 1..=3 {
                    let tile = |split_k, cluster| TileChoice { split_k, cluster, blocks_per_sm, ..own };
                    let tiles = count(m, rows).saturating_mul(count(n, columns)).saturating_mul(problem.batch());
                    let slots = i64::from(machine.multiprocessors) * blocks_per_sm;
                    for split_k in shares(tiles, slots, count(k, problem.k_tile())) {
                        // If rows begin at cache lines, a cluster pays off: it reads once from
                        // memory what two column tiles would otherwise read one after the other.
                        let half = columns >= 64 && count(n, columns) == 2;
                        let once = half && rows > columns && problem.bytes() as u64 > 2 * machine.l2_bytes;
                        let clusters: &[i64] = match problem.begins_at_lines() {
                            _ if !usual => &[2],
                            true if once => &[2],
                            true => &[1],
                            false => &[1, 2],
                        };
                        let tiles = clusters.iter().map(|cluster| tile(split_k, *cluster));
                        for plan in tiles.flat_map(|tile| banded(problem, machine, tile)) {
                            // Fewer blocks per SM have more stages.
                            let fewer = plan.blocks <= i64::from(machine.multiprocessors) * (blocks_per_sm - 1);
                            // Half of the columns alone pays off if whole rows of D are stored.
                            let alone = plan.cluster == 1 && half;
                            let thin = alone && columns % 16 != 0 && plan.panel_bytes(problem, machine) < 64;
                            if !fewer && !thin && plan.refusal(problem, machine).is_none() {
                                let lasts =
                                    TAIL_SPLITS.iter().filter_map(|own| plan.sharing_last(problem, machine, *own));
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

/// The plans of a tile. If the raster band is short only because that leaves no tiles outside, and
/// the work is long, there is a second plan with a longer band, which reads operands less often.
fn banded(problem: &Problem, machine: &Machine, tile: TileChoice) -> impl Iterator<Item = Plan> {
    let plan = Plan::tiled(problem, machine, tile);
    let few = plan.raster_band < LEAST_BAND && is_bare(problem) && problem.operations() >= SHORT_WORK;
    let other = few
        .then(|| Plan::in_bands(problem, machine, tile, LEAST_BAND))
        .filter(|other| other.raster_band > plan.raster_band);
    std::iter::once(plan).chain(other)
}

/// The tile widths to try, widest first: multiples of 16, the width of a narrow matrix, and half of
/// that width.
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

/// Widths that are not multiples of 16 but make an odd number of column tiles fill whole waves.
fn filling([m, n]: [i64; 2], rows: i64, machine: &Machine) -> Vec<i64> {
    let along = count(m, rows);
    let columns = (1..=FILLED_WAVES).filter_map(|waves| {
        let across = waves * i64::from(machine.multiprocessors) / along;
        let columns = count(count(n, across.max(1)), 8) * 8;
        let odd = along % 2 == 0 && count(n, columns) % 2 == 1;
        (odd && columns < rows && (PING_PONG_COLUMNS..=256).contains(&columns)).then_some(columns)
    });
    columns.collect()
}

/// The split-K factors to try: 1, and those with which the grid makes one or two waves.
fn shares(tiles: i64, slots: i64, steps: i64) -> Vec<i64> {
    let mut shares = vec![1];
    for rounds in 1..=2 {
        for split_k in [slots * rounds / tiles.max(1), slots * rounds / tiles.max(1) / 8 * 8] {
            if split_k > 1 && split_k <= steps && split_k <= 64 && !shares.contains(&split_k) {
                shares.push(split_k);
            }
        }
    }
    if tiles < slots {
        shares.extend(
            [2, 4, 16].into_iter().filter(|split_k| *split_k <= steps && !shares.contains(split_k)).collect::<Vec<_>>(),
        );
    }
    shares
}

/// The candidates of a grouped GEMM, the fastest one first, each with its seconds: those of groups
/// of equal size whose last tile is half full.
pub(crate) fn grouped(problem: &Problem, machine: &Machine) -> Result<Vec<(f64, Plan)>, PlanError> {
    let (even, processors) = (problem.even()?, i64::from(machine.multiprocessors));
    let [rows, ..] = even.sizes();
    // A grouped D may be staged in shared memory where a batched one is not.
    let fitting = |(seconds, plan): (f64, Plan)| {
        let stages = plan.stages.min(plan.most_stages(problem, machine));
        (seconds, Plan { stages, ..plan })
    };
    let plans = Plan::candidates(&even, machine).into_iter().map(fitting);
    let plans = plans.filter(|(_, plan)| plan.refusal(problem, machine).is_none());
    let likely = |(seconds, mut plan): (f64, Plan)| {
        let (own, across) = (rows_of(&plan), if plan.swapped { plan.rows } else { plan.columns });
        // As many blocks as groups of any sizes may need.
        let units = most_tiles(problem, own).saturating_mul(count(problem.mma_sizes()[1], across));
        plan.blocks = units.min(processors * plan.blocks_per_sm.max(1)).max(1);
        // Consecutive tiles of a group share its matrix of B in L2.
        plan.raster_band = if plan.swapped { 1 } else { count(rows, own).min(BAND) };
        let tiles = (rows as f64 / own as f64 + 0.5).max(1.0);
        (seconds * tiles / count(rows, own) as f64, plan)
    };
    let mut plans: Vec<(f64, Plan)> = plans.map(likely).collect();
    plans.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Ok(plans)
}
