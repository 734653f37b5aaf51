//! Relayout by tiles in shared memory, for any alignment.
//!
//! Law: every element of a tile is read from the source as part of a word of 4 bytes (or alone, if
//! it is as large), and written to the destination as part of an aligned chunk, of 16 bytes if
//! possible, except at the ends of runs.
//!
//! * **Words.** A run of the source may begin inside a word. The words that cover it are copied to
//!   shared memory unchanged; the position of the run in its first word is computed again when the
//!   run is read back.
//! * **Windows.** A run of the destination may begin anywhere. Each window is shifted by up to a
//!   chunk, so that its chunks are aligned: the tile is a little larger than what a block writes of
//!   it. Elements before the first chunk of a run and after the last one are written one by one, by
//!   the blocks that hold them.
//! * **Iterations.** The runs of a thread have distances such that the words and chunks of all of
//!   them have the same alignment ([`Share`]). So it computes the positions of the elements of a
//!   chunk once, and all others are a constant apart.
//! * **Banks.** Rows of a tile are an odd number of words apart, with one more word after as many
//!   rows as a chunk has elements. Lanes that read chunks side by side, that many rows apart, then
//!   access 32 different banks.

mod banks;
mod cut;
mod rate;
mod read;
#[cfg(test)]
mod tests;
mod write;

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Element, Flag, Fragment, Kernel, KernelError, View};
use tilewright_layout::Layout;
use tilewright_layout::symbolic::Expr;

use super::share::Share;
use super::sum::{Sum, times};
use super::tile::AxisBox;
use super::{Sides, blocks};
use crate::axes::Axis;
use crate::error::PlanError;
use crate::fitted::WINDOWS;
use crate::units::div_up;

/// A tile, and how threads iterate over it.
#[derive(Debug, Clone)]
pub(super) struct WindowsPlan {
    tile: AxisBox,
    threads: i64,
    /// Bytes of a word, elements of the source in a word, elements of the destination in a chunk,
    /// and bytes of a chunk.
    word_bytes: i64,
    word: i64,
    chunk: i64,
    chunk_bytes: i64,
    /// Windows begin at multiples of this number of elements of the destination.
    align: i64,
    /// Whether runs of the source may begin inside a word.
    phased: bool,
    /// Whether runs of the destination may begin inside a chunk.
    skewed: bool,
    /// The extents of the tile as it is read, and its strides in shared memory.
    read: Vec<i64>,
    places: Vec<i64>,
    /// Whether rows along a chunk of the destination are padded by one more word.
    padded: bool,
    /// Words from one row to the next: odd.
    pitch: i64,
    /// After this number of words of a row, one word of shared memory is skipped, so that lanes
    /// along another axis of the row access other banks; 0 if no word is skipped.
    fold: i64,
    /// Elements in front of the tile. A chunk that begins at the end of the first axis is addressed
    /// as one that begins before the next row, and its address must not be before shared memory.
    /// Not 0 if chunks continue after that axis, and the axis is also one of the runs of the
    /// source.
    front: i64,
    /// Words of the tile.
    length: i64,
    /// Lanes that read a run together, and the words that each of them reads.
    lanes: i64,
    words: i64,
    /// The runs of the source, distributed over groups of lanes.
    sources: Share,
    /// Threads that write chunks side by side, the chunks that each of them writes, and the runs of
    /// the destination.
    along: i64,
    steps: i64,
    targets: Share,
    /// Whether the addresses of all iterations of a thread differ by constants.
    alike: bool,
}

impl WindowsPlan {
    /// The best tile for these axes; None if a run of either side is a single element.
    pub(super) fn plan(sides: &Sides) -> Option<WindowsPlan> {
        // Only offsets without a swizzle have runs of memory. The element after the last whole word
        // of the source has a unique coordinate only if no element is repeated.
        let plain = sides.maps.iter().all(Option::is_none);
        let whole = sides.reach.0 % (4 / i64::from(sides.source.bytes())).max(1) == 0;
        if !plain || !whole && sides.axes.iter().any(|axis| axis.source <= 0) {
            return None;
        }
        rate::best(sides)
    }

    fn shared(&self) -> i64 {
        self.length * self.word_bytes
    }

    /// The preferred number of resident blocks on a multiprocessor.
    fn resident(&self, sides: &Sides) -> i64 {
        sides.limits.resident(self.shared(), self.threads, WINDOWS.thread_registers)
    }

    /// Elements of a run of the destination that a block writes.
    fn window(&self) -> i64 {
        self.tile.destination.iter().map(|axis| self.tile.extents[*axis]).product()
    }

    /// The extent along a run of the destination of the chunks that begin in its window.
    fn reach(&self) -> i64 {
        div_up(self.window(), self.chunk) * self.chunk + if self.skewed { self.align - 1 } else { 0 }
    }

    /// The plan, as text.
    pub(super) fn describe(&self, axes: &[Axis]) -> String {
        let length = |list: &[usize]| list.iter().map(|axis| self.tile.extents[*axis]).product::<i64>();
        let (from, to) = (length(&self.tile.source), length(&self.tile.destination));
        let boxes: Vec<String> =
            axes.iter().zip(&self.tile.extents).map(|(axis, part)| format!("{part} of {}", axis.extent)).collect();
        let mut text = format!(
            "tiles of ({}) through shared memory: runs of {from} in the source, of {to} in the destination",
            boxes.join(", ")
        );
        if self.skewed {
            text.push_str(&format!("; runs of the destination are cut at multiples of {} bytes", self.chunk_bytes));
        }
        text
    }
}

/// The state that all statements of the kernel share.
struct Writer<'k, 'a> {
    k: &'k Build,
    sides: &'a Sides,
    plan: &'a WindowsPlan,
    /// The index of the tile along each axis, and its origin.
    numbers: Vec<Expr>,
    starts: Vec<Expr>,
    thread: Expr,
    /// The tile, as words and as elements.
    words: View<'k>,
    elements: View<'k>,
}

#[track_caller]
fn load<'k>(k: &'k Build, view: &View<'k>, condition: Option<Flag<'k>>) -> Result<Fragment<'k>, KernelError> {
    view.load_where(condition.unwrap_or_else(|| k.flag(true)))
}

#[track_caller]
fn store<'k>(
    k: &'k Build,
    view: &View<'k>,
    condition: Option<Flag<'k>>,
    values: &Fragment<'k>,
) -> Result<(), KernelError> {
    view.store_where(condition.unwrap_or_else(|| k.flag(true)), values)
}

/// The kernel.
pub(super) fn kernel(sides: &Sides, plan: &WindowsPlan) -> Result<Kernel, PlanError> {
    let counts = plan.tile.counts(&sides.axes);
    let total = blocks(counts.iter().try_fold(1_i64, |total, count| total.checked_mul(*count)).unwrap_or(i64::MAX))?;
    let modes = |step: fn(&Axis) -> i64| -> Vec<(i64, i64)> {
        sides.axes.iter().map(|axis| (axis.extent, step(axis))).collect()
    };
    Ok(Kernel::build("relayout_windows", |k| {
        k.threads(plan.threads)?;
        k.resident(plan.resident(sides) as u32)?;
        k.grid(operation::Axis::X, total)?;
        let source = k.tensor_of(sides.source, "source", sides.declared(0, &modes(|axis| axis.source)), Role::Input)?;
        let destination = k.tensor_of(
            sides.destination,
            "destination",
            sides.declared(1, &modes(|axis| axis.destination)),
            Role::Output,
        )?;
        let source = source.recast(sides.source, Layout::strided(sides.reach.0, 1))?;
        let destination = destination.recast(sides.destination, Layout::strided(sides.reach.1, 1))?;
        let word = if plan.word_bytes == 8 { Element::U64 } else { Element::U32 };
        let count = plan.length;
        let words = k.shared_of(word, Layout::strided(count, 1))?;
        let elements = words.recast(sides.source, Layout::strided(count * plan.word, 1))?;
        // Axes are in the order of the destination, and so are blocks.
        let block = k.block_number(operation::Axis::X);
        let numbers = k.coordinate(&block, &counts)?;
        let starts: Result<Vec<Expr>, KernelError> =
            numbers.iter().zip(&plan.tile.extents).map(|(digit, extent)| times(digit, *extent)).collect();
        let writer = Writer { k, sides, plan, numbers, starts: starts?, thread: k.thread()?, words, elements };
        writer.read(&source, word)?;
        k.barrier();
        writer.write(&destination)?;
        writer.write_ends(&destination)
    })?)
}

impl Writer<'_, '_> {
    /// The offset of the origin of the tile.
    fn origin(&self, step: impl Fn(&Axis) -> i64, base: i64) -> Sum {
        let each = self.numbers.iter().zip(&self.plan.tile.extents).zip(&self.sides.axes);
        let terms = each.map(|((number, extent), axis)| (number.clone(), extent * step(axis)));
        Sum { base, terms: terms.filter(|(number, _)| *number != Expr::from(0)).collect() }
    }
}
