//! Tiles through shared memory, whatever the layouts are aligned to.
//!
//! Law: every element of a tile is read from the source as part of a word of 4 bytes (or alone,
//! where it is as large), and written to the destination as part of 16 bytes that begin at a
//! multiple of 16, but for the ends of runs.
//!
//! * **Words.** A run of the source may begin inside a word. Lanes read the words that cover it,
//!   take the word that begins where the run does out of their own and that of the next lane, and
//!   leave runs in shared memory that all begin at a word. Where each run begins as much further
//!   inside a word as the one before, words are left as they are instead.
//! * **Windows.** A run of the destination may begin anywhere. Each is shifted by up to a chunk of
//!   16 bytes, so that its chunks are aligned: the tile is a little larger than what a block writes
//!   of it. What lies before the first chunk of a run and behind the last is written element by
//!   element, by the blocks that have it.
//! * **Banks.** Rows of a tile begin an odd number of words apart, and one more behind as many rows
//!   as a chunk has elements. Lanes that read chunks side by side, so many rows apart, then meet 32
//!   banks.

mod read;
mod write;

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Element, Flag, Fragment, Kernel, KernelError, View};
use tilewright_layout::symbolic::Expr;

use super::sum::{Sum, times};
use super::tile::{Tile, up};
use super::{Sides, blocks};
use crate::axes::Axis;
use crate::error::PlanError;

/// The most shared memory of a tile, in bytes: two of them in a processor.
const MOST_SHARED: i64 = 112_000;
/// Shared memory of as many blocks as should be in a processor: fewer of them have more registers,
/// and more words under way.
const RESIDENT: i64 = 228 * 1024;
/// The most words that a lane reads of a part of a run.
const WORDS: i64 = 4;
/// Tiles of more bytes than the first take the second number, of which a processor has two: three
/// blocks at once were slower on an H200.
const LARGE: i64 = 60_000;
const THIRD: i64 = 78_000;
/// How many words each of 512 threads has under way.
const UNDER_WAY: i64 = 16;
/// How many elements a thread writes before it goes on to the next turn of a loop.
const UNROLLED: i64 = 256;

/// A tile, and how threads go through it.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    tile: Tile,
    threads: i64,
    /// Bytes of a word, elements of the source in it, and of the destination in a chunk.
    word_bytes: i64,
    word: i64,
    chunk: i64,
    /// Whether runs of the source may begin inside a word.
    phased: bool,
    /// How much further inside a word each run begins than the one before, where that is the same
    /// for all: then words are left as they are, and elements are found where they are in them.
    kept: Option<i64>,
    /// Whether runs of the destination may begin inside a chunk.
    skewed: bool,
    /// How far the tile goes along each axis as it is read, and from one element to the next in
    /// shared memory.
    read: Vec<i64>,
    places: Vec<i64>,
    /// Whether a run of the destination goes through rows first, and those of a chunk have a word
    /// more behind them; whether it goes through rows alone.
    padded: bool,
    turned: bool,
    /// Lanes that read a part of a run together, how many words each of them reads, and how many
    /// parts a run has.
    lanes: i64,
    words: i64,
    parts: i64,
    /// Turns in which all runs are read, and how many parts of runs some lanes read in a turn.
    turns: i64,
    each: i64,
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
        let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
        // Elements of a run of the source: whole words of 32 lanes, with the word in which it begins.
        let widest = match bytes {
            1 => 124,
            2 => 126,
            4 => 128,
            _ => 64,
        };
        let mut wanted = (widest, 512 / target);
        loop {
            let windows = Windows::new(sides, wanted)?;
            let count: i64 = windows.tile.counts(&sides.axes).iter().fold(1, |count: i64, n| count.saturating_mul(*n));
            let (long, large) = (wanted.0 * bytes, wanted.1 * target);
            let few = count < sides.blocks && long.max(large) > 128;
            if windows.shared() <= MOST_SHARED && !few || long.max(large) <= 32 {
                return Some(windows).filter(|windows| windows.shared() <= MOST_SHARED);
            }
            if long > large { wanted.0 /= 2 } else { wanted.1 /= 2 }
        }
    }

    fn new(sides: &Sides, wanted: (i64, i64)) -> Option<Windows> {
        let axes = &sides.axes;
        let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
        let word = (4 / bytes).max(1);
        // Chunks as wide as begin and end with the first axis, but for such of less than a word.
        let tile = Tile::new(axes, wanted, 16 / target);
        let first = *tile.destination.first()?;
        let fits = |chunk: &i64| {
            let others = axes.iter().enumerate().filter(|(axis, _)| *axis != first);
            let strides = others.map(|(_, axis)| axis.destination).chain([sides.bases.1, axes[first].extent]);
            let turned = tile.destination.iter().all(|axis| !tile.source.contains(axis));
            !turned && chunk * target >= 4 && strides.into_iter().all(|stride| stride % chunk == 0)
        };
        let chunk = [16 / target, 8 / target, 4 / target].into_iter().find(fits).unwrap_or(16 / target);
        let tile = if chunk * target < 16 { Tile::new(axes, wanted, chunk) } else { tile };
        let (Some(last), Some(_)) = (tile.destination.last().copied(), tile.source.last()) else { return None };
        let begins =
            |axis: &usize, inside: &[usize]| !inside.contains(axis) || tile.extents[*axis] < axes[*axis].extent;
        let step = |axis: usize| if tile.extents[axis] > 1 { tile.extents[axis] } else { 1 };
        let phased = sides.bases.0 % word != 0
            || (0..axes.len()).any(|axis| {
                let stride = axes[axis].source;
                begins(&axis, &tile.source)
                    && if tile.source.contains(&axis) { stride * step(axis) % word != 0 } else { stride % word != 0 }
            });
        let skewed = sides.bases.1 % chunk != 0
            || (0..axes.len()).any(|axis| !tile.destination.contains(&axis) && axes[axis].destination % chunk != 0);
        let mut read = tile.extents.clone();
        let unit = axes[last].destination;
        if skewed && tile.extents[last] < axes[last].extent {
            read[last] += (chunk - 1 + unit - 1) / unit;
        }
        let run: i64 = tile.source.iter().map(|axis| read[*axis]).product();
        let count = (run + if phased { word - 1 } else { 0 } + word - 1) / word;
        let lanes = (count as u64).next_power_of_two().min(32) as i64;
        let parts = up(count, lanes * WORDS);
        let words = up(count, lanes * parts);
        let apart = tile.destination.iter().all(|axis| !tile.source.contains(axis));
        let padded = tile.beside.is_empty() && !tile.source.contains(&first);
        let turned = apart && tile.beside.is_empty();
        let mut further = axes[first].source.rem_euclid(word);
        let even = tile.destination.iter().all(|axis| {
            let same = axes[*axis].source.rem_euclid(word) == further;
            further = further * read[*axis] % word;
            same
        });
        let kept = (phased && turned && even && chunk % word == 0).then(|| axes[first].source.rem_euclid(word));
        let shifts = phased && kept.is_none();
        let rows: i64 = tile.rows().iter().map(|axis| read[*axis]).product();
        // Words that are shifted wait in registers, of which fewer threads have more.
        let mut threads = if shifts { 256 } else { 512 };
        while threads > 128 && rows * parts * lanes < 4 * threads {
            threads /= 2;
        }
        let passes = up(rows * parts, threads / lanes);
        // Asynchronous copies need no registers; a turn is as long as is unrolled.
        let under_way = if shifts { 512 * UNDER_WAY / threads } else { UNDER_WAY };
        let turns = up(passes * words, under_way.min(2 * UNDER_WAY)).min(passes);
        let each = up(passes, turns);
        let mut places = vec![0; axes.len()];
        let mut along = 1;
        for axis in &tile.source {
            places[*axis] = along;
            along *= read[*axis];
        }
        let mut row = ((lanes * words * parts) | 1) * word;
        for axis in tile.rows() {
            places[axis] = row;
            row *= read[axis];
        }
        Some(Windows {
            places,
            padded,
            turned,
            tile,
            threads,
            word_bytes: bytes.max(4),
            word,
            chunk,
            phased,
            kept,
            skewed,
            read,
            lanes,
            words,
            parts,
            turns,
            each,
        })
    }

    /// Whether words are shifted to where a row begins.
    fn shifts(&self) -> bool {
        self.phased && self.kept.is_none()
    }

    /// Words from one row of the tile to the next: odd.
    fn pitch(&self) -> i64 {
        (self.lanes * self.words * self.parts) | 1
    }

    /// Words of the tile.
    fn length(&self) -> i64 {
        let words = self.runs() * self.pitch() + if self.padded { up(self.runs(), self.chunk) } else { 0 };
        if words * self.word_bytes > LARGE { words.max(THIRD / self.word_bytes) } else { words }
    }

    /// Runs of the source that are read, those that are left out counted in.
    fn runs(&self) -> i64 {
        up(self.turns * self.each * (self.threads / self.lanes), self.parts)
    }

    fn shared(&self) -> i64 {
        self.length() * self.word_bytes
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
        if self.shifts() {
            text.push_str("; words of the source are shifted to where its runs begin");
        }
        if self.skewed {
            text.push_str("; runs of the destination are cut where 16 bytes begin");
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
    /// How many elements of its first word are before the first row.
    phase: Expr,
    /// The tile, as words and as elements.
    words: View<'k>,
    elements: View<'k>,
}

/// Both conditions, of which either may be none.
fn both<'k>(a: Option<Flag<'k>>, b: Option<Flag<'k>>) -> Option<Flag<'k>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.and(b)),
        (a, b) => a.or(b),
    }
}

fn load<'k>(k: &'k Build, view: &View<'k>, condition: Option<Flag<'k>>) -> Result<Fragment<'k>, KernelError> {
    view.load_where(condition.unwrap_or_else(|| k.flag(true)))
}

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
        let most = if plan.shifts() { 512 } else { 1536 };
        k.resident((RESIDENT / (plan.shared() + 1024)).clamp(1, most / plan.threads) as u32)?;
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
        let count = plan.length();
        let words = k.shared_of(word, &format!("{count}:1"))?;
        let elements = words.recast(sides.source, &format!("{}:1", count * plan.word))?;
        // Axes are in the order of the destination, and so are blocks.
        let block = k.block_number(operation::Axis::X);
        let numbers = k.coordinate(&block, &counts)?;
        let starts: Result<Vec<Expr>, KernelError> =
            numbers.iter().zip(&plan.tile.extents).map(|(digit, extent)| times(digit, *extent)).collect();
        let mut writer = Writer {
            k,
            sides,
            plan,
            numbers,
            phase: Expr::from(0),
            starts: starts?,
            thread: k.thread()?,
            words,
            elements,
        };
        if plan.kept.is_some() {
            writer.phase = writer.origin(|axis| axis.source, sides.bases.0).divided(k, plan.word)?.1;
        }
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
