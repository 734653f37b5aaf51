//! Rows that threads hold in registers.
//!
//! Law: the tile of a block is `(R,A,V,W)`: R rows, each of W parts, one for each warp, and a part
//! of V runs of A elements. Element `(r,a,v,w)` is in row `r` and column `a + A w + A W v`: a run of
//! a warp lies beside those of the others, and V times as many follow. So a warp's part is reduced by
//! shuffles alone, and only what is left along W passes a barrier. Runs are computed one after
//! another, which spares registers.
//!
//! * A row of at most [`WARP_VECTORS`] vectors is held by one warp, or by fewer lanes, and a block
//!   has several rows; nothing waits.
//! * A longer one is held by a block of up to 512 threads, with two vectors of 16 bytes each, then
//!   four, then eight: few enough registers for several blocks at once, whose loads and stores
//!   overlap. The longest take 1024 threads with eight.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Distributed, Distribution, Element, KernelError, Num, Reduction, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Tree};

use crate::error::PlanError;

/// The widest access of a thread, in bytes.
const VECTOR: i64 = 16;
/// Lanes of a warp.
const LANES: i64 = 32;
/// The most vectors of a row that one warp holds.
const WARP_VECTORS: i64 = 128;
/// Threads of a block whose warps have rows of their own.
const THREADS: i64 = 128;
/// The most threads of a block of which a processor has several.
const FULL: i64 = 512;
/// The most vectors of one thread.
const MOST: i64 = 8;
/// The most threads of a block.
const LARGEST: i64 = 1024;

/// A row that goes with all rows: weights, for instance.
pub(crate) struct Beside<'k> {
    tile: View<'k>,
    held: Distribution,
}

impl<'k> Beside<'k> {
    /// What goes with a run, in f32.
    pub(crate) fn run(&self, run: usize) -> Result<Distributed<'k>, KernelError> {
        self.tile.slice(at_run(run)?)?.load_distributed_predicated(&self.held)?.to(Element::F32)
    }
}

fn at_run(run: usize) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(Expr::from(run as i64)), Slot::All])?)
}

/// How a block holds rows of one length.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// How many elements a row has.
    pub(crate) columns: i64,
    element: Element,
    vector: i64,
    /// Lanes that hold a run, vectors of each, warps that hold a row, rows of a block.
    lanes: i64,
    vectors: i64,
    warps: i64,
    rows: i64,
    /// Of all runs, and of one.
    held: Distribution,
    run: Distribution,
}

impl Rows {
    /// The plan for rows of so many elements.
    ///
    /// Errors: a row does not fit into the registers of a block.
    pub(crate) fn new(columns: i64, element: Element) -> Result<Rows, PlanError> {
        Rows::in_blocks_of(THREADS, columns, element)
    }

    /// The same, where a block whose warps have rows of their own has so many threads.
    ///
    /// Errors: as there.
    pub(crate) fn in_blocks_of(threads: i64, columns: i64, element: Element) -> Result<Rows, PlanError> {
        let mut vector = VECTOR / i64::from(element.bytes());
        while columns % vector != 0 {
            vector /= 2;
        }
        let count = (columns + vector - 1) / vector;
        let up = |number: i64| (number.max(1) as u64).next_power_of_two() as i64;
        let (lanes, warps, rows) = if count <= WARP_VECTORS {
            let lanes = up(count).min(LANES);
            (lanes, 1, threads / lanes)
        } else {
            let whole = |threads: i64| (threads + LANES - 1) / LANES * LANES;
            let each = [2, 4, MOST].into_iter().find(|each| whole((count + each - 1) / each) <= FULL);
            (LANES, each.map_or(LARGEST, |each| whole((count + each - 1) / each)) / LANES, 1)
        };
        let vectors = (count + lanes * warps - 1) / (lanes * warps);
        if vectors > MOST {
            let limit = LARGEST * MOST * vector;
            return Err(PlanError::TooLarge { what: "elements of a row", asked: columns, limit });
        }
        let run = vector * lanes;
        let tile = format!("({rows},{run},{vectors},{warps})");
        let held = |tile: String, part: i64, values: String| -> Result<Distribution, PlanError> {
            let threads: Layout = format!("({lanes},{rows},{warps}):({},1,{part})", rows * vector).parse()?;
            Ok(Distribution::of_layout(&tile.parse()?, &Layout::tuple([&threads, &values.parse()?])?)?)
        };
        let values = format!("({vector},{vectors}):({rows},{})", rows * run);
        let one = held(format!("({rows},{run},{warps})"), rows * run, format!("{vector}:{rows}"))?;
        let held = held(tile, rows * run * vectors, values)?;
        Ok(Rows { columns, element, vector, lanes, vectors, warps, rows, held, run: one })
    }

    /// What was chosen, in a sentence.
    pub(crate) fn plan(&self) -> String {
        let vectors = match (self.vector, self.vectors) {
            (1, count) => format!("{count} elements"),
            (vector, 1) => format!("a vector of {vector}"),
            (vector, count) => format!("{count} vectors of {vector}"),
        };
        match (self.warps, self.lanes) {
            (1, LANES) => format!("a warp a row, {} rows a block, {vectors} a lane", self.rows),
            (1, lanes) => format!("{lanes} lanes a row, {} rows a block, {vectors} a lane", self.rows),
            (warps, _) => format!("a block of {} threads a row, {vectors} a thread", warps * LANES),
        }
    }

    /// Whether rows are held by several warps, which meet at a barrier.
    pub(crate) fn meet(&self) -> bool {
        self.warps > 1
    }

    /// A matrix `(M,N)`, rows one after another.
    pub(crate) fn matrix<'k>(&self, k: &'k Build, name: &str, role: Role) -> Result<View<'k>, KernelError> {
        let columns = self.columns;
        k.tensor_of(self.element, name, &format!("(M,{columns}):({columns},1)"), role)
    }

    /// What is one for each column.
    pub(crate) fn row<'k>(&self, k: &'k Build, name: &str) -> Result<View<'k>, KernelError> {
        k.tensor_of(self.element, name, &format!("(1,{0}):({0},1)", self.columns), Role::Input)
    }

    /// Says how many blocks should run at once: as many as fill a processor where a thread has few
    /// elements.
    pub(crate) fn share(&self, k: &Build) -> Result<(), KernelError> {
        let threads = self.lanes * self.rows * self.warps;
        match self.vectors {
            _ if self.warps == 1 => Ok(()),
            1..=2 => k.resident((2048 / threads) as u32),
            // Elements of 16 bits take more registers while they are computed with.
            3..=4 if self.element == Element::F32 => k.resident((1536 / threads).max(1) as u32),
            _ => k.resident((1024 / threads).max(1) as u32),
        }
    }

    /// The rows of this block in a matrix as `(R,A,V,W)`.
    pub(crate) fn tile<'k>(&self, k: &'k Build, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        self.cut(matrix, self.rows, Some(k.block_number(operation::Axis::X)))
    }

    fn cut<'k>(&self, matrix: &View<'k>, rows: i64, block: Option<Expr>) -> Result<View<'k>, KernelError> {
        let (run, vectors, warps) = (self.vector * self.lanes, self.vectors, self.warps);
        let at: Coord<Expr> = Tree::flat([Slot::At(block.unwrap_or(Expr::from(0))), Slot::At(Expr::from(0))])?;
        let modes = format!("({rows},{run},{vectors},{warps}):(1,{rows},{},{})", rows * run * warps, rows * run);
        matrix.local_tile(&format!("({rows},{})", run * vectors * warps), at)?.compose_layout(&modes.parse()?)
    }

    /// A row `(1,N)` that goes with all rows. It is in a cache near by, and read when it is needed.
    pub(crate) fn beside<'k>(&self, row: &View<'k>) -> Result<Beside<'k>, KernelError> {
        Ok(Beside { tile: self.cut(row, 1, None)?, held: self.run.reduced(&[0])? })
    }

    /// The rows of this block, as `(R,A,W)` for each run; what lies past their ends is 0, or another
    /// number.
    pub(crate) fn load<'k>(
        &self,
        k: &'k Build,
        matrix: &View<'k>,
        other: Option<Num<'k>>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let tile = self.tile(k, matrix)?;
        self.share(k)?;
        let held = match other {
            Some(other) => tile.load_distributed_or(&self.held, other)?,
            None => tile.load_distributed_predicated(&self.held)?,
        };
        held.split(2)
    }

    /// Writes a run of the rows of this block.
    pub(crate) fn store<'k>(&self, tile: &View<'k>, run: usize, values: &Distributed<'k>) -> Result<(), KernelError> {
        tile.slice(at_run(run)?)?.store_distributed_predicated(&values.to(self.element)?)
    }

    /// All runs reduced: what is made of each in f32, these element by element, and what is left
    /// along the given modes of `(R,A,W)`.
    pub(crate) fn sum<'k>(
        &self,
        runs: &[Distributed<'k>],
        modes: &[usize],
        each: impl Fn(usize, Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<Distributed<'k>, KernelError> {
        let mut all = each(0, runs[0].to(Element::F32)?)?;
        for (number, run) in runs.iter().enumerate().skip(1) {
            all = all.combine(&each(number, run.to(Element::F32)?)?, Reduction::Sum)?;
        }
        all.reduce(modes, Reduction::Sum)
    }

    /// The greatest numbers of the rows of each warp, in f32.
    pub(crate) fn greatest<'k>(&self, runs: &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError> {
        let mut all = runs[0].clone();
        for run in &runs[1..] {
            all = all.combine(run, Reduction::Maximum)?;
        }
        all.to(Element::F32)?.reduce(&[1], Reduction::Maximum)
    }

    /// The column of each element of a run.
    pub(crate) fn columns_of<'k>(
        &self,
        k: &'k Build,
        run: usize,
        tile: &Distributed<'k>,
    ) -> Result<Distributed<'k>, KernelError> {
        let length = self.vector * self.lanes;
        let integer = |value: i64| k.number(value as i32);
        let before = integer(run as i64 * length * self.warps);
        let warp = tile.index(2)?.map(|w| Ok(w * integer(length) + before))?;
        tile.index(1)?.zip(&warp, |a, w| Ok(a + w))
    }

    /// Writes one number for each row, `(R,1,1)`, to a column `(M,1)`.
    pub(crate) fn store_results<'k>(
        &self,
        k: &'k Build,
        column: &View<'k>,
        values: &Distributed<'k>,
    ) -> Result<(), KernelError> {
        let at: Coord<Expr> = Tree::flat([Slot::At(k.block_number(operation::Axis::X)), Slot::At(Expr::from(0))])?;
        let modes = format!("({},1,1):(1,0,0)", self.rows);
        let tile = column.local_tile(&format!("({},1)", self.rows), at)?.compose_layout(&modes.parse()?)?;
        tile.store_distributed_predicated(values)
    }

    /// Numbers of a run that count, and 0 for those past the end of a row.
    pub(crate) fn counted<'k>(
        &self,
        k: &'k Build,
        run: usize,
        tile: Distributed<'k>,
    ) -> Result<Distributed<'k>, KernelError> {
        let length = self.vector * self.lanes;
        let before = run as i64 * length * self.warps;
        if before + length * self.warps <= self.columns {
            return Ok(tile);
        }
        let column = self.columns_of(k, run, &tile)?;
        let end = k.number(self.columns as i32);
        tile.zip(&column, |x, column| Ok(column.lt(end).select(x, x.like(0.0))))
    }
}
