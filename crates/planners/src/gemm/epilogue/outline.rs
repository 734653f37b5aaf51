//! The decisions of an epilogue, before a kernel is written.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Element, LayoutArgument, Meeting, Pipeline, View};
use tilewright_layout::atoms::{CopyAtom, Operand, TiledCopy, TiledMma};

use crate::error::PlanError;
use crate::fitted::CACHED_L2_PERCENT;
use crate::gemm::epilogue::cut::{EpilogueCut, Rest};
use crate::gemm::epilogue::inputs::{self, Fetch, Input};
use crate::gemm::epilogue::reductions::Taker;
use crate::gemm::implicit::{self, Fold};
use crate::gemm::plan::{Plan, WARPGROUP_ROWS};
use crate::gemm::problem::matrix::Contiguous;
use crate::gemm::problem::{Fused, Problem};
use crate::law::l2_share;

/// The most problems of a list with an input that is not prefetched: each needs load instructions
/// of its own.
const MAX_READ_INPUTS: i64 = 8;

/// How the accumulators of a tile become elements of D.
pub(crate) struct Epilogue {
    pub(crate) result: Element,
    /// The accumulator type, and the type in which the epilogue function is computed.
    pub(crate) accumulator: Element,
    pub(crate) computed: Element,
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    /// Columns of a strip.
    pub(crate) strip: i64,
    /// The number of parts in which a tile is staged, their columns (the last part may have fewer),
    /// and the number of buffers that the parts alternate between.
    pub(crate) parts: i64,
    pub(crate) part_columns: i64,
    /// Whether rows of a part are contiguous in shared memory, without panels.
    pub(crate) plain: bool,
    pub(crate) buffers: i64,
    /// Tiles of a block in flight, each with buffers of its own.
    pub(crate) tiles: usize,
    /// Warpgroups that store their own rows; 1 if all store together.
    pub(crate) teams: i64,
    /// Whether each strip is stored when it is written, not with the whole tile. With an epilogue
    /// function, which takes long enough, the last tile of a block ends sooner that way.
    pub(crate) by_strips: bool,
    /// Elements of a row of a panel.
    pub(crate) panel: i64,
    /// Whether warps multiply by mma.sync; otherwise warpgroups do, by wgmma.
    pub(crate) by_warps: bool,
    /// The tiled MMA whose result is a strip.
    pub(crate) part: TiledMma,
    /// Whether rows of a tile are columns of D.
    pub(crate) swapped: bool,
    /// Output matrices: one for each split of K, or 1 for D itself.
    pub(crate) split_k: i64,
    pub(crate) batch: i64,
    /// Whether D is staged in shared memory, and whether its contiguous mode is along the rows of a
    /// tile.
    pub(crate) through: bool,
    pub(crate) along_rows: bool,
    /// The copy from registers to shared memory, by `stmatrix` for 16-bit elements.
    pub(crate) store: Option<TiledCopy>,
    /// The copy by threads from shared memory to D; None if TMA stores it.
    pub(crate) spread: Option<TiledCopy>,
    /// The layout of a part in shared memory, with a mode of stages if D is staged in a stage of
    /// the ring, and that of a shorter last part.
    pub(crate) panels: LayoutArgument,
    pub(crate) rest: Option<Rest>,
    /// Whether D is staged in a stage of the ring, which a producer leaves to the epilogue.
    pub(crate) in_ring: bool,
    /// Whether stores of D have the L2 hint evict_first, so that operands stay there.
    pub(crate) once: bool,
    /// The epilogue functions of the problems of a list; empty with split-K.
    pub(crate) fused: Vec<Fused>,
    /// How the inputs are prefetched.
    pub(crate) fetches: Vec<Option<Fetch>>,
    /// The copy of a prefetched tile to registers.
    pub(crate) load: Option<TiledCopy>,
    /// The reductions of rows and columns.
    pub(crate) takers: Vec<Taker>,
    /// Accumulators for one element of D: two if gated.
    pub(crate) each: usize,
    /// Whether there are row groups; some rows may be in none.
    pub(crate) grouped: bool,
    /// The axes of folded modes.
    pub(crate) fold: Option<Fold>,
    /// The tiles of the tail if this is its epilogue; and whether a tail follows.
    pub(crate) tail: i64,
    pub(crate) before: bool,
}

/// The outputs and inputs of an epilogue.
pub(crate) struct Ends<'k> {
    /// D of each problem of a list.
    pub(crate) d: Vec<View<'k>>,
    /// Partial reductions that tiles leave.
    pub(crate) kept: Vec<View<'k>>,
    /// Buffers in shared memory, for each tile in flight.
    pub(crate) staged: Vec<View<'k>>,
    /// The buffer of a shorter last part.
    pub(crate) rest: Option<View<'k>>,
    /// The inputs of each problem of a list.
    pub(crate) inputs: Vec<Vec<Input<'k>>>,
    /// The stage of prefetched inputs.
    pub(crate) ahead: Option<Pipeline<'k>>,
    /// The named barrier of each warpgroup that stores its own rows.
    pub(crate) meetings: Vec<Meeting<'k>>,
}

/// The inputs of an epilogue, and shared memory for tiles of D.
pub(crate) struct EpilogueInputs<'k> {
    pub(crate) staged: Vec<View<'k>>,
    pub(crate) rest: Option<View<'k>>,
    pub(crate) inputs: Vec<Vec<Input<'k>>>,
}

impl Epilogue {
    /// The epilogue of a list of problems; the first one has the types and layouts of all. `staged`
    /// is the contiguous mode of D if D is staged in shared memory, and whether TMA stores it from
    /// there.
    pub(crate) fn of(
        problems: &[Problem],
        (plan, machine): (&Plan, &Machine),
        staged: Option<(Contiguous, bool)>,
    ) -> Result<Epilogue, PlanError> {
        let problem = problems.first().ok_or(PlanError::Plan { because: "a list has one problem at least" })?;
        let (swapped, split_k) = (plan.swapped, plan.split_k);
        let staged = staged.filter(|_| split_k == 1);
        let stored = staged.map(|(contiguous, _)| contiguous);
        let cut = EpilogueCut::of(problem, (plan, machine), stored);
        let part = cut.product(plan.together())?;
        let spread = match staged {
            Some((_, false)) => Some(cut.spread(problem, part.threads())?),
            _ => None,
        };
        let functions = problems.iter().filter_map(Problem::epilogue).filter(|_| split_k == 1);
        let functions: Vec<Fused> = functions.cloned().collect();
        let bulk = stored.is_some() && spread.is_none();
        let fetches = fetches(problems, plan, &functions, (stored, bulk), &cut)?;
        let comes = fetches.contains(&Some(Fetch::Tile));
        let in_ring = stored.is_some() && plan.producer;
        let stages = in_ring.then(|| (plan.stages, plan.stage_bytes(problem) / cut.bytes));
        let (panels, rest, [to_shared, from_shared]) = (cut.panels(stages)?, cut.rest()?, cut.matrices());
        let EpilogueCut { rows, columns, strip, parts, buffers, part_columns, plain, along_rows, width, bytes, warps } =
            cut;
        let moved = |name: &str, is: bool| match is && bytes == 2 {
            true => TiledCopy::of_operand_in(CopyAtom::named(name)?, &part, Operand::C, 16).map(Some),
            false => Ok(None),
        };
        let (load, store) = (moved(from_shared, comes)?, moved(to_shared, stored.is_some() && warps.is_none())?);
        let takers = problem.reductions().map(|by| Taker::of(by, problem, plan, &part, [rows, strip]));
        let takers: Vec<Taker> = takers.collect::<Result<_, _>>()?;
        let apart = bulk && takers.is_empty() && problem.row_groups().is_none() && implicit::of(problem).is_none();
        let blocks = rows % (WARPGROUP_ROWS * plan.warpgroups) == 0;
        let teams = if apart && blocks && plan.writes_apart(problem, comes) { plan.warpgroups } else { 1 };
        Ok(Epilogue {
            result: problem.result_type(),
            accumulator: problem.accumulator_type(),
            computed: problem.computed_type(),
            rows,
            columns,
            strip,
            parts,
            part_columns,
            plain,
            buffers,
            tiles: plan.tiles_at_once() as usize,
            teams,
            by_strips: teams > 1 && !functions.is_empty() && parts == 1 && !along_rows && !plain && strip == width,
            panel: width,
            by_warps: warps.is_some(),
            through: stored.is_some(),
            along_rows,
            part,
            swapped,
            split_k,
            batch: problem.batch(),
            store,
            spread,
            once: problems.iter().map(Problem::bytes).fold(0, i64::saturating_add)
                > l2_share(machine, CACHED_L2_PERCENT),
            panels,
            rest,
            in_ring,
            fused: functions,
            fetches,
            load,
            takers,
            each: if problem.pairs().is_some() { 2 } else { 1 },
            grouped: problem.row_groups().is_some(),
            fold: implicit::of(problem),
            tail: 0,
            before: false,
        })
    }
}

impl Epilogue {
    /// The epilogue of a split tail.
    pub(crate) fn of_last(problem: &Problem, plan: (&Plan, &Machine), tail: i64) -> Result<Epilogue, PlanError> {
        Ok(Epilogue { tail, ..Epilogue::of(std::slice::from_ref(problem), plan, None)? })
    }

    /// The epilogue of the tiles before the tail.
    #[must_use]
    pub(crate) fn before_others(self) -> Epilogue {
        Epilogue { before: true, ..self }
    }
}

/// How the inputs of a list are prefetched: an input is prefetched only if that is possible in all
/// problems.
///
/// Errors: too many problems have an input that is not prefetched.
fn fetches(
    problems: &[Problem],
    plan: &Plan,
    functions: &[Fused],
    (stored, bulk): (Option<Contiguous>, bool),
    cut: &EpilogueCut,
) -> Result<Vec<Option<Fetch>>, PlanError> {
    // No prefetch: tiles of row groups begin at any row, folded modes need boxes, and ping-pong has
    // several tiles in flight. Without TMA, threads load inputs to registers.
    let first = &problems[0];
    let ahead =
        plan.warps.is_none() && !plan.ping_pong && first.row_groups().is_none() && implicit::of(first).is_none();
    let fetched = |(fused, problem): (&Fused, &Problem)| match stored.filter(|_| ahead) {
        Some(stored) => {
            // A prefetched tile would use the same shared memory as a tile that threads store from
            // there.
            let (whole, tile) = (cut.parts == 1 && bulk, [cut.rows, cut.columns]);
            inputs::fetches(fused, problem.d(), (stored, whole), plan.swapped, tile)
        }
        None => Vec::new(),
    };
    let common = |all: Vec<Option<Fetch>>, own: Vec<Option<Fetch>>| {
        all.into_iter().zip(own).map(|(all, own)| all.filter(|_| all == own)).collect()
    };
    let fetches: Vec<Option<Fetch>> = functions.iter().zip(problems).map(fetched).reduce(common).unwrap_or_default();
    let inputs = functions.first().map_or(0, |fused| fused.inputs.len());
    if plan.warps.is_none() && problems.len() as i64 > MAX_READ_INPUTS && fetches.iter().flatten().count() < inputs {
        let what = "problems of a list with inputs that are not prefetched";
        return Err(PlanError::TooLarge { what, asked: problems.len() as i64, limit: MAX_READ_INPUTS });
    }
    Ok(fetches)
}
