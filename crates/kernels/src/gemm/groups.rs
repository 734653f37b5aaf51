//! Products of groups of rows: many problems in one launch.
//!
//! Law: the rows of A and of D are divided into consecutive groups, given by where each group ends;
//! group `g` has the rows from the end of the group before to its own, and a matrix of B of its
//! own: `D(m,n) = f(sum over k of A(m,k) * B(n,k,g), ..)` for its rows `m`. The ends are numbers on
//! the device, which the plan does not know: groups may be empty, and rows behind the last end are
//! left as they are. Ends that fall or go past the last row count as the greatest before, and as
//! the last row.
//!
//! A small kernel writes where the tiles of the groups begin and end, an entry for each; blocks of
//! the product read the entry of a tile and shift A and D to its rows. Tiles begin where their
//! group does, so one may end within: what lies behind is left out as it is written.
//!
//! `kept.rs` makes by-products of what the tiles leave.

mod kept;

pub(super) use kept::kept;

use tilewright_kernel::cost::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

use super::matrix::Matrix;
use super::pairs::Pairs;
use super::plan::Plan;
use super::problem::{Fused, Problem};
use super::schedule::{Place, Unit, plus, times};
use crate::error::PlanError;
use crate::meaning::any_numbers;
use crate::product::count;

/// Threads of a block that writes where tiles are.
const THREADS: i64 = 128;
/// The most tiles along the rows that are taken one after the other.
const BAND: i64 = 8;
/// Numbers of an entry: the first row of a tile, where its group ends, the number of the group, and
/// how many tiles there are.
const NUMBERS: i64 = 4;

impl Problem {
    /// The product of groups of rows: A `(M,K)`, whose rows are parted in groups, and a matrix of B
    /// for each, `(N,K,G)`, as D `(M,N)`. Where each group ends is a tensor of `G` numbers of type
    /// i32, which is read as the product runs: rising, at most M.
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::gemm::{Matrix, Problem, Product};
    ///
    /// // 4096 rows of tokens, sorted by which of 8 experts they go to.
    /// let a = Matrix::rows(Element::Bf16, [4096, 2048]).unwrap();
    /// let b = Matrix::strided(Element::Bf16, [1024, 2048, 8], [2048, 1, 1024 * 2048]).unwrap();
    /// let d = Matrix::rows(Element::Bf16, [4096, 1024]).unwrap();
    /// let product = Product::new(&Problem::grouped(a, b, d).unwrap()).unwrap();
    /// assert_eq!(product.kernels().len(), 2);
    /// ```
    ///
    /// Inputs of a function of the sums are `(M,N)`, or `(M,N,G)` where each group has its own: a
    /// bias of each group is `(M,N,G):(0,1,N)`.
    ///
    /// Errors: as [`Problem::of`]; A or D are a batch ([`PlanError::Extents`]); D has folded modes,
    /// and rows that belong to no group would not stay ([`PlanError::Rank`]); more rows than 31 bits
    /// count ([`PlanError::TooLarge`]).
    pub fn grouped(a: Matrix, b: Matrix, d: Matrix) -> Result<Problem, PlanError> {
        Problem::in_groups(a, b, d, None)
    }

    /// The same with pairs of columns of B, `(2 N,K,G)`, as in [`Problem::gated`].
    ///
    /// ```
    /// use tilewright_kernel::Element;
    /// use tilewright_kernels::Expression;
    /// use tilewright_kernels::gemm::{Fused, Matrix, Pairs, Problem};
    ///
    /// // D = silu(A G) * (A U) with the weights of 8 experts.
    /// let gate = Fused { expression: Expression::parse("silu(x) * y", &["x", "y"]).unwrap(), inputs: vec![] };
    /// let a = Matrix::rows(Element::Bf16, [4096, 2048]).unwrap();
    /// let b = Matrix::strided(Element::Bf16, [1024, 2048, 8], [2048, 1, 1024 * 2048]).unwrap();
    /// let d = Matrix::rows(Element::Bf16, [4096, 512]).unwrap();
    /// assert!(Problem::grouped_pairs(a, b, d, Pairs::Halves, gate).is_ok());
    /// ```
    ///
    /// Errors: as [`Problem::grouped`] and [`Problem::fused`].
    pub fn grouped_pairs(a: Matrix, b: Matrix, d: Matrix, pairs: Pairs, fused: Fused) -> Result<Problem, PlanError> {
        Problem::in_groups(a, b, d, Some(pairs))?.fused(fused)
    }

    fn in_groups(a: Matrix, b: Matrix, d: Matrix, pairs: Option<Pairs>) -> Result<Problem, PlanError> {
        let [_, _, groups] = b.extents();
        if d.strides().is_none() {
            return Err(PlanError::Rank { layout: d.layout().to_string() });
        }
        // Ends of groups are of 32 bits.
        let (asked, limit) = (a.extents()[0], i64::from(i32::MAX));
        if asked > limit {
            return Err(PlanError::TooLarge { what: "rows of groups", asked, limit });
        }
        let ends = Matrix::strided(Element::I32, [groups, 1, 1], [1, 0, 0])?;
        Problem::checked_groups(a, b, d, ends, pairs)
    }

    /// How many groups the rows are in; none for a product without groups.
    pub fn groups(&self) -> Option<i64> {
        self.ends().map(|ends| ends.extents()[0])
    }

    /// The group of a row, where `end` says where each ends; none behind the last.
    pub fn group_of(&self, row: i64, end: impl Fn(i64) -> i64) -> Option<i64> {
        (0..self.groups()?).find(|group| row < end(*group))
    }

    /// Random ends, with some empty groups: the bytes of a tensor of i32.
    pub fn any_ends(&self, seed: u64) -> Vec<u8> {
        let (rows, groups) = (self.sizes()[0], self.groups().unwrap_or(0));
        let chance = any_numbers(Element::U32, groups as usize, seed);
        let mut ends: Vec<i32> = chance
            .chunks(4)
            .map(|bytes| bytes.iter().rev().fold(0_i64, |number, byte| number << 8 | i64::from(*byte)))
            .map(|number| (number % (rows + 1)) as i32)
            .collect();
        ends.sort_unstable();
        // The last group goes to the end, in most cases; the second one is empty in some.
        if let [.., last] = &mut ends[..]
            && seed % 4 != 3
        {
            *last = rows as i32;
        }
        if let [first, second, _, ..] = &mut ends[..]
            && seed % 2 == 1
        {
            *second = *first;
        }
        ends.into_iter().flat_map(i32::to_le_bytes).collect()
    }

    /// The batch of equal products that the groups are where all have as many rows: what a plan is
    /// chosen for. The problem itself where there are no groups.
    pub(super) fn even(&self) -> Result<Problem, PlanError> {
        let Some(groups) = self.groups() else { return Ok(self.clone()) };
        let rows = count(self.sizes()[0], groups);
        let many = |matrix: &Matrix| match matrix.strides() {
            Some([down, across, _]) => {
                let [_, columns, _] = matrix.extents();
                Matrix::strided(matrix.element(), [rows, columns, groups], [down, across, rows * down])
            }
            None => Err(PlanError::Rank { layout: matrix.layout().to_string() }),
        };
        let scales = self.scales().map(|scales| scales.parted_evenly(rows, groups)).transpose()?;
        Ok(self.parted_evenly(rows, many(self.a())?, many(self.d())?, scales))
    }
}

/// The most tiles of so many rows that groups of a problem have.
pub(super) fn most_tiles(problem: &Problem, rows: i64) -> i64 {
    let groups = problem.groups().unwrap_or(1);
    // Each group has one tile at most that is not whole.
    count(problem.sizes()[0], rows).saturating_add(groups - 1)
}

/// Rows of A of a tile.
pub(super) fn rows_of(plan: &Plan) -> i64 {
    if plan.swapped { plan.columns } else { plan.rows }
}

/// The plans of a problem whose rows are in groups, the fastest one first by the model, each with
/// its seconds: those of groups that have as many rows each, where the last tile of each is half
/// full.
pub(super) fn plans(problem: &Problem, machine: &Machine) -> Result<Vec<(f64, Plan)>, PlanError> {
    let (even, processors) = (problem.even()?, i64::from(machine.multiprocessors));
    let [rows, ..] = even.sizes();
    // D of groups may go through shared memory where that of a batch does not.
    let fitting = |(seconds, plan): (f64, Plan)| {
        let stages = plan.stages.min(plan.most_stages(problem, machine));
        (seconds, Plan { stages, ..plan })
    };
    let plans = Plan::candidates(&even, machine).into_iter().map(fitting);
    let plans = plans.filter(|(_, plan)| plan.refusal(problem).is_none());
    let likely = |(seconds, mut plan): (f64, Plan)| {
        let (own, across) = (rows_of(&plan), if plan.swapped { plan.rows } else { plan.columns });
        // As many blocks as groups of any sizes may need.
        let units = most_tiles(problem, own).saturating_mul(count(problem.multiplied()[1], across));
        plan.blocks = units.min(processors * plan.resident.max(1)).max(1);
        // Those of a group one after the other read its matrix of B together.
        plan.group = if plan.swapped { 1 } else { count(rows, own).min(BAND) };
        let tiles = (rows as f64 / own as f64 + 0.5).max(1.0);
        (seconds * tiles / count(rows, own) as f64, plan)
    };
    let mut plans: Vec<(f64, Plan)> = plans.map(likely).collect();
    plans.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Ok(plans)
}

/// Bytes of the entries.
pub(super) fn bytes(problem: &Problem, plan: &Plan) -> i64 {
    most_tiles(problem, rows_of(plan)).saturating_mul(NUMBERS * 4)
}

/// A constant of the type of rows and tiles.
fn number(k: &Build, number: i64) -> Num<'_> {
    k.number(number as i32)
}

/// The layout of the entries, of so many tiles.
fn entries(tiles: i64) -> String {
    format!("({tiles},{NUMBERS}):({NUMBERS},1)")
}

/// The kernel that writes where the tiles of the groups are: a thread for each that there may be.
pub(super) fn table(problem: &Problem, plan: &Plan) -> Result<Kernel, PlanError> {
    let (rows, groups) = (problem.sizes()[0], problem.groups().unwrap_or(1));
    let (own, tiles) = (rows_of(plan), most_tiles(problem, rows_of(plan)));
    if rows > i64::from(i32::MAX) - own {
        return Err(PlanError::TooLarge { what: "rows of groups", asked: rows, limit: i64::from(i32::MAX) - own });
    }
    let kernel = Kernel::build("product_tiles", |k| {
        let ends = k.input::<i32>("ends", &format!("{groups}:1"))?;
        let table = k.tensor_of(Element::I32, "tiles", &entries(tiles), Role::Output)?;
        k.threads(THREADS)?;
        k.wait_launches();
        k.launch_next();
        let block = k.block("(x,0)")?;
        let entry = table.local_tile(&format!("({THREADS},{NUMBERS})"), block)?.thread_part()?;
        let tile = plus(&times(&k.block_number(Axis::X), &THREADS.into())?, &k.thread()?)?;
        let tile = k.index(&tile)?;
        // Tiles and rows of the groups before; then the first row of this tile, where its group
        // ends, and which it is.
        let zero = number(k, 0);
        let state = k.register(Element::I32, "5")?;
        state.set(&[zero; 5])?;
        k.range(groups, |group| {
            let end = ends.slice(Tree::leaf(Slot::At(group.clone())))?.load()?.numbers()?[0];
            let [before, first, start, stop, of] = state.numbers()?[..] else {
                return Err(super::schedule::overflow());
            };
            let end = end.min(number(k, rows)).max(first);
            let whole = (end - first + number(k, own - 1)) / number(k, own);
            let after = before + whole;
            let here = before.le(tile).and(tile.lt(after));
            let at = first + (tile - before) * number(k, own);
            let group = k.index(&group)?;
            state.set(&[after, end, here.select(at, start), here.select(end, stop), here.select(group, of)])
        })?;
        let [all, _, start, stop, of] = state.numbers()?[..] else { return Err(super::schedule::overflow()) };
        let made = k.register(Element::I32, &NUMBERS.to_string())?;
        made.set(&[start, stop, of, all])?;
        entry.store_predicated(&made)
    })?;
    Ok(kernel)
}

/// The tiles of the groups, as blocks of a product take them.
pub(super) struct Tiles<'k> {
    table: View<'k>,
    /// How many there are.
    all: Num<'k>,
    /// The most that there may be.
    most: i64,
    /// Tiles along the columns of D.
    across: i64,
    /// Tiles along the rows of D that are taken one after the other.
    band: i64,
    blocks: i64,
    swapped: bool,
    /// Rows of D, and groups.
    rows: i64,
    groups: i64,
    steps: Expr,
}

/// The rows of a tile that begins where its group does, or a whole number of tiles behind.
#[derive(Clone)]
pub(super) struct Rows {
    /// The first one.
    pub(super) first: Expr,
    /// Where the group ends.
    pub(super) end: Expr,
    /// The number of the tile among those of all groups.
    pub(super) tile: Expr,
}

impl<'k> Tiles<'k> {
    /// Declares the entries.
    pub(super) fn declare(
        k: &'k Build,
        problem: &Problem,
        plan: &Plan,
        steps: &Expr,
    ) -> Result<Option<Tiles<'k>>, KernelError> {
        let Some(groups) = problem.groups() else { return Ok(None) };
        let across = if plan.swapped { plan.rows } else { plan.columns };
        let most = most_tiles(problem, rows_of(plan));
        let table = k.tensor_of(Element::I32, "tiles", &entries(most), Role::Input)?;
        let tiles = Tiles {
            table,
            all: k.number(0_i32),
            most,
            across: count(problem.multiplied()[1], across),
            band: if plan.swapped { 1 } else { plan.group.clamp(1, most) },
            blocks: plan.blocks,
            swapped: plan.swapped,
            rows: problem.sizes()[0],
            groups,
            steps: steps.clone(),
        };
        Ok(Some(tiles))
    }

    /// Reads how many tiles there are.
    pub(super) fn read(self) -> Result<Tiles<'k>, KernelError> {
        let [.., all] = self.entry(&Expr::from(0))?;
        Ok(Tiles { all, ..self })
    }

    fn entry(&self, tile: &Expr) -> Result<[Num<'k>; NUMBERS as usize], KernelError> {
        let entry = self.table.slice(Tree::flat([Slot::At(tile.clone()), Slot::All])?)?.load_predicated()?;
        <[Num<'k>; NUMBERS as usize]>::try_from(entry.numbers()?).map_err(|_| super::schedule::overflow())
    }

    /// How many tiles of D a block takes.
    pub(super) fn own(&self, k: &'k Build, block: &Expr) -> Result<Expr, KernelError> {
        let of = |of: i64| number(k, of);
        let units = self.all * of(self.across);
        let own = (units + of(self.blocks - 1) - k.index(block)?) / of(self.blocks);
        k.index_up_to(own, count(self.most.saturating_mul(self.across), self.blocks))
    }

    /// The part that a block takes in a turn: tiles of a band of rows first, then along the
    /// columns, then the next band.
    pub(super) fn unit(&self, k: &'k Build, block: &Expr, turn: &Expr) -> Result<Unit, KernelError> {
        let of = |of: i64| number(k, of);
        let number = plus(&times(turn, &Expr::from(self.blocks))?, block)?;
        let bands = count(self.most, self.band);
        let digits = k.coordinate(&number, &[self.band * self.across, bands])?;
        let [inside, band] = &digits[..] else { return Err(super::schedule::overflow()) };
        let (tile, column) = match self.band {
            // Not the number of the block itself, where each block has one tile: of any tensor that
            // would say how many tiles there are, and blocks of scales may go past the last column.
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
        let rows = Rows { first, end, tile };
        let zero = Expr::from(0);
        let (row, column) = if self.swapped { (column, zero) } else { (zero, column) };
        let group = k.index_up_to(group, self.groups - 1)?;
        let place = Place { row, column, matrix: Some(group), split: None };
        Ok(Unit::of(place, self.steps.clone(), Some(rows)))
    }
}

impl Rows {
    /// A matrix from the first of the rows on.
    pub(super) fn of<'k>(&self, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        let others = (1..matrix.layout().rank()).map(|_| Expr::from(0));
        matrix.domain_offset(&[self.first.clone()].into_iter().chain(others).collect::<Vec<_>>())
    }

    /// The rows of the group from the first of these on.
    pub(super) fn left(&self) -> Result<Expr, KernelError> {
        super::schedule::minus(&self.end, &self.first)
    }

    /// What is written of a mode that goes along the rows: from the first of these on, and up to
    /// where the group ends.
    pub(super) fn along<'k>(&self, written: &View<'k>, mode: usize) -> Result<View<'k>, KernelError> {
        let rank = written.layout().rank();
        let first = |own: usize| if own == mode { self.first.clone() } else { Expr::from(0) };
        written.ending_at(mode, &self.end)?.domain_offset(&(0..rank).map(first).collect::<Vec<_>>())
    }

    /// The same of what is written, which ends where the group does.
    pub(super) fn written<'k>(&self, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        self.of(&matrix.ending_at(0, &self.end)?)
    }
}
