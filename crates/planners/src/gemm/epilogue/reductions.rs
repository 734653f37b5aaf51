//! Reductions of rows and columns of D, taken in the epilogue.
//!
//! Law: a reduction has one number for each row, or for each column, of each matrix: the sum or the
//! maximum of an expression of the elements there, in f32, before they are rounded to the type of
//! D. NaN is greater than every number.
//!
//! A block leaves one number for each row of its tile, and one for each column and warp. A second
//! kernel reduces these in a fixed order, so that the same GEMM gives the same bits each time. With
//! row groups each column has a number for each group (`reductions/grouped.rs`).

mod grouped;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{
    Build, Distributed, Distribution, Element, Fragment, Kernel, KernelError, Num, Reduction, View,
};
use tilewright_layout::atoms::TiledMma;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, IntoShape, Layout, Slot, Tree};

use crate::error::PlanError;
use crate::expression::Expression;
use crate::gemm::epilogue::inputs::count_of;
use crate::gemm::index::tile_at;
use crate::gemm::index::{minus, times};
use crate::gemm::plan::Plan;
use crate::gemm::problem::Problem;
use crate::gemm::problem::reductions::{Each, EpilogueReduction};
use crate::gemm::schedule::grouped::{most_tiles, rows_of};
use crate::gemm::schedule::unit::Unit;
use crate::gemm::step::{ProductTensor, Step, StepKind};
use crate::reduce::{ReduceOptions, reduce};
use crate::terms::Statistic;

/// The layouts of the partial results of a reduction, and the kernels that finish it on a machine.
pub(crate) fn steps(
    (by, number): (&EpilogueReduction, usize),
    (problem, plan): (&Problem, &Plan),
    machine: &Machine,
    workspaces: &mut Vec<i64>,
) -> Result<(ProductTensor, Vec<Step>), PlanError> {
    let parts = Parts::of(by, problem, plan);
    // With row groups, tiles may leave some column results unwritten.
    let grouped = problem.row_groups().is_some();
    if parts.tiles == 1 && !(grouped && by.each == Each::Column) {
        return Ok((ProductTensor::Reduction(number), Vec::new()));
    }
    let mut workspace = |bytes: i64| {
        workspaces.push(bytes);
        ProductTensor::Workspace(workspaces.len() - 1)
    };
    let first = workspace(parts.bytes());
    if grouped {
        let each = if plan.swapped { 1 } else { plan.warps_along_rows() };
        let kernel = grouped::kept(by, problem, &parts, [rows_of(plan), each], machine)?;
        let does = format!("reduces the partial results of each group: {by}");
        let step = Step::new(
            StepKind::Reduction,
            kernel,
            vec![first, ProductTensor::Ends, ProductTensor::Reduction(number)],
            does,
        );
        return Ok((first, vec![step]));
    }
    let planned = reduce(machine, by.statistic, (&parts.layout()?, Element::F32), &[1], ReduceOptions::default())?;
    // The scratch memory of the finishing kernel, or between its two launches.
    let (kernel, between) = (planned.kernel(), planned.between());
    let left = kernel.program().tensors().skip(between.start).take(between.len());
    let left = left.map(|tensor| tensor.elements.known().unwrap_or(0).saturating_mul(tensor.element.bytes().into()));
    let left: Vec<ProductTensor> = left.map(workspace).collect();
    let launch = |kernel: &Kernel, read: &[ProductTensor], written: &[ProductTensor]| {
        let does = format!("reduces the partial results: {by}");
        let step = Step::new(StepKind::Reduction, kernel.clone(), [read, written].concat(), does);
        Step { writes: written.len(), sizes: planned.sizes().to_vec(), ..step }
    };
    let result = ProductTensor::Reduction(number);
    let steps = match planned.second() {
        None => vec![launch(kernel, &[first], &[&left[..], &[result]].concat())],
        Some(second) => vec![launch(kernel, &[first], &left), launch(second, &left, &[result])],
    };
    Ok((first, steps))
}

/// How the epilogue reduces the elements of its tiles.
pub(crate) struct Taker {
    of: Expression,
    reduction: Reduction,
    /// The neutral element of the reduction.
    neutral: f64,
    /// Whether there is one number for each row of a tile, not for each column.
    rows: bool,
    /// The distribution of the accumulators of a strip over threads.
    held: Distribution,
    /// The same distribution, as `(rows of a warp, warps, columns)`.
    apart: Distribution,
    /// Rows and columns of a strip.
    strip: [i64; 2],
    /// Where the reduced elements end.
    limit: Limit,
    /// With row groups: whether the partial results have a mode along rows or along tiles.
    grouped: Option<Grouped>,
    /// The layout of the partial results, and whether they have a batch mode.
    layout: Layout,
    batch: bool,
    warps: i64,
}

/// Where a reduction ends along its mode.
#[derive(Clone, Copy)]
enum Limit {
    /// At the edge of the tile.
    None,
    /// At an extent of D.
    At(i64),
    /// At the end of the row group of the tile.
    Group,
}

/// The partial results of row groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grouped {
    /// A number for each row.
    Rows,
    /// Numbers for each column, by the number of the tile among all groups.
    Tiles,
}

/// The shape of partial results, `(E,T,L)`: `T` tiles, or warps of tiles, for each of `E` rows or
/// columns, in `L` matrices.
pub(crate) struct Parts {
    pub(crate) elements: i64,
    pub(crate) tiles: i64,
    pub(crate) batch: i64,
}

impl Parts {
    pub(crate) fn of(by: &EpilogueReduction, problem: &Problem, plan: &Plan) -> Parts {
        let ([m, n, _], [along, across]) = (problem.sizes(), plan.tiles(problem));
        let (elements, rows) = if by.each == Each::Row { (m, !plan.swapped) } else { (n, plan.swapped) };
        // Tiles of row groups begin where the groups do.
        let of_groups = problem.row_groups().map(|_| most_tiles(problem, rows_of(plan)));
        let [along, across] = match of_groups {
            Some(tiles) if plan.swapped => [along, tiles],
            Some(tiles) => [tiles, across],
            None => [along, across],
        };
        let tiles = if rows { across } else { along * plan.warps_along_rows() };
        Parts { elements, tiles, batch: problem.batch() }
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.elements.saturating_mul(self.tiles).saturating_mul(self.batch).saturating_mul(4)
    }

    pub(crate) fn layout(&self) -> Result<Layout, PlanError> {
        let Parts { elements, tiles, batch } = self;
        Ok(Layout::strided((*elements, *tiles, *batch), (1, *elements, elements.saturating_mul(*tiles)))?)
    }
}

impl Taker {
    /// The reduction of a strip, whose accumulators are those of the tiled MMA `part`.
    pub(crate) fn of(
        by: &EpilogueReduction,
        problem: &Problem,
        plan: &Plan,
        part: &TiledMma,
        [rows, strip]: [i64; 2],
    ) -> Result<Taker, PlanError> {
        let parts = Parts::of(by, problem, plan);
        let along_rows = (by.each == Each::Row) != plan.swapped;
        let [m, n, _] = problem.sizes();
        let extents = if plan.swapped { [n, m] } else { [m, n] };
        let grouped = problem.row_groups().map(|_| if by.each == Each::Row { Grouped::Rows } else { Grouped::Tiles });
        let tile = plan.tile_of_d(problem);
        let together = usize::from(along_rows);
        let covered = plan.tiles(problem)[together] * tile[together];
        let shape = (rows, strip).into_shape()?;
        let (blocks, warps) = (count_of(part, rows) as i64, plan.warps_along_rows());
        let own = 16 * blocks;
        let all = own * warps;
        let apart = match plan.warps {
            None => Layout::strided(
                ((4, 8, 4, plan.warpgroups), (2, 2, strip / 8, blocks)),
                ((2 * all, 1, own, 4 * own), (all, 8, 8 * all, 16)),
            ),
            Some([_, across]) => Layout::strided(
                ((4, 8, warps, across), (2, 2, blocks, strip / 8 / across)),
                ((2 * all, 1, own, 8 * all), (all, 8, 16, 8 * across * all)),
            ),
        };
        let apart = Distribution::new((own, warps, strip), apart?)?;
        let Parts { elements, tiles, batch } = parts;
        let all = elements.saturating_mul(tiles);
        let layout = match along_rows {
            true => Layout::strided((elements, tiles, batch), (1, elements, all))?,
            false => Layout::strided((1, tiles, elements, batch), (1, elements, 1, all))?,
        };
        Ok(Taker {
            of: by.of.clone(),
            reduction: if by.statistic == Statistic::Sum { Reduction::Sum } else { Reduction::Maximum },
            neutral: by.statistic.neutral(),
            rows: along_rows,
            held: Distribution::of_mma(&shape, part, tilewright_layout::atoms::Operand::C)?,
            apart,
            strip: [rows, strip],
            limit: match grouped {
                Some(Grouped::Tiles) => Limit::Group,
                _ if covered == extents[together] => Limit::None,
                _ => Limit::At(extents[together]),
            },
            grouped,
            layout,
            batch: batch > 1,
            warps,
        })
    }

    /// Declares the partial results.
    pub(crate) fn declare<'k>(&self, k: &'k Build, name: &str) -> Result<View<'k>, KernelError> {
        // Rows that belong to no group, and tiles that no group uses, keep what they have.
        let role = if self.grouped.is_some() { Role::Both } else { Role::Output };
        k.tensor_of(Element::F32, name, &self.layout, role)
    }

    /// Reduces a strip: combines it into `taken`, the running results of the rows of the tile, or
    /// writes the results of its columns.
    pub(crate) fn take<'k>(
        &self,
        k: &'k Build,
        values: &[Num<'k>],
        to: &View<'k>,
        unit: &Unit,
        column: &Expr,
        taken: &mut Option<Distributed<'k>>,
    ) -> Result<(), KernelError> {
        let made: Vec<Num<'k>> = values.iter().map(|value| self.of.number(k, Element::F32, &[*value])).collect();
        let extent = match (self.limit, &unit.rows) {
            (Limit::None, _) | (Limit::Group, None) => None,
            (Limit::At(extent), _) => Some(Expr::from(extent)),
            (Limit::Group, Some(rows)) => Some(rows.left()?),
        };
        let made = match extent {
            None => made,
            Some(extent) => {
                // Elements outside count as the neutral element.
                let mode = usize::from(self.rows);
                let first = if self.rows { column } else { &unit.row };
                let left = minus(&extent, &times(first, &Expr::from(self.strip[mode]))?)?;
                let (left, neutral) = (k.index(&left)?, k.number_of(Element::F32, self.neutral));
                let places = k.distributed_index(&self.held, mode)?.fragment().numbers()?;
                made.into_iter().zip(places).map(|(made, place)| place.lt(left).select(made, neutral)).collect()
            }
        };
        let tile: Fragment<'k> = k.register(Element::F32, made.len())?;
        tile.set(&made)?;
        if self.rows {
            let strip = tile.distributed(&self.held)?.reduce(&[1], self.reduction)?;
            *taken = Some(match taken.take() {
                None => strip,
                Some(before) => before.combine(&strip, self.reduction)?,
            });
            return Ok(());
        }
        let strip = tile.distributed(&self.apart)?.reduce(&[0], self.reduction)?;
        let zero = || Slot::At(Expr::from(0));
        let at = Tree::flat([zero(), Slot::At(self.tile_at(unit, &unit.row)), Slot::At(column.clone())])?;
        let tile = (1, self.warps, self.strip[1]);
        self.matrix(to, unit, (3, 2))?.local_tile(tile, at)?.store_distributed_predicated(&strip)
    }

    /// Writes the results of the rows of a tile.
    pub(crate) fn leave<'k>(
        &self,
        to: &View<'k>,
        unit: &Unit,
        taken: Option<Distributed<'k>>,
    ) -> Result<(), KernelError> {
        let Some(taken) = taken else { return Ok(()) };
        let tile = (self.strip[0], 1);
        self.matrix(to, unit, (2, 0))?
            .local_tile(tile, tile_at(&unit.row, Some(&self.tile_at(unit, &unit.column)))?)?
            .store_distributed_predicated(&taken)
    }

    /// The index of a tile among those that leave partial results; with row groups, among the tiles
    /// of all groups.
    fn tile_at(&self, unit: &Unit, own: &Expr) -> Expr {
        let of_groups = unit.rows.as_ref().filter(|_| self.grouped == Some(Grouped::Tiles));
        of_groups.map_or(own, |rows| &rows.tile).clone()
    }

    /// The partial results of the matrix of a work unit. `along` is the mode along rows or columns
    /// of D.
    fn matrix<'k>(&self, to: &View<'k>, unit: &Unit, (modes, along): (usize, usize)) -> Result<View<'k>, KernelError> {
        let shifted = match unit.rows.as_ref().filter(|_| self.grouped == Some(Grouped::Rows)) {
            Some(rows) => rows.along(to, along)?,
            None => to.clone(),
        };
        let to = &shifted;
        let number = unit.matrix.clone().filter(|_| self.batch).unwrap_or(Expr::from(0));
        to.slice(Tree::flat((0..modes).map(|_| Slot::All).chain([Slot::At(number)]))?)
    }
}
