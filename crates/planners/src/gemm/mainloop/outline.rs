//! The decisions of a GEMM kernel, before it is written.

use std::ops::Range;

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::operation::BlockScaled;
use tilewright_kernel::{Element, KernelError, LayoutArgument};
use tilewright_layout::atoms::{MmaAtom, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{IntoShape, Layout, Tiler};

use crate::error::PlanError;
use crate::gemm::epilogue::outline::Epilogue;
use crate::gemm::implicit;
use crate::gemm::implicit::Fold;
use crate::gemm::index::{fact, overflow, plus, times};
use crate::gemm::plan::warps::warp_atom;
use crate::gemm::plan::{Plan, WARPS};
use crate::gemm::problem::Problem;
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::text::Written;
use crate::gemm::schedule::edges::Edges;
use crate::gemm::schedule::list::Listed;
use crate::units::{VECTOR, count};

/// The instruction of a plan, by name.
pub(crate) fn atom(problem: &Problem, columns: i64) -> String {
    let types = match problem.operand_type() {
        Element::F16 => "16_F32F16F16_SS",
        Element::F32 => "8_F32TF32TF32_SS_TN",
        Element::E4M3 => "32_F32E4M3E4M3_SS_TN",
        Element::E5M2 => "32_F32E5M2E5M2_SS_TN",
        Element::I8 => "32_S32S8S8_SS_TN",
        Element::U8 => "32_S32U8U8_SS_TN",
        _ => "16_F32BF16BF16_SS",
    };
    format!("SM90_64x{columns}x{types}")
}

/// The decisions of a kernel.
pub(crate) struct Outline<'a> {
    /// The problems of a list, or one problem. The first one has the types and layouts of all.
    pub(crate) problems: &'a [Problem],
    pub(crate) problem: &'a Problem,
    pub(crate) plan: &'a Plan,
    pub(crate) machine: &'a Machine,
    /// Whether the kernel is for the exact sizes of the problems, not for all multiples of the
    /// sizes that they name.
    pub(crate) exact: bool,
    /// The sizes and layouts with which each problem is declared.
    pub(crate) written: Vec<Written>,
    /// The tiles of a list of several problems.
    pub(crate) listed: Option<Listed>,
    /// The axes of folded modes.
    pub(crate) fold: Option<Fold>,
    /// The mode in which TMA reads A and B, and whether each has a batch mode.
    pub(crate) contiguous: [Contiguous; 2],
    /// The number of elements of a copy by cp.async, for A and for B; those of 16 bytes if a
    /// producer loads by TMA.
    pub(crate) together: [i64; 2],
    pub(crate) batched: [bool; 2],
    /// Whether halves of the columns are multiplied by separate instructions: if accumulators are
    /// promoted, or too many for one instruction.
    pub(crate) halved: bool,
    /// The tiled MMA of one instruction sequence.
    pub(crate) mma: TiledMma,
    /// How tiles are written, and how the tiles of a split tail are.
    pub(crate) epilogue: Epilogue,
    pub(crate) last: Option<Epilogue>,
    /// The kinds of clusters.
    pub(crate) clusters: Vec<Clusters>,
}

/// Clusters of one kind.
pub(crate) struct Clusters {
    /// Whether the tiles of a cluster are neighbours along columns; otherwise they are along rows.
    pub(crate) side_by_side: bool,
    /// The lines of edge tiles that clusters of this kind load.
    pub(crate) edges: Edges,
}

impl<'a> Outline<'a> {
    pub(crate) fn of(
        problems: &'a [Problem],
        (plan, machine): (&'a Plan, &'a Machine),
        exact: bool,
    ) -> Result<Outline<'a>, PlanError> {
        let Some(problem) = problems.first() else {
            return Err(PlanError::Plan { because: "a list has one problem at least" });
        };
        let halved = problem.pairs().is_none() && plan.halves(problem) == 2;
        let mma = instruction(problem, plan, halved)?;
        // If sizes have names, K is contiguous in A and B, and N in D.
        let whole = |found: Result<Contiguous, &'static str>| if exact { found } else { Ok(Contiguous::Columns) };
        let because = |because| PlanError::Plan { because };
        let (contiguous, together) = match plan.warps {
            Some(_) if exact && !plan.producer => {
                let [a, b] = problem.copied_by_threads().map(|found| found.map_err(because));
                let [(a, mut of_a), (b, mut of_b)] = [a?, b?];
                // The narrowest copies of all problems of a list.
                for other in &problems[1..] {
                    let [a, b] = other.copied_by_threads().map(|found| found.map_err(because));
                    (of_a, of_b) = (of_a.min(a?.1), of_b.min(b?.1));
                }
                ([a, b], [of_a, of_b])
            }
            _ => {
                let found = [problem.readable_a(), problem.readable_b()];
                let [a, b] = found.map(|found| whole(found).map_err(because));
                ([a?, b?], [VECTOR / i64::from(problem.operand_type().bytes()); 2])
            }
        };
        let along = if plan.swapped { [contiguous[1], contiguous[0]] } else { contiguous };
        let batched = [problem.a(), problem.b()].map(|operand| !exact || operand.is_batch());
        let (epilogue, last) = epilogues(problems, (plan, machine), exact)?;
        let listed = (problems.len() > 1).then(|| Listed::of(problems, plan));
        let sides = if plan.ends_above(problem) { vec![true, false] } else { vec![plan.side_by_side()] };
        let edges = |side_by_side| match exact && listed.is_none() && plan.warps.is_none() {
            true => Edges::of(problem, plan, along, side_by_side),
            false => Edges::none(),
        };
        let clusters =
            sides.into_iter().map(|side_by_side| Clusters { side_by_side, edges: edges(side_by_side) }).collect();
        let fold = if exact { implicit::of(problem) } else { None };
        let written = written(problems, plan, exact, fold.as_ref())?;
        Ok(Outline {
            problems,
            problem,
            plan,
            machine,
            exact,
            written,
            listed,
            fold,
            contiguous,
            together,
            batched,
            halved,
            mma,
            epilogue,
            last,
            clusters,
        })
    }

    /// Consumer warps.
    pub(crate) fn multipliers(&self) -> u32 {
        self.plan.warps.map_or(WARPS * self.plan.warpgroups, |[along, across]| along * across) as u32
    }

    /// Consumer warps that multiply one tile together.
    pub(crate) fn together(&self) -> u32 {
        self.multipliers() / self.plan.tiles_at_once() as u32
    }

    /// Whether there are producer warps, which fill the ring by TMA.
    pub(crate) fn has_producer(&self) -> bool {
        self.plan.warps.is_none() || self.plan.producer
    }

    /// Producer warps: four if registers are reallocated, which needs a whole warpgroup; none if
    /// the consumers copy by cp.async.
    pub(crate) fn copiers(&self) -> u32 {
        match self.plan.shares(self.problem, self.machine) {
            Some(_) => WARPS as u32,
            None => u32::from(self.has_producer()),
        }
    }

    /// K-tiles.
    pub(crate) fn steps(&self) -> i64 {
        count(self.problem.sizes()[2], self.problem.k_tile())
    }

    /// M, N and K as texts, as the kernel sees them: the extent along the rows of tiles first.
    pub(crate) fn sizes(&self) -> [&str; 3] {
        let [m, n, k] = &self.written[0].sizes;
        if self.plan.swapped { [n, m, k] } else { [m, n, k] }
    }

    /// All blocks of a cluster.
    pub(crate) fn all_blocks(&self) -> Range<i64> {
        0..self.plan.cluster
    }

    /// Stages that are filled and released together: see [`Plan::stages_of_phase`].
    pub(crate) fn stages_of_phase(&self) -> i64 {
        let is_known = self.exact && self.listed.is_none();
        if is_known { self.plan.stages_of_phase(self.problem) } else { 1 }
    }

    /// The phase of a k-tile, of those of a tile.
    ///
    /// Errors: an intermediate result does not fit.
    pub(crate) fn phase(&self, step: &Expr) -> Result<Expr, KernelError> {
        match self.stages_of_phase() {
            1 => Ok(step.clone()),
            together => step.floor_div(&Expr::from(together)).ok_or_else(overflow),
        }
    }

    /// The k-tiles of a phase, or its stages in the ring, each with its number in the phase.
    ///
    /// Errors: an intermediate result does not fit.
    pub(crate) fn stages_of(&self, phase: &Expr) -> Result<Vec<(i64, Expr)>, KernelError> {
        let together = self.stages_of_phase();
        let first = times(phase, &Expr::from(together))?;
        (0..together).map(|own| Ok((own, plus(&first, &Expr::from(own))?))).collect()
    }

    /// Whether a stage is released as soon as its own wgmma is done.
    pub(crate) fn releases_at_once(&self) -> bool {
        self.plan.releases_at_once(self.problem, self.epilogue.tile_comes())
    }

    /// The extent of the last k-tile along K, without instructions that would multiply padding
    /// alone.
    pub(crate) fn inside_last_step(&self) -> Option<i64> {
        let (all, depth) = (self.steps(), self.problem.k_tile());
        // Instructions at least partly inside K.
        let inside = count(self.problem.sizes()[2] - (all - 1) * depth, depth / 4) * (depth / 4);
        let is_known = self.exact && self.listed.is_none() && self.fold.is_none() && self.plan.split_k == 1;
        let leaves_out = is_known && self.releases_at_once() && !self.problem.is_promoted();
        (leaves_out && all > 1 && inside < depth).then_some(inside)
    }
}

/// The instruction of a warp of a problem, by name.
pub(crate) fn warp_instruction(problem: &Problem) -> &'static str {
    match problem.blocks().map(|blocks| blocks.format) {
        Some(BlockScaled::Mxf8E4M3) => "SM120_16x8x32_TN_VS<E4M3,E4M3,F32,UE8M0,32>",
        Some(BlockScaled::Mxf8E5M2) => "SM120_16x8x32_TN_VS<E5M2,E5M2,F32,UE8M0,32>",
        Some(BlockScaled::Mxf4) => "SM120_16x8x64_TN_VS<E2M1,E2M1,F32,UE8M0,32>",
        Some(BlockScaled::Nvf4) => "SM120_16x8x64_TN_VS<E2M1,E2M1,F32,UE4M3,16>",
        None => warp_atom(problem).0,
    }
}

/// The tiled MMA: all columns of a tile, each half of a gated tile, or halves of the columns.
fn instruction(problem: &Problem, plan: &Plan, halved: bool) -> Result<TiledMma, PlanError> {
    if let Some([along, across]) = plan.warps {
        let (name, depth) = warp_atom(problem);
        // Two instructions of 8 columns for each warp, so that one `ldmatrix` serves both.
        let order: Tiler = Tiler::from_shape(&(16 * along, 16 * across, depth).into_shape()?)?;
        let arranged = Layout::compact(&(along, across, 1).into_shape()?)?;
        return Ok(TiledMma::new(MmaAtom::named(name)?, &arranged, &order)?);
    }
    let [rows, columns] = plan.tile_of_d(problem);
    let together = if halved { columns / 2 } else { columns };
    let order: Tiler = Tiler::from_shape(&(rows, together, problem.k_tile() / 4).into_shape()?)?;
    let instruction = MmaAtom::named(&atom(problem, together))?;
    Ok(TiledMma::new(instruction, &Layout::compact(&(plan.together(), 1, 1).into_shape()?)?, &order)?)
}

/// The epilogue of all tiles, and that of the tail if the plan splits its k-tiles.
fn epilogues(
    problems: &[Problem],
    (plan, machine): (&Plan, &Machine),
    exact: bool,
) -> Result<(Epilogue, Option<Epilogue>), PlanError> {
    let problem = &problems[0];
    let bulk = !exact || problem.stored().is_ok();
    let staged = if exact { problem.staged() } else { Some(Contiguous::Columns) }.map(|contiguous| (contiguous, bulk));
    let staged = match plan.warps {
        Some(_) => problem.staged_by_warps().map(|contiguous| (contiguous, false)),
        None => staged,
    };
    if plan.tail == 0 {
        return Ok((Epilogue::of(problems, (plan, machine), staged)?, None));
    }
    let (whole, last) = plan.parted();
    let before = Epilogue::of(problems, (&whole, machine), staged)?.before_others();
    Ok((before, Some(Epilogue::of_last(problem, (&last, machine), plan.tail)?)))
}

/// How a kernel declares the problems of a list. Folded modes are possible for a single problem
/// only.
fn written(problems: &[Problem], plan: &Plan, exact: bool, fold: Option<&Fold>) -> Result<Vec<Written>, PlanError> {
    let problem = &problems[0];
    let facts = (!exact).then(|| facts(problem, plan));
    let mut first = problem.written(facts.as_ref())?;
    if let Some(fold) = fold {
        let [a, b] = fold.operands(problem.sizes()[1])?.map(LayoutArgument::Layout);
        let d = fold.beside(problem.d()).ok_or(PlanError::Plan { because: "folded modes of D are moved after" })?;
        first.tensors = [a, b, d];
        first.sizes[0] = fold.padded(plan.rows).to_string();
        first.sizes[2] = (fold.steps(problem.k_tile()) * problem.k_tile()).to_string();
    }
    let others = problems[1..].iter().map(|other| other.written(None));
    Ok(std::iter::once(Ok(first)).chain(others).collect::<Result<_, _>>()?)
}

/// Known divisors of M, N and K, which save bounds checks or prove an alignment.
fn facts(problem: &Problem, plan: &Plan) -> [String; 3] {
    let [m, n, k] = problem.sizes();
    let (along_m, along_n) = (plan.rows * plan.raster_band, plan.columns);
    let (along_m, along_n) = if plan.swapped { (along_n, along_m) } else { (along_m, along_n) };
    let eight = |size: i64| if size % 8 == 0 { size } else { 8 };
    [fact(m, &[along_m]), fact(eight(n), &[along_n, 8]), fact(eight(k), &[problem.k_tile(), 8])]
}
