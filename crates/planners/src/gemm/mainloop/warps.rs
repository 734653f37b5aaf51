//! The kernel of warps that multiply by mma.sync.
//!
//! Law: k-tiles of both operands are copied into a ring of stages, and all warps of a tile multiply
//! them. Lines past the edges of an operand are filled with zeros. A thread loads the fragments of
//! the next 32 bytes along K while it multiplies those before. There are two ways to fill the ring:
//!
//! * The warps copy by cp.async. The copies of the k-tile that is farthest ahead are issued when
//!   all warps have read the stage that they overwrite. D is staged in the memory of the whole
//!   ring.
//! * A producer warp loads by TMA ([`Plan::producer`](crate::gemm::Plan::producer)). Warps wait for
//!   a full stage and release it when they have read it. D is staged in the stage after the last
//!   k-tile of its tile, while the producer fills the others for the next tile.
//!
//! Chunks of 16 bytes are permuted by the same swizzle in both, so that neither the copies nor
//! ldmatrix have bank conflicts; nor do loads of f64, of which each thread loads its elements one
//! by one. The epilogue is that of warpgroups.

use tilewright_kernel::{Cursor, Element, Fragment, Kernel, KernelError, Num, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, Operand, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{IntoShape, Layout};

use crate::error::PlanError;
use crate::gemm::index::{at, minus, plus, tile_at};
use crate::gemm::mainloop::declared::Declared;
use crate::gemm::mainloop::load::Loader;
use crate::gemm::mainloop::outline::Outline;
use crate::gemm::mainloop::pass::Pass;
use crate::gemm::mainloop::scales::promote;
use crate::gemm::plan::warps::warp_atom;
use crate::gemm::problem::LINE_BYTES;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::schedule::list::each;
use crate::gemm::schedule::unit::Unit;
use crate::units::VECTOR;

/// The copies of an operand: to shared memory, if the warps copy it, and from there to registers.
struct OperandCopies {
    to_shared: Option<TiledCopy>,
    to_registers: TiledCopy,
    operand: Operand,
    /// Rows or columns of a tile.
    lines: i64,
}

impl OperandCopies {
    fn of(outline: &Outline<'_>, side: usize) -> Result<OperandCopies, PlanError> {
        let (plan, mma, element) = (outline.plan, &outline.mma, outline.problem.operand_type());
        let lines = [plan.rows, plan.columns][side];
        let number = if plan.swapped { 1 - side } else { side };
        let (contiguous, vector) = (outline.contiguous[number], outline.together[number]);
        let matrices = match contiguous {
            _ if element == Element::F64 => "UniversalCopy<uint64_t>",
            Contiguous::Columns => "SM75_U32x4_LDSM_N",
            Contiguous::Rows => "SM75_U16x8_LDSM_T",
        };
        let operand = [Operand::A, Operand::B][side];
        let to_registers = TiledCopy::of_operand(CopyAtom::named(matrices)?, mma, operand)?;
        let to_shared = match outline.has_producer() {
            true => None,
            false => Some(to_shared(mma.threads(), (element, vector), contiguous, [lines, LINE_BYTES])?),
        };
        Ok(OperandCopies { to_shared, to_registers, operand, lines })
    }
}

/// The copy of a tile of lines to shared memory by this many threads, `vector` elements at a time.
/// The lines are `whole` bytes along K, or go along the other mode.
pub(crate) fn to_shared(
    threads: i64,
    (element, vector): (Element, i64),
    contiguous: Contiguous,
    [lines, whole]: [i64; 2],
) -> Result<TiledCopy, PlanError> {
    let (bits, bytes) = (i64::from(element.bits()), i64::from(element.bytes()));
    // Copies of fewer than 16 bytes go through the L1 cache.
    let copy = match vector * bytes {
        VECTOR => CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
        width => CopyAtom::named(&format!("SM80_CP_ASYNC_CACHEALWAYS<uint{}_t>", 8 * width))?,
    };
    let most = whole / (vector * bytes);
    // Threads are assigned along the contiguous mode first: to whole lines of the ring if there are
    // enough threads.
    let (arranged, own) = match contiguous {
        Contiguous::Columns => (Layout::strided((threads / most, most), (most, 1))?, (1, vector)),
        Contiguous::Rows => {
            // If a tile has few elements along K, the threads take more chunks along each line.
            let (depth, most) = (whole / bytes, most.max(threads * bytes / whole));
            let divides = |chunks: &i64| {
                lines % (chunks * vector) == 0 && threads % chunks == 0 && depth % (threads / chunks) == 0
            };
            let chunks = [32, 16, 8, 4, 2].into_iter().filter(|chunks| *chunks <= most).find(divides).unwrap_or(1);
            (Layout::strided((chunks, threads / chunks), (1, chunks))?, (vector, 1))
        }
    };
    Ok(TiledCopy::new(copy, bits, &arranged, &Layout::compact(&own.into_shape()?)?)?)
}

/// The state of the warps that multiply.
struct Warps<'a, 'k> {
    declared: &'a Declared<'a, 'k>,
    copies: &'a [OperandCopies; 2],
    /// Two sets of fragments for each operand: one is loaded while the other one is multiplied.
    fragments: [[Fragment<'k>; 2]; 2],
    /// The accumulators of a tile, and the totals to which they are promoted, if any.
    accumulators: Fragment<'k>,
    totals: Option<Fragment<'k>>,
    /// The modes of the accumulators: values of an instruction, blocks of rows and of columns.
    part: [i64; 3],
}

/// The kernel of a plan of warps.
pub(crate) fn kernel(name: &str, outline: &Outline<'_>) -> Result<Kernel, PlanError> {
    let copies = [OperandCopies::of(outline, 0)?, OperandCopies::of(outline, 1)?];
    let kernel = Kernel::build(name, |k| {
        let declared = Declared::new(k, outline)?;
        if !outline.has_producer() {
            let warps = Warps::new(&declared, &copies)?;
            return declared.passes.iter().try_for_each(|pass| warps.copy_pass(pass));
        }
        Loader::role(&declared)?;
        k.role(0..outline.multipliers(), || {
            let (warps, cursor) = (Warps::new(&declared, &copies)?, declared.cursor()?);
            declared.passes.iter().try_for_each(|pass| warps.multiply_pass(pass, &cursor))
        })
    })?;
    Ok(kernel)
}

impl<'a, 'k> Warps<'a, 'k> {
    fn new(declared: &'a Declared<'a, 'k>, copies: &'a [OperandCopies; 2]) -> Result<Warps<'a, 'k>, KernelError> {
        let Declared { k, outline, rings, .. } = declared;
        let (problem, plan) = (outline.problem, outline.plan);
        let fragments = |side: usize| -> Result<[Fragment<'k>; 2], KernelError> {
            let copies = &copies[side];
            let depth = warp_atom(problem).1;
            let part = step_of(&rings[side], copies.lines, (&Expr::from(0), 0), depth)?;
            let part = part.partition_mma(&outline.mma, copies.operand)?;
            Ok([part.fragment()?, part.fragment()?])
        };
        let fragments = [fragments(0)?, fragments(1)?];
        let [along, across] = plan.warps.unwrap_or([1, 1]);
        let part = [4, plan.rows / (16 * along), plan.columns / (8 * across)];
        let sums = || k.register(problem.accumulator_type(), ((2, 2), part[1], part[2]));
        let totals = if problem.is_promoted() { Some(sums()?) } else { None };
        let accumulators = sums()?;
        Ok(Warps { declared, copies, fragments, accumulators, totals, part })
    }

    /// Copies and multiplies the tiles of a block, and runs their epilogues.
    fn copy_pass(&self, pass: &Pass<'_, 'k>) -> Result<(), KernelError> {
        let k = self.declared.k;
        k.range(pass.own()?, |iteration| {
            let unit = pass.unit(&iteration)?;
            // All warps have finished with the memory of the previous tile.
            k.barrier();
            self.copy_tile(&unit)?;
            self.write(pass, &unit, None)
        })
    }

    /// Multiplies the tiles of a block that a producer loads, and runs their epilogues.
    fn multiply_pass(&self, pass: &Pass<'_, 'k>, cursor: &Cursor<'k>) -> Result<(), KernelError> {
        let k = self.declared.k;
        k.range(pass.own()?, |iteration| {
            let unit = pass.unit(&iteration)?;
            self.multiply_tile(&unit, cursor)?;
            if !pass.epilogue.in_ring {
                return self.write(pass, &unit, None);
            }
            let stage = cursor.stage()?;
            stage.wait()?;
            self.write(pass, &unit, Some(stage.index()))?;
            // The next load into the stage is ordered after the writes of the threads there.
            k.fence_async();
            stage.release()?;
            cursor.advance()
        })
    }

    /// Runs the epilogue of a tile, whose D is staged in a stage of the ring, if one is given.
    fn write(&self, pass: &Pass<'_, 'k>, unit: &Unit, stage: Option<&Expr>) -> Result<(), KernelError> {
        let made = self.totals.as_ref().unwrap_or(&self.accumulators);
        let accumulators = pass.epilogue.warp_accumulators(made, &self.part)?;
        pass.epilogue.write(self.declared.k, &accumulators, (&pass.ends, None, stage), unit, 0)
    }

    /// The number of instructions along K for a k-tile.
    fn instructions(&self) -> i64 {
        let problem = self.declared.outline.problem;
        problem.k_tile() / warp_atom(problem).1
    }

    /// Clears the accumulators of a tile.
    fn clear(&self) {
        self.accumulators.clear();
        self.totals.iter().for_each(Fragment::clear);
    }

    /// The mainloop of an output tile whose k-tiles a producer loads.
    fn multiply_tile(&self, unit: &Unit, cursor: &Cursor<'k>) -> Result<(), KernelError> {
        let k = self.declared.k;
        self.clear();
        let last = minus(&unit.steps, &Expr::from(1))?;
        self.load_next(cursor)?;
        k.range(last.clone(), |step| self.multiply_step((unit, &step), cursor, true))?;
        self.multiply_step((unit, &last), cursor, false)
    }

    /// Waits for the next stage, and loads the fragments of its first instruction along K.
    fn load_next(&self, cursor: &Cursor<'k>) -> Result<(), KernelError> {
        let stage = cursor.stage()?;
        stage.wait()?;
        self.load(stage.index(), 0)
    }

    /// Multiplies a k-tile, whose first fragments have been loaded. Loads those of the next k-tile,
    /// if one follows.
    fn multiply_step(
        &self,
        (unit, step): (&Unit, &Expr),
        cursor: &Cursor<'k>,
        follows: bool,
    ) -> Result<(), KernelError> {
        let (stage, scales, blocks) = (cursor.stage()?, self.ask(unit, step)?, self.ask_blocks(unit, step)?);
        let instructions = self.instructions();
        for number in 0..instructions {
            if number + 1 < instructions {
                self.load(stage.index(), number + 1)?;
            } else {
                stage.release()?;
                cursor.advance()?;
                if follows {
                    self.load_next(cursor)?;
                }
            }
            self.multiply(number, blocks.as_ref())?;
        }
        self.promote(&scales)
    }

    /// Loads the scales of a k-tile, if there are any.
    fn ask(&self, unit: &Unit, step: &Expr) -> Result<Vec<Vec<Num<'k>>>, KernelError> {
        let Declared { outline, scaling, .. } = self.declared;
        match scaling {
            Some(scaling) => scaling.ask(&outline.epilogue.part, unit, &plus(&unit.first, step)?),
            None => Ok(Vec::new()),
        }
    }

    /// Loads the scales of a k-tile of a block-scaled format.
    fn ask_blocks(&self, unit: &Unit, step: &Expr) -> Result<Option<[Vec<Fragment<'k>>; 2]>, KernelError> {
        let Declared { k, outline, blocks, .. } = self.declared;
        let step = plus(&unit.first, step)?;
        blocks.as_ref().map(|blocks| blocks.ask(k, &outline.mma, unit, &step)).transpose()
    }

    /// The mainloop of an output tile whose k-tiles the warps copy.
    fn copy_tile(&self, unit: &Unit) -> Result<(), KernelError> {
        let Declared { k, outline, operands, .. } = self.declared;
        let (stages, instructions) = (outline.plan.stages, self.instructions());
        let tiles = (0..operands.len()).map(|number| self.tiles(unit, number));
        let tiles = tiles.collect::<Result<Vec<_>, _>>()?;
        self.clear();
        for stage in 0..stages - 1 {
            for side in 0..2 {
                self.fetch(&tiles, unit, side, (&Expr::from(stage), &Expr::from(stage)))?;
            }
            k.commit_async();
        }
        k.wait_async(stages as u32 - 2);
        k.barrier();
        self.load(&Expr::from(0), 0)?;
        k.range(unit.steps.clone(), |step| {
            let (stage, scales) = (k.remainder(&step, stages)?, self.ask(unit, &step)?);
            let blocks = self.ask_blocks(unit, &step)?;
            let ahead = plus(&step, &Expr::from(stages - 1))?;
            let free = k.remainder(&ahead, stages)?;
            for number in 0..instructions {
                if number + 1 < instructions {
                    self.load(&stage, number + 1)?;
                } else {
                    // All threads have loaded this stage into registers, and the next stage has
                    // arrived. So this stage is free for the k-tile that is farthest ahead.
                    k.wait_async(stages as u32 - 2);
                    k.barrier();
                    self.load(&k.remainder(&plus(&step, &Expr::from(1))?, stages)?, 0)?;
                }
                // The copies of one operand are issued at a time, so that loads of fragments do not
                // wait for them. Both are issued before the last instruction, which waits for those
                // of the next stage.
                let turn = |side: i64| side.min(instructions - 2);
                for side in (0..2).filter(|side| turn(*side) == number) {
                    self.fetch(&tiles, unit, side as usize, (&ahead, &free))?;
                }
                if turn(1) == number {
                    k.commit_async();
                }
                self.multiply(number, blocks.as_ref())?;
            }
            self.promote(&scales)
        })?;
        // Copies that are never read may still be in flight.
        k.wait_async(0);
        Ok(())
    }

    /// The k-tiles of both operands of a problem.
    fn tiles(&self, unit: &Unit, number: usize) -> Result<[Vec<View<'k>>; 2], KernelError> {
        let outline = self.declared.outline;
        if outline.fold.is_some() {
            // The boxes of an implicit GEMM are computed for each k-tile.
            return Ok([Vec::new(), Vec::new()]);
        }
        let (plan, depth) = (outline.plan, outline.problem.k_tile());
        let [left, right] = &self.declared.operands[number];
        Ok([left.tiles(unit, [plan.rows, depth], &unit.row)?, right.tiles(unit, [plan.columns, depth], &unit.column)?])
    }

    /// Issues the copies of an operand of a k-tile into a stage of the ring.
    fn fetch(
        &self,
        tiles: &[[Vec<View<'k>>; 2]],
        unit: &Unit,
        side: usize,
        (step, stage): (&Expr, &Expr),
    ) -> Result<(), KernelError> {
        let Declared { k, outline, operands, rings, .. } = self.declared;
        let (copies, depth) = (&self.copies[side], outline.problem.k_tile());
        let Some(by) = &copies.to_shared else { return Ok(()) };
        let (step, to) = (plus(&unit.first, step)?, rings[side].slice(at(stage)?)?);
        if let (Some(fold), Some(boxed)) = (&outline.fold, &unit.boxed) {
            let (view, place) = (&operands[0][side].view, (&step, depth));
            let from = match side {
                0 => fold.lines_of_a(k, view, boxed, place)?,
                _ => fold.lines_of_b(k, view, (outline.plan.columns, &unit.column), place)?,
            };
            return k.copy_predicated(by, &from, &to);
        }
        let step = at(&step)?;
        each(k, unit, tiles.len(), &|which| {
            let operand = &operands[which][side];
            for (number, from) in (0..).zip(&tiles[which][side]) {
                let to = match operand.paired {
                    true => operand.part(&to, [copies.lines, depth], depth, number)?,
                    false => to.clone(),
                };
                k.copy_predicated(by, &from.slice(step.clone())?, &to)?;
            }
            Ok(())
        })
    }

    /// Loads the fragments of an instruction along K from a stage.
    fn load(&self, stage: &Expr, number: i64) -> Result<(), KernelError> {
        let Declared { k, outline, rings, .. } = self.declared;
        let depth = warp_atom(outline.problem).1;
        for ((copies, ring), fragments) in self.copies.iter().zip(rings).zip(&self.fragments) {
            let here = step_of(ring, copies.lines, (stage, number), depth)?;
            let fragment = &fragments[(number % 2) as usize];
            let by = &copies.to_registers;
            k.copy(by, &here, &fragment.retile(by, CopyEnd::Destination)?)?;
        }
        Ok(())
    }

    /// Multiplies the fragments of an instruction along K into the accumulators, with the scales of
    /// a block-scaled format.
    fn multiply(&self, number: i64, blocks: Option<&[Vec<Fragment<'k>>; 2]>) -> Result<(), KernelError> {
        let (Declared { k, outline, .. }, sums) = (self.declared, &self.accumulators);
        let [a, b] = [0, 1].map(|side| &self.fragments[side][(number % 2) as usize]);
        match (outline.problem.blocks(), blocks) {
            (Some(own), Some([of_a, of_b])) => {
                k.mma_scaled(&outline.mma, own.format, sums, (a, of_a), (b, of_b), (sums, number as u32))
            }
            _ if outline.problem.has_nibbles() => k.mma_nibbles(&outline.mma, sums, a, b, sums),
            _ => k.mma(&outline.mma, sums, a, b, sums),
        }
    }

    /// Adds the accumulators of a k-tile, times its scales, to the totals.
    fn promote(&self, scales: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        let Some(totals) = &self.totals else { return Ok(()) };
        let Declared { outline, scaling, .. } = self.declared;
        let epilogue = &outline.epilogue;
        let (sums, totals) = (
            epilogue.warp_accumulators(&self.accumulators, &self.part)?,
            epilogue.warp_accumulators(totals, &self.part)?,
        );
        for (part, (total, sum)) in totals.iter().zip(&sums).enumerate() {
            let scales = scaling.as_ref().map(|scaling| scaling.of_part(&epilogue.part, scales, part));
            promote(total, sum, scales.unwrap_or_default())?;
        }
        self.accumulators.clear();
        Ok(())
    }
}

/// The part of a stage that an instruction along K multiplies: all lines, and its extent along K.
fn step_of<'k>(
    ring: &View<'k>,
    lines: i64,
    (stage, number): (&Expr, i64),
    depth: i64,
) -> Result<View<'k>, KernelError> {
    let stage = ring.slice(at(stage)?)?;
    stage.local_tile((lines, depth), tile_at(&Expr::from(0), Some(&Expr::from(number)))?)
}
