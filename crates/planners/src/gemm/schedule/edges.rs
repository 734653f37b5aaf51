//! Tiles at an edge: which lines are loaded.
//!
//! Law: TMA takes some three times longer for a line outside of a tensor, which it fills with
//! zeros, than for one inside. So for a tile at an edge, after its first stages have been filled
//! whole, only the lines inside are loaded. The rest of a stage keeps what an earlier load left
//! there; it makes rows and columns that are not stored.

use tilewright_kernel::KernelError;
use tilewright_layout::symbolic::Expr;

use crate::gemm::implicit;
use crate::gemm::index::{minus, overflow, plus, times};
use crate::gemm::plan::Plan;
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::schedule::unit::Unit;
use crate::product::count;

/// Lines outside from which on a tail is loaded alone.
const TAIL_LINES: i64 = 16;

/// The tails of a problem's tiles.
pub(crate) struct Edges {
    /// For the operand along the rows of tiles and for that along the columns: the number of tiles,
    /// and how many lines a block loads of the last one, in whole blocks of 8; none if it is loaded
    /// whole.
    tails: [Option<(i64, i64)>; 2],
}

/// The lines of a tail that are loaded of each operand; none for whole tiles.
pub(crate) type Loaded = [Option<i64>; 2];

impl Edges {
    /// The tails of a plan for the sizes of a problem, given the contiguous mode of each operand,
    /// and whether clusters have tiles side by side.
    pub(crate) fn of(problem: &Problem, plan: &Plan, lies: [Contiguous; 2], side_by_side: bool) -> Edges {
        // Of a split of K, where blocks share those of a tile.
        let steps = count(problem.sizes()[2], problem.k_tile()) / plan.split_k.max(1);
        // Reductions of rows or columns are taken of all columns of a tile, and pairs are loaded in
        // halves.
        let more = problem.pairs().is_some() || problem.by_products().next().is_some();
        // Tiles of groups begin anywhere, and those of folded modes are boxes.
        let more = more || problem.row_groups().is_some() || implicit::of(problem).is_some();
        if more || plan.tail > 0 || steps <= plan.stages {
            return Edges::none();
        }
        let [m, n, _] = plan.extents(problem);
        // What the blocks of a cluster load for each other comes in parts of as many lines.
        let parts = |side: usize| if side_by_side == (side == 0) { plan.cluster } else { 1 };
        let tail = |side: usize, extent: i64, tile: i64| {
            let (tiles, parts) = (count(extent, tile), parts(side));
            let lines = count(extent - (tiles - 1) * tile, 8 * parts) * 8;
            (matches!(lies[side], Contiguous::Columns) && lines * parts + TAIL_LINES <= tile).then_some((tiles, lines))
        };
        // A last column of its own kind is none of theirs.
        let others = side_by_side && plan.ends_above(problem);
        let columns = if others { None } else { tail(1, n, plan.columns) };
        Edges { tails: [tail(0, m, plan.rows), columns] }
    }

    /// Tiles that are loaded as a whole.
    pub(crate) fn none() -> Edges {
        Edges { tails: [None; 2] }
    }

    /// Whether of the last tiles along the rows, 0, or along the columns, 1, a tail is loaded.
    pub(crate) fn has_tail(&self, side: usize) -> bool {
        self.tails[side].is_some()
    }

    /// Whether no tile has a tail.
    pub(crate) fn is_none(&self) -> bool {
        self.tails == [None; 2]
    }

    /// The cases of what is loaded, each with 1 if it applies to a part of the work, else 0.
    pub(crate) fn cases(&self, unit: &Unit) -> Result<Vec<(Loaded, Expr)>, KernelError> {
        let one = Expr::from(1);
        // 1 at the last tile and past it, where fewer lie than before it (`Plan::refusal`).
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
