//! The kernel of warps whose operand B has weights of four bits.
//!
//! Law: `D(m,n) = f(sum over g of s(n,g) * sum over k in group g of A(m,k) * w(n,k))`, where a
//! group is 128 elements along K and one k-tile. mma.sync adds the products of a group; the sums of
//! the groups are added in order in f32, each times its scale. Weights are exact in the type of A.
//!
//! All warps copy k-tiles of A and the words of the weights by cp.async into a ring of stages. A
//! thread takes K in the order in which its words hold it. Lane `4g + t` has word `t` of four,
//! which is eight elements of K, and reads the same eight elements of A by one access of 16 bytes.
//! Those are the operands of two instructions, because both operands may take K in any common
//! order.
//!
//! Chunks of 16 bytes of both rings are permuted by swizzles such that the eight lines of a load
//! have no banks in common.

use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Fragment, Kernel, KernelError, LayoutArgument, Num, View};
use tilewright_layout::atoms::{MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{IntoShape, Layout, LayoutError, Swizzle, Tiler};

use crate::error::PlanError;
use crate::gemm::index::{at, plus, tile_at};
use crate::gemm::mainloop::declared::declare_operands;
use crate::gemm::mainloop::operand::GemmOperand;
use crate::gemm::mainloop::outline::Outline;
use crate::gemm::mainloop::pass::Pass;
use crate::gemm::mainloop::scales::{KeptScales, Scaling, promote};
use crate::gemm::mainloop::warps::to_shared;
use crate::gemm::panel::swizzled;
use crate::gemm::problem::LINE_BYTES;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::text::Written;
use crate::gemm::problem::weights::{WEIGHTS_OF_WORD, WORDS_OF_GROUP};
use crate::gemm::schedule::unit::Unit;

/// The words of a line that a thread and its neighbours load at once: a quarter of a group.
const WORDS_OF_STEP: i64 = WORDS_OF_GROUP / 4;
/// The number of elements of these words along K.
const STEP: i64 = WORDS_OF_STEP * WEIGHTS_OF_WORD;

/// The state of the warps of a block.
struct Weighted<'a, 'k> {
    k: &'k Build,
    outline: &'a Outline<'a>,
    /// The copies to shared memory: of the operand along the rows of tiles, and of the other
    /// operand.
    copies: [TiledCopy; 2],
    operands: [GemmOperand<'k>; 2],
    /// The stages in the order in which they are copied, and in the order in which they are read,
    /// in which K follows the words.
    rings: [View<'k>; 2],
    read: [View<'k>; 2],
    /// The operand that is weights: 0 for the one along the rows of tiles, 1 for the other.
    words: usize,
    /// A tiled MMA whose fragments are one word of each line: it only partitions the words.
    of_words: TiledMma,
    scaling: Scaling<'k>,
    accumulators: Fragment<'k>,
    totals: Fragment<'k>,
    /// The modes of the accumulators: values of an instruction, blocks of rows and of columns.
    part: [i64; 3],
}

/// The kernel of a plan of warps for weights of four bits.
pub(crate) fn kernel(name: &str, outline: &Outline<'_>) -> Result<Kernel, PlanError> {
    let copies = copies(outline)?;
    let of_words = of_words(outline)?;
    let kernel = Kernel::build(name, |k| {
        let (weighted, passes) = Weighted::declare(k, outline, (copies, of_words))?;
        passes.iter().try_for_each(|pass| weighted.multiply_pass(pass))
    })?;
    Ok(kernel)
}

/// The tiled MMA whose operands have four words along K, with the lines of each warp where its
/// instructions have them.
fn of_words(outline: &Outline<'_>) -> Result<TiledMma, PlanError> {
    let [along, across] = outline.plan.warps.unwrap_or([1, 1]);
    let order: Tiler = Tiler::from_shape(&(16 * along, 16 * across, WORDS_OF_STEP).into_shape()?)?;
    let arranged = Layout::compact(&(along, across, 1).into_shape()?)?;
    Ok(TiledMma::new(MmaAtom::named("SM90_16x8x4_F64F64F64F64_TN")?, &arranged, &order)?)
}

/// The copies of both operands to shared memory.
fn copies(outline: &Outline<'_>) -> Result<[TiledCopy; 2], PlanError> {
    let (problem, plan, threads) = (outline.problem, outline.plan, outline.mma.threads());
    let of = |side: usize| {
        let lines = [plan.rows, plan.columns][side];
        let number = if plan.swapped { 1 - side } else { side };
        let matrix = [problem.a(), problem.b()][number];
        let element = matrix.element();
        let (bytes, whole) = (i64::from(element.bytes()), if number == 0 { LINE_BYTES } else { 4 * WORDS_OF_GROUP });
        // Narrower copies if the threads have more lines than a tile.
        let fits = |vector: &i64| lines % (threads * vector * bytes / whole).max(1) == 0;
        let mut widths = std::iter::successors(Some(outline.together[number]), |vector| Some(vector / 2));
        let because = "the threads of a block copy equal parts of the rows and of the columns of a k-tile";
        let vector = widths.by_ref().take_while(|vector| vector * bytes >= 4).find(fits);
        let vector = vector.ok_or(PlanError::Plan { because })?;
        to_shared(threads, (element, vector), Contiguous::Columns, [lines, whole])
    };
    Ok([of(0)?, of(1)?])
}

/// The stages of the operand that is not weights, from an element of the memory on: lines of 128
/// bytes, first those of the first half of a k-tile. Two adjacent lines are in different halves of
/// the banks.
fn ring(lines: i64, (stages, first): (i64, i64), along: &[(i64, i64)]) -> Result<LayoutArgument, LayoutError> {
    let k = Layout::of_modes(along.iter().copied())?;
    let modes = [Layout::strided(lines, 64)?, k, Layout::strided(stages, 128 * lines)?];
    LayoutArgument::placed(Some(Swizzle::new(1, 5, 1)?), first, Layout::tuple(&modes)?)
}

/// The stages of the words: lines of 64 bytes. In eight adjacent lines, four words each are in
/// different banks.
fn ring_of_words(lines: i64, (stages, first): (i64, i64)) -> Result<LayoutArgument, LayoutError> {
    let shape = (lines, WORDS_OF_GROUP, stages);
    let layout = Layout::strided(shape, (WORDS_OF_GROUP, 1, WORDS_OF_GROUP * lines))?;
    LayoutArgument::placed(Some(Swizzle::new(2, 2, 3)?), first, layout)
}

impl<'a, 'k> Weighted<'a, 'k> {
    fn declare(
        k: &'k Build,
        outline: &'a Outline<'a>,
        (copies, of_words): ([TiledCopy; 2], TiledMma),
    ) -> Result<(Weighted<'a, 'k>, Vec<Pass<'a, 'k>>), KernelError> {
        let (problem, plan, mma) = (outline.problem, outline.plan, &outline.mma);
        let operands = declare_operands(k, outline, 0, &outline.written[0])?;
        k.threads(mma.threads())?;
        k.resident(plan.blocks_per_sm as u32)?;
        k.grid(Axis::X, plan.blocks)?;
        let block = k.block_number(Axis::X);
        let words = usize::from(!plan.swapped);
        let element = problem.operand_type();
        let elements = plan.warp_bytes(problem, outline.machine) / i64::from(element.bytes());
        // Swizzled memory begins at a multiple of the size of the pattern; so does that of the
        // epilogue.
        let (depth, bytes) = (LINE_BYTES / i64::from(element.bytes()), i64::from(element.bytes()));
        let memory = k.shared_of(element, swizzled(depth, bytes, Layout::strided(elements, 1)?)?)?;
        let lines = [plan.rows, plan.columns];
        let (of_numbers, of_weights) = (lines[1 - words], lines[words]);
        // The words come after the stages of the other operand; the offset is in words.
        let behind = problem.k_tile() * of_numbers * plan.stages * bytes / 4;
        let apart = of_numbers * 64;
        let copied = memory.recast(element, ring(of_numbers, (plan.stages, 0), &[(64, 1), (2, apart)]))?;
        let in_order = [(2, 1), (4, 8), (2, 2), (2, 4), (2, 32), (2, apart)];
        let taken = memory.recast(element, ring(of_numbers, (plan.stages, 0), &in_order))?;
        let held = memory.recast(Element::I32, ring_of_words(of_weights, (plan.stages, behind)))?;
        let both = |numbers: &View<'k>| match words {
            0 => [held.clone(), numbers.clone()],
            _ => [numbers.clone(), held.clone()],
        };
        let (rings, read) = (both(&copied), both(&taken));
        let beside = outline.epilogue.inputs(k, Some(&memory))?;
        let scaling = Scaling::declare(k, problem, plan)?.ok_or_else(crate::gemm::index::overflow)?;
        let steps = k.size(&format!("ceil({}/{})", outline.sizes()[2], problem.k_tile()))?;
        let written: Vec<&Written> = outline.written.iter().collect();
        let ends = outline.epilogue.ends(k, &written, beside)?;
        let last = outline.last.as_ref().map(|last| last.ends(k, &written, last.inputs(k, None)?)).transpose()?;
        let passes = Pass::all(k, outline, &block, (&steps, None), (ends, last))?;
        let [along, across] = plan.warps.unwrap_or([1, 1]);
        let part = [4, plan.rows / (16 * along), plan.columns / (8 * across)];
        let sums = || k.register(problem.accumulator_type(), ((2, 2), part[1], part[2]));
        let (totals, accumulators) = (sums()?, sums()?);
        let weighted = Weighted {
            k,
            outline,
            copies,
            operands,
            rings,
            read,
            words,
            of_words,
            scaling,
            accumulators,
            totals,
            part,
        };
        Ok((weighted, passes))
    }

    /// Multiplies the tiles of a block and runs their epilogues.
    fn multiply_pass(&self, pass: &Pass<'_, 'k>) -> Result<(), KernelError> {
        let k = self.k;
        k.range(pass.own()?, |iteration| {
            let unit = pass.unit(&iteration)?;
            // All warps have finished with the memory of the previous tile.
            k.barrier();
            self.multiply_tile(&unit)?;
            let accumulators = pass.epilogue.warp_accumulators(&self.totals, &self.part)?;
            pass.epilogue.write(k, &accumulators, (&pass.ends, None, None), &unit, 0)
        })
    }

    /// The mainloop of an output tile. The scales of a group are loaded one group ahead.
    fn multiply_tile(&self, unit: &Unit) -> Result<(), KernelError> {
        let (k, stages) = (self.k, self.outline.plan.stages);
        let lines = [self.outline.plan.rows, self.outline.plan.columns];
        let depths = [0, 1].map(|side| if side == self.words { WORDS_OF_GROUP } else { self.outline.problem.k_tile() });
        let tiles = |side: usize| {
            let from = [&unit.row, &unit.column][side];
            self.operands[side].tiles(unit, [lines[side], depths[side]], from)
        };
        let tiles = [tiles(0)?, tiles(1)?];
        self.totals.clear();
        self.accumulators.clear();
        for stage in 0..stages - 1 {
            self.fetch(&tiles, unit, &Expr::from(stage), &Expr::from(stage))?;
        }
        let mma = &self.outline.epilogue.part;
        let kept = KeptScales::new(k, &self.scaling.ask(mma, unit, &unit.first)?)?;
        k.range(unit.steps.clone(), |step| {
            // The stage has arrived, and all threads have finished with the previous one, which is
            // filled next.
            k.wait_async(stages as u32 - 2);
            k.barrier();
            let ahead = plus(&step, &Expr::from(stages - 1))?;
            self.fetch(&tiles, unit, &ahead, &k.remainder(&ahead, stages)?)?;
            let scales = kept.get()?;
            let next = plus(&plus(&unit.first, &step)?, &Expr::from(1))?;
            kept.set(&self.scaling.ask(mma, unit, &next)?)?;
            let stage = k.remainder(&step, stages)?;
            for number in 0..self.outline.problem.k_tile() / STEP {
                let operands = [self.load(0, &stage, number)?, self.load(1, &stage, number)?];
                k.mma(&self.outline.mma, &self.accumulators, &operands[0], &operands[1], &self.accumulators)?;
            }
            self.promote(&scales)
        })?;
        // Copies that are never read may still be in flight.
        k.wait_async(0);
        Ok(())
    }

    /// Issues the copies of a k-tile into a stage of the ring.
    fn fetch(&self, tiles: &[Vec<View<'k>>; 2], unit: &Unit, step: &Expr, stage: &Expr) -> Result<(), KernelError> {
        let (step, stage) = (at(&plus(&unit.first, step)?)?, at(stage)?);
        for ((tiles, copy), ring) in tiles.iter().zip(&self.copies).zip(&self.rings) {
            for from in tiles {
                self.k.copy_predicated(copy, &from.slice(step.clone())?, &ring.slice(stage.clone())?)?;
            }
        }
        self.k.commit_async();
        Ok(())
    }

    /// The fragments of two instructions along K of an operand, from a stage.
    fn load(&self, side: usize, stage: &Expr, number: i64) -> Result<Fragment<'k>, KernelError> {
        let operand = [Operand::A, Operand::B][side];
        let lines = [self.outline.plan.rows, self.outline.plan.columns][side];
        let (here, place) = (self.read[side].slice(at(stage)?)?, tile_at(&Expr::from(0), Some(&Expr::from(number)))?);
        if side != self.words {
            return here.local_tile((lines, STEP), place)?.partition_mma(&self.outline.mma, operand)?.load();
        }
        let words = here.local_tile((lines, WORDS_OF_STEP), place)?.partition_mma(&self.of_words, operand)?.load()?;
        let numbers = self.k.nibbles(&words.numbers()?, self.outline.problem.operand_type(), true)?;
        // A word holds the pairs of K of both instructions: four bits of one element, and those of
        // the other 16 bits higher.
        let blocks = self.part[1 + side];
        let layout = match operand {
            Operand::A => Layout::strided(((2, 2, 2), blocks, 2), ((4, 8, 1), 16, 2))?,
            _ => Layout::strided(((2, 2), blocks, 2), ((4, 1), 8, 2))?,
        };
        numbers.with_layout(&layout)
    }

    /// Adds the accumulators of a group, times its scales, to the totals.
    fn promote(&self, scales: &[Vec<Num<'k>>]) -> Result<(), KernelError> {
        let scales = self.scaling.of_part(&self.outline.epilogue.part, scales, 0);
        promote(&self.totals, &self.accumulators, scales)?;
        self.accumulators.clear();
        Ok(())
    }
}
