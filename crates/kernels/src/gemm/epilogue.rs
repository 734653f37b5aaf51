//! How sums leave a block.
//!
//! Law: a tile of sums is written where its rows and columns say, what lies past the edges is left
//! out. Sums of 16 bits go through shared memory, in panels of which the rows are those of the
//! swizzle, and the copy engine stores them while the next tile is multiplied. Sums in f32 of a block
//! that shares its tile are stored from registers, into the matrix of its range of steps.

use tilewright_atoms::{CopyAtom, CopyEnd, Operand, TiledCopy, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Fragment, KernelError, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Slot, Tree};

use super::plan::Plan;
use super::problem::{Problem, Written};
use super::schedule::{Unit, plus, times};
use crate::error::PlanError;
use crate::product::tile_at;

/// How the sums of a tile are written.
pub(super) struct Epilogue {
    result: Element,
    rows: i64,
    columns: i64,
    /// Rows and columns of D change places.
    swapped: bool,
    /// Matrices that are written, one for each range of steps along K; 1 for D itself.
    splits: i64,
    batch: i64,
    /// How registers reach shared memory; none where sums are stored from registers.
    store: Option<TiledCopy>,
    /// The layout of shared memory.
    panels: String,
}

impl Epilogue {
    pub(super) fn of(problem: &Problem, plan: &Plan, mma: &TiledMma) -> Result<Epilogue, PlanError> {
        let Plan { rows, columns, swapped, splits, .. } = *plan;
        // Matrices of 8 x 8 as the sums lie in the lanes, as many at a time as columns allow.
        let atom = match (swapped, columns % 16) {
            (false, 0) => "SM90_U32x4_STSM_N",
            (false, _) => "SM90_U32x2_STSM_N",
            (true, 0) => "SM90_U16x8_STSM_T",
            (true, _) => "SM90_U16x4_STSM_T",
        };
        let store = match splits {
            1 => Some(TiledCopy::of_operand_in(CopyAtom::named(atom)?, mma, Operand::C, 16)?),
            _ => None,
        };
        Ok(Epilogue {
            result: problem.result(),
            rows,
            columns,
            swapped,
            splits,
            batch: problem.batch(),
            store,
            panels: panels(rows, columns, swapped),
        })
    }

    /// What is written: D, or the sums of each range of steps.
    pub(super) fn tensor<'k>(&self, k: &'k Build, written: &Written) -> Result<View<'k>, KernelError> {
        match self.splits {
            1 => k.tensor_of(self.result, "d", &written.d(), Role::Output),
            splits => k.tensor_of(Element::F32, "sums", &written.sums(splits), Role::Output),
        }
    }

    /// Shared memory through which a tile is stored.
    pub(super) fn staged<'k>(&self, k: &'k Build) -> Result<Option<View<'k>>, KernelError> {
        if self.store.is_none() { Ok(None) } else { k.shared_of(self.result, &self.panels).map(Some) }
    }

    /// The sums of a tile, in registers.
    pub(super) fn sums<'k>(
        &self,
        mma: &TiledMma,
        staged: &Option<View<'k>>,
        d: &View<'k>,
    ) -> Result<Fragment<'k>, KernelError> {
        let part = match staged {
            Some(staged) => staged.partition_mma(mma, Operand::C)?,
            None => self.tile(d, &Expr::from(0), &Expr::from(0), &Expr::from(0))?.partition_mma(mma, Operand::C)?,
        };
        part.fragment_of(Element::F32)
    }

    /// A tile of a matrix of what is written.
    fn tile<'k>(&self, d: &View<'k>, matrix: &Expr, row: &Expr, column: &Expr) -> Result<View<'k>, KernelError> {
        let d = match self.splits * self.batch {
            1 => d.clone(),
            _ => d.slice(Tree::flat([Slot::All, Slot::All, Slot::At(matrix.clone())])?)?,
        };
        let d = if self.swapped { d.select(&[1, 0])? } else { d };
        d.local_tile(&format!("({},{})", self.rows, self.columns), tile_at(row, Some(column))?)
    }

    /// Writes the sums of a part of the work.
    pub(super) fn write<'k>(
        &self,
        k: &'k Build,
        mma: &TiledMma,
        sums: &Fragment<'k>,
        staged: &Option<View<'k>>,
        d: &View<'k>,
        unit: &Unit,
    ) -> Result<(), KernelError> {
        let own = unit.matrix.clone().unwrap_or(Expr::from(0));
        let number = match &unit.split {
            None => own,
            Some(split) if self.batch == 1 => split.clone(),
            Some(split) => plus(&times(split, &Expr::from(self.batch))?, &own)?,
        };
        let tile = self.tile(d, &number, &unit.row, &unit.column)?;
        let (Some(store), Some(staged)) = (&self.store, staged) else {
            return tile.partition_mma(mma, Operand::C)?.store_predicated(sums);
        };
        // The tile before has been read from shared memory.
        k.single(|| {
            k.wait_bulk(0);
            Ok(())
        })?;
        k.barrier();
        k.copy(store, &sums.to(self.result)?.retile(store, CopyEnd::Source)?, staged)?;
        k.fence_async();
        k.barrier();
        k.single(|| {
            k.store_bulk(staged, &tile)?;
            k.commit_bulk();
            Ok(())
        })
    }

    /// Waits for the last stores.
    pub(super) fn end(&self, k: &Build) -> Result<(), KernelError> {
        if self.store.is_none() {
            return Ok(());
        }
        k.single(|| {
            k.wait_bulk(0);
            Ok(())
        })
    }
}

/// Panels of a tile in shared memory: lines of up to 128 bytes along the contiguous mode of D.
fn panels(rows: i64, columns: i64, swapped: bool) -> String {
    let (along, across) = if swapped { (rows, columns) } else { (columns, rows) };
    let width = [64, 32, 16, 8].into_iter().find(|width| along % width == 0).unwrap_or(8);
    let swizzle = match width {
        64 => "S<3,3,3> o 0 o ",
        32 => "S<2,3,3> o 0 o ",
        16 => "S<1,3,3> o 0 o ",
        _ => "",
    };
    let (along_shape, along_stride) = (format!("({width},{})", along / width), format!("(1,{})", width * across));
    if swapped {
        format!("{swizzle}({along_shape},{across}):({along_stride},{width})")
    } else {
        format!("{swizzle}({across},{along_shape}):({width},{along_stride})")
    }
}
