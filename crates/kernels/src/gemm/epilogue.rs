//! How sums leave a block: the plan of it.
//!
//! Law: a tile of sums, or of what the function of the problem makes of them, is written where its
//! rows and columns say; what lies past the edges is left out. It is taken in strips of columns,
//! each of which is computed, converted and written before the next, so that few registers are
//! needed besides the sums. Elements of 16 and of 32 bits go through shared memory, in panels of
//! which the rows are those of the swizzle, and the copy engine stores them while the next tile is
//! multiplied; where it cannot, threads write those of 16 bits side by side. Others, and tensors of
//! which neither mode is contiguous, are stored from registers; so are sums in f32 of a block that
//! shares its tile, into the matrix of its range of steps.
//!
//! `beside.rs` declares what is written and read and lets inputs come ahead; `write.rs` writes;
//! `teams.rs` says who waits for whom.

mod beside;
mod cut;
mod teams;
mod write;

use tilewright_atoms::{CopyAtom, Operand, TiledCopy, TiledMma};
use tilewright_kernel::{Element, Meeting, Pipeline, View};

use self::cut::{Cut, Rest};
use self::teams::BLOCK;
use super::byproduct::Taker;
use super::fold::Fold;
use super::fused::{self, Fetch, Input};
use super::matrix::Contiguous;
use super::plan::Plan;
use super::problem::{Fused, Problem};
use crate::error::PlanError;

/// The most columns of a strip.
const STRIP: i64 = 64;

/// The most problems of a list with an input that does not come ahead: each is read by instructions
/// of its own.
const MOST_READ: i64 = 8;

/// Bytes of tensors that stay in the cache together, about.
const CACHED: i64 = 32 << 20;

/// How the sums of a tile are written.
pub(super) struct Epilogue {
    result: Element,
    /// The type of the sums.
    sums: Element,
    rows: i64,
    columns: i64,
    /// Columns of a strip.
    strip: i64,
    /// In how many parts a tile goes through shared memory, of so many columns, of which the last
    /// one may have fewer; and through how many buffers in turn.
    parts: i64,
    part_columns: i64,
    /// Whether rows of a part lie one behind the other in shared memory.
    plain: bool,
    buffers: i64,
    /// Tiles of a block at once, each of which has such buffers.
    tiles: usize,
    /// Groups of warps that write their rows of a tile each on its own; 1 where all write together.
    teams: i64,
    /// Whether a strip leaves shared memory when it is written, not with the whole tile: where a
    /// function is computed, which takes long enough that the last tile of a block ends sooner.
    by_strips: bool,
    /// Elements of a line of a panel.
    panel: i64,
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
    /// The layout of shared memory, and what the last part has of it where that is less.
    panels: String,
    rest: Option<Rest>,
    /// Whether D leaves the cache first, so that factors stay there.
    once: bool,
    /// What is done with the sums of each problem of a list; nothing where a block shares its tile.
    fused: Vec<Fused>,
    /// How the inputs come ahead of the sums.
    fetches: Vec<Option<Fetch>>,
    /// How a tile that came ahead reaches registers.
    load: Option<TiledCopy>,
    /// What is kept of rows and columns.
    takers: Vec<Taker>,
    /// Sums that make one number of D: two of pairs.
    each: usize,
    /// Whether rows are in groups, of which some may belong to none.
    grouped: bool,
    /// The axes of folded modes.
    fold: Option<Fold>,
    /// How many of the last tiles are shared, where others are not; and whether others are.
    tail: i64,
    before: bool,
}

/// What the sums of a kernel are written to, and what is read beside them.
pub(super) struct Ends<'k> {
    /// D of each problem of a list.
    d: Vec<View<'k>>,
    /// What tiles leave of their rows and columns.
    kept: Vec<View<'k>>,
    /// The buffers through which it goes: those of each tile that a block has at once.
    staged: Vec<View<'k>>,
    /// The last part's, where it has fewer columns.
    rest: Option<View<'k>>,
    /// The inputs of each problem of a list.
    inputs: Vec<Vec<Input<'k>>>,
    /// The one stage of inputs that come ahead.
    ahead: Option<Pipeline<'k>>,
    /// Where the threads of each group meet that writes on its own.
    meetings: Vec<Meeting<'k>>,
}

/// What is read beside the sums, and shared memory through which a tile is stored.
pub(super) struct Beside<'k> {
    staged: Vec<View<'k>>,
    rest: Option<View<'k>>,
    inputs: Vec<Vec<Input<'k>>>,
}

impl Epilogue {
    /// Of the problems of a list, of which the first one says types and how tensors lie. `staged`
    /// says in which mode D goes through shared memory, if so, and whether bulk copies store it
    /// from there.
    pub(super) fn of(
        problems: &[Problem],
        plan: &Plan,
        staged: Option<(Contiguous, bool)>,
    ) -> Result<Epilogue, PlanError> {
        let problem = problems.first().ok_or(PlanError::Plan { because: "a list has one problem at least" })?;
        let (swapped, splits) = (plan.swapped, plan.splits);
        let staged = staged.filter(|_| splits == 1);
        let stored = staged.map(|(contiguous, _)| contiguous);
        let cut = Cut::of(problem, plan, stored);
        let part = cut.product(plan.together())?;
        let spread = match staged {
            Some((_, false)) => Some(cut.spread(problem, part.threads())?),
            _ => None,
        };
        let functions = problems.iter().filter_map(Problem::function).filter(|_| splits == 1);
        let functions: Vec<Fused> = functions.cloned().collect();
        let bulk = stored.is_some() && spread.is_none();
        let fetches = fetches(problems, plan, &functions, (stored, bulk), &cut)?;
        let comes = fetches.contains(&Some(Fetch::Tile));
        let (panels, rest, [to_shared, from_shared]) = (cut.panels(), cut.rest(), cut.matrices());
        let Cut { rows, columns, strip, parts, buffers, part_columns, plain, along_rows, width, bytes } = cut;
        let moved = |name: &str, is: bool| match is && bytes == 2 {
            true => TiledCopy::of_operand_in(CopyAtom::named(name)?, &part, Operand::C, 16).map(Some),
            false => Ok(None),
        };
        let (load, store) = (moved(from_shared, comes)?, moved(to_shared, stored.is_some())?);
        let takers = problem.by_products().map(|by| Taker::of(by, problem, plan, &part, [rows, strip]));
        let takers: Vec<Taker> = takers.collect::<Result<_, _>>()?;
        let apart = bulk && takers.is_empty() && problem.groups().is_none() && problem.fold().is_none();
        let blocks = rows % (BLOCK * plan.groups) == 0;
        let teams = if apart && blocks && plan.writes_apart(problem, comes) { plan.groups } else { 1 };
        Ok(Epilogue {
            result: problem.result(),
            sums: problem.sums(),
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
            through: stored.is_some(),
            along_rows,
            part,
            swapped,
            splits,
            batch: problem.batch(),
            store,
            spread,
            once: problems.iter().map(Problem::bytes).fold(0, i64::saturating_add) > CACHED,
            panels,
            rest,
            fused: functions,
            fetches,
            load,
            takers,
            each: if problem.pairs().is_some() { 2 } else { 1 },
            grouped: problem.groups().is_some(),
            fold: problem.fold(),
            tail: 0,
            before: false,
        })
    }
}

impl Epilogue {
    /// The same of the last tiles, so many, whose sums blocks share.
    pub(super) fn of_last(problem: &Problem, plan: &Plan, tail: i64) -> Result<Epilogue, PlanError> {
        Ok(Epilogue { tail, ..Epilogue::of(std::slice::from_ref(problem), plan, None)? })
    }

    /// The same, for tiles after which others follow that have another epilogue.
    #[must_use]
    pub(super) fn before_others(self) -> Epilogue {
        Epilogue { before: true, ..self }
    }
}

/// How the inputs of the functions of a list come ahead of the sums: an input does so only if that
/// is possible in all problems.
///
/// Errors: there are too many problems with an input that does not.
fn fetches(
    problems: &[Problem],
    plan: &Plan,
    functions: &[Fused],
    (stored, bulk): (Option<Contiguous>, bool),
    cut: &Cut,
) -> Result<Vec<Option<Fetch>>, PlanError> {
    // Tiles of groups begin anywhere, those of folded modes have boxes, and where groups of warps
    // take tiles in turn there are several at once.
    let first = &problems[0];
    let ahead = !plan.alternates && first.groups().is_none() && first.fold().is_none();
    let fetched = |(fused, problem): (&Fused, &Problem)| match stored.filter(|_| ahead) {
        Some(stored) => {
            // The engine overwrites no tile that threads write from shared memory.
            let (whole, tile) = (cut.parts == 1 && bulk, [cut.rows, cut.columns]);
            fused::fetches(fused, problem.d(), (stored, whole), plan.swapped, tile)
        }
        None => Vec::new(),
    };
    let common = |all: Vec<Option<Fetch>>, own: Vec<Option<Fetch>>| {
        all.into_iter().zip(own).map(|(all, own)| all.filter(|_| all == own)).collect()
    };
    let fetches: Vec<Option<Fetch>> = functions.iter().zip(problems).map(fetched).reduce(common).unwrap_or_default();
    let inputs = functions.first().map_or(0, |fused| fused.inputs.len());
    if problems.len() as i64 > MOST_READ && fetches.iter().flatten().count() < inputs {
        let what = "problems of a list, of which inputs do not come ahead of the sums";
        return Err(PlanError::TooLarge { what, asked: problems.len() as i64, limit: MOST_READ });
    }
    Ok(fetches)
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
