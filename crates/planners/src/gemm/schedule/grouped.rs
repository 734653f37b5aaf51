//! The tiles of row groups (grouped GEMM).
//!
//! Law: the rows of A and of D are divided into consecutive groups, given by the end of each group.
//! Group `g` has its own matrix of B: `D(m,n) = f(sum over k of A(m,k) * B(n,k,g), ..)` for its
//! rows `m`. The ends are numbers in device memory, which the plan does not know. Groups may be
//! empty, and rows after the last end keep their values. An end that is less than an earlier one
//! counts as that one, and an end past the last row counts as the last row.
//!
//! A small kernel writes a table with an entry for each tile. Blocks of the GEMM read the entry of
//! a tile and offset A and D to its rows. Tiles begin where their group does, so a tile may contain
//! the end of its group; rows after that are not stored.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, LayoutError, Slot, Tree};

use crate::error::PlanError;
use crate::gemm::index::{overflow, plus, times};
use crate::gemm::plan::{Plan, WARPGROUP_THREADS};
use crate::gemm::problem::Problem;
use crate::gemm::schedule::unit::{TileRows, Unit, UnitPlace};
use crate::units::count;
use crate::units::follow_launches;

/// The numbers of a table entry: the first row of the tile, the end of its group, the index of the
/// group, and the number of tiles.
const NUMBERS: i64 = 4;

/// The most tiles that the row groups of a problem can have.
pub(crate) fn most_tiles(problem: &Problem, rows: i64) -> i64 {
    let groups = problem.row_groups().unwrap_or(1);
    // Each group has at most one partial tile.
    count(problem.sizes()[0], rows).saturating_add(groups - 1)
}

/// Rows of A of an output tile.
pub(crate) fn rows_of(plan: &Plan) -> i64 {
    if plan.swapped { plan.columns } else { plan.rows }
}

/// Bytes of the table.
pub(crate) fn bytes(problem: &Problem, plan: &Plan) -> i64 {
    most_tiles(problem, rows_of(plan)).saturating_mul(NUMBERS * 4)
}

/// A constant of the type of row and tile numbers.
pub(crate) fn number(k: &Build, number: i64) -> Num<'_> {
    k.number(number as i32)
}

/// The layout of the table.
fn entries(tiles: i64) -> Result<Layout, LayoutError> {
    Layout::strided((tiles, NUMBERS), (NUMBERS, 1))
}

/// The kernel that writes the table: a thread for each entry.
pub(crate) fn table(problem: &Problem, plan: &Plan, machine: &Machine) -> Result<Kernel, PlanError> {
    let (rows, groups) = (problem.sizes()[0], problem.row_groups().unwrap_or(1));
    let (own, tiles) = (rows_of(plan), most_tiles(problem, rows_of(plan)));
    if rows > i64::from(i32::MAX) - own {
        return Err(PlanError::TooLarge { what: "rows of groups", asked: rows, limit: i64::from(i32::MAX) - own });
    }
    let kernel = Kernel::build("product_tiles", |k| {
        let ends = k.input::<i32>("ends", Layout::strided(groups, 1))?;
        let table = k.tensor_of(Element::I32, "tiles", entries(tiles), Role::Output)?;
        k.threads(WARPGROUP_THREADS)?;
        follow_launches(k, machine);
        let block = k.block("(x,0)")?;
        let entry = table.local_tile((WARPGROUP_THREADS, NUMBERS), block)?.thread_part()?;
        let tile = plus(&times(&k.block_number(Axis::X), &WARPGROUP_THREADS.into())?, &k.thread()?)?;
        let tile = k.index(&tile)?;
        // The tiles and rows of the groups before; then the first row of this tile, the end of its
        // group, and the index of the group.
        let zero = number(k, 0);
        let state = k.register(Element::I32, 5)?;
        state.set(&[zero; 5])?;
        k.range(groups, |group| {
            let end = ends.slice(Tree::leaf(Slot::At(group.clone())))?.load()?.numbers()?[0];
            let [before, first, start, stop, of] = state.numbers()?[..] else {
                return Err(overflow());
            };
            let end = end.min(number(k, rows)).max(first);
            let whole = (end - first + number(k, own - 1)) / number(k, own);
            let after = before + whole;
            let here = before.le(tile).and(tile.lt(after));
            let at = first + (tile - before) * number(k, own);
            let group = k.index(&group)?;
            state.set(&[after, end, here.select(at, start), here.select(end, stop), here.select(group, of)])
        })?;
        let [all, _, start, stop, of] = state.numbers()?[..] else { return Err(overflow()) };
        let made = k.register(Element::I32, NUMBERS)?;
        made.set(&[start, stop, of, all])?;
        entry.store_predicated(&made)
    })?;
    Ok(kernel)
}

/// The tiles of all row groups, as blocks of the GEMM compute them.
pub(crate) struct GroupedTiles<'k> {
    table: View<'k>,
    /// The number of tiles.
    all: Num<'k>,
    /// The most tiles that are possible.
    most: i64,
    /// Tiles along the columns of D.
    across: i64,
    /// Tiles of a raster band.
    band: i64,
    blocks: i64,
    swapped: bool,
    /// Rows of D, and the number of groups.
    rows: i64,
    groups: i64,
    steps: Expr,
}

impl<'k> GroupedTiles<'k> {
    /// Declares the table.
    pub(crate) fn declare(
        k: &'k Build,
        problem: &Problem,
        plan: &Plan,
        steps: &Expr,
    ) -> Result<Option<GroupedTiles<'k>>, KernelError> {
        let Some(groups) = problem.row_groups() else { return Ok(None) };
        let across = if plan.swapped { plan.rows } else { plan.columns };
        let most = most_tiles(problem, rows_of(plan));
        let table = k.tensor_of(Element::I32, "tiles", entries(most), Role::Input)?;
        let tiles = GroupedTiles {
            table,
            all: k.number(0_i32),
            most,
            across: count(problem.mma_sizes()[1], across),
            band: if plan.swapped { 1 } else { plan.raster_band.clamp(1, most) },
            blocks: plan.blocks,
            swapped: plan.swapped,
            rows: problem.sizes()[0],
            groups,
            steps: steps.clone(),
        };
        Ok(Some(tiles))
    }

    /// Reads the number of tiles.
    pub(crate) fn read(self) -> Result<GroupedTiles<'k>, KernelError> {
        let [.., all] = self.entry(&Expr::from(0))?;
        Ok(GroupedTiles { all, ..self })
    }

    fn entry(&self, tile: &Expr) -> Result<[Num<'k>; NUMBERS as usize], KernelError> {
        let entry = self.table.slice(Tree::flat([Slot::At(tile.clone()), Slot::All])?)?.load_predicated()?;
        <[Num<'k>; NUMBERS as usize]>::try_from(entry.numbers()?).map_err(|_| overflow())
    }

    /// The number of tiles that a block takes.
    pub(crate) fn own(&self, k: &'k Build, block: &Expr) -> Result<Expr, KernelError> {
        let of = |of: i64| number(k, of);
        let units = self.all * of(self.across);
        let own = (units + of(self.blocks - 1) - k.index(block)?) / of(self.blocks);
        k.index_up_to(own, count(self.most.saturating_mul(self.across), self.blocks))
    }

    /// The tile of a block in an iteration, in raster order: a band of rows first, then along the
    /// columns, then the next band.
    pub(crate) fn unit(&self, k: &'k Build, block: &Expr, iteration: &Expr) -> Result<Unit, KernelError> {
        let of = |of: i64| number(k, of);
        let number = plus(&times(iteration, &Expr::from(self.blocks))?, block)?;
        let bands = count(self.most, self.band);
        let digits = k.coordinate(&number, &[self.band * self.across, bands])?;
        let [inside, band] = &digits[..] else { return Err(overflow()) };
        let (tile, column) = match self.band {
            // Not the block index itself, even if each block has one tile: that would imply the
            // number of tiles for every tensor, and blocks of scales may go past the last column.
            1 if self.across > 1 => (band.clone(), k.index_up_to(k.index(inside)?, self.across - 1)?),
            1 => (band.clone(), inside.clone()),
            own => {
                // The last band may have fewer tiles.
                let first = times(band, &Expr::from(own))?;
                let height = (self.all - k.index(&first)?).min(of(own)).max(of(1));
                let inside = k.index(inside)?;
                let column = inside / height;
                let row = k.index_up_to(inside - column * height, own - 1)?;
                (plus(&first, &row)?, k.index_up_to(column, self.across - 1)?)
            }
        };
        let [first, end, group, _] = self.entry(&tile)?;
        let [first, end] = [k.index_up_to(first, self.rows)?, k.index_up_to(end, self.rows)?];
        let rows = TileRows { first, end, tile };
        let zero = Expr::from(0);
        let (row, column) = if self.swapped { (column, zero) } else { (zero, column) };
        let group = k.index_up_to(group, self.groups - 1)?;
        let place = UnitPlace { row, column, matrix: Some(group), split: None };
        Ok(Unit::of(place, self.steps.clone(), Some(rows)))
    }
}
