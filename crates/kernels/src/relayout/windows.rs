//! Tiles through shared memory, whatever the layouts are aligned to.
//!
//! Law: every element of a tile is read from the source as part of a word of 4 bytes (or alone,
//! where it is as large), and written to the destination as part of 16 bytes that begin at a
//! multiple of 16, but for the ends of runs.
//!
//! * **Words.** A run of the source may begin inside a word. Lanes read the words that cover it,
//!   take the word that begins where the run does out of their own and that of the next lane, and
//!   leave runs in shared memory that all begin at a word.
//! * **Windows.** A run of the destination may begin anywhere. Each is shifted by up to a chunk of
//!   16 bytes, so that its chunks are aligned: the tile is a little larger than what a block writes
//!   of it. What lies before the first chunk of a run and behind the last is written element by
//!   element, by the blocks that have it.
//! * **Banks.** Rows of a tile begin an odd number of words apart, and one more behind as many rows
//!   as a chunk has elements. Lanes that read chunks side by side, so many rows apart, then meet 32
//!   banks.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Build, Element, Flag, Fragment, Kernel, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Tree};

use super::sum::{Sum, plus, times};
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
/// blocks at once were slower, as they touch more rows of memory.
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

/// Words that a lane has read of a row of the tile.
struct Read<'k> {
    words: Vec<Num<'k>>,
    row: Expr,
    /// The number of the first word in the row.
    first: Expr,
    /// How many elements of the first word of the row are before the row.
    phase: Expr,
}

/// A run of the destination.
struct Column<'k> {
    begin: Sum,
    /// The number of its first whole chunk, and how many elements are before that.
    first: Expr,
    skew: Expr,
    /// Where its elements are in a run of the source.
    place: Expr,
    exists: Option<Flag<'k>>,
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

impl<'k> Writer<'k, '_> {
    /// Source to shared memory.
    fn read(&self, source: &View<'k>, word: Element) -> Result<(), KernelError> {
        let (k, plan) = (self.k, self.plan);
        let count = self.sides.reach.0 / plan.word;
        // A source of less than a word is read element by element.
        if count > 0 {
            let source = source.recast(word, &format!("{count}:1"))?;
            let lane = k.remainder(&self.thread, plan.lanes)?;
            let group = k.quotient(&self.thread, plan.lanes)?;
            let turn = |turn: Expr| -> Result<(), KernelError> {
                let mut rows = Vec::new();
                for number in 0..plan.each {
                    let pass = plus(&times(&turn, plan.each)?, &Expr::from(number))?;
                    let part = plus(&times(&pass, plan.threads / plan.lanes)?, &group)?;
                    let (row, part) = (k.quotient(&part, plan.parts)?, k.remainder(&part, plan.parts)?);
                    let first = plus(&times(&part, plan.lanes * plan.words)?, &lane)?;
                    rows.push(self.read_row(&source, row, first)?);
                }
                rows.iter().flatten().try_for_each(|row| self.keep_row(row, &lane))
            };
            if plan.turns == 1 {
                turn(Expr::from(0))?;
            } else {
                k.range(plan.turns, turn)?;
            }
        }
        if !plan.shifts() {
            k.commit_async();
            k.wait_async(0);
        }
        self.read_rest(source)
    }

    /// The words of this lane of a part of a row; none where they go to shared memory by themselves.
    fn read_row(&self, source: &View<'k>, row: Expr, first: Expr) -> Result<Option<Read<'k>>, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let rows = plan.tile.rows();
        let extents: Vec<i64> = rows.iter().map(|axis| plan.read[*axis]).collect();
        // The last number has no end, so that it tells rows that there are not.
        let digits = if rows.is_empty() { Vec::new() } else { k.coordinate(&row, &extents)? };
        let mut begin = self.origin(|axis| axis.source, self.sides.bases.0);
        let mut condition = None;
        for (axis, digit) in rows.iter().zip(&digits) {
            begin.terms.push((digit.clone(), axes[*axis].source));
            let at = plus(&self.starts[*axis], digit)?;
            condition = both(condition, k.unless_less(&at, &Expr::from(axes[*axis].extent))?);
        }
        match (rows.last(), digits.last()) {
            (Some(axis), Some(digit)) => {
                condition = both(condition, k.unless_less(digit, &Expr::from(plan.read[*axis]))?);
            }
            _ => condition = both(condition, k.unless_less(&row, &Expr::from(1))?),
        }
        let (at, phase) = match plan.phased {
            true => begin.divided(k, plan.word)?,
            false => (begin.divided(k, plan.word)?.0, Expr::from(0)),
        };
        // How many elements of the run there are: fewer than the tile has at the end of an axis.
        let run: i64 = plan.tile.source.iter().map(|axis| plan.read[*axis]).product();
        let mut left = Expr::from(run);
        if let Some((last, inner)) = plan.tile.source.split_last() {
            let unit: i64 = inner.iter().map(|axis| plan.read[*axis]).product();
            left = plus(&times(&self.starts[*last], -unit)?, &Expr::from(unit * axes[*last].extent))?;
        }
        let (end, cut) = (plus(&Expr::from(run), &phase)?, plus(&left, &phase)?);
        let mut words = Vec::new();
        let behind = self.behind(&row)?;
        // Behind the last word of a part comes the first one of the next.
        let more = i64::from(plan.shifts() && plan.parts > 1);
        for number in 0..plan.words + more {
            let along = plus(&first, &Expr::from(number * plan.lanes))?;
            let at_element = times(&along, plan.word)?;
            let exists = both(k.unless_less(&at_element, &end)?, k.unless_less(&at_element, &cut)?);
            let view = source.at(&plus(&at, &along)?)?;
            let exists = both(condition, exists);
            if !plan.shifts() {
                let place = plus(&plus(&times(&row, plan.pitch())?, &along)?, &behind)?;
                k.copy_async_where(exists.unwrap_or_else(|| k.flag(true)), &view, &self.words.at(&place)?)?;
                continue;
            }
            words.push(load(k, &view, exists)?.numbers()?[0]);
        }
        Ok(plan.shifts().then_some(Read { words, row, first, phase }))
    }

    /// Leaves words of a row in shared memory, shifted to where the row begins.
    fn keep_row(&self, read: &Read<'k>, lane: &Expr) -> Result<(), KernelError> {
        let (k, plan) = (self.k, self.plan);
        let mut words = read.words.clone();
        if read.phase != Expr::from(0) {
            let all = k.remainder(&self.thread, 32)?;
            let next = plus(&all, &Expr::from(1))?;
            let last = k.unless_less(lane, &Expr::from(plan.lanes - 1))?;
            let mut following = Vec::new();
            for word in &read.words {
                following.push(k.shuffle_from(*word, &next)?);
            }
            let bits = times(&read.phase, 32 / plan.word)?;
            for (number, word) in read.words.iter().enumerate() {
                // Behind the word of the last lane comes the next one of the first.
                let behind = match (last, following.get(number + 1)) {
                    (Some(inside), Some(first)) => inside.select(following[number], *first),
                    _ => following[number],
                };
                words[number] = k.funnel_right(*word, behind, &bits)?;
            }
        }
        let behind = self.behind(&read.row)?;
        for (number, word) in words.iter().take(plan.words as usize).enumerate() {
            let along = plus(&read.first, &Expr::from(number as i64 * plan.lanes))?;
            let one = k.register(word.element(), "1")?;
            one.set(&[*word])?;
            self.words.at(&plus(&plus(&times(&read.row, plan.pitch())?, &along)?, &behind)?)?.store(&one)?;
        }
        Ok(())
    }

    /// How many elements of its first word are before a row, where words were left as they are. A
    /// chunk has a multiple of as many rows as a word has elements, which changes nothing.
    fn phase(&self, row: &Expr) -> Result<Expr, KernelError> {
        match self.plan.kept {
            None => Ok(Expr::from(0)),
            Some(further) => self.k.remainder(&plus(&times(row, further)?, &self.phase)?, self.plan.word),
        }
    }

    /// How many words more there are before a row.
    fn behind(&self, row: &Expr) -> Result<Expr, KernelError> {
        if self.plan.padded { self.k.quotient(row, self.plan.chunk) } else { Ok(Expr::from(0)) }
    }

    /// Elements behind the last whole word of the source: the tiles that have one read it alone.
    fn read_rest(&self, source: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let whole = sides.reach.0 / plan.word * plan.word;
        if whole == sides.reach.0 {
            return Ok(());
        }
        // A word that is cut off was kept as zeros.
        k.barrier();
        for at in whole..sides.reach.0 {
            for coordinate in sides.coordinates_of(at) {
                let mut condition = k.unless_less(&self.thread, &Expr::from(1))?;
                let mut place = Sum { base: 0, terms: Vec::new() };
                for (axis, at) in coordinate.iter().enumerate() {
                    let behind = plus(&Expr::from(*at), &times(&self.starts[axis], -1)?)?;
                    let begun = k.unless_less(&self.starts[axis], &Expr::from(at + 1))?;
                    let inside = k.unless_less(&behind, &Expr::from(plan.read[axis]))?;
                    condition = both(both(condition, begun), inside);
                    place.terms.push((behind, plan.places[axis]));
                }
                let from = source.at(&Expr::from(at))?;
                let mut place = place.expr()?;
                if plan.padded {
                    let row = plan.pitch() * plan.word;
                    let rows = plan.tile.rows().into_iter().map(|axis| {
                        Ok((
                            plus(&Expr::from(coordinate[axis]), &times(&self.starts[axis], -1)?)?,
                            plan.places[axis] / row,
                        ))
                    });
                    let terms = rows.collect::<Result<Vec<_>, KernelError>>()?;
                    let row = k.clamped(&Sum { base: 0, terms }.expr()?, plan.runs())?;
                    place = plus(&place, &plus(&times(&self.behind(&row)?, plan.word)?, &self.phase(&row)?)?)?;
                }
                let to = self.elements.at(&place)?;
                store(k, &to, condition, &load(k, &from, condition)?)?;
            }
        }
        Ok(())
    }

    /// The sum of where the tile begins.
    fn origin(&self, step: impl Fn(&Axis) -> i64, base: i64) -> Sum {
        let each = self.numbers.iter().zip(&self.plan.tile.extents).zip(&self.sides.axes);
        let terms = each.map(|((number, extent), axis)| (number.clone(), extent * step(axis)));
        Sum { base, terms: terms.filter(|(number, _)| *number != Expr::from(0)).collect() }
    }

    /// A run of the destination by its number.
    fn column(&self, number: &Expr) -> Result<Column<'k>, KernelError> {
        let (k, plan, axes) = (self.k, self.plan, &self.sides.axes);
        let columns = plan.tile.columns();
        let extents: Vec<i64> = columns.iter().map(|axis| plan.read[*axis]).collect();
        let mut begin = self.origin(|axis| axis.destination, self.sides.bases.1);
        let mut place = Expr::from(0);
        let mut exists = if columns.is_empty() { k.unless_less(number, &Expr::from(1))? } else { None };
        let digits = if columns.is_empty() { Vec::new() } else { k.coordinate(number, &extents)? };
        for (axis, digit) in columns.iter().zip(digits) {
            begin.terms.push((digit.clone(), axes[*axis].destination));
            place = plus(&place, &times(&digit, plan.places[*axis])?)?;
            let at = plus(&self.starts[*axis], &digit)?;
            exists = both(exists, k.unless_less(&at, &Expr::from(axes[*axis].extent))?);
            if Some(axis) == columns.last() {
                exists = both(exists, k.unless_less(&digit, &Expr::from(plan.read[*axis]))?);
            }
        }
        let (first, skew) = begin.rounded_up(k, plan.chunk)?;
        Ok(Column { begin, first, skew, place, exists })
    }

    /// How many elements of a run of the destination there are from where the tile begins.
    fn left(&self) -> Result<Expr, KernelError> {
        let (plan, axes) = (self.plan, &self.sides.axes);
        let Some((last, inner)) = plan.tile.destination.split_last() else { return Ok(Expr::from(1)) };
        let unit: i64 = inner.iter().map(|axis| axes[*axis].extent).product();
        plus(&times(&self.starts[*last], -unit)?, &Expr::from(unit * axes[*last].extent))
    }

    /// How many elements of a run a block writes.
    fn window(&self) -> i64 {
        self.plan.tile.destination.iter().map(|axis| self.plan.tile.extents[*axis]).product()
    }

    /// Whether runs of the destination are cut into windows.
    fn is_cut(&self) -> bool {
        let last = self.plan.tile.destination.last();
        last.is_some_and(|last| self.plan.tile.extents[*last] < self.sides.axes[*last].extent)
    }

    /// Where the element that is so far along a run of the destination is in the tile.
    fn place(&self, at: &Expr, along: &Expr) -> Result<Expr, KernelError> {
        let list = &self.plan.tile.destination;
        // Rows that follow each other are so far apart as the first two.
        if let (Some(first), true) = (list.first(), self.plan.turned) {
            let behind = plus(&times(&self.behind(at)?, self.plan.word)?, &self.phase(at)?)?;
            return plus(&plus(&times(at, self.plan.places[*first])?, &behind)?, along);
        }
        let extents: Vec<i64> = list.iter().map(|axis| self.plan.read[*axis]).collect();
        let digits = self.k.coordinate(at, &extents)?;
        let add = |sum: Expr, (axis, digit): (&usize, &Expr)| plus(&sum, &times(digit, self.plan.places[*axis])?);
        let place = list.iter().zip(&digits).try_fold(along.clone(), add)?;
        let row = self.plan.pitch() * self.plan.word;
        let rows = list.iter().zip(digits).filter(|(axis, _)| !self.plan.tile.source.contains(axis));
        let terms = rows.map(|(axis, digit)| (digit, self.plan.places[*axis] / row)).collect();
        plus(&place, &times(&self.behind(&Sum { base: 0, terms }.expr()?)?, self.plan.word)?)
    }

    /// Where the elements of a chunk are in the tile, by its number in the run and the shift of that.
    fn chunk_places(&self, skew: &Expr, number: &Expr, along: &Expr) -> Result<Vec<Expr>, KernelError> {
        let plan = self.plan;
        let chunk = plan.chunk;
        let list = &plan.tile.destination;
        let Some(first) = list.first().copied() else { return Ok(vec![along.clone()]) };
        let (extent, step) = (plan.read[first], plan.places[first]);
        let at = plus(skew, &times(number, chunk)?)?;
        if plan.turned || plan.skewed || extent % chunk != 0 {
            return (0..chunk).map(|element| self.place(&plus(&at, &Expr::from(element))?, along)).collect();
        }
        // A chunk stays within the first axis.
        let here = self.place(&at, along)?;
        (0..chunk).map(|element| plus(&here, &Expr::from(element * step))).collect()
    }

    /// An element of the tile.
    fn element(&self, place: &Expr, condition: Option<Flag<'k>>) -> Result<Num<'k>, KernelError> {
        let number = load(self.k, &self.elements.at(place)?, condition)?.numbers()?[0];
        Ok(if self.sides.source == self.sides.destination { number } else { number.to(self.sides.destination) })
    }

    /// Whole chunks of the destination.
    fn write(&self, destination: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let chunk = plan.chunk;
        let whole = sides.reach.1 / chunk;
        let chunks = self.window() / chunk;
        if whole == 0 || chunks == 0 {
            return Ok(());
        }
        let destination = destination.recast(sides.destination, &format!("({chunk},{whole}):(1,{chunk})"))?;
        let columns = plan.tile.columns();
        let runs: i64 = columns.iter().map(|axis| plan.read[*axis]).product();
        // Runs that are neighbours in a word of the source go to different turns.
        let apart = if columns.first() == plan.tile.source.first() && !plan.padded { plan.word.min(runs) } else { 1 };
        let groups = (runs + apart - 1) / apart;
        let power = |n: i64| (n.max(1) as u64).next_power_of_two() as i64;
        let along = if plan.padded { 32 } else { (32 / chunk).min(8) }.min(power(chunks));
        let across = (32 / along).min(power(groups));
        let along = 32 / across;
        let (groups, steps) = ((groups + across - 1) / across * apart, (chunks + along - 1) / along);
        let warps = plan.threads / 32;
        let down = power(groups).min(warps);
        let right = warps / down;
        let (turns, steps) = ((groups + down - 1) / down, (steps + right - 1) / right);

        let digits = k.coordinate(&self.thread, &[along, across, down, right])?;
        let left = self.left()?;
        // Elements of a chunk, of which the window is shifted by so many.
        let moved = |column: &Column<'k>, skew: &Expr, from: &Expr, count: i64| -> Result<(), KernelError> {
            for step in 0..count {
                let step = plus(from, &Expr::from(step))?;
                let number = plus(&times(&plus(&times(&step, right)?, &digits[3])?, along)?, &digits[0])?;
                let last = plus(&times(&number, chunk)?, &plus(skew, &Expr::from(chunk - 1))?)?;
                let inside = both(k.unless_less(&number, &Expr::from(chunks))?, k.unless_less(&last, &left)?);
                let condition = both(column.exists, inside);
                let mut numbers = Vec::new();
                for place in self.chunk_places(skew, &number, &column.place)? {
                    numbers.push(self.element(&place, condition)?);
                }
                let values = k.register(sides.destination, &chunk.to_string())?;
                values.set(&numbers)?;
                let slot: Coord<Expr> = Tree::flat([Slot::All, Slot::At(plus(&column.first, &number)?)])?;
                store(k, &destination.slice(slot)?, condition, &values)?;
            }
            Ok(())
        };
        let body = |turn: Expr, from: Expr, count: i64| -> Result<(), KernelError> {
            let group = plus(&times(&turn, down)?, &digits[2])?;
            let parts = k.coordinate(&group, &[apart, groups / apart])?;
            let run = plus(&digits[1], &times(&parts[1], across)?)?;
            let run = plus(&parts[0], &times(&run, apart)?)?;
            let column = self.column(&run)?;
            moved(&column, &column.skew, &from, count)
        };
        // As many steps at once as make a turn of some length.
        let most = (UNROLLED / chunk).max(1);
        let parts = (steps + most - 1) / most;
        let each = (steps + parts - 1) / parts;
        let inner = |turn: Expr| {
            if parts == 1 {
                return body(turn, Expr::from(0), steps);
            }
            k.range(parts, |part| body(turn.clone(), times(&part, each)?, each))
        };
        if turns * steps * chunk <= UNROLLED {
            return (0..turns).try_for_each(|turn| inner(Expr::from(turn)));
        }
        k.range(turns, inner)
    }

    /// What lies before the first chunk of a run and behind its last, element by element.
    fn write_ends(&self, destination: &View<'k>) -> Result<(), KernelError> {
        let (k, plan, sides) = (self.k, self.plan, self.sides);
        let chunk = plan.chunk;
        let Some(outer) = plan.tile.destination.last().copied() else { return Ok(()) };
        let length: i64 = plan.tile.destination.iter().map(|axis| sides.axes[*axis].extent).product();
        if !plan.skewed && length % chunk == 0 {
            return Ok(());
        }
        let left = self.left()?;
        let columns = plan.tile.columns();
        let runs: i64 = columns.iter().map(|axis| plan.read[*axis]).product();
        let turns = (runs * chunk + plan.threads - 1) / plan.threads;
        let cut = self.is_cut();
        let ends = |turn: Expr| -> Result<(), KernelError> {
            let number = plus(&times(&turn, plan.threads)?, &self.thread)?;
            let (element, run) = (k.remainder(&number, chunk)?, k.quotient(&number, chunk)?);
            let Column { begin, skew, place, exists, .. } = self.column(&run)?;
            let one = |at: Expr, condition: Option<Flag<'k>>| -> Result<(), KernelError> {
                let condition = both(condition, k.unless_less(&at, &left)?);
                let values = k.register(sides.destination, "1")?;
                values.set(&[self.element(&self.place(&at, &place)?, condition)?])?;
                let target = destination.at(&plus(&begin.expr()?, &at)?)?;
                store(k, &target, condition, &values)
            };
            // Before the first chunk, in the first window.
            if plan.skewed {
                let first = k.unless_less(&self.starts[outer], &Expr::from(1))?;
                let before = k.unless_less(&element, &skew)?;
                one(element.clone(), both(both(exists, first), before))?;
            }
            // Behind the last whole chunk: how many there are, and one more.
            // No more than a window has matter.
            let left = if cut { k.clamped(&left, self.window() + 2 * chunk)? } else { left.clone() };
            let chunks = plus(&plus(&left, &times(&skew, -1)?)?, &Expr::from(chunk))?;
            let chunks = k.quotient(&chunks, chunk)?;
            let some = k.unless_less(&Expr::from(0), &chunks)?;
            let mine = if cut { k.unless_less(&chunks, &Expr::from(self.window() / chunk + 1))? } else { None };
            let behind = plus(&times(&chunks, chunk)?, &plus(&skew, &plus(&element, &Expr::from(-chunk))?)?)?;
            let some = both(some, k.unless_less(&behind, &left)?);
            one(k.clamped(&behind, length)?, both(both(exists, some), mine))
        };
        let all = || if turns == 1 { ends(Expr::from(0)) } else { k.range(turns, ends) };
        if !cut {
            return all();
        }
        // Only blocks at the ends have any.
        let last = self.window() + chunk;
        let inner = k.unless_less(&Expr::from(0), &self.starts[outer])?;
        let far = k.unless_less(&Expr::from(last), &left)?;
        match both(inner, far) {
            Some(middle) => k.choose(middle, || Ok(()), all),
            None => all(),
        }
    }
}
