//! Tiles at an edge: which lines are loaded.
//!
//! Law: TMA takes about three times longer for a line outside of a tensor, which it fills with
//! zeros, than for one inside. So for a tile at an edge, once each stage has been filled by whole
//! boxes, only the lines inside are loaded. The rest of a stage keeps what an earlier load left
//! there; it affects only rows and columns that are not stored.

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

/// The edge tiles of a problem.
pub(crate) struct Edges {
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
        // The k-tiles of a split, with split-K.
        let steps = count(problem.sizes()[2], problem.k_tile()) / plan.split_k.max(1);
        // Reductions read all columns of a tile, and gated pairs are loaded in halves.
        let more = problem.pairs().is_some() || problem.reductions().next().is_some();
        // Row groups begin anywhere, and folded modes use boxes.
        let more = more || problem.row_groups().is_some() || implicit::of(problem).is_some();
        if more || plan.tail > 0 || steps <= plan.stages {
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
        Edges { tails: [tail(0, m, plan.rows), columns] }
    }

    /// All tiles are loaded whole.
    pub(crate) fn none() -> Edges {
        Edges { tails: [None; 2] }
    }

    /// Whether only a part is loaded of the last tiles along the rows (0) or along the columns (1).
    pub(crate) fn has_tail(&self, side: usize) -> bool {
        self.tails[side].is_some()
    }

    /// Whether all tiles are loaded whole.
    pub(crate) fn is_none(&self) -> bool {
        self.tails == [None; 2]
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
                cases.push(([loaded(0), loaded(1)], times(&is(0)?, &is(1)?)?));
            }
        }
        Ok(cases)
    }
}
