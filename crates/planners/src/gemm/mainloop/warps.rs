//! The kernel of warps that multiply by mma.sync.
//!
//! Law: all warps of a block copy k-tiles of both operands by cp.async into a ring of stages, and
//! multiply them. Lines past the edges of an operand are filled with zeros. A thread loads the
//! fragments of the next 32 bytes along K while it multiplies those before, and the copies of the
//! k-tile that is farthest ahead are issued when all warps have read the stage that it takes.
//!
//! Chunks of 16 bytes are permuted by a swizzle, so that neither cp.async nor ldmatrix has bank
//! conflicts; nor do loads of f64, of which each thread loads its elements one by one. The epilogue is that of warpgroups; it stages D in the memory of the ring.

use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Fragment, Kernel, KernelError, Num, View};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, Operand, TiledCopy};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{IntoShape, Layout};

use crate::error::PlanError;
use crate::gemm::index::plus;
use crate::gemm::index::{at, tile_at};
use crate::gemm::mainloop::declared::{declare_operands, ring};
use crate::gemm::mainloop::operand::GemmOperand;
use crate::gemm::mainloop::outline::{Outline, warp_atom};
use crate::gemm::mainloop::pass::Pass;
use crate::gemm::mainloop::scales::{Scaling, promote};
use crate::gemm::panel::swizzled;
use crate::gemm::problem::LINE_BYTES;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::text::Written;
use crate::gemm::schedule::grouped::GroupedTiles;
use crate::gemm::schedule::list::each;
use crate::gemm::schedule::unit::Unit;
use crate::units::VECTOR;

/// How an operand goes to shared memory and from there to registers.
struct OperandCopies {
    to_shared: TiledCopy,
    to_registers: TiledCopy,
    operand: Operand,
    /// Rows or columns of a tile.
    lines: i64,
}

impl OperandCopies {
    fn of(outline: &Outline<'_>, side: usize) -> Result<OperandCopies, PlanError> {
        let (plan, mma) = (outline.plan, &outline.mma);
        let element = outline.problem.operand_type();
        let lines = [plan.rows, plan.columns][side];
        let number = if plan.swapped { 1 - side } else { side };
        let (contiguous, vector) = (outline.contiguous[number], outline.together[number]);
        let to_shared = to_shared(mma.threads(), (element, vector), contiguous, [lines, LINE_BYTES])?;
        let matrices = match contiguous {
            Contiguous::Columns => "SM75_U32x4_LDSM_N",
            Contiguous::Rows => "SM75_U16x8_LDSM_T",
        };
        let operand = [Operand::A, Operand::B][side];
        let matrices = if element == Element::F64 { "UniversalCopy<uint64_t>" } else { matrices };
        let to_registers = TiledCopy::of_operand(CopyAtom::named(matrices)?, mma, operand)?;
        Ok(OperandCopies { to_shared, to_registers, operand, lines })
    }
}

/// The copy by which this many threads bring a tile of lines, of `vector` elements at a time, to
/// shared memory: lines of `whole` bytes along K, or lines along the other mode.
pub(crate) fn to_shared(
    threads: i64,
    (element, vector): (Element, i64),
    contiguous: Contiguous,
    [lines, whole]: [i64; 2],
) -> Result<TiledCopy, PlanError> {
    let (bits, bytes) = (i64::from(element.bits()), i64::from(element.bytes()));
    // Copies of fewer bytes go through the cache of the multiprocessor.
    let copy = match vector * bytes {
        VECTOR => CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>")?,
        width => CopyAtom::named(&format!("SM80_CP_ASYNC_CACHEALWAYS<uint{}_t>", 8 * width))?,
    };
    let most = whole / (vector * bytes);
    // Threads along the contiguous mode first: whole lines of the ring where there are as many.
    let (arranged, own) = match contiguous {
        Contiguous::Columns => (Layout::strided((threads / most, most), (most, 1))?, (1, vector)),
        Contiguous::Rows => {
            let divides = |chunks: &i64| lines % (chunks * vector) == 0 && threads % chunks == 0;
            let chunks = [32, 16, 8, 4, 2].into_iter().filter(|chunks| *chunks <= most).find(divides).unwrap_or(1);
            (Layout::strided((chunks, threads / chunks), (1, chunks))?, (vector, 1))
        }
    };
    Ok(TiledCopy::new(copy, bits, &arranged, &Layout::compact(&own.into_shape()?)?)?)
}

/// What the warps of a block have.
struct Warps<'a, 'k> {
    k: &'k Build,
    outline: &'a Outline<'a>,
    copies: &'a [OperandCopies; 2],
    /// The operands of each problem; the operand along the rows of tiles comes first.
    operands: Vec<[GemmOperand<'k>; 2]>,
    rings: [View<'k>; 2],
    scaling: Option<Scaling<'k>>,
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
        let (warps, passes) = Warps::declare(k, outline, &copies)?;
        passes.iter().try_for_each(|pass| warps.multiply_pass(pass))
    })?;
    Ok(kernel)
}

impl<'a, 'k> Warps<'a, 'k> {
    fn declare(
        k: &'k Build,
        outline: &'a Outline<'a>,
        copies: &'a [OperandCopies; 2],
    ) -> Result<(Warps<'a, 'k>, Vec<Pass<'a, 'k>>), KernelError> {
        let (problem, plan, mma) = (outline.problem, outline.plan, &outline.mma);
        let of_problems = outline.written.iter().enumerate();
        let operands = of_problems.map(|(number, written)| declare_operands(k, outline, number, written));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        k.threads(mma.threads())?;
        k.resident(plan.blocks_per_sm as u32)?;
        k.grid(Axis::X, plan.blocks)?;
        let block = k.block_number(Axis::X);
        let (element, depth) = (problem.operand_type(), problem.k_tile());
        let each_stage = [plan.rows, plan.columns].map(|lines| lines * depth);
        let elements = plan.warp_bytes(problem, outline.machine) / i64::from(element.bytes());
        // Swizzles begin at multiples of their pattern.
        let memory = k.shared_of(element, swizzled(depth, LINE_BYTES / depth, Layout::strided(elements, 1)?)?)?;
        let ring_of = |side: usize| {
            let lines = [plan.rows, plan.columns][side];
            let first = if side == 0 { 0 } else { each_stage[0] * plan.stages };
            let layout = ring(problem, operands[0][side].contiguous, [lines, lines], (plan.stages, first))?;
            memory.recast(element, layout)
        };
        let rings = [ring_of(0)?, ring_of(1)?];
        let beside = outline.epilogue.inputs(k, Some(&memory))?;
        let scaling = Scaling::declare(k, problem, plan)?;
        let [_, _, along] = outline.sizes();
        let steps = k.size(&format!("ceil({along}/{depth})"))?;
        let groups = GroupedTiles::declare(k, problem, plan, &steps)?;
        let written: Vec<&Written> = outline.written.iter().collect();
        let ends = outline.epilogue.ends(k, &written, beside)?;
        let last = outline.last.as_ref().map(|last| last.ends(k, &written, last.inputs(k, None)?)).transpose()?;
        let passes = Pass::all(k, outline, &block, (&steps, groups), (ends, last))?;
        let fragments = |side: usize| -> Result<[Fragment<'k>; 2], KernelError> {
            let copies = &copies[side];
            let depth = warp_atom(element).1;
            let part = step_of(&rings[side], copies.lines, (&Expr::from(0), 0), depth)?;
            let part = part.partition_mma(mma, copies.operand)?;
            Ok([part.fragment()?, part.fragment()?])
        };
        let fragments = [fragments(0)?, fragments(1)?];
        let [along, across] = plan.warps.unwrap_or([1, 1]);
        let part = [4, plan.rows / (16 * along), plan.columns / (8 * across)];
        let sums = || k.register(problem.accumulator_type(), ((2, 2), part[1], part[2]));
        let totals = if problem.is_promoted() { Some(sums()?) } else { None };
        let accumulators = sums()?;
        Ok((Warps { k, outline, copies, operands, rings, scaling, fragments, accumulators, totals, part }, passes))
    }

    /// Multiplies the tiles of a block and runs their epilogues.
    fn multiply_pass(&self, pass: &Pass<'_, 'k>) -> Result<(), KernelError> {
        let k = self.k;
        k.range(pass.own()?, |iteration| {
            let unit = pass.unit(&iteration)?;
            // All warps have left the memory of the tile before.
            k.barrier();
            self.multiply_tile(&unit)?;
            let made = self.totals.as_ref().unwrap_or(&self.accumulators);
            let accumulators = pass.epilogue.warp_accumulators(made, &self.part)?;
            pass.epilogue.write(k, &accumulators, (&pass.ends, None), &unit, 0)
        })
    }

    /// The mainloop of an output tile.
    fn multiply_tile(&self, unit: &Unit) -> Result<(), KernelError> {
        let (k, stages) = (self.k, self.outline.plan.stages);
        let problem = self.outline.problem;
        let instructions = problem.k_tile() / warp_atom(problem.operand_type()).1;
        let tiles = (0..self.operands.len()).map(|number| self.tiles(unit, number));
        let tiles = tiles.collect::<Result<Vec<_>, _>>()?;
        let (accumulators, totals) = (&self.accumulators, self.totals.as_ref());
        accumulators.clear();
        totals.into_iter().for_each(Fragment::clear);
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
            let stage = k.remainder(&step, stages)?;
            let ahead = plus(&step, &Expr::from(stages - 1))?;
            let free = k.remainder(&ahead, stages)?;
            let scales = match &self.scaling {
                Some(scaling) => scaling.ask(&self.outline.epilogue.part, unit, &plus(&unit.first, &step)?)?,
                None => Vec::new(),
            };
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
                // Copies of one operand at a time, so that loads of fragments do not wait for them;
                // both before the last instruction, which waits for those of the next stage.
                let turn = |side: i64| side.min(instructions - 2);
                for side in (0..2).filter(|side| turn(*side) == number) {
                    self.fetch(&tiles, unit, side as usize, (&ahead, &free))?;
                }
                if turn(1) == number {
                    k.commit_async();
                }
                self.multiply(number)?;
            }
            self.promote(&scales)
        })?;
        // Copies that nobody reads may still be in flight.
        k.wait_async(0);
        Ok(())
    }

    /// The k-tiles of both operands of a problem.
    fn tiles(&self, unit: &Unit, number: usize) -> Result<[Vec<View<'k>>; 2], KernelError> {
        if self.outline.fold.is_some() {
            // The boxes of an implicit GEMM are computed for each k-tile.
            return Ok([Vec::new(), Vec::new()]);
        }
        let (plan, depth) = (self.outline.plan, self.outline.problem.k_tile());
        let [left, right] = &self.operands[number];
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
        let (k, depth) = (self.k, self.outline.problem.k_tile());
        let (step, to) = (plus(&unit.first, step)?, self.rings[side].slice(at(stage)?)?);
        let copies = &self.copies[side];
        if let (Some(fold), Some(boxed)) = (&self.outline.fold, &unit.boxed) {
            let (view, place) = (&self.operands[0][side].view, (&step, depth));
            let from = match side {
                0 => fold.lines_of_a(k, view, boxed, place)?,
                _ => fold.lines_of_b(k, view, (self.outline.plan.columns, &unit.column), place)?,
            };
            return k.copy_predicated(&copies.to_shared, &from, &to);
        }
        let step = at(&step)?;
        each(k, unit, tiles.len(), &|which| {
            let operand = &self.operands[which][side];
            for (number, from) in (0..).zip(&tiles[which][side]) {
                let to = match operand.paired {
                    true => operand.part(&to, [copies.lines, depth], depth, number)?,
                    false => to.clone(),
                };
                k.copy_predicated(&copies.to_shared, &from.slice(step.clone())?, &to)?;
            }
            Ok(())
        })
    }

    /// Loads the fragments of an instruction along K from a stage.
    fn load(&self, stage: &Expr, number: i64) -> Result<(), KernelError> {
        let depth = warp_atom(self.outline.problem.operand_type()).1;
        for side in 0..2 {
            let (copies, ring) = (&self.copies[side], &self.rings[side]);
            let here = step_of(ring, copies.lines, (stage, number), depth)?;
            let fragment = &self.fragments[side][(number % 2) as usize];
            let by = &copies.to_registers;
            self.k.copy(by, &here, &fragment.retile(by, CopyEnd::Destination)?)?;
        }
        Ok(())
    }

    /// Multiplies the fragments of an instruction along K into the accumulators.
    fn multiply(&self, number: i64) -> Result<(), KernelError> {
        let [a, b] = [0, 1].map(|side| &self.fragments[side][(number % 2) as usize]);
        let (mma, sums) = (&self.outline.mma, &self.accumulators);
        match self.outline.problem.has_nibbles() {
            true => self.k.mma_nibbles(mma, sums, a, b, sums),
            false => self.k.mma(mma, sums, a, b, sums),
        }
    }

    /// Adds the accumulators of a k-tile, times its scales, to the totals.
    fn promote(&self, scales: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        let Some(totals) = &self.totals else { return Ok(()) };
        let epilogue = &self.outline.epilogue;
        let (sums, totals) = (
            epilogue.warp_accumulators(&self.accumulators, &self.part)?,
            epilogue.warp_accumulators(totals, &self.part)?,
        );
        for (part, (total, sum)) in totals.iter().zip(&sums).enumerate() {
            let scales = self.scaling.as_ref().map(|scaling| scaling.of_part(&epilogue.part, scales, part));
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
