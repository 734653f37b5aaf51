//! Persistent clusters that claim rows.
//!
//! Law: a cluster claims the next row when it has finished one, and each of its blocks has the same
//! part of every row. Multiprocessors are not equally fast, and a cluster whose multiprocessors are
//! not shared claims more rows. Weights are read once, and stay in registers. A thread copies what
//! it reads itself, so no thread waits for the copies of others. After the last read of a run, its
//! buffer is filled with the same run of a later row.
//!
//! Blocks send their partial results to each other by bulk copies that complete on an mbarrier; the
//! lanes of each warp combine them. There are buffers for the results of two rows. A block that
//! sends the results of a row knows that all blocks have read those of the row before the previous
//! one.

mod shape;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::BULK_CHUNK_BYTES;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Cursor, Distributed, Distribution, Element, Flag, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, Slot, Tree};

pub(crate) use self::shape::ClusterShape;
use super::{RowsPlan, at_run};
use crate::error::PlanError;
use crate::law::clustered;
use crate::terms::RowMatrix;
use crate::units::{LANES, VECTOR};

/// The number of rows for which a block has buffers, both for the rows themselves and for the
/// results that blocks exchange.
const STAGES: i64 = 2;
/// The numbers that a block sends for a row: as many as the smallest bulk copy moves.
const GIVEN: i64 = BULK_CHUNK_BYTES as i64 / 4;

/// Persistent clusters for rows of one length.
pub(crate) struct Persistent {
    rows: RowsPlan,
    clusters: i64,
    /// Resident blocks on a multiprocessor.
    resident: i64,
}

/// Weights or a bias: the part that this block keeps in registers, run by run.
pub(crate) struct KeptVector<'k> {
    runs: Vec<Distributed<'k>>,
}

/// The row of an iteration: the part of it that this block has.
pub(crate) struct RowIteration<'a, 'k> {
    k: &'k Build,
    plan: &'a Persistent,
    runs: Vec<View<'k>>,
    at: [Expr; 2],
    exchange: &'a Exchange<'k>,
    refill: &'a dyn Fn(usize) -> Result<(), KernelError>,
    /// Claims a later row.
    ask: &'a dyn Fn() -> Result<(), KernelError>,
}

/// The buffers in which the blocks of a cluster exchange results.
struct Exchange<'k> {
    array: View<'k>,
    cursor: Cursor<'k>,
}

impl Persistent {
    /// The plan for rows. A thread keeps `kept` registers for each of its vectors, for weights and
    /// a bias, or, with `powers`, for its exponentials. None for rows that no shape holds, or that
    /// do not begin at multiples of 16 bytes.
    ///
    /// Errors: a layout is not representable.
    pub(crate) fn new(
        machine: &Machine,
        matrix: RowMatrix,
        (kept, powers): (i64, bool),
    ) -> Result<Option<Persistent>, PlanError> {
        let count = matrix.columns / (VECTOR / i64::from(matrix.element.bytes()));
        let Some(shape) = ClusterShape::of(machine, count, kept, powers) else { return Ok(None) };
        // Clusters that are not resident at first start when others exit, and find no rows left.
        let clusters = (clustered(machine) * shape.resident / shape.blocks).max(1);
        Persistent::with_clusters(machine, matrix, (shape, clusters))
    }

    /// The plan with a given number of clusters of a shape; None for rows that do not begin at
    /// multiples of 16 bytes.
    ///
    /// Errors: those of [`Persistent::new`].
    pub(crate) fn with_clusters(
        machine: &Machine,
        matrix: RowMatrix,
        (shape, clusters): (ClusterShape, i64),
    ) -> Result<Option<Persistent>, PlanError> {
        let ClusterShape { blocks, warps, vectors, resident } = shape;
        if matrix.vectors().is_none() {
            return Ok(None);
        }
        let rows = RowsPlan::in_blocks(machine, matrix, (blocks, warps), (vectors, vectors))?;
        Ok(Some(Persistent { rows, clusters, resident }))
    }

    /// Whether rows end within a run.
    pub(crate) fn ends_within(&self) -> bool {
        self.rows.ends_in(self.rows.vectors as usize - 1)
    }

    /// Whether results are combined in pairs, pairs of pairs and so on: if all threads have equally
    /// many elements, and the numbers of blocks and warps are powers of two.
    pub(crate) fn in_pairs(&self) -> bool {
        self.rows.warps.count_ones() == 1 && !self.ends_within()
    }

    /// The plan, in a sentence.
    pub(crate) fn plan(&self) -> String {
        let RowsPlan { blocks, vectors, vector, .. } = self.rows;
        let (clusters, threads) = (self.clusters, self.threads());
        format!(
            "{clusters} clusters of {blocks} blocks of {threads} threads; a cluster that is done takes the next row; \
             {vectors} vectors of {vector} a thread, with room for {STAGES} rows in shared memory"
        )
    }

    /// How rows are held.
    pub(crate) fn rows(&self) -> &RowsPlan {
        &self.rows
    }

    pub(crate) fn threads(&self) -> i64 {
        self.rows.lanes * self.rows.warps
    }

    /// The part of a row that this block has.
    fn part(&self, k: &Build) -> Result<Expr, KernelError> {
        Ok(k.coordinate(&k.block_number(Axis::X), &[self.rows.blocks, 1])?[0].clone())
    }

    /// Declares the number of blocks, and loads this block's part of weights and bias.
    pub(crate) fn begin<'k>(&self, k: &'k Build, beside: &[&View<'k>]) -> Result<Vec<KeptVector<'k>>, KernelError> {
        k.threads(self.threads())?;
        k.resident(self.resident as u32)?;
        k.grid(Axis::X, self.rows.blocks * self.clusters)?;
        k.cluster(self.rows.blocks as u32)?;
        let part = self.part(k)?;
        let held = self.rows.run.reduced(&[0])?;
        let read = |row: &&View<'k>| {
            let tile = self.rows.cut(row, 1, [Expr::from(0), part.clone()])?;
            let runs =
                (0..self.rows.vectors as usize).map(|run| tile.slice(at_run(run)?)?.load_distributed_predicated(&held));
            Ok(KeptVector { runs: runs.collect::<Result<_, KernelError>>()? })
        };
        beside.iter().map(read).collect()
    }

    /// All iterations; `body` computes the row of each.
    pub(crate) fn each<'k>(
        &self,
        k: &'k Build,
        x: &View<'k>,
        body: impl FnOnce(&RowIteration<'_, 'k>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let RowsPlan { element, vectors, warps, blocks, .. } = self.rows;
        let part = self.part(k)?;
        let (copy, length) = (self.rows.copy_of_runs()?, self.rows.run_length());
        let layout = Layout::strided((1, length, vectors, STAGES), (length, 1, length, length * vectors))?;
        let room = k.shared_of(element, &layout)?;
        let run_at = |stage: &Expr, run: i64| -> Result<View<'k>, KernelError> {
            let at: Coord<Expr> =
                Tree::flat([Slot::All, Slot::All, Slot::At(Expr::from(run)), Slot::At(stage.clone())])?;
            room.slice(at)
        };
        let fetch = |row: &Expr, stage: &Expr, run: i64| -> Result<(), KernelError> {
            k.copy_predicated(&copy, &self.rows.run_of(x, [row, &part], run)?, &run_at(stage, run)?)
        };
        let scheduler = k.prefetching_scheduler(k.size("M")?, STAGES as usize)?;
        for number in 0..STAGES {
            let (row, stage) = (scheduler.first(number as usize)?, Expr::from(number));
            (0..vectors).try_for_each(|run| fetch(&row, &stage, run))?;
            k.commit_async();
        }
        let layout = Layout::strided((GIVEN, blocks, STAGES), (1, GIVEN, GIVEN * blocks))?;
        let array = k.shared_of(Element::F32, &layout)?;
        let exchange = Exchange { array, cursor: k.pipeline(STAGES, (warps * blocks) as u32)?.cursor()? };
        scheduler.each(|claim| {
            k.wait_async(STAGES as u32 - 1);
            let stage = k.remainder(claim.iteration(), STAGES)?;
            let runs = (0..vectors).map(|run| self.rows.by_warps(&run_at(&stage, run)?));
            let runs = runs.collect::<Result<Vec<_>, KernelError>>()?;
            let (at, exchange) = ([claim.now().clone(), part.clone()], &exchange);
            let refill = |run: usize| fetch(&claim.ahead()?, &stage, run as i64);
            body(&RowIteration { k, plan: self, runs, at, exchange, refill: &refill, ask: &|| claim.ask() })?;
            k.commit_async();
            Ok(())
        })?;
        k.wait_async(0);
        // A block must not exit while others still write to its memory.
        k.cluster_barrier();
        Ok(())
    }
}

impl<'k> RowIteration<'_, 'k> {
    /// The runs, each as `(R,A,W)`, loaded on demand. Elements past the end of the row are 0.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Result<Distributed<'k>, KernelError>> + '_ {
        // The runs are loaded again each time, because keeping them would fill the registers.
        self.k.warp_barrier();
        self.runs.iter().map(|run| run.load_distributed(&self.plan.rows.run))
    }

    /// The same, with another number past the end.
    pub(crate) fn runs_or(&self, other: Num<'k>) -> impl Iterator<Item = Result<Distributed<'k>, KernelError>> + '_ {
        self.runs().enumerate().map(move |(number, run)| match self.counts(number)? {
            None => run,
            Some(inside) => run?.map(|x| Ok(inside.select(x, other))),
        })
    }

    /// Whether the elements of a thread in a run are in the row; None if all are.
    pub(crate) fn counts(&self, run: usize) -> Result<Option<Flag<'k>>, KernelError> {
        self.plan.rows.inside(self.k, run, &self.at[1])
    }

    /// Combines the results of the blocks of the cluster for the row: numbers that all threads of a
    /// block hold, one for each tile. Then claims a later row.
    pub(crate) fn across(
        &self,
        parts: Vec<Distributed<'k>>,
        combine: impl Fn(&[Num<'k>], &[Num<'k>]) -> Vec<Num<'k>>,
    ) -> Result<Vec<Num<'k>>, KernelError> {
        let k = self.k;
        let numbers = parts.iter().map(|part| Ok(part.fragment().numbers()?[0]));
        let mut numbers = numbers.collect::<Result<Vec<_>, KernelError>>()?;
        let count = numbers.len();
        let Exchange { array, cursor } = self.exchange;
        numbers.resize(GIVEN as usize, k.number_of(Element::F32, 0.0));
        let own = k.register(Element::F32, GIVEN)?;
        own.set(&numbers)?;
        let blocks = self.plan.rows.blocks;
        let stage = cursor.stage()?;
        let of = |rank: Expr| -> Result<View<'k>, KernelError> {
            let at: Coord<Expr> = Tree::flat([Slot::All, Slot::At(rank), Slot::At(stage.index().clone())])?;
            array.slice(at)
        };
        k.single(|| {
            stage.acquire()?;
            let mine = of(k.rank())?;
            mine.store(&own)?;
            k.fence_async();
            (1..blocks as u32).try_for_each(|by| stage.send(&mine, &mine, k.rank_after(by)?))?;
            stage.publish()
        })?;
        stage.wait()?;
        // Lane `i` takes the numbers of block `i`, because all of them would fill the registers of
        // a thread.
        let lanes = (blocks, LANES / blocks, self.plan.rows.warps);
        let taken = Distribution::new((GIVEN, blocks), Layout::strided((lanes, GIVEN), ((GIVEN, 0, 0), 1)))?;
        let own = Distribution::new((1, blocks), Layout::strided((lanes, 1), ((1, 0, 0), 0)))?;
        let at: Coord<Expr> = Tree::flat([Slot::All, Slot::All, Slot::At(stage.index().clone())])?;
        let numbers = array.slice(at)?.load_distributed(&taken)?.fragment().numbers()?;
        let tiles = numbers[..count].iter().map(|number| {
            let fragment = k.register(Element::F32, 1)?;
            fragment.fill(*number)?;
            fragment.distributed(&own)
        });
        let tiles = tiles.collect::<Result<Vec<_>, KernelError>>()?;
        let all = k.reduce_together(&tiles.iter().collect::<Vec<_>>(), &[1], |a, b| Ok(combine(a, b)))?;
        stage.release_to(0..blocks)?;
        cursor.advance()?;
        // The next row is claimed after the blocks have synchronized, so none waits for the
        // response.
        (self.ask)()?;
        all.iter().map(|tile| Ok(tile.fragment().numbers()?[0])).collect()
    }

    /// Computes a function of each run in f32 and keeps the results in registers. The buffer of a
    /// run is refilled as soon as the run has been read; elements past the end of the row are
    /// `other`.
    pub(crate) fn keep(
        &self,
        other: Num<'k>,
        each: impl Fn(Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let kept = self.runs_or(other).enumerate().map(|(number, run)| {
            let kept = each(run?.to(Element::F32)?)?;
            (self.refill)(number)?;
            Ok(kept)
        });
        kept.collect()
    }

    /// Writes runs that were kept to a matrix.
    pub(crate) fn write_kept(
        &self,
        runs: &[Distributed<'k>],
        matrix: &View<'k>,
        each: impl Fn(&Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let tile = self.plan.rows.cut(matrix, 1, self.at.clone())?;
        for (number, run) in runs.iter().enumerate() {
            let result = each(run)?.to(self.plan.rows.element)?;
            tile.slice(at_run(number)?)?.store_distributed_predicated(&result)?;
        }
        Ok(())
    }

    /// Writes a function of each run in f32, and of the matching runs of weights and bias, to a
    /// matrix. The buffer of a run is refilled as soon as the run has been read.
    pub(crate) fn write(
        &self,
        beside: &[KeptVector<'k>],
        matrix: &View<'k>,
        each: impl Fn(Distributed<'k>, &[Distributed<'k>]) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let tile = self.plan.rows.cut(matrix, 1, self.at.clone())?;
        for (number, run) in self.runs().enumerate() {
            let others: Vec<Distributed<'k>> =
                beside.iter().map(|row| row.runs[number].to(Element::F32)).collect::<Result<_, _>>()?;
            let result = each(run?.to(Element::F32)?, &others)?;
            (self.refill)(number)?;
            tile.slice(at_run(number)?)?.store_distributed_predicated(&result.to(self.plan.rows.element)?)?;
        }
        Ok(())
    }
}
