//! Stages operands of matrix instructions in shared memory, without roles.
//!
//! Law: the tile of an iteration is in one stage of a ring. Before threads read the tile, they wait
//! for its copies and synchronize. Before another tile is copied to the stage, all threads have
//! read the tile and synchronized. Copies for later iterations are in flight meanwhile. A thread
//! issues them after the first instructions of a `dot`, so that the tensor cores compute while the
//! thread computes addresses.

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
use crate::program::statement::definitions;
use crate::program::{Index, Loop, Operation, Program, Statement, ValueId};
use crate::staged_copy::StagedCopy;

/// The most bytes of shared memory for all rings of a loop: of a block, and for each warp of the
/// block. Blocks of few warps leave shared memory for other blocks, whose warps compute while one
/// block waits. Measured on an H200.
const BYTES: i64 = 96 << 10;
const BYTES_OF_WARP: i64 = 48 << 10;
/// The number of warps of a multiprocessor that should execute `dot`: two for each of its four
/// schedulers, so that one executes `mma` while the other computes.
const WARPS: i64 = 8;
/// The number of warps from which on a block counts as limited by `mma` and not by memory.
const LEAST_WARPS: i64 = 4;
/// The approximate number of registers of a thread that hold neither accumulators nor operands.
const OTHER_REGISTERS: i64 = 95;
/// The most stages of a ring, and the least number if they fit, so that copies are in flight while
/// an iteration computes.
const STAGES: i64 = 4;
const LEAST_STAGES: i64 = 2;
/// The extent of an instruction along K.
const STEP: i64 = 16;
const LANES: i64 = tilewright_kernel::program::WARP_LANES as i64;

/// The contents of a stage, and how it is filled and read.
pub(super) struct StageRing<'k> {
    /// The operands that read the stage, as it is or transposed.
    values: Vec<ValueId>,
    tensor: usize,
    shape: Vec<i64>,
    at: Vec<Index>,
    /// For a tile with computed coordinates: the mode, and the value that holds the coordinate of
    /// the tile, or that of each row.
    picked: Option<(usize, ValueId)>,
    /// The modes of rows and columns, in the order of the tensor.
    kept: [usize; 2],
    /// `(rows, columns, stages)` in the order of the tensor.
    ring: View<'k>,
    copy: Copy,
    /// The warps that copy, if the tile is too small for all of them.
    movers: Option<u32>,
    /// The number of stages; 1 outside of loops.
    stages: i64,
}

/// How a tile is copied.
enum Copy {
    /// The whole tile at once.
    Tile(Box<TiledCopy>),
    /// Row by row, each row from its own coordinate.
    Rows(Box<CopyAtom>, StagedCopy),
}

/// The rings of a loop with one stage each, whose copies alternate: the tiles of one `dot` are
/// copied while another `dot` is computed.
///
/// Law: a tile is copied after a barrier that follows its last reader, and is read after a barrier
/// that follows its copy. At the beginning of an iteration, the early tiles have arrived, and the
/// copies of the late tiles of this iteration are issued. Before the first `dot` that uses late
/// tiles, these have arrived, and the copies of the early tiles of the next iteration are issued.
pub(super) struct Turn<'k> {
    own: Rc<Loop>,
    early: Vec<Rc<StageRing<'k>>>,
    late: Vec<Rc<StageRing<'k>>>,
    /// The iteration, until the copies of its late tiles have been waited for; None after that.
    open: Option<Expr>,
}

/// Copies that are issued after the first instructions of a `dot`, so that the tensor cores compute
/// meanwhile: the rings, their loop, the iteration whose tiles are copied, and the stage.
pub(super) struct LateCopies<'k> {
    own: Rc<Loop>,
    rings: Vec<Rc<StageRing<'k>>>,
    iteration: Expr,
    stage: Expr,
}

/// A tile that is staged: the tensor, the shape, the index, the modes of rows and columns, and the
/// mode and the value of computed coordinates, if any.
type StagedTile<'s> = (usize, &'s Vec<i64>, &'s Vec<Index>, &'s [usize; 2], Option<(usize, ValueId)>);

/// The operands that read one staged tile, the tile, and the location of its statement.
type StagedValues<'s> = (Vec<ValueId>, StagedTile<'s>, Location);

/// The modes of rows and columns, in the order of the tensor.
fn kept(modes: &[usize; 2]) -> [usize; 2] {
    [modes[0].min(modes[1]), modes[0].max(modes[1])]
}

/// Splits the tiles of a body whose copies can alternate: those that the first `dot` uses, and the
/// others. None if a `dot` uses a tile of the first set after the first use of the second set, or
/// if an inner loop uses one of the tiles.
fn in_two(body: &[Statement], tiles: &[&[ValueId]]) -> Option<(Vec<usize>, Vec<usize>)> {
    let takes = |statement: &Statement, tile: &[ValueId]| match statement {
        Statement::Let { operands, .. } => operands.iter().any(|own| tile.contains(own)),
        _ => false,
    };
    let is_product = |own: &Statement| matches!(own, Statement::Let { operation: Operation::Dot, .. });
    // The statements that use each tile: they must all be `dot` of this body.
    let mut taken: Vec<Vec<usize>> = Vec::new();
    for tile in tiles {
        let all = (0..body.len()).filter(|at| takes(&body[*at], tile)).collect::<Vec<_>>();
        if all.is_empty() || !all.iter().all(|at| is_product(&body[*at])) {
            return None;
        }
        taken.push(all);
    }
    let first = *taken.iter().flatten().min()?;
    let (early, late): (Vec<usize>, Vec<usize>) = (0..tiles.len()).partition(|tile| taken[*tile].contains(&first));
    let last = early.iter().flat_map(|tile| &taken[*tile]).max()?;
    let begin = late.iter().flat_map(|tile| &taken[*tile]).min()?;
    (last < begin).then_some((early, late))
}

impl<'k> Lowering<'k, '_> {
    /// The computed coordinate of a staged tile.
    pub(super) fn place_of(&self, statement: &Statement) -> Result<Expr, KernelError> {
        let Statement::Let { operands, .. } = statement else { return Err(over()) };
        let numbers = self.numbers(*operands.first().ok_or_else(over)?)?;
        self.place_at(*numbers.first().ok_or_else(over)?)
    }

    /// The rings of the statements of a body.
    fn rings<'s>(
        &self,
        body: impl Iterator<Item = &'s Statement>,
        (most, in_turns): (i64, impl Fn(&[StagedValues<'_>]) -> bool),
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
        // A tile that is used both as it is and transposed is copied once.
        let mut apart: Vec<StagedValues<'_>> = Vec::new();
        for (value, own, place) in found {
            let same = |(_, other, _): &&mut StagedValues<'_>| {
                (own.0, own.1, own.2, kept(own.3), own.4) == (other.0, other.1, other.2, kept(other.3), other.4)
            };
            match apart.iter_mut().find(same) {
                Some((values, ..)) => values.push(value),
                None => apart.push((vec![value], own, place)),
            }
        }
        let bytes: i64 = apart.iter().map(|(_, own, _)| own.1.iter().product::<i64>() * 2).sum();
        let threads = self.placed.layouts.values().next().map_or(LANES, crate::held::Held::threads);
        let stages = self.stages(bytes, threads / LANES, in_turns(&apart)).min(most);
        let ring = |(values, (tensor, shape, at, modes, picked), place): StagedValues<'_>| {
            place.during(|| {
                let kept = kept(modes);
                let [first, second] = kept.map(|mode| shape[mode]);
                let inner = usize::from(!self.is_contiguous(tensor, kept[0]));
                let (run, rows) = if inner == 0 { (first, second) } else { (second, first) };
                let layout = layout([first, second], inner, Some((stages, first * second)))?;
                let element = self.placed.program.tensors[tensor].element;
                // After the last `dot`, other arrays reuse this memory.
                let ring = self.k.area_of(element, &layout)?;
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
                    values,
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
        apart.into_iter().map(ring).collect()
    }

    /// The number of stages of rings, of which one stage takes this many bytes. As many stages as
    /// fit while enough blocks are resident to keep the schedulers busy; if that is impossible,
    /// with fewer blocks. One stage is enough if copies alternate.
    fn stages(&self, bytes: i64, warps: i64, in_turns: bool) -> i64 {
        let least = if in_turns { 1 } else { LEAST_STAGES };
        let most = (BYTES / bytes.max(1)).min((BYTES_OF_WARP * warps / bytes.max(1)).max(LEAST_STAGES));
        let fit = |blocks: i64| (self.room.of_blocks(blocks) - self.kept_bytes) / bytes.max(1);
        // Blocks with fewer warps are limited by memory latency.
        let wanted = if warps < LEAST_WARPS { 1 } else { (WARPS / warps).max(1) };
        let blocks = (1..=wanted).rev();
        let found = blocks.map(fit).find(|stages| *stages >= least).unwrap_or_else(|| fit(1));
        found.min(most).clamp(1, STAGES)
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
        // The values of the current iteration are saved here, and restored after the copies of a
        // later iteration are issued.
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

    /// Copies a whole tile. If a value holds its coordinate along another mode, copies from that
    /// coordinate.
    fn copy_tile(&self, ring: &StageRing<'k>, copy: &TiledCopy, stage: &Expr) -> Result<(), KernelError> {
        let number = |value: ValueId| self.place_at(*self.numbers(value)?.first().ok_or_else(over)?);
        let picked = ring.picked.map(|(mode, value)| Ok::<_, KernelError>((mode, number(value)?))).transpose()?;
        let tile = self.tile(ring.tensor, &ring.shape, &ring.at, picked.as_slice())?;
        let one = |mode: usize| if ring.kept.contains(&mode) { Slot::All } else { Slot::At(Expr::from(0)) };
        let slots: Vec<Slot<Expr>> = (0..ring.shape.len()).map(one).collect();
        let tile = if slots.len() == 2 { tile } else { tile.slice(Tree::flat(slots)?)? };
        self.k.copy_predicated(copy, &tile, &ring.ring.slice(staged(stage)?)?)
    }

    /// Copies the rows of a tile, each from the coordinate that the thread has read, and fills rows
    /// outside of the tensor with zeros.
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

    /// Records that the operands of an iteration are in this stage of their rings.
    fn has_staged(&mut self, rings: &[Rc<StageRing<'k>>], stage: &Expr) {
        for ring in rings {
            for value in &ring.values {
                self.in_stage.insert(*value, (ring.clone(), stage.clone()));
            }
        }
    }

    /// Marks an operand of the iteration to be loaded from its stage during the `dot`. Returns
    /// false if it is in no stage.
    pub(super) fn take_staged(&mut self, value: ValueId) -> bool {
        let Some((ring, stage)) = self.in_stage.get(&value).cloned() else { return false };
        self.values.insert(value, super::ThreadValue::InStage(ring, stage));
        true
    }

    /// Loads all k-steps of an operand from a stage, in the layout of the instruction.
    pub(super) fn fragments(
        &self,
        value: ValueId,
        ring: &StageRing<'k>,
        stage: &Expr,
    ) -> Result<Vec<Fragment<'k>>, KernelError> {
        let held = self.held(value)?;
        let multiplies = |tiling: &&Tiling| tiling.a == *held || tiling.b == *held;
        let tiling = self.placed.tilings.values().find(multiplies).ok_or_else(over)?;
        let operand = if tiling.a == *held { Operand::A } else { Operand::B };
        let mut found = Vec::new();
        while let Some(part) = self.operand_step(value, (ring, stage), (tiling, operand), found.len() as i64)? {
            found.push(part);
        }
        Ok(found)
    }

    /// One k-step of an operand in a stage; None after the last.
    pub(super) fn operand_step(
        &self,
        value: ValueId,
        (ring, stage): (&StageRing<'k>, &Expr),
        (tiling, operand): (&Tiling, Operand),
        step: i64,
    ) -> Result<Option<Fragment<'k>>, KernelError> {
        let left = matches!(operand, Operand::A);
        let shape = &self.placed.program.type_of(value).shape;
        let (rows, depth) = if left { (shape[0], shape[1]) } else { (shape[1], shape[0]) };
        if step >= depth / STEP {
            return Ok(None);
        }
        // Instructions expect the rows of both operands first, and K second.
        let Operation::Stage { modes, .. } = self.stage_of(value)? else { return Err(over()) };
        let along = if left { modes } else { [modes[1], modes[0]] };
        let tile = ring.ring.slice(staged(stage)?)?;
        let tile = if along[0] < along[1] { tile } else { tile.select(&[1, 0])? };
        let beside = self.is_contiguous(ring.tensor, along[1]);
        let name = match (beside, left || tiling.beside == 16) {
            (true, true) => "SM75_U32x4_LDSM_N",
            (true, false) => "SM75_U32x2_LDSM_N",
            (false, true) => "SM75_U16x8_LDSM_T",
            (false, false) => "SM75_U16x4_LDSM_T",
        };
        let load = TiledCopy::of_operand(CopyAtom::named(name)?, &tiling.mma, operand)?;
        let at: Coord<Expr> = Tree::flat([Slot::At(Expr::from(0)), Slot::At(Expr::from(step))])?;
        let part = tile.local_tile((rows, STEP), at)?;
        let fragment = part.partition_mma(&tiling.mma, operand)?.fragment()?;
        self.k.copy(&load, &part, &fragment.retile(&load, CopyEnd::Destination)?)?;
        Ok(Some(fragment))
    }

    pub(super) fn stage_of(&self, value: ValueId) -> Result<Operation, KernelError> {
        let found = definitions(&self.placed.program.body).find(|own| own.0 == value);
        found.map(|own| own.1.clone()).ok_or_else(over)
    }

    /// Stages an operand outside of loops: copies it, waits, and loads it to registers if a thread
    /// has enough. Otherwise it stays in shared memory, and each `dot` loads it from there.
    pub(super) fn staged_at_once(&mut self, value: ValueId, statement: &Statement) -> Result<(), KernelError> {
        let rings = self.rings(std::iter::once(statement), (1, |_: &[StagedValues<'_>]| true))?;
        self.fetch(&rings, None, &Expr::from(0))?;
        self.k.wait_async(0);
        self.k.barrier();
        self.has_staged(&rings, &Expr::from(0));
        if !self.take_staged(value) {
            return Err(over());
        }
        let Some(ring) = rings.first() else { return Ok(()) };
        let program = &self.placed.program;
        if self.operand_registers()? > self.placed.registers_of_thread() - OTHER_REGISTERS {
            self.kept_bytes += program.type_of(value).size() * i64::from(program.type_of(value).element.bytes());
            self.kept.push((value, ring.clone()));
            return Ok(());
        }
        let parts = self.fragments(value, ring, &Expr::from(0))?;
        self.values.insert(value, super::ThreadValue::Operand(parts));
        self.k.give_back(&ring.ring);
        Ok(())
    }

    /// The registers that the accumulators of all `dot` and the operands outside of loops take.
    fn operand_registers(&self) -> Result<i64, KernelError> {
        let program = &self.placed.program;
        let products = definitions(&program.body).filter(|own| matches!(own.1, Operation::Dot)).map(|own| own.0);
        let outside = program.body.iter().filter_map(|statement| match statement {
            Statement::Let { result, operation: Operation::Stage { .. }, .. } => Some(*result),
            _ => None,
        });
        products
            .chain(outside)
            .map(|value| Ok(self.held(value)?.values() * i64::from(program.type_of(value).element.bits()) / 32))
            .sum()
    }

    /// Allocates the rings of a loop, and issues the copies of the first iterations.
    pub(super) fn begin_rings(&mut self, own: &Loop, inner: bool) -> Result<Vec<Rc<StageRing<'k>>>, KernelError> {
        if self.depth == 0 && own.body.iter().any(is_stage) {
            // After this barrier, the memory of operands that were loaded to registers can be
            // reused.
            self.k.barrier();
        }
        let two = |tiles: &[StagedValues<'_>]| {
            let tiles: Vec<&[ValueId]> = tiles.iter().map(|own| own.0.as_slice()).collect();
            in_two(&own.body, &tiles).is_some()
        };
        let rings = self.rings(own.body.iter(), (STAGES, two))?;
        let Some(first) = rings.first() else { return Ok(rings) };
        if inner {
            // This loop may have run before. After this barrier, all threads have read its last
            // tiles.
            self.k.barrier();
        }
        let tiles: Vec<&[ValueId]> = rings.iter().map(|own| own.values.as_slice()).collect();
        let two = in_two(&own.body, &tiles).filter(|_| first.stages == 1);
        if let Some((early, late)) = two {
            let of = |numbers: &[usize]| numbers.iter().map(|at| rings[*at].clone()).collect::<Vec<_>>();
            let turn = Turn { own: Rc::new(own.clone()), early: of(&early), late: of(&late), open: None };
            self.fetch(&turn.early, Some((own, &Expr::from(0))), &Expr::from(0))?;
            self.turn = Some(turn);
            return Ok(rings);
        }
        for iteration in 0..(first.stages - 1) {
            self.fetch(&rings, Some((own, &Expr::from(iteration))), &Expr::from(iteration))?;
        }
        Ok(rings)
    }

    /// Begins an iteration: waits for its operands, and issues or prepares the copies of a later
    /// iteration.
    pub(super) fn iteration_rings(
        &mut self,
        own: &Loop,
        rings: &[Rc<StageRing<'k>>],
        iteration: &Expr,
    ) -> Result<(), KernelError> {
        let Some(stages) = rings.first().map(|ring| ring.stages) else { return Ok(()) };
        if let Some(mut turn) = self.turn.take() {
            self.k.wait_async(0);
            self.k.barrier();
            let own = turn.own.clone();
            self.copies =
                Some(LateCopies { own, rings: turn.late.clone(), iteration: iteration.clone(), stage: Expr::from(0) });
            self.has_staged(rings, &Expr::from(0));
            turn.open = Some(iteration.clone());
            self.turn = Some(turn);
            return Ok(());
        }
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
        let own = Rc::new(own.clone());
        self.copies = Some(LateCopies { own, rings: rings.to_vec(), iteration: ahead, stage });
        let stage = self.k.remainder(iteration, stages)?;
        self.has_staged(rings, &stage);
        Ok(())
    }

    /// Issues the copies that wait for a `dot`.
    pub(super) fn begin_copies(&mut self) -> Result<(), KernelError> {
        let Some(LateCopies { own, rings, iteration, stage }) = self.copies.take() else { return Ok(()) };
        own.place.during(|| self.fetch(&rings, Some((&own, &iteration)), &stage))
    }

    /// Switches to the late tiles of an iteration, if this operation is the first that uses one.
    pub(super) fn turns(
        &mut self,
        operation: &Operation,
        operands: &[ValueId],
        place: Location,
    ) -> Result<(), KernelError> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let takes = turn.late.iter().any(|ring| operands.iter().any(|own| ring.values.contains(own)));
        if !takes || !matches!(operation, Operation::Dot) {
            return Ok(());
        }
        let Some(mut turn) = self.turn.take() else { return Ok(()) };
        if let Some(iteration) = turn.open.take() {
            self.begin_copies()?;
            place.during(|| {
                self.k.wait_async(0);
                self.k.barrier();
                let next = Stride::plus(&iteration, &Expr::from(1)).ok_or_else(over)?;
                let (own, rings) = (turn.own.clone(), turn.early.clone());
                self.copies = Some(LateCopies { own, rings, iteration: next, stage: Expr::from(0) });
                Ok::<_, KernelError>(())
            })?;
        }
        self.turn = Some(turn);
        Ok(())
    }

    /// Ends a loop: waits until no copy is in flight, and frees the memory of the rings.
    pub(super) fn end_rings(&self, rings: &[Rc<StageRing<'k>>]) {
        if rings.is_empty() {
            return;
        }
        self.k.wait_async(0);
        rings.iter().for_each(|ring| self.k.give_back(&ring.ring));
        if self.depth == 0 {
            self.k.barrier();
        }
    }

    /// After a loop of the program's body: frees the memory of operands outside of loops that no
    /// later statement uses.
    pub(super) fn give_kept_back(&mut self, behind: &[Statement]) {
        if self.depth > 0 || self.kept.is_empty() {
            return;
        }
        let (over, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.kept).into_iter().partition(|(value, _)| !takes(behind, *value));
        self.kept = kept;
        if over.is_empty() {
            return;
        }
        over.iter().for_each(|(_, ring)| self.k.give_back(&ring.ring));
        self.k.barrier();
    }
}

/// Whether a statement, or a loop among them, uses a value.
fn takes(body: &[Statement], value: ValueId) -> bool {
    definitions(body).any(|own| own.2.contains(&value))
}

fn is_stage(statement: &Statement) -> bool {
    matches!(statement, Statement::Let { operation: Operation::Stage { .. }, .. })
}

/// The layout of a tile in shared memory. It is contiguous along mode `inner`, and has a mode of
/// stages if there are several. Chunks of 16 bytes are swizzled by row, so that eight rows are in
/// different banks.
///
/// Errors: the offset of an element is not a known number.
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

/// An index as the coordinate along a single mode.
fn at(index: &Expr) -> Coord<Expr> {
    Coord::leaf(Slot::At(index.clone()))
}

/// The coordinate `(_,_,stage)`.
pub(super) fn staged(stage: &Expr) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat([Slot::All, Slot::All, Slot::At(stage.clone())])?)
}
