//! Tiles that go through shared memory to matrix instructions.
//!
//! Law: the tile of an iteration is in one stage of a ring. Before threads read it, they wait for
//! its copies and synchronize; before another tile is copied to the stage, all threads have read it
//! and synchronized. Copies for later iterations are in flight meanwhile.

use tilewright_kernel::program::Location;
use tilewright_kernel::program::WARP_LANES;
use tilewright_kernel::{Fragment, KernelError, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, Operand, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Composed, Coord, IntoShape, Layout, LayoutError, Slot, Stride, Swizzle, Tree};

use super::{Lowering, over};
use crate::matrix::Tiling;
use crate::program::{Index, Loop, Operation, Program, Statement, ValueId};

/// The most bytes of all rings of a loop.
const BYTES: i64 = 96 << 10;
/// The most stages of a ring.
const STAGES: i64 = 4;
/// How many elements along K an instruction takes.
const STEP: i64 = 16;
const LANES: i64 = WARP_LANES as i64;

/// The contents of a stage, and how it is filled and read.
pub(super) struct StageRing<'k> {
    value: ValueId,
    tensor: usize,
    shape: Vec<i64>,
    at: Vec<Index>,
    /// The mode along which a number says where, and the number.
    picked: Option<(usize, Expr)>,
    /// The two modes of the tile in the order of the tensor.
    kept: [usize; 2],
    /// `(rows, columns, stages)` in the order of the tensor.
    ring: View<'k>,
    copy: TiledCopy,
    /// The warps that copy, if the tile is too small for all of them.
    movers: Option<u32>,
    /// The loop's iteration, and how many stages there are; one stage outside of loops.
    stages: i64,
}

/// A tile that is staged: its tensor, its shape, which tile it is, the modes of rows and columns,
/// and the coordinate along another mode, where a number says it.
type StagedTile<'s> = (usize, &'s Vec<i64>, &'s Vec<Index>, &'s [usize; 2], Option<(usize, Expr)>);

impl<'k> Lowering<'k, '_> {
    /// The coordinate that the operand of a staged tile says.
    pub(super) fn place_of(&self, statement: &Statement) -> Result<Expr, KernelError> {
        let Statement::Let { operands, .. } = statement else { return Err(over()) };
        let numbers = self.numbers(*operands.first().ok_or_else(over)?)?;
        self.k.index_of(*numbers.first().ok_or_else(over)?)
    }

    /// The rings of the statements of a body.
    fn rings<'s>(
        &self,
        body: impl Iterator<Item = &'s Statement>,
        most: i64,
    ) -> Result<Vec<StageRing<'k>>, KernelError> {
        let mut found = Vec::new();
        for statement in body {
            let Statement::Let { result, operation: Operation::Stage { tensor, shape, at, modes, picked }, .. } =
                statement
            else {
                continue;
            };
            let picked = picked.map(|mode| Ok::<_, KernelError>((mode, self.place_of(statement)?))).transpose()?;
            found.push((*result, (*tensor, shape, at, modes, picked), statement.place()));
        }
        let bytes: i64 = found.iter().map(|(_, own, _)| own.1.iter().product::<i64>() * 2).sum();
        let stages = (BYTES / bytes.max(1)).clamp(1, STAGES).min(most);
        let threads = self.placed.layouts.values().next().map_or(32, crate::held::Held::threads);
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
                // Each thread copies 16 bytes, or 8 if a warp has no more to copy.
                let (atom, part) = match first * second >= 8 * LANES {
                    true => ("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 8),
                    false => ("SM80_CP_ASYNC_CACHEALWAYS<uint64_t>", 4),
                };
                let chunks = (run / part).min(threads);
                let others = (threads / chunks).min(rows);
                let (movers, values) = match inner {
                    0 => (Layout::strided((chunks, others), (1, chunks))?, (part, 1)),
                    _ => (Layout::strided((others, chunks), (chunks, 1))?, (1, part)),
                };
                let values = Layout::compact(&values.into_shape()?)?;
                let copy = TiledCopy::new(CopyAtom::named(atom)?, 16, &movers, &values)?;
                let movers = chunks * others;
                Ok::<_, KernelError>(StageRing {
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
                })
            })
        };
        found.into_iter().map(ring).collect()
    }

    fn is_contiguous(&self, tensor: usize, mode: usize) -> bool {
        crate::roles::is_contiguous(&self.placed.program, tensor, mode)
    }

    /// Copies the tiles of an iteration to their stages.
    fn fetch(
        &mut self,
        rings: &[StageRing<'k>],
        iteration: Option<(u32, &Expr)>,
        stage: &Expr,
    ) -> Result<(), KernelError> {
        let before = iteration.map(|(number, iteration)| (number, self.iterations.insert(number, iteration.clone())));
        for ring in rings {
            let tile = self.tile(ring.tensor, &ring.shape, &ring.at, ring.picked.clone())?;
            let one = |mode: usize| if ring.kept.contains(&mode) { Slot::All } else { Slot::At(Expr::from(0)) };
            let slots: Vec<Slot<Expr>> = (0..ring.shape.len()).map(one).collect();
            let tile = if slots.len() == 2 { tile } else { tile.slice(Tree::flat(slots)?)? };
            let to = ring.ring.slice(staged(stage)?)?;
            let copied = || self.k.copy_predicated(&ring.copy, &tile, &to);
            match ring.movers {
                Some(warps) => self.k.role(0..warps, copied)?,
                None => copied()?,
            }
        }
        self.k.commit_async();
        if let Some((number, Some(iteration))) = before {
            self.iterations.insert(number, iteration);
        }
        Ok(())
    }

    /// Reads the operands of an iteration from their stages.
    fn take(&mut self, rings: &[StageRing<'k>], stage: &Expr) -> Result<(), KernelError> {
        for ring in rings {
            let fragments = self.fragments(ring, stage)?;
            self.values.insert(ring.value, super::ThreadValue::Operand(fragments));
        }
        Ok(())
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
        self.take(&rings, &Expr::from(0))
    }

    /// The rings of a loop, the first iterations under way.
    pub(super) fn begin_rings(&mut self, own: &Loop, inner: bool) -> Result<Vec<StageRing<'k>>, KernelError> {
        let rings = self.rings(own.body.iter(), STAGES)?;
        let Some(first) = rings.first() else { return Ok(rings) };
        if inner {
            // The loop was here before: all threads have read what it left.
            self.k.barrier();
        }
        for iteration in 0..(first.stages - 1) {
            self.fetch(&rings, Some((own.iteration, &Expr::from(iteration))), &Expr::from(iteration))?;
        }
        Ok(rings)
    }

    /// The beginning of an iteration: its operands are there, and copies of a later iteration
    /// begin.
    pub(super) fn iteration_rings(
        &mut self,
        own: &Loop,
        rings: &[StageRing<'k>],
        iteration: &Expr,
    ) -> Result<(), KernelError> {
        let Some(stages) = rings.first().map(|ring| ring.stages) else { return Ok(()) };
        if stages == 1 {
            self.k.barrier();
            self.fetch(rings, Some((own.iteration, iteration)), &Expr::from(0))?;
            self.k.wait_async(0);
            self.k.barrier();
            return self.take(rings, &Expr::from(0));
        }
        self.k.wait_async(stages as u32 - 2);
        self.k.barrier();
        let ahead = Stride::plus(iteration, &Expr::from(stages - 1)).ok_or_else(over)?;
        let stage = self.k.remainder(&ahead, stages)?;
        self.fetch(rings, Some((own.iteration, &ahead)), &stage)?;
        let stage = self.k.remainder(iteration, stages)?;
        self.take(rings, &stage)
    }

    /// The end of a loop: no copy is under way.
    pub(super) fn end_rings(&self, rings: &[StageRing<'k>]) {
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
    let inner = usize::from(!crate::roles::is_contiguous(program, tensor, kept[0]));
    layout(kept.map(|mode| shape[mode]), inner, None)
}

/// `(_,_,stage)`.
pub(super) fn staged(stage: &Expr) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(stage.clone())])?)
}
