//! Which tile is the fastest for two layouts.
//!
//! Law: of all tiles that are tried, the one with the least estimate is chosen. An estimate is the
//! time of the relayout divided by the time of the driver's copy of as many bytes. It has terms for
//! lines within which runs begin, for short runs, for instructions, for bank conflicts and for few
//! warps. Their weights were fitted to several hundred measurements ([`WindowTime`]).

use super::super::Sides;
use super::super::tile::{AxisBox, side_by_side};
use super::WindowsPlan;
use crate::axes::Axis;
use crate::fitted::{WINDOWS, WindowTime};
use crate::units::{LANES, SECTOR, div_up, gcd, resident_threads};

/// The sizes of lines, in bytes, whose partial access costs bandwidth, as that of a sector does.
const LINES: [i64; 3] = [64, 128, 256];
/// The run lengths that are tried, in bytes.
const RUNS: [i64; 10] = [32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048];
/// The tile sizes that are tried, in bytes.
const TILES: [i64; 4] = [8 << 10, 16 << 10, 32 << 10, 60 << 10];
/// The run lengths that are tried for both sides at once, in bytes.
const LONG: [i64; 4] = [8 << 10, 16 << 10, 32 << 10, 60 << 10];
const TIME: &WindowTime = &WINDOWS.time;

/// The block sizes that are tried, in threads.
const THREADS: [i64; 3] = [128, 256, 512];

/// The tile with the least estimate.
pub(super) fn best(sides: &Sides) -> Option<WindowsPlan> {
    // No tile has fewer wavefronts than one for each access, so actual wavefronts are counted for
    // few tiles only.
    let mut rated: Vec<(f64, WindowsPlan)> =
        every(sides).into_iter().map(|found| (found.estimate(sides, 1.0), found)).collect();
    rated.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Option<(f64, WindowsPlan)> = None;
    for (least, found) in rated {
        if best.as_ref().is_some_and(|best| best.0 <= least) {
            break;
        }
        let estimate = found.estimate(sides, found.loads(sides));
        if best.as_ref().is_none_or(|best| estimate < best.0) {
            best = Some((estimate, found));
        }
    }
    best.map(|best| best.1)
}

/// All tiles that are tried.
pub(super) fn every(sides: &Sides) -> Vec<WindowsPlan> {
    let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
    let chunks: Vec<i64> = [16, 8, 4].iter().map(|chunk| chunk / target).filter(|chunk| *chunk > 0).collect();
    // A run that begins inside a word is covered by one word more.
    let less = (4 / bytes - 1).max(0);
    let mut tiles: Vec<AxisBox> = Vec::new();
    let long = LONG.iter().filter(|_| bytes == 1).map(|run| (run, run, *run));
    for (read, written, size) in RUNS
        .iter()
        .flat_map(|read| RUNS.iter().flat_map(move |written| TILES.map(move |size| (read, written, size))))
        .chain(long)
    {
        for less in if less > 0 { vec![0, less] } else { vec![0] } {
            let wanted = ((read / bytes - less).max(1), (written / target).max(1));
            let units = (if less > 0 { 1 } else { SECTOR / bytes }, SECTOR / target);
            let tile = AxisBox::new(&sides.axes, wanted, units, size / bytes.max(target));
            let elements = tile.extents.iter().product::<i64>();
            if elements * bytes <= sides.limits.tile_bytes && tiles.iter().all(|other| other.extents != tile.extents) {
                tiles.push(tile);
            }
        }
    }
    let mut found = Vec::new();
    for tile in tiles {
        for chunk in &chunks {
            // Windows begin at multiples of a chunk or of a sector; for 8-bit elements, sectors
            // would read too much.
            let aligns = [*chunk, SECTOR / target];
            for align in aligns.into_iter().take(if target == 1 { 1 } else { 2 }) {
                for threads in THREADS {
                    // If rows of the source are contiguous along the destination, layouts that skip
                    // words are tried too.
                    let shared = tile.destination.first().is_some_and(|first| tile.source.contains(first));
                    for fold in 0..if shared { 3 } else { 1 } {
                        found.extend(WindowsPlan::new(sides, tile.clone(), (*chunk, align), threads, fold));
                    }
                }
            }
        }
    }
    found
}

impl WindowsPlan {
    /// The estimated time with this tile, given the wavefronts of loads relative to the minimum.
    fn estimate(&self, sides: &Sides, loads: f64) -> f64 {
        let (axes, extents) = (&sides.axes, &self.tile.extents);
        let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
        // Bytes take four times as many instructions as words for as much memory.
        let width = usize::from(bytes > 1);
        let run = |(whole, parts): (i64, i64)| whole as f64 / parts as f64;
        let read = run(side_by_side(axes, |axis| axis.source, extents)) * bytes as f64;
        let written = run(side_by_side(axes, |axis| axis.destination, extents)) * target as f64;
        let elements: f64 = extents.iter().map(|extent| *extent as f64).product();
        let resident = self.blocks_at_once(sides) as f64;
        // Bytes of lines that are accessed partially at the ends of a run.
        let torn = |granule: i64| LINES.iter().filter(|line| granule < **line).sum::<i64>() as f64;
        let sectors = |granule: i64| if granule < SECTOR { SECTOR as f64 } else { 0.0 };
        let (from, to) = (self.begins_in_source(sides), self.begins_in_destination(sides));
        // The L1 cache, without the shared memory, must hold the lines in flight.
        let reserved = i64::from(sides.limits.multiprocessor.reserved_bytes);
        let taken = resident * (self.shared() + reserved) as f64;
        let both = (bytes + target) as f64;
        let issued = self.instructions(sides) * LANES as f64 / (elements * both);
        // The excess over an amount that costs nothing, in units of that amount.
        let past = |much: f64, free: f64| (much / free - 1.0).max(0.0);
        // Large tiles cost more for one-byte elements, except for a transpose of two axes from
        // device memory.
        let all: f64 = axes.iter().map(|axis| axis.extent as f64).product();
        let cached = all * (bytes as f64) < sides.limits.cached_windows as f64;
        let grows = bytes == 1 && (cached || axes.len() != 2);
        let size = (elements * bytes as f64 / TIME.small_tile).log2().max(0.0);
        let few = bytes == 1 && cached && resident < TIME.many_blocks as f64;
        let sum = 1.0
            + TIME.torn_read * (sectors(from) + torn(from)) / read
            + (TIME.torn_sector[width] * sectors(to) + TIME.torn_line * torn(to)) / written
            + TIME.short_read * past(64.0, read)
            + TIME.issued[width] * past(issued, TIME.issued_per_byte)
            + TIME.reads * past(loads / both, TIME.reads_per_byte)
            + TIME.warps / (resident * self.threads as f64 / LANES as f64)
            + TIME.cache * past(taken, sides.limits.shared_bytes as f64)
            + if grows { TIME.large * size } else { 0.0 }
            + if few { TIME.few_blocks } else { 0.0 };
        // Few blocks leave multiprocessors idle in the last wave.
        let tiles: f64 = axes.iter().zip(extents).map(|(axis, extent)| div_up(axis.extent, *extent) as f64).product();
        let each = tiles / (sides.limits.blocks as f64 / 2.0);
        let waves = each / resident;
        sum * match waves < 8.0 {
            true if bytes == 1 => each.ceil() / each,
            true => waves.ceil() / waves,
            false => 1.0,
        }
    }

    /// Resident blocks on a multiprocessor.
    fn blocks_at_once(&self, sides: &Sides) -> i64 {
        let own = &sides.limits.multiprocessor;
        let threads = i64::from(resident_threads(own, TIME.thread_registers));
        let by_shared = i64::from(own.shared_bytes) / (self.shared() + i64::from(own.reserved_bytes));
        (threads / self.threads).min(own.blocks.into()).min(by_shared).max(1)
    }

    /// The alignment in bytes of the runs of the destination that blocks write.
    fn begins_in_destination(&self, sides: &Sides) -> i64 {
        let target = i64::from(sides.destination.bytes());
        if self.skewed {
            return self.align * target;
        }
        self.begins(sides, &self.tile.destination, |axis| axis.destination * target, sides.bases.1 * target)
    }

    /// The alignment in bytes of the runs of the source that blocks read.
    fn begins_in_source(&self, sides: &Sides) -> i64 {
        let bytes = i64::from(sides.source.bytes());
        self.begins(sides, &self.tile.source, |axis| axis.source * bytes, sides.bases.0 * bytes)
    }

    /// The alignment in bytes of runs along these axes, for elements of `bytes` bytes: a power of
    /// two, at most the longest line.
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

    /// Instructions of all warps of a block, estimated.
    fn instructions(&self, sides: &Sides) -> f64 {
        let chunk = self.chunk as f64;
        let read = self.sources.count() as f64 * (4.0 + 3.0 * self.words as f64);
        // Computing a position costs more if both runs share an axis, and it is repeated if
        // iterations differ.
        let shared = self.tile.destination.iter().any(|axis| self.tile.source.contains(axis));
        let each = match shared || self.phased && self.tile.destination.len() > 1 {
            true if self.front > 0 => 3.0,
            true => 8.0,
            false => 5.0,
        };
        let times = if self.alike { self.steps } else { self.steps * self.targets.count() };
        let found = times as f64 * chunk * each;
        let write = (self.steps * self.targets.count()) as f64 * (chunk * 2.0 + 8.0);
        // If no run is cut into windows, all blocks write the ends of runs.
        let length: i64 = self.tile.destination.iter().map(|axis| sides.axes[*axis].extent).product();
        let runs: i64 = self.targets.axes.iter().map(|axis| self.read[*axis]).product();
        let ends = match self.window() < length || !self.skewed && length % self.chunk == 0 {
            true => 0.0,
            false => 250.0 * div_up(runs * self.align, self.threads) as f64,
        };
        self.threads as f64 / LANES as f64 * (80.0 + read + found + write + ends)
    }
}
