//! Tiles through shared memory, whatever the layouts are aligned to.
//!
//! Law: every element of a tile is read from the source as part of a word of 4 bytes (or alone,
//! where it is as large), and written to the destination as part of a chunk that is aligned, of 16
//! bytes wherever that can be, but for the ends of runs.
//!
//! * **Words.** A run of the source may begin inside a word. The words that cover it go to shared
//!   memory as they are; which element of its first word a run begins with is computed again where
//!   the run is read back.
//! * **Windows.** A run of the destination may begin anywhere. Each is shifted by up to a chunk, so
//!   that its chunks are aligned: the tile is a little larger than what a block writes of it. What
//!   lies before the first chunk of a run and behind the last is written element by element, by the
//!   blocks that have it.
//! * **Iterations.** A thread has runs that lie so far apart that the words and chunks of all of
//!   them begin alike ([`Share`]). So it finds once where the elements of a chunk are, and all
//!   others are a constant further.
//! * **Banks.** Rows of a tile begin an odd number of words apart, and one more behind as many rows
//!   as a chunk has elements. Lanes that read chunks side by side, so many rows apart, then meet 32
//!   banks.

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
use tilewright_layout::symbolic::Expr;

use super::share::Share;
use super::sum::{Sum, times};
use super::tile::Tile;
use super::{Sides, blocks};
use crate::axes::Axis;
use crate::error::PlanError;
use crate::fitted::WINDOWS;
use crate::units::div_up;

/// A tile, and how threads go through it.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    tile: Tile,
    threads: i64,
    /// Bytes of a word, elements of the source in it, elements of the destination in a chunk, and
    /// bytes of that.
    word_bytes: i64,
    word: i64,
    chunk: i64,
    chunk_bytes: i64,
    /// Elements of the destination of which each window begins at a multiple.
    align: i64,
    /// Whether runs of the source may begin inside a word.
    phased: bool,
    /// Whether runs of the destination may begin inside a chunk.
    skewed: bool,
    /// How far the tile goes along each axis as it is read, and from one element to the next in
    /// shared memory.
    read: Vec<i64>,
    places: Vec<i64>,
    /// Whether those of the rows of a run of the destination that a chunk goes through have a word
    /// more behind them.
    padded: bool,
    /// Words from one row to the next: odd.
    pitch: i64,
    /// Behind so many words of a row one is left out, so that lanes along another axis of the row
    /// meet other banks; 0 for none.
    fold: i64,
    /// Elements in front of the tile, so that the place of a chunk that begins at the end of the
    /// first axis, taken as one that begins before the next row, is none before shared memory. Not
    /// 0 where chunks go on behind that axis, and it is an axis of the runs of the source too.
    front: i64,
    /// Words of the tile.
    length: i64,
    /// Lanes that read a run together, and how many words each of them reads.
    lanes: i64,
    words: i64,
    /// Runs of the source, by the groups of lanes that read them.
    sources: Share,
    /// Threads that write chunks side by side, how many each of them writes, and the runs of the
    /// destination.
    along: i64,
    steps: i64,
    targets: Share,
    /// Whether what a thread writes in its iterations is a constant further each time.
    alike: bool,
}

impl Windows {
    /// The best tile for these axes; none where a run of either side is a single element.
    pub(super) fn plan(sides: &Sides) -> Option<Windows> {
        // Runs of memory are what offsets without a swizzle have. The element behind the last whole
        // word of the source has one coordinate only if no element is repeated.
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

    /// How many elements a thread writes one after the other without a loop.
    fn unrolled(&self) -> i64 {
        let all = self.steps * self.targets.count() * self.chunk;
        if all <= WINDOWS.unrolled { all } else { self.targets.unrolled() * self.chunk }
    }

    /// Blocks that a multiprocessor should hold at once.
    fn resident(&self, sides: &Sides) -> i64 {
        sides.limits.resident(self.shared(), self.threads, WINDOWS.thread_registers)
    }

    /// How many elements of a run of the destination a block writes.
    fn window(&self) -> i64 {
        self.tile.destination.iter().map(|axis| self.tile.extents[*axis]).product()
    }

    /// How far along a run of the destination the chunks go that begin in its window.
    fn reach(&self) -> i64 {
        div_up(self.window(), self.chunk) * self.chunk + if self.skewed { self.align - 1 } else { 0 }
    }

    /// What is chosen, in words.
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

/// What all statements of the kernel share.
struct Writer<'k, 'a> {
    k: &'k Build,
    sides: &'a Sides,
    plan: &'a Windows,
    /// The number of the tile along each axis, and where it begins.
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
pub(super) fn kernel(sides: &Sides, plan: &Windows) -> Result<Kernel, PlanError> {
    let counts = plan.tile.counts(&sides.axes);
    let total = blocks(counts.iter().try_fold(1_i64, |total, count| total.checked_mul(*count)).unwrap_or(i64::MAX))?;
    let modes = |step: fn(&Axis) -> i64| -> Vec<(i64, i64)> {
        sides.axes.iter().map(|axis| (axis.extent, step(axis))).collect()
    };
    Ok(Kernel::build("relayout_windows", |k| {
        k.threads(plan.threads)?;
        k.resident(plan.resident(sides) as u32)?;
        k.grid(operation::Axis::X, &total.to_string())?;
        let source = k.tensor_of(sides.source, "source", &sides.text(0, &modes(|axis| axis.source)), Role::Input)?;
        let destination = k.tensor_of(
            sides.destination,
            "destination",
            &sides.text(1, &modes(|axis| axis.destination)),
            Role::Output,
        )?;
        let source = source.recast(sides.source, &format!("{}:1", sides.reach.0))?;
        let destination = destination.recast(sides.destination, &format!("{}:1", sides.reach.1))?;
        let word = if plan.word_bytes == 8 { Element::U64 } else { Element::U32 };
        let count = plan.length;
        let words = k.shared_of(word, &format!("{count}:1"))?;
        let elements = words.recast(sides.source, &format!("{}:1", count * plan.word))?;
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
    /// The sum of where the tile begins.
    fn origin(&self, step: impl Fn(&Axis) -> i64, base: i64) -> Sum {
        let each = self.numbers.iter().zip(&self.plan.tile.extents).zip(&self.sides.axes);
        let terms = each.map(|((number, extent), axis)| (number.clone(), extent * step(axis)));
        Sum { base, terms: terms.filter(|(number, _)| *number != Expr::from(0)).collect() }
    }
}
