//! The rows of a block, in registers and in shared memory that cp.async fills.
//!
//! Law: each thread copies the 16 bytes of a run that it reads itself, so no thread waits for the
//! copies of others.

use std::cell::RefCell;

use tilewright_kernel::{Build, Distributed, Distribution, Flag, KernelError, Num, View};
use tilewright_layout::atoms::{CopyAtom, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use super::{RowsPlan, at_run};
use crate::law::{DATA_REGISTERS, REGISTER_VECTORS};
use crate::units::div_up;

/// Rows that a block holds: the first runs in shared memory, the others in registers.
pub(crate) struct Held<'k> {
    stored: Vec<View<'k>>,
    kept: Vec<Distributed<'k>>,
    run: Distribution,
    /// For each stored run that may be cut: the value past the end of the row, and which elements
    /// are inside.
    ends: Vec<Option<End<'k>>>,
    /// For stored runs that have not been waited for: the number of copy groups that may still be
    /// in flight when the run is read.
    under_way: RefCell<Vec<Option<u32>>>,
}

/// The value past the end of a row, and whether the elements of a thread are in the row.
pub(super) type End<'k> = (Num<'k>, Flag<'k>);

impl<'k> Held<'k> {
    /// The runs, each as `(R,A,W)`, loaded on demand.
    pub(crate) fn runs<'a>(&'a self, k: &'a Build) -> impl Iterator<Item = Result<Distributed<'k>, KernelError>> + 'a {
        // These runs are loaded again each time, because keeping them would fill the registers.
        if !self.stored.is_empty() {
            k.warp_barrier();
        }
        (0..self.stored.len() + self.kept.len()).map(move |number| {
            if let Some(groups) = self.under_way.borrow_mut().get_mut(number).and_then(Option::take) {
                k.wait_async(groups);
            }
            self.run(number)
        })
    }

    /// A run by its index.
    fn run(&self, number: usize) -> Result<Distributed<'k>, KernelError> {
        match self.stored.get(number) {
            Some(array) => {
                let run = array.load_distributed(&self.run)?;
                match &self.ends[number] {
                    None => Ok(run),
                    Some((other, inside)) => run.map(|x| Ok(inside.select(x, *other))),
                }
            }
            None => Ok(self.kept[number - self.stored.len()].clone()),
        }
    }
}

/// Weights or a bias.
pub(crate) struct RowVector<'k> {
    tile: View<'k>,
    held: Distribution,
    /// The first runs, which have been loaded already.
    early: Vec<Distributed<'k>>,
}

impl<'k> RowVector<'k> {
    pub(super) fn run(&self, run: usize) -> Result<Distributed<'k>, KernelError> {
        match self.early.get(run) {
            Some(run) => Ok(run.clone()),
            None => self.tile.slice(at_run(run)?)?.load_distributed_predicated(&self.held),
        }
    }
}

impl RowsPlan {
    /// Whether weights and bias are loaded early: if warps wait for each other, or lanes have
    /// registers to spare.
    fn reads_early(&self) -> bool {
        let spare = self.element.bytes() == 2 && self.beside == 1;
        self.stored == 0 && (self.warps > 1 || spare)
    }

    /// Weights or a bias, `(1,N)`. They are in L1 or L2, and most of them are loaded late. Before
    /// threads wait for each other, as many are loaded at once as fit in registers.
    pub(crate) fn beside<'k>(&self, k: &'k Build, row: &View<'k>) -> Result<RowVector<'k>, KernelError> {
        let [_, part] = self.at(k)?;
        let (tile, held) = (self.cut(row, 1, [Expr::from(0), part])?, self.run.reduced(&[0])?);
        let mut beside = RowVector { tile, held, early: Vec::new() };
        if self.reads_early() {
            let runs = self.vectors.min(DATA_REGISTERS / self.vector) as usize;
            beside.early = (0..runs).map(|run| beside.run(run)).collect::<Result<_, _>>()?;
        }
        Ok(beside)
    }

    /// Loads the rows of this block; elements past the end are 0, or `other`. Declares the number
    /// of blocks that should be resident.
    pub(crate) fn load<'k>(
        &self,
        k: &'k Build,
        matrix: &View<'k>,
        other: Option<Num<'k>>,
    ) -> Result<Held<'k>, KernelError> {
        RowsPlan::state_resident_blocks(k, &[self])?;
        self.load_beside(k, matrix, other)
    }

    /// As [`RowsPlan::load`], in a kernel that holds rows of several matrices and declares the
    /// number of resident blocks once for all of them.
    pub(crate) fn load_beside<'k>(
        &self,
        k: &'k Build,
        matrix: &View<'k>,
        other: Option<Num<'k>>,
    ) -> Result<Held<'k>, KernelError> {
        let tile = self.tile(k, matrix)?;
        if self.blocks > 1 {
            // The arrival is early, so that the other blocks of the cluster do not have to wait
            // before they write to this block.
            k.cluster_arrive();
        }
        // The first runs are used while the others are in flight.
        let (mut stored, group) = (Vec::new(), REGISTER_VECTORS);
        if self.stored > 0 {
            let (copy, length) = (self.copy_of_runs()?, self.run_length());
            let [row, part] = self.at(k)?;
            for number in 0..self.stored {
                let array = k.shared_of(self.element, Layout::strided((1, length), (length, 1)))?;
                let part = self.run_of(matrix, [&row, &part], number)?;
                if self.blocks == 1 {
                    k.copy(&copy, &part, &array)?;
                } else {
                    // The number of rows may be less than the number of clusters, so the copy is
                    // predicated.
                    k.copy_predicated(&copy, &part, &array)?;
                }
                stored.push(self.by_warps(&array)?);
                if (number + 1) % group == 0 || number + 1 == self.stored {
                    k.commit_async();
                }
            }
        }
        // All runs of a group are waited for when the first of them is read.
        let groups = div_up(self.stored, group);
        let wait = |run: i64| (run % group == 0).then(|| (groups - 1 - run / group) as u32);
        let under_way = RefCell::new((0..self.stored).map(wait).collect());
        let mut kept = Vec::new();
        for run in self.stored..self.vectors {
            let part = tile.slice(at_run(run as usize)?)?;
            kept.push(match other {
                Some(other) => part.load_distributed_or(&self.run, other)?,
                None => part.load_distributed_predicated(&self.run)?,
            });
        }
        let end = |run: usize| {
            let Some(other) = other else { return Ok(None) };
            Ok(self.counts(k, run)?.map(|inside| (other, inside)))
        };
        let ends = (0..stored.len()).map(end).collect::<Result<Vec<_>, KernelError>>()?;
        Ok(Held { stored, kept, run: self.run.clone(), ends, under_way })
    }
}

impl RowsPlan {
    /// Elements of a run of a block.
    pub(super) fn run_length(&self) -> i64 {
        self.lanes * self.warps * self.vector
    }

    /// The tiled copy of a run by the threads of a block.
    pub(super) fn copy_of_runs(&self) -> Result<TiledCopy, KernelError> {
        let (threads, vector) = (self.lanes * self.warps, self.vector);
        Ok(TiledCopy::new(
            CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
            i64::from(self.element.bits()),
            &Layout::strided((1, threads), (threads, 1))?,
            &Layout::strided((1, vector), (vector, 1))?,
        )?)
    }

    /// A run of the part of a row that a block has.
    pub(super) fn run_of<'k>(
        &self,
        matrix: &View<'k>,
        [row, part]: [&Expr; 2],
        run: i64,
    ) -> Result<View<'k>, KernelError> {
        let overflow = || LayoutError::Overflow { op: "run" };
        let before = Stride::times(part, &Expr::from(self.vectors)).ok_or_else(overflow)?;
        let column = Stride::plus(&before, &Expr::from(run)).ok_or_else(overflow)?;
        let at: Coord<Expr> = Tree::flat([Slot::At(row.clone()), Slot::At(column)])?;
        matrix.local_tile((1, self.run_length()), at)
    }

    /// A run in shared memory as `(R,A,W)`.
    pub(super) fn by_warps<'k>(&self, run: &View<'k>) -> Result<View<'k>, KernelError> {
        let (own, warps) = (self.vector * self.lanes, self.warps);
        let modes = Layout::strided((1, own, warps), (0, 1, own))?;
        run.compose(&modes)
    }
}
