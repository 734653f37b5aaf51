//! How sums leave a block.
//!
//! Law: a tile of sums, or of what the function of the problem makes of them, is written where its rows
//! and columns say; what lies past the edges is left out. It is taken in strips of columns, each of
//! which is computed, converted and written before the next, so that few registers are needed
//! besides the sums. Elements of 16 bits go through shared memory, in panels of which the rows are
//! those of the swizzle, and the copy engine stores them while the next tile is multiplied. Others,
//! and tensors that the copy engine does not write, are stored from registers; so are sums in f32 of a
//! block that shares its tile, into the matrix of its range of steps.

use tilewright_atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Element, Fragment, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Tiler, Tree};

use super::fused::{self, Input};
use super::matrix::Contiguous;
use super::plan::Plan;
use super::problem::{Fused, Problem, Written};
use super::schedule::{Unit, plus, times};
use crate::error::PlanError;
use crate::product::tile_at;

/// The most columns of a strip.
const STRIP: i64 = 64;

/// How the sums of a tile are written.
pub(super) struct Epilogue {
    result: Element,
    /// The type of the sums.
    sums: Element,
    rows: i64,
    columns: i64,
    /// Columns of a strip.
    strip: i64,
    /// In how many parts a tile goes through shared memory.
    parts: i64,
    /// The product of which a strip is the result.
    part: TiledMma,
    /// Rows and columns of D change places.
    swapped: bool,
    /// Matrices that are written, one for each range of steps along K; 1 for D itself.
    splits: i64,
    batch: i64,
    /// How registers reach shared memory; none where D is stored from registers.
    store: Option<TiledCopy>,
    /// The layout of shared memory.
    panels: String,
    /// What is done with the sums; nothing where a block shares its tile.
    fused: Option<Fused>,
}

/// What the sums of a kernel are written to, and what is read beside them.
pub(super) struct Ends<'k> {
    d: View<'k>,
    staged: Option<View<'k>>,
    inputs: Vec<Input<'k>>,
}

impl Epilogue {
    /// For a product whose instructions have this name with other columns. `stored` says in which mode D
    /// is stored by bulk copies.
    pub(super) fn of(
        problem: &Problem,
        plan: &Plan,
        stored: Option<Contiguous>,
        atom: &dyn Fn(i64) -> String,
    ) -> Result<Epilogue, PlanError> {
        let Plan { rows, columns, groups, swapped, splits, .. } = *plan;
        let stored = stored.filter(|_| splits == 1);
        // Lines of a panel lie along the contiguous mode of D.
        let along_rows = swapped != (stored == Some(Contiguous::Rows));
        let width = width(if along_rows { rows } else { columns });
        let step = if along_rows { 8 } else { width };
        let parts = if stored.is_some() { plan.parts(problem) } else { 1 };
        let strip = (1..=STRIP / step).rev().map(|count| count * step).find(|strip| columns / parts % strip == 0);
        let strip = strip.unwrap_or(step);
        let depth = problem.depth() / 4;
        let order: Tiler = format!("[{rows}:1;{strip}:1;{depth}:1]").parse()?;
        let part = TiledMma::new(MmaAtom::named(&atom(strip))?, &format!("({groups},1,1)").parse::<Layout>()?, &order)?;
        // Matrices of 8 x 8 as the sums lie in the lanes, as many at a time as columns allow.
        let matrices = match (along_rows, strip % 16) {
            (false, 0) => "SM90_U32x4_STSM_N",
            (false, _) => "SM90_U32x2_STSM_N",
            (true, 0) => "SM90_U16x8_STSM_T",
            (true, _) => "SM90_U16x4_STSM_T",
        };
        let store = match stored {
            Some(_) => Some(TiledCopy::of_operand_in(CopyAtom::named(matrices)?, &part, Operand::C, 16)?),
            None => None,
        };
        Ok(Epilogue {
            result: problem.result(),
            sums: problem.sums(),
            rows,
            columns,
            strip,
            parts,
            part,
            swapped,
            splits,
            batch: problem.batch(),
            store,
            panels: panels(rows, columns / parts, along_rows, width),
            fused: problem.function().filter(|_| splits == 1).cloned(),
        })
    }

    /// The tensors of inputs, and what is written: D, or the sums of each range of steps; and shared
    /// memory through which a tile is stored.
    pub(super) fn ends<'k>(&self, k: &'k Build, written: &Written) -> Result<Ends<'k>, KernelError> {
        let inputs = self.fused.as_ref().map_or(Ok(Vec::new()), |fused| fused::inputs(k, fused, self.swapped))?;
        let d = match self.splits {
            1 => k.tensor_of(self.result, "d", &written.tensors[2], Role::Output)?,
            splits => k.tensor_of(Element::F32, "sums", &written.sums(splits), Role::Output)?,
        };
        let staged = if self.store.is_none() { None } else { Some(k.shared_of(self.result, &self.panels)?) };
        Ok(Ends { d, staged, inputs })
    }

    /// The sums of a tile, in registers: those of an instruction, and blocks of rows.
    pub(super) fn sums<'k>(&self, k: &'k Build) -> Result<Fragment<'k>, KernelError> {
        let blocks = fused::count_of(&self.part, self.rows);
        k.register(self.sums, &format!("((2,2,{}),{blocks},1)", self.columns / 8))
    }

    /// The sums of a strip.
    fn strip_of<'k>(&self, sums: &Fragment<'k>, number: i64) -> Result<Fragment<'k>, KernelError> {
        let (blocks, own) = (fused::count_of(&self.part, self.rows), self.columns / 2);
        let (count, held) = (self.columns / self.strip, self.strip / 2);
        let all: Layout = format!("((2,2,{}),{blocks},1,{count}):((1,2,4),{own},0,{held})", self.strip / 8).parse()?;
        sums.with_layout(&all)?.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(number)])?)
    }

    /// A part of a matrix of what is written, columns counted in parts.
    fn tile<'k>(&self, d: &View<'k>, unit: &Unit, columns: i64, column: &Expr) -> Result<View<'k>, KernelError> {
        let own = unit.matrix.clone().unwrap_or(Expr::from(0));
        let number = match &unit.split {
            None => own,
            Some(split) if self.batch == 1 => split.clone(),
            Some(split) => plus(&times(split, &Expr::from(self.batch))?, &own)?,
        };
        let d = match self.splits * self.batch {
            1 => d.clone(),
            _ => d.slice(Tree::flat([Slot::All, Slot::All, Slot::At(number)])?)?,
        };
        let d = if self.swapped { d.select(&[1, 0])? } else { d };
        d.local_tile(&format!("({},{columns})", self.rows), tile_at(&unit.row, Some(column))?)
    }

    /// What is written of a strip: the sums, or what the function makes of them.
    fn values<'k>(
        &self,
        k: &'k Build,
        sums: &Fragment<'k>,
        inputs: &[Input<'k>],
        unit: &Unit,
        column: &Expr,
    ) -> Result<Fragment<'k>, KernelError> {
        let result = if self.splits > 1 { Element::F32 } else { self.result };
        let Some(fused) = &self.fused else { return sums.to(result) };
        let tile = [self.rows, self.strip];
        let read = inputs.iter().map(|input| input.numbers(&self.part, self.swapped, unit, tile, column));
        let read: Vec<Vec<Num<'k>>> = read.collect::<Result<_, _>>()?;
        let mut computed = Vec::with_capacity(sums.size());
        for (at, sum) in sums.numbers()?.into_iter().enumerate() {
            let elements: Vec<Num<'k>> =
                std::iter::once(sum.to(Element::F32)).chain(read.iter().map(|numbers| numbers[at])).collect();
            computed.push(fused.expression.number(k, Element::F32, &elements));
        }
        let values = k.register(Element::F32, &sums.shape().to_string())?;
        values.set(&computed)?;
        values.to(result)
    }

    /// Writes the sums of a part of the work.
    pub(super) fn write<'k>(
        &self,
        k: &'k Build,
        sums: &Fragment<'k>,
        ends: &Ends<'k>,
        unit: &Unit,
    ) -> Result<(), KernelError> {
        let count = self.columns / self.strip;
        let column = |number: i64| plus(&times(&unit.column, &Expr::from(count))?, &Expr::from(number));
        let (Some(store), Some(staged)) = (&self.store, &ends.staged) else {
            for number in 0..count {
                let column = column(number)?;
                let values = self.values(k, &self.strip_of(sums, number)?, &ends.inputs, unit, &column)?;
                let tile = self.tile(&ends.d, unit, self.strip, &column)?;
                tile.partition_mma(&self.part, Operand::C)?.store_predicated(&values)?;
            }
            return Ok(());
        };
        for part in 0..self.parts {
            // The part before has been read from shared memory.
            k.single(|| {
                k.wait_bulk(0);
                Ok(())
            })?;
            k.barrier();
            let strips = count / self.parts;
            for at in 0..strips {
                let number = part * strips + at;
                let values = self.values(k, &self.strip_of(sums, number)?, &ends.inputs, unit, &column(number)?)?;
                let at = tile_at(&Expr::from(0), Some(&Expr::from(at)))?;
                let strip = staged.local_tile(&format!("({},{})", self.rows, self.strip), at)?;
                k.copy(store, &values.retile(store, CopyEnd::Source)?, &strip)?;
            }
            k.fence_async();
            k.barrier();
            let at = plus(&times(&unit.column, &Expr::from(self.parts))?, &Expr::from(part))?;
            let tile = self.tile(&ends.d, unit, self.columns / self.parts, &at)?;
            k.single(|| {
                k.store_bulk(staged, &tile)?;
                k.commit_bulk();
                Ok(())
            })?;
        }
        Ok(())
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

/// Elements of 16 bits of a line of a panel: up to 128 bytes.
pub(super) fn width(along: i64) -> i64 {
    [64, 32, 16, 8].into_iter().find(|width| along % width == 0).unwrap_or(8)
}

/// The swizzle of lines of so many elements of 16 bits.
pub(super) fn swizzle(width: i64) -> &'static str {
    match width {
        64 => "S<3,3,3> o 0 o ",
        32 => "S<2,3,3> o 0 o ",
        16 => "S<1,3,3> o 0 o ",
        _ => "",
    }
}

/// Panels of a tile in shared memory: lines of up to 128 bytes along the contiguous mode of D.
fn panels(rows: i64, columns: i64, along_rows: bool, width: i64) -> String {
    let (along, across) = if along_rows { (rows, columns) } else { (columns, rows) };
    let swizzle = swizzle(width);
    let (along_shape, along_stride) = (format!("({width},{})", along / width), format!("(1,{})", width * across));
    if along_rows {
        format!("{swizzle}({along_shape},{across}):({along_stride},{width})")
    } else {
        format!("{swizzle}({across},{along_shape}):({width},{along_stride})")
    }
}
