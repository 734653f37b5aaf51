//! How a copy is executed: loops around tiles.
//!
//! Law: the loops and the tile together visit every element once, with its offset in the source and
//! in the destination.
//!
//! The order of a copy is free, because no two elements have one destination. So the additive axes
//! of the common domain are sorted and merged, independently of their order in the index. An axis
//! along which both the source and the destination are contiguous is a *run*, and is moved as a
//! whole. The other axes are divided into
//!
//! * *across*, the axes along which the source is contiguous, as many as make rows of
//!   [`TRANSPOSED_ROW`] bytes, or of [`ROW`] where nothing is transposed;
//! * *along*, those along which the destination is contiguous, likewise;
//! * loops; those with long steps in the source or the destination are outermost.
//!
//! Across and along make a tile. Its offsets are two short tables, so that each side of it may have
//! several axes: a transpose of a tensor of many short modes has as good tiles as that of a matrix.
//! Its rows are long, because hardware prefetchers follow rows.
//!
//! Axes that are not additive may flip bits of offsets. Then tiles are transposed as if there were
//! no map, and permuted ([`super::permuted`]). Otherwise they are enumerated: the tile is a table
//! of pairs of offsets ([`super::pairs`]).

use super::joined::{self, Batch, batches};
use super::pairs::{pairs, reads_few_pages};
use super::permuted;
use crate::domain::{Addressing, Space, Step};
use crate::memory::{LINE, PAGE};
use crate::simd::{Instructions, PERMUTED_BUFFER};
use crate::threads;

/// The source and the destination of a copy, as indices of the steps of its domain.
pub(super) const SRC: usize = 0;
pub(super) const DST: usize = 1;

/// The bytes of a row in a tile, in the source and in the destination.
const ROW: usize = 1024;
/// As [`ROW`], for a tile that is transposed. Memory is read along rows of the source, and the
/// hardware prefetcher stops at the end of each row.
pub(super) const TRANSPOSED_ROW: usize = 4096;
/// The most elements of a row of the source in a transposed tile: each is in another page of the
/// destination, and the TLB holds about this many.
pub(super) const COLUMNS: usize = 1024;
/// Runs with more bytes than this are split, so that threads can share them.
const RUN: usize = 1 << 18;
/// Destinations with more bytes than this are written with non-temporal stores, because the caches
/// do not hold them.
const STREAM: usize = 1 << 23;
/// The smallest number of bytes of a row that is written with non-temporal stores through a buffer.
/// The lines at its ends are partial.
pub(super) const STAGED_ROW: usize = 128;

/// Options of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyOptions {
    /// The largest number of threads that share the work; None for all threads of rayon's pool.
    pub threads: Option<usize>,
    /// Whether the destination is written with non-temporal stores; None decides by its size.
    pub streaming: Option<bool>,
    /// The instructions that transposes use, if the processor has them; None for the fastest.
    pub instructions: Option<Instructions>,
}

/// A loop around the tiles: its byte steps in the source and in the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileLoop {
    pub(super) count: usize,
    pub(super) src: isize,
    pub(super) dst: isize,
    /// What is smaller in the last iteration.
    pub(super) part: DividedSide,
}

/// Which part of a tile a loop splits, and how much of it the last iteration has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DividedSide {
    /// The loop splits nothing.
    Whole,
    /// The loop splits the table across; the last iteration has this many rows.
    Across(usize),
    /// The loop splits the table along; the last iteration has this many offsets.
    Along(usize),
    /// The loop splits a run; the last iteration has this many bytes.
    Run(usize),
    /// The loop flips these bits of the offsets within rows of the source and of the destination,
    /// and splits nothing.
    Flip([usize; 2]),
}

/// The byte offsets of one table of a tile, in the source and in the destination.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Table {
    pub(super) src: Vec<isize>,
    pub(super) dst: Vec<isize>,
}

/// The bits of offsets in a row that are flipped: for each row across in the destination, and for
/// each row along in the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Masks {
    pub(super) across: Vec<usize>,
    pub(super) along: Vec<usize>,
    /// The bytes of the pieces that are permuted within rows of the source and of the destination:
    /// a line if they are larger, 0 if nothing is permuted.
    pub(super) parts: [usize; 2],
}

/// How the elements of a tile are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Move {
    /// A run for each pair of offsets across and along.
    #[default]
    Runs,
    /// Elements contiguous across in the source and along in the destination.
    Transpose,
    /// As [`Move::Transpose`], through a map that permutes pieces of rows.
    Permuted,
    /// One element, repeated at all offsets along.
    Splat,
    /// A run for each pair of a table of pairs.
    Pairs,
}

/// The tile: what one iteration of the loops moves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CopyTile {
    pub(super) how: Move,
    /// The bytes of a run, or of an element that is transposed.
    pub(super) unit: usize,
    pub(super) across: Table,
    pub(super) along: Table,
    /// Whether the offsets along are contiguous in the destination.
    pub(super) rows: bool,
    /// The source offsets of all rows that may be transposed: those before the tile, and then its
    /// own.
    pub(super) sources: Vec<isize>,
    /// The bits that a map flips in the offsets within rows.
    pub(super) masks: Masks,
    /// How many rows precede the tile: as many as make a line of the destination. The tile
    /// completes a line that begins before it.
    pub(super) before: usize,
}

/// Loops around a tile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Loops {
    /// Byte offsets of the first element.
    pub(super) src: isize,
    pub(super) dst: isize,
    /// The loops, outermost first.
    pub(super) outer: Vec<TileLoop>,
    pub(super) tile: CopyTile,
    pub(super) streaming: bool,
    /// The greatest power of two, up to 64, of which all steps of the destination are multiples.
    pub(super) aligned: usize,
    /// The rows of a transposed tile that are joined in a buffer: first for a whole tile, then for
    /// a tile with fewer columns across.
    pub(super) joined: [Vec<Batch>; 2],
}

/// What a plan does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    /// Loops around a tile.
    Loops(Box<Loops>),
    /// Copies index by index; the text says why.
    Walk(&'static str),
}

/// The work for two operands of the same size, with elements of `element` bytes.
pub(super) fn body(src: &Addressing, dst: &Addressing, element: usize, options: &CopyOptions) -> Body {
    if element == 0 {
        return Body::Walk("elements have no bytes");
    }
    let space = match Space::new([src, dst], [element; 2]) {
        Ok(space) => space,
        Err(why) => return Body::Walk(why),
    };
    let total = src.size().and_then(|size| usize::try_from(size).ok()?.checked_mul(element));
    match total.and_then(|total| loops(space, total, element, options)) {
        Some(loops) => Body::Loops(Box::new(loops)),
        None => Body::Walk("an offset in bytes is not representable"),
    }
}

/// The loops over the common domain, of `total` bytes.
fn loops(space: Space<2>, total: usize, element: usize, options: &CopyOptions) -> Option<Loops> {
    let [mut from, mut to] = space.origin;
    let mut steps = space.steps.clone();
    let run = steps.iter().position(|step| step.by[DST] == element as isize && step.by[SRC] == element as isize);
    let unit = match run {
        Some(run) => steps.remove(run).extent.checked_mul(element)?,
        None => element,
    };
    let streaming = options.streaming.unwrap_or(total >= STREAM);
    let mut outer = Vec::new();
    let tile = if space.table.len() == 1 {
        additive_tile(&mut steps, [unit, element], options, &mut outer)
    } else if let Some(permuted) =
        permuted::tile(&space, &steps, unit).filter(|_| unit < 16 || !reads_few_pages(&space, &steps, unit))
    {
        steps.clear();
        outer = permuted.outer;
        from = from.checked_add(permuted.origin[0])?;
        to = to.checked_add(permuted.origin[1])?;
        permuted.tile
    } else {
        pairs(space.table, &mut steps, unit)
    };
    outer.extend(steps.iter().map(|step| TileLoop {
        count: step.extent,
        src: step.by[SRC],
        dst: step.by[DST],
        part: DividedSide::Whole,
    }));
    // Long steps are outermost, so that consecutive tiles are close in the source or in the
    // destination.
    let reach = |step: isize| if step == 0 { usize::MAX } else { step.unsigned_abs() };
    outer.sort_by_key(|each| std::cmp::Reverse(reach(each.src).min(reach(each.dst))));
    // Rows of the source are an exception and are read to their ends: the hardware prefetcher loads
    // beyond a tile what the next tile needs.
    let transposes = matches!(tile.how, Move::Transpose | Move::Permuted);
    if let Some(at) = outer.iter().position(|each| transposes && matches!(each.part, DividedSide::Across(_))) {
        let across = outer.remove(at);
        outer.push(across);
    }
    let steps = outer.iter().map(|each| each.dst).chain(tile.across.dst.iter().copied());
    let bits = steps
        .chain(tile.along.dst.iter().copied().filter(|_| !tile.rows || tile.how == Move::Pairs))
        .fold(64, |bits, step| bits | step);
    let aligned = 1 << bits.trailing_zeros();
    let mut loops = Loops { src: from, dst: to, outer, tile, streaming, aligned, ..Loops::default() };
    if loops.tile.how == Move::Transpose {
        let before = rows_before(&loops, unit);
        loops.tile.before = before.len();
        loops.tile.sources = [before.as_slice(), &loops.tile.along.src].concat();
        let row = loops.tile.along.len() * unit;
        let ends = loops.outer.iter().all(|each| !matches!(each.part, DividedSide::Along(_)));
        if ends && streaming {
            let few = loops
                .outer
                .iter()
                .find_map(|each| if let DividedSide::Across(few) = each.part { Some(few) } else { None });
            let columns = &loops.tile.across.dst;
            let part = few.and_then(|few| columns.get(..few)).unwrap_or_default();
            let joined = [columns, part].map(|columns| batches(columns, row, LINE / unit));
            if joined::pays(&joined[0], row) {
                loops.joined = joined;
            }
        }
    }
    Some(loops)
}

/// The rows before a transposed tile, if a loop along continues them.
fn rows_before(loops: &Loops, unit: usize) -> Vec<isize> {
    let places = &loops.tile.along.src;
    let Some(along) = loops.outer.iter().find(|each| matches!(each.part, DividedSide::Along(_))) else {
        return Vec::new();
    };
    let last = places.get(places.len().saturating_sub(64 / unit)..).unwrap_or_default();
    if last.len() * unit < 64 { Vec::new() } else { last.iter().map(|place| place.wrapping_sub(along.src)).collect() }
}

impl Loops {
    /// Whether the rows of a tile of runs are long enough for non-temporal stores through a buffer.
    pub(super) fn staged(&self) -> bool {
        let single = self.tile.across.len() == 1 && self.tile.along.len() == 1;
        !single && self.tile.rows && self.row() >= STAGED_ROW
    }

    /// Whether the rows of a transposed tile are long enough for non-temporal stores of whole
    /// lines, if the rows do not begin at line boundaries.
    pub(super) fn kept(&self) -> bool {
        self.tile.rows && self.row() >= STAGED_ROW
    }

    /// Whether rows of a transposed tile are joined in a buffer.
    pub(super) fn joins(&self) -> bool {
        self.aligned < LINE && !self.joined[0].is_empty()
    }

    /// The bytes of a row of the destination in a tile.
    fn row(&self) -> usize {
        self.tile.along.len() * self.tile.unit
    }

    /// The bytes of the buffer that each thread needs.
    pub(super) fn buffer(&self) -> usize {
        match self.tile.how {
            Move::Permuted => PERMUTED_BUFFER,
            _ if !self.streaming => 0,
            Move::Transpose if self.joins() => self.joined.iter().flatten().map(Batch::bytes).max().unwrap_or(0),
            Move::Transpose if self.kept() => self.tile.across.len() * LINE,
            Move::Runs if self.staged() => self.row().next_multiple_of(LINE) + LINE,
            _ => 0,
        }
    }
}

impl Table {
    /// A table with the single offset 0.
    pub(super) fn one() -> Table {
        Table { src: vec![0], dst: vec![0] }
    }

    /// The table with every offset repeated at each of `count` steps of an axis.
    fn times(&self, count: usize, step: &Step<2>) -> Table {
        let over = |places: &[isize], by: isize| {
            let starts = (0..count as isize).map(move |k| k.wrapping_mul(by));
            starts.flat_map(|start| places.iter().map(move |place| place.wrapping_add(start))).collect()
        };
        Table { src: over(&self.src, step.by[SRC]), dst: over(&self.dst, step.by[DST]) }
    }

    pub(super) fn len(&self) -> usize {
        self.src.len()
    }
}

/// One table of a tile under construction.
struct Side {
    offsets: Table,
    /// The step that an axis must have to continue this table, in the source or in the destination.
    onward: Option<isize>,
    wanted: usize,
    full: bool,
    /// Whether the table still takes axes once it has the wanted length, in order to find what
    /// continues it.
    open: bool,
}

impl Side {
    fn new(unit: usize, row: usize) -> Side {
        let wanted = (row / unit).max(1);
        Side { offsets: Table::one(), onward: isize::try_from(unit).ok(), wanted, full: wanted == 1, open: false }
    }

    /// Adds an axis, or as much of it as is wanted. The rest becomes a loop.
    fn take(&mut self, step: Step<2>, multiple: usize, part: impl Fn(usize) -> DividedSide, outer: &mut Vec<TileLoop>) {
        let len = self.offsets.len();
        let wanted = (self.wanted / len).max(1);
        if step.extent.saturating_mul(len) <= self.wanted + self.wanted / 4 {
            self.offsets = self.offsets.times(step.extent, &step);
            self.full = !self.open && self.offsets.len() >= self.wanted;
            return;
        }
        // Parts of equal size, if possible, that make whole lines.
        let count = step.extent.div_ceil(wanted);
        let mut chunk = step.extent.div_ceil(count);
        if multiple.is_multiple_of(len) {
            chunk = chunk.next_multiple_of(multiple / len).min(step.extent);
        }
        let count = step.extent.div_ceil(chunk);
        let rest = step.extent - (count - 1) * chunk;
        self.offsets = self.offsets.times(chunk, &step);
        self.full = true;
        let by = chunk as isize;
        let (src, dst) = (step.by[SRC].wrapping_mul(by), step.by[DST].wrapping_mul(by));
        outer.push(TileLoop { count, src, dst, part: part(rest * len) });
    }
}

/// The tile of additive axes. The axes of the tile are removed from `steps`, and the rest of a
/// split axis goes to the loops.
fn additive_tile(
    steps: &mut Vec<Step<2>>,
    [unit, element]: [usize; 2],
    options: &CopyOptions,
    outer: &mut Vec<TileLoop>,
) -> CopyTile {
    let unit_step = unit as isize;
    let contiguous = steps.iter().any(|step| step.by[SRC] == unit_step);
    let transposes = matches!(unit, 1 | 2 | 4 | 8)
        && contiguous
        && steps.iter().any(|step| step.by[DST] == unit_step && step.by[SRC] != 0);
    let splat =
        !transposes && unit == element && steps.iter().any(|step| step.by[DST] == unit_step && step.by[SRC] == 0);
    if splat {
        return splat_tile(steps, unit, outer);
    }
    let [source_row, destination_row] =
        if transposes { [TRANSPOSED_ROW.min(COLUMNS * unit), TRANSPOSED_ROW] } else { [ROW, ROW] };
    let (mut across, mut along) = (Side::new(unit, source_row), Side::new(unit, destination_row));
    let line = (LINE / unit.min(LINE)).max(1);
    // The two tables take axes alternately, so that neither takes what the other needs.
    let mut rows = true;
    let find = |steps: &[Step<2>], wanted: Option<isize>, of: fn(&Step<2>) -> isize| {
        steps.iter().position(|step| Some(of(step)) == wanted)
    };
    along.open = transposes;
    loop {
        let next = |side: &Side, of| if side.full { None } else { find(steps, side.onward, of) };
        let (at_along, at_across) = (next(&along, |step| step.by[DST]), next(&across, |step| step.by[SRC]));
        // An axis that continues both tables goes to the source in two cases. First, the source's
        // rows are shorter than a line and the destination's are not. Second, the destination's
        // rows have the wanted length; then rows of the destination are adjacent.
        let short = across.offsets.len() * unit < LINE && along.offsets.len() * unit >= LINE;
        let yields = at_along == at_across && (short || along.offsets.len() >= along.wanted);
        if let Some(at) = at_along.filter(|_| !yields) {
            let step = steps.remove(at);
            along.onward = step.by[DST].checked_mul(step.extent as isize);
            along.take(step, line, DividedSide::Along, outer);
        } else if at_across.is_none() {
            break;
        }
        if let Some(at) = if across.full { None } else { find(steps, across.onward, |step| step.by[SRC]) } {
            let step = steps.remove(at);
            across.onward = step.by[SRC].checked_mul(step.extent as isize);
            across.take(step, line, DividedSide::Across, outer);
        }
    }
    if !transposes {
        // If neither table needs to be contiguous, axes with short steps are taken.
        while !along.full && !steps.is_empty() {
            rows = rows && steps.first().map(|step| step.by[DST]) == along.onward;
            let step = steps.remove(0);
            along.onward = step.by[DST].checked_mul(step.extent as isize);
            along.take(step, 1, DividedSide::Along, outer);
        }
        while !across.full {
            let Some(at) = (0..steps.len()).min_by_key(|at| steps[*at].by[SRC].unsigned_abs()) else { break };
            across.take(steps.remove(at), 1, DividedSide::Across, outer);
        }
    }
    let mut run = unit;
    if unit > RUN {
        // A copy that consists of one run is split into a part for each thread.
        let alone = steps.is_empty() && across.offsets.len() == 1 && along.offsets.len() == 1;
        let threads = options.threads.unwrap_or_else(threads::count).max(1);
        let count = if alone { threads } else { unit.div_ceil(RUN) };
        let chunk = unit.div_ceil(count).next_multiple_of(PAGE);
        let count = unit.div_ceil(chunk);
        let by = chunk as isize;
        outer.push(TileLoop { count, src: by, dst: by, part: DividedSide::Run(unit - (count - 1) * chunk) });
        run = chunk;
    }
    let how = if transposes { Move::Transpose } else { Move::Runs };
    CopyTile { how, unit: run, across: across.offsets, along: along.offsets, rows, ..CopyTile::default() }
}

/// The tile of an axis along which the destination is contiguous and the source is constant.
fn splat_tile(steps: &mut Vec<Step<2>>, unit: usize, outer: &mut Vec<TileLoop>) -> CopyTile {
    let mut along = Side::new(unit, RUN);
    if let Some(at) = steps.iter().position(|step| step.by[DST] == unit as isize && step.by[SRC] == 0) {
        along.take(steps.remove(at), 64 / unit.min(64), DividedSide::Along, outer);
    }
    CopyTile { how: Move::Splat, unit, across: Table::one(), along: along.offsets, rows: true, ..CopyTile::default() }
}
