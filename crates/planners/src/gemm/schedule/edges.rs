//! Tiles at an edge: which lines are loaded.
//!
//! Law: TMA takes about three times longer for a line outside of a tensor, which it fills with
//! zeros, than for one inside. So for a tile at an edge, once each stage has been filled by whole
//! boxes, only the lines inside are loaded. The rest of a stage keeps what an earlier load left
//! there; it affects only rows and columns that are not stored.
//!
//! If there is only one row of tiles, all tiles are at the edge along their rows, and no stage is
//! filled by whole boxes. Then threads fill the lines outside with zeros while the first loads are
//! in flight ([`zeroed`]), and every load covers only the lines inside.

use tilewright_kernel::KernelError;
use tilewright_layout::symbolic::Expr;

use crate::gemm::implicit;
use crate::gemm::index::{minus, overflow, plus, times};
use crate::gemm::plan::Plan;
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::schedule::unit::Unit;
use crate::units::count;

/// The least number of lines outside for which the lines inside are loaded separately.
const TAIL_LINES: i64 = 16;

/// The lines inside, a multiple of 8, of the only row of tiles of a plan, if the lines outside are
/// zeros that threads store once, before the first load; None if all lines are loaded, or if there
/// are several rows of tiles. `contiguous` is the mode in which the operand is read.
pub(crate) fn zeroed(problem: &Problem, plan: &Plan, contiguous: Contiguous) -> Option<i64> {
    let lines = count(plan.extents(problem)[0], 8) * 8;
    let is_one = plan.warps.is_none() && plan.cluster == 1 && matches!(contiguous, Contiguous::Columns);
    (is_one && !is_whole(problem, plan) && lines + TAIL_LINES <= plan.rows).then_some(lines)
}

/// Whether all tiles are loaded whole, whatever their sizes are.
fn is_whole(problem: &Problem, plan: &Plan) -> bool {
    // The k-tiles of a split, with split-K.
    let steps = count(problem.sizes()[2], problem.k_tile()) / plan.split_k.max(1);
    // Reductions read all columns of a tile, and gated pairs are loaded in halves.
    let more = problem.pairs().is_some() || problem.reductions().next().is_some();
    // Row groups begin at any row, and folded modes use boxes.
    let more = more || problem.row_groups().is_some() || implicit::of(problem).is_some();
    more || plan.tail > 0 || steps <= plan.stages
}

/// The edge tiles of a problem.
pub(crate) struct Edges {
    /// The lines of the operand along the rows that are loaded of every tile; None if some tiles
    /// are loaded whole.
    always: Option<i64>,
    /// For the operand along the rows of tiles and for that along the columns: the number of tiles,
    /// and the lines of the last tile that a block loads, a multiple of 8; None if it is loaded
    /// whole.
    tails: [Option<(i64, i64)>; 2],
}

/// The lines of an edge tile that are loaded of each operand; None for whole tiles.
pub(crate) type Loaded = [Option<i64>; 2];

impl Edges {
    /// The edge tiles of a plan for a problem, by the contiguous mode of each operand.
    /// `side_by_side` says whether clusters have tiles side by side.
    pub(crate) fn of(problem: &Problem, plan: &Plan, contiguous: [Contiguous; 2], side_by_side: bool) -> Edges {
        if is_whole(problem, plan) {
            return Edges::none();
        }
        let [m, n, _] = plan.extents(problem);
        // The blocks of a cluster multicast equal parts of these lines.
        let parts = |side: usize| if side_by_side == (side == 0) { plan.cluster } else { 1 };
        let tail = |side: usize, extent: i64, tile: i64| {
            let (tiles, parts) = (count(extent, tile), parts(side));
            let lines = count(extent - (tiles - 1) * tile, 8 * parts) * 8;
            (matches!(contiguous[side], Contiguous::Columns) && lines * parts + TAIL_LINES <= tile)
                .then_some((tiles, lines))
        };
        // A last column whose clusters are of the other kind is excluded.
        let others = side_by_side && plan.ends_above(problem);
        let columns = if others { None } else { tail(1, n, plan.columns) };
        let always = zeroed(problem, plan, contiguous[0]);
        let rows = if always.is_some() { None } else { tail(0, m, plan.rows) };
        Edges { always, tails: [rows, columns] }
    }

    /// All tiles are loaded whole.
    pub(crate) fn none() -> Edges {
        Edges { always: None, tails: [None; 2] }
    }

    /// In how many of the `steps` k-tiles of a tile with `stages` stages lines outside are loaded,
    /// along the rows (0) or along the columns (1), as a share of all.
    pub(crate) fn share_outside(&self, side: usize, stages: i64, steps: i64) -> f64 {
        match (side, self.always, self.tails[side]) {
            (0, Some(_), _) => 0.0,
            (_, _, Some(_)) => stages as f64 / steps as f64,
            _ => 1.0,
        }
    }

    /// Whether all k-tiles of all tiles are loaded in the same way, that of [`Edges::first`].
    pub(crate) fn is_none(&self) -> bool {
        self.tails == [None; 2]
    }

    /// What is loaded while stages are filled for the first time.
    pub(crate) fn first(&self) -> Loaded {
        [self.always, None]
    }

    /// The possible loads, each with 1 if it applies to a work unit, else 0.
    pub(crate) fn cases(&self, unit: &Unit) -> Result<Vec<(Loaded, Expr)>, KernelError> {
        let one = Expr::from(1);
        // 1 at the last tile and past it. There are fewer tiles past it than before it
        // (`Plan::refusal`).
        let at_edge = |tail: Option<(i64, i64)>, tile: &Expr| match tail {
            None => Ok(Expr::from(0)),
            Some((tiles, _)) => plus(tile, &one)?.floor_div(&Expr::from(tiles)).ok_or_else(overflow),
        };
        let at = [at_edge(self.tails[0], &unit.row)?, at_edge(self.tails[1], &unit.column)?];
        let mut cases = Vec::new();
        for rows in [false, true] {
            for columns in [false, true] {
                let chosen = [rows, columns];
                let there = (0..2).all(|side| !chosen[side] || self.tails[side].is_some());
                if !there {
                    continue;
                }
                let is = |side: usize| if chosen[side] { Ok(at[side].clone()) } else { minus(&one, &at[side]) };
                let loaded = |side: usize| self.tails[side].filter(|_| chosen[side]).map(|(_, lines)| lines);
                cases.push(([self.always.or(loaded(0)), loaded(1)], times(&is(0)?, &is(1)?)?));
            }
        }
        Ok(cases)
    }
}
