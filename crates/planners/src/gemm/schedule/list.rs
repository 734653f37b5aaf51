//! The tiles of a list of problems in one launch, each with its M, N and K.
//!
//! Law: the tiles of all problems are numbered consecutively, and block `b` of `B` takes the
//! numbers `b, b + B, b + 2B, ..`. All tiles have the same shape, instructions and stages. The
//! index of the problem selects the tensors and the number of k-tiles.

use std::ops::Range;

use tilewright_kernel::{Build, Element, KernelError, Num};
use tilewright_layout::Extent;
use tilewright_layout::symbolic::Expr;

use crate::gemm::index::{minus, overflow, plus, times};
use crate::gemm::plan::Plan;
use crate::gemm::problem::Problem;
use crate::gemm::schedule::grid::Grid;
use crate::gemm::schedule::unit::Unit;
use crate::units::count;

/// The tiles of a list.
pub(crate) struct Listed {
    problems: Vec<ProblemTiles>,
    blocks: i64,
}

/// The tiles of one problem.
struct ProblemTiles {
    /// The number of the first tile, and the number of tiles.
    first: i64,
    count: i64,
    /// K-tiles.
    steps: i64,
    grid: Grid,
}

impl Listed {
    /// The tile list of a plan.
    pub(crate) fn of(problems: &[Problem], plan: &Plan) -> Listed {
        let mut first = 0;
        let tiles = |problem: &Problem| {
            let own = plan.of_problem(problem);
            let ([m, n, k], steps) = (own.extents(problem), problem.k_tile());
            let (count, steps, before) = (own.units(problem), count(k, steps), first);
            first += count;
            let grid = Grid {
                across: Expr::from(crate::units::count(n, plan.columns)),
                beside: 1,
                bands: Expr::from(crate::units::count(m, plan.rows * own.raster_band)),
                band: own.raster_band,
                batch: None,
                steps: Expr::from(steps),
                split_k: 1,
                blocks: plan.blocks,
                some: None,
                above: None,
            };
            ProblemTiles { first: before, count, steps, grid }
        };
        Listed { problems: problems.iter().map(tiles).collect(), blocks: plan.blocks }
    }

    /// The number of tiles of all problems.
    fn units(&self) -> i64 {
        self.problems.last().map_or(0, |last| last.first + last.count)
    }

    /// The number of tiles of a block.
    pub(crate) fn own(&self, block: &Expr) -> Result<Expr, KernelError> {
        minus(&Expr::from(self.units()), block)?.divide_up(&Expr::from(self.blocks)).ok_or_else(overflow)
    }

    /// The tile of a block in an iteration.
    pub(crate) fn unit(&self, k: &Build, block: &Expr, iteration: &Expr) -> Result<Unit, KernelError> {
        let number = k.index(&plus(&times(iteration, &Expr::from(self.blocks))?, block)?)?;
        // The index of the problem, the tile along the rows and along the columns, and the k-tiles.
        let place = k.register(Element::I32, 4)?;
        place.set(&[k.number(0_i32); 4])?;
        let firsts: Vec<i64> = self.problems.iter().map(|tiles| tiles.first).collect();
        among(k, number, &firsts, 0..firsts.len(), &|which| {
            let tiles = &self.problems[which];
            let own = k.index_up_to(number - k.number(tiles.first as i32), tiles.count - 1)?;
            let at = tiles.grid.at(k, own)?;
            let [which, steps] = [which as i64, tiles.steps].map(|number| k.number(number as i32));
            place.set(&[which, k.index(&at.row)?, k.index(&at.column)?, steps])
        })?;
        let greatest = |of: &dyn Fn(&ProblemTiles) -> i64| self.problems.iter().map(of).max().unwrap_or(0);
        let tiles = greatest(&|tiles| tiles.count - 1);
        let [which, row, column, steps] = place.numbers()?[..] else { return Err(overflow()) };
        Ok(Unit {
            row: k.index_up_to(row, tiles)?,
            column: k.index_up_to(column, tiles)?,
            matrix: None,
            split: None,
            first: Expr::from(0),
            steps: k.index_up_to(steps, greatest(&|tiles| tiles.steps))?,
            rows: None,
            boxed: None,
            last: None,
            problem: Some(k.index_up_to(which, self.problems.len() as i64 - 1)?),
            above: None,
        })
    }
}

/// Emits `body` for each problem of a list, in the branch for work units of that problem; once if
/// there is no list.
pub(crate) fn each(
    k: &Build,
    unit: &Unit,
    problems: usize,
    body: &dyn Fn(usize) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    match &unit.problem {
        None => body(0),
        Some(problem) => {
            let numbers: Vec<i64> = (0..problems as i64).collect();
            among(k, k.index(problem)?, &numbers, 0..problems, body)
        }
    }
}

/// Emits `body` for each of several increasing numbers, in the branch of the largest one that is at
/// most `at`, found by bisection. Its instructions stay in the branch, and are not hoisted before
/// the bisection.
fn among<'k>(
    k: &'k Build,
    at: Num<'k>,
    firsts: &[i64],
    range: Range<usize>,
    body: &dyn Fn(usize) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    if range.len() < 2 {
        return k.in_place(|| body(range.start));
    }
    let middle = range.start + range.len() / 2;
    let below = at.lt(k.number(firsts[middle] as i32));
    k.choose(
        below,
        || among(k, at, firsts, range.start..middle, body),
        || among(k, at, firsts, middle..range.end, body),
    )
}
