//! Which blocks go through a problem: their threads, how many results are side by side in one, and
//! into how many shares the elements of a result are cut.
//!
//! The rules were found by timing on an H200; `DECISIONS.md` says what they gave.

use super::{over, up};

/// Threads of a block.
pub(in crate::reduce) const THREADS: i64 = 512;
/// Vectors that a thread reads before it computes, and elements where vectors are short.
const LOADS: i64 = 4;
const MOST_LOADS: i64 = 16;
/// The widest access of a thread, in bytes.
pub(super) const VECTOR: i64 = 16;
/// Bytes of neighbours that a block reads together where results lie side by side.
const STRIP: i64 = 256;
/// Bytes of the narrowest strip: a sector.
const SECTOR: i64 = 32;
/// How many threads have parts of a result of a strip, where no blocks have shares: the first where
/// a result has no more elements than so many times the blocks, unless strips are sectors.
const FEW_ALONG: i64 = 64;
const ALONG: i64 = 128;
const FEW: i64 = 8;
/// Multiprocessors of an H200.
const PROCESSORS: i64 = 132;
/// Strips are wider than a sector where so many blocks remain: a block reads two sectors of a row
/// in nearly the time of one.
const HALF: i64 = 64;
/// Bytes of a tensor that stays in the cache.
const CACHED: i64 = 32 << 20;
/// Enough blocks for every processor of a large GPU, and how many there are where they have shares.
const ENOUGH: i64 = 256;
const SHARED: i64 = 2048;
/// Threads of a warp.
pub(super) const WARP: i64 = 32;

/// What of a problem decides.
pub(super) struct Work {
    /// How many vectors, or elements, each result is made of, and how many vectors of results, or
    /// results, there are.
    pub(super) turns: i64,
    pub(super) places: i64,
    /// Bytes of a vector, and of all elements.
    pub(super) vector: i64,
    pub(super) bytes: i64,
    /// Whether vectors go along a reduced axis, and whether neighbours in memory belong to one
    /// result.
    pub(super) inner: bool,
    pub(super) narrow: bool,
    /// Whether results are looked for again, each by one thread.
    pub(super) sought: bool,
}

/// How blocks go through a problem.
#[derive(Debug, Clone)]
pub(in crate::reduce) struct Shape {
    /// Threads of a block.
    pub(super) threads: i64,
    /// Threads that have results of their own, and those that share each of them.
    pub(super) across: i64,
    pub(super) along: i64,
    /// Vectors that a thread reads before it computes, and how often it does.
    pub(super) loads: i64,
    pub(super) steps: i64,
    pub(in crate::reduce) shares: i64,
}

/// Whether blocks without shares are done before blocks that have shares, of results side by side
/// that are made of `count` elements each, in a tensor of `bytes` in the cache. By nanoseconds as
/// an H200 takes them: a block reads a piece of a strip for each element of a result, one after
/// another; shares read faster, but are put together, mostly by a second launch.
fn whole_strips_are_faster(count: i64, bytes: i64) -> bool {
    let strips = count.saturating_mul(6) / 10 + 950;
    let shares = (bytes >> 10).saturating_mul(125) / 1024 + 3000;
    bytes <= CACHED && strips < shares
}

impl Work {
    /// How many vectors of a strip lie side by side.
    fn lanes(&self, strip: i64) -> i64 {
        if self.narrow { 1 } else { up(self.places).min((strip / self.vector).min(WARP)) }
    }

    /// The bytes of a strip, and the threads of each result, where blocks without shares are the
    /// fastest.
    fn strip(&self) -> Option<(i64, i64)> {
        if self.narrow || self.vector != VECTOR || !whole_strips_are_faster(self.turns, self.bytes) {
            return None;
        }
        let blocks = |strip: i64| over(self.places, self.lanes(strip));
        if blocks(2 * SECTOR) < HALF {
            return Some((SECTOR, ALONG));
        }
        let strip = [2 * SECTOR, 4 * SECTOR, STRIP].into_iter().find(|strip| blocks(*strip) <= 2 * PROCESSORS)?;
        let few = self.turns <= FEW * blocks(strip);
        Some((strip, if few { FEW_ALONG } else { ALONG }))
    }

    /// The blocks.
    pub(super) fn shape(&self) -> Shape {
        let loads = (LOADS * VECTOR / self.vector).min(MOST_LOADS);
        let along = |threads: i64, strip: i64| (threads / self.lanes(strip)).min(up(over(self.turns, loads)));
        let blocks = |threads: i64, strip: i64| over(self.places, threads / along(threads, strip));
        // Threads of a block, bytes side by side, and how many blocks are wanted.
        let (threads, strip, wanted) = match self.strip() {
            _ if blocks(THREADS, STRIP) >= ENOUGH => (THREADS, STRIP, 1),
            Some((strip, most)) => {
                let lanes = self.lanes(strip);
                ((lanes * along(most * lanes, strip)).clamp(WARP, THREADS), strip, 1)
            }
            // Results that lie side by side are looked for again at the end of each share.
            None if self.sought && !self.narrow => (THREADS, STRIP, ENOUGH),
            None if self.inner && self.bytes <= CACHED => (THREADS / 2, STRIP, ENOUGH),
            None => (THREADS, STRIP, SHARED),
        };
        let (along, blocks) = (along(threads, strip), blocks(threads, strip));
        let all = over(self.turns, along * loads);
        let steps = over(all, over(wanted, blocks).min(all));
        Shape { threads, across: threads / along, along, loads, steps, shares: over(all, steps) }
    }
}
