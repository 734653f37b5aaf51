//! The plans of warps that are considered, for machines without wgmma.
//!
//! Law: all tiles of powers of two and of three times a power of two, by every grid of one to eight
//! warps, whose warps have at most 64 x 64 or 32 x 128 accumulators, as the refusals of a plan say.
//! Each with a producer that loads by TMA, and without, where the machine has TMA.

use tilewright_kernel::machine::Machine;

use crate::gemm::candidates::shares;
use crate::gemm::fitted::TAIL_SPLITS;
use crate::gemm::model::seconds;
use crate::gemm::plan::{Plan, TileChoice};
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::units::count;

/// Rows and columns of tiles.
const SIDES: [i64; 8] = [16, 32, 64, 96, 128, 160, 192, 256];
/// Warps along rows and columns.
const WARPS: [[i64; 2]; 9] = [[1, 1], [1, 2], [2, 1], [1, 4], [2, 2], [4, 1], [2, 4], [4, 2], [8, 1]];
/// The most blocks that share a multiprocessor.
const MOST_RESIDENT: i64 = 4;

/// All plans that can be carried out, each with its seconds.
pub(super) fn plans(problem: &Problem, machine: &Machine) -> Vec<(f64, Plan)> {
    let mut plans = Vec::new();
    let producers: &[bool] = if machine.target.has_tma() { &[true, false] } else { &[false] };
    for swapped in [false, true] {
        let [m, n, k] = problem.mma_sizes();
        let [m, n] = if swapped { [n, m] } else { [m, n] };
        // A warp has 16 columns of D at least. Pairs have a whole line of each half.
        let in_lines = problem.readable_on(machine)[1] == Ok(Contiguous::Rows);
        let of_pairs = if in_lines { 2 * LINE_BYTES / i64::from(problem.operand_type().bytes()) } else { 32 };
        let least = |is_paired: bool| if is_paired && problem.pairs().is_some() { of_pairs } else { 16 };
        let useful = |side: i64, extent: i64, least: i64| side < 2 * count(extent, least) * least;
        for rows in SIDES.into_iter().filter(|rows| useful(*rows, m, least(swapped))) {
            for columns in SIDES.into_iter().filter(|columns| useful(*columns, n, least(!swapped))) {
                let tiles = count(m, rows).saturating_mul(count(n, columns)).saturating_mul(problem.batch());
                let grids = WARPS.into_iter().flat_map(|warps| (1..=MOST_RESIDENT).map(move |blocks| (warps, blocks)));
                for (producer, (warps, blocks_per_sm)) in
                    producers.iter().flat_map(|producer| grids.clone().map(move |grid| (*producer, grid)))
                {
                    let slots = i64::from(machine.multiprocessors) * blocks_per_sm;
                    let own = TileChoice { swapped, warps: Some(warps), producer, ..TileChoice::of(rows, columns) };
                    let tile = |split_k| TileChoice { split_k, blocks_per_sm, ..own };
                    let one = Plan::tiled(problem, machine, tile(1));
                    // Fewer resident blocks have more stages.
                    let fewer = one.blocks <= i64::from(machine.multiprocessors) * (blocks_per_sm - 1);
                    if one.refusal(problem, machine).is_some() {
                        continue;
                    }
                    for split_k in shares(tiles, slots, count(k, problem.k_tile())) {
                        let plan = Plan::tiled(problem, machine, tile(split_k));
                        let fewer = if split_k == 1 { fewer } else { plan.blocks <= slots - slots / blocks_per_sm };
                        if fewer || plan.refusal(problem, machine).is_some() {
                            continue;
                        }
                        let lasts = TAIL_SPLITS.iter().filter_map(|own| plan.sharing_last(problem, machine, *own));
                        plans.extend(lasts.map(|last| (seconds(&last, problem, machine), last)));
                        plans.push((seconds(&plan, problem, machine), plan));
                    }
                }
            }
        }
    }
    plans
}
