//! The loops around the micro-kernels.
//!
//! **Law.** `C(i,j) = alpha * sum over k of A(i,k) * B(j,k) + beta * C(i,j)`. The tasks of a product write disjoint parts of C; within a task K
//! is divided last, so that the first part of a sum is added to `beta * C` and the others to what is there.
//!
//! An operand that the micro-kernel can read where it lies is not packed if it is read only a few times.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::blocking::{Blocking, balanced, fetches_blocks, shared_blocks, tile};
use super::element::Element;
use super::kernel::Kernels;
use super::line::Line;
use super::pack::Pack;
use super::shared::Shared;
use super::source::Source;
use super::tasks::tasks;
use super::tile::{Ahead, Slices, TileProduct};
use super::workspace::{LINE, Room, Workspace};

/// Where the elements of a matrix lie.
pub enum Places<'a> {
    /// At the sum of the offsets of the row and of the column.
    Lines(Line, Line),
    /// Where a function of row and column says.
    Each(&'a (dyn Fn(usize, usize) -> isize + Sync)),
}

/// A factor, rows along M or N, columns along K.
pub struct Factor<'a, S> {
    /// What offset 0 means. *Invariant*: every offset of the places leads to a number that may be read, from any thread.
    pub from: *const S,
    pub places: Places<'a>,
}

/// The matrix that is written.
pub struct Target<'a, C> {
    /// What offset 0 means. *Invariant*: every offset of the places leads to an element that nobody else uses, and different places to
    /// different elements.
    pub to: *mut C,
    pub places: Places<'a>,
}

/// A product that is ready to be computed.
pub struct Product<'a, S, W: 'static, C: 'static> {
    /// M, N and K.
    pub extents: [usize; 3],
    pub alpha: C,
    pub beta: C,
    pub a: Factor<'a, S>,
    pub b: Factor<'a, S>,
    pub c: Target<'a, C>,
    pub kernels: &'static Kernels<W, C>,
    pub pack_a: Pack<S, W>,
    pub pack_b: Pack<S, W>,
    /// Whether words are numbers as they are, so that micro-kernels can read operands where they lie.
    pub same: bool,
}

// SAFETY: tasks read the factors, and write disjoint parts of the target, which by its invariant nobody else uses.
unsafe impl<S, W, C> Sync for Product<'_, S, W, C> {}

/// The most multiplications of a product that is computed without packing, if that is possible.
const SMALL: usize = 1 << 23;
/// The same where there are several threads, which would share more.
const SHARED: usize = 1 << 20;

/// How often B is read where it lies in such a product, at the most, in slices of A, unless the product is so small that threads would not share it.
const SMALL_PASSES: usize = 10;

/// How a product is divided.
pub struct Plan {
    pub blocking: Blocking,
    /// The rows and columns of a task.
    pub task: [usize; 2],
    /// The strides along the rows and along K of a factor that is read where it lies.
    pub a: Option<[isize; 2]>,
    pub b: Option<[isize; 2]>,
    /// Whether each packed slice of B takes the place of the one before.
    alone: bool,
    /// Where the panel of B, the block of A, gathered numbers and offsets begin in the workspace of a thread.
    parts: [usize; 4],
    /// The number of offsets.
    offsets: usize,
    /// The bytes of the workspace of a thread.
    pub bytes: usize,
    /// Where the threads share the packed blocks of A: how many there are, at all depths, and the bytes of each.
    pub shared: Option<[usize; 2]>,
    /// The numbers in a word, and the rows of words below a packed slice of B.
    pub group: usize,
    pub extra: usize,
}

/// The bytes after which the places of a first-level cache repeat.
const PAGE: usize = 4096;

/// The most lines of a slice that may take the same place of a first-level cache. More of them than fit there: some are pushed out, but they are read one after another, and
/// the second cache has them.
const WAYS: usize = 40;

/// How often a factor is read where it lies, at the most, in slices.
const READ_IN_PLACE: usize = 20;

impl<S: Copy + Default, W: Copy, C: Element> Product<'_, S, W, C> {
    /// Computes the product with so many threads at the most.
    pub fn run(&self, threads: usize) {
        if self.small(if threads > 1 { SHARED } else { SMALL }) {
            return;
        }
        let [m, n, _] = self.extents;
        let plan = self.plan(threads);
        let [rows, columns] = plan.task;
        let across = m.div_ceil(rows);
        let tasks = across * n.div_ceil(columns);
        let shared = plan.shared.map(|[blocks, bytes]| Shared::new(blocks, bytes));
        let task = |number: usize| {
            let (i, j) = (number % across * rows, number / across * columns);
            let share = shared.as_ref().map(|blocks| Share { blocks, task: number, tasks });
            self.task(&plan, i..(i + rows).min(m), j..(j + columns).min(n), share);
        };
        if tasks == 1 || threads == 1 {
            return (0..tasks).for_each(task);
        }
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= tasks {
                    break;
                }
                task(number);
            }
        };
        // This thread works too, so that only the others need to be woken.
        rayon::in_place_scope(|scope| {
            for _ in 1..threads.min(tasks) {
                scope.spawn(|_| work());
            }
            work();
        });
        if let Some(shared) = shared {
            shared.keep();
        }
    }

    /// How the product is divided, for so many threads at the most.
    pub fn plan(&self, threads: usize) -> Plan {
        let blocking = Blocking::new(self.kernels, self.extents);
        let [m, n, k] = self.extents;
        let packed = m.saturating_mul(k.div_ceil(self.kernels.group)).saturating_mul(size_of::<W>());
        let shares = packed <= shared_blocks(threads) && matches!(self.a.places, Places::Lines(..));
        let [rows, columns] = tasks(self.extents, &blocking, threads, shares);
        let Blocking { mr, nr, mc, nc, kc } = blocking;
        // In place where a word is a number, there is one stride each way, and few slices of the other factor pass.
        let depth = kc.min(self.extents[2]);
        let a = self.in_place(&self.a.places, [mr, depth], columns.div_ceil(nr)).filter(|[row, _]| *row == 1);
        let b = self.in_place(&self.b.places, [nr, depth], rows.div_ceil(mr));
        let tasks = n.div_ceil(columns);
        let shares = shares && a.is_none() && rows == m && tasks > 1;
        // Blocks that are shared are as many as there are tasks at least, so that each can begin with one of its own.
        let mc = if shares { mc.min(balanced(m, m.div_ceil(tasks), mr)) } else { mc };
        let blocking =
            Blocking { mc: mc.min(rows.next_multiple_of(mr)), nc: nc.min(columns.next_multiple_of(nr)), ..blocking };
        let Blocking { mc, nc, .. } = blocking;
        let words = depth.div_ceil(self.kernels.group);
        let gathers = [&self.a.places, &self.b.places].iter().any(|places| matches!(places, Places::Each(_)));
        let mut room = Room::default();
        let alone = rows <= mc;
        let held = if alone { nr } else { nc };
        let b_at = room.of::<W>(if b.is_some() { 0 } else { held * (words + self.kernels.extra) });
        let a_at = room.of::<W>(if a.is_some() || shares { 0 } else { mc * words });
        let gathered_at = room.of::<S>(if gathers { mr.max(nr) * depth } else { 0 });
        let offsets = mc + nc + nr + 2 * depth;
        let offsets_at = room.of::<isize>(offsets);
        let parts = [b_at, a_at, gathered_at, offsets_at];
        Plan {
            blocking,
            task: [rows, columns],
            a,
            b,
            alone,
            parts,
            offsets,
            bytes: room.bytes,
            shared: shares
                .then(|| [m.div_ceil(mc) * k.div_ceil(kc), (mc * words * size_of::<W>()).next_multiple_of(LINE)]),
            group: self.kernels.group,
            extra: self.kernels.extra,
        }
    }

    /// Computes a product of at most so many multiplications, which is over before packing would pay, if all three matrices can be used where they lie.
    #[inline]
    fn small(&self, most: usize) -> bool {
        let [m, n, k] = self.extents;
        let work = m.saturating_mul(n).saturating_mul(k);
        let passes = m.div_ceil(self.kernels.lanes * self.kernels.packed.len());
        if !self.same || work > most || work > SHARED && passes > SMALL_PASSES {
            return false;
        }
        let (Places::Lines(a_rows, a_steps), Places::Lines(b_rows, b_steps), Places::Lines(down, across)) =
            (&self.a.places, &self.b.places, &self.c.places)
        else {
            return false;
        };
        let (Some(1), Some(a_step), Some(b_row), Some(b_step), Some(1), Some(stride)) = (
            a_rows.stride(1),
            a_steps.stride(0),
            b_rows.stride(1),
            b_steps.stride(0),
            down.stride(1),
            across.stride(0),
        ) else {
            return false;
        };
        let lanes = self.kernels.lanes;
        let [vectors, nr] = tile(self.kernels, m.div_ceil(lanes), n, k);
        let mr = lanes * vectors;
        let a = Slices { from: self.a.from.cast(), slice: mr as isize, step: a_step, row: 1 };
        let b = Slices { from: self.b.from.cast(), slice: b_row * nr as isize, step: b_step, row: b_row };
        let shape = Shape { tile: [mr, nr], extents: [m, n], words: k, edge: true };
        self.tiles(
            shape,
            [a, b],
            Ahead::NOTHING,
            |_| Ahead::NOTHING,
            |i, j, tile| {
                let to = self.c.to.wrapping_offset(i as isize + stride * j as isize);
                // SAFETY: the tile is one of C, and its slices lie in the factors.
                unsafe { tile.write(to, stride, self.alpha, self.beta) }
            },
        );
        true
    }

    /// A part of C, on one thread.
    ///
    /// A slice of B is packed just before the first block of A meets it, so that it is still in the first cache then; if there is no other block, the
    /// next slice takes its place. Blocks of A that are shared are taken in turn from another one on in each task, so that the threads do not want the same at once.
    fn task(&self, plan: &Plan, rows: Range<usize>, columns: Range<usize>, share: Option<Share<'_>>) {
        let Blocking { mr, nr, mc, nc, kc } = plan.blocking;
        let direct = match &self.c.places {
            Places::Lines(down, across) => (down.stride(1) == Some(1)).then(|| across.stride(0)).flatten(),
            Places::Each(_) => None,
        };
        let workspace = Workspace::take(plan.bytes);
        let [b_at, a_at, gathered_at, offsets_at] = plan.parts.map(|at| workspace.start().wrapping_add(at));
        let source = Source {
            factor: &self.a,
            kernels: self.kernels,
            strides: plan.a,
            width: mr,
            extra: 0,
            alone: false,
            pack: self.pack_a,
            to: a_at.cast::<W>(),
            scratch: gathered_at.cast::<S>(),
        };
        let (a_source, b_source) = (
            source,
            Source {
                factor: &self.b,
                strides: plan.b,
                width: nr,
                extra: self.kernels.extra,
                alone: plan.alone,
                pack: self.pack_b,
                to: b_at.cast::<W>(),
                ..source
            },
        );
        // SAFETY: the plan has room for so many offsets, which are initialised here.
        let offsets = unsafe {
            offsets_at.cast::<isize>().write_bytes(0, plan.offsets);
            std::slice::from_raw_parts_mut(offsets_at.cast::<isize>(), plan.offsets)
        };
        let (down, offsets) = offsets.split_at_mut(mc);
        let (across, offsets) = offsets.split_at_mut(nc);
        let (slice, offsets) = offsets.split_at_mut(nr);
        let (a_steps, b_steps) = offsets.split_at_mut(offsets.len() / 2);

        let blocks = rows.len().div_ceil(mc);
        let begin = share.as_ref().map_or(0, |share| share.task * blocks / share.tasks);
        let block = |turn: usize| {
            let first = rows.start + (begin + turn) % blocks * mc;
            first..(first + mc).min(rows.end)
        };

        for columns in parts(columns, nc) {
            if let (Places::Lines(_, line), None, Some(across)) =
                (&self.c.places, direct, across.get_mut(..columns.len()))
            {
                line.fill(columns.start, across);
            }
            for (level, depth) in parts(0..self.extents[2], kc).enumerate() {
                let beta = if depth.start == 0 { self.beta } else { C::ONE };
                let words = depth.len().div_ceil(self.kernels.group);
                let (Some(a_steps), Some(b_steps)) = (a_steps.get_mut(..depth.len()), b_steps.get_mut(..depth.len()))
                else {
                    continue;
                };
                a_source.steps(&depth, a_steps);
                b_source.steps(&depth, b_steps);
                let b = b_source.slices(columns.start, &depth);
                for turn in 0..blocks {
                    let part = block(turn);
                    let mut a_source = a_source;
                    // SAFETY: there is room for `mc` by `kc`, here as there.
                    let mut fill = |source: &Source<'_, S, W, C>| unsafe {
                        source.fill(0, part.clone(), &depth, down, a_steps);
                    };
                    if let Some(share) = &share {
                        let packed = share.blocks.get(level * blocks + part.start / mc, |to| {
                            fill(&Source { to: to.cast::<W>(), ..a_source });
                        });
                        let Some(packed) = packed else { continue };
                        a_source.to = packed.cast::<W>();
                    } else {
                        fill(&a_source);
                    }
                    if let (Places::Lines(line, _), None, Some(down)) =
                        (&self.c.places, direct, down.get_mut(..part.len()))
                    {
                        line.fill(part.start, down);
                    }
                    let shape =
                        Shape { tile: [mr, nr], extents: [part.len(), columns.len()], words, edge: plan.a.is_some() };
                    let ready = |j: usize| {
                        let first = columns.start + j;
                        if turn == 0 {
                            let some = first..(first + nr).min(columns.end);
                            // SAFETY: there is room for `nc` by `kc`, or for one slice.
                            unsafe { b_source.fill(j / nr, some, &depth, slice, b_steps) };
                        }
                        if turn == 0 || plan.b.is_some() {
                            let next = first + nr..(first + 2 * nr).min(columns.end.max(first + nr));
                            b_source.rows_ahead(&next, &depth).share(0, 1, nr)
                        } else {
                            Ahead::NOTHING
                        }
                    };
                    // The block that comes next is brought near while this one is multiplied, where it is to be packed: below this one, or the first at the next depth.
                    let (following, deeper, level) = if turn + 1 < blocks {
                        (block(turn + 1), depth.clone(), level)
                    } else {
                        (block(0), depth.end..(depth.end + kc).min(self.extents[2]), level + 1)
                    };
                    let there = |share: &Share<'_>| share.blocks.asked_for(level * blocks + following.start / mc);
                    let fetches =
                        plan.a.is_none() && fetches_blocks(self.extents[1]) && !share.as_ref().is_some_and(there);
                    let upcoming = if fetches { a_source.ahead(&following, &deeper) } else { Ahead::NOTHING };
                    let slices = [a_source.slices(part.start, &depth), b];
                    self.tiles(shape, slices, upcoming, ready, |i, j, tile| {
                        match (&self.c.places, direct) {
                            (_, Some(stride)) => {
                                let offset = (part.start + i) as isize + stride * (columns.start + j) as isize;
                                // SAFETY: the tile is one of C, and its slices were packed or lie in the factors.
                                unsafe { tile.write(self.c.to.wrapping_offset(offset), stride, self.alpha, beta) }
                            }
                            (Places::Lines(..), None) => {
                                let (Some(down), Some(across)) =
                                    (down.get(i..i + tile.rows), across.get(j..j + tile.columns))
                                else {
                                    return;
                                };
                                // SAFETY: as above.
                                unsafe { tile.write_along(self.c.to, down, across, self.alpha, beta) }
                            }
                            (Places::Each(at), None) => {
                                let place = |r: usize, c: usize| at(part.start + i + r, columns.start + j + c);
                                // SAFETY: as above.
                                unsafe { tile.scatter(self.c.to, place, self.alpha, beta) }
                            }
                        }
                    });
                }
            }
        }
        workspace.keep();
    }

    /// The strides along the rows and along K of a factor that is read where it lies: there is one each way, not many slices of the other factor pass, and
    /// a slice of these rows and steps stays in the first cache meanwhile.
    fn in_place(&self, places: &Places<'_>, slice: [usize; 2], passes: usize) -> Option<[isize; 2]> {
        match places {
            Places::Lines(rows, steps) if self.same && passes <= READ_IN_PLACE => {
                let strides = [rows.stride(1)?, steps.stride(0)?];
                (ways(slice, strides, size_of::<S>()) <= WAYS).then_some(strides)
            }
            _ => None,
        }
    }

    /// Gives each tile of a part of C to `write`, with its first row and column; `ready` is told of the first column of a slice of B before the slice is read
    /// for the first time, and says what is to be fetched meanwhile. Where that is nothing, what is `upcoming` is.
    #[inline]
    fn tiles(
        &self,
        shape: Shape,
        [a, b]: [Slices<W>; 2],
        upcoming: Ahead,
        mut ready: impl FnMut(usize) -> Ahead,
        mut write: impl FnMut(usize, usize, &TileProduct<W, C>),
    ) {
        let kernels = self.kernels;
        let lanes = kernels.lanes;
        let Shape { tile: [mr, nr], extents: [rows, columns], words, edge } = shape;
        let (total, mut count) = (rows.div_ceil(mr) * columns.div_ceil(nr), 0);
        let mut one = |i: usize, j: usize, a_from: *const W, b_from: *const W, ahead: Ahead| {
            let ahead = if ahead.lines == 0 { upcoming.share(count, total, nr) } else { ahead };
            count += 1;
            let (rows, columns) = (mr.min(rows - i), nr.min(columns - j));
            let table = if edge && rows & (lanes - 1) != 0 {
                kernels.edge
            } else if b.row == 1 {
                kernels.packed
            } else {
                kernels.strided
            };
            let run = table.get((rows - 1) / lanes).and_then(|table| table.get(columns - 1));
            debug_assert!(run.is_some(), "the invariant of the kernels");
            if let Some(run) = run {
                let (a, b) = (Slices { from: a_from, ..a }, Slices { from: b_from, ..b });
                write(i, j, &TileProduct { run: *run, a, b, rows, columns, words, ahead });
            }
        };
        let mut b_from = b.from;
        for j in (0..columns).step_by(nr) {
            let ahead = ready(j);
            let mut a_from = a.from;
            for i in (0..rows).step_by(mr) {
                one(i, j, a_from, b_from, ahead.part(i / mr, rows.div_ceil(mr)));
                a_from = a_from.wrapping_offset(a.slice);
            }
            b_from = b_from.wrapping_offset(b.slice);
        }
    }
}

/// What a task shares with others.
struct Share<'a> {
    /// The blocks of A, one depth after another.
    blocks: &'a Shared,
    /// The number of this task, and of all.
    task: usize,
    tasks: usize,
}

/// A part of C, and how it is divided into tiles.
struct Shape {
    /// The rows and columns of a tile, and of all tiles together.
    tile: [usize; 2],
    extents: [usize; 2],
    /// The steps of each tile, in words.
    words: usize,
    /// Whether A is read no further than its rows.
    edge: bool,
}

/// How many lines of a slice of these rows and steps take the same place of the first cache, where it is most crowded.
///
/// Lines a page apart take the same place. The slice is a number of runs, each of several lines side by side.
fn ways([rows, steps]: [usize; 2], [row, step]: [isize; 2], bytes: usize) -> usize {
    let stride = |stride: isize| stride.unsigned_abs().saturating_mul(bytes);
    let (run, runs, apart) = if row.unsigned_abs() <= step.unsigned_abs() {
        (stride(row).saturating_mul(rows), steps, stride(step))
    } else {
        (stride(step).saturating_mul(steps), rows, stride(row))
    };
    let lines = run.div_ceil(LINE).clamp(1, PAGE / LINE);
    let runs = if apart == 0 { 1 } else { runs };
    // The runs begin at so many places.
    let places = PAGE >> apart.trailing_zeros().min(PAGE.trailing_zeros());
    let reached = (places.min(runs).saturating_mul(lines)).min(PAGE / LINE);
    runs.saturating_mul(lines).div_ceil(reached.max(1))
}

/// Parts of a range, all but the last of one length.
fn parts(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length.max(1)).map(move |first| first..(first + length).min(end))
}
