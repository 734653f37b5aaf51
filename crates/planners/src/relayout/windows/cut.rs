//! How a tile is divided into words and chunks, and how threads iterate over it.

use super::super::Sides;
use super::super::share::Share;
use super::super::tile::AxisBox;
use super::WindowsPlan;
use crate::axes::Axis;
use crate::fitted::WINDOWS;
use crate::units::{LANES, div_up, power_from};

/// A tile, and how it is divided into words and windows.
struct WindowCut<'a> {
    sides: &'a Sides,
    tile: AxisBox,
    /// The first and the last axis of a run of the destination.
    first: usize,
    last: usize,
    /// Elements of a word, elements of a chunk, and the alignment of windows in elements.
    word: i64,
    chunk: i64,
    align: i64,
    phased: bool,
    skewed: bool,
    /// The extents of the tile as it is read.
    read: Vec<i64>,
    /// The axes of the rows of the tile, and the number of rows.
    rows: Vec<(usize, i64)>,
    count: i64,
    /// The elements of a run of the destination that a block writes, the number of their chunks,
    /// and the extent of these chunks.
    window: i64,
    chunks: i64,
    reach: i64,
}

/// The layout of a tile in shared memory.
struct Room {
    places: Vec<i64>,
    padded: bool,
    front: i64,
    length: i64,
}

/// How threads write chunks.
struct Targets {
    along: i64,
    steps: i64,
    targets: Share,
    alike: bool,
}

impl WindowsPlan {
    /// A tile and its threads. Rows skip a word after `fold_axes` axes. None if a run of either
    /// side is a single element, shared memory is too small, or these axes are not whole words.
    pub(super) fn new(
        sides: &Sides,
        tile: AxisBox,
        units: (i64, i64),
        threads: i64,
        fold_axes: usize,
    ) -> Option<WindowsPlan> {
        let bytes = i64::from(sides.source.bytes());
        let cut = WindowCut::of(sides, tile, units)?;
        let (lanes, words) = cut.lanes(threads)?;
        let fold = cut.fold(fold_axes)?;
        let left_out = if fold > 0 { lanes * words / fold } else { 0 };
        let pitch = (lanes * words + left_out) | 1;
        let mut threads = threads;
        while lanes <= LANES && threads > 64 && cut.count * lanes < 2 * threads {
            threads /= 2;
        }
        let keeps = |axis: usize, far: i64| sides.axes[axis].source * far % cut.word == 0;
        let sources = Share::new(cut.rows.clone(), threads / lanes, (WINDOWS.words / words).max(1), keeps);
        let Room { places, padded, front, length } = cut.room(pitch, (fold, fold_axes), sources.last());
        let Targets { along, steps, targets, alike } = cut.targets(threads)?;
        let WindowCut { tile, word, chunk, align, phased, skewed, read, .. } = cut;
        let found = WindowsPlan {
            tile,
            threads,
            word_bytes: bytes.max(4),
            word,
            chunk,
            chunk_bytes: chunk * i64::from(sides.destination.bytes()),
            align,
            phased,
            skewed,
            read,
            places,
            padded,
            pitch,
            fold,
            front,
            length,
            lanes,
            words,
            sources,
            along,
            steps,
            targets,
            alike,
        };
        (found.shared() <= sides.limits.tile_bytes).then_some(found)
    }
}

impl<'a> WindowCut<'a> {
    /// A tile with chunks of `chunk` elements, and windows that begin at multiples of `align`. None
    /// if a run of either side is a single element, or windows would not be several sectors.
    fn of(sides: &'a Sides, tile: AxisBox, (chunk, align): (i64, i64)) -> Option<WindowCut<'a>> {
        let axes = &sides.axes;
        let word = (4 / i64::from(sides.source.bytes())).max(1);
        let (first, last) = (*tile.destination.first()?, *tile.destination.last()?);
        tile.source.last()?;
        let phased = begins_inside(sides, &tile, (sides.bases.0, word), &tile.source, |axis| axis.source);
        let skewed = begins_inside(sides, &tile, (sides.bases.1, align), &tile.destination, |axis| axis.destination);
        // If sectors matter, a window is a whole number of them.
        let whole: i64 = tile.destination.iter().map(|axis| axes[*axis].extent).product();
        let window: i64 = tile.destination.iter().map(|axis| tile.extents[*axis]).product();
        if align > chunk && (!skewed || window == whole || window % align != 0) {
            return None;
        }
        // A window begins a little later than the tile.
        let mut read = tile.extents.clone();
        if skewed && tile.extents[last] < axes[last].extent {
            read[last] += div_up(align - 1, axes[last].destination);
        }
        let chunks = div_up(window, chunk);
        let reach = chunks * chunk + if skewed { align - 1 } else { 0 };
        let rows: Vec<(usize, i64)> = tile.rows().into_iter().map(|axis| (axis, read[axis])).collect();
        let count = rows.iter().map(|(_, extent)| extent).product();
        Some(WindowCut {
            sides,
            tile,
            first,
            last,
            word,
            chunk,
            align,
            phased,
            skewed,
            read,
            rows,
            count,
            window,
            chunks,
            reach,
        })
    }

    /// Lanes that read a run of the source together, and the words of each; None if these are too
    /// many.
    fn lanes(&self, threads: i64) -> Option<(i64, i64)> {
        let is_bytes = self.sides.source.bytes() == 1;
        let run: i64 = self.tile.source.iter().map(|axis| self.read[*axis]).product();
        let count = div_up(run + if self.phased { self.word - 1 } else { 0 }, self.word);
        // 8-bit elements have more options, which were measured for them only. If there are fewer
        // runs than warps, several warps read one run.
        let few = is_bytes && LANES * self.count < threads;
        let most = if few { threads / power_from(self.count) } else { LANES };
        let lanes = power_from(count).min(most);
        // Half as many lanes may leave fewer of them idle.
        let lanes = if is_bytes && lanes == 32 && div_up(count, 16) * 16 < div_up(count, 32) * 32 { 16 } else { lanes };
        let words = div_up(count, lanes);
        (!is_bytes || words <= WINDOWS.words).then_some((lanes, words))
    }

    /// The words of a row after which one is skipped: those of `axes` axes of it. None if they are
    /// not whole words.
    fn fold(&self, axes: usize) -> Option<i64> {
        if axes == 0 {
            return Some(0);
        }
        let inner: i64 = self.tile.source.iter().take(axes).map(|axis| self.read[*axis]).product();
        let refused = self.phased || axes >= self.tile.source.len() || inner % self.word != 0;
        (!refused).then_some(inner / self.word)
    }

    /// The layout of elements: rows are `pitch` words apart, with one word skipped after `fold`
    /// words or axes. Threads go up to `last_row` along the last axis of the rows.
    fn room(&self, pitch: i64, (fold, fold_axes): (i64, usize), last_row: i64) -> Room {
        let (tile, read, word, chunk, last) = (&self.tile, &self.read, self.word, self.chunk, self.last);
        let unit = self.sides.axes[last].destination;
        // Rows of the runs of the destination, then the others, as planes.
        let padded = !tile.source.contains(&self.first);
        let (mut places, mut along, mut row, mut inside) = (vec![0; self.sides.axes.len()], 1, pitch, 1);
        for (number, axis) in tile.source.iter().enumerate() {
            if fold > 0 && number == fold_axes {
                along += word;
            }
            places[*axis] = along;
            along *= read[*axis];
        }
        let mut planes = false;
        for (number, (axis, extent)) in self.rows.iter().enumerate() {
            if !planes && tile.beside.contains(axis) {
                planes = true;
                row += if padded { div_up(inside, chunk) } else { 0 };
            }
            places[*axis] = row * word;
            let mut held = if number + 1 == self.rows.len() { last_row.max(*extent) } else { *extent };
            if *axis == last {
                held = held.max(div_up(self.reach, unit));
            }
            row *= held;
            if !planes {
                inside *= held;
            }
        }
        let length = row + if padded && !planes { div_up(inside, chunk) } else { 0 };
        // An axis that both sides share may be read past its end.
        let past = (div_up(self.reach, unit) - read[last]).max(0) * places[last];
        let shared = if tile.source.contains(&last) { div_up((self.reach - self.window).max(past), word) } else { 0 };
        let is_bytes = self.sides.source.bytes() == 1;
        let around = is_bytes && tile.destination.len() > 1 && read[self.first] >= chunk && chunk > 1 && fold == 0;
        let front = if around && !padded { div_up(chunk * places[self.first], word) * word } else { 0 };
        let length = length + shared + 2 * front / word;
        let word_bytes = i64::from(self.sides.source.bytes()).max(4);
        let [large, third] = self.sides.limits.two_bytes;
        let length = if length * word_bytes > large { length.max(third / word_bytes) } else { length };
        Room { places, padded, front, length }
    }

    /// How threads write chunks: the cheapest of all distributions.
    fn targets(&self, threads: i64) -> Option<Targets> {
        let axes = &self.sides.axes;
        let (chunk, chunks) = (self.chunk, self.chunks);
        let columns: Vec<(usize, i64)> = self.tile.columns().into_iter().map(|axis| (axis, self.read[axis])).collect();
        let beside = |axis: usize| self.tile.beside.contains(&axis);
        let same = |axis: usize, far: i64| {
            axes[axis].destination * far % self.align == 0
                && (!beside(axis) || axes[axis].source * far % self.word == 0)
        };
        // Adjacent threads write at least 128 bytes of a run, if it has them.
        let least = (128 / (chunk * i64::from(self.sides.destination.bytes()))).min(chunks);
        let ways = (0..10)
            .map(|power| 1 << power)
            .filter(|along| *along <= threads && *along < 2 * chunks && (*along >= least || *along == threads));
        let ways = ways.map(|along| {
            let steps = div_up(chunks, along);
            let share = |most: i64| Share::new(columns.clone(), threads / along, (most / chunk).max(1), same);
            let mut targets = share(WINDOWS.unrolled);
            let alike = targets.keeps(same);
            if !alike {
                targets = share(WINDOWS.unrolled_apart);
            }
            let found = if alike { 6 } else { 6 * targets.count() };
            // The cost: for each element a load and a part of a store, and the computation of their
            // positions.
            let cost = steps * (chunk * (2 * targets.count() + found) + 8 * targets.count());
            (cost, Targets { along, steps, targets, alike })
        });
        ways.min_by_key(|(cost, way)| (*cost, -way.along)).map(|(_, way)| way)
    }
}

/// Whether runs may begin inside of a unit. `base` is the first beginning, and `stride` the stride
/// along an axis.
fn begins_inside(
    sides: &Sides,
    tile: &AxisBox,
    (base, unit): (i64, i64),
    run: &[usize],
    stride: impl Fn(&Axis) -> i64,
) -> bool {
    let is_inside = |(number, axis): (usize, &Axis)| {
        // The distance of tiles along an axis of the run, if there are several.
        let far = if run.contains(&number) { tile.extents[number].max(1) } else { 1 };
        let begins = !run.contains(&number) || tile.extents[number] < axis.extent;
        begins && stride(axis) * far % unit != 0
    };
    base % unit != 0 || sides.axes.iter().enumerate().any(is_inside)
}
