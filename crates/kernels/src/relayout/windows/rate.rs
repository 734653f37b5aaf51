//! Which tile moves two layouts fastest.
//!
//! Law: of all tiles that are tried, the one is taken whose estimate is the least. An estimate is
//! the time of a move, where 1 is that of the driver's copy of as many bytes; what it adds for
//! short runs, for what stands out of the tensor, for instructions and for few warps was fitted to
//! some hundreds of moves on an H200.

use super::super::Sides;
use super::super::tile::{Tile, gcd, up};
use super::{MOST_SHARED, Windows};
use crate::axes::Axis;

/// Bytes of a sector, of which memory moves whole ones.
const SECTOR: i64 = 32;
/// Bytes of runs that are tried.
const RUNS: [i64; 10] = [32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048];
/// Bytes of tiles that are tried.
const TILES: [i64; 3] = [16 << 10, 32 << 10, 60 << 10];
/// Shared memory that all blocks of a processor may take without loss.
const CACHE: f64 = 160.0 * 1024.0;
/// Instructions of a lane that processors issue while memory moves a byte.
const ISSUED: f64 = 6.5;
/// Bytes that memory moves while shared memory is read by a lane.
const READ_BACK: f64 = 0.6;
/// Threads of a block that are tried.
const THREADS: [i64; 3] = [128, 256, 512];

/// The tile with the least estimate.
pub(super) fn best(sides: &Sides) -> Option<Windows> {
    let rated = every(sides).into_iter().map(|found| (found.estimate(sides), found));
    rated.reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|best| best.1)
}

/// All tiles that are tried.
pub(super) fn every(sides: &Sides) -> Vec<Windows> {
    let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
    let chunks: Vec<i64> = [16, 8, 4].iter().map(|chunk| chunk / target).filter(|chunk| *chunk > 0).collect();
    // A run that begins inside a word is covered by one word more.
    let less = (4 / bytes - 1).max(0);
    let mut tiles: Vec<Tile> = Vec::new();
    for (read, written, size) in
        RUNS.iter().flat_map(|read| RUNS.iter().flat_map(move |written| TILES.map(move |size| (read, written, size))))
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
                    found.extend(Windows::new(sides, tile.clone(), (*chunk, align), threads));
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
    /// How long a move takes with this tile.
    fn estimate(&self, sides: &Sides) -> f64 {
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
        let resident = self.resident() as f64;
        let together = ((self.along * self.chunk * target) as f64).min(written);
        let begins = if self.in_sectors(sides) { 0.0 } else { 12.0 };
        let torn = if self.reads_sectors(sides) { 0.0 } else { 5.0 };
        // What shared memory leaves to the nearest cache has to hold the lines under way.
        let taken = resident * (self.shared() + 1024) as f64;
        let issued = self.instructions(sides) * 32.0 / (elements * (bytes + target) as f64) / ISSUED;
        let short = |run: f64| 0.8 * (64.0 / run - 1.0).max(0.0);
        let sum = 1.0
            + (10.0 + torn) / read
            + (14.0 + begins) / written
            + short(read)
            + short(written)
            + 0.5 * (out - 1.0)
            + 0.5 * (twice - 1.0)
            + 0.1 * issued
            + 0.9 * (issued.max(self.banks(sides)) - 0.7).max(0.0)
            + 0.5 / (resident * self.threads as f64 / 32.0)
            + 2.0 / together
            + 0.1 * (taken / CACHE - 0.75).max(0.0)
            + 0.5 * (taken / CACHE - 1.0).max(0.0)
            + if self.steps > 1 { 0.12 } else { 0.0 }
            + 0.06 * (16.0 / self.chunk_bytes as f64).log2()
            + if resident < 2.0 { 0.15 } else { 0.0 };
        // Few blocks do not fill all processors to the end.
        let tiles: f64 = axes.iter().zip(extents).map(|(axis, extent)| up(axis.extent, *extent) as f64).product();
        let waves = tiles / (sides.blocks as f64 / 2.0 * resident);
        sum * if waves < 8.0 { waves.ceil() / waves } else { 1.0 }
    }

    /// Whether the runs of the destination that blocks write begin where sectors do.
    fn in_sectors(&self, sides: &Sides) -> bool {
        let target = i64::from(sides.destination.bytes());
        if self.skewed {
            return self.align * target == SECTOR;
        }
        self.whole(sides, &self.tile.destination, |axis| axis.destination * target, sides.bases.1 * target)
    }

    /// Whether the runs of the source that blocks read begin where sectors do.
    fn reads_sectors(&self, sides: &Sides) -> bool {
        let bytes = i64::from(sides.source.bytes());
        self.whole(sides, &self.tile.source, |axis| axis.source * bytes, sides.bases.0 * bytes)
    }

    /// Whether runs along these axes begin where sectors do, for so many bytes from one element to
    /// the next.
    fn whole(&self, sides: &Sides, run: &[usize], step: impl Fn(&Axis) -> i64, base: i64) -> bool {
        let whole = |bytes: i64| bytes % SECTOR == 0;
        whole(base)
            && sides.axes.iter().enumerate().all(|(number, axis)| {
                let extent = self.tile.extents[number];
                let inside = run.contains(&number);
                inside && extent == axis.extent || whole(step(axis) * if inside { extent } else { 1 })
            })
    }

    /// How long reading back from shared memory takes: lanes that read chunks side by side meet the
    /// same banks where rows are not apart.
    fn banks(&self, sides: &Sides) -> f64 {
        let (bytes, target) = (i64::from(sides.source.bytes()), i64::from(sides.destination.bytes()));
        let first = self.tile.destination[0];
        let apart = self.chunk * self.places[first] * bytes;
        let long = self.tile.extents[first] >= 8 * self.chunk;
        let same = match self.padded || !long || apart % 4 != 0 {
            true => 1,
            false => gcd(apart / 4, 32) * self.along.min(32) / 32,
        };
        same.max(1) as f64 * READ_BACK / (bytes + target) as f64
    }

    /// Instructions of all warps of a block, about.
    fn instructions(&self, sides: &Sides) -> f64 {
        let chunk = self.chunk as f64;
        let read = self.sources.count() as f64 * (4.0 + 3.0 * self.words as f64);
        // Where an element is costs more if both runs share an axis, and is found again if turns
        // differ.
        let shared = self.tile.destination.iter().any(|axis| self.tile.source.contains(axis));
        let each = match shared || self.phased && self.tile.destination.len() > 1 {
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
