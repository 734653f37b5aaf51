//! In which shape clusters hold rows that are dealt.
//!
//! Law: a shape is how many blocks a cluster has, how many warps a block, and how many vectors of a
//! row a thread. Together they have a place for each vector of the row.

use std::ops::Range;

use super::LANES;

/// The most vectors of a thread, and the fewest where rows end within a run.
pub(super) const VECTORS: i64 = 8;
const FEWEST: i64 = 5;
/// Of rows that end within a run, the fewest warps of a block, and how much of the place for a row
/// may be left over: one part of so many.
const LEAST_WARPS: i64 = 4;
const LEFT_OVER: i64 = 32;
/// The most warps of a block, of which a multiprocessor has several.
const FEW: i64 = 8;
/// Blocks of a cluster.
pub(super) const BLOCKS: i64 = 8;
/// Registers of a multiprocessor, and those of a thread that hold no row that goes with all rows:
/// always, and where rows end within a run.
const REGISTERS: i64 = 65_536;
const OTHERS: i64 = 48;
const OF_ENDS: i64 = 8;
/// How many vectors all warps of a multiprocessor have where rows end within a run and two go with
/// all rows: a turn of fewer takes no less time, and more were not timed.
const AT_ONCE: Range<i64> = 90..100;
/// Warps of a group that has registers together.
pub(super) const GROUPED: i64 = 4;

/// Blocks, warps of a block and vectors of a thread for rows of so many vectors that are dealt: as
/// few blocks as can be; none for rows that these leave without a whole warp, or that registers do
/// not hold. Where rows may end within a run, few places are left over, in few runs, and every
/// thread has a vector at least, so that none is without numbers.
pub(super) fn shape_of(count: i64, unfilled: bool, beside: i64, holds: impl Fn([i64; 3]) -> bool) -> Option<[i64; 3]> {
    let of_blocks = |blocks: i64| -> Option<[i64; 3]> {
        let warp = blocks * LANES;
        let warps = count / (warp * VECTORS);
        let shape = [blocks, warps, VECTORS];
        if (1..=FEW).contains(&warps) && warps * warp * VECTORS == count && holds(shape) {
            return Some(shape);
        }
        if !unfilled {
            return None;
        }
        let shapes = (LEAST_WARPS..=FEW).flat_map(|warps| (FEWEST..=VECTORS).map(move |vectors| [warps, vectors]));
        let left = |[warps, vectors]: [i64; 2]| warps * vectors * warp - count;
        let fits = |[warps, vectors]: &[i64; 2]| {
            let begins = ((blocks - 1) * vectors + 1) * warps * LANES;
            let few = (0..=count / LEFT_OVER).contains(&left([*warps, *vectors]));
            few && begins <= count && holds([blocks, *warps, *vectors])
        };
        // Fewer warps leave a thread more registers; more have more under way.
        let warps_last = |warps: i64| if beside > 1 { warps } else { -warps };
        let ended = |shape: [i64; 2]| left(shape) / (shape[0] * LANES);
        let key = |shape: &[i64; 2]| (left(*shape), ended(*shape), warps_last(shape[0]));
        let shape = shapes.filter(fits).min_by_key(key);
        shape.map(|[warps, vectors]| [blocks, warps, vectors])
    };
    [2, 4, 8, 16].into_iter().find_map(of_blocks)
}

/// Whether the registers of a thread hold its vectors of rows that go with all rows, and what else
/// it has, and whether rows are worth it.
pub(super) fn holds([blocks, warps, vectors]: [i64; 3], resident: i64, count: i64, beside: i64) -> bool {
    let groups = (warps * resident + GROUPED - 1) / GROUPED;
    let registers = REGISTERS / (groups * GROUPED * LANES) / 8 * 8;
    let filled = blocks * warps * LANES * vectors == count;
    // Rows of 384 KiB took longer when sixteen blocks had fewer vectors each.
    let worth = match filled {
        true => blocks <= BLOCKS || vectors == VECTORS,
        false => AT_ONCE.contains(&(warps * resident * vectors)),
    };
    // A vector is four registers.
    worth && beside * vectors * 4 + OTHERS + if filled { 0 } else { OF_ENDS } <= registers
}
