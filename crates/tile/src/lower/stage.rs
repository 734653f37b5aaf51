//! Tiles that go through shared memory to matrix instructions.
//!
//! Law: the tile of an iteration is in one stage of a ring. Before threads read it, they wait for
//! its copies and synchronize; before another tile is copied to the stage, all threads have read it
//! and synchronized. Copies for later iterations are in flight meanwhile.

use std::rc::Rc;

use tilewright_kernel::program::Location;
use tilewright_kernel::{Fragment, KernelError, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, Operand, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, IntoShape, Layout, LayoutError, Slot, Stride, Swizzle, Tree};

use super::{Lowering, over};
use crate::matrix::Tiling;
use crate::picked::part_shape;
use crate::program::ahead;
use crate::program::{Index, Loop, Operation, Program, Statement, ValueId};
use crate::staged_copy::StagedCopy;

/// The most bytes of shared memory of all rings of a loop, and for each warp of the block. Blocks of
/// few warps leave room for other blocks, whose warps compute while one waits. Measured on an H200.
const BYTES: i64 = 96 << 10;
const BYTES_OF_WARP: i64 = 48 << 10;
/// The most stages of a ring, and the least where these fit: copies are under way while an
/// iteration computes.
const STAGES: i64 = 4;
const LEAST_STAGES: i64 = 2;
/// How many elements along K an instruction takes.
const STEP: i64 = 16;
const LANES: i64 = tilewright_kernel::program::WARP_LANES as i64;

/// The contents of a stage, and how it is filled and read.
pub(super) struct StageRing<'k> {
    value: ValueId,
    tensor: usize,
    shape: Vec<i64>,
    at: Vec<Index>,
    /// The mode along which a value says where, and the value: one number, or the coordinate of
    /// each row.
    picked: Option<(usize, ValueId)>,
    /// The two modes of the tile in the order of the tensor.
    kept: [usize; 2],
    /// `(rows, columns, stages)` in the order of the tensor.
    ring: View<'k>,
    copy: Copy,
    /// The warps that copy, if the tile is too small for all of them.
    movers: Option<u32>,
    /// The loop's iteration, and how many stages there are; one stage outside of loops.
    stages: i64,
}

/// How a tile is copied.
enum Copy {
    /// All of it.
    Tile(Box<TiledCopy>),
    /// Row by row, each at a coordinate of its own.
    Rows(Box<CopyAtom>, StagedCopy),
}

/// A tile that is staged: its tensor, its shape, which tile it is, the modes of rows and columns,
/// and the value that says where along a mode.
type StagedTile<'s> = (usize, &'s Vec<i64>, &'s Vec<Index>, &'s [usize; 2], Option<(usize, ValueId)>);

impl<'k> Lowering<'k, '_> {
    /// The coordinate that the operand of a staged tile says.
    pub(super) fn place_of(&self, statement: &Statement) -> Result<Expr, KernelError> {
        let Statement::Let { operands, .. } = statement else { return Err(over()) };
        let numbers = self.numbers(*operands.first().ok_or_else(over)?)?;
        self.place_at(*numbers.first().ok_or_else(over)?)
    }

    /// The rings of the statements of a body.
    fn rings<'s>(
        &self,
        body: impl Iterator<Item = &'s Statement>,
        most: i64,
    ) -> Result<Vec<Rc<StageRing<'k>>>, KernelError> {
        let mut found = Vec::new();
        for statement in body {
            let Statement::Let {
                result,
                operation: Operation::Stage { tensor, shape, at, modes, picked },
                operands,
                ..
            } = statement
            else {
                continue;
            };
            let picked = picked.zip(operands.first().copied());
            found.push((*result, (*tensor, shape, at, modes, picked), statement.place()));
        }
        let bytes: i64 = found.iter().map(|(_, own, _)| own.1.iter().product::<i64>() * 2).sum();
        let threads = self.placed.layouts.values().next().map_or(LANES, crate::held::Held::threads);
        let fit = BYTES / bytes.max(1);
        let stages = fit.min((BYTES_OF_WARP * (threads / LANES) / bytes.max(1)).max(LEAST_STAGES));
        let stages = stages.clamp(1, STAGES).min(most);
        let ring = |(value, (tensor, shape, at, modes, picked), place): (ValueId, StagedTile<'_>, Location)| {
            place.during(|| {
                let kept = [modes[0].min(modes[1]), modes[0].max(modes[1])];
                let [first, second] = kept.map(|mode| shape[mode]);
                let inner = usize::from(!self.is_contiguous(tensor, kept[0]));
                let (run, rows) = if inner == 0 { (first, second) } else { (second, first) };
                let layout = layout([first, second], inner, Some((stages, first * second)))?;
                let element = self.placed.program.tensors[tensor].element;
                let ring = self.k.shared_of(element, &layout)?;
                self.note(place);
                let own = StagedCopy::new(run, rows, threads);
                let atom = CopyAtom::named(match own.chunk {
                    8 => "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>",
                    _ => "SM80_CP_ASYNC_CACHEALWAYS<uint64_t>",
                })?;
                let movers = own.movers();
                let copy = match &picked {
                    Some((mode, _)) if kept.contains(mode) => Copy::Rows(Box::new(atom), own),
                    _ => {
                        let (chunks, others) = (own.threads_of_line, own.lines_at_once);
                        let (movers, values) = match inner {
                            0 => (Layout::strided((chunks, others), (1, chunks))?, (own.chunk, 1)),
                            _ => (Layout::strided((others, chunks), (chunks, 1))?, (1, own.chunk)),
                        };
                        let values = Layout::compact(&values.into_shape()?)?;
                        Copy::Tile(Box::new(TiledCopy::new(atom, 16, &movers, &values)?))
                    }
                };
                Ok::<_, KernelError>(Rc::new(StageRing {
                    value,
                    tensor,
                    shape: shape.clone(),
                    at: at.clone(),
                    picked,
                    kept,
                    ring,
                    copy,
                    movers: (movers < threads).then_some((movers / LANES) as u32),
                    stages,
                }))
            })
        };
        found.into_iter().map(ring).collect()
    }

    fn is_contiguous(&self, tensor: usize, mode: usize) -> bool {
        self.placed.program.is_contiguous(tensor, mode)
    }

    /// Copies the tiles of an iteration to their stages.
    fn fetch(
        &mut self,
        rings: &[Rc<StageRing<'k>>],
        iteration: Option<(&Loop, &Expr)>,
        stage: &Expr,
    ) -> Result<(), KernelError> {
        // What the iteration that runs has of these values comes back afterwards.
        let mut kept = Vec::new();
        let mut before = None;
        if let Some((own, iteration)) = iteration {
            before = self.iterations.insert(own.iteration, iteration.clone());
            let picked: Vec<ValueId> = rings.iter().filter_map(|ring| Some(ring.picked?.1)).collect();
            for statement in ahead::statements_of(&own.body, &picked) {
                let Statement::Let { result, operation, operands, place } = statement else { continue };
                let made = place.during(|| self.given(*result, operation, operands))?;
                kept.push((*result, self.values.insert(*result, made)));
            }
        }
        for ring in rings {
            let copied = || match &ring.copy {
                Copy::Tile(copy) => self.copy_tile(ring, copy, stage),
                Copy::Rows(atom, own) => self.copy_rows(ring, (atom, *own), stage),
            };
            match ring.movers {
                Some(warps) => self.k.role(0..warps, copied)?,
                None => copied()?,
            }
        }
        self.k.commit_async();
        for (value, old) in kept {
            match old {
                Some(old) => self.values.insert(value, old),
                None => self.values.remove(&value),
            };
        }
        if let (Some((own, _)), Some(before)) = (iteration, before) {
            self.iterations.insert(own.iteration, before);
        }
        Ok(())
    }

    /// Copies a whole tile, at a coordinate along another mode where a number says it.
    fn copy_tile(&self, ring: &StageRing<'k>, copy: &TiledCopy, stage: &Expr) -> Result<(), KernelError> {
        let number = |value: ValueId| self.place_at(*self.numbers(value)?.first().ok_or_else(over)?);
        let picked = ring.picked.map(|(mode, value)| Ok::<_, KernelError>((mode, number(value)?))).transpose()?;
        let tile = self.tile(ring.tensor, &ring.shape, &ring.at, picked.as_slice())?;
        let one = |mode: usize| if ring.kept.contains(&mode) { Slot::All } else { Slot::At(Expr::from(0)) };
        let slots: Vec<Slot<Expr>> = (0..ring.shape.len()).map(one).collect();
        let tile = if slots.len() == 2 { tile } else { tile.slice(Tree::flat(slots)?)? };
        self.k.copy_predicated(copy, &tile, &ring.ring.slice(staged(stage)?)?)
    }

    /// Copies the rows of a tile, each from the coordinate that the thread has; zeros, where there
    /// is none.
    fn copy_rows(
        &self,
        ring: &StageRing<'k>,
        (atom, copy): (&CopyAtom, StagedCopy),
        stage: &Expr,
    ) -> Result<(), KernelError> {
        let k = self.k;
        let (mode, value) = ring.picked.ok_or_else(over)?;
        let along = ring.kept[usize::from(ring.kept[0] == mode)];
        let thread = k.thread()?;
        let (chunk, line) = (k.remainder(&thread, copy.threads_of_line)?, k.quotient(&thread, copy.threads_of_line)?);
        let line = k.remainder(&line, copy.lines_at_once)?;
        let shape = part_shape(&ring.shape, &[mode]);
        let one = |own: usize| if own == along { Slot::All } else { Slot::At(Expr::from(0)) };
        let of_row: Coord<Expr> = Tree::flat((0..shape.len()).map(one))?;
        for (number, row) in self.numbers(value)?.into_iter().enumerate() {
            let from = self.tile(ring.tensor, &shape, &ring.at, &[(mode, self.place_at(row)?)])?;
            let from = from.slice(of_row.clone())?.local_tile(copy.chunk, at(&chunk))?;
            let own = Stride::plus(&line, &Expr::from(number as i64 * copy.lines_at_once)).ok_or_else(over)?;
            let slots = ring.kept.map(|kept| if kept == mode { Slot::At(own.clone()) } else { Slot::All });
            let to: Coord<Expr> = Tree::flat(slots.into_iter().chain([Slot::At(stage.clone())]))?;
            let to = ring.ring.slice(to)?.local_tile(copy.chunk, at(&chunk))?;
            k.copy_predicated(atom, &from, &to)?;
        }
        Ok(())
    }

    /// The operands of an iteration are in this stage of their rings.
    fn has_staged(&mut self, rings: &[Rc<StageRing<'k>>], stage: &Expr) {
        for ring in rings {
            self.in_stage.insert(ring.value, (ring.clone(), stage.clone()));
        }
    }

    /// Reads an operand of the iteration from its stage; false where it is in none.
    pub(super) fn take_staged(&mut self, value: ValueId) -> Result<bool, KernelError> {
        let Some((ring, stage)) = self.in_stage.get(&value).cloned() else { return Ok(false) };
        let fragments = self.fragments(&ring, &stage)?;
        self.values.insert(value, super::ThreadValue::Operand(fragments));
        Ok(true)
    }

    fn fragments(&self, ring: &StageRing<'k>, stage: &Expr) -> Result<Vec<Fragment<'k>>, KernelError> {
        let held = self.held(ring.value)?;
        let multiplies = |tiling: &&Tiling| tiling.a == *held || tiling.b == *held;
        let tiling = self.placed.tilings.values().find(multiplies).ok_or_else(over)?;
        let left = tiling.a == *held;
        let shape = &self.placed.program.type_of(ring.value).shape;
        let (rows, depth) = if left { (shape[0], shape[1]) } else { (shape[1], shape[0]) };
        // Instructions have the rows of both operands first, and K behind.
        let Operation::Stage { modes, .. } = self.stage_of(ring.value)? else { return Err(over()) };
        let along = if left { modes } else { [modes[1], modes[0]] };
        let tile = ring.ring.slice(staged(stage)?)?;
        let tile = if along[0] < along[1] { tile } else { tile.select(&[1, 0])? };
        let beside = self.is_contiguous(ring.tensor, along[1]);
        let operand = if left { Operand::A } else { Operand::B };
        let name = match (beside, left || tiling.beside == 16) {
            (true, true) => "SM75_U32x4_LDSM_N",
            (true, false) => "SM75_U32x2_LDSM_N",
            (false, true) => "SM75_U16x8_LDSM_T",
            (false, false) => "SM75_U16x4_LDSM_T",
        };
        let load = TiledCopy::of_operand(CopyAtom::named(name)?, &tiling.mma, operand)?;
        let mut found = Vec::new();
        for step in 0..depth / STEP {
            let at: Coord<Expr> = Tree::flat([Slot::At(Expr::from(0)), Slot::At(Expr::from(step))])?;
            let part = tile.local_tile((rows, STEP), at)?;
            let fragment = part.partition_mma(&tiling.mma, operand)?.fragment()?;
            self.k.copy(&load, &part, &fragment.retile(&load, CopyEnd::Destination)?)?;
            found.push(fragment);
        }
        Ok(found)
    }

    pub(super) fn stage_of(&self, value: ValueId) -> Result<Operation, KernelError> {
        fn find(body: &[Statement], value: ValueId) -> Option<Operation> {
            body.iter().find_map(|statement| match statement {
                Statement::Let { result, operation, .. } if *result == value => Some(operation.clone()),
                Statement::Loop(own) => find(&own.body, value),
                _ => None,
            })
        }
        find(&self.placed.program.body, value).ok_or_else(over)
    }

    /// An operand outside of loops: copied, waited for and read.
    pub(super) fn staged_at_once(&mut self, statement: &Statement) -> Result<(), KernelError> {
        let rings = self.rings(std::iter::once(statement), 1)?;
        self.fetch(&rings, None, &Expr::from(0))?;
        self.k.wait_async(0);
        self.k.barrier();
        self.has_staged(&rings, &Expr::from(0));
        Ok(())
    }

    /// The rings of a loop, the first iterations under way.
    pub(super) fn begin_rings(&mut self, own: &Loop, inner: bool) -> Result<Vec<Rc<StageRing<'k>>>, KernelError> {
        let rings = self.rings(own.body.iter(), STAGES)?;
        let Some(first) = rings.first() else { return Ok(rings) };
        if inner {
            // The loop was here before: all threads have read what it left.
            self.k.barrier();
        }
        for iteration in 0..(first.stages - 1) {
            self.fetch(&rings, Some((own, &Expr::from(iteration))), &Expr::from(iteration))?;
        }
        Ok(rings)
    }

    /// The beginning of an iteration: its operands are there, and copies of a later iteration
    /// begin.
    pub(super) fn iteration_rings(
        &mut self,
        own: &Loop,
        rings: &[Rc<StageRing<'k>>],
        iteration: &Expr,
    ) -> Result<(), KernelError> {
        let Some(stages) = rings.first().map(|ring| ring.stages) else { return Ok(()) };
        if stages == 1 {
            self.k.barrier();
            self.fetch(rings, Some((own, iteration)), &Expr::from(0))?;
            self.k.wait_async(0);
            self.k.barrier();
            self.has_staged(rings, &Expr::from(0));
            return Ok(());
        }
        self.k.wait_async(stages as u32 - 2);
        self.k.barrier();
        let ahead = Stride::plus(iteration, &Expr::from(stages - 1)).ok_or_else(over)?;
        let stage = self.k.remainder(&ahead, stages)?;
        self.fetch(rings, Some((own, &ahead)), &stage)?;
        let stage = self.k.remainder(iteration, stages)?;
        self.has_staged(rings, &stage);
        Ok(())
    }

    /// The end of a loop: no copy is under way.
    pub(super) fn end_rings(&self, rings: &[Rc<StageRing<'k>>]) {
        if !rings.is_empty() {
            self.k.wait_async(0);
        }
    }
}

/// The layout of a tile in shared memory that is contiguous along `inner`, with a mode of stages if
/// there are several. Chunks of 16 bytes are swizzled by row, so that eight rows are in different
/// banks.
///
/// Errors: an element has no offset that is a number.
fn layout([first, second]: [i64; 2], inner: usize, stages: Option<(i64, i64)>) -> Result<Composed, LayoutError> {
    let run = if inner == 0 { first } else { second };
    let bits = (run / 8).min(8).ilog2();
    let swizzle = Swizzle::new(bits.into(), 3, (run.ilog2() - 3).max(bits).min(7).into())?;
    let own = if inner == 0 { [(first, 1), (second, run)] } else { [(first, run), (second, 1)] };
    Composed::new(swizzle, 0, Layout::of_modes(own.into_iter().chain(stages))?)
}

/// The layout of one stage of a tile that threads copy.
pub(crate) fn staged_layout(
    program: &Program,
    tensor: usize,
    shape: &[i64],
    modes: [usize; 2],
) -> Result<Composed, LayoutError> {
    let kept = [modes[0].min(modes[1]), modes[0].max(modes[1])];
    let inner = usize::from(!program.is_contiguous(tensor, kept[0]));
    layout(kept.map(|mode| shape[mode]), inner, None)
}

/// The coordinate along a single mode.
fn at(index: &Expr) -> Coord<Expr> {
    Coord::leaf(Slot::At(index.clone()))
}

/// `(_,_,stage)`.
pub(super) fn staged(stage: &Expr) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(stage.clone())])?)
}
