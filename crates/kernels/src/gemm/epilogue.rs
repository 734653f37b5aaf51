//! How sums leave a block.
//!
//! Law: a tile of sums, or of what the function of the problem makes of them, is written where its
//! rows and columns say; what lies past the edges is left out. It is taken in strips of columns,
//! each of which is computed, converted and written before the next, so that few registers are
//! needed besides the sums. Elements of 16 and of 32 bits go through shared memory, in panels of
//! which the rows are those of the swizzle, and the copy engine stores them while the next tile is
//! multiplied; where it cannot, threads write those of 16 bits side by side. Others, and tensors of
//! which neither mode is contiguous, are stored from registers; so are sums in f32 of a block that
//! shares its tile, into the matrix of its range of steps.

use tilewright_atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::{Build, Cursor, Distributed, Element, Fragment, KernelError, Num, Pipeline, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, Slot, Tiler, Tree};

use super::byproduct::Taker;
use super::fused::{self, Fetch, Input};
use super::matrix::Contiguous;
use super::plan::Plan;
use super::problem::{Fused, Problem, Written};
use super::schedule::{Unit, minus, overflow, plus, times};
use crate::error::PlanError;
use crate::product::tile_at;

/// The most pieces in which a tile of an input comes.
const PIECES: i64 = 8;
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
    /// In how many parts a tile goes through shared memory, and through how many buffers in turn.
    parts: i64,
    buffers: i64,
    /// The product of which a strip is the result.
    part: TiledMma,
    /// Rows and columns of D change places.
    swapped: bool,
    /// Matrices that are written, one for each range of steps along K; 1 for D itself.
    splits: i64,
    batch: i64,
    /// Whether D goes through shared memory, not from registers, and whether its lines go along the
    /// rows of a tile there.
    through: bool,
    along_rows: bool,
    /// How registers reach shared memory, where matrices of 16 bits are stored there.
    store: Option<TiledCopy>,
    /// How threads write from there; none where bulk copies do.
    spread: Option<TiledCopy>,
    /// The layout of shared memory.
    panels: String,
    /// What is done with the sums; nothing where a block shares its tile.
    fused: Option<Fused>,
    /// How the inputs come ahead of the sums.
    fetches: Vec<Option<Fetch>>,
    /// How a tile that came ahead reaches registers.
    load: Option<TiledCopy>,
    /// What is kept of rows and columns.
    takers: Vec<Taker>,
    /// Sums that make one number of D: two of pairs.
    each: usize,
}

/// What the sums of a kernel are written to, and what is read beside them.
pub(super) struct Ends<'k> {
    d: View<'k>,
    /// What tiles leave of their rows and columns.
    kept: Vec<View<'k>>,
    /// The buffers through which it goes.
    staged: Vec<View<'k>>,
    inputs: Vec<Input<'k>>,
    /// The one stage of inputs that come ahead.
    ahead: Option<Pipeline<'k>>,
}

/// What is read beside the sums, and shared memory through which a tile is stored.
pub(super) struct Beside<'k> {
    staged: Vec<View<'k>>,
    inputs: Vec<Input<'k>>,
}

impl Epilogue {
    /// `staged` says in which mode D goes through shared memory, if so, and whether bulk copies
    /// store it from there.
    pub(super) fn of(
        problem: &Problem,
        plan: &Plan,
        staged: Option<(Contiguous, bool)>,
    ) -> Result<Epilogue, PlanError> {
        let Plan { groups, swapped, splits, .. } = *plan;
        let [rows, columns] = plan.tile_of_d(problem);
        let staged = staged.filter(|_| splits == 1);
        let stored = staged.map(|(contiguous, _)| contiguous);
        // Lines of a panel lie along the contiguous mode of D.
        let along_rows = swapped != (stored == Some(Contiguous::Rows));
        // Elements of 8 bits are stored from registers, in strips like those of 16.
        let bytes = i64::from(problem.result().bytes().max(2));
        let width = width(if along_rows { rows } else { columns }, bytes);
        let step = if along_rows { 8 } else { width };
        let (parts, buffers) = if stored.is_some() { plan.parts(problem) } else { (1, 1) };
        let strip = (1..=STRIP / step).rev().map(|count| count * step).find(|strip| columns / parts % strip == 0);
        let strip = strip.unwrap_or(step);
        // Sums lie alike in all products of four warps; those of integers have not every number of
        // columns.
        let order: Tiler = format!("[{rows}:1;{strip}:1;16:1]").parse()?;
        let sums = MmaAtom::named(&format!("SM90_64x{strip}x16_F32BF16BF16_SS"))?;
        let part = TiledMma::new(sums, &format!("({groups},1,1)").parse::<Layout>()?, &order)?;
        // Matrices of 8 x 8 as the sums lie in the lanes, as many at a time as columns allow.
        let matrices = match (along_rows, strip % 16) {
            (false, 0) => "SM90_U32x4_STSM_N",
            (false, _) => "SM90_U32x2_STSM_N",
            (true, 0) => "SM90_U16x8_STSM_T",
            (true, _) => "SM90_U16x4_STSM_T",
        };
        let turned = match (along_rows, strip % 16) {
            (false, 0) => "SM75_U32x4_LDSM_N",
            (false, _) => "SM75_U32x2_LDSM_N",
            (true, 0) => "SM75_U16x8_LDSM_T",
            (true, _) => "SM75_U16x4_LDSM_T",
        };
        let spread = match staged {
            Some((_, false)) => {
                let one = CopyAtom::named("UniversalCopy<uint16_t>")?;
                let threads = neighbours(part.threads(), [rows, columns / parts], along_rows)?;
                Some(TiledCopy::new(one, 16, &threads.parse::<Layout>()?, &"(1,1)".parse::<Layout>()?)?)
            }
            _ => None,
        };
        let function = problem.function().filter(|_| splits == 1);
        let fetches = match (function, stored) {
            (Some(fused), Some(stored)) => {
                fused::fetches(fused, problem.d(), (stored, parts == 1), swapped, [rows, columns])
            }
            _ => Vec::new(),
        };
        let load = match bytes == 2 && fetches.contains(&Some(Fetch::Tile)) {
            true => Some(TiledCopy::of_operand_in(CopyAtom::named(turned)?, &part, Operand::C, 16)?),
            false => None,
        };
        let store = match stored {
            Some(_) if bytes == 2 => Some(TiledCopy::of_operand_in(CopyAtom::named(matrices)?, &part, Operand::C, 16)?),
            _ => None,
        };
        let takers = problem.by_products().map(|by| Taker::of(by, problem, plan, &part, [rows, strip]));
        let takers = takers.collect::<Result<_, _>>()?;
        Ok(Epilogue {
            result: problem.result(),
            sums: problem.sums(),
            rows,
            columns,
            strip,
            parts,
            buffers,
            through: stored.is_some(),
            along_rows,
            part,
            swapped,
            splits,
            batch: problem.batch(),
            store,
            spread,
            panels: panels(rows, columns / parts, along_rows, (width, bytes)),
            fused: function.cloned(),
            fetches,
            load,
            takers,
            each: if problem.pairs().is_some() { 2 } else { 1 },
        })
    }

    /// The tensors of the inputs of the function, and shared memory through which a tile is stored.
    pub(super) fn inputs<'k>(&self, k: &'k Build) -> Result<Beside<'k>, KernelError> {
        let buffers = if self.through { self.buffers } else { 0 };
        let staged = (0..buffers).map(|_| k.shared_of(self.result, &self.panels));
        let staged: Vec<View<'k>> = staged.collect::<Result<_, _>>()?;
        let (tile, fetches) = ([self.rows, self.columns], (&self.fetches[..], staged.first()));
        let declared = |fused| fused::inputs(k, fused, self.swapped, tile, fetches);
        let inputs = self.fused.as_ref().map_or(Ok(Vec::new()), declared)?;
        Ok(Beside { staged, inputs })
    }

    /// What is written: D, or the sums of each range of steps, and what is kept besides.
    pub(super) fn ends<'k>(
        &self,
        k: &'k Build,
        written: &Written,
        Beside { staged, inputs }: Beside<'k>,
    ) -> Result<Ends<'k>, KernelError> {
        let d = match self.splits {
            1 => k.tensor_of(self.result, "d", &written.tensors[2], Role::Output)?,
            splits => k.tensor_of(Element::F32, "sums", &written.sums(splits), Role::Output)?,
        };
        let kept = self.takers.iter().enumerate().map(|(at, taker)| taker.declare(k, &format!("kept{at}")));
        let kept = kept.collect::<Result<_, _>>()?;
        let warps = (self.part.threads() / 32) as u32;
        let ahead = self.fetches.iter().any(Option::is_some);
        let ahead = if ahead { Some(k.pipeline(1, warps)?) } else { None };
        Ok(Ends { d, kept, staged, inputs, ahead })
    }

    /// Sets off the inputs of a part of the work, when those before have been used and what was
    /// written before has left shared memory: in pieces, each after the copies of so many steps
    /// more, which `copies` sets off, so that these do not wait for all of them.
    pub(super) fn fetch<'k>(
        &self,
        ends: &Ends<'k>,
        cursor: &Cursor<'k>,
        unit: &Unit,
        copies: impl Fn(Expr, Expr) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let strips = self.columns / self.strip;
        // Strips of columns are apart in panels of which the lines go along the rows.
        let apart = !self.along_rows && self.fetches.contains(&Some(Fetch::Tile)) && strips <= PIECES;
        let pieces = if apart { strips } else { 1 };
        // The first half of the steps comes before; then the place is free.
        let half = unit.steps.divide_up(&Expr::from(2)).ok_or_else(overflow)?;
        copies(Expr::from(0), half.clone())?;
        let stage = cursor.stage()?;
        stage.acquire()?;
        let others = minus(&unit.steps, &half)?;
        let until = |piece: i64| {
            let part = times(&others, &Expr::from(piece))?.floor_div(&Expr::from(pieces)).ok_or_else(overflow)?;
            plus(&half, &part)
        };
        for piece in 0..pieces {
            for input in &ends.inputs {
                input.fetch(&stage, self.swapped, unit, [self.rows, self.columns], (piece, pieces))?;
            }
            if piece + 1 == pieces {
                stage.publish()?;
                cursor.advance()?;
            }
            copies(until(piece)?, until(piece + 1)?)?;
        }
        Ok(())
    }

    /// Lets the inputs of a part of the work come: by those who write, while it is multiplied.
    pub(super) fn let_come<'k>(&self, k: &'k Build, cursor: Option<&Cursor<'k>>) -> Result<(), KernelError> {
        let Some(cursor) = cursor else { return Ok(()) };
        k.single(|| {
            k.wait_bulk(0);
            Ok(())
        })?;
        cursor.stage()?.release()
    }

    /// The place of a role in the stage of inputs that come ahead; those who fill it are one turn
    /// ahead, because its users say when it is free the first time, too.
    pub(super) fn cursor<'k>(&self, ends: &Ends<'k>, fills: bool) -> Result<Option<Cursor<'k>>, KernelError> {
        let Some(ahead) = &ends.ahead else { return Ok(None) };
        let cursor = ahead.cursor()?;
        if fills {
            cursor.advance()?;
        }
        Ok(Some(cursor))
    }

    /// The sums of a tile, in registers: those of an instruction, and blocks of rows; of pairs those
    /// of the first columns, and those of the second.
    pub(super) fn sums<'k>(&self, k: &'k Build) -> Result<Vec<Fragment<'k>>, KernelError> {
        let blocks = fused::count_of(&self.part, self.rows);
        let shape = format!("((2,2,{}),{blocks},1)", self.columns / 8);
        (0..self.each).map(|_| k.register(self.sums, &shape)).collect()
    }

    /// The sums of half of the columns of a tile, in registers.
    pub(super) fn half<'k>(&self, k: &'k Build) -> Result<Fragment<'k>, KernelError> {
        let blocks = fused::count_of(&self.part, self.rows);
        k.register(self.sums, &format!("((2,2,{}),{blocks},1)", self.columns / 16))
    }

    /// Those of the first or the second half, of the sums of a tile.
    pub(super) fn half_of<'k>(&self, sums: &Fragment<'k>, number: usize) -> Result<Fragment<'k>, KernelError> {
        let (blocks, own) = (fused::count_of(&self.part, self.rows), self.columns / 2);
        let all: Layout =
            format!("((2,2,{}),{blocks},1,2):((1,2,4),{own},0,{})", self.columns / 16, own / 2).parse()?;
        sums.with_layout(&all)?.slice(Tree::flat([Slot::All, Slot::All, Slot::All, Slot::At(number as i64)])?)
    }

    /// The same of numbers, of which there is one for each sum; none of none.
    pub(super) fn half_of_numbers<'k>(&self, numbers: &[Num<'k>], number: usize) -> Vec<Num<'k>> {
        // Of each block of rows one half of its columns.
        let own = self.columns as usize / 2;
        numbers.chunks(own).flat_map(|block| &block[number * own / 2..(number + 1) * own / 2]).copied().collect()
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

    /// A strip of a part of the work among all of D.
    fn column(&self, unit: &Unit, number: i64) -> Result<Expr, KernelError> {
        plus(&times(&unit.column, &Expr::from(self.columns / self.strip))?, &Expr::from(number))
    }

    /// What the inputs of the function have beside a strip of the sums.
    fn read<'k>(
        &self,
        k: &'k Build,
        sums: &[Fragment<'k>],
        inputs: &[Input<'k>],
        unit: &Unit,
        number: i64,
    ) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
        let (tile, column) = ([self.rows, self.strip], self.column(unit, number)?);
        let read = inputs.iter().map(|input| match (&input.fetched, &self.load) {
            (Some((Fetch::Tile, shared)), Some(load)) => {
                let at = tile_at(&Expr::from(0), Some(&Expr::from(number)))?;
                let strip = shared.local_tile(&format!("({},{})", self.rows, self.strip), at)?;
                let fragment = k.register(self.result, &self.strip_of(&sums[0], number)?.shape().to_string())?;
                k.copy(load, &strip, &fragment.retile(load, CopyEnd::Destination)?)?;
                Ok(fragment.numbers()?.into_iter().map(|number| number.to(Element::F32)).collect())
            }
            _ => input.numbers(&self.part, self.swapped, unit, tile, (number, &column)),
        });
        read.collect()
    }

    /// What is written of a strip: the sums, or what the function makes of them and of what was
    /// read. What is kept of rows and columns is taken meanwhile.
    fn values<'k>(
        &self,
        k: &'k Build,
        sums: &[Fragment<'k>],
        kept: &[View<'k>],
        unit: &Unit,
        (number, read): (i64, &[Vec<Num<'k>>]),
        taken: &mut [Option<Distributed<'k>>],
    ) -> Result<Fragment<'k>, KernelError> {
        let strips = sums.iter().map(|sums| self.strip_of(sums, number)).collect::<Result<Vec<_>, _>>()?;
        let result = if self.splits > 1 { Element::F32 } else { self.result };
        let made = match &self.fused {
            None => strips[0].clone(),
            Some(fused) => computed(k, fused, &strips, read)?,
        };
        if !self.takers.is_empty() {
            let (numbers, column) = (made.numbers()?, self.column(unit, number)?);
            for ((taker, to), taken) in self.takers.iter().zip(kept).zip(taken) {
                taker.take(k, &numbers, to, unit, &column, taken)?;
            }
        }
        made.to(result)
    }

    /// Writes the sums of a part of the work.
    pub(super) fn write<'k>(
        &self,
        k: &'k Build,
        sums: &[Fragment<'k>],
        (ends, cursor): (&Ends<'k>, Option<&Cursor<'k>>),
        unit: &Unit,
    ) -> Result<(), KernelError> {
        let mut taken: Vec<Option<Distributed<'k>>> = vec![None; self.takers.len()];
        self.write_strips(k, sums, (ends, cursor), unit, &mut taken)?;
        for ((taker, to), taken) in self.takers.iter().zip(&ends.kept).zip(taken) {
            taker.leave(to, unit, taken)?;
        }
        Ok(())
    }

    fn write_strips<'k>(
        &self,
        k: &'k Build,
        sums: &[Fragment<'k>],
        (ends, cursor): (&Ends<'k>, Option<&Cursor<'k>>),
        unit: &Unit,
        taken: &mut [Option<Distributed<'k>>],
    ) -> Result<(), KernelError> {
        let count = self.columns / self.strip;
        let read = |number: i64| self.read(k, sums, &ends.inputs, unit, number);
        if ends.staged.is_empty() {
            for number in 0..count {
                let values = self.values(k, sums, &ends.kept, unit, (number, &read(number)?), taken)?;
                let tile = self.tile(&ends.d, unit, self.strip, &self.column(unit, number)?)?;
                tile.partition_mma(&self.part, Operand::C)?.store_predicated(&values)?;
            }
            return Ok(());
        }
        for part in 0..self.parts {
            // Buffers take turns, from the first one on in each tile.
            let staged = &ends.staged[(part % self.buffers) as usize];
            let last = (self.parts - 1) % self.buffers;
            let under_way = if part == 0 && last == 0 { 0 } else { self.buffers as u32 - 1 };
            match cursor.filter(|_| part == 0) {
                // Whoever let the inputs come has waited until the tile before had been read from
                // shared memory.
                Some(cursor) => cursor.stage()?.wait()?,
                None => {
                    k.single(|| {
                        k.wait_bulk(under_way);
                        Ok(())
                    })?;
                    k.barrier();
                }
            }
            let strips = count / self.parts;
            // What is read of a strip is asked for before the one before it is stored.
            let mut next = read(part * strips)?;
            for at in 0..strips {
                let number = part * strips + at;
                let own = std::mem::take(&mut next);
                if at + 1 < strips {
                    next = read(number + 1)?;
                }
                let values = self.values(k, sums, &ends.kept, unit, (number, &own), taken)?;
                let at = tile_at(&Expr::from(0), Some(&Expr::from(at)))?;
                let strip = staged.local_tile(&format!("({},{})", self.rows, self.strip), at)?;
                match &self.store {
                    Some(store) => k.copy(store, &values.retile(store, CopyEnd::Source)?, &strip)?,
                    None => strip.partition_mma(&self.part, Operand::C)?.store(&values)?,
                }
            }
            let at = plus(&times(&unit.column, &Expr::from(self.parts))?, &Expr::from(part))?;
            let tile = self.tile(&ends.d, unit, self.columns / self.parts, &at)?;
            if let Some(spread) = &self.spread {
                k.barrier();
                k.copy_predicated(spread, staged, &tile)?;
                continue;
            }
            k.fence_async();
            k.barrier();
            k.single(|| {
                k.store_bulk(staged, &tile)?;
                k.commit_bulk();
                Ok(())
            })?;
        }
        cursor.map_or(Ok(()), Cursor::advance)
    }

    /// Waits for the last stores.
    pub(super) fn end(&self, k: &Build) -> Result<(), KernelError> {
        if !self.through || self.spread.is_some() {
            return Ok(());
        }
        k.single(|| {
            k.wait_bulk(0);
            Ok(())
        })
    }
}

/// What a function makes of the sums of a strip and of what was read beside them, in f32.
fn computed<'k>(
    k: &'k Build,
    fused: &Fused,
    strips: &[Fragment<'k>],
    read: &[Vec<Num<'k>>],
) -> Result<Fragment<'k>, KernelError> {
    let sums: Vec<Vec<Num<'k>>> = strips.iter().map(Fragment::numbers).collect::<Result<_, _>>()?;
    let mut computed = Vec::with_capacity(strips[0].size());
    for at in 0..strips[0].size() {
        let own = sums.iter().map(|sums| sums[at].to(Element::F32));
        let elements: Vec<Num<'k>> = own.chain(read.iter().map(|numbers| numbers[at])).collect();
        computed.push(fused.expression.number(k, Element::F32, &elements));
    }
    let values = k.register(Element::F32, &strips[0].shape().to_string())?;
    values.set(&computed)?;
    Ok(values)
}

/// Threads that write neighbours of a part of a tile: 32 side by side, or as many as divide it.
fn neighbours(threads: i64, [rows, columns]: [i64; 2], along_rows: bool) -> Result<String, PlanError> {
    let (along, across) = if along_rows { (rows, columns) } else { (columns, rows) };
    let whole = |side: &i64| along % side == 0 && threads % side == 0 && across % (threads / side) == 0;
    let side = [32, 16, 8, 64, 48, 24, 96, 128].into_iter().find(whole);
    let side = side.ok_or(PlanError::Plan { because: "threads that write neighbours do not divide a tile" })?;
    let others = threads / side;
    Ok(if along_rows { format!("({side},{others}):(1,{side})") } else { format!("({others},{side}):({side},1)") })
}

/// Elements of so many bytes of a line of a panel: up to 128 bytes.
pub(super) fn width(along: i64, bytes: i64) -> i64 {
    [128, 64, 32, 16].map(|line| line / bytes).into_iter().find(|width| along % width == 0).unwrap_or(16 / bytes)
}

/// The swizzle of lines of so many elements of so many bytes.
pub(super) fn swizzle(width: i64, bytes: i64) -> String {
    // Chunks of 16 bytes change places.
    let base = 4 - bytes.ilog2();
    match width * bytes {
        128 => format!("S<3,{base},3> o 0 o "),
        64 => format!("S<2,{base},3> o 0 o "),
        32 => format!("S<1,{base},3> o 0 o "),
        _ => String::new(),
    }
}

/// Panels of a tile in shared memory: lines of up to 128 bytes along the contiguous mode of D.
fn panels(rows: i64, columns: i64, along_rows: bool, (width, bytes): (i64, i64)) -> String {
    let (along, across) = if along_rows { (rows, columns) } else { (columns, rows) };
    let swizzle = swizzle(width, bytes);
    let (along_shape, along_stride) = (format!("({width},{})", along / width), format!("(1,{})", width * across));
    if along_rows {
        format!("{swizzle}({along_shape},{across}):({along_stride},{width})")
    } else {
        format!("{swizzle}({across},{along_shape}):({width},{along_stride})")
    }
}
