//! Rows that threads hold in registers.
//!
//! Law: the tile of a block is `(R,A,V,W)`: R rows, each of W parts, one for each warp, and a part
//! of V runs of A elements. Element `(r,a,v,w)` is in row `r` and column `a + A w + A W v`: a run
//! of a warp lies beside those of the others, and V times as many follow. So a warp's part is
//! reduced by shuffles alone, and only what is left along W passes a barrier. Runs are computed one
//! after another, which spares registers.
//!
//! * A row of at most [`WARP_VECTORS`] vectors is held by one warp, or by fewer lanes, and a block
//!   has several rows; nothing waits.
//! * A longer one is held by a block of up to 512 threads, with two vectors of 16 bytes each, or
//!   four: few enough registers for several blocks at once, whose loads and stores
//!   overlap.
//! * Where a thread has more than four vectors, up to sixteen, the others are in shared memory,
//!   copied there asynchronously, if rows begin at multiples of 16 bytes: two blocks of 512 threads
//!   at once, or one of 1024.
//! * Where a block of 512 threads has more than that, the blocks of a cluster hold a row together,
//!   each a part of it. What they have of it passes through their shared memory, behind one barrier.

use tilewright_atoms::{CopyAtom, TiledCopy};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Distributed, Distribution, Element, Fragment, KernelError, Num, Reduction, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

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
/// How many vectors remain in registers where there are more.
const KEPT: i64 = 4;
/// How many runs ahead rows that go with all rows are read.
const AHEAD: usize = 2;
/// How many short rows a thread has a vector of.
const EACH: i64 = 4;
/// The most threads of a block.
const LARGEST: i64 = 1024;

/// Rows that a block holds: the first runs in shared memory, the others in registers.
pub(crate) struct Held<'k> {
    stored: Vec<View<'k>>,
    kept: Vec<Distributed<'k>>,
    run: Distribution,
    /// Of each stored run that may end early: what lies past the end of the row, and which elements
    /// do not.
    ends: Vec<Option<End<'k>>>,
}

/// What lies past the end of a row, and the columns of the elements and of the end.
type End<'k> = (Num<'k>, Distributed<'k>, Num<'k>);

impl<'k> Held<'k> {
    /// The runs, each as `(R,A,W)`, read when they are wanted.
    pub(crate) fn runs(&self, k: &Build) -> impl Iterator<Item = Result<Distributed<'k>, KernelError>> + '_ {
        // Read again each time: kept from the last time, they would fill the registers.
        if !self.stored.is_empty() {
            k.warp_barrier();
        }
        (0..self.stored.len() + self.kept.len()).map(|number| self.run(number))
    }

    /// A run by its number.
    fn run(&self, number: usize) -> Result<Distributed<'k>, KernelError> {
        match self.stored.get(number) {
            Some(array) => {
                let run = array.load_distributed(&self.run)?;
                match &self.ends[number] {
                    None => Ok(run),
                    Some((other, columns, end)) => run.zip(columns, |x, column| Ok(column.lt(*end).select(x, *other))),
                }
            }
            None => Ok(self.kept[number - self.stored.len()].clone()),
        }
    }
}

/// A row that goes with all rows: weights, for instance.
pub(crate) struct Beside<'k> {
    tile: View<'k>,
    held: Distribution,
}

impl<'k> Beside<'k> {
    fn run(&self, run: usize) -> Result<Distributed<'k>, KernelError> {
        self.tile.slice(at_run(run)?)?.load_distributed_predicated(&self.held)
    }
}

/// Tiles combined element by element; there is one at least.
pub(crate) fn together<'k>(
    tiles: impl Iterator<Item = Result<Distributed<'k>, KernelError>>,
    reduction: Reduction,
) -> Result<Distributed<'k>, KernelError> {
    let mut all: Option<Distributed<'k>> = None;
    for tile in tiles {
        all = Some(match all {
            None => tile?,
            Some(all) => all.combine(&tile?, reduction)?,
        });
    }
    all.ok_or(LayoutError::Overflow { op: "runs" }.into())
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
    /// How many of these vectors are in shared memory: the first.
    stored: i64,
    warps: i64,
    rows: i64,
    /// Blocks that hold a row together.
    blocks: i64,
    /// Rows of a thread, side by side.
    each: i64,
    /// Who holds what of a run.
    run: Distribution,
}

impl Rows {
    /// The plan for rows of so many elements.
    ///
    /// Errors: a row does not fit into the registers of a block.
    pub(crate) fn new(columns: i64, element: Element) -> Result<Rows, PlanError> {
        Rows::holding(2 * MOST, THREADS, columns, element)
    }

    /// The same without shared memory, where a block whose warps have rows of their own has so many
    /// threads.
    ///
    /// Errors: as there.
    pub(crate) fn in_registers(threads: i64, columns: i64, element: Element) -> Result<Rows, PlanError> {
        Rows::holding(MOST, threads, columns, element)
    }

    /// The plan for rows that several blocks hold together, as a cluster; none for rows that one
    /// holds well, or whose ends are at no multiple of 16 bytes, or that are too long.
    ///
    /// Errors: a layout is not representable.
    pub(crate) fn in_cluster(columns: i64, element: Element) -> Result<Option<Rows>, PlanError> {
        let vector = VECTOR / i64::from(element.bytes());
        let count = columns / vector;
        let most = 2 * MOST;
        let over = |number: i64, by: i64| (number + by - 1) / by;
        let blocks = [2, 4, 8].into_iter().find(|blocks| over(count, blocks * FULL) <= most);
        let Some(blocks) = blocks.filter(|blocks| columns % vector == 0 && over(count, blocks / 2 * FULL) > most)
        else {
            return Ok(None);
        };
        let warps = over(over(count, blocks * most), LANES);
        let vectors = over(count, blocks * warps * LANES);
        let run = vector * LANES;
        let layout = format!("(({LANES},1,{warps}),({vector},1)):(({vector},1,{run}),(1,1))");
        let held = Distribution::new(&format!("(1,{run},{warps})"), &layout)?;
        let stored = vectors - KEPT;
        let (lanes, rows, each) = (LANES, 1, 1);
        Ok(Some(Rows { columns, element, vector, lanes, vectors, stored, warps, rows, blocks, each, run: held }))
    }

    fn holding(most: i64, threads: i64, columns: i64, element: Element) -> Result<Rows, PlanError> {
        let mut vector = VECTOR / i64::from(element.bytes());
        while columns % vector != 0 {
            vector /= 2;
        }
        let count = (columns + vector - 1) / vector;
        // What is copied to shared memory goes in whole vectors.
        let most = if vector * i64::from(element.bytes()) == VECTOR { most } else { MOST };
        let up = |number: i64| (number.max(1) as u64).next_power_of_two() as i64;
        let (lanes, warps, rows) = if count <= WARP_VECTORS {
            let lanes = up(count).min(LANES);
            (lanes, 1, threads / lanes)
        } else {
            let whole = |threads: i64| (threads + LANES - 1) / LANES * LANES;
            let each = [2, 4, MOST, most].into_iter().find(|each| whole((count + each - 1) / each) <= FULL);
            (LANES, each.map_or(LARGEST, |each| whole((count + each - 1) / each)) / LANES, 1)
        };
        let vectors = (count + lanes * warps - 1) / (lanes * warps);
        if vectors > most {
            let limit = LARGEST * most * vector;
            return Err(PlanError::TooLarge { what: "elements of a row", asked: columns, limit });
        }
        let run = vector * lanes;
        // Where a lane has one short vector of a row, it has those of several rows.
        let each = if vectors == 1 && most == MOST && threads > THREADS && count < LANES { EACH.min(lanes) } else { 1 };
        let rows = if warps == 1 { rows * each } else { rows };
        let layout = format!(
            "(({lanes},{},{warps}),({vector},{each})):(({},{each},{}),({rows},1))",
            rows / each,
            rows * vector,
            rows * run
        );
        let held = Distribution::new(&format!("({rows},{run},{warps})"), &layout)?;
        let stored = if most > MOST { (vectors - KEPT).max(0) } else { 0 };
        Ok(Rows { columns, element, vector, lanes, vectors, stored, warps, rows, blocks: 1, each, run: held })
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
            (warps, _) => {
                let stored = match self.stored {
                    0 => String::new(),
                    stored => format!(", {stored} of them in shared memory"),
                };
                let blocks = match self.blocks {
                    1 => "a block".to_string(),
                    blocks => format!("a cluster of {blocks} blocks"),
                };
                format!("{blocks} of {} threads a row, {vectors} a thread{stored}", warps * LANES)
            }
        }
    }

    /// The type of the elements.
    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// Rows of a block.
    pub(crate) fn of_block(&self) -> i64 {
        self.rows
    }

    /// What a thread holds of a run, row by row.
    pub(crate) fn by_row<'k>(&self, numbers: Vec<Num<'k>>) -> Vec<Vec<Num<'k>>> {
        numbers.chunks(self.vector as usize).map(<[_]>::to_vec).collect()
    }

    /// One number of each thread for each of its rows, as `(R,A,W)`.
    pub(crate) fn of_threads<'k>(&self, numbers: &Fragment<'k>) -> Result<Distributed<'k>, KernelError> {
        let (lanes, rows, warps, each) = (self.lanes, self.rows, self.warps, self.each);
        let layout = format!("(({lanes},{},{warps}),{each}):(({rows},{each},{}),1)", rows / each, rows * lanes);
        numbers.distributed(&Distribution::new(&format!("({rows},{lanes},{warps})"), &layout)?)
    }

    /// A number of each row, `(R,1,1)`: lane `i` of the first ones of a row has that of row `i` of
    /// its thread.
    pub(crate) fn of_lanes<'k>(&self, number: &Fragment<'k>) -> Result<Distributed<'k>, KernelError> {
        let (lanes, rows, warps, each) = (self.lanes, self.rows, self.warps, self.each);
        let layout = format!("((({each},{}),{},{warps}),1):(((1,0),{each},0),0)", lanes / each, rows / each);
        number.distributed(&Distribution::new(&format!("({rows},1,1)"), &layout)?)
    }

    /// Whether a thread reads its part of a row again for each pass, so that passes are dear.
    pub(crate) fn rereads(&self) -> bool {
        self.stored > 0
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
        let threads = self.lanes * self.rows / self.each * self.warps;
        match self.vectors {
            _ if self.warps == 1 => Ok(()),
            1..=2 => k.resident((2048 / threads) as u32),
            // Elements of 16 bits take more registers while they are computed with.
            3..=4 if self.element == Element::F32 => k.resident((1536 / threads).max(1) as u32),
            _ => k.resident((1024 / threads).max(1) as u32),
        }
    }

    /// The number of the first row of this block, in blocks, and which part of it the block has.
    fn at(&self, k: &Build) -> Result<[Expr; 2], KernelError> {
        let block = k.block_number(operation::Axis::X);
        if self.blocks == 1 {
            return Ok([block, Expr::from(0)]);
        }
        k.cluster(self.blocks as u32)?;
        k.grid(operation::Axis::X, &format!("{}*M", self.blocks))?;
        let digits = k.coordinate(&block, &[self.blocks, 1])?;
        Ok([digits[1].clone(), digits[0].clone()])
    }

    /// The rows of this block in a matrix as `(R,A,V,W)`.
    pub(crate) fn tile<'k>(&self, k: &'k Build, matrix: &View<'k>) -> Result<View<'k>, KernelError> {
        let [row, part] = self.at(k)?;
        self.cut(matrix, self.rows, [row, part])
    }

    fn cut<'k>(&self, matrix: &View<'k>, rows: i64, [row, part]: [Expr; 2]) -> Result<View<'k>, KernelError> {
        let (run, vectors, warps) = (self.vector * self.lanes, self.vectors, self.warps);
        let at: Coord<Expr> = Tree::flat([Slot::At(row), Slot::At(part)])?;
        let modes = format!("({rows},{run},{vectors},{warps}):(1,{rows},{},{})", rows * run * warps, rows * run);
        matrix.local_tile(&format!("({rows},{})", run * vectors * warps), at)?.compose_layout(&modes.parse()?)
    }

    /// A row `(1,N)` that goes with all rows. It is in a cache near by, and read late.
    pub(crate) fn beside<'k>(&self, k: &'k Build, row: &View<'k>) -> Result<Beside<'k>, KernelError> {
        let [_, part] = self.at(k)?;
        Ok(Beside { tile: self.cut(row, 1, [Expr::from(0), part])?, held: self.run.reduced(&[0])? })
    }

    /// The rows of this block; what lies past their ends is 0, or another number.
    pub(crate) fn load<'k>(
        &self,
        k: &'k Build,
        matrix: &View<'k>,
        other: Option<Num<'k>>,
    ) -> Result<Held<'k>, KernelError> {
        let tile = self.tile(k, matrix)?;
        self.share(k)?;
        if self.blocks > 1 {
            // That a block has begun is known to the others long before they write to it.
            k.cluster_arrive();
        }
        let mut stored = Vec::new();
        if self.stored > 0 {
            // Copied behind the threads' backs; each reads what it has copied itself.
            let threads = self.lanes * self.warps;
            let (length, vector) = (threads * self.vector, self.vector);
            let copy = TiledCopy::new(
                CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
                i64::from(self.element.bits()),
                &format!("(1,{threads}):({threads},1)").parse()?,
                &format!("(1,{vector}):({vector},1)").parse()?,
            )?;
            let modes: Layout =
                format!("(1,{},{}):(0,1,{})", self.vector * self.lanes, self.warps, vector * self.lanes).parse()?;
            let overflow = || LayoutError::Overflow { op: "run" };
            let [row, part] = self.at(k)?;
            for run in 0..self.stored {
                let before = Stride::times(&part, &Expr::from(self.vectors)).ok_or_else(overflow)?;
                let run = Stride::plus(&before, &Expr::from(run)).ok_or_else(overflow)?;
                let array = k.shared_of(self.element, &format!("(1,{length}):({length},1)"))?;
                let at: Coord<Expr> = Tree::flat([Slot::At(row.clone()), Slot::At(run)])?;
                let part = matrix.local_tile(&format!("(1,{length})"), at)?;
                if self.blocks == 1 {
                    k.copy(&copy, &part, &array)?;
                } else {
                    // That there are as many rows as clusters is not shown.
                    k.copy_predicated(&copy, &part, &array)?;
                }
                stored.push(array.compose_layout(&modes)?);
            }
            k.commit_async();
        }
        let mut kept = Vec::new();
        for run in self.stored..self.vectors {
            let part = tile.slice(at_run(run as usize)?)?;
            kept.push(match other {
                Some(other) => part.load_distributed_or(&self.run, other)?,
                None => part.load_distributed_predicated(&self.run)?,
            });
        }
        if self.stored > 0 {
            k.wait_async(0);
        }
        let end = |run: usize| match other.filter(|_| self.ends_in(run)) {
            None => Ok(None),
            Some(other) => {
                let columns = self.columns_of(k, run, &kept[0])?;
                Ok(Some((other, columns, k.number(self.columns as i32))))
            }
        };
        let ends = (0..stored.len()).map(end).collect::<Result<Vec<_>, KernelError>>()?;
        Ok(Held { stored, kept, run: self.run.clone(), ends })
    }

    /// Where the threads are: lane, group of rows and warp.
    pub(crate) fn place_of(&self, k: &Build) -> Result<[Expr; 3], KernelError> {
        let digits = k.coordinate(&k.thread()?, &[self.lanes, self.rows / self.each, self.warps])?;
        let [lane, group, warp] = &digits[..] else { return Err(LayoutError::Overflow { op: "thread" }.into()) };
        Ok([lane.clone(), group.clone(), warp.clone()])
    }

    /// How many vectors of a row lie before that of a thread's run.
    pub(crate) fn vectors_before<'k>(&self, k: &'k Build, run: usize) -> Result<Num<'k>, KernelError> {
        let [lane, _, warp] = self.place_of(k)?;
        let before = run as i64 * self.lanes * self.warps;
        Ok(k.index(&lane)? + k.index(&warp)? * k.number(self.lanes as i32) + k.number(before as i32))
    }

    /// A vector of one of a thread's rows, by its number.
    pub(crate) fn vector_of<'k>(
        &self,
        k: &'k Build,
        matrix: &View<'k>,
        row: &Expr,
        number: Num<'k>,
    ) -> Result<Fragment<'k>, KernelError> {
        let overflow = || LayoutError::Overflow { op: "row" };
        let [_, group, _] = self.place_of(k)?;
        let first = Stride::times(&k.block_number(operation::Axis::X), &Expr::from(self.rows)).ok_or_else(overflow)?;
        let group = Stride::times(&group, &Expr::from(self.each)).ok_or_else(overflow)?;
        let own = Stride::plus(&first, &group).and_then(|own| Stride::plus(&own, row));
        let at = [Slot::At(own.ok_or_else(overflow)?), Slot::At(k.index_of(number)?)];
        let at: Coord<Expr> = Tree::flat(at)?;
        matrix.local_tile(&format!("(1,{})", self.vector), at)?.load_predicated()
    }

    /// Elements of a vector.
    pub(crate) fn vector(&self) -> i64 {
        self.vector
    }

    /// Writes to a matrix what becomes of each run in f32, by what goes with it. That is read
    /// before earlier runs are written, where there are several: nothing is read past a write.
    pub(crate) fn write<'k>(
        &self,
        k: &'k Build,
        held: &Held<'k>,
        beside: &[Beside<'k>],
        matrix: &View<'k>,
        each: impl Fn(Distributed<'k>, &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let tile = self.tile(k, matrix)?;
        let ahead = if self.vectors > 2 { AHEAD } else { 0 };
        let mut read: Vec<Vec<Distributed<'k>>> = Vec::new();
        for (number, run) in held.runs(k).enumerate() {
            while read.len() <= (number + ahead).min(self.vectors as usize - 1) {
                let next = read.len();
                read.push(beside.iter().map(|row| row.run(next)).collect::<Result<_, _>>()?);
            }
            let others: Vec<Distributed<'k>> =
                read[number].iter().map(|row| row.to(Element::F32)).collect::<Result<_, _>>()?;
            let result = each(run?.to(Element::F32)?, &others)?;
            tile.slice(at_run(number)?)?.store_distributed_predicated(&result.to(self.element)?)?;
        }
        Ok(())
    }

    /// All runs reduced: what is made of each in f32, these element by element, and what is left
    /// along the given modes of `(R,A,W)`.
    pub(crate) fn sum<'k>(
        &self,
        k: &'k Build,
        held: &Held<'k>,
        modes: &[usize],
        each: impl Fn(usize, Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<Distributed<'k>, KernelError> {
        let part = |(number, run): (usize, Result<Distributed<'k>, KernelError>)| each(number, run?.to(Element::F32)?);
        let all = together(held.runs(k).enumerate().map(part), Reduction::Sum)?;
        all.reduce(modes, Reduction::Sum)
    }

    /// What the blocks of a cluster have of a row, together: numbers that all threads of a block
    /// hold, one for each tile. Each block writes its own to all others, and puts all together in
    /// one order.
    pub(crate) fn across<'k>(
        &self,
        k: &'k Build,
        parts: Vec<Distributed<'k>>,
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Vec<Num<'k>>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        if self.blocks == 1 {
            return Ok(parts);
        }
        let count = parts.len();
        let own = k.register(Element::F32, &count.to_string())?;
        let numbers = parts.iter().map(|part| Ok(part.fragment().numbers()?[0]));
        own.set(&numbers.collect::<Result<Vec<_>, KernelError>>()?)?;
        let array = k.shared_of(Element::F32, &format!("({},{count}):({count},1)", self.blocks))?;
        let of = |rank: Expr| -> Result<View<'k>, KernelError> {
            let at: Coord<Expr> = Tree::flat([Slot::At(rank), Slot::All])?;
            array.slice(at)
        };
        k.cluster_wait();
        let first = k.index(&k.thread()?)?.eq(k.number(0));
        k.when(first, || {
            let mine = of(k.rank())?;
            mine.store(&own)?;
            (1..self.blocks as u32).try_for_each(|by| mine.of_block(k.rank_after(by)?)?.store(&own))
        })?;
        k.cluster_barrier();
        let mut all = of(Expr::from(0))?.load()?.numbers()?;
        for rank in 1..self.blocks {
            all = combine(&all, &of(Expr::from(rank))?.load()?.numbers()?);
        }
        let together = all.into_iter().zip(&parts).map(|(number, part)| {
            let fragment = k.register(Element::F32, "1")?;
            fragment.fill(number)?;
            fragment.distributed(part.distribution())
        });
        together.collect()
    }

    /// The greatest numbers of the rows of each warp, in f32.
    pub(crate) fn greatest<'k>(&self, k: &'k Build, held: &Held<'k>) -> Result<Distributed<'k>, KernelError> {
        let all = together(held.runs(k), Reduction::Maximum)?;
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
        let mut before = integer(run as i64 * length * self.warps);
        if self.blocks > 1 {
            let [_, part] = self.at(k)?;
            before = before + k.index(&part)? * integer(length * self.warps * self.vectors);
        }
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

    /// Whether some thread has elements of a run that are past the end of a row.
    pub(crate) fn ends_in(&self, run: usize) -> bool {
        let length = self.vector * self.lanes * self.warps;
        ((self.blocks - 1) * self.vectors + run as i64 + 1) * length > self.columns
    }

    /// Numbers of a run that count, and 0 for those past the end of a row.
    pub(crate) fn counted<'k>(
        &self,
        k: &'k Build,
        run: usize,
        tile: Distributed<'k>,
    ) -> Result<Distributed<'k>, KernelError> {
        if !self.ends_in(run) {
            return Ok(tile);
        }
        let column = self.columns_of(k, run, &tile)?;
        let end = k.number(self.columns as i32);
        tile.zip(&column, |x, column| Ok(column.lt(end).select(x, x.like(0.0))))
    }
}
