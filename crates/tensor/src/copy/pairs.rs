//! Tiles given by tables of (source offset, destination offset) pairs.
//!
//! Law: the table holds the offsets of all axes that are not additive, and of parts of others.
//! Together with the loops around it, it visits every element once.

use super::plan::{CopyTile, DST, Move, SRC, Table};
use crate::domain::{Space, Step};
use crate::memory::{LINE, PAGE};

/// The largest number of offsets in a table that includes additive axes, and the largest number of
/// bytes that these offsets address.
const PLACES: usize = 1 << 10;
const PAIRED: usize = 1 << 15;

/// The most pages from which the lines of a table are read. From more pages, lines conflict in the
/// sets of the L1 cache.
const PAGES: usize = 5;

/// The tile of the axes that are not additive, in the order of the destination. It also includes as
/// many additive axes as whole lines of the destination need.
pub(super) fn pairs(mut lines: Vec<[isize; 2]>, steps: &mut Vec<Step<2>>, unit: usize) -> CopyTile {
    let line = (LINE / unit.min(LINE)).max(1);
    loop {
        lines.sort_unstable_by_key(|[src, dst]| (*dst, *src));
        let first = lines.first().map_or(0, |[_, dst]| *dst);
        let continues = |(k, line): (usize, &[isize; 2])| Some(line[1]) == first.checked_add((k * unit) as isize);
        let whole = |some: &[[isize; 2]]| {
            let start = some.first().map_or(0, |[_, dst]| *dst);
            let from = |(k, [_, dst]): (usize, &[isize; 2])| *dst == start.wrapping_add((k * unit) as isize);
            some.len() == line && start.wrapping_sub(first) % LINE as isize == 0 && some.iter().enumerate().all(from)
        };
        let rows = lines.iter().enumerate().all(continues) || lines.chunks(line).all(whole);
        // Takes the axis with the shortest step in the destination, or the largest divisor of its
        // extent for which there is room.
        let room = PLACES.min(PAIRED / unit) / lines.len();
        let next = (0..steps.len()).min_by_key(|at| steps[*at].by[DST].unsigned_abs()).filter(|_| !rows && room > 1);
        let parts =
            next.map(|at| (2..=room.min(steps[at].extent)).rev().find(|part| steps[at].extent.is_multiple_of(*part)));
        let (Some(at), Some(Some(part))) = (next, parts) else {
            let (src, dst) = lines.iter().map(|[src, dst]| (*src, *dst)).unzip();
            return CopyTile {
                how: Move::Pairs,
                unit,
                across: Table::one(),
                along: Table { src, dst },
                rows,
                ..CopyTile::default()
            };
        };
        let step = steps.remove(at);
        let times = |k: usize| [step.by[SRC].wrapping_mul(k as isize), step.by[DST].wrapping_mul(k as isize)];
        let moved = |[src, dst]: [isize; 2], k| [src.wrapping_add(times(k)[0]), dst.wrapping_add(times(k)[1])];
        lines = (0..part).flat_map(|k| lines.iter().map(move |line| moved(*line, k))).collect();
        if part < step.extent {
            steps.push(Step { extent: step.extent / part, by: times(part) });
        }
    }
}

/// Whether the runs of the table cover whole lines of the destination and come from few pages of
/// the source.
pub(super) fn reads_few_pages(space: &Space<2>, steps: &[Step<2>], unit: usize) -> bool {
    let tile = pairs(space.table.clone(), &mut steps.to_vec(), unit);
    let mut pages: Vec<isize> = tile.along.src.iter().map(|place| place.div_euclid(PAGE as isize)).collect();
    pages.sort_unstable();
    pages.dedup();
    tile.rows && pages.len() <= PAGES
}
