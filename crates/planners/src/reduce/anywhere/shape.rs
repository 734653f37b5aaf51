//! The block shape of a reduction: threads, results side by side in a block, and shares of each
//! result.
//!
//! Law: blocks read whole lines, as many vectors at once as hide the latency of memory, and are as
//! many as keep all multiprocessors busy. `DECISIONS.md` has the measurements.

use tilewright_kernel::machine::Machine;

use crate::fitted::{CACHED_L2_PERCENT, REDUCTIONS};
use crate::law::{FEW_THREADS, REGISTER_VECTORS, SEVERAL_THREADS, clustered, l2_share, latency};
use crate::units::{LANES, SECTOR, VECTOR, div_up, power_from};

/// The properties of a problem that determine the shape.
pub(super) struct ReductionWork {
    /// The number of vectors, or elements, that each result is reduced from; and the number of
    /// results, or vectors of results.
    pub(super) reduced: i64,
    pub(super) places: i64,
    /// Bytes of a vector, and of all elements.
    pub(super) vector: i64,
    pub(super) bytes: i64,
    /// Whether vectors go along a reduced axis, and whether contiguous elements belong to one
    /// result.
    pub(super) inner: bool,
    pub(super) narrow: bool,
    /// Whether one thread searches the position of each result again: for argmax.
    pub(super) sought: bool,
}

/// The shape of blocks.
#[derive(Debug, Clone)]
pub(in crate::reduce) struct ReductionShape {
    /// Threads of a block.
    pub(super) threads: i64,
    /// Threads with different results, and threads that share a result.
    pub(super) across: i64,
    pub(super) along: i64,
    /// Vectors that a thread reads before it computes, and how often it does so.
    pub(super) loads: i64,
    pub(super) steps: i64,
    pub(in crate::reduce) shares: i64,
}

/// The vectors of a thread in flight; and the most if vectors are narrow.
const LOADS: i64 = REGISTER_VECTORS;
pub(super) const MOST_LOADS: i64 = REGISTER_VECTORS * 4;
/// Bytes of the widest strip of results side by side: two lines.
const WIDEST: i64 = SECTOR * 8;

/// Whether blocks without shares finish earlier than blocks with shares. Results are adjacent and
/// reduced from `count` elements each, in a tensor of `bytes` bytes. Without shares, the threads of
/// a result wait for the latency of their loads in each iteration. With shares, they read from the
/// L2 cache with twice the bandwidth of device memory, but partial results must be combined, mostly
/// by a second launch.
fn whole_strips_are_faster(count: i64, bytes: i64, machine: &Machine) -> bool {
    let strips = count as f64 / (FEW_THREADS * LOADS) as f64 * latency(machine);
    let shares = bytes as f64 / (2.0 * machine.bandwidth) + REDUCTIONS.launch;
    bytes <= l2_share(machine, CACHED_L2_PERCENT) && strips < shares
}

impl ReductionWork {
    /// The number of adjacent vectors of a strip.
    fn lanes(&self, strip: i64) -> i64 {
        if self.narrow { 1 } else { power_from(self.places).min((strip / self.vector).min(LANES)) }
    }

    /// The bytes of a strip, and the threads of each result, if blocks without shares are the
    /// fastest.
    fn strip(&self, machine: &Machine) -> Option<(i64, i64)> {
        if self.narrow || self.vector != VECTOR || !whole_strips_are_faster(self.reduced, self.bytes, machine) {
            return None;
        }
        let blocks = |strip: i64| div_up(self.places, self.lanes(strip));
        // A block reads two sectors of a row in nearly the time of one.
        if 2 * blocks(2 * SECTOR) < clustered(machine) {
            return Some((SECTOR, FEW_THREADS));
        }
        let most = 2 * i64::from(machine.multiprocessors);
        let strip = [2 * SECTOR, 4 * SECTOR, WIDEST].into_iter().find(|strip| blocks(*strip) <= most)?;
        let few = self.reduced <= REDUCTIONS.few_elements * blocks(strip);
        Some((strip, if few { FEW_THREADS / 2 } else { FEW_THREADS }))
    }

    /// The block shape.
    pub(super) fn shape(&self, machine: &Machine) -> ReductionShape {
        let (most_threads, widest) = (SEVERAL_THREADS, WIDEST);
        let busy = REDUCTIONS.busy_blocks * i64::from(machine.multiprocessors);
        let loads = (LOADS * VECTOR / self.vector).min(MOST_LOADS);
        let along =
            |threads: i64, strip: i64| (threads / self.lanes(strip)).min(power_from(div_up(self.reduced, loads)));
        let blocks = |threads: i64, strip: i64| div_up(self.places, threads / along(threads, strip));
        // The threads of a block, the adjacent bytes of a strip, and the required number of blocks.
        let (threads, strip, wanted) = match self.strip(machine) {
            _ if blocks(most_threads, widest) >= busy => (most_threads, widest, 1),
            Some((strip, most)) => {
                let lanes = self.lanes(strip);
                ((lanes * along(most * lanes, strip)).clamp(LANES, most_threads), strip, 1)
            }
            // The positions of adjacent results are searched at the end of each share.
            None if self.sought && !self.narrow => (most_threads, widest, busy),
            None if self.inner && self.bytes <= l2_share(machine, CACHED_L2_PERCENT) => {
                (most_threads / 2, widest, busy)
            }
            None => (most_threads, widest, REDUCTIONS.shared_blocks * i64::from(machine.multiprocessors)),
        };
        let (along, blocks) = (along(threads, strip), blocks(threads, strip));
        let all = div_up(self.reduced, along * loads);
        let steps = div_up(all, div_up(wanted, blocks).min(all));
        ReductionShape { threads, across: threads / along, along, loads, steps, shares: div_up(all, steps) }
    }
}
