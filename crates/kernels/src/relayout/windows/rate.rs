//! Which tile moves two layouts fastest.
//!
//! Law: of all tiles that are tried, the one is taken whose estimate is the least. An estimate is
//! the time of a move, where 1 is that of the driver's copy of as many bytes; what it adds for
//! short runs, for what stands out of the tensor, for instructions and for few warps was fitted to
//! some hundreds of moves on an H200.

use super::super::Sides;
use super::super::tile::{Tile, gcd, up};
use super::{MOST_SHARED, SHARED, Windows};
use crate::axes::Axis;

/// Bytes of a sector, of which memory moves whole ones.
const SECTOR: i64 = 32;
/// Bytes of lines of which memory likes to move whole ones, besides sectors.
const LINES: [i64; 3] = [64, 128, 256];
/// Bytes of runs that are tried.
const RUNS: [i64; 10] = [32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048];
/// Bytes of tiles that are tried.
const TILES: [i64; 4] = [8 << 10, 16 << 10, 32 << 10, 60 << 10];
/// Bytes of runs that are tried for both sides at once.
const LONG: [i64; 4] = [8 << 10, 16 << 10, 32 << 10, 60 << 10];
/// Bytes of the smallest tile that keeps a block busy for longer than it takes to begin.
const SMALL: f64 = 4096.0;
/// Shared memory that all blocks of a processor may take without loss.
const CACHE: f64 = 160.0 * 1024.0;
/// Instructions of a lane that processors issue while memory moves a byte.
const ISSUED: f64 = 6.5;
/// Bytes that memory moves while shared memory is read by a lane.
const READ_BACK: f64 = 0.6;
/// Registers of a processor, and how many of them threads take, about.
const REGISTERS: i64 = 65_536;
const TAKEN: i64 = 48;
/// Threads and blocks of a processor at once.
const RESIDENT: (i64, i64) = (2048, 32);
/// Elements that a thread writes one after the other without a loop, before their code is too long
/// for the caches of instructions.
const LONG_CODE: f64 = 96.0;
/// Bytes of a tensor that stays in the cache of a device, as its copy does.
const CACHED: f64 = 32.0 * 1024.0 * 1024.0;
/// How many blocks of a processor are many.
const MANY: f64 = 4.0;

/// What is otherwise for bytes than for wider elements: they take four times as many instructions
/// and accesses of shared memory for as much memory.
struct Weights {
    /// Of sectors in which runs of the destination begin and end.
    torn: f64,
    /// Of instructions past what processors issue while memory moves.
    issued: f64,
    /// Of how many times a tile is as large as a small one, as a power of two.
    large: f64,
    /// Of chunks narrower than 16 bytes.
    narrow: f64,
    /// Of few blocks at once, where a tensor stays in the cache.
    few: f64,
    /// Whether the last blocks of a processor count one by one, and not as many as it has at once.
    by_block: bool,
}

const OF_BYTES: Weights = Weights { torn: 0.65, issued: 0.104, large: 0.02, narrow: 3.4, few: 0.17, by_block: true };
const OF_WORDS: Weights = Weights { torn: 0.51, issued: 0.05, large: 0.003, narrow: 1.0, few: 0.0, by_block: false };

/// Threads of a block that are tried.
const THREADS: [i64; 3] = [128, 256, 512];

/// The tile with the least estimate.
pub(super) fn best(sides: &Sides) -> Option<Windows> {
    // No tile takes fewer turns of shared memory than one for each access, so that what shared
    // memory really takes is counted for few of them.
    let mut rated: Vec<(f64, Windows)> =
        every(sides).into_iter().map(|found| (found.estimate(sides, 1.0, 1.0), found)).collect();
    rated.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Option<(f64, Windows)> = None;
    for (least, found) in rated {
        if best.as_ref().is_some_and(|best| best.0 <= least) {
            break;
        }
        let estimate = found.estimate(sides, found.loads(sides), found.stores());
        if best.as_ref().is_none_or(|best| estimate < best.0) {
            best = Some((estimate, found));
        }
    }
    best.map(|best| best.1)
}

/// All tiles that are tried.
pub(super) fn every(sides: &Sides) -> Vec<Windows> {
    let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
    let chunks: Vec<i64> = [16, 8, 4].iter().map(|chunk| chunk / target).filter(|chunk| *chunk > 0).collect();
    // A run that begins inside a word is covered by one word more.
    let less = (4 / bytes - 1).max(0);
    let mut tiles: Vec<Tile> = Vec::new();
    let long = LONG.iter().filter(|_| bytes == 1).map(|run| (run, run, *run));
    for (read, written, size) in RUNS
        .iter()
        .flat_map(|read| RUNS.iter().flat_map(move |written| TILES.map(move |size| (read, written, size))))
        .chain(long)
    {
        for less in if less > 0 { vec![0, less] } else { vec![0] } {
            let wanted = ((read / bytes - less).max(1), (written / target).max(1));
            let units = (if less > 0 { 1 } else { SECTOR / bytes }, SECTOR / target);
            let tile = Tile::new(&sides.axes, wanted, units, size / bytes.max(target));
            let elements = tile.extents.iter().product::<i64>();
            if elements * bytes <= MOST_SHARED && tiles.iter().all(|other| other.extents != tile.extents) {
                tiles.push(tile);
            }
        }
    }
    let mut found = Vec::new();
    for tile in tiles {
        for chunk in &chunks {
            // Windows begin where chunks do, or sectors; those of bytes would read too much for
            // that.
            let aligns = [*chunk, SECTOR / target];
            for align in aligns.into_iter().take(if target == 1 { 1 } else { 2 }) {
                for threads in THREADS {
                    // Where rows of the source go on along the destination, words are left out.
                    let shared = tile.destination.first().is_some_and(|first| tile.source.contains(first));
                    for fold in 0..if shared { 3 } else { 1 } {
                        found.extend(Windows::new(sides, tile.clone(), (*chunk, align), threads, fold));
                    }
                }
            }
        }
    }
    found
}

/// How many elements of a box lie side by side, on average.
fn side_by_side(axes: &[Axis], step: impl Fn(&Axis) -> i64, extents: &[i64]) -> f64 {
    let mut length = 1;
    while let Some(next) = (0..axes.len()).find(|axis| axes[*axis].extent > 1 && step(&axes[*axis]) == length) {
        let extent = axes[next].extent;
        if extents[next] < extent {
            return length as f64 * extent as f64 / up(extent, extents[next]) as f64;
        }
        length *= extent;
    }
    length as f64
}

impl Windows {
    /// How long a move takes with this tile, if shared memory takes so many times as many turns for
    /// loads and for stores as it takes at least.
    fn estimate(&self, sides: &Sides, loads: f64, stores: f64) -> f64 {
        let (axes, extents) = (&sides.axes, &self.tile.extents);
        let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
        let read = side_by_side(axes, |axis| axis.source, extents) * bytes as f64;
        let written = side_by_side(axes, |axis| axis.destination, extents) * target as f64;
        let elements: f64 = extents.iter().map(|extent| *extent as f64).product();
        // What a tile reads twice, and what stands out of the tensor.
        let (mut twice, mut out) = (1.0, 1.0);
        for ((axis, extent), read) in axes.iter().zip(extents).zip(&self.read) {
            twice *= *read as f64 / *extent as f64;
            out *= (up(axis.extent, *extent) * extent) as f64 / axis.extent as f64;
        }
        let resident = self.blocks_at_once() as f64;
        let together = ((self.along * self.chunk * target) as f64).min(written);
        // Bytes of lines that a run begins or ends inside of.
        let torn = |granule: i64| LINES.iter().filter(|line| granule < **line).sum::<i64>() as f64;
        let sectors = |granule: i64| if granule < SECTOR { SECTOR as f64 } else { 0.0 };
        let (from, to) = (self.begins_in_source(sides), self.begins_in_destination(sides));
        // What shared memory leaves to the nearest cache has to hold the lines under way.
        let taken = resident * (self.shared() + 1024) as f64;
        let both = (bytes + target) as f64;
        let issued = self.instructions(sides) * 32.0 / (elements * both) / ISSUED;
        let loads = loads * READ_BACK / both;
        let size = (elements * bytes as f64 / SMALL).log2();
        let weights = if bytes == 1 { &OF_BYTES } else { &OF_WORDS };
        // Tiles of a transpose from memory are as good where they are large, of bytes too.
        let all: f64 = axes.iter().map(|axis| axis.extent as f64).product();
        let cached = all * (bytes as f64) < CACHED;
        let two = axes.len() == 2 && !cached;
        // Elements that lanes go through for each that there is.
        let idle = |elements_of_thread: i64| (self.threads * elements_of_thread) as f64 / elements - 1.0;
        let read_by_thread = self.sources.count() * self.words * self.word;
        let written_by_thread = self.steps * self.targets.count() * self.chunk;
        let words_of_chunk = self.chunk_bytes as f64 / 4.0;
        let sum = 1.0
            + 0.012 * (sectors(from) + torn(from)) / read
            + (weights.torn * sectors(to) + 0.0035 * torn(to)) / written
            + 0.3 * (64.0 / read - 1.0).max(0.0)
            + 0.8 * (64.0 / written - 1.0).max(0.0)
            + 0.065 * (out - 1.0)
            + 0.037 * (twice - 1.0)
            + weights.issued * (issued - 0.7).max(0.0)
            + 0.043 * loads
            + 0.075 * (loads - 0.25).max(0.0)
            + 0.105 * stores / (both.max(8.0))
            + 0.6 / (resident * self.threads as f64 / 32.0)
            + 0.68 / together
            + if two { OF_WORDS.large } else { weights.large } * size.max(0.0)
            + 0.034 * (-size).max(0.0)
            + 0.1 * (taken / CACHE - 1.0).max(0.0)
            + weights.narrow * if self.skewed { 0.0147 } else { 0.0086 } / words_of_chunk
            + if self.tile.beside.is_empty() { 0.0 } else { 0.0095 }
            + 0.02 * idle(read_by_thread).max(0.0)
            + 0.007 * idle(written_by_thread).max(0.0)
            + 0.055 * (self.unrolled() as f64 / LONG_CODE - 1.0).max(0.0);
        // Few blocks do not fill all processors to the end. Where all is in a cache, blocks of a
        // processor make up for each other's waits, and more of them for more.
        let tiles: f64 = axes.iter().zip(extents).map(|(axis, extent)| up(axis.extent, *extent) as f64).product();
        let each = tiles / (sides.blocks as f64 / 2.0);
        let waves = each / resident;
        let few = cached && resident < MANY;
        let sum = sum + if few { weights.few } else { 0.0 };
        sum * match waves < 8.0 {
            true if weights.by_block => each.ceil() / each,
            true => waves.ceil() / waves,
            false => 1.0,
        }
    }

    /// Blocks that a processor has at once.
    fn blocks_at_once(&self) -> i64 {
        let (threads, blocks) = RESIDENT;
        let most = (threads / self.threads).min(blocks).min(REGISTERS / (TAKEN * self.threads));
        most.min(SHARED / (self.shared() + 1024)).max(1)
    }

    /// The bytes at multiples of which the runs of the destination that blocks write begin.
    fn begins_in_destination(&self, sides: &Sides) -> i64 {
        let target = i64::from(sides.destination.bytes());
        if self.skewed {
            return self.align * target;
        }
        self.begins(sides, &self.tile.destination, |axis| axis.destination * target, sides.bases.1 * target)
    }

    /// The bytes at multiples of which the runs of the source that blocks read begin.
    fn begins_in_source(&self, sides: &Sides) -> i64 {
        let bytes = i64::from(sides.source.bytes());
        self.begins(sides, &self.tile.source, |axis| axis.source * bytes, sides.bases.0 * bytes)
    }

    /// The bytes at multiples of which runs along these axes begin, for so many bytes from one
    /// element to the next: a power of two, no more than the longest line.
    fn begins(&self, sides: &Sides, run: &[usize], step: impl Fn(&Axis) -> i64, base: i64) -> i64 {
        let each = sides.axes.iter().enumerate().filter_map(|(number, axis)| {
            let extent = self.tile.extents[number];
            match run.contains(&number) {
                true if extent == axis.extent => None,
                true => Some(step(axis) * extent),
                false => Some(step(axis)),
            }
        });
        each.fold(gcd(LINES[LINES.len() - 1], base), gcd)
    }

    /// Instructions of all warps of a block, about.
    fn instructions(&self, sides: &Sides) -> f64 {
        let chunk = self.chunk as f64;
        let read = self.sources.count() as f64 * (4.0 + 3.0 * self.words as f64);
        // Where an element is costs more if both runs share an axis, and is found again if turns
        // differ.
        let shared = self.tile.destination.iter().any(|axis| self.tile.source.contains(axis));
        let each = match shared || self.phased && self.tile.destination.len() > 1 {
            true if self.front > 0 => 3.0,
            true => 8.0,
            false => 5.0,
        };
        let times = if self.alike { self.steps } else { self.steps * self.targets.count() };
        let found = times as f64 * chunk * each;
        let write = (self.steps * self.targets.count()) as f64 * (chunk * 2.0 + 8.0);
        // Ends of runs are written by all blocks where no run is cut.
        let length: i64 = self.tile.destination.iter().map(|axis| sides.axes[*axis].extent).product();
        let runs: i64 = self.targets.axes.iter().map(|axis| self.read[*axis]).product();
        let ends = match self.window() < length || !self.skewed && length % self.chunk == 0 {
            true => 0.0,
            false => 250.0 * up(runs * self.align, self.threads) as f64,
        };
        self.threads as f64 / 32.0 * (80.0 + read + found + write + ends)
    }
}
